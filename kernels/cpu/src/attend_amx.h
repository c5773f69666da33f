// SPDX-License-Identifier: Apache-2.0
// Blocks of rows against a tile of keys on matrix tiles.
//
// Matrix unit and vector units work at the same time if the instructions of both lie close together, so everything is a pipeline. The
// keys pass in strips of 64. While the scores of a strip are multiplied, the exponentials of the strip before run beside them, and
// while a block of rows makes its probabilities, those of the block before meet V, in as many pieces as there are strips.
//
// Scores, probabilities and O lie as matrix tiles lie: 64 bytes of each of 32 rows, one behind the other, then the next 64 bytes of them.
//
// The maximum of a row follows its scores lazily: it moves only when a score is 2^8 above it, for probabilities up to 256 are
// as good as those up to 1. It moves by whole numbers, which leaves what was summed up before exact.

#define STRIP 64
#define P_STEPS (TILE_TOKENS / 32) // tiles of probabilities of sixteen rows
#define LAZY 8.0f

struct block {
    struct work *w;
    struct row_state state;
    int row, rows; // of the work; rows in use
    int first, end; // keys
    int steps;      // tiles of 16 slots of V in all
    const int32_t *v;
    float *o;
    uint16_t *p;
    const float *k_scales, *v_scales;
    int lowest_end, highest_first; // keys that every row sees: highest_first..lowest_end-1
    float factor;
    int careful;                   // some row needs its products rounded, or there are token scales of V
    int fresh;                     // nothing is in O yet
    int column;                    // of O, up to which probabilities have met V
};

// Rows of a strip whose exponentials are to be taken beside matrix products.
struct beside {
    struct block *block;
    const float *scores;
    int strip, steps; // steps: of 32 keys that the strip has
    int at, share;
};

struct pipeline {
    struct block blocks[2];
    struct block *before; // its probabilities wait for V
    struct beside beside; // its last strip, or one of the block that is computed
    float *scores[2];
    uint16_t *p[2];
    int turn;
};

// Floats of 32 rows: 64 bytes of each.
#define COLUMN 512

INLINE int64_t row_at(int r, int columns) { return (int64_t)((uint32_t)r / 32) * columns * COLUMN + (uint32_t)r % 32 * 16; }

INLINE float *score_at(const float *scores, int r, int column) { return (float *)scores + row_at(r, STRIP / 16) + column * COLUMN; }

// Of the 32 keys of a step.
INLINE uint16_t *probabilities_at(const struct block *b, int r, int step) {
    return (uint16_t *)((float *)b->p + row_at(r, P_STEPS) + step * COLUMN);
}

INLINE float *o_at(const struct block *b, int r, int64_t column) {
    return b->o + row_at(r, b->w->plan->padded_v / 16) + column / 16 * COLUMN;
}

// Probabilities of one row of a strip. Answers whether a score was too far above the maximum; then nothing is summed up.
INLINE int exponentials_of_row(const int exact, const int scaled, const int steps, const struct block *b, const float *scores, int strip,
                               int r) {
    const float *s = score_at(scores, r, 0);
    uint16_t *to = probabilities_at(b, r, strip * (STRIP / 32));
    float *sum = b->state.sum + (uint32_t)r * LANES;
    const vf scale = vf_set(b->factor);
    const vf shift = vf_set(b->state.shift[r]);
    vf highest = vf_set(-INFINITY);
    vf total = vf_load(sum);
    UNROLL for (int i = 0; i < steps; i++) {
        vf p[2];
        UNROLL for (int j = 0; j < 2; j++) {
            const vf raw = vf_load(s + (2 * i + j) * COLUMN);
            const vf x = exact ? vf_sub(vf_mul(raw, scale), shift) : _mm512_fmsub_ps(raw, scale, shift);
            highest = vf_max(highest, x);
            p[j] = vf_exp2_coarse(x);
            total = vf_add(total, p[j]);
            if (scaled) {
                p[j] = vf_mul(p[j], vf_load(b->v_scales + strip * STRIP + i * 32 + j * 16));
            }
        }
        vf_store_bf16_pair(to + i * COLUMN * 2, p[0], p[1]);
    }
    if (__builtin_expect(_mm512_cmp_ps_mask(highest, vf_set(LAZY), _CMP_GT_OQ), 0)) {
        return 1;
    }
    vf_store(sum, total);
    return 0;
}

// -inf has seen nothing yet. inf is a product that is past all floats, and becomes NaN only if it is rounded before the subtraction.
INLINE int needs_rounding(float maximum) { return fabsf(maximum) >= 65536.0f && maximum > -INFINITY; }

INLINE float highest_logit(const struct block *b, const float *scores, int steps, int r) {
    vf highest = vf_max(vf_load(score_at(scores, r, 0)), vf_load(score_at(scores, r, 1)));
    for (int i = 2; i < 2 * steps; i++) {
        highest = vf_max(highest, vf_load(score_at(scores, r, i)));
    }
    return vf_reduce_max(highest) * b->factor;
}

// Maxima of rows that have seen nothing yet, by their first strip. A row that sees nothing there, either, stays as it is.
static void first_maxima(struct block *b, const float *scores, int steps) {
    for (int r = 0; r < b->rows; r++) {
        const float logit = highest_logit(b, scores, steps, r);
        if (logit > -INFINITY) {
            b->state.maximum[r] = b->state.shift[r] = logit;
            b->careful |= needs_rounding(logit);
        }
    }
}

// Moves the maximum of a row so that all scores of a strip are below it.
static void move_maximum(struct block *b, const float *scores, int strip, int steps, int r) {
    const float old = b->state.maximum[r];
    const float logit = highest_logit(b, scores, steps, r);
    // Where whole numbers are rarer than floats, the sum may be rounded to less than the logit.
    const float now = old == -INFINITY ? logit : fmaxf(old + ceilf(logit - old), logit);
    b->state.maximum[r] = b->state.shift[r] = now;
    b->careful |= needs_rounding(now);
    if (old == -INFINITY) {
        return;
    }
    const vf factor = vf_set(exp2f(old - now));
    vf_store(b->state.sum + r * LANES, vf_mul(vf_load(b->state.sum + r * LANES), factor));
    for (int i = 0; i < strip * (STRIP / 32); i++) {
        uint16_t *p = probabilities_at(b, r, i);
        vf_store_bf16_pair(p, vf_mul(vf_load_bf16(p), factor), vf_mul(vf_load_bf16(p + 16), factor));
    }
    if (!b->fresh) {
        for (int i = 0; i < b->w->plan->padded_v; i += 16) {
            vf_store(o_at(b, r, i), vf_mul(vf_load(o_at(b, r, i)), factor));
        }
    }
}

INLINE int careful_exponentials(const int steps, const struct block *b, const float *scores, int strip, int r) {
    if (needs_rounding(b->state.shift[r])) {
        return b->v_scales ? exponentials_of_row(1, 1, steps, b, scores, strip, r) : exponentials_of_row(1, 0, steps, b, scores, strip, r);
    }
    return b->v_scales ? exponentials_of_row(0, 1, steps, b, scores, strip, r) : exponentials_of_row(0, 0, steps, b, scores, strip, r);
}

INLINE void careful_row(const int steps, const struct beside *x, int r) {
    if (careful_exponentials(steps, x->block, x->scores, x->strip, r)) {
        move_maximum(x->block, x->scores, x->strip, steps, r);
        if (careful_exponentials(steps, x->block, x->scores, x->strip, r)) {
            // A NaN beside it kept an infinite score from being found.
            vf_store(x->block->state.sum + (uint32_t)r * LANES, vf_set(NAN));
        }
    }
}

static __attribute__((noinline)) void careful_row_half(const struct beside *x, int r) { careful_row(1, x, r); }

static __attribute__((noinline)) void careful_row_whole(const struct beside *x, int r) { careful_row(2, x, r); }

INLINE void take_strip_rows(const int steps, struct beside *x, int end) {
    for (; x->at < end; x->at++) {
        if (__builtin_expect(x->block->careful || exponentials_of_row(0, 0, steps, x->block, x->scores, x->strip, x->at), 0)) {
            steps == 1 ? careful_row_half(x, x->at) : careful_row_whole(x, x->at);
        }
    }
}

INLINE void take_rows(struct beside *x, int count) {
    const int end = smaller(x->at + count, x->block->rows);
    if (__builtin_expect(x->steps == 1, 0)) {
        take_strip_rows(1, x, end);
    } else {
        take_strip_rows(2, x, end);
    }
}

INLINE void take_share(struct beside *x) {
    if (x->block) {
        take_rows(x, x->share);
    }
}

static void take_rest(struct beside *x) {
    if (x->block) {
        take_rows(x, x->block->rows);
    }
    x->block = 0;
}

// o[32][32] += p . v for the next two panels of V, or o[32][16] for the last one.
static void use_probabilities(struct block *b, struct beside *x) {
    const struct plan *plan = b->w->plan;
    const int32_t *v0 = b->v + b->column * plan->v_slots;
    const int32_t *v1 = v0 + 16 * plan->v_slots;
    const int wide = b->column + 32 <= plan->padded_v;
    for (int r = 0; r < b->rows; r += 32) {
        const float *p = (float *)probabilities_at(b, r, 0);
        float *o = o_at(b, r, b->column);
        if (wide) {
            if (b->fresh) {
                clear_tiles();
            } else {
                load_sums(o);
            }
            for (int i = 0; i < b->steps; i++) {
                multiply_tiles(p + i * COLUMN, p + i * COLUMN + 256, v0 + i * 256, v1 + i * 256);
                take_share(x);
            }
            store_sums(o);
        } else {
            if (b->fresh) {
                clear_tiles();
            } else {
                load_sums_narrow(o);
            }
            for (int i = 0; i < b->steps; i++) {
                multiply_tiles_narrow(p + i * COLUMN, p + i * COLUMN + 256, v0 + i * 256);
                take_share(x);
            }
            store_sums_narrow(o);
        }
    }
    b->column += 32;
}

static int pieces_left(const struct block *b) { return b ? (b->w->plan->padded_v - b->column + 31) / 32 : 0; }

INLINE __mmask16 lanes(int first, int end) { return (__mmask16)(((1u << clip(end, 0, 16)) - 1u) & ~((1u << clip(first, 0, 16)) - 1u)); }

// -inf for keys that the rows do not see.
static void mask_rows(float *scores, int steps, int row, int rows, struct range k) {
    const vf none = vf_set(-INFINITY);
    for (int i = 0; i < 2 * steps; i++) {
        const __mmask16 visible = lanes(k.first - i * 16, k.end - i * 16);
        for (int r = row; visible != 0xFFFF && r < row + rows; r++) {
            float *s = score_at(scores, r, i);
            vf_store(s, _mm512_mask_mov_ps(none, visible, vf_load(s)));
        }
    }
}

// Softcap, ALiBi and token scales.
static void transform_strip_row(const struct block *b, float *scores, int strip, int r, struct range k) {
    const struct work *w = b->w;
    const struct plan *plan = w->plan;
    const int token = (b->row + r) / plan->group;
    struct transform transform = w->transform;
    transform.token_scales = b->k_scales ? b->k_scales + strip * STRIP : 0;
    const float *slopes = w->params->alibi_slopes;
    transform.slope = slopes ? slopes[w->item->kv_head * plan->group + (b->row + r) % plan->group] : 0;
    const int64_t position = (int64_t)w->item->position + w->first_token + token;
    float s[STRIP];
    UNROLL for (int i = 0; i < STRIP; i += 16) {
        vf_store(s + i, vf_load(score_at(scores, r, i / 16)));
    }
    transform_row(&transform, s, k.first / LANES * LANES, k.end, (float)(b->first + strip * STRIP - position));
    UNROLL for (int i = 0; i < STRIP; i += 16) {
        vf_store(score_at(scores, r, i / 16), vf_load(s + i));
    }
}

// Scores to logits; -inf for keys that a row does not see.
static void strip_logits(const struct block *b, float *scores, int strip, int steps) {
    const struct work *w = b->w;
    const int group = w->plan->group;
    const int from = b->first + strip * STRIP;
    for (int row = 0; row < b->rows; row += group) {
        struct range k = seen(w, (b->row + row) / group, from, smaller(STRIP, b->end - from));
        k = k.first < k.end ? k : (struct range){0, 0};
        for (int r = row; w->transformed && k.first < k.end && r < row + group; r++) {
            transform_strip_row(b, scores, strip, r, k);
        }
        mask_rows(scores, steps, row, group, k);
    }
}

// Of 32 keys, of a strip.
INLINE int steps_of(int sub_blocks, int strip) { return smaller(STRIP / 32, (sub_blocks - strip * 4 + 1) / 2); }

// Scores of a strip; the exponentials of the one before beside them.
static void strip_scores(struct block *b, const int32_t *q, const int32_t *const *k, int strip, int count, float *scores,
                         struct beside *x, struct stream *later) {
    const int from = strip * 4;
    const int steps = b->w->plan->slots_k / 16;
    for (int half = 0; half < steps_of(count, strip); half++) {
        // Columns behind the last sub-block repeat it and are masked.
        const int32_t *k0 = k[smaller(from + half * 2, count - 1)];
        const int32_t *k1 = k[smaller(from + half * 2 + 1, count - 1)];
        for (int r = 0; r < b->rows; r += 32) {
            const int32_t *q0 = q + r * steps * 16;
            const int32_t *q1 = q0 + steps * 256;
            clear_tiles();
            for (int i = 0; i < steps; i++) {
                multiply_tiles(q0 + i * 256, q1 + i * 256, k0 + i * 256, k1 + i * 256);
                const char *ahead = next_of(later, 1, 0);
                for (int64_t at = 0; at < later->now; at += 64) {
                    __builtin_prefetch(ahead + at, 0, 2);
                }
                take_share(x);
            }
            store_sums(score_at(scores, r, half * 2));
        }
    }
}

static void attend_block(struct pipeline *line, struct block *b, const int32_t *q, const int32_t *const *k, int count,
                         struct stream *later) {
    const int strips = (count + 3) / 4;
    const int products = (b->rows + 31) / 32 * (b->w->plan->slots_k / 16); // of a step of scores
    struct block *before = line->before;
    for (int t = 0; t < strips; t++) {
        float *scores = line->scores[line->turn ^= 1];
        strip_scores(b, q, k, t, count, scores, &line->beside, later);
        take_rest(&line->beside);
        const int from = b->first + t * STRIP;
        const int steps = steps_of(count, t);
        if (b->w->transformed || from < b->highest_first || from + steps * 32 > smaller(b->lowest_end, b->end)) {
            strip_logits(b, scores, t, steps);
        }
        if (b->fresh && t == 0) {
            first_maxima(b, scores, steps);
        }
        const int left = pieces_left(before);
        const int pieces = (left + strips - t - 1) / (strips - t);
        const int next = t + 1 < strips ? steps_of(count, t + 1) : STRIP / 32;
        const int beside = next * products + (pieces ? pieces * before->steps * ((before->rows + 31) / 32) : 0);
        line->beside = (struct beside){b, scores, t, steps, 0, (b->rows + beside - 1) / beside};
        for (int i = 0; i < pieces; i++) {
            use_probabilities(before, &line->beside);
        }
    }
    if (before) {
        before->fresh = 0;
    }
    line->before = b;
}

// Lets what waits meet V.
static void finish_pipeline(struct pipeline *line) {
    take_rest(&line->beside);
    while (pieces_left(line->before)) {
        use_probabilities(line->before, &line->beside);
    }
    line->before = 0;
}
