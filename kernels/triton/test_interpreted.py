#!/usr/bin/env python3
"""Runs the portable kernels in Triton's interpreter, on the CPU and without torch, against the float64 reference.

    test_interpreted.py [--seed N] [--count N]

Slow (seconds a batch) but it needs no GPU: it checks masks, addressing, splits, quantisation and the KV writer. fp16
and fp32 only, since the interpreter has no bf16 arithmetic of its own.
"""

import argparse
import os
import sys
import time
import zlib
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

import attention
import cache
import cases
import specialise
from specialise import Specialisation, Tile


class Pointer:
    """An array as a typed kernel argument."""

    def __init__(self, array, element):
        self.array, self.element = array, element


ELEMENTS = {"bf16": tl.bfloat16, "fp16": tl.float16, "fp32": tl.float32, "u8": tl.uint8, "i8": tl.int8,
            "i32": tl.int32, "i64": tl.int64}
convert_argument = interpreter._implicit_cvt


def convert(argument):
    if isinstance(argument, Pointer):
        kind = tl.pointer_type(ELEMENTS[argument.element])
        address = argument.array.__array_interface__["data"][0]
        return tl.tensor(interpreter.TensorHandle(np.array([address], dtype=np.uint64), kind), kind)
    return convert_argument(argument)


# Arguments are arrays of this process already: nothing to copy to the host or back.
interpreter._implicit_cvt = convert
interpreter.GridExecutor._init_args_hst = lambda self, positional, named: (positional, named)
interpreter.GridExecutor._restore_args_dev = lambda self, *arguments: None


def launch(function, spec, arguments, grid):
    values = {}
    for argument in specialise.arguments(spec):
        value = arguments[argument.name]
        values[argument.name] = Pointer(value, argument.element) if argument.kind == "pointer" else value
    # gfx942 asks for nothing that only the hardware has: no inline assembly, no fp8 conversions of its own.
    constants = specialise.constants(spec, "gfx942")
    function[grid](**values, **constants)


def run_attention(rng, spec, **options):
    tile = specialise.tile(spec, "sm_90")
    batch = cases.make(rng, spec, tile, **options)
    splits = batch.arguments["num_splits"]
    with np.errstate(all="ignore"):
        launch(attention.paged_attention, spec, batch.arguments, (batch.num_tiles, batch.num_kv_heads, splits))
        if splits > 1:
            merge = Specialisation(use="merge", dtype=spec.dtype, head_size=spec.head_size)
            launch(attention.merge_splits, merge, batch.arguments,
                   (batch.num_tiles, batch.num_kv_heads * spec.group, tile.block_m // spec.group))
    return cases.check(batch, spec, batch.arguments["out"], batch.arguments["lse"])


def run_write(rng, spec, **options):
    arguments, expected, scales = cases.make_write(rng, spec, **options)
    with np.errstate(all="ignore"):
        heads = specialise.tile(spec, "sm_90").block_m
        launch(cache.write_kv, spec, arguments,
               (len(arguments["slot_mapping"]), -(-arguments["num_kv_heads"] // heads)))
    problems = [f"{name} differs" for name, want in zip(("k_cache", "v_cache"), expected)
                if not np.array_equal(arguments[name], want, equal_nan=arguments[name].dtype.kind == "f")]
    problems += [f"{name} differs" for name, want in zip(("k_scales", "v_scales"), scales)
                 if not np.array_equal(arguments[name], want, equal_nan=True)]
    return problems, 0.0, 0.0


def attention_cases():
    small = Tile(block_m=16, block_n=16, phased=True)
    plain = dict(dtype="fp16", head_size=32, group=4, block_size=16)
    for variant in ("causal", "general"):
        yield Specialisation(use="prefill", variant=variant, tile=small, **plain), {}
        yield Specialisation(use="prefill", variant=variant, tile=small, **plain), {"sinks": True, "layout": "HND"}
        yield Specialisation(use="decode", variant=variant, tile=Tile(block_m=16, block_n=32), **plain), {"splits": 5}
        yield (Specialisation(use="decode", variant=variant, tile=Tile(block_m=16, block_n=16), **plain),
               {"splits": 3, "sinks": True, "layout": "interleaved"})
        yield Specialisation(use="prefill", variant=variant, softcap=True, tile=small, **plain), {}
        yield Specialisation(use="prefill", variant=variant, alibi=True, tile=small, **plain), {"sinks": True}
        yield Specialisation(use="prefill", variant=variant, alibi=True, softcap=True, tile=small, **plain), {}
    yield Specialisation(use="prefill", dtype="fp32", head_size=80, group=3, block_size=32,
                         tile=Tile(block_m=16, block_n=16, phased=True)), {}
    yield Specialisation(use="prefill", dtype="fp16", head_size=112, group=1, block_size=16,
                         tile=Tile(block_m=16, block_n=64, phased=True)), {"layout": "HND"}
    yield Specialisation(use="decode", dtype="fp16", head_size=64, group=7, block_size=128,
                         tile=Tile(block_m=16, block_n=32)), {"splits": 2}
    yield Specialisation(use="decode", dtype="fp16", head_size=64, group=16, block_size=48,
                         tile=Tile(block_m=16, block_n=32)), {"splits": 1}
    for kv in ("e4m3", "e5m2", "int8"):
        for token_scales in (False, True):
            if kv == "int8" and not token_scales:
                continue
            for use, phased in (("prefill", True), ("decode", False)):
                yield (Specialisation(use=use, kv=kv, token_scales=token_scales,
                                      tile=Tile(block_m=16, block_n=32, phased=phased), **plain),
                       {"splits": 3 if use == "decode" else 1,
                        "per_tensor_scale": use == "decode" and not token_scales})


def write_cases():
    for kv, token_scales in (("same", False), ("e4m3", False), ("e5m2", False), ("e4m3", True), ("e5m2", True),
                             ("int8", True)):
        for dtype, layout in (("fp16", "NHD"), ("fp32", "HND")):
            yield Specialisation(use="write", dtype=dtype, kv=kv, token_scales=token_scales, head_size=80,
                                 tile=Tile(block_m=2)), {"layout": layout}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--count", type=int, default=1, help="batches of each kind")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    passed = failed = 0
    listed = [(run_attention, *case) for case in attention_cases()] + [(run_write, *case) for case in write_cases()]
    for run, spec, more in listed:
        if options.only not in spec.key:
            continue
        for repetition in range(options.count):
            rng = np.random.default_rng([options.seed, repetition, zlib.crc32(f"{spec.key} {more}".encode())])
            problems, error, lse_error = run(rng, spec, **more)
            passed, failed = passed + (not problems), failed + bool(problems)
            print(f"{'FAIL' if problems else 'ok'} {spec.key} {more} {error:.1e} {lse_error:.1e} "
                  + "; ".join(problems), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
