// SPDX-License-Identifier: Apache-2.0
// Stores keys and values in the cache's order and type. Tokens come in runs that lie side by side in a sub-block: a whole
// sub-block of K is a transposition, two tokens of V are an interleaving; what is left over goes one by one.

#define MOST_HEAD_SIZE 1024
#define RUN 16

typedef int32_t words __attribute__((vector_size(16), aligned(4), may_alias));
typedef int64_t long_words __attribute__((vector_size(16), aligned(2), may_alias));
typedef int16_t halves __attribute__((vector_size(16), aligned(2), may_alias));
typedef int8_t octets __attribute__((vector_size(16), aligned(1), may_alias));

#ifdef __clang__
#define SHUFFLE(T, A, B, ...) __builtin_shufflevector(A, B, __VA_ARGS__)
#else
#define SHUFFLE(T, A, B, ...) __builtin_shuffle(A, B, (T){__VA_ARGS__})
#endif
#define LOW_WORDS(A, B) SHUFFLE(words, A, B, 0, 4, 1, 5)
#define HIGH_WORDS(A, B) SHUFFLE(words, A, B, 2, 6, 3, 7)
#define LOW_LONG(A, B) SHUFFLE(long_words, A, B, 0, 2)
#define HIGH_LONG(A, B) SHUFFLE(long_words, A, B, 1, 3)
#define LOW_HALVES(A, B) SHUFFLE(halves, A, B, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_HALVES(A, B) SHUFFLE(halves, A, B, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_OCTETS(A, B) SHUFFLE(octets, A, B, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_OCTETS(A, B) SHUFFLE(octets, A, B, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

// ---------------------------------------------------------------------------------------------------- conversion

INLINE uint8_t byte_as(const int type, float x) {
    switch (type) {
    case E4M3: return float_to_e4m3(x);
    case E5M2: return float_to_e5m2(x);
    default: return (uint8_t)float_to_i8(x);
    }
}

#ifdef HAS_NARROW_STORES
INLINE void store_byte_as(const int type, uint8_t *to, vf x) {
    switch (type) {
    case E4M3: vf_store_e4m3(to, x); break;
    case E5M2: vf_store_e5m2(to, x); break;
    default: vf_store_i8(to, x); break;
    }
}
#endif

// to[i] = from[i] / divisor; token_scale: the divisor was made for these; numbers: all of them are.
INLINE void quantise_typed(const int source, const int type, const int token_scale, const void *from, int n, float divisor, int numbers,
                           uint8_t *to) {
    (void)token_scale;
    (void)numbers;
    int i = 0;
#ifdef HAS_NARROW_STORES
    for (; source == BF16 && type != I8 && divisor == 1 && i + 32 <= n; i += 32) {
        const uint16_t *x = (const uint16_t *)from + i;
        if (type == E4M3) {
            vf_bf16_to_e4m3(to + i, x);
        } else {
            vf_bf16_to_e5m2(to + i, x);
        }
    }
    for (; divisor == 1 && i + LANES <= n; i += LANES) {
        store_byte_as(type, to + i, load_as(source, from, i));
    }
    const int moderate = divisor > 0x1p-60f && divisor < 0x1p60f;
    const float inverse = 1 / divisor;
    const vf d = vf_set(divisor);
    const vf reciprocal = vf_set(inverse);
    const vf rest = vf_set(fmaf(-divisor, inverse, 1) * inverse);
    for (; source == BF16 && type == E4M3 && token_scale && numbers && moderate && i + 64 <= n; i += 64) {
        vf_small_bf16_to_e4m3(to + i, (const uint16_t *)from + i, reciprocal, rest);
    }
    for (; token_scale && (type == I8 || numbers) && moderate && i + LANES <= n; i += LANES) {
        const vf x = vf_small_quotient(load_as(source, from, i), d, reciprocal);
        if (type == I8) {
            vf_store_small_i8(to + i, x);
        } else {
            vf_store_small_e4m3(to + i, x);
        }
    }
    for (; moderate && i + LANES <= n; i += LANES) {
        store_byte_as(type, to + i, vf_quotient(load_as(source, from, i), d, reciprocal));
    }
    for (; i + LANES <= n; i += LANES) {
        store_byte_as(type, to + i, vf_div(load_as(source, from, i), d));
    }
#endif
    float x[MOST_HEAD_SIZE];
    to_floats_typed(source, bytes_at(from, (int64_t)i * element_bytes(source)), n - i, x);
    for (int j = 0; j < n - i; j++) {
        to[i + j] = byte_as(type, x[j] / divisor);
    }
}

static void quantise(int source, int type, const void *from, int n, float divisor, int numbers, uint8_t *to) {
#define QUANTISE(SOURCE)                                                                                               \
    switch (type) {                                                                                                    \
    case E4M3: quantise_typed(SOURCE, E4M3, 0, from, n, divisor, numbers, to); break;                                  \
    case E4M3_PTH: quantise_typed(SOURCE, E4M3, 1, from, n, divisor, numbers, to); break;                              \
    case E5M2: quantise_typed(SOURCE, E5M2, 0, from, n, divisor, numbers, to); break;                                  \
    default: quantise_typed(SOURCE, I8, 1, from, n, divisor, numbers, to); break;                                      \
    }
    switch (source) {
    case F32: QUANTISE(F32) break;
    case F16: QUANTISE(F16) break;
    default: QUANTISE(BF16) break;
    }
#undef QUANTISE
}

INLINE float larger_magnitude(float m, float x) {
    const uint32_t b = bits_of(x) & 0x7FFFFFFF;
    return b <= 0x7F800000 && float_of(b) > m ? float_of(b) : m;
}

// The largest magnitude of those that are numbers, and whether all are known to be.
struct extent {
    float largest;
    int numbers;
};

INLINE struct extent extent_typed(const int source, const void *from, int n) {
    struct extent e = {0, 0};
    int i = 0;
#ifdef HAS_NARROW_STORES
    const uint32_t infinite = source == F32 ? 0x7F800000 : source == F16 ? 0x7C00 : 0x7F80;
    const uint32_t bits = source == F32 ? vf_largest_of_floats(from, n) : vf_largest_of_halves(from, n);
    if (bits <= infinite) {
        return (struct extent){source == F32 ? float_of(bits) : source == F16 ? f16_to_float((uint16_t)bits) : bf16_to_float((uint16_t)bits), 1};
    }
    vf all = vf_zero();
    for (; i + LANES <= n; i += LANES) {
        all = vf_larger_magnitude(all, load_as(source, from, i));
    }
    e.largest = vf_reduce_max(all);
#endif
    for (; i < n; i++) {
        e.largest = larger_magnitude(e.largest, element_as(source, from, i));
    }
    return e;
}

static struct extent extent(int source, const void *from, int n) {
    switch (source) {
    case F32: return extent_typed(F32, from, n);
    case F16: return extent_typed(F16, from, n);
    default: return extent_typed(BF16, from, n);
    }
}

// One token of one head as the cache's elements, in head order.
static void convert_row(int source, int type, const void *from, int n, float divisor, int numbers, void *to) {
    if (element_bytes(type) == 1) {
        quantise(source, type, from, n, divisor, numbers, to);
        return;
    }
    float x[MOST_HEAD_SIZE];
    to_floats(source, from, n, x);
    if (divisor != 1) {
        for (int i = 0; i < n; i++) {
            x[i] = x[i] / divisor;
        }
    }
    from_floats(type, x, n, 1, to);
}

// One head of the tokens of a run, or what follows it: bytes.
struct source {
    const char *first;
    int64_t stride;
    int64_t ahead; // to the rows that come next, 0 if none are known
};

static struct source source_of(const bifocal_cpu_kv_write *w, const void *data, int64_t stride, int n, int64_t token, int count, int h, int more) {
    const int bytes = element_bytes(w->dtype);
    const int last = h + 1 == w->cache.num_kv_heads;
    const int64_t ahead = !last ? n : more ? count * stride - (int64_t)h * n : 0;
    return (struct source){bytes_at(data, (token * stride + (int64_t)h * n) * bytes), stride * bytes, ahead * bytes};
}

// The rows of a run as the cache's elements: where they are if they are that already, else in `room`. What they are divided by comes
// first for all of them, so that no row waits for its own; while one is converted, the one that takes its place in the next run is asked for.
static void convert_rows(const bifocal_cpu_kv_write *w, struct source from, int count, int n, float scale, char *room, const char **rows,
                         float *divisors) {
    const int type = w->cache.dtype;
    const int source_bytes = element_bytes(w->dtype);
    const int bytes = element_bytes(type);
    int numbers[RUN];
    for (int i = 0; i < count; i++) {
        rows[i] = from.first + i * from.stride;
        divisors[i] = scale;
        numbers[i] = 0;
        if (has_token_scales(type)) {
            const struct extent e = extent(w->dtype, rows[i], n);
            divisors[i] = e.largest > 0 ? e.largest / (type == I8 ? 127.0f : 448.0f) : 1;
            numbers[i] = e.numbers;
        }
    }
    for (int i = 0; i < count && (type != w->dtype || scale != 1); i++) {
        char *to = room + (int64_t)i * n * bytes;
        for (int at = 0; from.ahead && at < n * source_bytes; at += 64) {
            __builtin_prefetch(rows[i] + from.ahead + at);
        }
        convert_row(w->dtype, type, rows[i], n, divisors[i], numbers[i], to);
        rows[i] = to;
    }
}

// ------------------------------------------------------------------------------------------------------- layout

// A row's units of so many bytes, each to its place in a line of sixteen.
INLINE void scatter_units(const int unit, const char *row, int units, int place, char *to) {
    for (int u = 0; u < units; u++) {
        memcpy(to + ((int64_t)u * RUN + place) * unit, row + (int64_t)u * unit, (size_t)unit);
    }
}

// Sixteen rows of words to lines of sixteen words.
static void transpose_words(const char *const *rows, int units, char *to) {
    int u = 0;
    for (; u + 4 <= units; u += 4) {
        UNROLL for (int r = 0; r < RUN; r += 4) {
            const words a = *(const words *)(rows[r] + u * 4), b = *(const words *)(rows[r + 1] + u * 4);
            const words c = *(const words *)(rows[r + 2] + u * 4), d = *(const words *)(rows[r + 3] + u * 4);
            const long_words ab = (long_words)LOW_WORDS(a, b), cd = (long_words)LOW_WORDS(c, d);
            const long_words ab_high = (long_words)HIGH_WORDS(a, b), cd_high = (long_words)HIGH_WORDS(c, d);
            char *line = to + (int64_t)u * 64 + r * 4;
            *(long_words *)line = LOW_LONG(ab, cd);
            *(long_words *)(line + 64) = HIGH_LONG(ab, cd);
            *(long_words *)(line + 128) = LOW_LONG(ab_high, cd_high);
            *(long_words *)(line + 192) = HIGH_LONG(ab_high, cd_high);
        }
    }
    for (int r = 0; r < RUN; r++) {
        scatter_units(4, rows[r] + u * 4, units - u, r, to + (int64_t)u * 64);
    }
}

// Sixteen rows of two-byte units to lines of sixteen units.
static void transpose_halves(const char *const *rows, int units, char *to) {
    int u = 0;
    for (; u + 8 <= units; u += 8) {
        UNROLL for (int r = 0; r < RUN; r += 8) {
            words pairs[8];
            UNROLL for (int i = 0; i < 4; i++) {
                const halves a = *(const halves *)(rows[r + 2 * i] + u * 2), b = *(const halves *)(rows[r + 2 * i + 1] + u * 2);
                pairs[i] = (words)LOW_HALVES(a, b);
                pairs[i + 4] = (words)HIGH_HALVES(a, b);
            }
            UNROLL for (int i = 0; i < 8; i += 4) {
                const long_words ab = (long_words)LOW_WORDS(pairs[i], pairs[i + 1]), cd = (long_words)LOW_WORDS(pairs[i + 2], pairs[i + 3]);
                const long_words ab_high = (long_words)HIGH_WORDS(pairs[i], pairs[i + 1]);
                const long_words cd_high = (long_words)HIGH_WORDS(pairs[i + 2], pairs[i + 3]);
                char *line = to + (int64_t)(u + i) * 32 + r * 2;
                *(long_words *)line = LOW_LONG(ab, cd);
                *(long_words *)(line + 32) = HIGH_LONG(ab, cd);
                *(long_words *)(line + 64) = LOW_LONG(ab_high, cd_high);
                *(long_words *)(line + 96) = HIGH_LONG(ab_high, cd_high);
            }
        }
    }
    for (int r = 0; r < RUN; r++) {
        scatter_units(2, rows[r] + u * 2, units - u, r, to + (int64_t)u * 32);
    }
}

// A run of K; place: of its first token in the block.
static void store_k(int type, const char *const *rows, int count, int n, int place, char *head) {
    const int bytes = element_bytes(type);
    char *to = head + (int64_t)(place / RUN) * RUN * n * bytes;
    const int unit = bytes * pair_width(type);
    const int units = n / pair_width(type);
    if (count == RUN) {
        if (unit == 4) {
            transpose_words(rows, units, to);
        } else {
            transpose_halves(rows, units, to);
        }
        return;
    }
    for (int i = 0; i < count; i++) {
        if (unit == 4) {
            scatter_units(4, rows[i], units, (place + i) % RUN, to);
        } else {
            scatter_units(2, rows[i], units, (place + i) % RUN, to);
        }
    }
}

// Two rows, their elements in turn.
INLINE void interleave(const int bytes, const char *a, const char *b, int n, char *to) {
    int d = 0;
    for (; d + 16 / bytes <= n; d += 16 / bytes) {
        if (bytes == 2) {
            const halves x = *(const halves *)(a + d * 2), y = *(const halves *)(b + d * 2);
            *(halves *)(to + d * 4) = LOW_HALVES(x, y);
            *(halves *)(to + d * 4 + 16) = HIGH_HALVES(x, y);
        } else {
            const octets x = *(const octets *)(a + d), y = *(const octets *)(b + d);
            *(octets *)(to + d * 2) = LOW_OCTETS(x, y);
            *(octets *)(to + d * 2 + 16) = HIGH_OCTETS(x, y);
        }
    }
    for (; d < n; d++) {
        memcpy(to + d * 2 * bytes, a + d * bytes, (size_t)bytes);
        memcpy(to + (d * 2 + 1) * bytes, b + d * bytes, (size_t)bytes);
    }
}

INLINE void store_v_typed(const int bytes, const char *const *rows, int count, int n, int place, char *head) {
    for (int i = 0; i < count;) {
        const int at = place + i;
        char *to = head + (int64_t)(at / 2 * 2) * n * bytes;
        if (at % 2 == 0 && i + 1 < count) {
            interleave(bytes, rows[i], rows[i + 1], n, to);
            i += 2;
            continue;
        }
        for (int d = 0; d < n; d++) {
            memcpy(to + (d * 2 + at % 2) * bytes, rows[i] + d * bytes, (size_t)bytes);
        }
        i++;
    }
}

static void store_v(int type, const char *const *rows, int count, int n, int place, char *head) {
    if (type == F32) {
        for (int i = 0; i < count; i++) {
            memcpy(head + (int64_t)(place + i) * n * 4, rows[i], (size_t)n * 4);
        }
    } else if (element_bytes(type) == 2) {
        store_v_typed(2, rows, count, n, place, head);
    } else {
        store_v_typed(1, rows, count, n, place, head);
    }
}

// Tokens token..token+count-1 of one head, at places of one sub-block; more: as many follow them.
static void write_run(const bifocal_cpu_kv_write *w, int64_t token, int count, int64_t slot, int h, int more) {
    const bifocal_cpu_cache *c = &w->cache;
    const int64_t block = slot / c->block_size;
    const int place = (int)(slot % c->block_size);
    char *k = (char *)c->k + block * c->k_block_stride + h * c->k_head_stride;
    char *v = (char *)c->v + block * c->v_block_stride + h * c->v_head_stride;
    const float k_scale = c->k_scale ? c->k_scale[(int64_t)h * c->scale_stride] : 1;
    const float v_scale = c->v_scale ? c->v_scale[(int64_t)h * c->scale_stride] : 1;
    const struct source from_k = source_of(w, w->k, w->k_token_stride, c->head_size_k, token, count, h, more);
    const struct source from_v = source_of(w, w->v, w->v_token_stride, c->head_size_v, token, count, h, more);
    __attribute__((aligned(64))) char room[RUN * MOST_HEAD_SIZE * 4];
    const char *rows[RUN];
    float scales[RUN];
    convert_rows(w, from_k, count, c->head_size_k, k_scale, room, rows, scales);
    store_k(c->dtype, rows, count, c->head_size_k, place, k);
    if (has_token_scales(c->dtype)) {
        memcpy(k + (int64_t)c->block_size * c->head_size_k + place * 4, scales, (size_t)count * 4);
    }
    convert_rows(w, from_v, count, c->head_size_v, v_scale, room, rows, scales);
    store_v(c->dtype, rows, count, c->head_size_v, place, v);
    if (has_token_scales(c->dtype)) {
        memcpy(v + (int64_t)c->block_size * c->head_size_v + place * 4, scales, (size_t)count * 4);
    }
}

static void write_kv(const bifocal_cpu_kv_write *w, int64_t first, int64_t count) {
    const int64_t end = first + count;
    for (int64_t t = first; t < end;) {
        const int64_t slot = w->slots[t];
        int run = 1;
        if (slot >= 0) {
            const int most = smaller(RUN - (int)(slot % RUN), end - t < RUN ? (int)(end - t) : RUN);
            while (run < most && w->slots[t + run] == slot + run) {
                run++;
            }
            for (int h = 0; h < w->cache.num_kv_heads; h++) {
                write_run(w, t, run, slot, h, t + 2 * run <= end);
            }
        }
        t += run;
    }
}
