"""Paged attention over a block table, for every target Triton compiles for.

Vocabulary
    run      a stretch of consecutive query tokens of one sequence that share one mask rule: first query token, count,
             absolute position of the first one, keys in the sequence, left and right window. A window counts the keys
             visible before (left) or after (right) the query besides itself, -1 means no limit.
    tile     the query tokens of one program, cut from a run. Eight int32: {first query token, query tokens, position
             of the first, key_len, left_window, right_window, block table row, 0}. No query tokens: padding.
    row      one (query token, query head) pair. The `GROUP` query heads of one key/value head are packed next to
             each other, so a tile holds up to `BLOCK_M // GROUP` query tokens.

Every mask is one inclusive key interval per query token. The CAUSAL variant computes it from the run's windows; the
GENERAL variant loads it (`key_low`, `key_high`, indexed by query token). Key tiles outside the union of a tile's
intervals are never read, key tiles inside their intersection are not masked.

Numbers: x = scale * q.k; softcap; ALiBi slope * (key - query); then the sink joins the softmax. Sums and the online
softmax are float32, in base 2; the log-sum-exp that leaves the kernel is the natural logarithm and includes the sink.
A query token without a visible key gets 0 and -inf (or the sink).
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)

TILE_FIELDS = 8


@triton.jit
def _decode(raw, dtype: tl.constexpr, KV: tl.constexpr, NATIVE_FP8: tl.constexpr):
    """Cache elements as numbers of `dtype`; fp8 formats arrive as bytes."""
    if KV == "e4m3":
        if NATIVE_FP8:
            return raw.to(tl.float8e4nv, bitcast=True).to(dtype)
        else:
            wide = raw.to(tl.uint16)
            bits = ((wide & 0x80) << 8) | ((wide & 0x7F) << 7)
            return (bits.to(tl.float16, bitcast=True).to(tl.float32) * 256.0).to(dtype)
    elif KV == "e5m2":
        if NATIVE_FP8:
            return raw.to(tl.float8e5, bitcast=True).to(dtype)
        else:
            return (raw.to(tl.uint16) << 8).to(tl.float16, bitcast=True).to(dtype)
    elif KV == "int8":
        return raw.to(tl.float32).to(dtype)
    else:
        return raw


@triton.jit
def _tanh(x):
    # Absolute error about 1e-7, which is what a softcapped score needs; saturates cleanly for large |x|.
    return 1.0 - 2.0 / (tl.exp2(x * (2.0 * LOG2_E)) + 1.0)


# Two quantised numbers in a 16-bit word become two 16-bit floats in two words, a pair of words at a time: the bits go
# where the wider format keeps them and one exact multiplication by a power of two moves the exponent.
_UNPACK_BF16_E4M3 = tl.constexpr("""{
    .reg .b32 t, u, k, z;
    mov.b32 k, 0x7B807B80;
    mov.b32 z, 0x80008000;
    shl.b32 t, $2, 8;
    shr.b32 u, t, 4;
    and.b32 u, u, 0x07F007F0;
    lop3.b32 t, t, 0x80008000, u, 0xEA;
    fma.rn.bf16x2 $0, t, k, z;
    shr.b32 u, $2, 4;
    and.b32 u, u, 0x07F007F0;
    lop3.b32 t, $2, 0x80008000, u, 0xEA;
    fma.rn.bf16x2 $1, t, k, z;
}""")
_UNPACK_BF16_E5M2 = tl.constexpr("""{
    .reg .b32 t, u, k, z;
    mov.b32 k, 0x77807780;
    mov.b32 z, 0x80008000;
    shl.b32 t, $2, 8;
    shr.b32 u, t, 3;
    and.b32 u, u, 0x0FE00FE0;
    lop3.b32 t, t, 0x80008000, u, 0xEA;
    fma.rn.bf16x2 $0, t, k, z;
    shr.b32 u, $2, 3;
    and.b32 u, u, 0x0FE00FE0;
    lop3.b32 t, $2, 0x80008000, u, 0xEA;
    fma.rn.bf16x2 $1, t, k, z;
}""")
_UNPACK_BF16_INT8 = tl.constexpr("""{
    .reg .b32 t, u, v, k;
    mov.b32 k, 0xBF80BF80;
    lop3.b32 t, $2, 0x007F007F, 0x43004300, 0xEA;
    lop3.b32 u, $2, 0x00800080, 0x43004300, 0xEA;
    fma.rn.bf16x2 $0, u, k, t;
    shr.b32 v, $2, 8;
    lop3.b32 t, v, 0x007F007F, 0x43004300, 0xEA;
    lop3.b32 u, v, 0x00800080, 0x43004300, 0xEA;
    fma.rn.bf16x2 $1, u, k, t;
}""")
_UNPACK_FP16_E4M3 = tl.constexpr("""{
    .reg .b32 t, u, k, z;
    mov.b32 k, 0x5C005C00;
    mov.b32 z, 0x80008000;
    shl.b32 t, $2, 8;
    shr.b32 u, t, 1;
    and.b32 u, u, 0x3F803F80;
    lop3.b32 t, t, 0x80008000, u, 0xEA;
    fma.rn.f16x2 $0, t, k, z;
    shr.b32 u, $2, 1;
    and.b32 u, u, 0x3F803F80;
    lop3.b32 t, $2, 0x80008000, u, 0xEA;
    fma.rn.f16x2 $1, t, k, z;
}""")
# The same with the conversion that GPUs from sm_89 on have.
_UNPACK_FP16_E4M3_NATIVE = tl.constexpr("""{
    .reg .b32 t;
    .reg .b16 u, v;
    prmt.b32 t, $2, 0, 0x3120;
    mov.b32 {u, v}, t;
    cvt.rn.f16x2.e4m3x2 $0, u;
    cvt.rn.f16x2.e4m3x2 $1, v;
}""")
_UNPACK_FP16_E5M2 = tl.constexpr("""{
    shl.b32 $0, $2, 8;
    and.b32 $0, $0, 0xFF00FF00;
    and.b32 $1, $2, 0xFF00FF00;
}""")
_UNPACK_FP16_INT8 = tl.constexpr("""{
    .reg .b32 t, k, m;
    mov.b32 k, 0x3C003C00;
    mov.b32 m, 0xE480E480;
    lop3.b32 t, $2, 0x00FF00FF, 0x64806480, 0x6A;
    fma.rn.f16x2 $0, t, k, m;
    shr.b32 t, $2, 8;
    lop3.b32 t, t, 0x00FF00FF, 0x64806480, 0x6A;
    fma.rn.f16x2 $1, t, k, m;
}""")


@triton.jit
def _unpack(words, dtype: tl.constexpr, KV: tl.constexpr, NATIVE_FP8: tl.constexpr):
    """The low and the high number of each word."""
    if dtype == tl.bfloat16:
        if KV == "e4m3":
            CODE: tl.constexpr = _UNPACK_BF16_E4M3
        elif KV == "e5m2":
            CODE: tl.constexpr = _UNPACK_BF16_E5M2
        else:
            CODE: tl.constexpr = _UNPACK_BF16_INT8
        return tl.inline_asm_elementwise(CODE, "=&r,=&r,r", [words], dtype=(tl.bfloat16, tl.bfloat16),
                                         is_pure=True, pack=2)
    else:
        if KV == "e4m3" and NATIVE_FP8:
            CODE: tl.constexpr = _UNPACK_FP16_E4M3_NATIVE
        elif KV == "e4m3":
            CODE: tl.constexpr = _UNPACK_FP16_E4M3
        elif KV == "e5m2":
            CODE: tl.constexpr = _UNPACK_FP16_E5M2
        else:
            CODE: tl.constexpr = _UNPACK_FP16_INT8
        return tl.inline_asm_elementwise(CODE, "=&r,=&r,r", [words], dtype=(tl.float16, tl.float16),
                                         is_pure=True, pack=2)


@triton.jit
def _half_query(even, odd):
    """Query rows as fp16, each multiplied by a power of two that brings its largest number to at least 2^14, and the
    powers that undo it in the scores. Numbers down to 2^-28 of the largest keep all their bits."""
    even = even.to(tl.float32)
    odd = odd.to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(even), 1), tl.max(tl.abs(odd), 1))
    up = tl.minimum(268 - (largest.to(tl.int32, bitcast=True) >> 23), 254)
    factor = (up << 23).to(tl.float32, bitcast=True)[:, None]
    back = ((254 - up) << 23).to(tl.float32, bitcast=True)
    return (even * factor).to(tl.float16), (odd * factor).to(tl.float16), back


@triton.jit
def _first_block(table, begin, end, last_key, columns, BLOCK_SIZE: tl.constexpr, BLOCK_N: tl.constexpr):
    """The block number of a key tile, or those of its keys where a tile can span blocks."""
    if BLOCK_SIZE % BLOCK_N == 0:
        return tl.load(table + begin // BLOCK_SIZE, mask=begin < end, other=0)
    else:
        return tl.load(table + (begin + columns) // BLOCK_SIZE, mask=begin + columns <= last_key, other=0)


@triton.jit
def _slots(start, columns, BLOCK_SIZE: tl.constexpr, BLOCK_N: tl.constexpr):
    if BLOCK_SIZE % BLOCK_N == 0:
        return start % BLOCK_SIZE + columns
    else:
        return (start + columns) % BLOCK_SIZE


@triton.jit
def _shrink(m):
    """The power of two that brings a row's maximum below 2^28, 1 for what is there already. The weights come from one
    fused s * to_log2 - m, in which only m was rounded: below 2^28 that makes all of a row at most 2^8 times too large
    or too small, far above it they would leave the exponents of float32. Scores of that size that differ at all still
    differ by 2^3 or more afterwards."""
    exponent = (m.to(tl.int32, bitcast=True) >> 23) & 0xFF
    return ((281 - tl.maximum(exponent, 154)) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _weigh(s, m, l, keys, low, high, position, slope, scale, softcap,
           MASKED: tl.constexpr, SOFTCAP: tl.constexpr, ALIBI: tl.constexpr):
    """Scores to softmax weights; new maximum and sum, and the factor for everything before."""
    if SOFTCAP:
        s = softcap * _tanh(s * (scale / softcap)) * LOG2_E
    if ALIBI:
        if not SOFTCAP:
            s = s * (scale * LOG2_E)
        s += slope[:, None] * (keys[None, :] - position[:, None]).to(tl.float32) * LOG2_E
    if SOFTCAP or ALIBI:
        to_log2 = 1.0
    else:
        to_log2 = scale * LOG2_E
    if MASKED:
        visible = (keys[None, :] >= low[:, None]) & (keys[None, :] <= high[:, None])
        s = tl.where(visible, s, float("-inf"))
    m_new = tl.maximum(m, tl.max(s, 1) * to_log2)
    if MASKED:
        m_finite = tl.where(m_new == float("-inf"), 0.0, m_new)
    else:
        m_finite = m_new
    if SOFTCAP or ALIBI:
        p = tl.exp2(s - m_finite[:, None])
    else:
        shrink = _shrink(m_finite)
        p = tl.exp2(s * (to_log2 * shrink)[:, None] - (m_finite * shrink)[:, None])
    alpha = tl.exp2(m - m_finite)
    return p, m_new, l * alpha + tl.sum(p, 1), alpha


@triton.jit
def _attend(acc, m, l, q, begin, end, low, high, position, slope, last_key,
            k_base, v_base, k_scale_base, v_scale_base, table, scale, softcap,
            k_stride_block, k_stride_slot, v_stride_block, v_stride_slot,
            ks_stride_block, ks_stride_slot, vs_stride_block, vs_stride_slot,
            MASKED: tl.constexpr, KV: tl.constexpr, TOKEN_SCALES: tl.constexpr, SOFTCAP: tl.constexpr,
            ALIBI: tl.constexpr, HEAD_SIZE: tl.constexpr, HEAD_PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr,
            BLOCK_N: tl.constexpr, NATIVE_FP8: tl.constexpr, PRECISION: tl.constexpr):
    """Fold the key tiles of [begin, end) into the running softmax (acc, m, l). `begin` is a multiple of BLOCK_N."""
    dims = tl.arange(0, HEAD_PADDED)
    columns = tl.arange(0, BLOCK_N)
    # e5m2 values reach 57344, so their scales are tiny and would push fp16 weights under its normal range. An exact
    # power of two moved from the values to the weights keeps both inside.
    SHIFTED: tl.constexpr = TOKEN_SCALES and KV == "e5m2" and q.dtype == tl.float16
    # The block numbers of the next key tile are fetched one iteration ahead, so that the loads of keys and values
    # never wait for the table and the pipeline can run as deep as its stages say.
    block = _first_block(table, begin, end, last_key, columns, BLOCK_SIZE, BLOCK_N)
    for start in tl.range(begin, end, BLOCK_N):
        keys = start + columns
        slot = _slots(start, columns, BLOCK_SIZE, BLOCK_N)
        next_block = _first_block(table, start + BLOCK_N, end, last_key, columns, BLOCK_SIZE, BLOCK_N)
        block = block.to(tl.int64)
        k_offsets = (block * k_stride_block + slot * k_stride_slot)[:, None] + dims[None, :]
        v_offsets = (block * v_stride_block + slot * v_stride_slot)[:, None] + dims[None, :]
        if HEAD_SIZE == HEAD_PADDED:
            k_raw = tl.load(k_base + k_offsets)
        else:
            k_raw = tl.load(k_base + k_offsets, mask=dims[None, :] < HEAD_SIZE, other=0)
        k = _decode(k_raw, q.dtype, KV, NATIVE_FP8)
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        if TOKEN_SCALES:
            ks_offsets = block * ks_stride_block + slot * ks_stride_slot
            vs_offsets = block * vs_stride_block + slot * vs_stride_slot
            s *= tl.load(k_scale_base + ks_offsets, mask=keys <= last_key, other=0.0)[None, :]
            v_scales = tl.load(v_scale_base + vs_offsets, mask=keys <= last_key, other=0.0)
        p, m, l, alpha = _weigh(s, m, l, keys, low, high, position, slope, scale, softcap, MASKED, SOFTCAP, ALIBI)
        acc = acc * alpha[:, None]
        if TOKEN_SCALES:
            if SHIFTED:
                v_scales *= 256.0
            p *= v_scales[None, :]
        if MASKED:
            if HEAD_SIZE == HEAD_PADDED:
                v_raw = tl.load(v_base + v_offsets, mask=keys[:, None] <= last_key, other=0)
            else:
                v_raw = tl.load(v_base + v_offsets, mask=(keys[:, None] <= last_key) & (dims[None, :] < HEAD_SIZE),
                                other=0)
        else:
            if HEAD_SIZE == HEAD_PADDED:
                v_raw = tl.load(v_base + v_offsets)
            else:
                v_raw = tl.load(v_base + v_offsets, mask=dims[None, :] < HEAD_SIZE, other=0)
        v = _decode(v_raw, q.dtype, KV, NATIVE_FP8)
        if SHIFTED:
            v *= 0.00390625
        acc = tl.dot(p.to(q.dtype), v, acc, input_precision=PRECISION)
        block = next_block
    return acc, m, l


@triton.jit
def _attend_words(even, odd, m, l, q_even, q_odd, back, begin, end, low, high, position, slope, last_key,
                  k_base, v_base, k_scale_base, v_scale_base, table, scale, softcap,
                  k_stride_block, k_stride_slot, v_stride_block, v_stride_slot,
                  ks_stride_block, ks_stride_slot, vs_stride_block, vs_stride_slot,
                  KV: tl.constexpr, TOKEN_SCALES: tl.constexpr, SOFTCAP: tl.constexpr, ALIBI: tl.constexpr,
                  HEAD_SIZE: tl.constexpr, HEAD_PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr,
                  BLOCK_N: tl.constexpr, NATIVE_FP8: tl.constexpr, HALF: tl.constexpr):
    """As _attend, for 8-bit caches read as 16-bit words, always masked. Even and odd dimensions are two products each
    way: 16-bit words can be transposed on their way to the tensor cores, bytes cannot. Pointers and strides are in
    words. HALF: the products are of fp16 whatever the model's type, since fp8 becomes fp16 in a third of the
    instructions; queries came from _half_query, and the weights and so the results are 2^7 times too large, which
    keeps small weights from vanishing and leaves room for _shrink."""
    dims = tl.arange(0, HEAD_PADDED // 2)
    columns = tl.arange(0, BLOCK_N)
    dtype: tl.constexpr = q_even.dtype
    SHIFTED: tl.constexpr = TOKEN_SCALES and KV == "e5m2" and dtype == tl.float16
    block = _first_block(table, begin, end, last_key, columns, BLOCK_SIZE, BLOCK_N)
    for start in tl.range(begin, end, BLOCK_N):
        keys = start + columns
        slot = _slots(start, columns, BLOCK_SIZE, BLOCK_N)
        next_block = _first_block(table, start + BLOCK_N, end, last_key, columns, BLOCK_SIZE, BLOCK_N)
        block = block.to(tl.int64)
        k_offsets = (block * k_stride_block + slot * k_stride_slot)[:, None] + dims[None, :]
        v_offsets = (block * v_stride_block + slot * v_stride_slot)[:, None] + dims[None, :]
        if HEAD_SIZE == HEAD_PADDED:
            k_words = tl.load(k_base + k_offsets)
            v_words = tl.load(v_base + v_offsets, mask=keys[:, None] <= last_key, other=0)
        else:
            k_words = tl.load(k_base + k_offsets, mask=dims[None, :] < HEAD_SIZE // 2, other=0)
            v_words = tl.load(v_base + v_offsets, mask=(keys[:, None] <= last_key) & (dims[None, :] < HEAD_SIZE // 2),
                              other=0)
        k_even, k_odd = _unpack(k_words, dtype, KV, NATIVE_FP8)
        s = tl.dot(q_even, tl.trans(k_even))
        s = tl.dot(q_odd, tl.trans(k_odd), s)
        if HALF:
            s *= back[:, None]
        if TOKEN_SCALES:
            ks_offsets = block * ks_stride_block + slot * ks_stride_slot
            vs_offsets = block * vs_stride_block + slot * vs_stride_slot
            s *= tl.load(k_scale_base + ks_offsets, mask=keys <= last_key, other=0.0)[None, :]
            v_scales = tl.load(v_scale_base + vs_offsets, mask=keys <= last_key, other=0.0)
        p, m, l, alpha = _weigh(s, m, l, keys, low, high, position, slope, scale, softcap, True, SOFTCAP, ALIBI)
        if TOKEN_SCALES:
            if SHIFTED:
                v_scales *= 256.0
            p *= v_scales[None, :]
        v_even, v_odd = _unpack(v_words, dtype, KV, NATIVE_FP8)
        if SHIFTED:
            v_even *= 0.00390625
            v_odd *= 0.00390625
        if HALF:
            p *= 128.0
        weights = p.to(dtype)
        even = tl.dot(weights, v_even, even * alpha[:, None])
        odd = tl.dot(weights, v_odd, odd * alpha[:, None])
        block = next_block
    return even, odd, m, l


@triton.jit
def paged_attention(q, k_cache, v_cache, out, lse, partial_out, partial_lse,
                    tiles, key_low, key_high, block_table, sinks, alibi_slopes, k_scales, v_scales,
                    softmax_scale, softcap,
                    q_stride_token, q_stride_head, out_stride_token, out_stride_head,
                    lse_stride_token, lse_stride_head, block_table_stride,
                    k_stride_block, k_stride_slot, k_stride_head,
                    v_stride_block, v_stride_slot, v_stride_head,
                    ks_stride_block, ks_stride_slot, ks_stride_head,
                    vs_stride_block, vs_stride_slot, vs_stride_head,
                    num_splits, write_lse, has_sinks,
                    GENERAL: tl.constexpr, SPLIT: tl.constexpr, PHASED: tl.constexpr, KV: tl.constexpr,
                    TOKEN_SCALES: tl.constexpr, SOFTCAP: tl.constexpr, ALIBI: tl.constexpr, GROUP: tl.constexpr,
                    HEAD_SIZE: tl.constexpr, HEAD_PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, NATIVE_FP8: tl.constexpr, WORDS: tl.constexpr,
                    HALF: tl.constexpr, PRECISION: tl.constexpr, SIGNALS: tl.constexpr):
    """Grid (tiles, key/value heads, splits). With SPLIT and num_splits > 1 each program of the third axis leaves a
    normalised partial result and its base-2 log-sum-exp; `merge_splits` makes the output of them."""
    if SIGNALS:
        # Lets merge_splits take its place on the device; it waits for this grid's results by itself.
        tl.extra.cuda.gdc_launch_dependents()
    fields = tiles + tl.program_id(0) * 8
    kv_head = tl.program_id(1)
    tokens = tl.load(fields + 1)
    if tokens <= 0:
        return
    first = tl.load(fields)
    first_position = tl.load(fields + 2)
    key_len = tl.load(fields + 3)
    left_window = tl.load(fields + 4)
    right_window = tl.load(fields + 5)
    table = block_table + tl.load(fields + 6).to(tl.int64) * block_table_stride

    rows = tl.arange(0, BLOCK_M)
    local = rows // GROUP
    head = kv_head * GROUP + rows % GROUP
    valid = local < tokens
    # Rows past the end repeat the last query token: they change no bound and are never stored.
    local = tl.minimum(local, tokens - 1)
    token = (first + local).to(tl.int64)
    position = first_position + local
    if GENERAL:
        low = tl.maximum(tl.load(key_low + token), 0)
        high = tl.minimum(tl.load(key_high + token), key_len - 1)
    else:
        low = tl.where(left_window < 0, 0, tl.maximum(position - left_window, 0))
        high = tl.where(right_window < 0, key_len - 1, tl.minimum(position + right_window, key_len - 1))
    begin = tl.maximum(tl.min(low, 0), 0) // BLOCK_N * BLOCK_N
    last_key = tl.max(high, 0)
    end = tl.maximum(last_key + 1, begin)
    split = 0
    if SPLIT:
        split = tl.program_id(2)
        each = tl.cdiv(tl.cdiv(end - begin, BLOCK_N), num_splits) * BLOCK_N
        begin = begin + split * each
        end = tl.maximum(tl.minimum(begin + each, end), begin)

    dims = tl.arange(0, HEAD_PADDED)
    q_offsets = token * q_stride_token + head * q_stride_head
    if has_sinks != 0 and split == 0:
        m = tl.load(sinks + head, mask=valid, other=0.0).to(tl.float32) * LOG2_E
        l = tl.full([BLOCK_M], 1.0, tl.float32)
        l = tl.where(m == float("-inf"), 0.0, l)
    else:
        m = tl.full([BLOCK_M], float("-inf"), tl.float32)
        l = tl.zeros([BLOCK_M], tl.float32)
    if ALIBI:
        slope = tl.load(alibi_slopes + head, mask=valid, other=0.0)
    else:
        slope = tl.zeros([BLOCK_M], tl.float32)
    scale = softmax_scale
    k_scale_base = k_scales + kv_head * ks_stride_head
    v_scale_base = v_scales + kv_head * vs_stride_head
    if (KV != "same") and not TOKEN_SCALES:
        scale *= tl.load(k_scale_base)
    k_base = k_cache + kv_head * k_stride_head
    v_base = v_cache + kv_head * v_stride_head

    if not WORDS:
        q_tile = tl.load(q + q_offsets[:, None] + dims[None, :],
                         mask=valid[:, None] & (dims[None, :] < HEAD_SIZE), other=0.0)
        acc = tl.zeros([BLOCK_M, HEAD_PADDED], tl.float32)
    if WORDS:
        pairs = 2 * tl.arange(0, HEAD_PADDED // 2)
        inside = valid[:, None] & (pairs[None, :] < HEAD_SIZE)
        q_even = tl.load(q + q_offsets[:, None] + pairs[None, :], mask=inside, other=0.0)
        q_odd = tl.load(q + q_offsets[:, None] + pairs[None, :] + 1, mask=inside, other=0.0)
        empty = tl.zeros([BLOCK_M, HEAD_PADDED // 2], tl.float32)
        back = m
        if HALF:
            q_even, q_odd, back = _half_query(q_even, q_odd)
        even, odd, m, l = _attend_words(
            empty, empty, m, l, q_even, q_odd, back, begin, end, low, high, position, slope, last_key,
            k_base.to(tl.pointer_type(tl.uint16)), v_base.to(tl.pointer_type(tl.uint16)), k_scale_base, v_scale_base,
            table, scale, softcap, k_stride_block // 2, k_stride_slot // 2, v_stride_block // 2, v_stride_slot // 2,
            ks_stride_block, ks_stride_slot, vs_stride_block, vs_stride_slot,
            KV, TOKEN_SCALES, SOFTCAP, ALIBI, HEAD_SIZE, HEAD_PADDED, BLOCK_SIZE, BLOCK_N, NATIVE_FP8, HALF)
        acc = tl.reshape(tl.join(even, odd), [BLOCK_M, HEAD_PADDED])
        if HALF:
            acc *= 0.0078125
        outer = end
    elif PHASED:
        # Key tiles inside every row's interval lie in [inner, outer); only those around it need a mask.
        inner = tl.minimum(tl.maximum(tl.cdiv(tl.max(low, 0), BLOCK_N) * BLOCK_N, begin), end)
        outer = tl.minimum(tl.maximum((tl.min(high, 0) + 1) // BLOCK_N * BLOCK_N, inner), end)
        acc, m, l = _attend(acc, m, l, q_tile, begin, inner, low, high, position, slope, last_key,
                            k_base, v_base, k_scale_base, v_scale_base, table, scale, softcap,
                            k_stride_block, k_stride_slot, v_stride_block, v_stride_slot,
                            ks_stride_block, ks_stride_slot, vs_stride_block, vs_stride_slot,
                            True, KV, TOKEN_SCALES, SOFTCAP, ALIBI, HEAD_SIZE, HEAD_PADDED, BLOCK_SIZE,
                            BLOCK_N, NATIVE_FP8, PRECISION)
        acc, m, l = _attend(acc, m, l, q_tile, inner, outer, low, high, position, slope, last_key,
                            k_base, v_base, k_scale_base, v_scale_base, table, scale, softcap,
                            k_stride_block, k_stride_slot, v_stride_block, v_stride_slot,
                            ks_stride_block, ks_stride_slot, vs_stride_block, vs_stride_slot,
                            False, KV, TOKEN_SCALES, SOFTCAP, ALIBI, HEAD_SIZE, HEAD_PADDED, BLOCK_SIZE,
                            BLOCK_N, NATIVE_FP8, PRECISION)
    else:
        outer = begin
    if not WORDS:
        acc, m, l = _attend(acc, m, l, q_tile, outer, end, low, high, position, slope, last_key,
                            k_base, v_base, k_scale_base, v_scale_base, table, scale, softcap,
                            k_stride_block, k_stride_slot, v_stride_block, v_stride_slot,
                            ks_stride_block, ks_stride_slot, vs_stride_block, vs_stride_slot,
                            True, KV, TOKEN_SCALES, SOFTCAP, ALIBI, HEAD_SIZE, HEAD_PADDED, BLOCK_SIZE,
                            BLOCK_N, NATIVE_FP8, PRECISION)

    seen = l > 0.0
    inverse = tl.where(seen, 1.0 / tl.where(seen, l, 1.0), 0.0)
    if (KV != "same") and not TOKEN_SCALES:
        inverse *= tl.load(v_scale_base)
    acc = acc * inverse[:, None]
    lse_2 = tl.where(seen, m + tl.log2(tl.where(seen, l, 1.0)), float("-inf"))
    stored = valid[:, None] & (dims[None, :] < HEAD_SIZE)
    direct = True
    if SPLIT:
        direct = num_splits == 1
    if direct:
        out_offsets = token * out_stride_token + head * out_stride_head
        tl.store(out + out_offsets[:, None] + dims[None, :], acc.to(out.dtype.element_ty), mask=stored)
        tl.store(lse + token * lse_stride_token + head * lse_stride_head, lse_2 * LN_2,
                 mask=valid & (write_lse != 0))
    else:
        # Partials are dense: [query token, query head, split (, head size)].
        slot = (token * (tl.num_programs(1) * GROUP) + head) * num_splits + split
        tl.store(partial_out + slot[:, None] * HEAD_SIZE + dims[None, :], acc, mask=stored)
        tl.store(partial_lse + slot, lse_2, mask=valid)


@triton.jit
def merge_splits(out, lse, partial_out, partial_lse, tiles,
                 out_stride_token, out_stride_head, lse_stride_token, lse_stride_head, num_splits, write_lse,
                 HEAD_SIZE: tl.constexpr, HEAD_PADDED: tl.constexpr, SPLITS: tl.constexpr,
                 SIGNALS: tl.constexpr):
    """Grid (tiles, query heads, query tokens of a tile). Weighs the partial results of one (query token, head) by
    their share of the softmax; SPLITS is how many are read at a time."""
    fields = tiles + tl.program_id(0) * 8
    head = tl.program_id(1)
    if SIGNALS:
        tl.extra.cuda.gdc_wait()
    if tl.program_id(2) >= tl.load(fields + 1):
        return
    token = (tl.load(fields) + tl.program_id(2)).to(tl.int64)
    slot = (token * tl.num_programs(1) + head) * num_splits
    dims = tl.arange(0, HEAD_PADDED)
    m = float("-inf")
    l = 0.0
    acc = tl.zeros([HEAD_PADDED], tl.float32)
    for start in tl.range(0, num_splits, SPLITS):
        splits = start + tl.arange(0, SPLITS)
        shares = tl.load(partial_lse + slot + splits, mask=splits < num_splits, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(shares, 0))
        m_finite = tl.where(m_new == float("-inf"), 0.0, m_new)
        weights = tl.exp2(shares - m_finite)
        alpha = tl.exp2(m - m_finite)
        # A split that saw no key left zeros behind, so its row is read but weighs nothing.
        parts = tl.load(partial_out + (slot + splits)[:, None] * HEAD_SIZE + dims[None, :],
                        mask=(splits[:, None] < num_splits) & (dims[None, :] < HEAD_SIZE), other=0.0)
        acc = acc * alpha + tl.sum(parts * weights[:, None], 0)
        l = l * alpha + tl.sum(weights, 0)
        m = m_new
    seen = l > 0.0
    acc = acc * tl.where(seen, 1.0 / tl.where(seen, l, 1.0), 0.0)
    tl.store(out + token * out_stride_token + head * out_stride_head + dims, acc.to(out.dtype.element_ty),
             mask=dims < HEAD_SIZE)
    lse_2 = tl.where(seen, m + tl.log2(tl.where(seen, l, 1.0)), float("-inf"))
    tl.store(lse + token * lse_stride_token + head * lse_stride_head, lse_2 * LN_2, mask=write_lse != 0)
