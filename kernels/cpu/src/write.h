// SPDX-License-Identifier: Apache-2.0
// Stores keys and values in the cache's order and type.

#define MOST_HEAD_SIZE 1024

INLINE void quantise(const int type, const float *x, int n, uint8_t *to) {
    for (int i = 0; i < n; i++) {
        switch (type) {
        case E4M3:
        case E4M3_PTH: to[i] = float_to_e4m3(x[i]); break;
        case E5M2: to[i] = float_to_e5m2(x[i]); break;
        default: to[i] = (uint8_t)float_to_i8(x[i]); break;
        }
    }
}

static float largest_magnitude(const float *x, int n) {
    float m = 0;
    for (int i = 0; i < n; i++) {
        m = fabsf(x[i]) > m ? fabsf(x[i]) : m;
    }
    return m;
}

// One token of one head as the cache's elements, in head order.
static void convert_row(int type, float *x, int n, float scale, void *to, float *token_scale) {
    float divisor = scale;
    if (has_token_scales(type)) {
        const float largest = largest_magnitude(x, n);
        divisor = largest > 0 ? largest / (type == I8 ? 127.0f : 448.0f) : 1;
        *token_scale = divisor;
    }
    if (divisor != 1) {
        for (int i = 0; i < n; i++) {
            x[i] = x[i] / divisor;
        }
    }
    if (type == F32 || type == F16 || type == BF16) {
        from_floats(type, x, n, 1, to);
        return;
    }
    switch (type) {
    case E4M3:
    case E4M3_PTH: quantise(E4M3, x, n, to); break;
    case E5M2: quantise(E5M2, x, n, to); break;
    default: quantise(I8, x, n, to); break;
    }
}

static void scatter_k(int type, const void *from, int n, int place, char *head) {
    const int bytes = element_bytes(type);
    char *to = head + (int64_t)(place / 16) * 16 * n * bytes;
    if (type == F32) {
        for (int d = 0; d < n; d++) {
            ((float *)to)[d * 16 + place % 16] = ((const float *)from)[d];
        }
    } else if (bytes == 2) {
        for (int d = 0; d < n; d += 2) {
            memcpy(to + (int64_t)(d / 2 * 32 + place % 16 * 2) * 2, (const uint16_t *)from + d, 4);
        }
    } else {
        for (int d = 0; d < n; d += 2) {
            memcpy(to + d / 2 * 32 + place % 16 * 2, (const uint8_t *)from + d, 2);
        }
    }
}

static void scatter_v(int type, const void *from, int n, int place, char *head) {
    const int bytes = element_bytes(type);
    if (type == F32) {
        memcpy(head + (int64_t)place * n * 4, from, (size_t)n * 4);
        return;
    }
    char *to = head + (int64_t)(place / 2 * 2) * n * bytes;
    for (int d = 0; d < n; d++) {
        memcpy(to + (d * 2 + place % 2) * bytes, bytes_at(from, d * bytes), (size_t)bytes);
    }
}

static void write_kv(const bifocal_cpu_kv_write *w, int64_t first, int64_t count) {
    const bifocal_cpu_cache *c = &w->cache;
    const int type = c->dtype;
    float x[MOST_HEAD_SIZE];
    float converted[MOST_HEAD_SIZE];
    for (int64_t t = first; t < first + count; t++) {
        const int64_t slot = w->slots[t];
        if (slot < 0) {
            continue;
        }
        const int64_t block = slot / c->block_size;
        const int place = (int)(slot % c->block_size);
        for (int h = 0; h < c->num_kv_heads; h++) {
            char *k = (char *)c->k + block * c->k_block_stride + h * c->k_head_stride;
            char *v = (char *)c->v + block * c->v_block_stride + h * c->v_head_stride;
            const float k_scale = c->k_scale ? c->k_scale[(int64_t)h * c->scale_stride] : 1;
            const float v_scale = c->v_scale ? c->v_scale[(int64_t)h * c->scale_stride] : 1;
            const int source = element_bytes(w->dtype);
            float token_scale = 1;
            to_floats(w->dtype, bytes_at(w->k, (t * w->k_token_stride + (int64_t)h * c->head_size_k) * source), c->head_size_k, x);
            convert_row(type, x, c->head_size_k, k_scale, converted, &token_scale);
            scatter_k(type, converted, c->head_size_k, place, k);
            if (has_token_scales(type)) {
                memcpy(k + (int64_t)c->block_size * c->head_size_k + place * 4, &token_scale, 4);
            }
            to_floats(w->dtype, bytes_at(w->v, (t * w->v_token_stride + (int64_t)h * c->head_size_v) * source), c->head_size_v, x);
            convert_row(type, x, c->head_size_v, v_scale, converted, &token_scale);
            scatter_v(type, converted, c->head_size_v, place, v);
            if (has_token_scales(type)) {
                memcpy(v + (int64_t)c->block_size * c->head_size_v + place * 4, &token_scale, 4);
            }
        }
    }
}
