"""Prints, as JSON, the functions of a module and their metadata: {"name": "metadata", ...}. Needs no GPU."""

from __future__ import annotations

import json
import re
import subprocess
import sys

METADATA = "__tvm_ffi__metadata_"


def main():
    import tvm_ffi
    path = sys.argv[1]
    symbols = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    names = sorted(set(re.findall(rf"\b{METADATA}(\w+)$", symbols, re.M)))
    module = tvm_ffi.load_module(path)
    print(json.dumps({name: module.get_function_metadata(name) for name in names}))


if __name__ == "__main__":
    main()
