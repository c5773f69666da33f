// SPDX-License-Identifier: Apache-2.0
// Sixteen floats at a time: AVX-512 F, BW, DQ and VL.
#include <immintrin.h>

#include "scalar.h"

#define LANES 16
#define TILE_ROWS 6       // rows of a register tile
#define TILE_SUB_BLOCKS 4 // 16-token columns of a register tile
#define PANEL_VECTORS 4   // vectors of head dimensions of a register tile of P times V
#define DECODE_ACCUMULATORS 24

typedef __m512 vf;

INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
INLINE vf vf_set(float x) { return _mm512_set1_ps(x); }
INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
// p[0], p[1], p[0], p[1], ...
INLINE vf vf_pair(const float *p) { return _mm512_castpd_ps(_mm512_set1_pd(*(const double_unaligned *)p)); }
INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
INLINE vf vf_abs(vf a) { return _mm512_abs_ps(a); }
INLINE vf vf_iota(void) { return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
INLINE float vf_reduce_max(vf a) { return _mm512_reduce_max_ps(a); }
INLINE float vf_reduce_add(vf a) { return _mm512_reduce_add_ps(a); }
// a where |x| < limit, b elsewhere
INLINE vf vf_where_below(vf x, float limit, vf a, vf b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(limit), _CMP_LT_OQ), b, a);
}
// a where x = y, b elsewhere
INLINE vf vf_where_equal(vf x, vf y, vf a, vf b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ), b, a);
}
// magnitude of a, sign of s
INLINE vf vf_copysign(vf a, vf s) {
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_set1_epi32((int)0x80000000), _mm512_castps_si512(s), _mm512_castps_si512(a), 0xCA));
}
// lanes 0..n-1 of a, the others of b
INLINE vf vf_first(int n, vf a, vf b) { return _mm512_mask_blend_ps((__mmask16)((1u << n) - 1u), b, a); }
// the 32 values of (a, b) alternate: even places to *even, odd places to *odd
INLINE void vf_deinterleave(vf a, vf b, vf *even, vf *odd) {
    const __m512i e = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i o = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    *even = _mm512_permutex2var_ps(a, e, b);
    *odd = _mm512_permutex2var_ps(a, o, b);
}

// 2^x for x <= 0 or a little above; 0 far below. Relative error below 2e-7.
INLINE vf vf_exp2(vf x) {
    // The distance to the nearest whole number; 0 for -inf, which stays what it is without it.
    const vf f = _mm512_reduce_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const vf n = _mm512_sub_ps(x, f);
    vf p = _mm512_set1_ps(EXP2_6);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_5));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_4));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_3));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_2));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, n);
}

// The same within 1.1e-04: enough where the result becomes a bfloat16.
INLINE vf vf_exp2_coarse(vf x) {
    // The fraction of -inf is 0.
    const vf f = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    vf p = _mm512_set1_ps(EXP2_COARSE_3);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_COARSE_2));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_COARSE_1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_COARSE_0));
    return _mm512_scalef_ps(p, x);
}

INLINE vf vf_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE vf vf_load_bf16(const uint16_t *p) {
    const __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}
INLINE vf vf_load_e4m3(const uint8_t *p) {
    // The bits of the magnitude, moved to a half's place, are the value times 2^-8. 0x7f is no number.
    const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
    const __m256i half = _mm256_and_si256(_mm256_slli_epi16(x, 7), _mm256_set1_epi16((short)0xBFFF));
    const __mmask16 nan = _mm256_cmpeq_epi16_mask(_mm256_and_si256(x, _mm256_set1_epi16(0x7F)), _mm256_set1_epi16(0x7F));
    const __m256i safe = _mm256_mask_mov_epi16(half, nan, _mm256_set1_epi16(0x7E00));
    return _mm512_mul_ps(_mm512_cvtph_ps(safe), _mm512_set1_ps(256.0f));
}
// The next 32, in two vectors
INLINE void vf_load_e4m3_pair(const uint8_t *p, vf *lo, vf *hi) {
    const __m512i x = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p));
    const __m512i half = _mm512_and_si512(_mm512_slli_epi16(x, 7), _mm512_set1_epi16((short)0xBFFF));
    // One more carries into the highest bit of the exponent only where all below are set: a half that is no number, too.
    const __m512i more = _mm512_add_epi16(half, _mm512_set1_epi16(0x80));
    const __m512i safe = _mm512_ternarylogic_epi32(half, more, _mm512_set1_epi16(0x4000), 0xF8); // half | (more & 0x4000)
    *lo = _mm512_cvtph_ps(_mm512_castsi512_si256(safe));
    *hi = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(safe, 1));
}
INLINE void vf_load_e5m2_pair(const uint8_t *p, vf *lo, vf *hi) {
    const __m512i x = _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)p)), 8);
    *lo = _mm512_cvtph_ps(_mm512_castsi512_si256(x));
    *hi = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(x, 1));
}
INLINE vf vf_load_e5m2(const uint8_t *p) {
    const __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
    return _mm512_cvtph_ps(_mm256_slli_epi16(x, 8));
}
INLINE vf vf_load_i8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

INLINE void vf_store_f16(uint16_t *p, vf x) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INLINE void vf_store_bf16(uint16_t *p, vf x) {
#ifdef __AVX512BF16__
    // The instruction flushes subnormal inputs; no bound here is near them.
    _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(x));
#else
    const __m512i b = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
    const __m512i r = _mm512_srli_epi32(_mm512_add_epi32(b, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(r, nan, _mm512_set1_epi32(0x7FC0))));
#endif
}

// To a format of one byte, see narrow_byte.
#define HAS_NARROW_STORES 1
INLINE __m128i vf_narrow(vf x, const int mantissa, const int smallest, const float largest, const int nan) {
    const int drop = 23 - mantissa;
    const __m512i bits = _mm512_castps_si512(x);
    // No number stays none, and ends above all that are.
    const __m512i b = _mm512_castps_si512(_mm512_min_ps(_mm512_set1_ps(largest), _mm512_abs_ps(x)));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, drop), _mm512_set1_epi32(1));
    const __m512i half = _mm512_set1_epi32((1 << (drop - 1)) - 1 - ((smallest - 1 + 127) << 23));
    const __m512i normal = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(b, half), odd), drop);
    const __m512 magic = _mm512_castsi512_ps(_mm512_set1_epi32((smallest - mantissa + 23 + 127) << 23));
    const __m512i subnormal = _mm512_sub_epi32(_mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(b), magic)), _mm512_castps_si512(magic));
    const __mmask16 small = _mm512_cmplt_epi32_mask(b, _mm512_set1_epi32((smallest + 127) << 23));
    const __m512i y = _mm512_min_epu32(_mm512_mask_mov_epi32(normal, small, subnormal), _mm512_set1_epi32(nan));
    return _mm512_cvtepi32_epi8(_mm512_ternarylogic_epi32(y, _mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80), 0xF8)); // y | (sign & 0x80)
}
INLINE void vf_store_e4m3(uint8_t *p, vf x) { _mm_storeu_si128((__m128i *)p, vf_narrow(x, 3, -6, 448.0f, 0x7F)); }
INLINE void vf_store_e5m2(uint8_t *p, vf x) { _mm_storeu_si128((__m128i *)p, vf_narrow(x, 2, -14, 57344.0f, 0x7E)); }
INLINE void vf_store_i8(uint8_t *p, vf x) {
    const vf number = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
    const __m512i whole = _mm512_cvtps_epi32(_mm512_max_ps(_mm512_min_ps(number, _mm512_set1_ps(127.0f)), _mm512_set1_ps(-127.0f)));
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(whole));
}
// The same from 32 bfloat16, which have more bits than the format, without leaving sixteen-bit lanes. The last place that is kept is
// that of the format's number, or of its smallest subnormal below it.
INLINE __m256i narrow_bf16(const uint16_t *p, const int mantissa, const int smallest, const int largest, const int nan) {
    const int drop = 7 - mantissa;
    const int first = smallest + 127; // exponent of the smallest normal number
    const __m512i bits = _mm512_loadu_si512(p);
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi16(0x7FFF));
    // What is below a sixteenth of the smallest subnormal becomes 0 as well as that does.
    const __m512i least = _mm512_set1_epi16((short)((first - mantissa - 4) << 7));
    const __m512i b = _mm512_max_epu16(_mm512_min_epu16(magnitude, _mm512_set1_epi16((short)largest)), least);
    const __m512i exponent = _mm512_srli_epi16(b, 7);
    const __m512i shift =
        _mm512_max_epi16(_mm512_sub_epi16(_mm512_set1_epi16((short)(first + drop)), exponent), _mm512_set1_epi16((short)drop));
    const __m512i digits = _mm512_ternarylogic_epi32(b, _mm512_set1_epi16(0x7F), _mm512_set1_epi16(0x80), 0xEA); // b & 0x7F | 0x80
    const __m512i odd = _mm512_and_si512(_mm512_srlv_epi16(digits, shift), _mm512_set1_epi16(1));
    const __m512i half = _mm512_srlv_epi16(_mm512_set1_epi16(-1), _mm512_sub_epi16(_mm512_set1_epi16(17), shift));
    const __m512i rounded = _mm512_srlv_epi16(_mm512_add_epi16(_mm512_add_epi16(digits, half), odd), shift);
    const __m512i above = _mm512_slli_epi16(_mm512_subs_epu16(exponent, _mm512_set1_epi16((short)first)), mantissa);
    const __m512i y = _mm512_mask_mov_epi16(_mm512_add_epi16(rounded, above),
                                            _mm512_cmpgt_epu16_mask(magnitude, _mm512_set1_epi16(0x7F80)), _mm512_set1_epi16((short)nan));
    const __m512i sign = _mm512_srli_epi16(bits, 8);
    return _mm512_cvtepi16_epi8(_mm512_ternarylogic_epi32(y, sign, _mm512_set1_epi16(0x80), 0xF8)); // y | (sign & 0x80)
}
INLINE void vf_bf16_to_e4m3(uint8_t *to, const uint16_t *p) { _mm256_storeu_si256((__m256i *)to, narrow_bf16(p, 3, -6, 0x43E0, 0x7F)); }
INLINE void vf_bf16_to_e5m2(uint8_t *to, const uint16_t *p) { _mm256_storeu_si256((__m256i *)to, narrow_bf16(p, 2, -14, 0x4760, 0x7E)); }
// x / d as below, for a d that was made for this x: the quotient is finite or no number, and beyond the format's largest by rounding alone.
INLINE vf vf_small_quotient(vf x, vf d, vf reciprocal) {
    const vf y = _mm512_mul_ps(x, reciprocal);
    return _mm512_fnmadd_ps(_mm512_fmsub_ps(y, d, x), reciprocal, y);
}
// The bytes of e4m3, without signs, of magnitudes that are numbers and round to 448 at most: the lowest bytes, the next ones are 0. Adding
// a power of two whose last place is that of the format's number, or of its smallest normal one, rounds there; its mantissa already holds
// what the exponent is in the byte. The last four bits of the exponent find it.
INLINE __m512i vf_round_to_e4m3(vf magnitude) {
#define POWER(E) ((E + 20) << 23 | (E - 121) << 3)
    const __m512i powers = _mm512_setr_epi32(POWER(128), POWER(129), POWER(130), POWER(131), POWER(132), POWER(133), POWER(134), POWER(135), 0,
                                             POWER(121), POWER(122), POWER(123), POWER(124), POWER(125), POWER(126), POWER(127));
#undef POWER
    const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(_mm512_max_ps(magnitude, _mm512_set1_ps(0x1p-6f))), 23);
    return _mm512_castps_si512(_mm512_add_ps(magnitude, _mm512_castsi512_ps(_mm512_permutexvar_epi32(exponent, powers))));
}
// Numbers that round to 448 at most
INLINE void vf_store_small_e4m3(uint8_t *p, vf x) {
    const __m512i sign = _mm512_srli_epi32(_mm512_castps_si512(x), 24);
    const __m512i y = vf_round_to_e4m3(_mm512_abs_ps(x));
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_ternarylogic_epi32(y, sign, _mm512_set1_epi32(0x80), 0xF8))); // y | (sign & 0x80)
}
// The same from 32 bfloat16 times reciprocal + rest, as bytes without signs in lanes of sixteen bits
INLINE __m512i round_bf16_to_e4m3(__m512i x, vf reciprocal, vf rest) {
    const vf even = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_and_si512(x, _mm512_set1_epi16(0x7FFF)), 16));
    const vf odd = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(0x7FFF0000)));
    const __m512i a = vf_round_to_e4m3(_mm512_fmadd_ps(even, reciprocal, _mm512_mul_ps(even, rest)));
    const __m512i b = vf_round_to_e4m3(_mm512_fmadd_ps(odd, reciprocal, _mm512_mul_ps(odd, rest)));
    return _mm512_mask_mov_epi16(a, 0xAAAAAAAA, _mm512_slli_epi32(b, 16));
}
// 64 bfloat16 by the largest magnitude of a row of bfloat16 over 448, whose reciprocal comes in two floats. That a division is rounded first
// makes no difference: the tests divide all there are.
INLINE void vf_small_bf16_to_e4m3(uint8_t *to, const uint16_t *p, vf reciprocal, vf rest) {
    const __m512i x = _mm512_loadu_si512(p), y = _mm512_loadu_si512(p + 32);
    const __m512i bytes = _mm512_packus_epi16(round_bf16_to_e4m3(x, reciprocal, rest), round_bf16_to_e4m3(y, reciprocal, rest));
    const __m512i signs = _mm512_packs_epi16(x, y); // saturation keeps them
    const __m512i all = _mm512_ternarylogic_epi32(bytes, signs, _mm512_set1_epi8((char)0x80), 0xF8); // bytes | (signs & 0x80)
    _mm512_storeu_si512(to, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), all));
}
// What is no number becomes -2^31, whose lowest byte is 0.
INLINE void vf_store_small_i8(uint8_t *p, vf x) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x))); }
// x / d with the reciprocal of d, both between 2^-60 and 2^60: rounded as a division rounds, except below 2^-40.
INLINE vf vf_quotient(vf x, vf d, vf reciprocal) {
    const vf y = _mm512_mul_ps(x, reciprocal);
    const __mmask16 none = _mm512_fpclass_ps_mask(y, 0x99); // infinite, or no number: nothing to correct
    return _mm512_mask_mov_ps(_mm512_fnmadd_ps(_mm512_fmsub_ps(y, d, x), reciprocal, y), none, y);
}
// The largest of n magnitudes of floats of sixteen bits, as its bits. What is no number is above all others.
INLINE uint32_t vf_largest_of_halves(const uint16_t *p, int n) {
    __m512i m = _mm512_setzero_si512();
    int i = 0;
    for (; i + 32 <= n; i += 32) {
        m = _mm512_max_epu16(m, _mm512_and_si512(_mm512_loadu_si512(p + i), _mm512_set1_epi16(0x7FFF)));
    }
    if (i < n) {
        m = _mm512_max_epu16(m, _mm512_and_si512(_mm512_maskz_loadu_epi16((1u << (n - i)) - 1, p + i), _mm512_set1_epi16(0x7FFF)));
    }
    return _mm512_reduce_max_epu32(_mm512_max_epu16(_mm512_srli_epi32(m, 16), _mm512_and_si512(m, _mm512_set1_epi32(0xFFFF))));
}
// The same of floats
INLINE uint32_t vf_largest_of_floats(const float *p, int n) {
    __m512i m = _mm512_setzero_si512();
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        m = _mm512_max_epu32(m, _mm512_and_si512(_mm512_loadu_si512(p + i), _mm512_set1_epi32(0x7FFFFFFF)));
    }
    if (i < n) {
        m = _mm512_max_epu32(m, _mm512_and_si512(_mm512_maskz_loadu_epi32((__mmask16)((1u << (n - i)) - 1), p + i), _mm512_set1_epi32(0x7FFFFFFF)));
    }
    return _mm512_reduce_max_epu32(m);
}
// The larger of m and |x|; m where x is no number
INLINE vf vf_larger_magnitude(vf m, vf x) { return _mm512_max_ps(_mm512_abs_ps(x), m); }

// a, then b
INLINE void vf_store_bf16_pair(uint16_t *p, vf a, vf b) {
#ifdef __AVX512BF16__
    _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh(b, a));
#else
    vf_store_bf16(p, a);
    vf_store_bf16(p + 16, b);
#endif
}

#ifdef __AVX512BF16__
// a.b of neighbouring pairs of bfloat16 added to the sixteen sums of c
INLINE vf vf_dot(vf c, const void *pair, __m512i b) {
    return _mm512_dpbf16_ps(c, (__m512bh)_mm512_set1_epi32(*(const int32_unaligned *)pair), (__m512bh)b);
}
#endif
