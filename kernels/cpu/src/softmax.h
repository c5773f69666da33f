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
    const vf e = vf_exp2(vf_mul(vf_min(a, vf_set(10.0f)), vf_set(2 * LOG2E)));
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

// Replaces s[0..n) by 2^(s * factor - maximum) for places from..to-1 and by 0 elsewhere, as floats or, packed
// to the front, as bfloat16. n is a multiple of 16, from < to. maximum and sum belong to the row; the answer is the factor
// for what the row has summed up so far. token_scales (of V) multiply the probabilities but not their sum.
INLINE float softmax_row(const int bf16, float *s, int n, int from, int to, float factor, const float *token_scales,
                         float *maximum, float *sum) {
    uint16_t *packed = (uint16_t *)s;
    const vf none = vf_set(-INFINITY);
    const int begin = from / LANES * LANES;
    const int end = (to + LANES - 1) / LANES * LANES;
    if (begin < from) {
        vf_store(s + begin, vf_first(from - begin, none, vf_load(s + begin)));
    }
    if (to < end) {
        vf_store(s + end - LANES, vf_first(to - (end - LANES), vf_load(s + end - LANES), none));
    }
    vf highest = none;
    for (int i = begin; i < end; i += LANES) {
        highest = vf_max(highest, vf_load(s + i));
    }
    const float old = *maximum;
    const float candidate = vf_reduce_max(highest) * factor;
    const float now = candidate > old ? candidate : old;
    // Nothing but -inf so far: any finite number serves as the maximum.
    const float shift = now == -INFINITY ? 0.0f : now;
    const vf f = vf_set(factor);
    const vf minus = vf_set(-shift);
    vf total = vf_zero();
    const int exact = !(fabsf(shift) < 65536.0f);
    for (int i = begin; i < end; i += LANES) {
        // Rounding the product first makes equal logits equal however large they are.
        const vf x = exact ? vf_add(vf_mul(vf_load(s + i), f), minus) : vf_fma(vf_load(s + i), f, minus);
        vf p = bf16 ? vf_exp2_coarse(x) : vf_exp2(x);
        total = vf_add(total, p);
        if (token_scales) {
            p = vf_mul(p, vf_load(token_scales + i));
        }
        if (bf16) {
            vf_store_bf16(packed + i, p);
        } else {
            vf_store(s + i, p);
        }
    }
    if (bf16) {
        memset(packed, 0, (size_t)begin * 2);
        memset(packed + end, 0, (size_t)(n - end) * 2);
    } else {
        memset(s, 0, (size_t)begin * 4);
        memset(s + end, 0, (size_t)(n - end) * 4);
    }
    const float correction = old == -INFINITY ? 0.0f : vf_exp2(vf_set(old - shift))[0];
    *sum = *sum * correction + vf_reduce_add(total);
    *maximum = now;
    return correction;
}
