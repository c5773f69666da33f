"""Writes new keys and values into the paged cache, quantising on the way where the cache is narrower than the model.

Grid (tokens, groups of key/value heads). `slot_mapping` is int64, one entry a token: block * block_size + slot; -1
skips the token. The layout (NHD, HND or anything else with unit stride in the head) is in the strides.
"""

import triton
import triton.language as tl


@triton.jit
def _fp8_bits(x, KV: tl.constexpr):
    """The nearest e4m3 (no infinities) or e5m2 number as a byte: ties to even, saturating, subnormals kept.
    Written in integers so that every target and the reference round alike."""
    if KV == "e4m3":
        LARGEST: tl.constexpr = 448.0
        DROPPED: tl.constexpr = 20
        REBIAS: tl.constexpr = (127 - 7) << 3
        SMALLEST_NORMAL: tl.constexpr = 0.015625
        ALIGN: tl.constexpr = 16384.0
        ALIGN_BITS: tl.constexpr = 0x46800000
    else:
        LARGEST: tl.constexpr = 57344.0
        DROPPED: tl.constexpr = 21
        REBIAS: tl.constexpr = (127 - 15) << 2
        SMALLEST_NORMAL: tl.constexpr = 0.00006103515625
        ALIGN: tl.constexpr = 128.0
        ALIGN_BITS: tl.constexpr = 0x43000000
    sign = (x.to(tl.int32, bitcast=True) >> 24) & 0x80
    magnitude = tl.minimum(tl.abs(x), LARGEST)
    bits = magnitude.to(tl.int32, bitcast=True)
    half = (1 << (DROPPED - 1)) - 1
    normal = ((bits + half + ((bits >> DROPPED) & 1)) >> DROPPED) - REBIAS
    subnormal = (magnitude + ALIGN).to(tl.int32, bitcast=True) - ALIGN_BITS
    return (sign | tl.where(magnitude < SMALLEST_NORMAL, subnormal, normal)).to(tl.uint8)


@triton.jit
def _int8_round(x):
    # Adding 1.5 * 2^23 leaves no bits for a fraction: the float unit rounds to the nearest even integer.
    rounded = (x + 12582912.0) - 12582912.0
    return tl.minimum(tl.maximum(rounded, -127.0), 127.0).to(tl.int32).to(tl.int8)


@triton.jit
def _store(source, cache, scales, token, block, slot, head, dims, inside,
           stride_token, stride_head, cache_stride_block, cache_stride_slot, cache_stride_head,
           scale_stride_block, scale_stride_slot, scale_stride_head,
           num_kv_heads, KV: tl.constexpr, TOKEN_SCALES: tl.constexpr):
    x = tl.load(source + token * stride_token + head[:, None] * stride_head + dims[None, :], mask=inside, other=0.0)
    target = cache + block * cache_stride_block + slot * cache_stride_slot + head[:, None] * cache_stride_head \
        + dims[None, :]
    if KV == "same":
        tl.store(target, x.to(cache.dtype.element_ty), mask=inside)
    else:
        x = x.to(tl.float32)
        at = scales + head * scale_stride_head
        if TOKEN_SCALES:
            if KV == "e4m3":
                LIMIT: tl.constexpr = 448.0
            elif KV == "e5m2":
                LIMIT: tl.constexpr = 57344.0
            else:
                LIMIT: tl.constexpr = 127.0
            largest = tl.max(tl.abs(x), 1)
            scale = tl.where(largest == 0.0, 1.0, tl.div_rn(largest, tl.full(largest.shape, LIMIT, tl.float32)))
            tl.store(at + block * scale_stride_block + slot * scale_stride_slot, scale, mask=head < num_kv_heads)
        else:
            scale = tl.load(at, mask=head < num_kv_heads, other=1.0)
        x = tl.div_rn(x, tl.broadcast_to(scale[:, None], x.shape))
        if KV == "int8":
            tl.store(target, _int8_round(x), mask=inside)
        else:
            tl.store(target, _fp8_bits(x, KV), mask=inside)


@triton.jit
def write_kv(key, value, k_cache, v_cache, slot_mapping, k_scales, v_scales,
             key_stride_token, key_stride_head, value_stride_token, value_stride_head,
             k_stride_block, k_stride_slot, k_stride_head, v_stride_block, v_stride_slot, v_stride_head,
             ks_stride_block, ks_stride_slot, ks_stride_head, vs_stride_block, vs_stride_slot, vs_stride_head,
             num_kv_heads, block_size, KV: tl.constexpr, TOKEN_SCALES: tl.constexpr, HEAD_SIZE: tl.constexpr,
             HEAD_PADDED: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    mapped = tl.load(slot_mapping + token)
    if mapped < 0:
        return
    block = mapped // block_size
    slot = mapped % block_size
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    dims = tl.arange(0, HEAD_PADDED)
    inside = (head[:, None] < num_kv_heads) & (dims[None, :] < HEAD_SIZE)
    _store(key, k_cache, k_scales, token, block, slot, head, dims, inside, key_stride_token, key_stride_head,
           k_stride_block, k_stride_slot, k_stride_head, ks_stride_block, ks_stride_slot, ks_stride_head,
           num_kv_heads, KV, TOKEN_SCALES)
    _store(value, v_cache, v_scales, token, block, slot, head, dims, inside, value_stride_token, value_stride_head,
           v_stride_block, v_stride_slot, v_stride_head, vs_stride_block, vs_stride_slot, vs_stride_head,
           num_kv_heads, KV, TOKEN_SCALES)
