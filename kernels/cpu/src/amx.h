// SPDX-License-Identifier: Apache-2.0
// The two products on matrix tiles: 16 rows of 16 pairs of bfloat16 times 16 pairs of 16 columns.
//
// q is packed in such tiles, [rows / 16][slots / 16][16][16] slots; a sub-block of K is [slots / 16] tiles as it lies in the cache; V
// is packed in panels of 16 columns, so that 16 slots of a panel are a tile; the scores and O are rows of floats, P rows of bfloat16. All
// of them have room for whole tiles of rows; what is in the rows beyond the last never reaches a result.

#define TILE_LOAD(TILE, BASE, STRIDE)                                                                                  \
    __asm__ volatile("tileloadd (%0, %1, 1), %%tmm" #TILE ::"r"(BASE), "r"((int64_t)(STRIDE)) : "memory")
#define TILE_STORE(TILE, BASE, STRIDE)                                                                                 \
    __asm__ volatile("tilestored %%tmm" #TILE ", (%0, %1, 1)" ::"r"(BASE), "r"((int64_t)(STRIDE)) : "memory")
#define TILE_ZERO(TILE) __asm__ volatile("tilezero %%tmm" #TILE ::: "memory")
#define TILE_DOT(SUM, A, B) __asm__ volatile("tdpbf16ps %%tmm" #B ", %%tmm" #A ", %%tmm" #SUM ::: "memory")

static void tiles_begin(void) {
    struct __attribute__((packed)) {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shape.row_bytes[i] = 64;
        shape.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shape) : "memory");
}

static void tiles_end(void) { __asm__ volatile("tilerelease" ::: "memory"); }

// Loads that pass by the first-level cache, which is for the scores: K and V come from the second level once for each block of rows.
#define TILE_STREAM(TILE, BASE, STRIDE)                                                                                \
    __asm__ volatile("tileloaddt1 (%0, %1, 1), %%tmm" #TILE ::"r"(BASE), "r"((int64_t)(STRIDE)) : "memory")

// One step of q . k, 16 slots of 32 rows and of two sub-blocks of K, added to tiles 0..3.
static inline void qk_on_tiles(const int32_t *q0, const int32_t *q1, const int32_t *k0, const int32_t *k1) {
    TILE_LOAD(4, q0, 64);
    TILE_STREAM(6, k0, 64);
    TILE_DOT(0, 4, 6);
    TILE_LOAD(5, q1, 64);
    TILE_DOT(2, 5, 6);
    TILE_STREAM(7, k1, 64);
    TILE_DOT(1, 4, 7);
    TILE_DOT(3, 5, 7);
}

static inline void clear_tiles(void) {
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
}

static inline void store_scores(float *s, int64_t s_stride) {
    TILE_STORE(0, s, s_stride * 4);
    TILE_STORE(1, s + 16, s_stride * 4);
    TILE_STORE(2, s + 16 * s_stride, s_stride * 4);
    TILE_STORE(3, s + 16 * s_stride + 16, s_stride * 4);
}

// o[32][32] += p . v for two panels of V
static inline void pv_on_tiles(const int32_t *p, int64_t p_stride, const int32_t *v0, const int32_t *v1, int steps, float *o,
                               int64_t o_stride) {
    const int32_t *p1 = p + 16 * p_stride;
    float *o1 = o + 16 * o_stride;
    TILE_LOAD(0, o, o_stride * 4);
    TILE_LOAD(1, o + 16, o_stride * 4);
    TILE_LOAD(2, o1, o_stride * 4);
    TILE_LOAD(3, o1 + 16, o_stride * 4);
    for (int i = 0; i < steps; i++) {
        TILE_LOAD(4, p + i * 16, p_stride * 4);
        TILE_STREAM(6, v0 + i * 256, 64);
        TILE_DOT(0, 4, 6);
        TILE_LOAD(5, p1 + i * 16, p_stride * 4);
        TILE_DOT(2, 5, 6);
        TILE_STREAM(7, v1 + i * 256, 64);
        TILE_DOT(1, 4, 7);
        TILE_DOT(3, 5, 7);
    }
    TILE_STORE(0, o, o_stride * 4);
    TILE_STORE(1, o + 16, o_stride * 4);
    TILE_STORE(2, o1, o_stride * 4);
    TILE_STORE(3, o1 + 16, o_stride * 4);
}

// o[32][16] += p . v for one panel
static inline void pv_on_tiles_narrow(const int32_t *p, int64_t p_stride, const int32_t *v, int steps, float *o, int64_t o_stride) {
    const int32_t *p1 = p + 16 * p_stride;
    float *o1 = o + 16 * o_stride;
    TILE_LOAD(0, o, o_stride * 4);
    TILE_LOAD(2, o1, o_stride * 4);
    for (int i = 0; i < steps; i++) {
        TILE_STREAM(6, v + i * 256, 64);
        TILE_LOAD(4, p + i * 16, p_stride * 4);
        TILE_LOAD(5, p1 + i * 16, p_stride * 4);
        TILE_DOT(0, 4, 6);
        TILE_DOT(2, 5, 6);
    }
    TILE_STORE(0, o, o_stride * 4);
    TILE_STORE(2, o1, o_stride * 4);
}

// o[rows][d] += p . v over `steps` tiles of 16 slots; v: the first of them in panels [v_stride][16]
static void pv_tiles(const int32_t *p, int64_t p_stride, int rows, const int32_t *v, int64_t v_stride, int steps, int d, float *o,
                     int64_t o_stride) {
    for (int r = 0; r < rows; r += 32) {
        int column = 0;
        for (; column + 32 <= d; column += 32) {
            const int32_t *at = v + column * v_stride;
            pv_on_tiles(p + r * p_stride, p_stride, at, at + 16 * v_stride, steps, o + r * o_stride + column, o_stride);
        }
        if (column < d) {
            pv_on_tiles_narrow(p + r * p_stride, p_stride, v + column * v_stride, steps, o + r * o_stride + column, o_stride);
        }
    }
}
