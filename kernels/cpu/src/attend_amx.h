// SPDX-License-Identifier: Apache-2.0
// A block of rows against a tile of keys on matrix tiles.
//
// The keys pass in strips of 64, so that the scores stay in the first-level cache. While the scores of one strip are multiplied, the
// exponentials of the strip before run beside them: matrix unit and vector units work at the same time, because the
// instructions of both lie close together. Probabilities gather for the whole tile; then they meet V.
//
// The maximum of a row follows its scores lazily: it moves only when a score is 2^8 above it, for probabilities up to 256 are
// as good as those up to 1. So O is rescaled seldom.

#define STRIP 64
#define SCORES (STRIP + 16)             // floats of a row of scores
#define PROBABILITIES (TILE_TOKENS + 32) // bfloat16 of a row of probabilities
#define LAZY 8.0f

struct block {
    struct work *w;
    struct row_state state;
    int row, rows; // of the work; rows in use
    int first, end; // keys
    int steps;      // tiles of 16 slots of V in all
    const int32_t *v;
    float *o;
    float *scores[2];
    uint16_t *p;
    const float *k_scales, *v_scales;
    int lowest_end, highest_first; // keys that every row sees: highest_first..lowest_end-1
    int exact;
    int done; // strips that have met V
};

static float *scores_of(const struct block *b, int strip, int r) { return b->scores[strip & 1] + r * SCORES; }

// Probabilities of rows from..to-1.
INLINE void strip_exponentials(const int exact, const int scaled, const struct block *b, int strip, int from, int to) {
    const vf scale = vf_set(b->w->factor);
    for (int r = from; r < to; r++) {
        const float *s = scores_of(b, strip, r);
        uint16_t *p = b->p + r * PROBABILITIES + strip * STRIP;
        const vf minus = vf_set(-b->state.shift[r]);
        vf sum = vf_load(b->state.sum + r * LANES);
        vf more = vf_zero();
        UNROLL for (int i = 0; i < STRIP; i += 2 * LANES) {
            const vf raw0 = vf_load(s + i);
            const vf raw1 = vf_load(s + i + LANES);
            vf p0 = vf_exp2_coarse(exact ? vf_add(vf_mul(raw0, scale), minus) : vf_fma(raw0, scale, minus));
            vf p1 = vf_exp2_coarse(exact ? vf_add(vf_mul(raw1, scale), minus) : vf_fma(raw1, scale, minus));
            sum = vf_add(sum, p0);
            more = vf_add(more, p1);
            if (scaled) {
                p0 = vf_mul(p0, vf_load(b->v_scales + strip * STRIP + i));
                p1 = vf_mul(p1, vf_load(b->v_scales + strip * STRIP + i + LANES));
            }
            vf_store_bf16_pair(p + i, p0, p1);
        }
        vf_store(b->state.sum + r * LANES, vf_add(sum, more));
    }
}

static inline void strip_probabilities(const struct block *b, int strip, int from, int to) {
    if (b->exact) {
        if (b->v_scales) {
            strip_exponentials(1, 1, b, strip, from, to);
        } else {
            strip_exponentials(1, 0, b, strip, from, to);
        }
    } else if (b->v_scales) {
        strip_exponentials(0, 1, b, strip, from, to);
    } else {
        strip_exponentials(0, 0, b, strip, from, to);
    }
}

// Softcap, ALiBi and token scales; -inf for keys that a row does not see.
static void strip_logits(const struct block *b, int strip) {
    const struct work *w = b->w;
    const struct plan *plan = w->plan;
    const int from = b->first + strip * STRIP;
    const int n = smaller(STRIP, b->end - from);
    struct transform transform = w->transform;
    transform.token_scales = b->k_scales ? b->k_scales + strip * STRIP : 0;
    const vf none = vf_set(-INFINITY);
    for (int r = 0; r < b->rows; r++) {
        const int token = (b->row + r) / plan->group;
        float *s = scores_of(b, strip, r);
        struct range k = seen(w, token, from, n);
        k = k.first < k.end ? k : (struct range){0, 0};
        if (w->transformed && k.first < k.end) {
            const float *slopes = w->params->alibi_slopes;
            transform.slope = slopes ? slopes[w->item->kv_head * plan->group + (b->row + r) % plan->group] : 0;
            const int64_t position = (int64_t)w->item->position + w->first_token + token;
            transform_row(&transform, s, k.first / LANES * LANES, k.end, (float)(from - position));
        }
        for (int i = 0; i < STRIP; i += LANES) {
            const vf x = vf_first(clip(k.end - i, 0, LANES), vf_load(s + i), none);
            vf_store(s + i, vf_first(clip(k.first - i, 0, LANES), none, x));
        }
    }
}

// Lets the probabilities so far meet V.
static void use_probabilities(struct block *b, int strips) {
    const struct plan *plan = b->w->plan;
    const int from = b->done * (STRIP / 32);
    const int steps = smaller(strips * (STRIP / 32), b->steps) - from;
    if (steps > 0) {
        pv_tiles((const int32_t *)(b->p + from * 32), PROBABILITIES / 2, b->rows, b->v + from * 256, plan->v_slots, steps, plan->padded_v,
                 b->o, plan->padded_v);
    }
    b->done = strips;
}

static void move_maxima(struct block *b, int strip) {
    use_probabilities(b, strip);
    for (int r = 0; r < b->rows; r++) {
        b->state.shift[r] = highest_of(scores_of(b, strip, r), STRIP);
    }
    update_rows(&b->state, b->rows, b->w->factor);
    const int d = b->w->plan->padded_v;
    b->exact = 0;
    for (int r = 0; r < b->rows; r++) {
        b->exact |= !(fabsf(b->state.shift[r]) < 65536.0f);
        const float factor = b->state.factor[r];
        if (factor == 1) {
            continue;
        }
        const vf f = vf_set(factor);
        float *o = b->o + (int64_t)r * d;
        for (int i = 0; i < d; i += LANES) {
            vf_store(o + i, vf_mul(vf_load(o + i), f));
        }
        vf_store(b->state.sum + r * LANES, vf_mul(vf_load(b->state.sum + r * LANES), f));
    }
}

// Scores of a strip are there: make them logits, and see to the maxima.
static void strip_maxima(struct block *b, int strip) {
    const int from = b->first + strip * STRIP;
    if (b->w->transformed || from < b->highest_first || from + STRIP > smaller(b->lowest_end, b->end)) {
        strip_logits(b, strip);
    }
    const vf scale = vf_set(b->w->factor);
    __mmask16 above = 0;
    for (int r = 0; r < b->rows; r++) {
        const float *s = scores_of(b, strip, r);
        const vf x = vf_max(vf_max(vf_load(s), vf_load(s + 16)), vf_max(vf_load(s + 32), vf_load(s + 48)));
        above |= _mm512_cmp_ps_mask(vf_mul(x, scale), vf_set(b->state.maximum[r] + LAZY), _CMP_GT_OQ);
    }
    if (above) {
        move_maxima(b, strip);
    }
}

static void attend_block(struct block *b, const int32_t *q, const int32_t *const *k, int count, struct stream *later) {
    const int steps = b->w->plan->slots_k / 16;
    const int strips = (count + 3) / 4;
    const int all_steps = (b->rows + 31) / 32 * 2 * steps;
    const int share = (b->rows + all_steps - 1) / all_steps; // rows whose exponentials go beside one step
    for (int t = 0; t < strips; t++) {
        int at = t > 0 ? 0 : b->rows;
        for (int half = 0; half < 2; half++) {
            // Columns behind the last sub-block repeat it and are masked.
            const int32_t *k0 = k[smaller(t * 4 + half * 2, count - 1)];
            const int32_t *k1 = k[smaller(t * 4 + half * 2 + 1, count - 1)];
            for (int r = 0; r < b->rows; r += 32) {
                const int32_t *rows = q + r * steps * 16;
                const char *ahead = next_of(later, 0);
                clear_tiles();
                for (int i = 0; i < steps; i++) {
                    qk_on_tiles(rows + i * 256, rows + (steps + i) * 256, k0 + i * 256, k1 + i * 256);
                    if (ahead) {
                        UNROLL for (int line = 0; line < 16; line++) {
                            __builtin_prefetch(ahead + i * 1024 + line * 64, 0, 2);
                        }
                    }
                    if (at < b->rows) {
                        const int end = smaller(at + share, b->rows);
                        strip_probabilities(b, t - 1, at, end);
                        at = end;
                    }
                }
                store_scores(scores_of(b, t, r) + half * 32, SCORES);
            }
        }
        strip_maxima(b, t);
    }
    strip_probabilities(b, strips - 1, 0, b->rows);
    use_probabilities(b, strips);
}
