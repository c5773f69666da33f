#!/usr/bin/env python3
"""Times what the installed PyTorch has for the workloads of bench_kernels.py, and nothing of ours.

    bench_peers.py --out FILE.json [--quick] [--flex REGEX]

`bifocal bench --suite gpu` runs it in the same run as its own timings. FlexAttention compiles for up to half a minute a
workload and runs only where --flex says (default: images, for which PyTorch has nothing else, and the decodes that no
other kernel of it computes).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch

import bench_kernels

QUICK = ("causal prefill (32,8,128) 8x1024", "decode (32,8,128) 64x4096")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="two workloads, no FlexAttention")
    parser.add_argument("--flex", default=r"^image|^decode \(32,4,512\) 32x4096$", help="workloads of FlexAttention")
    options = parser.parse_args()
    rows = []
    for work in bench_kernels.WORKS:
        if options.quick and work.title not in QUICK:
            continue
        setting = bench_kernels.Setting(work)
        flex = not options.quick and bool(re.search(options.flex, work.title))
        for row in bench_kernels.time_peers(setting, flex):
            rows.append(row)
            print(f"{row['work']:44} {row['kernel']:14} {row['ms']:8.4f} ms", flush=True)
        del setting
        torch.cuda.empty_cache()
    import triton
    options.out.write_text(json.dumps({
        "versions": {"torch": torch.__version__, "cudnn": str(torch.backends.cudnn.version()),
                     "triton": triton.__version__},
        "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
