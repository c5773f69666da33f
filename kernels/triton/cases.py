"""Random attention batches with their answers in float64: what the interpreted and the GPU tests both run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import formats
import specialise


@dataclass
class Batch:
    """One launch: kernel arguments by name (arrays and scalars), the tile list, and the expected output rows."""

    arguments: dict
    num_tiles: int
    num_kv_heads: int
    num_tokens: int
    expected_out: np.ndarray
    expected_lse: np.ndarray
    written: np.ndarray
    cache_views: tuple = ()


PADDING = (0, 0, 0, 0, -1, 0, 0, 0)


def tile_list(runs, tokens_per_tile, *, pairs=False, padding=0):
    """Every tile of every run. Plain lists come in order of falling cost over the whole batch. With `pairs` the
    sequences follow each other, the costliest first; in each, a tile that sees many keys is followed by one that sees
    few, an odd one out by padding."""
    by_row = {}
    for start, q_len, position, key_len, left, right, row in np.asarray(runs)[:, :7].tolist():
        for first in range(0, q_len, tokens_per_tile):
            tokens = min(tokens_per_tile, q_len - first)
            end = key_len if right < 0 else min(key_len, position + first + tokens + right)
            begin = 0 if left < 0 else max(0, position + first - left)
            by_row.setdefault(row, []).append(
                (begin - end, start + first, tokens, position + first, key_len, left, right, row, 0))
    if pairs:
        listed = []
        for tiles in sorted(by_row.values(), key=lambda tiles: sum(tile[0] for tile in tiles)):
            tiles.sort()
            half = (len(tiles) + 1) // 2
            for heavy, light in zip(tiles[:half], [*reversed(tiles[half:])] + [None] * (2 * half - len(tiles))):
                listed += [heavy[1:], light[1:] if light else PADDING]
        listed += [PADDING] * (2 * padding)
    else:
        listed = [tile[1:] for tile in sorted(tile for tiles in by_row.values() for tile in tiles)]
        listed += [PADDING] * padding
    return np.array(listed or [PADDING] * 2, np.int32)


def cache_storage(rng, num_blocks, block_size, heads, head_size, layout, dtype):
    """Logical [block, slot, head, head_size] views of K and V over storage of the given layout."""
    raw = formats.RAW[dtype]
    if layout == "NHD":
        k, v = (np.zeros((num_blocks, block_size, heads, head_size), raw) for _ in range(2))
        return (k, v), (k, v)
    if layout == "HND":
        k, v = (np.zeros((num_blocks, heads, block_size, head_size), raw) for _ in range(2))
        return (k, v), (k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3))
    both = np.zeros((num_blocks, 2, block_size, heads, head_size), raw)
    return (both[:, 0], both[:, 1]), (both[:, 0], both[:, 1])


def strides(view):
    return [step // view.itemsize for step in view.strides]


def attend(q, k, v, low, high, positions, scale, softcap, slopes, sinks):
    """Dense float64 attention of [tokens, heads, size] over [keys, kv heads, size]: (out, lse)."""
    tokens, heads, size = q.shape
    group = heads // k.shape[1]
    k, v = (np.repeat(x, group, axis=1) for x in (k, v))
    x = scale * (q.transpose(1, 0, 2) @ k.transpose(1, 2, 0))
    if softcap:
        x = softcap * np.tanh(x / softcap)
    keys = np.arange(k.shape[0])
    if slopes is not None:
        x = x + slopes[:, None, None] * (keys[None, None, :] - positions[None, :, None])
    visible = (keys[None, :] >= low[:, None]) & (keys[None, :] <= high[:, None])
    x = np.where(visible[None], x, -np.inf)
    largest = x.max(axis=2, initial=-np.inf)
    if sinks is not None:
        largest = np.maximum(largest, sinks[:, None])
    largest = np.where(np.isfinite(largest), largest, 0.0)
    p = np.exp(x - largest[:, :, None])
    total = p.sum(axis=2)
    if sinks is not None:
        total = total + np.exp(sinks[:, None] - largest)
    with np.errstate(divide="ignore"):
        lse = largest + np.log(total)
    out = p @ v.transpose(1, 0, 2) / np.where(total == 0, 1.0, total)[:, :, None]
    return out.transpose(1, 0, 2), lse.T


def make(rng, spec, tile, *, num_sequences=3, max_keys=200, max_queries=40, num_kv_heads=2, layout="NHD",
         sinks=False, splits=1, windows=True, empty=True, per_tensor_scale=False, gap_tokens=2, padding_tiles=1,
         pairs=False):
    """A random batch for one specialisation; `tile` gives the rows of a program."""
    block_size, group, head_size = spec.block_size, spec.group, spec.head_size
    heads = num_kv_heads * group
    tokens_per_tile = tile.block_m // group
    runs, lows, highs, key_lens = [], [], [], []
    q_start = 0
    for sequence in range(num_sequences):
        key_len = int(rng.integers(1, max_keys + 1))
        if empty and rng.random() < 0.1:
            key_len = 0
        key_lens.append(key_len)
        for _ in range(int(rng.integers(1, 3))):
            q_len = int(rng.integers(1, max_queries + 1))
            if spec.use == "decode":
                q_len = int(rng.integers(1, max(2, min(max_queries, tokens_per_tile) + 1)))
            q_len = min(q_len, max(key_len, 1))
            position = int(rng.integers(0, max(1, key_len - q_len + 1)))
            if rng.random() < 0.4:
                position = max(0, key_len - q_len)
            left = int(rng.integers(0, 64)) if windows and rng.random() < 0.5 else -1
            right = int(rng.choice([0, 0, -1, int(rng.integers(0, 20))]))
            if empty and rng.random() < 0.05:
                q_len = 0
            runs.append([q_start, q_len, position, key_len, left, right, sequence, 0])
            q_start += q_len + int(rng.integers(0, gap_tokens + 1))
    num_tokens = max(1, q_start)
    runs = np.array(runs, np.int32)
    low = rng.integers(-3, max_keys, num_tokens).astype(np.int32)
    high = (low + rng.integers(-4, max_keys // 2, num_tokens)).astype(np.int32)

    blocks_each = max(1, -(-max_keys // block_size))
    num_blocks = num_sequences * blocks_each + 3
    table = rng.permutation(np.arange(1, num_blocks))[: num_sequences * blocks_each]
    table = table.reshape(num_sequences, blocks_each).astype(np.int32)
    dtype = spec.dtype
    cache_format = dtype if spec.kv == "same" else spec.kv
    stored, (k_view, v_view) = cache_storage(rng, num_blocks, block_size, num_kv_heads, head_size, layout,
                                             cache_format)
    if spec.token_scales:
        ks, vs = (rng.uniform(0.005, 0.02, (num_blocks, block_size, num_kv_heads)).astype(np.float32)
                  for _ in range(2))
        scale_strides = strides(ks)
        k_by_row, v_by_row = ks[..., None], vs[..., None]
    elif spec.kv != "same":
        ks, vs = (rng.uniform(0.3, 2.0, num_kv_heads).astype(np.float32) for _ in range(2))
        if per_tensor_scale:
            ks, vs = ks[:1].copy(), vs[:1].copy()
        scale_strides = [0, 0, 0 if per_tensor_scale else 1]
        k_by_row = np.broadcast_to(ks, num_kv_heads)[None, None, :, None]
        v_by_row = np.broadcast_to(vs, num_kv_heads)[None, None, :, None]
    else:
        ks = vs = np.ones(1, np.float32)
        scale_strides = [0, 0, 0]
        k_by_row = v_by_row = np.ones((1, 1, 1, 1), np.float32)
    wide = k_view.shape
    if spec.token_scales:
        limit = formats.LIMIT[spec.kv]
        k_raw, v_raw = (formats.encode(rng.uniform(-limit, limit, wide), spec.kv) for _ in range(2))
        if spec.kv != "int8":
            ks *= 127.0 / limit
            vs *= 127.0 / limit
    else:
        k_raw, v_raw = (formats.encode(rng.standard_normal(wide), cache_format) for _ in range(2))
    k_view[...] = k_raw
    v_view[...] = v_raw
    k_view[0] = 0
    v_view[0] = 0
    used = np.zeros(num_blocks, bool)
    used[0] = True
    for sequence, key_len in enumerate(key_lens):
        used[table[sequence, : -(-key_len // block_size)]] = True
    if spec.kv != "int8":
        k_view[~used] = formats.poison((), cache_format)
        v_view[~used] = formats.poison((), cache_format)
    k_all = formats.decode(k_view, cache_format) * k_by_row
    v_all = formats.decode(v_view, cache_format) * v_by_row

    q_raw = formats.encode(rng.standard_normal((num_tokens, heads, head_size)), dtype)
    q_all = formats.decode(q_raw, dtype)
    scale = float(rng.uniform(0.7, 1.6) / np.sqrt(head_size))
    softcap = float(rng.uniform(2.0, 30.0)) if spec.softcap else 0.0
    slopes = (2.0 ** -rng.uniform(1, 8, heads)).astype(np.float32)
    sink_values = rng.standard_normal(heads).astype(np.float32)

    expected_out = np.zeros((num_tokens, heads, head_size))
    expected_lse = np.full((num_tokens, heads), -np.inf)
    written = np.zeros(num_tokens, bool)
    for start, q_len, position, key_len, left, right, row, _ in runs:
        if not q_len:
            continue
        rows = slice(start, start + q_len)
        positions = position + np.arange(q_len)
        if spec.variant == "general":
            first, last = np.maximum(low[rows], 0), np.minimum(high[rows], key_len - 1)
        else:
            first = np.maximum(positions - left, 0) if left >= 0 else np.zeros(q_len, int)
            last = np.minimum(positions + right, key_len - 1) if right >= 0 else np.full(q_len, key_len - 1)
        keys = np.arange(key_len)
        gathered = table[row, keys // block_size], keys % block_size
        expected_out[rows], expected_lse[rows] = attend(
            q_all[rows], k_all[gathered], v_all[gathered], first, last, positions, scale, softcap,
            slopes.astype(float) if spec.alibi else None, sink_values.astype(float) if sinks else None)
        written[rows] = True

    tiles = tile_list(runs, tokens_per_tile, pairs=pairs, padding=padding_tiles)
    out = formats.poison((num_tokens, heads, head_size), specialise.out_element(spec))
    arguments = {
        "q": q_raw, "k_cache": k_view, "v_cache": v_view, "out": out,
        "lse": np.full((num_tokens, heads), 1e30, np.float32),
        "partial_out": np.full((num_tokens, heads, splits, head_size), np.nan, np.float32),
        "partial_lse": np.full((num_tokens, heads, splits), np.nan, np.float32),
        "tiles": tiles, "key_low": low, "key_high": high, "block_table": table, "sinks": sink_values,
        "alibi_slopes": slopes, "k_scales": ks, "v_scales": vs, "softmax_scale": scale, "softcap": softcap,
        "q_stride_token": heads * head_size, "q_stride_head": head_size,
        "out_stride_token": heads * head_size, "out_stride_head": head_size,
        "lse_stride_token": heads, "lse_stride_head": 1, "block_table_stride": blocks_each,
        "num_splits": splits, "write_lse": 1, "has_sinks": int(sinks), "num_tiles": len(tiles),
        "num_kv_heads": num_kv_heads, "tiles_per_unit": 2 if pairs else 1,
    }
    for side, view in (("k", k_view), ("v", v_view)):
        arguments |= {f"{side}_stride_{axis}": step for axis, step in zip(("block", "slot", "head"), strides(view))}
        arguments |= {f"{side}s_stride_{axis}": step
                      for axis, step in zip(("block", "slot", "head"), scale_strides)}
    return Batch(arguments, len(tiles), num_kv_heads, num_tokens, expected_out, expected_lse, written, stored)


TOLERANCE = {"fp32": 2e-5, "fp16": 1.5e-3, "bf16": 1e-2}


def check(batch, spec, out_raw, lse):
    """Problems found in what a kernel left, as text; an empty list is a pass. Returns (problems, error, lse error)."""
    problems = []
    out = formats.decode(out_raw, specialise.out_element(spec))
    rows = batch.written
    if np.isnan(out[rows]).any():
        problems.append("NaN or unwritten output")
    touched = ~np.isnan(out[~rows]) if spec.dtype != "int8" else np.zeros(1, bool)
    if touched.any():
        problems.append("wrote rows of no run")
    if (lse[~rows] != np.float32(1e30)).any():
        problems.append("wrote LSE of no run")
    difference = out[rows] - batch.expected_out[rows]
    # Per (query token, head): the largest deviation against the size of the row; rows that saw nothing must be 0.
    size = np.maximum(np.abs(batch.expected_out[rows]).max(axis=2, initial=0.0), 0.05)
    error = float((np.abs(difference).max(axis=2, initial=0.0) / size).max(initial=0.0))
    dark = np.abs(batch.expected_out[rows]).max(axis=2, initial=0.0) == 0
    if (out[rows][dark] != 0).any():
        problems.append("a row without visible keys is not 0")
    if not error <= TOLERANCE[spec.dtype]:
        problems.append(f"output off by {error:.2e} of the row's largest value")
    expected_lse = batch.expected_lse[rows]
    if (np.isneginf(expected_lse) != np.isneginf(lse[rows])).any():
        problems.append("LSE -inf in the wrong place")
    finite = np.isfinite(expected_lse)
    lse_error = float(np.abs(lse[rows][finite] - expected_lse[finite]).max(initial=0.0))
    if not lse_error <= 1e-4:
        problems.append(f"LSE off by {lse_error:.2e}")
    return problems, error, lse_error


def make_write(rng, spec, *, num_tokens=9, num_kv_heads=3, block_size=16, layout="NHD"):
    """A random KV write with the cache it must leave behind."""
    dtype, head_size = spec.dtype, spec.head_size
    cache_format = dtype if spec.kv == "same" else spec.kv
    num_blocks = 4
    stored, (k_view, v_view) = cache_storage(rng, num_blocks, block_size, num_kv_heads, head_size, layout,
                                             cache_format)
    for view in (k_view, v_view):
        view[...] = formats.poison((), cache_format)
    key, value = (formats.encode(rng.standard_normal((num_tokens, num_kv_heads, head_size)) * 3, dtype)
                  for _ in range(2))
    key[0, 0] = 0
    slots = rng.permutation(num_blocks * block_size)[:num_tokens].astype(np.int64)
    slots[rng.random(num_tokens) < 0.2] = -1
    if spec.token_scales:
        ks, vs = (np.full((num_blocks, block_size, num_kv_heads), np.nan, np.float32) for _ in range(2))
        scale_strides = strides(ks)
    else:
        ks, vs = (rng.uniform(0.01, 0.05, num_kv_heads).astype(np.float32) for _ in range(2))
        scale_strides = [0, 0, 1]
    expected = [view.copy() for view in (k_view, v_view)]
    expected_scales = [scales.copy() for scales in (ks, vs)]
    for cache, scales, source in zip(expected, expected_scales, (key, value)):
        for token, slot in enumerate(slots):
            if slot < 0:
                continue
            x = formats.decode(source[token], dtype).astype(np.float32)
            block, inside = divmod(int(slot), block_size)
            if spec.kv == "same":
                cache[block, inside] = source[token]
                continue
            if spec.token_scales:
                largest = np.abs(x).max(axis=1)
                scale = np.where(largest == 0, np.float32(1), largest / np.float32(formats.LIMIT[spec.kv]))
                scales[block, inside] = scale
            else:
                scale = scales
            cache[block, inside] = formats.encode(x / scale[:, None], spec.kv)
    arguments = {
        "key": key, "value": value, "k_cache": k_view, "v_cache": v_view, "slot_mapping": slots, "k_scales": ks,
        "v_scales": vs, "key_stride_token": num_kv_heads * head_size, "key_stride_head": head_size,
        "value_stride_token": num_kv_heads * head_size, "value_stride_head": head_size,
        "num_kv_heads": num_kv_heads, "block_size": block_size,
    }
    for side, view in (("k", k_view), ("v", v_view)):
        arguments |= {f"{side}_stride_{axis}": step for axis, step in zip(("block", "slot", "head"), strides(view))}
        arguments |= {f"{side}s_stride_{axis}": step
                      for axis, step in zip(("block", "slot", "head"), scale_strides)}
    return arguments, expected, expected_scales
