// SPDX-License-Identifier: Apache-2.0
// One row of scores to probabilities, with the running maximum and sum of the row. Everything is in powers of two.

// What happens to q.k before the softmax, where it is more than a positive factor.
struct transform {
    float scale;
    float softcap;             // 0: off
    float slope;               // 0: off
    const float *token_scales; // of K, for the tile; null: off
};

// tanh to about one unit in the last place
INLINE vf vf_tanh(vf x) {
    const vf a = vf_abs(x);
    // Small: odd series. Others: 1 - 2 / (e^2a + 1); beyond 10 the result is 1.
    const vf z = vf_mul(x, x);
    vf p = vf_set(-0.0088632355f);
    p = vf_fma(p, z, vf_set(0.0218694886f));
    p = vf_fma(p, z, vf_set(-0.0539682540f));
    p = vf_fma(p, z, vf_set(0.1333333333f));
    p = vf_fma(p, z, vf_set(-0.3333333333f));
    const vf small = vf_fma(vf_mul(p, z), a, a);
    // NaN stays NaN: the second operand of min wins.
    const vf e = vf_exp2(vf_mul(vf_min(vf_set(10.0f), a), vf_set(2 * LOG2E)));
    const vf large = vf_sub(vf_set(1.0f), vf_div(vf_set(2.0f), vf_add(e, vf_set(1.0f))));
    return vf_copysign(vf_where_below(x, 0.4f, small, large), x);
}

// s[from..to) to logits; from is a multiple of LANES, the vector that holds to - 1 is changed as a whole.
// distance: key minus query of place 0.
static void transform_row(const struct transform *t, float *s, int from, int to, float distance) {
    for (int i = from; i < to; i += LANES) {
        vf x = vf_mul(vf_load(s + i), vf_set(t->scale));
        if (t->token_scales) {
            x = vf_mul(x, vf_load(t->token_scales + i));
        }
        if (t->softcap != 0) {
            x = vf_mul(vf_tanh(vf_div(x, vf_set(t->softcap))), vf_set(t->softcap));
        }
        if (t->slope != 0) {
            x = vf_fma(vf_add(vf_iota(), vf_set(distance + (float)i)), vf_set(t->slope), x);
        }
        vf_store(s + i, x);
    }
}

// The softmax of a block of rows goes in three passes, so that the rows of a pass do not wait for each other: the
// highest score of each row; what changes for the row by it; the probabilities.

// What one row brings along from tile to tile. The sum is kept in LANES parts.
struct row_state {
    float *maximum; // [rows]
    float *sum;     // [rows][LANES]
    float *shift;   // [rows] this tile: what is taken off the scores
    float *factor;  // [rows] this tile: what happens to all that was summed up before
};

// Probabilities become bfloat16 in pairs of vectors.
#define SOFTMAX_STEP(BF16) ((BF16) ? 2 * LANES : LANES)

// Puts -inf to the places of s around from..to-1 that share a step with them.
INLINE void mask_edges(const int step, float *s, int from, int to) {
    const vf none = vf_set(-INFINITY);
    for (int i = from / step * step; i < from; i += LANES) {
        vf_store(s + i, vf_first(smaller(from - i, LANES), none, vf_load(s + i)));
    }
    for (int i = to / LANES * LANES; i < (to + step - 1) / step * step; i += LANES) {
        vf_store(s + i, vf_first(larger(to - i, 0), vf_load(s + i), none));
    }
}

// n is a multiple of LANES.
INLINE float highest_of(const float *s, int n) {
    vf a = vf_load(s), b = a, c = a, d = a;
    int i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a = vf_max(a, vf_load(s + i));
        b = vf_max(b, vf_load(s + i + LANES));
        c = vf_max(c, vf_load(s + i + 2 * LANES));
        d = vf_max(d, vf_load(s + i + 3 * LANES));
    }
    for (; i < n; i += LANES) {
        a = vf_max(a, vf_load(s + i));
    }
    return vf_reduce_max(vf_max(vf_max(a, b), vf_max(c, d)));
}

// For `rows` rows: highest in, shift and factor out. Everything is a power of two. The rows behind them in the last
// vector belong to another block and stay as they are.
static void update_rows(const struct row_state *t, int rows, float scale) {
    for (int r = 0; r < rows; r += LANES) {
        const vf none = vf_set(-INFINITY);
        const int mine = smaller(rows - r, LANES);
        const vf old = vf_load(t->maximum + r);
        const vf highest = vf_load(t->shift + r);
        const vf now = vf_max(vf_mul(highest, vf_set(scale)), old);
        vf_store(t->maximum + r, vf_first(mine, now, old));
        // Nothing but -inf so far: any finite number serves.
        const vf shift = vf_where_equal(now, none, vf_zero(), now);
        const vf factor = vf_where_equal(old, now, vf_set(1), vf_exp2(vf_sub(old, shift)));
        vf_store(t->shift + r, vf_first(mine, shift, highest));
        vf_store(t->factor + r, vf_first(mine, factor, vf_load(t->factor + r)));
    }
}

// Places begin..end-1 of s to 2^(s * scale - shift), as floats or, packed to the front, as bfloat16.
INLINE void exponentials(const int bf16, const int exact, float *s, int begin, int end, float scale, float shift,
                         const float *token_scales, float *sum, float factor) {
    const vf f = vf_set(scale);
    const vf minus = vf_set(-shift);
    vf total[2] = {vf_mul(vf_load(sum), vf_set(factor)), vf_zero()};
    const int vectors = bf16 ? 2 : 1;
    for (int i = begin; i < end; i += vectors * LANES) {
        vf p[2];
        UNROLL for (int j = 0; j < vectors; j++) {
            const vf raw = vf_load(s + i + j * LANES);
            const vf x = exact ? vf_add(vf_mul(raw, f), minus) : vf_fma(raw, f, minus);
            p[j] = bf16 ? vf_exp2_coarse(x) : vf_exp2(x);
            total[j] = vf_add(total[j], p[j]);
            if (token_scales) {
                p[j] = vf_mul(p[j], vf_load(token_scales + i + j * LANES));
            }
        }
        if (bf16) {
            vf_store_bf16_pair((uint16_t *)s + i, p[0], p[1]);
        } else {
            vf_store(s + i, p[0]);
        }
    }
    vf_store(sum, vf_add(total[0], total[1]));
}

// Replaces s[0..n) by probabilities for places from..to-1 and by 0 elsewhere. token_scales (of V) multiply the probabilities
// but not their sum.
INLINE void softmax_row(const int bf16, float *s, int n, int from, int to, float scale, const float *token_scales,
                        const struct row_state *t, int r) {
    const int step = SOFTMAX_STEP(bf16);
    const int begin = from / step * step;
    const int end = (to + step - 1) / step * step;
    const float shift = t->shift[r];
    // Rounding the product first makes equal logits equal however large they are.
    if (!(fabsf(shift) < 65536.0f)) {
        exponentials(bf16, 1, s, begin, end, scale, shift, token_scales, t->sum + r * LANES, t->factor[r]);
    } else if (token_scales) {
        exponentials(bf16, 0, s, begin, end, scale, shift, token_scales, t->sum + r * LANES, t->factor[r]);
    } else {
        exponentials(bf16, 0, s, begin, end, scale, shift, 0, t->sum + r * LANES, t->factor[r]);
    }
    const int bytes = bf16 ? 2 : 4;
    if (begin > 0) {
        memset(s, 0, (size_t)(begin * bytes));
    }
    if (end < n) {
        memset((char *)s + end * bytes, 0, (size_t)((n - end) * bytes));
    }
}
