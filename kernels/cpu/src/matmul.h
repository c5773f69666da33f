// SPDX-License-Identifier: Apache-2.0
// The two products of attention on register tiles.
//
// Everything here is counted in *slots* of four bytes: one float, or a pair of bfloat16. A sub-block of K is
// [slots][16] (a slot is a head dimension, or two), a sub-block of V is [16 or 8][head size] (a slot is a token, or
// two), Q and P are rows of slots. So float and bfloat16 differ in one instruction only.

#define VECTORS (16 / LANES) // of one slot of a K sub-block

#ifdef __AVX512BF16__
#define HAS_DOT 1
#else
#define HAS_DOT 0
#endif

// LANES slots in a register
typedef struct {
    vf f;
#if HAS_DOT
    __m512i h;
#endif
} slots;

INLINE slots load_slots(const int dot, const int32_t *b) {
    slots x;
#if HAS_DOT
    if (dot) {
        x.h = _mm512_loadu_si512(b);
        return x;
    }
#endif
    (void)dot;
    x.f = vf_load((const float *)b);
    return x;
}

// c + a.b where a is one slot for all lanes
INLINE vf multiply(const int dot, vf c, const int32_t *a, slots b) {
#if HAS_DOT
    if (dot) {
        return vf_dot(c, a, b.h);
    }
#endif
    (void)dot;
    return vf_fma(vf_set(*(const float *)a), b.f, c);
}

// s[R][C * 16] = q[R][n] . k
INLINE void qk_tile(const int dot, const int R, const int C, const int32_t *q, int64_t q_stride, const int32_t *const *k,
                    int n, float *s, int64_t s_stride) {
    vf sum[TILE_ROWS][TILE_SUB_BLOCKS * VECTORS];
    const int32_t *base[TILE_SUB_BLOCKS];
    UNROLL for (int c = 0; c < C; c++) {
        base[c] = k[c];
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C * VECTORS; c++) {
            sum[r][c] = vf_zero();
        }
    }
    for (int d = 0; d < n; d++) {
        slots b[TILE_SUB_BLOCKS * VECTORS];
        UNROLL for (int c = 0; c < C * VECTORS; c++) {
            b[c] = load_slots(dot, base[c / VECTORS] + (int64_t)d * 16 + c % VECTORS * LANES);
        }
        UNROLL for (int r = 0; r < R; r++) {
            UNROLL for (int c = 0; c < C * VECTORS; c++) {
                sum[r][c] = multiply(dot, sum[r][c], q + r * q_stride + d, b[c]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C * VECTORS; c++) {
            vf_store(s + r * s_stride + c * LANES, sum[r][c]);
        }
    }
}

// o[R][C * LANES] = o * factor + p[R][...] . v, over `count` sub-blocks of 16 tokens
INLINE void pv_tile(const int dot, const int R, const int C, const int32_t *p, int64_t p_stride, const int32_t *const *v,
                    int count, int64_t column, int64_t head_size, const float *factor, float *o, int64_t o_stride) {
    vf sum[TILE_ROWS][PANEL_VECTORS];
    UNROLL for (int r = 0; r < R; r++) {
        const vf f = vf_set(factor[r]);
        UNROLL for (int c = 0; c < C; c++) {
            sum[r][c] = vf_mul(vf_load(o + r * o_stride + c * LANES), f);
        }
    }
    const int n = dot ? 8 : 16;
    for (int j = 0; j < count; j++) {
        const int32_t *row = v[j] + column;
        for (int t = 0; t < n; t++, row += head_size, p++) {
            slots b[PANEL_VECTORS];
            UNROLL for (int c = 0; c < C; c++) {
                b[c] = load_slots(dot, row + c * LANES);
            }
            UNROLL for (int r = 0; r < R; r++) {
                UNROLL for (int c = 0; c < C; c++) {
                    sum[r][c] = multiply(dot, sum[r][c], p + r * p_stride, b[c]);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            vf_store(o + r * o_stride + c * LANES, sum[r][c]);
        }
    }
}

// One function for each shape of register tile, and over them one that walks all rows.

#define DEFINE_QK(NAME, DOT, R, C)                                                                                     \
    static __attribute__((noinline)) void qk_##NAME##_##R##_##C(const int32_t *q, int64_t qs, const int32_t *const *k, \
                                                                int n, float *s, int64_t ss) {                         \
        qk_tile(DOT, R, C, q, qs, k, n, s, ss);                                                                        \
    }

#define DEFINE_PV(NAME, DOT, R, C)                                                                                     \
    static __attribute__((noinline)) void pv_##NAME##_##R##_##C(const int32_t *p, int64_t ps, const int32_t *const *v, \
                                                                int count, int64_t column, int64_t d,                  \
                                                                const float *f, float *o, int64_t os) {                \
        pv_tile(DOT, R, C, p, ps, v, count, column, d, f, o, os);                                                      \
    }

#define QK_STEP(NAME, R, C)                                                                                            \
    for (; r + R <= rows; r += R) {                                                                                    \
        qk_##NAME##_##R##_##C(q + r * qs, qs, k, n, s + r * ss, ss);                                                   \
    }

#define PV_STEP(NAME, R, C)                                                                                            \
    for (; r + R <= rows; r += R) {                                                                                    \
        pv_##NAME##_##R##_##C(p + r * ps, ps, v, count, column, d, f + r, o + r * os, os);                             \
    }

#if TILE_ROWS == 6
#define WITH_SIX(...) __VA_ARGS__
#else
#define WITH_SIX(...)
#endif

#define DEFINE_QK_WIDTH(NAME, DOT, C)                                                                                  \
    WITH_SIX(DEFINE_QK(NAME, DOT, 6, C))                                                                               \
    DEFINE_QK(NAME, DOT, 4, C)                                                                                         \
    DEFINE_QK(NAME, DOT, 2, C)                                                                                         \
    DEFINE_QK(NAME, DOT, 1, C)                                                                                         \
    static void qk_##NAME##_rows_##C(const int32_t *q, int64_t qs, int rows, const int32_t *const *k, int n, float *s, \
                                     int64_t ss) {                                                                     \
        int r = 0;                                                                                                     \
        WITH_SIX(QK_STEP(NAME, 6, C))                                                                                  \
        QK_STEP(NAME, 4, C)                                                                                            \
        QK_STEP(NAME, 2, C)                                                                                            \
        QK_STEP(NAME, 1, C)                                                                                            \
    }

#define DEFINE_PV_WIDTH(NAME, DOT, C)                                                                                  \
    WITH_SIX(DEFINE_PV(NAME, DOT, 6, C))                                                                               \
    DEFINE_PV(NAME, DOT, 4, C)                                                                                         \
    DEFINE_PV(NAME, DOT, 2, C)                                                                                         \
    DEFINE_PV(NAME, DOT, 1, C)                                                                                         \
    static void pv_##NAME##_rows_##C(const int32_t *p, int64_t ps, int rows, const int32_t *const *v, int count,       \
                                     int64_t column, int64_t d, const float *f, float *o, int64_t os) {                \
        int r = 0;                                                                                                     \
        WITH_SIX(PV_STEP(NAME, 6, C))                                                                                  \
        PV_STEP(NAME, 4, C)                                                                                            \
        PV_STEP(NAME, 2, C)                                                                                            \
        PV_STEP(NAME, 1, C)                                                                                            \
    }

#if TILE_SUB_BLOCKS == 4
#define DEFINE_QK_WIDTHS(NAME, DOT)                                                                                    \
    DEFINE_QK_WIDTH(NAME, DOT, 4)                                                                                      \
    DEFINE_QK_WIDTH(NAME, DOT, 2)                                                                                      \
    DEFINE_QK_WIDTH(NAME, DOT, 1)
#define QK_WIDE_STEP(NAME, C)                                                                                          \
    for (; j + C <= count; j += C) {                                                                                   \
        qk_##NAME##_rows_##C(q, qs, rows, k + j, n, s + j * 16, ss);                                                   \
    }
#else
#define DEFINE_QK_WIDTHS(NAME, DOT) DEFINE_QK_WIDTH(NAME, DOT, 1)
#define QK_WIDE_STEP(NAME, C)
#endif

#if PANEL_VECTORS == 4 && LANES == 16
#define DEFINE_PV_WIDTHS(NAME, DOT)                                                                                    \
    DEFINE_PV_WIDTH(NAME, DOT, 4)                                                                                      \
    DEFINE_PV_WIDTH(NAME, DOT, 2)                                                                                      \
    DEFINE_PV_WIDTH(NAME, DOT, 1)
#elif PANEL_VECTORS == 4
#define DEFINE_PV_WIDTHS(NAME, DOT) DEFINE_PV_WIDTH(NAME, DOT, 4)
#else
#define DEFINE_PV_WIDTHS(NAME, DOT) DEFINE_PV_WIDTH(NAME, DOT, 2)
#endif
#define PV_WIDE_STEP(NAME, C)                                                                                          \
    for (; column + C * LANES <= d; column += C * LANES) {                                                             \
        pv_##NAME##_rows_##C(p, ps, rows, v, count, column, d, f, o + column, os);                                     \
    }
#if PANEL_VECTORS == 4 && LANES == 16
#define PV_WIDE_STEPS(NAME) PV_WIDE_STEP(NAME, 4) PV_WIDE_STEP(NAME, 2) PV_WIDE_STEP(NAME, 1)
#elif PANEL_VECTORS == 4
#define PV_WIDE_STEPS(NAME) PV_WIDE_STEP(NAME, 4)
#else
#define PV_WIDE_STEPS(NAME) PV_WIDE_STEP(NAME, 2)
#endif

// qk_NAME: s[rows][count * 16] = q . k. pv_NAME: o[rows][d] = o * f + p . v, d a multiple of 16.
#define DEFINE_MATMUL(NAME, DOT)                                                                                       \
    DEFINE_QK_WIDTHS(NAME, DOT)                                                                                        \
    DEFINE_PV_WIDTHS(NAME, DOT)                                                                                        \
    static void qk_##NAME(const int32_t *q, int64_t qs, int rows, const int32_t *const *k, int count, int n, float *s, \
                          int64_t ss) {                                                                                \
        int j = 0;                                                                                                     \
        QK_WIDE_STEP(NAME, 4)                                                                                          \
        QK_WIDE_STEP(NAME, 2)                                                                                          \
        for (; j < count; j++) {                                                                                       \
            qk_##NAME##_rows_1(q, qs, rows, k + j, n, s + j * 16, ss);                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void pv_##NAME(const int32_t *p, int64_t ps, int rows, const int32_t *const *v, int count, int64_t d,       \
                          const float *f, float *o, int64_t os) {                                                      \
        int64_t column = 0;                                                                                            \
        PV_WIDE_STEPS(NAME)                                                                                            \
    }

DEFINE_MATMUL(float, 0)
#if HAS_DOT
DEFINE_MATMUL(dot, 1)
#endif
