#!/usr/bin/env python3
"""Checks a kernel pack on a GPU against the float64 reference.

    test_kernels.py PACKS [--profile profiles/coverage.json] [--target sm_90] [--seed N] [--count N] [--only REGEX]

PACKS is what build_packs.py wrote. Needs torch for memory. Every batch is fresh random data with poisoned outputs;
the seed is printed and reproduces a run.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np
import torch

import cases
import formats
import specialise
from pack import Driver, Pack
from specialise import Specialisation


def upload(array):
    """A tensor on the device with the array's strides, its whole storage behind it."""
    storage = array
    while isinstance(storage.base, np.ndarray):
        storage = storage.base
    whole = torch.from_numpy(np.ascontiguousarray(storage)).cuda()
    start = array.__array_interface__["data"][0] - storage.__array_interface__["data"][0]
    return torch.as_strided(whole.flatten(), array.shape, [step // array.itemsize for step in array.strides],
                            start // array.itemsize)


def upload_all(arguments):
    placed = {name: upload(value) if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
    for side in ("k", "v"):
        if f"{side}_cache" in placed:
            cache = placed[f"{side}_cache"]
            placed[f"{side}_map"] = (cache, list(cache.shape), list(cache.stride()))
    return placed


def programs():
    return torch.cuda.get_device_properties(0).multi_processor_count


def attention_grid(entry, num_tiles, num_kv_heads, splits, tiles_per_unit=1):
    if entry["kernel"] == "hopper_attention":
        return (min(programs(), num_tiles // tiles_per_unit * num_kv_heads), 1, 1)
    return (num_tiles, num_kv_heads, splits)


class Suite:
    def __init__(self, pack, target, seed):
        self.pack, self.target, self.seed = pack, target, seed
        self.passed, self.failures, self.worst = 0, [], {}

    def report(self, name, problems, error=0.0, lse_error=0.0):
        if problems:
            self.failures.append(name)
            print(f"FAIL {name}: {'; '.join(problems)} (error {error:.2e}, LSE {lse_error:.2e})", flush=True)
        else:
            self.passed += 1

    def attention(self, spec, repetition, few_programs=False, **options):
        rng = np.random.default_rng([self.seed, repetition, zlib.crc32(f"{spec.key} {options}".encode())])
        tile = specialise.tile(spec, self.target)
        batch = cases.make(rng, spec, tile, **options)
        placed = upload_all(batch.arguments)
        kernel = self.pack[spec.key]
        splits = batch.arguments["num_splits"]
        grid = attention_grid(kernel.entry, batch.num_tiles, batch.num_kv_heads, splits,
                              batch.arguments["tiles_per_unit"])
        if few_programs:
            grid = (min(grid[0], 3), 1, 1)
        kernel.bind(placed, grid)()
        if splits > 1:
            merge = Specialisation(use="merge", dtype=spec.dtype, head_size=spec.head_size, out=spec.out)
            self.pack[merge.key].bind(placed, (batch.num_tiles, batch.num_kv_heads * spec.group,
                                               tile.block_m // spec.group))()
        torch.cuda.synchronize()
        problems, error, lse_error = cases.check(batch, spec, placed["out"].cpu().numpy(), placed["lse"].cpu().numpy())
        seen = self.worst.setdefault((spec.engine, spec.use, spec.dtype), [0.0, 0.0])
        seen[0], seen[1] = max(seen[0], error), max(seen[1], lse_error)
        self.report(f"{spec.key} {options} repetition {repetition}", problems, error, lse_error)

    def write(self, spec, repetition, **options):
        rng = np.random.default_rng([self.seed, repetition, zlib.crc32(f"{spec.key} {options}".encode())])
        arguments, expected, scales = cases.make_write(rng, spec, **options)
        placed = upload_all(arguments)
        heads = specialise.tile(spec, self.target).block_m
        self.pack[spec.key].bind(placed, (len(arguments["slot_mapping"]), -(-arguments["num_kv_heads"] // heads), 1))()
        torch.cuda.synchronize()
        problems = []
        for name, want in zip(("k_cache", "v_cache"), expected):
            got = placed[name].cpu().numpy()
            if not np.array_equal(got, want, equal_nan=got.dtype.kind == "f"):
                problems.append(f"{name}: {(got != want).sum()} elements differ")
        for name, want in zip(("k_scales", "v_scales"), scales):
            if not np.array_equal(placed[name].cpu().numpy(), want, equal_nan=True):
                problems.append(f"{name} differ")
        self.report(f"{spec.key} {options} repetition {repetition}", problems)

    def large_cache(self, spec, layout):
        """Blocks that lie beyond 2^31 elements, read and written. Block size, heads and head size as in `spec`."""
        rng = np.random.default_rng([self.seed, 77])
        heads, size, block_size = 8, spec.head_size, spec.block_size
        num_blocks = 2 ** 31 // (heads * size * block_size) + 2000
        tile = specialise.tile(spec, self.target)
        batch = cases.make(rng, spec, tile, num_sequences=2, max_keys=300, num_kv_heads=heads, empty=False)
        placed = upload_all(batch.arguments)
        used = placed["block_table"].flatten().long()
        far = torch.arange(len(used), device="cuda") * 7 + num_blocks - 7 * len(used) - 1
        shape = ((num_blocks, block_size, heads, size) if layout == "NHD" else (num_blocks, heads, block_size, size))
        write = Specialisation(use="write", dtype=spec.dtype, head_size=size)
        slots = (far[:, None] * block_size + torch.arange(block_size, device="cuda")).flatten().contiguous()
        source = {}
        for side in ("k", "v"):
            cache = torch.empty(shape, dtype=torch.uint16, device="cuda")
            view = cache if layout == "NHD" else cache.transpose(1, 2)
            near = placed[f"{side}_cache"].view(torch.int16)[used].view(torch.uint16)
            source["key" if side == "k" else "value"] = near.reshape(-1, heads, size).contiguous()
            placed[f"{side}_cache"] = view
            placed[f"{side}_map"] = (view, list(view.shape), list(view.stride()))
            for axis, name in enumerate(("block", "slot", "head")):
                placed[f"{side}_stride_{name}"] = view.stride(axis)
        placed |= source | {"slot_mapping": slots, "block_size": block_size}
        for name in ("key", "value"):
            placed[f"{name}_stride_token"], placed[f"{name}_stride_head"] = heads * size, size
        per_program = specialise.tile(write, self.target).block_m
        self.pack[write.key].bind(placed, (len(slots), -(-heads // per_program), 1))()
        table = placed["block_table"]
        placed["block_table"] = far.to(torch.int32).reshape(table.shape).contiguous()
        kernel = self.pack[spec.key]
        kernel.bind(placed, attention_grid(kernel.entry, batch.num_tiles, heads, 1))()
        torch.cuda.synchronize()
        problems, error, lse_error = cases.check(batch, spec, placed["out"].cpu().numpy(), placed["lse"].cpu().numpy())
        self.report(f"{spec.key} {layout} cache of {num_blocks * heads * size * block_size} elements", problems, error,
                    lse_error)

    def run(self, specs, count, only):
        layouts = ("NHD", "HND", "interleaved")
        for spec in specs:
            if not specialise.applies(spec, self.target) or not re.search(only, spec.key):
                continue
            if spec.key not in self.pack:
                self.report(spec.key, ["not in the pack"])
                continue
            started = time.monotonic()
            for repetition in range(count):
                layout = layouts[(repetition + zlib.crc32(spec.key.encode())) % 3]
                if spec.use == "write":
                    self.write(spec, repetition, layout=layout, block_size=(16, 64)[repetition % 2])
                elif spec.use == "decode":
                    self.attention(spec, repetition, layout=layout, splits=(1, 4, 7)[repetition % 3],
                                   sinks=repetition % 2 == 1, max_keys=(60, 400, 900)[repetition % 3],
                                   per_tensor_scale=repetition % 2 == 0)
                elif spec.use == "prefill":
                    self.attention(spec, repetition, layout=layout, sinks=repetition % 2 == 1,
                                   max_keys=(70, 400, 700)[repetition % 3], max_queries=(40, 130, 200)[repetition % 3],
                                   num_kv_heads=(2, 1, 3)[repetition % 3], per_tensor_scale=repetition % 2 == 0,
                                   pairs=repetition % 2 == 1,
                                   few_programs=spec.engine == "hopper" and repetition % 2 == 0)
            if time.monotonic() - started > 10:
                print(f"{spec.key}: {time.monotonic() - started:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packs", type=Path)
    parser.add_argument("--profile", type=Path, action="append")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth kernel from the Ith on, to run N at a time")
    parser.add_argument("--large", action="store_true", help="caches beyond 2^31 elements (needs 10 GB)")
    options = parser.parse_args()
    print(f"seed {options.seed}, {torch.cuda.get_device_name()}", flush=True)
    suite = Suite(Pack(options.packs / options.target, Driver()), options.target, options.seed)
    specs = {}
    for path in options.profile or [HERE / "profiles" / "coverage.json"]:
        for spec in specialise.specialisations(json.loads(path.read_text())):
            specs[spec.key] = spec
    shard, shards = map(int, options.shard.split("/"))
    suite.run(list(specs.values())[shard::shards], options.count, options.only)
    if options.large:
        for spec in specs.values():
            large = (spec.head_size == 128 and spec.block_size == 64 and spec.dtype == "bf16" and spec.kv == "same"
                     and spec.group == 4 and spec.variant == "causal" and not spec.softcap and not spec.alibi)
            if large and re.search(options.only, spec.key):
                for layout in ("NHD", "HND"):
                    suite.large_cache(spec, layout)
    for (engine, use, dtype), (error, lse_error) in sorted(suite.worst.items()):
        print(f"largest error {engine} {use} {dtype}: output {error:.2e} of the row's largest value, "
              f"LSE {lse_error:.2e}")
    print(f"{suite.passed} passed, {len(suite.failures)} failed")
    sys.exit(1 if suite.failures or not suite.passed else 0)


if __name__ == "__main__":
    main()
