// SPDX-License-Identifier: Apache-2.0
// Eight floats at a time: AVX2, FMA and F16C.
#include <immintrin.h>

#include "scalar.h"

#define LANES 8
#define TILE_ROWS 6
#define TILE_SUB_BLOCKS 1
#define PANEL_VECTORS 2
#define DECODE_ACCUMULATORS 12

typedef __m256 vf;

INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE void vf_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
INLINE vf vf_set(float x) { return _mm256_set1_ps(x); }
INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
INLINE vf vf_pair(const float *p) { return _mm256_castpd_ps(_mm256_set1_pd(*(const double_unaligned *)p)); }
INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
INLINE vf vf_iota(void) { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }
INLINE float vf_reduce_max(vf a) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}
INLINE float vf_reduce_add(vf a) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}
INLINE vf vf_where_below(vf x, float limit, vf a, vf b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(vf_abs(x), _mm256_set1_ps(limit), _CMP_LT_OQ));
}
INLINE vf vf_where_equal(vf x, vf y, vf a, vf b) { return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_EQ_OQ)); }
INLINE vf vf_copysign(vf a, vf s) {
    const vf sign = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_and_ps(sign, s), _mm256_andnot_ps(sign, a));
}
INLINE vf vf_first(int n, vf a, vf b) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane)));
}
INLINE void vf_deinterleave(vf a, vf b, vf *even, vf *odd) {
    // lo = a0..a3 b0..b3, hi = a4..a7 b4..b7, so that the shuffles inside halves keep the order
    const vf lo = _mm256_permute2f128_ps(a, b, 0x20);
    const vf hi = _mm256_permute2f128_ps(a, b, 0x31);
    *even = _mm256_shuffle_ps(lo, hi, 0x88);
    *odd = _mm256_shuffle_ps(lo, hi, 0xDD);
}

INLINE vf vf_exp2(vf x) {
    // NaN stays NaN: the second operand of max wins.
    const vf y = _mm256_max_ps(_mm256_set1_ps(-126.0f), x);
    const vf n = _mm256_round_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const vf f = _mm256_sub_ps(y, n);
    vf p = _mm256_set1_ps(EXP2_6);
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2_5));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2_4));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2_3));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2_2));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2_1));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0f));
    const __m256i scale = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    p = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), scale));
    return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(-126.0f), _CMP_LT_OQ), p);
}
INLINE vf vf_exp2_coarse(vf x) { return vf_exp2(x); }

INLINE vf vf_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE vf vf_load_bf16(const uint16_t *p) {
    const __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}
INLINE vf vf_load_e4m3(const uint8_t *p) {
    // The bits of the magnitude, moved to a half's place, are the value times 2^-8. 0x7f is no number.
    const __m128i x = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p));
    const __m128i half = _mm_and_si128(_mm_slli_epi16(x, 7), _mm_set1_epi16((short)0xBFFF));
    const __m128i nan = _mm_cmpeq_epi16(_mm_and_si128(x, _mm_set1_epi16(0x7F)), _mm_set1_epi16(0x7F));
    const __m128i safe = _mm_or_si128(half, _mm_and_si128(nan, _mm_set1_epi16(0x7E00)));
    return _mm256_mul_ps(_mm256_cvtph_ps(safe), _mm256_set1_ps(256.0f));
}
INLINE vf vf_load_e5m2(const uint8_t *p) {
    const __m128i x = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)p));
    return _mm256_cvtph_ps(_mm_slli_epi16(x, 8));
}
INLINE vf vf_load_i8(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

INLINE void vf_store_f16(uint16_t *p, vf x) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INLINE void vf_store_bf16(uint16_t *p, vf x) {
    const __m256i b = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(1));
    const __m256i r = _mm256_srli_epi32(_mm256_add_epi32(b, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i s = _mm256_blendv_epi8(r, _mm256_set1_epi32(0x7FC0), nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(s, s), 0x08);
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(packed));
}
INLINE void vf_store_bf16_pair(uint16_t *p, vf a, vf b) {
    vf_store_bf16(p, a);
    vf_store_bf16(p + LANES, b);
}
