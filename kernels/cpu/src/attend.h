// SPDX-License-Identifier: Apache-2.0
// Walks one work item: tiles of keys against all rows of the item, a row being one query token and one head of the
// group. Few rows read the cache directly (decode.h); many rows use register tiles on K and V as they lie in the cache
// where the types allow, or on a copy in the scratch (expand.h).

#define TILE_TOKENS 256
// Rows of an item, where one token's heads are not already more: they share each tile of K and V. On matrix tiles and without.
#define MOST_ROWS(TILES) ((TILES) ? 512 : 384)
// Rows that pass through the scores at a time, likewise.
#define BLOCK_ROWS(TILES) ((TILES) ? 32 : 48)
// Products of slots that one step of a loop makes: of a register tile, or of four matrix tiles.
#define PRODUCTS_OF_A_STEP(TILES) ((TILES) ? 32 * 32 * 16 : TILE_ROWS * TILE_SUB_BLOCKS * 16)
// Taken off the scores of a row that has seen none on matrix tiles, so that any is far above.
#define NO_MAXIMUM -3.4e38f
// One-byte elements that few rows on matrix tiles widen at a time, and how many times the results stay.
#define WIDE_ELEMENTS 512
#define WIDE_STEPS 4

struct plan {
    int group;
    int head_k;
    int head_v;
    int padded_v; // head_v as the kernels see it: a multiple of 16
    int slots_k;  // of a row of q and of a sub-block of K
    int in_bf16; // queries and probabilities are bfloat16, else floats
    int tiles;   // many rows go through matrix tiles
    int direct_k;    // register tiles on the cache itself
    int direct_v;    // rows of V in the cache are rows of slots
    int block_tokens; // query tokens of a block of rows
    int block_rows;   // room for them in q, s and o
    int can_decode;  // few rows may read the cache directly
    int few_on_tiles; // and go through matrix tiles, too
    int tile_tokens; // keys of a tile
    int64_t v_slots; // of a panel of V
    // The scratch, by use; the offsets of its parts.
    int64_t q, o, s, s_stride, maximum, sum, shift, factor, key_first, key_last, p, k_scales, v_scales, tail, k, v, v_rows, wide, size;
};

static int bf16_arithmetic(const bifocal_cpu_params *p) {
    const int type = p->cache.dtype;
    return HAS_DOT && p->q_dtype == BF16 && type != F32 && type != F16;
}

static int on_matrix_tiles(const bifocal_cpu_params *p) { return HAS_TILES && bf16_arithmetic(p); }

static int most_tokens(const bifocal_cpu_params *p) {
    return larger(1, MOST_ROWS(on_matrix_tiles(p)) / (p->num_q_heads / p->cache.num_kv_heads));
}

// So many that most rows of a block of 32 or 64 are in use.
static int tokens_of_block(int group, int tiles) {
    const int rows = BLOCK_ROWS(tiles);
    return larger(1, (tiles && rows / group * group < rows - 4 ? 2 * rows : rows) / group);
}

static int64_t part(int64_t *size, int64_t bytes) {
    const int64_t at = *size;
    *size += round_up(bytes, 64);
    return at;
}

static struct plan make_plan(const bifocal_cpu_params *p) {
    struct plan n;
    const bifocal_cpu_cache *c = &p->cache;
    n.group = p->num_q_heads / c->num_kv_heads;
    n.head_k = c->head_size_k;
    n.head_v = c->head_size_v;
    n.padded_v = (int)round_up(n.head_v, 16);
    n.in_bf16 = bf16_arithmetic(p);
    n.tiles = on_matrix_tiles(p);
    // Matrix tiles are 16 slots wide.
    n.slots_k = n.tiles ? (n.head_k + 31) / 32 * 16 : n.in_bf16 ? n.head_k / 2 : n.head_k;
    n.direct_k = c->dtype == (n.in_bf16 ? BF16 : F32) && (!n.tiles || n.head_k % 32 == 0);
    n.direct_v = c->dtype == (n.in_bf16 ? BF16 : F32) && n.padded_v == n.head_v;
    n.can_decode = n.padded_v == n.head_v;
    n.few_on_tiles = n.can_decode && n.tiles && n.head_k % 16 == 0;
    const int widest = larger(n.head_k, n.padded_v);
    n.tile_tokens = widest <= 256 ? TILE_TOKENS : TILE_TOKENS / 2;
    n.block_tokens = tokens_of_block(n.group, n.tiles);
    n.block_rows = n.block_tokens * n.group;
    n.block_rows = n.tiles ? (int)round_up(n.block_rows, 32) : n.block_rows;
    n.s_stride = n.tile_tokens + 16;
    n.size = 0;
    const int64_t tokens = most_tokens(p);
    const int64_t rows = (tokens + n.block_tokens - 1) / n.block_tokens * n.block_rows;
    n.q = part(&n.size, rows * larger(n.slots_k, n.head_k / (n.in_bf16 ? 2 : 1)) * 4);
    n.o = part(&n.size, rows * n.padded_v * 4);
    n.s = part(&n.size, larger(n.block_rows, 2 * DECODE_ROWS) * larger((int)n.s_stride, 2 * (64 + 16)) * 4);
    n.p = part(&n.size, n.tiles ? 2 * n.block_rows * (int64_t)TILE_TOKENS * 2 : 0);
    // Per row, with room for a whole vector behind the last.
    const int64_t each = tokens * n.group + LANES;
    n.maximum = part(&n.size, each * 4);
    n.sum = part(&n.size, each * LANES * 4);
    n.shift = part(&n.size, each * 4);
    n.factor = part(&n.size, each * 4);
    n.key_first = part(&n.size, tokens * 4);
    n.key_last = part(&n.size, tokens * 4);
    n.k_scales = part(&n.size, (n.tile_tokens + 64) * 4);
    n.v_scales = part(&n.size, (n.tile_tokens + 64) * 4);
    n.tail = part(&n.size, 16 * (int64_t)n.padded_v * 4);
    n.k = part(&n.size, n.direct_k ? 0 : (int64_t)n.tile_tokens * n.slots_k * 4);
    n.v_slots = (n.tile_tokens + 16) / (n.in_bf16 ? 2 : 1);
    n.v = part(&n.size, n.v_slots * n.padded_v * 4);
    n.v_rows = part(&n.size, n.direct_v ? 0 : 16 * (int64_t)n.padded_v * 4);
    n.wide = part(&n.size, n.few_on_tiles ? WIDE_STEPS * WIDE_ELEMENTS * 2 : 0);
    return n;
}

// What the rows of a block see: some of them keys first..end-1, all of them highest_first..lowest_end-1.
struct block_keys {
    int first, end;
    int highest_first, lowest_end;
};

// One item, or a part of it with few enough query tokens, while it is computed.
struct work {
    const bifocal_cpu_params *params;
    const bifocal_cpu_item *item;
    const struct plan *plan;
    char *scratch;
    int first_token; // of the item's tokens
    int tokens;
    int rows;
    int few; // rows: the cache is read directly
    int in_bf16; // queries and probabilities of this part
    int first_key; // of all rows, multiple of 16
    int end_key;
    float factor;
    int transformed;
    struct transform transform;
    uint32_t started; // bits of blocks of rows whose queries are packed; on matrix tiles, that have something in o
    void *q;
    float *o, *s, *maximum, *sum, *shift, *correction;
    struct block_keys block_keys[32]; // a bit of `started` each
    int32_t *key_first, *key_last; // per token, inclusive; none visible: first > last
};

static const int32_t *blocks_of(const struct work *w) {
    return w->params->block_table + (int64_t)w->item->request * w->params->block_table_stride;
}

static const char *sub_block(const struct work *w, const void *base, int64_t block_stride, int64_t head_stride,
                             int64_t head_size, int token) {
    const bifocal_cpu_cache *c = &w->params->cache;
    const int64_t block = blocks_of(w)[token / c->block_size];
    return bytes_at(base, block * block_stride + w->item->kv_head * head_stride +
                              token % c->block_size * head_size * element_bytes(c->dtype));
}

static const char *sub_block_k(const struct work *w, int token) {
    const bifocal_cpu_cache *c = &w->params->cache;
    return sub_block(w, c->k, c->k_block_stride, c->k_head_stride, c->head_size_k, token);
}

static const char *sub_block_v(const struct work *w, int token) {
    const bifocal_cpu_cache *c = &w->params->cache;
    return sub_block(w, c->v, c->v_block_stride, c->v_head_stride, c->head_size_v, token);
}

static int clip(int64_t x, int64_t low, int64_t high) { return (int)(x < low ? low : x > high ? high : x); }

// Which keys each token sees, and which any of them sees.
static void find_keys(struct work *w) {
    const bifocal_cpu_params *p = w->params;
    const bifocal_cpu_item *it = w->item;
    const int begin = it->key_begin;
    const int end = smaller(it->key_end, it->key_len);
    int first = INT32_MAX;
    int last = -1;
    for (int i = 0; i < w->tokens; i++) {
        const int64_t position = (int64_t)it->position + w->first_token + i;
        int64_t lo = it->left_window < 0 ? 0 : position - it->left_window;
        int64_t hi = it->right_window < 0 ? (int64_t)it->key_len - 1 : position + it->right_window;
        if (p->key_first) {
            lo = p->key_first[(int64_t)it->query_first + w->first_token + i];
            hi = p->key_last[(int64_t)it->query_first + w->first_token + i];
        }
        w->key_first[i] = clip(lo, begin, INT32_MAX);
        w->key_last[i] = clip(hi, -1, (int64_t)end - 1);
        if (w->key_first[i] <= w->key_last[i]) {
            first = smaller(first, w->key_first[i]);
            last = larger(last, w->key_last[i]);
        }
    }
    w->first_key = first > last ? 0 : first / 16 * 16;
    w->end_key = last + 1;
}

// Where the rows of a token lie in q and o.
static int64_t place_of(const struct plan *plan, int token) {
    return (int64_t)(token / plan->block_tokens) * plan->block_rows + token % plan->block_tokens * plan->group;
}

// One row of bfloat16 to its places in tiles of 16 rows and 16 slots.
static void pack_tile_row(const uint16_t *from, int n, int steps, int64_t row, int32_t *q) {
    int32_t *to = q + (row / 16 * steps * 256 + row % 16 * 16);
    int i = 0;
    for (; i < n / 32; i++) {
        for (int j = 0; j < 16; j += LANES) {
            vf_store((float *)to + i * 256 + j, vf_load((const float *)(from + i * 32) + j));
        }
    }
    if (i < steps) {
        const int exist = n - i * 32;
        memcpy(to + i * 256, from + i * 32, (size_t)exist * 2);
        memset((uint16_t *)(to + i * 256) + exist, 0, (size_t)(32 - exist) * 2);
    }
}

// The queries of a token that belong to the item's group.
static const void *queries_of(const struct work *w, int token) {
    const bifocal_cpu_params *p = w->params;
    const int64_t row = (int64_t)w->item->query_first + w->first_token + token;
    const int64_t at = row * p->q_token_stride + (int64_t)w->item->kv_head * w->plan->group * w->plan->head_k;
    return bytes_at(p->q, at * element_bytes(p->q_dtype));
}

static void pack_queries(struct work *w, int first, int count) {
    const bifocal_cpu_params *p = w->params;
    const int n = w->plan->head_k;
    const int64_t width = (int64_t)w->plan->group * n;
    for (int i = first; i < first + count; i++) {
        const void *from = queries_of(w, i);
        const int64_t row = place_of(w->plan, i);
        if (w->plan->tiles && !w->few) {
            for (int g = 0; g < w->plan->group; g++) {
                pack_tile_row((const uint16_t *)from + (int64_t)g * n, n, w->plan->slots_k / 16, row + g, w->q);
            }
        } else if (w->in_bf16) {
            memcpy((uint16_t *)w->q + row * n, from, (size_t)width * 2);
        } else {
            to_floats(p->q_dtype, from, width, (float *)w->q + row * n);
        }
    }
}

// Token scales of a tile lie behind the elements of their block. Places behind the last key become 0.
static void gather_scales(const struct work *w, const void *base, int64_t block_stride, int64_t head_stride, int64_t head_size,
                          int from, int n, float *to) {
    const bifocal_cpu_cache *c = &w->params->cache;
    for (int i = 0; i < n; i += 16) {
        const int token = from + i;
        const int64_t block = blocks_of(w)[token / c->block_size];
        const char *scales = bytes_at(base, block * block_stride + w->item->kv_head * head_stride + c->block_size * head_size +
                                                token % c->block_size * 4);
        const int exist = smaller(16, w->item->key_len - token);
        memcpy(to + i, scales, (size_t)exist * 4);
        memset(to + i + exist, 0, (size_t)(16 - exist) * 4);
    }
    memset(to + round_up(n, 16), 0, 192); // probabilities come in steps of up to 64
}

// Copies a sub-block of V of which only some tokens exist, with zeros for the others.
static const void *clean_tail(const struct work *w, const void *v, int exist) {
    const int bytes = element_bytes(w->params->cache.dtype);
    const int64_t n = w->plan->head_v;
    char *to = w->scratch + w->plan->tail;
    const int pairs = pair_width(w->params->cache.dtype);
    const int whole = exist / pairs * pairs;
    memcpy(to, v, (size_t)(whole * n * bytes));
    memset(to + whole * n * bytes, 0, (size_t)((16 - whole) * n * bytes));
    if (whole < exist) {
        for (int64_t d = 0; d < n; d++) {
            const int64_t at = (whole * n + 2 * d) * bytes;
            memcpy(to + at, bytes_at(v, at), (size_t)bytes);
        }
    }
    return to;
}

// Places of a tile of n keys from `from` on that a token sees.
struct range {
    int first, end;
};

static struct range seen(const struct work *w, int token, int from, int n) {
    return (struct range){larger(w->key_first[token] - from, 0), smaller(w->key_last[token] + 1 - from, n)};
}

// Rows first_row..first_row+rows-1, whose scores begin at w->s; n keys, the first of them `from`.
static void softmax_rows(struct work *w, int first_row, int rows, int from, int n, const float *k_scales, const float *v_scales) {
    const struct plan *plan = w->plan;
    const int padded = (int)round_up(n, 16);
    const int step = SOFTMAX_STEP(w->in_bf16);
    struct transform transform = w->transform;
    transform.token_scales = k_scales;
    const struct row_state state = {w->maximum + first_row, w->sum + (int64_t)first_row * LANES, w->shift + first_row, w->correction + first_row};
    for (int r = 0; r < rows; r++) {
        const int token = (first_row + r) / plan->group;
        float *s = w->s + r * plan->s_stride;
        const struct range k = seen(w, token, from, n);
        if (k.first >= k.end) {
            state.shift[r] = -INFINITY;
            continue;
        }
        if (w->transformed) {
            const float *slopes = w->params->alibi_slopes;
            transform.slope = slopes ? slopes[w->item->kv_head * plan->group + (first_row + r) % plan->group] : 0;
            const int64_t position = (int64_t)w->item->position + w->first_token + token;
            transform_row(&transform, s, k.first / LANES * LANES, k.end, (float)(from - position));
        }
        mask_edges(step, s, k.first, k.end);
        const int begin = k.first / step * step;
        state.shift[r] = highest_of(s + begin, (k.end + step - 1) / step * step - begin);
    }
    update_rows(&state, rows, w->factor);
    for (int r = 0; r < rows; r++) {
        float *s = w->s + r * plan->s_stride;
        const struct range k = seen(w, (first_row + r) / plan->group, from, n);
        if (k.first >= k.end) {
            memset(s, 0, (size_t)padded * (w->in_bf16 ? 2 : 4));
        } else if (w->in_bf16) {
            softmax_row(1, s, padded, k.first, k.end, w->factor, v_scales, &state, r);
        } else {
            softmax_row(0, s, padded, k.first, k.end, w->factor, v_scales, &state, r);
        }
    }
}

static int output_type(const struct work *w) { return w->item->partial_row >= 0 ? F32 : w->params->out_dtype; }

// Where the heads of the item's group belong, for one token.
static char *output_of(const struct work *w, int token) {
    const bifocal_cpu_params *p = w->params;
    const int64_t width = (int64_t)w->plan->group * w->plan->head_v;
    if (w->item->partial_row >= 0) {
        return (char *)(p->partial_out + w->item->partial_row * w->plan->head_v + (w->first_token + token) * width);
    }
    const int64_t row = (int64_t)w->item->query_first + w->first_token + token;
    return (char *)p->out + (row * p->out_token_stride + w->item->kv_head * width) * element_bytes(p->out_dtype);
}

// What O of a row is to be multiplied by. Writes the row's LSE where one is wanted.
static float finish_sum(const struct work *w, int r) {
    const bifocal_cpu_params *p = w->params;
    const bifocal_cpu_item *it = w->item;
    const struct plan *plan = w->plan;
    const bifocal_cpu_cache *c = &p->cache;
    const float v_scale = c->v_scale && !has_token_scales(c->dtype) ? c->v_scale[(int64_t)it->kv_head * c->scale_stride] : 1;
    const int head = it->kv_head * plan->group + r % plan->group;
    float maximum = w->maximum[r];
    float sum = vf_reduce_add(vf_load(w->sum + (int64_t)r * LANES));
    float weight = 1;
    if (p->sinks && it->partial_row < 0) {
        const float sink = p->sinks[head] * LOG2E;
        const float highest = sink > maximum ? sink : maximum;
        if (highest != -INFINITY) {
            weight = exp2f(maximum - highest);
            sum = sum * weight + exp2f(sink - highest);
            maximum = highest;
        }
    }
    float *lse = 0;
    if (it->partial_row >= 0) {
        lse = p->partial_lse + it->partial_row + (int64_t)w->first_token * plan->group + r;
    } else if (p->lse) {
        lse = p->lse + ((int64_t)it->query_first + w->first_token + r / plan->group) * p->lse_token_stride + head;
    }
    if (lse) {
        *lse = sum != 0 ? maximum * LN2 + logf(sum) : -INFINITY;
    }
    return sum != 0 ? weight / sum * v_scale : 0;
}

// A row of O, times a factor, from where it lies among matrix tiles.
static void write_tile_row(const struct work *w, int64_t row, float factor, char *out) {
    const int64_t head = w->plan->head_v;
    const int type = output_type(w);
    const float *o = w->o + row / 32 * 32 * w->plan->padded_v + row % 32 * 16;
    const vf f = vf_set(factor);
    int64_t i = 0;
    for (; type == BF16 && i + 32 <= head; i += 32) {
        vf_store_bf16_pair((uint16_t *)out + i, vf_mul(vf_load(o + i * 32), f), vf_mul(vf_load(o + i * 32 + 512), f));
    }
    for (; i < head; i += 16) {
        from_floats(type, o + i * 32, smaller(16, (int)(head - i)), factor, out + i * element_bytes(type));
    }
}

// Divides by the sums and writes the rows to where the item says.
static void finish_rows(struct work *w) {
    const struct plan *plan = w->plan;
    for (int r = 0; r < w->rows; r++) {
        const float factor = finish_sum(w, r);
        const int64_t row = place_of(plan, r / plan->group) + r % plan->group;
        char *out = output_of(w, r / plan->group) + (int64_t)(r % plan->group) * plan->head_v * element_bytes(output_type(w));
        if (HAS_TILES && plan->tiles && !w->few) {
            write_tile_row(w, row, factor, out);
        } else {
            from_floats(output_type(w), w->o + row * plan->padded_v, plan->head_v, factor, out);
        }
    }
}

static void tile_scales(const struct work *w, int from, int n, const float **k_scales, const float **v_scales) {
    const bifocal_cpu_cache *c = &w->params->cache;
    *k_scales = *v_scales = 0;
    if (has_token_scales(c->dtype)) {
        float *k = (float *)(w->scratch + w->plan->k_scales);
        float *v = (float *)(w->scratch + w->plan->v_scales);
        gather_scales(w, c->k, c->k_block_stride, c->k_head_stride, c->head_size_k, from, n, k);
        gather_scales(w, c->v, c->v_block_stride, c->v_head_stride, c->head_size_v, from, n, v);
        *k_scales = k;
        *v_scales = v;
    }
}

// The sub-blocks of a tile of keys as the register tiles read them.
struct tile {
    const int32_t *k[TILE_TOKENS / 16];
    int32_t *v; // panels
};

static void load_keys(const struct work *w, int from, int count, struct tile *tile) {
    const struct plan *plan = w->plan;
    const int type = w->params->cache.dtype;
    for (int j = 0; j < count; j++) {
        const void *k = sub_block_k(w, from + j * 16);
        if (!plan->direct_k) {
            int32_t *to = (int32_t *)(w->scratch + plan->k) + (int64_t)j * plan->slots_k * 16;
            if (plan->in_bf16) {
                expand_k_bf16(type, k, plan->head_k, (uint16_t *)to);
                memset(to + plan->head_k * 8, 0, (size_t)(plan->slots_k - plan->head_k / 2) * 64);
            } else {
                expand_k_float(type, k, plan->head_k, (float *)to);
            }
            k = to;
        }
        tile->k[j] = k;
    }
}

static void load_values(const struct work *w, int from, int count, const struct tile *tile) {
    const struct plan *plan = w->plan;
    const int type = w->params->cache.dtype;
    const int slots = plan->in_bf16 ? 8 : 16; // of V in a sub-block
    for (int j = 0; j < count; j++) {
        const int token = from + j * 16;
        const int exist = smaller(16, w->item->key_len - token);
        const void *v = sub_block_v(w, token);
        if (!plan->direct_v) {
            void *to = w->scratch + plan->v_rows;
            if (plan->in_bf16) {
                expand_v_bf16(type, v, plan->head_v, plan->padded_v, exist, to);
            } else {
                expand_v_float(type, v, plan->head_v, plan->padded_v, exist, to);
            }
            v = to;
        } else if (exist < 16) {
            v = clean_tail(w, v, exist);
        }
        to_panels(v, slots, plan->padded_v, plan->tiles ? 16 : PANEL_VECTORS * LANES, tile->v, plan->v_slots, (int64_t)j * slots);
    }
    if (plan->tiles) {
        // A matrix tile may reach half over the end; what P's zeros meet there must be a number.
        for (int64_t column = 0; column < plan->padded_v; column += 16) {
            memset(tile->v + column * plan->v_slots + (int64_t)count * 8 * 16, 0, 8 * 64);
        }
    }
}

#if HAS_TILES
#include "attend_amx.h"
#include "decode_amx.h"
#endif

static int tokens_at(const struct work *w, int from) { return smaller(w->plan->tile_tokens, larger(0, w->end_key - from)); }

static int block_count(const struct work *w) { return (w->tokens + w->plan->block_tokens - 1) / w->plan->block_tokens; }

// Queries of a block of rows, or where its output will be.
static void add_rows(const struct work *w, int block, int output, struct stream *s) {
    const struct plan *plan = w->plan;
    const bifocal_cpu_params *p = w->params;
    for (int i = block * plan->block_tokens; i < smaller((block + 1) * plan->block_tokens, w->tokens); i++) {
        if (output) {
            add_part(s, output_of(w, i), (int64_t)plan->group * plan->head_v * element_bytes(p->out_dtype));
        } else {
            add_part(s, queries_of(w, i), (int64_t)plan->group * plan->head_k * element_bytes(p->q_dtype));
        }
    }
}

// What to ask for while the tile at `from` is computed: queries of the blocks of rows that follow the first, the next tile, and behind
// the last tile the output.
static void look_ahead(const struct work *w, int from, struct stream *s) {
    const struct plan *plan = w->plan;
    const bifocal_cpu_cache *c = &w->params->cache;
    const int next = from + plan->tile_tokens;
    const int sub_blocks = (tokens_at(w, next) + 15) / 16;
    const int blocks = block_count(w);
    s->count = s->next = 0;
    s->taken = 0;
    for (int b = 0, j = 0; b < blocks; b++) {
        if (from == w->first_key && b + 1 < blocks) {
            add_rows(w, b + 1, 0, s);
        }
        for (; j < (b + 1) * sub_blocks / blocks; j++) {
            add_part(s, sub_block_k(w, next + j * 16), (int64_t)16 * plan->head_k * element_bytes(c->dtype));
            add_part(s, sub_block_v(w, next + j * 16), (int64_t)16 * plan->head_v * element_bytes(c->dtype));
        }
        if (sub_blocks == 0 && w->item->partial_row < 0) {
            add_rows(w, b, 1, s);
        }
    }
    int64_t bytes = 0;
    for (int i = 0; i < s->count; i++) {
        bytes += s->parts[i].bytes;
    }
    // Up to half of the last tile is behind a causal mask, and computes nothing.
    const int64_t products = (int64_t)w->rows * tokens_at(w, from) / (sub_blocks ? 1 : 2) * plan->slots_k;
    const int64_t pace = bytes / (products / PRODUCTS_OF_A_STEP(plan->tiles) + 1) + 1;
    s->pace = plan->tiles ? round_up(smaller(pace, 1024), 64) : smaller(pace, 64);
}

static void find_block_keys(struct work *w) {
    for (int i = 0; i < w->tokens; i++) {
        struct block_keys *k = w->block_keys + i / w->plan->block_tokens;
        if (i % w->plan->block_tokens == 0) {
            *k = (struct block_keys){.first = INT32_MAX, .lowest_end = INT32_MAX};
        }
        const int first = w->key_first[i];
        const int end = w->key_last[i] + 1;
        if (first < end) {
            k->first = smaller(k->first, first);
            k->end = larger(k->end, end);
        }
        k->highest_first = larger(k->highest_first, first);
        k->lowest_end = smaller(k->lowest_end, end);
    }
}

static void attend_tiles(struct work *w) {
    const struct plan *plan = w->plan;
    struct tile tile = {.v = (int32_t *)(w->scratch + plan->v)};
    struct stream later;
    find_block_keys(w);
#if HAS_TILES
    float *s = w->s;
    uint16_t *p = (uint16_t *)(w->scratch + plan->p);
    struct pipeline line = {.scores = {s, s + plan->block_rows * STRIP}, .p = {p, p + plan->block_rows * TILE_TOKENS}};
#endif
    for (int from = w->first_key; from < w->end_key; from += plan->tile_tokens) {
        const int n = tokens_at(w, from);
        load_keys(w, from, (n + 15) / 16, &tile);
        if (!plan->tiles) {
            load_values(w, from, (n + 15) / 16, &tile);
        }
        look_ahead(w, from, &later);
        const float *k_scales, *v_scales;
        tile_scales(w, from, n, &k_scales, &v_scales);
#if HAS_TILES
        int values = 0;
#endif
        for (int token = 0; token < w->tokens; token += plan->block_tokens) {
            const int tokens = smaller(plan->block_tokens, w->tokens - token);
            const struct block_keys *block_keys = w->block_keys + token / plan->block_tokens;
            const int first = larger(block_keys->first, from) / 16 * 16;
            const int end = smaller(block_keys->end, from + n);
            if (first >= end) {
                continue;
            }
            const int j = (first - from) / 16;
            const int count = (end - first + 15) / 16;
            const int row = token * plan->group;
            const int rows = tokens * plan->group;
            const int64_t place = place_of(plan, token);
            const int32_t *q = (const int32_t *)w->q + place * plan->slots_k;
            const int32_t *scores = (const int32_t *)w->s;
            float *o = w->o + place * plan->padded_v;
            const float *factor = w->correction + row;
            const float *block_k_scales = k_scales ? k_scales + j * 16 : 0;
            const float *block_v_scales = v_scales ? v_scales + j * 16 : 0;
            const uint32_t bit = 1u << token / plan->block_tokens;
            const int fresh = !(w->started & bit);
            if (fresh) {
                pack_queries(w, token, tokens);
            }
            w->started |= bit;
#if HAS_TILES
            if (plan->tiles) {
                if (line.before && line.before->o == o) { // the same rows, in the tile before
                    finish_pipeline(&line);
                }
                struct block *block = line.before == line.blocks ? line.blocks + 1 : line.blocks;
                *block = (struct block){
                    .w = w,
                    .state = {w->maximum + row, w->sum + (int64_t)row * LANES, w->shift + row, w->correction + row},
                    .row = row,
                    .rows = rows,
                    .first = first,
                    .end = end,
                    .steps = (count + 1) / 2,
                    .v = tile.v + j * 128,
                    .o = o,
                    .p = line.p[block - line.blocks],
                    .k_scales = block_k_scales,
                    .v_scales = block_v_scales,
                    .highest_first = block_keys->highest_first,
                    .lowest_end = block_keys->lowest_end,
                    .factor = w->factor,
                    .careful = block_v_scales != 0,
                    .fresh = fresh,
                };
                for (int r = 0; r < rows; r++) {
                    block->careful |= needs_rounding(block->state.maximum[r]);
                }
                attend_block(&line, block, q, tile.k + j, count, &later);
                if (!values) {
                    // Only now has the last block of the tile before met all of its V.
                    load_values(w, from, (n + 15) / 16, &tile);
                    values = 1;
                }
                continue;
            }
#endif
#if HAS_DOT
            if (plan->in_bf16) {
                qk_dot(q, plan->slots_k, rows, tile.k + j, count, plan->slots_k, w->s, plan->s_stride, &later);
                softmax_rows(w, row, rows, first, end - first, block_k_scales, block_v_scales);
                pv_dot(scores, plan->s_stride, rows, tile.v, plan->v_slots, j * 8, count * 8, plan->padded_v, factor, o, plan->padded_v);
                continue;
            }
#endif
            qk_float(q, plan->slots_k, rows, tile.k + j, count, plan->slots_k, w->s, plan->s_stride, &later);
            softmax_rows(w, row, rows, first, end - first, block_k_scales, block_v_scales);
            pv_float(scores, plan->s_stride, rows, tile.v, plan->v_slots, j * 16, count * 16, plan->padded_v, factor, o, plan->padded_v);
        }
#if HAS_TILES
        if (v_scales) { // of which there is one copy
            finish_pipeline(&line);
        }
#endif
    }
#if HAS_TILES
    finish_pipeline(&line);
#endif
}

// Pointers of the tile at `from`; columns beyond the last key repeat it and are masked.
static void decode_pointers(const struct work *w, int from, struct decode_tile *t) {
    for (int j = 0; j < DECODE_SUB_BLOCKS; j++) {
        const int token = smaller(from + j * 16, (w->end_key - 1) / 16 * 16);
        t->k[j] = sub_block_k(w, token);
        t->v[j] = sub_block_v(w, token);
    }
}

// Asks for the first line of each page of a tile two tiles ahead. Its lines are asked for one tile ahead, in order; what that order would
// wait for at every new page is its translation, because blocks follow no order.
static void touch_pages(const struct work *w, int from) {
    enum { PAGE = 4096 };
    struct decode_tile later;
    decode_pointers(w, from, &later);
    const int64_t bytes = 16 * element_bytes(w->params->cache.dtype);
    for (int j = 0; j < DECODE_SUB_BLOCKS; j++) {
        for (int64_t at = 0; at < bytes * w->plan->head_k; at += PAGE) {
            prefetch((const char *)later.k[j] + at);
        }
        for (int64_t at = 0; at < bytes * w->plan->head_v; at += PAGE) {
            prefetch((const char *)later.v[j] + at);
        }
    }
}

static const struct decode_functions *decode_functions_of(const struct work *w) {
#if HAS_DOT
    if (w->in_bf16) {
        return &decode_dot[w->params->cache.dtype];
    }
#endif
    return &decode_float[w->params->cache.dtype];
}

// s[rows][keys of the tile] = q . k
static void few_scores(struct work *w, const struct decode_tile *tile, struct ahead *ahead) {
    const struct plan *plan = w->plan;
#if HAS_TILES
    if (plan->few_on_tiles) {
        few_scores_on_tiles(w, tile, ahead);
        return;
    }
#endif
    const int64_t q_row = (int64_t)plan->head_k * (w->in_bf16 ? 2 : 4);
    for (int r = 0; r < w->rows; r += DECODE_ROWS) {
        const int rows = smaller(DECODE_ROWS, w->rows - r);
        decode_functions_of(w)->qk[rows - 1]((const char *)w->q + r * q_row, plan->head_k, tile, &ahead[r > 0], plan->head_k,
                                             w->s + r * plan->s_stride, plan->s_stride);
    }
}

// o[rows][head size] = o * correction + p . v over `count` sub-blocks.
static void few_values(struct work *w, const struct decode_tile *tile, struct ahead *ahead, int count) {
    const struct plan *plan = w->plan;
#if HAS_TILES
    if (plan->few_on_tiles) {
        few_values_on_tiles(w, tile, ahead, count);
        return;
    }
#endif
    const int64_t p_stride = plan->s_stride * 4 / (w->in_bf16 ? 2 : 4);
    for (int r = 0; r < w->rows; r += DECODE_ROWS) {
        const int rows = smaller(DECODE_ROWS, w->rows - r);
        decode_functions_of(w)->pv[rows - 1](w->s + r * plan->s_stride, p_stride, tile, &ahead[r > 0], count, plan->head_v,
                                             w->correction + r, w->o + (int64_t)r * plan->padded_v, plan->padded_v);
    }
}

static void attend_few(struct work *w) {
    const struct plan *plan = w->plan;
    const int type = w->params->cache.dtype;
    const int64_t k_bytes = (int64_t)16 * plan->head_k * element_bytes(type);
    const int64_t v_bytes = (int64_t)16 * plan->head_v * element_bytes(type);
    struct decode_tile tiles[2];
    struct ahead ahead[2]; // of the next tile; rows that come second ask for what is there
    int now = 0;
    if (w->first_key < w->end_key) {
        decode_pointers(w, w->first_key, &tiles[now]);
    }
    for (int from = w->first_key; from < w->end_key; from += DECODE_TOKENS, now ^= 1) {
        struct decode_tile *tile = &tiles[now];
        struct decode_tile *next = &tiles[now ^ 1];
        const int n = smaller(DECODE_TOKENS, w->end_key - from);
        const int count = (n + 15) / 16;
        if (from + DECODE_TOKENS < w->end_key) {
            decode_pointers(w, from + DECODE_TOKENS, next);
        } else {
            *next = *tile;
        }
        if (from + 2 * DECODE_TOKENS < w->end_key) {
            touch_pages(w, from + 2 * DECODE_TOKENS);
        }
        for (int pass = 0; pass < 2; pass++) {
            ahead_of(&ahead[pass], pass ? tile : next, k_bytes, v_bytes);
        }
        few_scores(w, tile, ahead);
        const float *k_scales, *v_scales;
        tile_scales(w, from, n, &k_scales, &v_scales);
        softmax_rows(w, 0, w->rows, from, n, k_scales, v_scales);
        const int last = from + (count - 1) * 16;
        if (w->item->key_len < last + 16) {
            tile->v[count - 1] = clean_tail(w, tile->v[count - 1], w->item->key_len - last);
        }
        few_values(w, tile, ahead, count);
    }
}

// O of blocks of rows that saw no key.
static void clear_untouched(struct work *w) {
    const struct plan *plan = w->plan;
    const size_t size = (size_t)plan->block_rows * (size_t)plan->padded_v;
    for (int i = 0; i * plan->block_tokens < w->tokens; i++) {
        if (!(w->started >> i & 1)) {
            memset(w->o + (size_t)i * size, 0, size * 4);
        }
    }
}

// Up to how many rows reading the cache directly is faster.
static int most_few_rows(const struct plan *plan) {
    return plan->few_on_tiles ? 16 : plan->tiles ? DECODE_ROWS : 2 * DECODE_ROWS;
}

static void attend_part(struct work *w) {
    const struct plan *plan = w->plan;
    w->rows = w->tokens * plan->group;
    find_keys(w);
    w->few = plan->can_decode && w->rows <= most_few_rows(plan);
    const int on_tiles = plan->tiles && !w->few;
    for (int r = 0; r < w->rows; r++) {
        w->maximum[r] = -INFINITY;
        w->shift[r] = on_tiles ? NO_MAXIMUM : 0;
        vf_store(w->sum + (int64_t)r * LANES, vf_zero());
    }
    w->started = 0;
    if (!on_tiles) {
        memset(w->o, 0, (size_t)block_count(w) * (size_t)plan->block_rows * (size_t)plan->padded_v * 4);
    }
    // Without tiles, processors that have them are slower at vdpbf16ps than at widening and multiplying floats.
    w->in_bf16 = plan->in_bf16 && !(plan->tiles && w->few && !plan->few_on_tiles);
#if HAS_TILES
    if (w->few && plan->few_on_tiles) {
        few_tiles_begin(w->rows);
    } else {
        tiles_begin();
    }
#endif
    if (w->first_key < w->end_key) {
        if (w->few) {
            pack_queries(w, 0, w->tokens);
            attend_few(w);
        } else {
            attend_tiles(w);
        }
    }
    if (on_tiles) {
        clear_untouched(w);
    }
    finish_rows(w);
}

static void attend(const bifocal_cpu_params *p, const bifocal_cpu_item *items, int64_t count, void *scratch) {
    const struct plan plan = make_plan(p);
    const bifocal_cpu_cache *c = &p->cache;
    char *at = scratch;
    struct work w = {
        .params = p,
        .plan = &plan,
        .scratch = at,
        .q = at + plan.q,
        .o = (float *)(at + plan.o),
        .s = (float *)(at + plan.s),
        .maximum = (float *)(at + plan.maximum),
        .sum = (float *)(at + plan.sum),
        .shift = (float *)(at + plan.shift),
        .correction = (float *)(at + plan.factor),
        .key_first = (int32_t *)(at + plan.key_first),
        .key_last = (int32_t *)(at + plan.key_last),
    };
    for (int64_t n = 0; n < count; n++) {
        w.item = items + n;
        const float k_scale = c->k_scale && !has_token_scales(c->dtype) ? c->k_scale[(int64_t)w.item->kv_head * c->scale_stride] : 1;
        const float scale = p->scale * k_scale;
        w.transformed = p->softcap != 0 || p->alibi_slopes || has_token_scales(c->dtype) || !(scale > 0);
        w.transform = (struct transform){.scale = scale, .softcap = p->softcap};
        w.factor = w.transformed ? LOG2E : scale * LOG2E;
        const int step = most_tokens(p);
        for (int i = 0; i < w.item->query_count; i += step) {
            w.first_token = i;
            w.tokens = smaller(step, w.item->query_count - i);
            attend_part(&w);
        }
#if HAS_TILES
        tiles_end();
#endif
    }
}
