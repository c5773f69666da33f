// SPDX-License-Identifier: Apache-2.0
// Element types, one value at a time, and the constants of the exponential.
#ifndef BIFOCAL_SCALAR_H
#define BIFOCAL_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))
#define UNROLL _Pragma("GCC unroll 32")

typedef double __attribute__((aligned(1), may_alias)) double_unaligned;
typedef int32_t __attribute__((aligned(1), may_alias)) int32_unaligned;

#define LOG2E 1.44269504088896340736f
#define LN2 0.69314718055994530942f

// 2^f - 1 divided by f, interpolated on [-0.5, 0.5] (3e-9), and 2^f within 1.1e-04 on [0, 1), exact at both ends
#define EXP2_1 0x1.62e4300000000p-1f
#define EXP2_2 0x1.ebfbe00000000p-3f
#define EXP2_3 0x1.c6af6c0000000p-5f
#define EXP2_4 0x1.3b2a540000000p-7f
#define EXP2_5 0x1.5f08900000000p-10f
#define EXP2_6 0x1.44138a0000000p-13f
#define EXP2_COARSE_0 1.00000000f
#define EXP2_COARSE_1 0.69533634f
#define EXP2_COARSE_2 0.22655069f
#define EXP2_COARSE_3 0.07811296f

INLINE uint32_t bits_of(float x) {
    uint32_t b;
    memcpy(&b, &x, 4);
    return b;
}
INLINE float float_of(uint32_t b) {
    float x;
    memcpy(&x, &b, 4);
    return x;
}

INLINE float bf16_to_float(uint16_t x) { return float_of((uint32_t)x << 16); }

INLINE uint16_t float_to_bf16(float x) {
    const uint32_t b = bits_of(x);
    if ((b & 0x7FFFFFFF) > 0x7F800000) {
        return 0x7FC0;
    }
    return (uint16_t)((b + 0x7FFF + ((b >> 16) & 1)) >> 16);
}

INLINE float f16_to_float(uint16_t x) {
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16;
    const uint32_t magnitude = x & 0x7FFF;
    if (magnitude >= 0x7C00) {
        return float_of(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
    }
    if (magnitude < 0x400) {
        return float_of(sign | bits_of((float)magnitude * 0x1p-24f));
    }
    return float_of(sign | ((magnitude << 13) + (112u << 23)));
}

// Rounds a float to a smaller binary format: nearest even, subnormals kept, overflow left to the caller.
// mantissa: its stored bits; smallest: exponent of its smallest normal number. Without branches, so that loops become vectors.
INLINE uint32_t narrow_magnitude(float x, int mantissa, int smallest) {
    const uint32_t b = bits_of(x) & 0x7FFFFFFF;
    // Adding a power of two whose last place is the format's smallest subnormal rounds there.
    const float magic = float_of((uint32_t)(smallest - mantissa + 23 + 127) << 23);
    const uint32_t subnormal = bits_of(float_of(b) + magic) - bits_of(magic);
    const int drop = 23 - mantissa;
    const uint32_t rounded = b + ((1u << (drop - 1)) - 1) + ((b >> drop) & 1);
    const uint32_t normal = (rounded - ((uint32_t)(smallest - 1 + 127) << 23)) >> drop;
    return b < (uint32_t)(smallest + 127) << 23 ? subnormal : normal;
}

INLINE uint16_t float_to_f16(float x) {
    const uint16_t sign = (uint16_t)(bits_of(x) >> 16 & 0x8000);
    if (x != x) {
        return sign | 0x7E00;
    }
    if (fabsf(x) >= 65520.0f) {
        return sign | 0x7C00;
    }
    return (uint16_t)(sign | narrow_magnitude(x, 10, -14));
}

INLINE float e4m3_to_float(uint8_t x) {
    const uint32_t sign = (uint32_t)(x & 0x80) << 24;
    const uint32_t magnitude = x & 0x7F;
    if (magnitude == 0x7F) {
        return float_of(sign | 0x7FC00000);
    }
    if (magnitude < 8) {
        return float_of(sign | bits_of((float)magnitude * 0x1p-9f));
    }
    return float_of(sign | ((magnitude << 20) + (120u << 23)));
}

// To a format of one byte whose largest finite value has these bits; what is larger becomes it, and NaN stays what it is.
INLINE uint8_t narrow_byte(float x, int mantissa, int smallest, float largest, uint32_t largest_bits, uint32_t nan) {
    const uint32_t b = bits_of(x);
    const uint32_t magnitude = b & 0x7FFFFFFF;
    uint32_t narrow = narrow_magnitude(x, mantissa, smallest);
    narrow = magnitude >= bits_of(largest) ? largest_bits : narrow;
    narrow = magnitude > 0x7F800000 ? nan : narrow;
    return (uint8_t)((b >> 24 & 0x80) | narrow);
}

INLINE uint8_t float_to_e4m3(float x) { return narrow_byte(x, 3, -6, 448.0f, 0x7E, 0x7F); }

INLINE float e5m2_to_float(uint8_t x) { return f16_to_float((uint16_t)(x << 8)); }

INLINE uint8_t float_to_e5m2(float x) { return narrow_byte(x, 2, -14, 57344.0f, 0x7B, 0x7E); }

INLINE int8_t float_to_i8(float x) {
    float y = x > 127.0f ? 127.0f : x;
    y = y < -127.0f ? -127.0f : y;
    y = y == y ? y : 0;
    // Rounds to a whole number, to the even one from half way.
    const int32_t whole = (int32_t)(bits_of(y + 0x1.8p23f) - bits_of(0x1.8p23f));
    return (int8_t)whole;
}

INLINE int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
INLINE int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
INLINE int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

#endif
