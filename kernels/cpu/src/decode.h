// SPDX-License-Identifier: Apache-2.0
// The two products for few rows, straight from a cache of any type. Memory sets the pace: each line of K or V is read
// once, and beside it a line of the next tile is asked for.
//
// Pair types without a dot instruction keep the cache's order: a vector holds LANES/2 tokens (K) or dimensions (V), each
// twice, for the even and the odd member of the pair; it meets two neighbouring values of q or p, and the two sums
// of each pair are joined at the end.

INLINE int uses_dot(const int type, const int dot) { return dot && type != F32; }

#if HAS_DOT
// 32 elements as bfloat16, in their order. Exact for every type that is one byte wide.
INLINE __m512i load_bf16_pairs(const int type, const void *base, int64_t i) {
    switch (type) {
    case BF16: return _mm512_loadu_si512((const uint16_t *)base + i);
    case E4M3:
    case E4M3_PTH: {
        const __m512i x = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)((const uint8_t *)base + i)));
        const __m512i magnitude = _mm512_and_si512(_mm512_slli_epi16(x, 4), _mm512_set1_epi16(0x07F0));
        // m * 2^-9 for the eight subnormals
        const __m512i table = _mm512_castsi128_si512(_mm_setr_epi16(0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60));
        const __mmask32 small = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(0x80));
        const __mmask32 nan = _mm512_cmpeq_epi16_mask(magnitude, _mm512_set1_epi16(0x7F0));
        __m512i y = _mm512_add_epi16(magnitude, _mm512_set1_epi16(0x3C00));
        y = _mm512_mask_permutexvar_epi16(y, small, x, table);
        y = _mm512_mask_mov_epi16(y, nan, _mm512_set1_epi16(0x7FC0));
        return _mm512_ternarylogic_epi32(y, x, _mm512_set1_epi16((short)0x8000), 0xF8); // y | (x & sign)
    }
    case E5M2: {
        const __m512i x = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)((const uint8_t *)base + i)));
        const __m512i magnitude = _mm512_and_si512(_mm512_slli_epi16(x, 5), _mm512_set1_epi16(0x0FE0));
        // m * 2^-16 for the four subnormals
        const __m512i table = _mm512_castsi128_si512(_mm_setr_epi16(0, 0x3780, 0x3800, 0x3840, 0, 0, 0, 0));
        const __mmask32 small = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(0x80));
        const __mmask32 large = _mm512_cmpge_epu16_mask(magnitude, _mm512_set1_epi16(0x0F80));
        __m512i y = _mm512_add_epi16(magnitude, _mm512_set1_epi16(0x3800));
        y = _mm512_mask_permutexvar_epi16(y, small, x, table);
        y = _mm512_or_si512(y, _mm512_maskz_set1_epi16(large, 0x7F80)); // inf and NaN
        return _mm512_ternarylogic_epi32(y, x, _mm512_set1_epi16((short)0x8000), 0xF8);
    }
    default: {
        const __m256i x = _mm256_loadu_si256((const __m256i *)((const uint8_t *)base + i));
        const __m512 lo = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(x)));
        const __m512 hi = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(x, 1)));
        return (__m512i)_mm512_cvtne2ps_pbh(hi, lo);
    }
    }
}
#endif

// 2 * LANES elements in their order. e4m3 on AVX-512 comes without its factor of pair_factor.
INLINE void load_pair(const int type, const void *base, int64_t i, vf *lo, vf *hi) {
#if LANES == 16
    if (type == E4M3) {
        vf_load_e4m3_pair((const uint8_t *)base + i, lo, hi);
        return;
    }
    if (type == E5M2) {
        vf_load_e5m2_pair((const uint8_t *)base + i, lo, hi);
        return;
    }
#endif
    *lo = load_as(type, base, i);
    *hi = load_as(type, base, i + LANES);
}

INLINE float pair_factor(const int type) { return type == E4M3 && LANES == 16 ? 256.0f : 1.0f; }

// To the second-level cache: lines on their way to the first one are few, and the products need some themselves.
INLINE void prefetch(const void *p) { __builtin_prefetch(p, 0, 2); }

// Of a tile. Matrix tiles take less time than the softmax between them, which asks for nothing, so theirs is larger.
#ifdef __AMX_BF16__
#define DECODE_TOKENS 128
#else
#define DECODE_TOKENS 64
#endif
#define DECODE_SUB_BLOCKS (DECODE_TOKENS / 16)

struct decode_tile {
    const void *k[DECODE_SUB_BLOCKS];
    const void *v[DECODE_SUB_BLOCKS];
};

// What is asked for while a tile is computed: the sub-blocks of the next one, K and V, a line of each in turn. Memory gives lines of
// several pages at once faster than those of one page after the other.
enum { AHEAD_PIECES = 2 * DECODE_SUB_BLOCKS };
struct ahead {
    const char *pieces[AHEAD_PIECES]; // of K and of V in turn
    unsigned next;                    // piece
    int64_t at;                       // bytes
    int64_t until;                    // where the shorter pieces end: then theirs is the second half of what is left of the longer ones
    int64_t rest;                     // bytes by which K is longer
};

static void ahead_of(struct ahead *a, const struct decode_tile *tile, int64_t k_bytes, int64_t v_bytes) {
    for (int j = 0; j < DECODE_SUB_BLOCKS; j++) {
        a->pieces[2 * j] = tile->k[j];
        a->pieces[2 * j + 1] = tile->v[j];
    }
    a->next = 0;
    a->at = 0;
    a->until = k_bytes < v_bytes ? k_bytes : v_bytes;
    a->rest = k_bytes - v_bytes;
}

static void share_rest(struct ahead *a) {
    const int longer = a->rest < 0;
    const int64_t half = round_up((longer ? -a->rest : a->rest) / 2, 64);
    for (int j = 0; j < DECODE_SUB_BLOCKS; j++) {
        a->pieces[2 * j + !longer] = a->pieces[2 * j + longer] + half;
    }
    a->until = INT64_MAX;
}

// Asks for the next n lines, a power of two. Where n changes between calls, a line or two may be asked for twice.
INLINE void ask(struct ahead *a, const unsigned n) {
    UNROLL for (unsigned i = 0; i < n; i++) {
        prefetch(a->pieces[(a->next + i) % AHEAD_PIECES] + a->at);
    }
    a->next = (a->next + n) % AHEAD_PIECES;
    if (a->next < n && (a->at += 64) >= a->until) {
        share_rest(a);
    }
}

// Beside a step of a loop that reads so many bytes; a part of a line is asked for with the first one of it.
INLINE void ask_beside(struct ahead *a, const int bytes, int step) {
    if (bytes >= 64) {
        ask(a, bytes / 64);
    } else if (step % (64 / bytes) == 0) {
        ask(a, 1);
    }
}

// s[R][C * 16] = q[R][head size] . k. q: floats, or bfloat16 with dot.
INLINE void decode_qk_tile(const int type, const int dot, const int R, const int C, const void *q, int64_t q_stride,
                           const void *const *k, struct ahead *ahead, int head_size, float *s, int64_t s_stride) {
    const int d_step = pair_width(type);
    const int step = 16 * d_step; // elements of a sub-block that one step of the loop reads
    const int bytes = element_bytes(type);
    const int per = uses_dot(type, dot) || type == F32 ? VECTORS : 2 * VECTORS;
    vf sum[8][DECODE_ACCUMULATORS];
    const char *base[DECODE_SUB_BLOCKS];
    UNROLL for (int c = 0; c < C; c++) {
        base[c] = k[c];
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C * per; c++) {
            sum[r][c] = vf_zero();
        }
    }
    for (int d = 0; d < head_size; d += d_step) {
        ask_beside(ahead, C * step * bytes, d / d_step);
        UNROLL for (int c = 0; c < C; c++) {
#if HAS_DOT
            if (uses_dot(type, dot)) {
                const __m512i b = load_bf16_pairs(type, base[c], (int64_t)d * 16);
                UNROLL for (int r = 0; r < R; r++) {
                    sum[r][c] = vf_dot(sum[r][c], (const uint16_t *)q + r * q_stride + d, b);
                }
                continue;
            }
#endif
            vf b[2 * VECTORS];
            UNROLL for (int i = 0; i < VECTORS; i++) {
                if (per == VECTORS) {
                    b[i] = load_as(type, base[c], (int64_t)d * 16 + i * LANES);
                } else {
                    load_pair(type, base[c], (int64_t)d * 16 + 2 * i * LANES, b + 2 * i, b + 2 * i + 1);
                }
            }
            UNROLL for (int r = 0; r < R; r++) {
                const float *a = (const float *)q + r * q_stride + d;
                const vf x = type == F32 ? vf_set(*a) : vf_pair(a);
                UNROLL for (int i = 0; i < per; i++) {
                    sum[r][c * per + i] = vf_fma(x, b[i], sum[r][c * per + i]);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C * VECTORS; c++) {
            vf x = sum[r][c];
            if (per != VECTORS) {
                vf even, odd;
                vf_deinterleave(sum[r][2 * c], sum[r][2 * c + 1], &even, &odd);
                x = vf_mul(vf_add(even, odd), vf_set(pair_factor(type)));
            }
            vf_store(s + r * s_stride + c * LANES, x);
        }
    }
}

// o[R][C * LANES] = o * factor + p . v over the sub-blocks of a tile. p: floats, or bfloat16 with dot.
INLINE void decode_pv_tile(const int type, const int dot, const int R, const int C, const void *p, int64_t p_stride,
                           const void *const *v, struct ahead *ahead, int count, int64_t column, int64_t head_size,
                           const float *factor, float *o, int64_t o_stride) {
    const int t_step = pair_width(type);
    const int bytes = element_bytes(type);
    const int per = uses_dot(type, dot) || type == F32 ? 1 : 2;
    vf sum[8][DECODE_ACCUMULATORS];
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C * per; c++) {
            sum[r][c] = vf_zero();
        }
    }
    for (int j = 0; j < count; j++) {
        for (int t = 0; t < 16; t += t_step) {
            const int64_t first = t * head_size + column * t_step;
            ask_beside(ahead, C * LANES * t_step * bytes, t / t_step);
            UNROLL for (int c = 0; c < C; c++) {
#if HAS_DOT
                if (uses_dot(type, dot)) {
                    const __m512i b = load_bf16_pairs(type, v[j], first + c * 32);
                    UNROLL for (int r = 0; r < R; r++) {
                        sum[r][c] = vf_dot(sum[r][c], (const uint16_t *)p + r * p_stride + j * 16 + t, b);
                    }
                    continue;
                }
#endif
                vf b[2];
                if (per == 1) {
                    b[0] = load_as(type, v[j], first + c * LANES);
                } else {
                    load_pair(type, v[j], first + c * 2 * LANES, b, b + 1);
                }
                UNROLL for (int r = 0; r < R; r++) {
                    const float *a = (const float *)p + r * p_stride + j * 16 + t;
                    const vf x = type == F32 ? vf_set(*a) : vf_pair(a);
                    UNROLL for (int i = 0; i < per; i++) {
                        sum[r][c * per + i] = vf_fma(x, b[i], sum[r][c * per + i]);
                    }
                }
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            vf x = sum[r][c];
            if (per == 2) {
                vf even, odd;
                vf_deinterleave(sum[r][2 * c], sum[r][2 * c + 1], &even, &odd);
                x = vf_mul(vf_add(even, odd), vf_set(pair_factor(type)));
            }
            float *to = o + r * o_stride + c * LANES;
            vf_store(to, vf_fma(vf_load(to), vf_set(factor[r]), x));
        }
    }
}

// Widest C in {4, 2, 1} that keeps R rows of `per` vectors in registers.
#define WIDTH(R, PER)                                                                                                  \
    ((R) * (PER) * 4 <= DECODE_ACCUMULATORS ? 4 : (R) * (PER) * 2 <= DECODE_ACCUMULATORS ? 2 : 1)

INLINE void decode_qk_rows(const int type, const int dot, const int R, const void *q, int64_t q_stride,
                           const struct decode_tile *tile, struct ahead *ahead, int head_size, float *s,
                           int64_t s_stride) {
    const int C = WIDTH(R, (uses_dot(type, dot) || type == F32 ? 1 : 2) * VECTORS);
    for (int j = 0; j < DECODE_SUB_BLOCKS; j += C) {
        decode_qk_tile(type, dot, R, C, q, q_stride, tile->k + j, ahead, head_size, s + j * 16, s_stride);
    }
}

INLINE void decode_pv_rows(const int type, const int dot, const int R, const void *p, int64_t p_stride,
                           const struct decode_tile *tile, struct ahead *ahead, int count, int head_size,
                           const float *factor, float *o, int64_t o_stride) {
    const int C = WIDTH(R, uses_dot(type, dot) || type == F32 ? 1 : 2);
    int64_t column = 0;
    for (; column + C * LANES <= head_size; column += C * LANES) {
        decode_pv_tile(type, dot, R, C, p, p_stride, tile->v, ahead, count, column, head_size, factor, o + column,
                       o_stride);
    }
    for (; column < head_size; column += LANES) {
        decode_pv_tile(type, dot, R, 1, p, p_stride, tile->v, ahead, count, column, head_size, factor, o + column,
                       o_stride);
    }
}

// Functions for 1..DECODE_ROWS rows of one cache type.
typedef void decode_qk_function(const void *q, int64_t q_stride, const struct decode_tile *, struct ahead *,
                                int head_size, float *s, int64_t s_stride);
typedef void decode_pv_function(const void *p, int64_t p_stride, const struct decode_tile *, struct ahead *,
                                int count, int head_size, const float *factor, float *o, int64_t o_stride);

#define DEFINE_DECODE_R(NAME, TYPE, DOT, R)                                                                            \
    static void decode_qk_##NAME##_##R(const void *q, int64_t qs, const struct decode_tile *t,                         \
                                       struct ahead *a, int d, float *s, int64_t ss) {                     \
        decode_qk_rows(TYPE, DOT, R, q, qs, t, a, d, s, ss);                                                           \
    }                                                                                                                  \
    static void decode_pv_##NAME##_##R(const void *p, int64_t ps, const struct decode_tile *t,                         \
                                       struct ahead *a, int count, int d, const float *f, float *o,        \
                                       int64_t os) {                                                                   \
        decode_pv_rows(TYPE, DOT, R, p, ps, t, a, count, d, f, o, os);                                                 \
    }

#if LANES == 16
#define DECODE_ROWS 8
#define EACH_ROW_COUNT(X, ...)                                                                                         \
    X(__VA_ARGS__, 1) X(__VA_ARGS__, 2) X(__VA_ARGS__, 3) X(__VA_ARGS__, 4)                                            \
    X(__VA_ARGS__, 5) X(__VA_ARGS__, 6) X(__VA_ARGS__, 7) X(__VA_ARGS__, 8)
#define DECODE_TABLE(NAME, PRODUCT)                                                                                    \
    {                                                                                                                  \
        decode_##PRODUCT##_##NAME##_1, decode_##PRODUCT##_##NAME##_2, decode_##PRODUCT##_##NAME##_3,                   \
            decode_##PRODUCT##_##NAME##_4, decode_##PRODUCT##_##NAME##_5, decode_##PRODUCT##_##NAME##_6,               \
            decode_##PRODUCT##_##NAME##_7, decode_##PRODUCT##_##NAME##_8                                               \
    }
#else
#define DECODE_ROWS 3
#define EACH_ROW_COUNT(X, ...) X(__VA_ARGS__, 1) X(__VA_ARGS__, 2) X(__VA_ARGS__, 3)
#define DECODE_TABLE(NAME, PRODUCT)                                                                                    \
    { decode_##PRODUCT##_##NAME##_1, decode_##PRODUCT##_##NAME##_2, decode_##PRODUCT##_##NAME##_3 }
#endif

EACH_ROW_COUNT(DEFINE_DECODE_R, f32, F32, 0)
EACH_ROW_COUNT(DEFINE_DECODE_R, f16, F16, 0)
EACH_ROW_COUNT(DEFINE_DECODE_R, bf16, BF16, 0)
EACH_ROW_COUNT(DEFINE_DECODE_R, e4m3, E4M3, 0)
EACH_ROW_COUNT(DEFINE_DECODE_R, e5m2, E5M2, 0)
EACH_ROW_COUNT(DEFINE_DECODE_R, i8, I8, 0)
#if HAS_DOT
EACH_ROW_COUNT(DEFINE_DECODE_R, bf16_dot, BF16, 1)
EACH_ROW_COUNT(DEFINE_DECODE_R, e4m3_dot, E4M3, 1)
EACH_ROW_COUNT(DEFINE_DECODE_R, e5m2_dot, E5M2, 1)
EACH_ROW_COUNT(DEFINE_DECODE_R, i8_dot, I8, 1)
#endif

struct decode_functions {
    decode_qk_function *qk[DECODE_ROWS];
    decode_pv_function *pv[DECODE_ROWS];
};

#define DECODE_FUNCTIONS(NAME) {DECODE_TABLE(NAME, qk), DECODE_TABLE(NAME, pv)}

// By cache type.
static const struct decode_functions decode_float[] = {
    DECODE_FUNCTIONS(f32),  DECODE_FUNCTIONS(f16), DECODE_FUNCTIONS(bf16), DECODE_FUNCTIONS(e4m3),
    DECODE_FUNCTIONS(e5m2), DECODE_FUNCTIONS(i8),  DECODE_FUNCTIONS(e4m3),
};
#if HAS_DOT
static const struct decode_functions decode_dot[] = {
    DECODE_FUNCTIONS(f32),      DECODE_FUNCTIONS(f16),    DECODE_FUNCTIONS(bf16_dot), DECODE_FUNCTIONS(e4m3_dot),
    DECODE_FUNCTIONS(e5m2_dot), DECODE_FUNCTIONS(i8_dot), DECODE_FUNCTIONS(e4m3_dot),
};
#endif
