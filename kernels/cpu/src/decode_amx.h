// SPDX-License-Identifier: Apache-2.0
// The two products for few rows on matrix tiles. 32 dimensions of sixteen keys are a tile as they lie in the cache, and so are sixteen
// columns of sixteen tokens of V, whose pairs of tokens are a row of V apart. One-byte types are widened a step ahead of the tile that
// needs them. What the vector units are left with is the softmax, so that memory sets the pace.

// Tiles 0 and 1: sums. 2: 32 dimensions of the queries. 3: 16 of them, or probabilities of 16 keys. 4: K, 32 dimensions of 16 keys.
// 5: 16 of them. 6 and 7: V, 16 columns of 16 keys.
static void few_tiles_begin(int rows) {
    const uint8_t some = (uint8_t)rows;
    const struct tile_shapes shapes = {
        .palette = 1,
        .row_bytes = {64, 64, 64, 32, 64, 64, 64, 64},
        .rows = {some, some, some, some, 16, 8, 8, 8},
    };
    shape_tiles(&shapes);
}

// Where a step widens to: another place each time, since its tiles are loaded while the next one is stored.
static uint16_t *wide_step(const struct work *w, int step) {
    return (uint16_t *)(w->scratch + w->plan->wide) + step % WIDE_STEPS * WIDE_ELEMENTS;
}

// 64 elements
INLINE void widen_line(const int type, const void *from, uint16_t *to) {
    if (type == I8) {
        _mm512_storeu_si512(to, load_bf16_pairs(type, from, 0));
        _mm512_storeu_si512(to + 32, load_bf16_pairs(type, from, 32));
    } else {
        widen_by_table(type == E4M3 ? &e4m3_bytes : &e5m2_bytes, from, 64, to);
    }
}

// Of a tile's K in steps of 32 dimensions of a sub-block, the last of a sub-block may have 16: where one is as bfloat16.
INLINE const char *k_step(const int type, const struct work *w, const struct decode_tile *tile, int step, struct ahead *ahead) {
    const int head_size = w->plan->head_k;
    const int steps = (head_size + 31) / 32;
    const int d = step % steps * 32;
    const int elements = smaller(32, head_size - d) * 16;
    const char *from = (const char *)tile->k[step / steps] + (int64_t)d * 16 * element_bytes(type);
    for (int i = 0; i < elements * element_bytes(type); i += 256) {
        ask(ahead, 4);
    }
    if (type == BF16) {
        return from;
    }
    uint16_t *to = wide_step(w, step);
    for (int i = 0; i < elements; i += 64) {
        widen_line(type, from + i, to + i);
    }
    return (const char *)to;
}

INLINE void few_scores_typed(const int type, const struct work *w, const struct decode_tile *tile, struct ahead *ahead) {
    const int head_size = w->plan->head_k;
    const int64_t q_stride = (int64_t)head_size * 2;
    const char *k = k_step(type, w, tile, 0, ahead);
    int step = 0;
    for (int j = 0; j < DECODE_SUB_BLOCKS; j++) {
        TILE_ZERO(0);
        for (int d = 0; d < head_size; d += 32, step++) {
            const char *now = k;
            if (d + 32 < head_size || j + 1 < DECODE_SUB_BLOCKS) {
                k = k_step(type, w, tile, step + 1, ahead);
            }
            const char *q = (const char *)w->q + d * 2;
            if (d + 32 <= head_size) {
                TILE_LOAD_ROWS(2, q, q_stride);
                TILE_STREAM(4, now);
                TILE_DOT(0, 2, 4);
            } else {
                TILE_LOAD_ROWS(3, q, q_stride);
                TILE_STREAM(5, now);
                TILE_DOT(0, 3, 5);
            }
        }
        TILE_STORE_ROWS(0, w->s + j * 16, w->plan->s_stride * 4);
    }
}

// 16 tokens and 32 columns of V, or 16, as bfloat16: rows of pairs, and how far they are apart.
struct v_step {
    const char *rows;
    int64_t stride;
};

INLINE struct v_step v_step(const int type, const int columns, const struct work *w, const void *v, int64_t column, int step,
                            struct ahead *ahead) {
    const int64_t stride = (int64_t)w->plan->head_v * 2 * element_bytes(type);
    const char *from = (const char *)v + column * 2 * element_bytes(type);
    for (int i = 0; i < 16 * columns * element_bytes(type); i += 256) {
        ask(ahead, 4);
    }
    if (type == BF16) {
        return (struct v_step){from, stride};
    }
    uint16_t *to = wide_step(w, step);
    UNROLL for (int t = 0; t < 8; t++) {
        if (columns == 32) {
            widen_line(type, from + t * stride, to + t * 64);
        } else {
            _mm512_storeu_si512(to + t * 64, load_bf16_pairs(type, from + t * stride, 0));
        }
    }
    return (struct v_step){(const char *)to, 128};
}

// o[rows][columns] += p . v
INLINE void few_columns(const int type, const int columns, const struct work *w, const struct decode_tile *tile, int count, int64_t column,
                        struct ahead *ahead) {
    const int64_t stride = w->plan->padded_v * 4;
    float *o = w->o + column;
    struct v_step v = v_step(type, columns, w, tile->v[0], column, 0, ahead);
    TILE_LOAD_ROWS(0, o, stride);
    if (columns == 32) {
        TILE_LOAD_ROWS(1, o + 16, stride);
    }
    for (int j = 0; j < count; j++) {
        const struct v_step now = v;
        if (j + 1 < count) {
            v = v_step(type, columns, w, tile->v[j + 1], column, j + 1, ahead);
        }
        TILE_LOAD_ROWS(3, (const char *)w->s + j * 32, w->plan->s_stride * 4);
        TILE_STREAM_ROWS(6, now.rows, now.stride);
        TILE_DOT(0, 3, 6);
        if (columns == 32) {
            TILE_STREAM_ROWS(7, now.rows + 64, now.stride);
            TILE_DOT(1, 3, 7);
        }
    }
    TILE_STORE_ROWS(0, o, stride);
    if (columns == 32) {
        TILE_STORE_ROWS(1, o + 16, stride);
    }
}

INLINE void few_values_typed(const int type, const struct work *w, const struct decode_tile *tile, struct ahead *ahead, int count) {
    int64_t column = 0;
    for (; column + 32 <= w->plan->head_v; column += 32) {
        few_columns(type, 32, w, tile, count, column, ahead);
    }
    if (column < w->plan->head_v) {
        few_columns(type, 16, w, tile, count, column, ahead);
    }
}

static void few_scores_on_tiles(const struct work *w, const struct decode_tile *tile, struct ahead *ahead) {
    switch (w->params->cache.dtype) {
    case BF16: few_scores_typed(BF16, w, tile, ahead); break;
    case E4M3:
    case E4M3_PTH: few_scores_typed(E4M3, w, tile, ahead); break;
    case E5M2: few_scores_typed(E5M2, w, tile, ahead); break;
    default: few_scores_typed(I8, w, tile, ahead); break;
    }
}

static void few_values_on_tiles(const struct work *w, const struct decode_tile *tile, struct ahead *ahead, int count) {
    const struct plan *plan = w->plan;
    for (int r = 0; r < w->rows; r++) {
        float *o = w->o + (int64_t)r * plan->padded_v;
        const float factor = w->correction[r];
        for (int i = 0; factor != 1 && i < plan->padded_v; i += LANES) {
            vf_store(o + i, vf_mul(vf_load(o + i), vf_set(factor)));
        }
    }
    switch (w->params->cache.dtype) {
    case BF16: few_values_typed(BF16, w, tile, ahead, count); break;
    case E4M3:
    case E4M3_PTH: few_values_typed(E4M3, w, tile, ahead, count); break;
    case E5M2: few_values_typed(E5M2, w, tile, ahead, count); break;
    default: few_values_typed(I8, w, tile, ahead, count); break;
    }
}
