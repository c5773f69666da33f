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

// s[R][C * 16] = q[R][n] . k. Beside each slot some of what will be needed later is asked for, `pace` bytes further each time.
INLINE void qk_tile(const int dot, const int R, const int C, const int32_t *q, int64_t q_stride, const int32_t *const *k,
                    int n, float *s, int64_t s_stride, const char *later, int64_t pace) {
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
        __builtin_prefetch(later, 0, 2);
        later += pace;
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

// o[R][C * LANES] = o * factor + p[R][n] . v[n][C * LANES]; no factor: 1
INLINE void pv_tile(const int dot, const int R, const int C, const int32_t *p, int64_t p_stride, const int32_t *v, int n,
                    const float *factor, float *o, int64_t o_stride) {
    vf sum[TILE_ROWS][PANEL_VECTORS];
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            sum[r][c] = vf_load(o + r * o_stride + c * LANES);
        }
    }
    if (factor) {
        UNROLL for (int r = 0; r < R; r++) {
            UNROLL for (int c = 0; c < C; c++) {
                sum[r][c] = vf_mul(sum[r][c], vf_set(factor[r]));
            }
        }
    }
    for (int t = 0; t < n; t++) {
        slots b[PANEL_VECTORS];
        UNROLL for (int c = 0; c < C; c++) {
            b[c] = load_slots(dot, v + (int64_t)t * (C * LANES) + c * LANES);
        }
        UNROLL for (int r = 0; r < R; r++) {
            UNROLL for (int c = 0; c < C; c++) {
                sum[r][c] = multiply(dot, sum[r][c], p + r * p_stride + t, b[c]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            vf_store(o + r * o_stride + c * LANES, sum[r][c]);
        }
    }
}

// Slots of a panel of V that stay in the first-level cache while all rows pass.
#define PV_SLOTS 128

// Memory that will be needed later, in the order of its need. The products ask for it, a little beside each of their steps: what is
// asked for at once waits for memory, and the products' own loads with it.
#define MOST_PARTS (2 * 512 / 16 + 2 * 512) // of a tile of keys; queries and outputs of an item
struct stream {
    struct {
        const char *at;
        int64_t bytes;
    } parts[MOST_PARTS];
    int count, next;
    int64_t taken; // of the next part
    int64_t pace;  // bytes beside each step
    int64_t now;   // likewise, of this part
};

static void add_part(struct stream *s, const void *at, int64_t bytes) {
    s->parts[s->count].at = at;
    s->parts[s->count++].bytes = bytes;
}

// What to ask for beside so many steps, `now` bytes beside each; at the end of all, something that is there already.
static const char *next_of(struct stream *s, int steps, const void *otherwise) {
    if (s->next == s->count) {
        s->now = 0;
        return otherwise;
    }
    const char *at = s->parts[s->next].at + s->taken;
    const int64_t left = s->parts[s->next].bytes - s->taken;
    s->now = s->pace * steps < left ? s->pace : (left + steps - 1) / steps;
    s->taken += s->now * steps;
    if (s->taken >= s->parts[s->next].bytes) {
        s->taken = 0;
        s->next++;
    }
    return at;
}

// One function for each shape of register tile, and over them one that walks all rows.

#define DEFINE_QK(NAME, DOT, R, C)                                                                                     \
    static __attribute__((noinline)) void qk_##NAME##_##R##_##C(const int32_t *q, int64_t qs, const int32_t *const *k, \
                                                                int n, float *s, int64_t ss, const char *later,        \
                                                                int64_t pace) {                                        \
        qk_tile(DOT, R, C, q, qs, k, n, s, ss, later, pace);                                                           \
    }

#define DEFINE_PV(NAME, DOT, R, C)                                                                                     \
    static __attribute__((noinline)) void pv_##NAME##_##R##_##C(const int32_t *p, int64_t ps, const int32_t *v, int n, \
                                                                const float *f, float *o, int64_t os) {                \
        pv_tile(DOT, R, C, p, ps, v, n, f, o, os);                                                                     \
    }

#define QK_STEP(NAME, R, C)                                                                                            \
    for (; r + R <= rows; r += R) {                                                                                    \
        const char *ahead = next_of(later, n, q + r * qs);                                                             \
        qk_##NAME##_##R##_##C(q + r * qs, qs, k, n, s + r * ss, ss, ahead, later->now);                                \
    }

#define PV_STEP(NAME, R, C)                                                                                            \
    for (; r + R <= rows; r += R) {                                                                                    \
        pv_##NAME##_##R##_##C(p + r * ps, ps, v, n, f ? f + r : 0, o + r * os, os);                                    \
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
                                     int64_t ss, struct stream *later) {                                               \
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
    static void pv_##NAME##_rows_##C(const int32_t *p, int64_t ps, int rows, const int32_t *v, int n, const float *f,  \
                                     float *o, int64_t os) {                                                           \
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
        qk_##NAME##_rows_##C(q, qs, rows, k + j, n, s + j * 16, ss, later);                                            \
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
        pv_##NAME##_rows_##C(p, ps, rows, v + column * v_stride + from * (C * LANES), n, f, o + column, os);           \
    }
#if PANEL_VECTORS == 4 && LANES == 16
#define PV_WIDE_STEPS(NAME) PV_WIDE_STEP(NAME, 4) PV_WIDE_STEP(NAME, 2) PV_WIDE_STEP(NAME, 1)
#elif PANEL_VECTORS == 4
#define PV_WIDE_STEPS(NAME) PV_WIDE_STEP(NAME, 4)
#else
#define PV_WIDE_STEPS(NAME) PV_WIDE_STEP(NAME, 2)
#endif

// qk_NAME: s[rows][count * 16] = q . k. pv_NAME: o[rows][d] = o * f + p . v for slots first..first+n-1 of v, d a multiple
// of 16. v is cut into panels as wide as the register tiles, widest first; one of them is [v_stride][width].
#define DEFINE_MATMUL(NAME, DOT)                                                                                       \
    DEFINE_QK_WIDTHS(NAME, DOT)                                                                                        \
    DEFINE_PV_WIDTHS(NAME, DOT)                                                                                        \
    static void qk_##NAME(const int32_t *q, int64_t qs, int rows, const int32_t *const *k, int count, int n, float *s, \
                          int64_t ss, struct stream *later) {                                                          \
        int j = 0;                                                                                                     \
        QK_WIDE_STEP(NAME, 4)                                                                                          \
        QK_WIDE_STEP(NAME, 2)                                                                                          \
        for (; j < count; j++) {                                                                                       \
            qk_##NAME##_rows_1(q, qs, rows, k + j, n, s + j * 16, ss, later);                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void pv_##NAME(const int32_t *p, int64_t ps, int rows, const int32_t *v, int64_t v_stride, int first,       \
                          int slots, int64_t d, const float *f, float *o, int64_t os) {                                \
        for (int from = first; from < first + slots; from += PV_SLOTS) {                                               \
            const int n = smaller(PV_SLOTS, first + slots - from);                                                     \
            int64_t column = 0;                                                                                        \
            PV_WIDE_STEPS(NAME)                                                                                        \
            p += n;                                                                                                    \
            f = 0;                                                                                                     \
        }                                                                                                              \
    }

// Copies rows of V [n][d] into panels, to the slots from `first` on. pv_NAME reads panels as wide as its register tiles.
static void to_panels(const int32_t *v, int n, int64_t d, int64_t widest, int32_t *to, int64_t v_stride, int64_t first) {
    int64_t column = 0;
    for (int64_t width = widest; width >= 16; width /= 2) {
        for (; column + width <= d; column += width) {
            int32_t *panel = to + column * v_stride + first * width;
            for (int t = 0; t < n; t++) {
                for (int64_t i = 0; i < width; i += LANES) {
                    vf_store((float *)panel + t * width + i, vf_load((const float *)v + t * d + column + i));
                }
            }
        }
    }
}

DEFINE_MATMUL(float, 0)
#if HAS_DOT
DEFINE_MATMUL(dot, 1)
#endif
