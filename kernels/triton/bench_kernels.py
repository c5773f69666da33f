#!/usr/bin/env python3
"""Times a kernel pack on the workloads below, beside what the installed PyTorch has for them, in one run.

    bench_kernels.py PACKS [--profile profiles/bench.json] [--target sm_90] [--peers] [--out FILE.json]

Every kernel is checked against float32 attention on part of its output before it is timed. Medians of event-timed
launches, the L2 cache filled with other data before each. TFLOP/s counts 4 * head size for each visible (query, key)
pair and query head; TB/s counts every key and value once. Our kernels read a paged cache with shuffled blocks of 64;
peers get contiguous keys and values.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np
import torch

import cases
import specialise
from pack import Driver, Pack
from specialise import Specialisation
from test_kernels import attention_grid, programs

DTYPE = torch.bfloat16


@dataclass(frozen=True)
class Work:
    name: str
    use: str
    heads: int
    kv_heads: int
    head_size: int
    batch: int
    keys: int
    kv: str = "same"
    images: tuple = ()
    window: int = 0

    @property
    def title(self):
        return (f"{self.name} ({self.heads},{self.kv_heads},{self.head_size}) {self.batch}x{self.keys}"
                + (f" window {self.window}" if self.window else "") + (f" {self.kv}" if self.kv != "same" else ""))


IMAGES = ((200, 455), (600, 855), (1100, 1355), (1600, 1855))
WORKS = (
    [Work("causal prefill", "prefill", *shape, *size) for shape in ((32, 8, 128), (32, 16, 256), (32, 4, 512))
     for size in ((8, 1024), (1, 8192))]
    + [Work("causal prefill", "prefill", *shape, 8, 2048, window=window)
       for shape in ((32, 8, 128), (32, 16, 256)) for window in (0, 1024)]
    + [Work("image prefill", "prefill", *shape, 8, 2048, images=IMAGES, window=window)
       for shape in ((32, 8, 128), (32, 16, 256)) for window in (0, 1024)]
    + [Work("decode", "decode", *shape, kv=kv) for kv in ("same", "e4m3")
       for shape in ((32, 8, 128, 64, 4096), (32, 16, 256, 32, 4096), (32, 4, 512, 32, 4096))]
    + [Work("decode", "decode", 32, 8, 128, batch, keys) for batch, keys in ((16, 4096), (1, 32768))]
)
BLOCK = 64
FLUSH = None


def median_ms(launch, budget_ms=30.0, least=10):
    """Median of single launches, each after the L2 cache was filled with other, clean data. (Writing to fill it would
    leave lines behind that are written back during the launch.)"""
    global FLUSH
    if FLUSH is None:
        FLUSH = torch.zeros(64 * 2 ** 20, dtype=torch.int32, device="cuda")
    # Long enough for the clocks to rise and for a compiling peer to be done.
    launch()
    torch.cuda.synchronize()
    until = time.perf_counter() + 0.03
    while time.perf_counter() < until:
        for _ in range(3):
            launch()
        torch.cuda.synchronize()
    times, spent = [], 0.0
    while len(times) < least or (spent < budget_ms and len(times) < 50):
        pairs = []
        for _ in range(5):
            FLUSH.max()
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            launch()
            stop.record()
            pairs.append((start, stop))
        torch.cuda.synchronize()
        measured = [start.elapsed_time(stop) for start, stop in pairs]
        times += measured
        spent += sum(measured)
    return statistics.median(times)


def l2_bytes():
    return torch.cuda.get_device_properties(0).L2_cache_size


class Setting:
    """Tensors of one workload: contiguous keys and values and the same in a paged cache."""

    def __init__(self, work):
        torch.manual_seed(11)
        self.work = work
        batch, keys, heads, size = work.batch, work.keys, work.kv_heads, work.head_size
        self.q_len = keys if work.use == "prefill" else 1
        self.tokens = batch * self.q_len
        self.q = torch.randn(self.tokens, work.heads, size, device="cuda", dtype=DTYPE)
        self.k, self.v = (torch.randn(batch, keys, heads, size, device="cuda", dtype=DTYPE) for _ in range(2))
        if work.kv != "same":
            self.k, self.v = (x.to(torch.float8_e4m3fn) for x in (self.k, self.v))
        each = keys // BLOCK
        self.table = (torch.randperm(batch * each, device="cuda") + 1).to(torch.int32).reshape(batch, each)
        self.caches = []
        for x in (self.k, self.v):
            cache = torch.zeros(batch * each + 1, BLOCK, heads, size, device="cuda", dtype=x.dtype)
            raw = cache.view(torch.uint8) if work.kv != "same" else cache
            source = x.view(torch.uint8) if work.kv != "same" else x
            raw[self.table.flatten().long()] = source.reshape(-1, BLOCK, heads, size)
            self.caches.append(cache)
        self.out = torch.full_like(self.q, float("nan"))
        self.lse = torch.full((self.tokens, work.heads), float("nan"), device="cuda")
        low, high = [], []
        for position in range(keys - self.q_len, keys):
            begin = max(0, position - work.window + 1) if work.window else 0
            end = position
            for first, last in work.images:
                if first <= position <= last:
                    end = last
            low.append(begin)
            high.append(end)
        self.low_one, self.high_one = np.array(low, np.int32), np.array(high, np.int32)
        self.low, self.high = (torch.from_numpy(np.tile(x, batch)).cuda() for x in (self.low_one, self.high_one))
        pairs = int((self.high_one - self.low_one + 1).astype(np.int64).sum()) * batch
        self.flops = 4 * pairs * work.heads * size
        self.pairs = pairs
        width = 1 if work.kv != "same" else 2
        self.bytes = 2 * batch * keys * heads * size * width

    def runs(self, lowered=True):
        """One run a sequence, or cut at the image borders."""
        work, listed = self.work, []
        left = work.window - 1 if work.window else -1
        for sequence in range(work.batch):
            start = sequence * self.q_len
            if not work.images or not lowered:
                listed.append([start, self.q_len, work.keys - self.q_len, work.keys, left, 0, sequence, 0])
                continue
            at = 0
            for first, last in (*work.images, (work.keys, work.keys)):
                if first > at:
                    listed.append([start + at, first - at, at, first, left, 0, sequence, 0])
                if first < work.keys:
                    listed.append([start + first, last + 1 - first, first, last + 1, left, -1, sequence, 0])
                at = last + 1
        return np.array(listed, np.int32)

    def tiles(self, runs, tokens_per_tile):
        """The tile list, in pairs where several sequences have more keys and values than the L2 cache holds."""
        pairs = (self.work.batch > 1 and self.bytes > l2_bytes()
                 and self.tokens // tokens_per_tile * self.work.kv_heads > programs())
        return cases.tile_list(runs, tokens_per_tile, pairs=pairs), 2 if pairs else 1

    def arguments(self, tokens_per_tile, splits):
        work = self.work
        tiles, per_unit = self.tiles(self.runs(), tokens_per_tile)
        k, v = self.caches
        ones = torch.ones(1, device="cuda")
        named = {
            "q": self.q, "k_cache": k, "v_cache": v, "out": self.out, "lse": self.lse,
            "k_map": (k, list(k.shape), list(k.stride())), "v_map": (v, list(v.shape), list(v.stride())),
            "partial_out": torch.empty(self.tokens, work.heads, splits, work.head_size, device="cuda"),
            "partial_lse": torch.empty(self.tokens, work.heads, splits, device="cuda"),
            "tiles": torch.from_numpy(tiles).cuda(), "key_low": self.low,
            "key_high": self.high, "block_table": self.table, "sinks": ones, "alibi_slopes": ones, "k_scales": ones,
            "v_scales": ones, "softmax_scale": work.head_size ** -0.5, "softcap": 0.0,
            "q_stride_token": self.q.stride(0), "q_stride_head": self.q.stride(1),
            "out_stride_token": self.out.stride(0), "out_stride_head": self.out.stride(1),
            "lse_stride_token": self.lse.stride(0), "lse_stride_head": 1, "block_table_stride": self.table.stride(0),
            "num_splits": splits, "write_lse": 1, "has_sinks": 0, "num_tiles": len(tiles),
            "num_kv_heads": work.kv_heads, "tiles_per_unit": per_unit,
        }
        for side, cache in (("k", k), ("v", v)):
            for axis, name in enumerate(("block", "slot", "head")):
                named[f"{side}_stride_{name}"] = cache.stride(axis)
                named[f"{side}s_stride_{name}"] = 0
        return named, len(tiles)

    def error(self):
        """Largest deviation from float32 attention on some query tokens of the last sequence, by row size."""
        work = self.work
        picked = torch.unique(torch.linspace(0, self.q_len - 1, 24, device="cuda").long())
        rows = (work.batch - 1) * self.q_len + picked
        group = work.heads // work.kv_heads
        k, v = (x[-1].float().repeat_interleave(group, dim=1) for x in (self.k, self.v))
        scores = torch.einsum("thd,khd->htk", self.q[rows].float(), k) * work.head_size ** -0.5
        keys = torch.arange(work.keys, device="cuda")
        visible = (keys[None] >= self.low[rows][:, None]) & (keys[None] <= self.high[rows][:, None])
        scores = scores.masked_fill(~visible[None], float("-inf"))
        want = torch.einsum("htk,khd->thd", torch.softmax(scores, -1), v)
        lse = torch.logsumexp(scores, -1).T
        error = ((self.out[rows].float() - want).abs().amax(-1) / want.abs().amax(-1).clamp_min(0.02)).max().item()
        return error, (self.lse[rows] - lse).abs().max().item()


def split_choices(work):
    return (1, 2, 3, 4, 6, 8) if work.batch > 1 else (16, 24, 32, 48, 64)


def time_ours(pack, specs, setting, target):
    work = setting.work
    rows = []
    for spec in specs:
        if (spec.use, spec.head_size, spec.kv, spec.dtype) != (work.use, work.head_size, work.kv, "bf16"):
            continue
        if spec.group != work.heads // work.kv_heads or spec.block_size != BLOCK or spec.token_scales:
            continue
        if spec.softcap or spec.alibi or (spec.variant == "general" and not work.images):
            continue
        kernel = pack[spec.key]
        tile = specialise.tile(spec, target)
        for splits in split_choices(work) if spec.use == "decode" else (1,):
            arguments, num_tiles = setting.arguments(tile.block_m // spec.group, splits)
            if spec.variant == "general":
                tiles, _per_unit = setting.tiles(setting.runs(lowered=False), tile.block_m // spec.group)
                arguments |= {"tiles": torch.from_numpy(tiles).cuda(), "num_tiles": len(tiles)}
                num_tiles = len(tiles)
            setting.out.fill_(float("nan"))
            setting.lse.fill_(float("nan"))
            attend = kernel.bind(arguments, attention_grid(kernel.entry, num_tiles, work.kv_heads, splits,
                                                            arguments["tiles_per_unit"]))
            launch = attend
            if splits > 1:
                merge = Specialisation(use="merge", dtype="bf16", head_size=work.head_size)
                combine = pack[merge.key].bind(arguments, (num_tiles, work.heads, tile.block_m // spec.group))

                def launch(first=attend, second=combine):
                    first()
                    second()
            launch()
            torch.cuda.synchronize()
            error, lse_error = setting.error()
            if not (error < 2e-2 and lse_error < 1e-3):
                print(f"WRONG {work.title} {spec.key} splits {splits}: {error} {lse_error}", flush=True)
                continue
            rows.append(row(setting, spec.key + (f" splits {splits}" if spec.use == "decode" else ""),
                            median_ms(launch), spec.engine, error))
    return rows


def row(setting, name, milliseconds, engine, error=None):
    result = {"work": setting.work.title, "kernel": name, "engine": engine, "ms": milliseconds}
    if error is not None:
        result["error"] = error
    if setting.work.use == "prefill":
        result["tflops"] = setting.flops / milliseconds / 1e9
        result["pairs_per_s"] = setting.pairs / milliseconds * 1e3
        result["tokens_per_s"] = setting.tokens / milliseconds * 1e3
    else:
        result["tbps"] = setting.bytes / milliseconds / 1e9
        result["tokens_per_s"] = setting.tokens / milliseconds * 1e3
    return result


def time_peers(setting, flex):
    warnings.simplefilter("ignore")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    import torch.nn.functional as F
    work = setting.work
    if work.kv != "same":
        return []
    q = setting.q.reshape(work.batch, setting.q_len, work.heads, work.head_size).transpose(1, 2)
    k, v = setting.k.transpose(1, 2), setting.v.transpose(1, 2)
    q, k, v = (x.contiguous() for x in (q, k, v))
    rows = []
    for name, backend in (("flash2", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION),
                          ("mem-efficient", SDPBackend.EFFICIENT_ATTENTION)):
        if work.images or work.window:
            continue
        try:
            keys, values = k, v
            if name == "mem-efficient":
                group = work.heads // work.kv_heads
                keys, values = (x.repeat_interleave(group, dim=1) for x in (k, v))
            with sdpa_kernel([backend]):
                call = lambda: F.scaled_dot_product_attention(q, keys, values, is_causal=work.use == "prefill",
                                                              enable_gqa=name != "mem-efficient")
                rows.append(row(setting, name, median_ms(call), "peer"))
        except Exception as error:
            print(f"no {name} for {work.title}: {str(error).splitlines()[0][:100]}", flush=True)
    if flex and not (work.head_size == 512 and work.use == "prefill"):
        try:
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention
            low, high = (torch.from_numpy(x).cuda() for x in (setting.low_one, setting.high_one))
            shift = work.keys - setting.q_len
            mask = None
            if work.use == "prefill":
                if work.images or work.window:
                    visible = lambda b, h, i, j: (j >= low[i]) & (j <= high[i])
                else:
                    visible = lambda b, h, i, j: j <= i + shift
                mask = create_block_mask(visible, None, None, setting.q_len, work.keys, device="cuda")
            torch._dynamo.reset()
            compiled = torch.compile(flex_attention, dynamic=False)
            call = lambda: compiled(q, k, v, block_mask=mask, enable_gqa=True)
            rows.append(row(setting, "FlexAttention", median_ms(call), "peer"))
        except Exception as error:
            print(f"no FlexAttention for {work.title}: {str(error).splitlines()[0][:100]}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packs", type=Path)
    parser.add_argument("--profile", type=Path, action="append")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--peers", action="store_true", help="time cuDNN, flash2 and mem-efficient attention too")
    parser.add_argument("--flex", action="store_true", help="and FlexAttention, which compiles for half a minute a row")
    parser.add_argument("--only", default="", help="regular expression on the workload")
    parser.add_argument("--top", type=int, default=4, help="rows printed for each workload and engine")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    specs = {}
    for path in options.profile or [HERE / "profiles" / "bench.json"]:
        for spec in specialise.specialisations(json.loads(path.read_text())):
            specs[spec.key] = spec
    pack = Pack(options.packs / options.target, Driver())
    usable = [spec for spec in specs.values() if spec.key in pack]
    rows = []
    for work in WORKS:
        if not re.search(options.only, work.title):
            continue
        setting = Setting(work)
        measured = time_ours(pack, usable, setting, options.target)
        if options.peers or options.flex:
            measured += time_peers(setting, options.flex)
        rows += measured
        for engine in ("portable", "hopper", "peer"):
            best = sorted((r for r in measured if r["engine"] == engine), key=lambda r: r["ms"])
            for r in best[: options.top]:
                speed = f"{r['tflops']:6.1f} TFLOP/s" if "tflops" in r else f"{r['tbps']:6.3f} TB/s"
                print(f"{r['work']:44} {speed} {r['ms']:8.4f} ms  {r['kernel']}", flush=True)
        del setting
        torch.cuda.empty_cache()
        if options.out:
            options.out.write_text(json.dumps({
                "device": torch.cuda.get_device_name(), "torch": torch.__version__, "block_size": BLOCK,
                "command": " ".join(["bench_kernels.py", *sys.argv[1:]]), "rows": rows}, indent=1) + "\n")
    if not rows:
        sys.exit("nothing was timed")


if __name__ == "__main__":
    main()
