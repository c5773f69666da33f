"""Compiles FlashAttention-4's forward for sm_90a ahead of time, without a GPU and without torch.

    compile_forward.py OUT --head-size 128 --group 4 --page-size 64

writes OUT/<name>.o, an object file with one TVM-FFI function of that name. FlashAttention-4 imports torch for names of
number types and of fake tensors only, so a module of that name is made here.
"""

import argparse
import importlib
import importlib.util
import os
import sys
import time
import types
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("CUTE_DSL_ARCH", "sm_90a")
os.environ.setdefault("FLASH_ATTENTION_ARCH", "sm_90")

TORCH_DTYPES = ("float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 int8 uint8 int16 uint16 int32 uint32 "
                "int64 uint64 bool float4_e2m1fn_x2 float8_e8m0fnu").split()


class Dtype:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "torch." + self.name


def module(name, **values):
    made = types.ModuleType(name)
    for key, value in values.items():
        setattr(made, key, value)
    sys.modules[name] = made
    return made


def name_torch():
    tensor = type("Tensor", (), {})
    fake = module("torch._subclasses.fake_tensor", FakeTensor=type("FakeTensor", (tensor,), {}), FakeTensorMode=object)
    module("torch._subclasses", fake_tensor=fake)
    return module("torch", dtype=Dtype, Tensor=tensor, device=type("device", (), {}), Size=tuple,
                  **{name: Dtype(name) for name in TORCH_DTYPES})


def enter_package(name, path):
    made = module(name)
    made.__path__ = [str(path)]


def forward_class():
    """FlashAttention-4's kernel for Hopper, without the interface that needs the whole of torch."""
    import cutlass.cute  # noqa: F401 (before the name torch exists)
    import tvm_ffi  # noqa: F401
    name_torch()
    root = Path(next(iter(importlib.util.find_spec("flash_attn").submodule_search_locations)))
    enter_package("flash_attn.cute", root / "cute")
    enter_package("quack", Path(importlib.util.find_spec("quack").origin).parent)
    importlib.import_module("quack.dsl")  # extends how CuTe's tensors are indexed
    from flash_attn.cute.flash_fwd_sm90 import FlashAttentionForwardSm90
    return FlashAttentionForwardSm90


@dataclass(frozen=True)
class Variant:
    dtype: str
    head_size: int
    group: int
    page_size: int
    causal: bool
    window: bool
    pack: bool
    tile_n: int

    @property
    def tile(self):
        """(rows, keys) as FlashAttention-4 chooses them for Hopper, unless the keys are given."""
        keys = 128 if self.head_size <= 128 else 64 if self.window else 80
        return 128, self.tile_n or keys

    @property
    def name(self):
        mask = "window" if self.window else "causal" if self.causal else "full"
        return (f"fa4_forward_{self.dtype}_{self.head_size}_group{self.group}_page{self.page_size}_{mask}_"
                f"{self.tile[0]}x{self.tile[1]}" + ("_packed" if self.pack else ""))


def compile_variant(variant):
    forward = forward_class()
    import cutlass
    import cutlass.cute as cute
    from cutlass import Float32, Int32
    from flash_attn.cute.utils import AuxData
    from quack import layout_utils

    sym = cute.sym_int

    def tensor(dtype, shape, divisible=1):
        stride = tuple(cute.sym_int64(divisibility=divisible) for _ in shape[:-1]) + (1,)
        return cute.runtime.make_fake_tensor(dtype, shape, stride=stride,
                                             assumed_align=max(divisible * dtype.width // 8, 4))

    rows, keys = variant.tile
    dtype = {"bf16": cutlass.BFloat16, "fp16": cutlass.Float16}[variant.dtype]
    kernel = forward(
        dtype, variant.head_size, variant.head_size, variant.group, is_causal=variant.causal,
        is_local=variant.window, pack_gqa=variant.pack, tile_m=rows, tile_n=keys, num_stages=2, num_threads=384,
        Q_in_regs=False, intra_wg_overlap=True, mma_pv_is_rs=True, mask_mod=None, score_mod=None,
        has_aux_tensors=False, paged_kv_non_tma=variant.page_size != keys)
    tokens, heads, kv_heads, batch, pages = sym(), sym(), sym(), sym(), sym()
    size = variant.head_size
    query = tensor(dtype, (tokens, heads, size), 8)
    key = tensor(dtype, (pages, variant.page_size, kv_heads, size), 8)
    value = tensor(dtype, (pages, variant.page_size, kv_heads, size), 8)
    out = tensor(dtype, (tokens, heads, size), 8)
    lse = tensor(Float32, (tokens, heads))
    starts = tensor(Int32, (sym(),))
    used = tensor(Int32, (batch,))
    lengths = tensor(Int32, (batch,))
    table = tensor(Int32, (batch, sym()))
    given = (query, key, value, out, lse, Float32(1.0), starts, used, lengths, table)
    stream = cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=True)

    @cute.jit
    def windowed(q, k, v, out, lse, scale: Float32, starts, used, lengths, table, left: Int32, right: Int32, stream):
        sums = layout_utils.select(lse, [1, 0])
        kernel(q, k, v, out, sums, scale, starts, None, used, lengths, table, left, right, None, None, AuxData(), None,
               None, stream)

    @cute.jit
    def unbounded(q, k, v, out, lse, scale: Float32, starts, used, lengths, table, stream):
        sums = layout_utils.select(lse, [1, 0])
        kernel(q, k, v, out, sums, scale, starts, None, used, lengths, table, None, None, None, None, AuxData(), None,
               None, stream)

    options = "--enable-tvm-ffi"
    if variant.window:
        return cute.compile(windowed, *given, Int32(1), Int32(0), stream, options=options)
    return cute.compile(unbounded, *given, stream, options=options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16", help="of queries, cache and output")
    parser.add_argument("--head-size", type=int, default=128)
    parser.add_argument("--group", type=int, default=4, help="query heads of one key/value head")
    parser.add_argument("--page-size", type=int, default=64)
    parser.add_argument("--tile-keys", type=int, default=0, help="instead of FlashAttention-4's choice")
    parser.add_argument("--full", action="store_true", help="not causal")
    parser.add_argument("--window", action="store_true", help="bounds left and right at run time")
    parser.add_argument("--pack", action="store_true", help="query heads of a group as rows of one tile")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    variant = Variant(options.dtype, options.head_size, options.group, options.page_size,
                      not options.full and not options.window, options.window, options.pack, options.tile_keys)
    started = time.monotonic()
    compiled = compile_variant(variant)
    path = options.out / f"{variant.name}.o"
    compiled.export_to_c(object_file_path=str(path), function_name=variant.name)
    print(f"{variant.name}: {time.monotonic() - started:.1f} s, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
