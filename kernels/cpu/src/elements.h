// SPDX-License-Identifier: Apache-2.0
// Runs of elements of any type to and from floats. Included after a vector header.

enum { F32 = BIFOCAL_CPU_FLOAT32, F16 = BIFOCAL_CPU_FLOAT16, BF16 = BIFOCAL_CPU_BFLOAT16, E4M3 = BIFOCAL_CPU_FLOAT8_E4M3, E5M2 = BIFOCAL_CPU_FLOAT8_E5M2, I8 = BIFOCAL_CPU_INT8_PER_TOKEN_HEAD, E4M3_PTH = BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD };

INLINE int element_bytes(int type) { return type == F32 ? 4 : type == F16 || type == BF16 ? 2 : 1; }
INLINE int has_token_scales(int type) { return type == I8 || type == E4M3_PTH; }
// Tokens (V) or head dimensions (K) that lie side by side.
INLINE int pair_width(int type) { return type == F32 ? 1 : 2; }

INLINE vf load_as(const int type, const void *base, int64_t i) {
    switch (type) {
    case F32: return vf_load((const float *)base + i);
    case F16: return vf_load_f16((const uint16_t *)base + i);
    case BF16: return vf_load_bf16((const uint16_t *)base + i);
    case E4M3:
    case E4M3_PTH: return vf_load_e4m3((const uint8_t *)base + i);
    case E5M2: return vf_load_e5m2((const uint8_t *)base + i);
    default: return vf_load_i8((const uint8_t *)base + i);
    }
}

INLINE float element_as(const int type, const void *base, int64_t i) {
    switch (type) {
    case F32: return ((const float *)base)[i];
    case F16: return f16_to_float(((const uint16_t *)base)[i]);
    case BF16: return bf16_to_float(((const uint16_t *)base)[i]);
    case E4M3:
    case E4M3_PTH: return e4m3_to_float(((const uint8_t *)base)[i]);
    case E5M2: return e5m2_to_float(((const uint8_t *)base)[i]);
    default: return (float)((const int8_t *)base)[i];
    }
}

INLINE void store_as(const int type, void *base, int64_t i, vf x) {
    switch (type) {
    case F32: vf_store((float *)base + i, x); break;
    case F16: vf_store_f16((uint16_t *)base + i, x); break;
    default: vf_store_bf16((uint16_t *)base + i, x); break;
    }
}

INLINE void store_element_as(const int type, void *base, int64_t i, float x) {
    switch (type) {
    case F32: ((float *)base)[i] = x; break;
    case F16: ((uint16_t *)base)[i] = float_to_f16(x); break;
    default: ((uint16_t *)base)[i] = float_to_bf16(x); break;
    }
}

INLINE void to_floats_typed(const int type, const void *from, int64_t n, float *to) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf_store(to + i, load_as(type, from, i));
    }
    for (; i < n; i++) {
        to[i] = element_as(type, from, i);
    }
}

INLINE void from_floats_typed(const int type, const float *from, int64_t n, float factor, void *to) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        store_as(type, to, i, vf_mul(vf_load(from + i), vf_set(factor)));
    }
    for (; i < n; i++) {
        store_element_as(type, to, i, from[i] * factor);
    }
}

static __attribute__((unused)) void to_floats(int type, const void *from, int64_t n, float *to) {
    switch (type) {
    case F32: to_floats_typed(F32, from, n, to); break;
    case F16: to_floats_typed(F16, from, n, to); break;
    case BF16: to_floats_typed(BF16, from, n, to); break;
    case E4M3:
    case E4M3_PTH: to_floats_typed(E4M3, from, n, to); break;
    case E5M2: to_floats_typed(E5M2, from, n, to); break;
    default: to_floats_typed(I8, from, n, to); break;
    }
}

// to[i] = from[i] * factor
static __attribute__((unused)) void from_floats(int type, const float *from, int64_t n, float factor, void *to) {
    switch (type) {
    case F32: from_floats_typed(F32, from, n, factor, to); break;
    case F16: from_floats_typed(F16, from, n, factor, to); break;
    default: from_floats_typed(BF16, from, n, factor, to); break;
    }
}

INLINE const char *bytes_at(const void *base, int64_t offset) { return (const char *)base + offset; }
