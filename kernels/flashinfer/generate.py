"""Writes the sources of modules and tells how they are compiled.

Reads {"target", "modules"} as JSON from standard input, writes a list of {"uri", "sources", "nvcc", "cxx"} to the
file that is its one argument. FlashInfer's generators do the work. They import torch for the names of number types
only, so a module of that name is made here; and the packages `flashinfer` and `flashinfer.jit` are entered without
running what their __init__ imports, which is all of FlashInfer.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import shlex
import sys
import types
from pathlib import Path

import tvm_ffi  # noqa: F401 (before the name torch exists: it would use more of it)

TORCH_DTYPES = ("float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 int8 uint8 int16 uint16 int32 uint32 "
                "int64 uint64 bool").split()


class Dtype:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "torch." + self.name


def name_torch():
    torch = types.ModuleType("torch")
    torch.dtype = Dtype
    for name in TORCH_DTYPES:
        setattr(torch, name, Dtype(name))
    torch.Tensor = type("Tensor", (), {})
    torch._C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True)
    torch.version = types.SimpleNamespace(cuda=None)
    torch.cuda = types.SimpleNamespace(is_available=lambda: False, device_count=lambda: 0)
    sys.modules["torch"] = torch
    return torch


def enter_package(name, path):
    package = types.ModuleType(name)
    package.__path__ = [str(path)]
    sys.modules[name] = package


def enter_flashinfer():
    root = Path(importlib.util.find_spec("flashinfer").origin).parent
    for name, path in (("flashinfer", root), ("flashinfer.jit", root / "jit"),
                       ("flashinfer.jit.attention", root / "jit" / "attention")):
        enter_package(name, path)


def generated(module, torch):
    """FlashInfer's own record of a module, its sources written."""
    def load(name):
        return importlib.import_module("flashinfer.jit." + name)

    kind = module["kind"]
    if kind == "page":
        return load("page").gen_page_module()
    if kind == "cascade":
        return load("cascade").gen_cascade_module()
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[module["dtype"]]
    size = module["head_size"]
    if kind == "xqa":
        return load("xqa").gen_xqa_module(dtype, dtype, module["page_size"], size, module["group"], module["window"],
                                          dtype)
    attention = load("attention.modules")
    common = (dtype, dtype, dtype, torch.int32, size, size, 0, module["window"], module["softcap"])
    if kind == "decode":
        return attention.gen_batch_decode_module(*common)
    if module["engine"] == "fa2":
        # Kernels for keys and values of the same strides, half of what the default compiles.
        return attention._gen_batch_prefill_primary_module("fa2", *common, False)
    return attention.gen_batch_prefill_module(module["engine"], *common, False)


def flags_of(spec):
    """(flags for nvcc, flags for the C++ compiler), as FlashInfer's own build would have them."""
    extension = importlib.import_module("flashinfer.jit.cpp_ext")
    home = extension.get_cuda_path()
    common = extension.build_common_cflags(home, spec.extra_include_dirs)
    texts = (extension.build_cuda_cflags(common, spec.extra_cuda_cflags),
             extension.build_cflags(common, spec.extra_cflags))
    flags = []
    for text in texts:
        whole = " ".join(text).replace("$common_cflags", " ".join(common)).replace("$cuda_home", home)
        flags.append(without_python(shlex.split(whole)))
    return flags


def without_python(flags):
    """Drops the headers of the Python that runs here: no module uses them."""
    import sysconfig
    include = sysconfig.get_path("include")
    kept = []
    for flag in flags:
        if flag == include and kept[-1] == "-isystem":
            kept.pop()
        else:
            kept.append(flag)
    return kept


def main():
    request = json.load(sys.stdin)
    torch = name_torch()
    enter_flashinfer()
    answers = []
    for module in request["modules"]:
        spec = generated(module, torch)
        nvcc, cxx = flags_of(spec)
        answers.append({"uri": spec.name, "sources": [str(path) for path in spec.sources], "nvcc": nvcc, "cxx": cxx})
    Path(sys.argv[1]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
