// SPDX-License-Identifier: Apache-2.0
// Four floats at a time in the compiler's own vectors: any processor.
#include "scalar.h"

#define LANES 4
#define TILE_ROWS 4
#define TILE_SUB_BLOCKS 1
#define PANEL_VECTORS 4
#define DECODE_ACCUMULATORS 16

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef float vf_unaligned __attribute__((vector_size(16), aligned(1), may_alias));

INLINE vf vf_load(const float *p) { return *(const vf_unaligned *)p; }
INLINE void vf_store(float *p, vf x) { *(vf_unaligned *)p = x; }
INLINE vf vf_set(float x) { return (vf){x, x, x, x}; }
INLINE vf vf_zero(void) { return (vf){0, 0, 0, 0}; }
INLINE vf vf_pair(const float *p) { return (vf){p[0], p[1], p[0], p[1]}; }
INLINE vf vf_add(vf a, vf b) { return a + b; }
INLINE vf vf_sub(vf a, vf b) { return a - b; }
INLINE vf vf_mul(vf a, vf b) { return a * b; }
INLINE vf vf_div(vf a, vf b) { return a / b; }
INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
INLINE vf vf_choose(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); }
INLINE vf vf_max(vf a, vf b) { return vf_choose(a > b, a, b); }
INLINE vf vf_min(vf a, vf b) { return vf_choose(a < b, a, b); }
INLINE vf vf_abs(vf a) { return (vf)((vi)a & (vi){INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}); }
INLINE vf vf_iota(void) { return (vf){0, 1, 2, 3}; }
INLINE float vf_reduce_max(vf a) { return fmaxf(fmaxf(a[0], a[1]), fmaxf(a[2], a[3])); }
INLINE float vf_reduce_add(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
INLINE vf vf_where_below(vf x, float limit, vf a, vf b) { return vf_choose(vf_abs(x) < vf_set(limit), a, b); }
INLINE vf vf_where_equal(vf x, vf y, vf a, vf b) { return vf_choose(x == y, a, b); }
INLINE vf vf_copysign(vf a, vf s) {
    const vi sign = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
    return (vf)(((vi)s & sign) | ((vi)a & ~sign));
}
INLINE vf vf_first(int n, vf a, vf b) { return vf_choose((vi){0, 1, 2, 3} < (vi){n, n, n, n}, a, b); }
INLINE void vf_deinterleave(vf a, vf b, vf *even, vf *odd) {
    *even = (vf){a[0], a[2], b[0], b[2]};
    *odd = (vf){a[1], a[3], b[1], b[3]};
}

INLINE vf vf_exp2(vf x) {
    const vf y = vf_choose(x < vf_set(-126.0f), vf_set(-126.0f), x);
    // 1.5 * 2^23: the sum's last bits are the rounded number.
    const vf magic = vf_set(12582912.0f);
    const vf shifted = y + magic;
    const vf f = y - (shifted - magic);
    vf p = vf_set(EXP2_6);
    p = p * f + vf_set(EXP2_5);
    p = p * f + vf_set(EXP2_4);
    p = p * f + vf_set(EXP2_3);
    p = p * f + vf_set(EXP2_2);
    p = p * f + vf_set(EXP2_1);
    p = p * f + vf_set(1.0f);
    const vu scale = (vu)shifted << 23;
    const vf power = (vf)((vi)((vu)p + scale) & ~(x < vf_set(-126.0f)));
    return vf_choose(x == x, power, x); // the bits of a NaN are no exponent
}
INLINE vf vf_exp2_coarse(vf x) { return vf_exp2(x); }

#define EACH_LANE(expression)                                                                                          \
    vf r;                                                                                                              \
    for (int i = 0; i < LANES; i++) {                                                                                  \
        r[i] = expression;                                                                                             \
    }                                                                                                                  \
    return r

INLINE vf vf_load_f16(const uint16_t *p) { EACH_LANE(f16_to_float(p[i])); }
INLINE vf vf_load_bf16(const uint16_t *p) { EACH_LANE(bf16_to_float(p[i])); }
INLINE vf vf_load_e4m3(const uint8_t *p) { EACH_LANE(e4m3_to_float(p[i])); }
INLINE vf vf_load_e5m2(const uint8_t *p) { EACH_LANE(e5m2_to_float(p[i])); }
INLINE vf vf_load_i8(const uint8_t *p) { EACH_LANE((float)(int8_t)p[i]); }

INLINE void vf_store_f16(uint16_t *p, vf x) {
    for (int i = 0; i < LANES; i++) {
        p[i] = float_to_f16(x[i]);
    }
}
INLINE void vf_store_bf16(uint16_t *p, vf x) {
    for (int i = 0; i < LANES; i++) {
        p[i] = float_to_bf16(x[i]);
    }
}
INLINE void vf_store_bf16_pair(uint16_t *p, vf a, vf b) {
    vf_store_bf16(p, a);
    vf_store_bf16(p + LANES, b);
}
