// SPDX-License-Identifier: Apache-2.0
// The two products on matrix tiles: 16 rows of 16 pairs of bfloat16 times 16 pairs of 16 columns.
//
// q is packed in such tiles, [rows / 16][slots / 16][16][16] slots; a sub-block of K is [slots / 16] tiles as it lies in the cache; V
// is packed in panels of 16 columns, so that 16 slots of a panel are a tile; scores, P and O are tiles, too. All of them have room
// for whole tiles of rows; what is in the rows beyond the last never reaches a result.

#define TILE_LOAD_ROWS(TILE, BASE, STRIDE)                                                                             \
    __asm__ volatile("tileloadd (%0, %1, 1), %%tmm" #TILE ::"r"(BASE), "r"((int64_t)(STRIDE)) : "memory")
#define TILE_STORE_ROWS(TILE, BASE, STRIDE)                                                                            \
    __asm__ volatile("tilestored %%tmm" #TILE ", (%0, %1, 1)" ::"r"(BASE), "r"((int64_t)(STRIDE)) : "memory")
#define TILE_LOAD(TILE, BASE) TILE_LOAD_ROWS(TILE, BASE, 64)
#define TILE_STORE(TILE, BASE) TILE_STORE_ROWS(TILE, BASE, 64)
#define TILE_ZERO(TILE) __asm__ volatile("tilezero %%tmm" #TILE ::: "memory")
#define TILE_DOT(SUM, A, B) __asm__ volatile("tdpbf16ps %%tmm" #B ", %%tmm" #A ", %%tmm" #SUM ::: "memory")

struct __attribute__((packed)) tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static void shape_tiles(const struct tile_shapes *shapes) { __asm__ volatile("ldtilecfg %0" ::"m"(*shapes) : "memory"); }

static void tiles_begin(void) {
    struct tile_shapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.row_bytes[i] = 64;
        shapes.rows[i] = 16;
    }
    shape_tiles(&shapes);
}

static void tiles_end(void) { __asm__ volatile("tilerelease" ::: "memory"); }

// Loads that pass by the first-level cache, which is for the scores: K and V come from the second level once for each block of rows.
#define TILE_STREAM_ROWS(TILE, BASE, STRIDE)                                                                           \
    __asm__ volatile("tileloaddt1 (%0, %1, 1), %%tmm" #TILE ::"r"(BASE), "r"((int64_t)(STRIDE)) : "memory")
#define TILE_STREAM(TILE, BASE) TILE_STREAM_ROWS(TILE, BASE, 64)

// One step, 16 slots of 32 rows and of two tiles of columns, added to tiles 0..3.
INLINE void multiply_tiles(const void *rows0, const void *rows1, const int32_t *columns0, const int32_t *columns1) {
    TILE_LOAD(4, rows0);
    TILE_STREAM(6, columns0);
    TILE_DOT(0, 4, 6);
    TILE_LOAD(5, rows1);
    TILE_DOT(2, 5, 6);
    TILE_STREAM(7, columns1);
    TILE_DOT(1, 4, 7);
    TILE_DOT(3, 5, 7);
}

// The same for one tile of columns, added to tiles 0 and 2.
INLINE void multiply_tiles_narrow(const void *rows0, const void *rows1, const int32_t *columns) {
    TILE_STREAM(6, columns);
    TILE_LOAD(4, rows0);
    TILE_LOAD(5, rows1);
    TILE_DOT(0, 4, 6);
    TILE_DOT(2, 5, 6);
}

INLINE void clear_tiles(void) {
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
}

// Tiles of 32 rows, and of the same rows' next columns.
INLINE void load_sums(const float *s) {
    TILE_LOAD(0, s);
    TILE_LOAD(1, s + 512);
    TILE_LOAD(2, s + 256);
    TILE_LOAD(3, s + 768);
}

INLINE void store_sums(float *s) {
    TILE_STORE(0, s);
    TILE_STORE(1, s + 512);
    TILE_STORE(2, s + 256);
    TILE_STORE(3, s + 768);
}

INLINE void load_sums_narrow(const float *s) {
    TILE_LOAD(0, s);
    TILE_LOAD(2, s + 256);
}

INLINE void store_sums_narrow(float *s) {
    TILE_STORE(0, s);
    TILE_STORE(2, s + 256);
}
