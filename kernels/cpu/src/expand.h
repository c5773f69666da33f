// SPDX-License-Identifier: Apache-2.0
// Copies of sub-blocks in the type and order that the register tiles read.

// K [head size / 2][16][2] (or [head size][16] floats) to floats [head size][16].
INLINE void expand_k_float_typed(const int type, const void *k, int head_size, float *to) {
    if (type == F32) {
        memcpy(to, k, (size_t)head_size * 64);
        return;
    }
    for (int d = 0; d < head_size; d += 2) {
        for (int i = 0; i < 16; i += LANES) {
            vf even, odd;
            vf_deinterleave(load_as(type, k, d * 16 + 2 * i), load_as(type, k, d * 16 + 2 * i + LANES), &even, &odd);
            vf_store(to + d * 16 + i, even);
            vf_store(to + d * 16 + 16 + i, odd);
        }
    }
}

// V [8][head size][2] (or [16][head size] floats) to floats [16][padded]; tokens from `exist` on and padding become 0.
INLINE void expand_v_float_typed(const int type, const void *v, int64_t head_size, int64_t padded, int exist, float *to) {
    memset(to + exist * padded, 0, (size_t)((16 - exist) * padded) * 4);
    if (type == F32) {
        for (int t = 0; t < exist; t++) {
            memcpy(to + t * padded, (const float *)v + t * head_size, (size_t)head_size * 4);
            memset(to + t * padded + head_size, 0, (size_t)(padded - head_size) * 4);
        }
        return;
    }
    for (int t = 0; t < exist; t++) {
        float *row = to + t * padded;
        const int64_t base = t / 2 * 2 * head_size;
        int64_t d = 0;
        if (t % 2 == 0) {
            for (; d + LANES <= head_size; d += LANES) {
                vf even, odd;
                vf_deinterleave(load_as(type, v, base + 2 * d), load_as(type, v, base + 2 * d + LANES), &even, &odd);
                vf_store(row + d, even);
                if (t + 1 < exist) {
                    vf_store(row + padded + d, odd);
                }
            }
        } else {
            d = head_size / LANES * LANES;
        }
        for (; d < head_size; d++) {
            row[d] = element_as(type, v, base + 2 * d + t % 2);
        }
        memset(row + head_size, 0, (size_t)(padded - head_size) * 4);
    }
}

static __attribute__((unused)) void expand_k_float(int type, const void *k, int head_size, float *to) {
    switch (type) {
    case F32: expand_k_float_typed(F32, k, head_size, to); break;
    case F16: expand_k_float_typed(F16, k, head_size, to); break;
    case BF16: expand_k_float_typed(BF16, k, head_size, to); break;
    case E4M3:
    case E4M3_PTH: expand_k_float_typed(E4M3, k, head_size, to); break;
    case E5M2: expand_k_float_typed(E5M2, k, head_size, to); break;
    default: expand_k_float_typed(I8, k, head_size, to); break;
    }
}

static __attribute__((unused)) void expand_v_float(int type, const void *v, int64_t head_size, int64_t padded, int exist,
                                                   float *to) {
    switch (type) {
    case F32: expand_v_float_typed(F32, v, head_size, padded, exist, to); break;
    case F16: expand_v_float_typed(F16, v, head_size, padded, exist, to); break;
    case BF16: expand_v_float_typed(BF16, v, head_size, padded, exist, to); break;
    case E4M3:
    case E4M3_PTH: expand_v_float_typed(E4M3, v, head_size, padded, exist, to); break;
    case E5M2: expand_v_float_typed(E5M2, v, head_size, padded, exist, to); break;
    default: expand_v_float_typed(I8, v, head_size, padded, exist, to); break;
    }
}

#if HAS_DOT

// One-byte floats by table: the upper and the lower byte of the bfloat16 that a magnitude is, exactly.
#if HAS_BYTE_TABLES
#define E4M3_IN_BF16(c)                                                                                                \
    ((c) == 127 ? 0x7FC0                                                                                               \
     : (c) >= 8 ? 0x3C00 + ((c) << 4)                                                                                  \
     : (c) >= 4 ? 0x3C00 + ((c) - 4) * 0x20                                                                            \
     : (c) >= 2 ? 0x3B80 + ((c) - 2) * 0x40                                                                            \
                : (c) * 0x3B00)
#define E5M2_IN_BF16(c)                                                                                                \
    ((c) > 124    ? 0x7FC0                                                                                             \
     : (c) == 124 ? 0x7F80                                                                                             \
     : (c) >= 4   ? 0x3800 + ((c) << 5)                                                                                \
     : (c) >= 2   ? 0x3800 + ((c) - 2) * 0x40                                                                          \
                  : (c) * 0x3780)
#define FOUR(X, c) X(c), X((c) + 1), X((c) + 2), X((c) + 3)
#define SIXTEEN(X, c) FOUR(X, c), FOUR(X, (c) + 4), FOUR(X, (c) + 8), FOUR(X, (c) + 12)
#define MAGNITUDES(X)                                                                                                  \
    {                                                                                                                  \
        SIXTEEN(X, 0), SIXTEEN(X, 16), SIXTEEN(X, 32), SIXTEEN(X, 48), SIXTEEN(X, 64), SIXTEEN(X, 80), SIXTEEN(X, 96), \
            SIXTEEN(X, 112)                                                                                            \
    }
#define E4M3_UPPER(c) (E4M3_IN_BF16(c) >> 8)
#define E4M3_LOWER(c) (E4M3_IN_BF16(c) & 255)
#define E5M2_UPPER(c) (E5M2_IN_BF16(c) >> 8)
#define E5M2_LOWER(c) (E5M2_IN_BF16(c) & 255)

struct byte_tables {
    uint8_t upper[128], lower[128];
};
static const struct byte_tables e4m3_bytes = {MAGNITUDES(E4M3_UPPER), MAGNITUDES(E4M3_LOWER)};
static const struct byte_tables e5m2_bytes = {MAGNITUDES(E5M2_UPPER), MAGNITUDES(E5M2_LOWER)};

// n elements, a multiple of 64, their order kept.
INLINE void widen_by_table(const struct byte_tables *t, const void *from, int64_t n, uint16_t *to) {
    const __m512i upper0 = _mm512_loadu_si512(t->upper), upper1 = _mm512_loadu_si512(t->upper + 64);
    const __m512i lower0 = _mm512_loadu_si512(t->lower), lower1 = _mm512_loadu_si512(t->lower + 64);
    // Joining bytes goes by lanes of sixteen: their halves are where the two results need them.
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    for (int64_t i = 0; i < n; i += 64) {
        const __m512i x = _mm512_permutexvar_epi64(order, _mm512_loadu_si512((const char *)from + i));
        const __m512i magnitude = _mm512_permutex2var_epi8(upper0, x, upper1); // the sign is no part of an index
        const __m512i upper = _mm512_ternarylogic_epi32(magnitude, x, _mm512_set1_epi8((char)0x80), 0xF8); // magnitude | (x & sign)
        const __m512i lower = _mm512_permutex2var_epi8(lower0, x, lower1);
        _mm512_storeu_si512(to + i, _mm512_unpacklo_epi8(lower, upper));
        _mm512_storeu_si512(to + i + 32, _mm512_unpackhi_epi8(lower, upper));
    }
}
#endif

// n elements, their order kept. Whole vectors as long as they fit.
INLINE void expand_bf16_typed(const int type, const void *from, int64_t n, uint16_t *to) {
    int64_t i = 0;
#if HAS_BYTE_TABLES
    if (type != I8) {
        i = n / 64 * 64;
        widen_by_table(type == E4M3 ? &e4m3_bytes : &e5m2_bytes, from, i, to);
    }
#endif
    for (; i + 32 <= n; i += 32) {
        _mm512_storeu_si512(to + i, load_bf16_pairs(type, from, i));
    }
    for (; i < n; i++) {
        to[i] = float_to_bf16(element_as(type, from, i));
    }
}

static void expand_bf16(int type, const void *from, int64_t n, uint16_t *to) {
    switch (type) {
    case BF16: memcpy(to, from, (size_t)n * 2); break;
    case E4M3:
    case E4M3_PTH: expand_bf16_typed(E4M3, from, n, to); break;
    case E5M2: expand_bf16_typed(E5M2, from, n, to); break;
    default: expand_bf16_typed(I8, from, n, to); break;
    }
}

static void expand_k_bf16(int type, const void *k, int head_size, uint16_t *to) {
    expand_bf16(type, k, (int64_t)head_size * 16, to);
}

// V [8][head size][2] to bfloat16 [8][padded][2]; tokens from `exist` on and padding become 0.
static void expand_v_bf16(int type, const void *v, int64_t head_size, int64_t padded, int exist, uint16_t *to) {
    for (int t = 0; t < 16; t += 2) {
        uint16_t *row = to + t * padded;
        if (t >= exist) {
            memset(row, 0, (size_t)padded * 4);
            continue;
        }
        expand_bf16(type, bytes_at(v, t * head_size * element_bytes(type)), 2 * head_size, row);
        memset(row + 2 * head_size, 0, (size_t)(padded - head_size) * 4);
        if (t + 1 == exist) {
            for (int64_t d = 0; d < head_size; d++) {
                row[2 * d + 1] = 0;
            }
        }
    }
}

#else
#define expand_k_bf16(...) ((void)0)
#define expand_v_bf16(...) ((void)0)
#endif
