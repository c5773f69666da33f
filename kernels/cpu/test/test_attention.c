// SPDX-License-Identifier: Apache-2.0
// Tests of libbifocal_cpu against a plain double-precision attention, for every instruction set of this machine.
//
//   test_attention [--cases N] [--seed S] [--case I] [--isa NAME] [--verbose]
//
// Every random case has its own seed, which a failure prints: `--seed S --case I` runs that case alone. All buffers
// end (or begin) at a page without access.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../bifocal_cpu.h"

static int failures;
static int verbose;

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        failures++;                                                                                                    \
        printf("FAIL [%s] %s: ", bifocal_cpu_isa(), current);                                                          \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
    } while (0)

static char current[1024];

// ------------------------------------------------------------------------------------------------------- random

static uint64_t state;

static uint64_t next_random(void) {
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
static int below(int n) { return (int)(next_random() % (uint64_t)n); }
static int between(int a, int b) { return a + below(b - a + 1); }
static int chance(int percent) { return below(100) < percent; }
static double uniform(void) { return (double)(next_random() >> 11) * 0x1p-53; }
static double normal(void) { return sqrt(-2 * log(uniform() + 1e-300)) * cos(6.283185307179586 * uniform()); }
static int pick(const int *from, int n) { return from[below(n)]; }
#define PICK(...) pick((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

// ------------------------------------------------------------------------------------- memory between guard pages

struct guarded {
    char *map;
    size_t map_size;
    char *data;
    size_t size;
};

static struct guarded guarded_new(size_t size, size_t alignment) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct guarded g;
    const size_t inner = (size + page - 1) / page * page + (size == 0 ? page : 0);
    g.map_size = inner + 2 * page;
    g.map = mmap(0, g.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g.map == MAP_FAILED || mprotect(g.map + page, inner, PROT_READ | PROT_WRITE)) {
        perror("mmap");
        exit(2);
    }
    // Flush against the page behind, or the page before, as alignment allows.
    g.data = chance(50) ? g.map + page : g.map + page + (inner - size) / alignment * alignment;
    g.size = size;
    memset(g.map + page, 0xFF, inner);
    return g;
}

static void guarded_free(struct guarded *g) {
    munmap(g->map, g->map_size);
    g->map = 0;
}

// ------------------------------------------------------------------------------------------------ element types

static const char *type_names[] = {"float32", "float16", "bfloat16", "e4m3", "e5m2", "int8-token", "e4m3-token"};

static int bytes_of_type(int t) { return t == BIFOCAL_CPU_FLOAT32 ? 4 : t <= BIFOCAL_CPU_BFLOAT16 ? 2 : 1; }
static int token_scaled(int t) { return t >= BIFOCAL_CPU_INT8_PER_TOKEN_HEAD; }

static double small_float(int code, int exponent_bits, int mantissa_bits, int bias) {
    const int sign = code >> (exponent_bits + mantissa_bits) & 1;
    const int e = code >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int m = code & ((1 << mantissa_bits) - 1);
    const double x = e == 0 ? ldexp(m, 1 - bias - mantissa_bits) : ldexp((1 << mantissa_bits) + m, e - bias - mantissa_bits);
    return sign ? -x : x;
}

static double e4m3_value(int code) { return (code & 0x7F) == 0x7F ? NAN : small_float(code, 4, 3, 7); }
static double e5m2_value(int code) {
    return (code & 0x7C) == 0x7C ? ((code & 3) ? NAN : (code & 0x80) ? -INFINITY : INFINITY) : small_float(code, 5, 2, 15);
}

static double e4m3_values[256];
static double e5m2_values[256];

static __attribute__((constructor)) void fill_values(void) {
    for (int code = 0; code < 256; code++) {
        e4m3_values[code] = e4m3_value(code);
        e5m2_values[code] = e5m2_value(code);
    }
}

// Nearest code, ties to the even one, saturating: by looking at all of them.
static int nearest_code(double x, const double *values) {
    int best = 0;
    double distance = INFINITY;
    for (int code = 0; code < 128; code++) {
        const double v = values[code];
        const double d = fabs(fabs(x) - v);
        if (isfinite(v) && (d < distance || (d == distance && code % 2 == 0))) {
            best = code;
            distance = d;
        }
    }
    return best | (signbit(x) ? 0x80 : 0);
}

static float bf16_value(uint16_t b) {
    const uint32_t u = (uint32_t)b << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint16_t bf16_code(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    const uint32_t low = u & 0xFFFF;
    uint32_t high = u >> 16;
    if (low > 0x8000 || (low == 0x8000 && (high & 1))) {
        high++;
    }
    return (uint16_t)high;
}

static uint16_t f16_code(float x) {
    const _Float16 h = (_Float16)x;
    uint16_t b;
    memcpy(&b, &h, 2);
    return b;
}

static double f16_value(uint16_t b) {
    _Float16 h;
    memcpy(&h, &b, 2);
    return (double)h;
}

static double get_element(int type, const void *base, int64_t i) {
    switch (type) {
    case BIFOCAL_CPU_FLOAT32: return ((const float *)base)[i];
    case BIFOCAL_CPU_FLOAT16: return f16_value(((const uint16_t *)base)[i]);
    case BIFOCAL_CPU_BFLOAT16: return bf16_value(((const uint16_t *)base)[i]);
    case BIFOCAL_CPU_FLOAT8_E4M3:
    case BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD: return e4m3_values[((const uint8_t *)base)[i]];
    case BIFOCAL_CPU_FLOAT8_E5M2: return e5m2_values[((const uint8_t *)base)[i]];
    default: return ((const int8_t *)base)[i];
    }
}

static void put_element(int type, void *base, int64_t i, double x) {
    switch (type) {
    case BIFOCAL_CPU_FLOAT32: ((float *)base)[i] = (float)x; break;
    case BIFOCAL_CPU_FLOAT16: ((uint16_t *)base)[i] = f16_code((float)x); break;
    case BIFOCAL_CPU_BFLOAT16: ((uint16_t *)base)[i] = bf16_code((float)x); break;
    case BIFOCAL_CPU_FLOAT8_E4M3:
    case BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD: ((uint8_t *)base)[i] = (uint8_t)nearest_code(x, e4m3_values); break;
    case BIFOCAL_CPU_FLOAT8_E5M2: ((uint8_t *)base)[i] = (uint8_t)nearest_code(x, e5m2_values); break;
    default: ((int8_t *)base)[i] = (int8_t)rint(fmin(fmax(x, -127), 127)); break;
    }
}

// ------------------------------------------------------------------------------------------------------- a case

static int64_t index_k(int type, int head_size, int t, int d) {
    return type == BIFOCAL_CPU_FLOAT32 ? (int64_t)(t / 16) * 16 * head_size + d * 16 + t % 16
                                       : (int64_t)(t / 16) * 16 * head_size + d / 2 * 32 + t % 16 * 2 + d % 2;
}

static int64_t index_v(int type, int head_size, int t, int d) {
    return type == BIFOCAL_CPU_FLOAT32 ? (int64_t)t * head_size + d : (int64_t)(t / 2) * 2 * head_size + d * 2 + t % 2;
}

struct request {
    int query_first, query_len, position, key_len, left, right, first_block;
};

enum { MOST_REQUESTS = 4 };

struct test_case {
    bifocal_cpu_params p;
    int requests;
    struct request request[MOST_REQUESTS];
    int tokens;
    int blocks;
    struct guarded q, k, v, out, lse, table, first, last, alibi, sinks, k_scales, v_scales, partial_out, partial_lse, scratch, items,
        merges;
};

static double k_value(const struct test_case *c, int request, int head, int t, int d) {
    const bifocal_cpu_cache *a = &c->p.cache;
    const int64_t block = c->p.block_table[request * c->p.block_table_stride + t / a->block_size];
    const char *base = (const char *)a->k + block * a->k_block_stride + head * a->k_head_stride;
    double scale = a->k_scale ? a->k_scale[head * a->scale_stride] : 1;
    if (token_scaled(a->dtype)) {
        scale = ((const float *)(base + (int64_t)a->block_size * a->head_size_k))[t % a->block_size];
    }
    return get_element(a->dtype, base, index_k(a->dtype, a->head_size_k, t % a->block_size, d)) * scale;
}

static double v_value(const struct test_case *c, int request, int head, int t, int d) {
    const bifocal_cpu_cache *a = &c->p.cache;
    const int64_t block = c->p.block_table[request * c->p.block_table_stride + t / a->block_size];
    const char *base = (const char *)a->v + block * a->v_block_stride + head * a->v_head_stride;
    double scale = a->v_scale ? a->v_scale[head * a->scale_stride] : 1;
    if (token_scaled(a->dtype)) {
        scale = ((const float *)(base + (int64_t)a->block_size * a->head_size_v))[t % a->block_size];
    }
    return get_element(a->dtype, base, index_v(a->dtype, a->head_size_v, t % a->block_size, d)) * scale;
}

// K and V of one request and KV head as doubles.
struct keys {
    double *k, *v;
};

static struct keys read_keys(const struct test_case *c, int request, int head) {
    const bifocal_cpu_cache *a = &c->p.cache;
    const int n = c->request[request].key_len;
    struct keys keys = {malloc((size_t)n * (size_t)a->head_size_k * 8 + 8), malloc((size_t)n * (size_t)a->head_size_v * 8 + 8)};
    for (int t = 0; t < n; t++) {
        for (int d = 0; d < a->head_size_k; d++) {
            keys.k[(int64_t)t * a->head_size_k + d] = k_value(c, request, head, t, d);
        }
        for (int d = 0; d < a->head_size_v; d++) {
            keys.v[(int64_t)t * a->head_size_v + d] = v_value(c, request, head, t, d);
        }
    }
    return keys;
}

static void reference_row(const struct test_case *c, const struct keys *keys, int request, int i, int head, double *out, double *lse) {
    const bifocal_cpu_params *p = &c->p;
    const struct request *r = &c->request[request];
    const int head_k = p->cache.head_size_k;
    const int head_v = p->cache.head_size_v;
    const int64_t token = r->query_first + i;
    const int64_t position = (int64_t)r->position + i;
    static double logits[1 << 16];
    double highest = p->sinks ? p->sinks[head] : -INFINITY;
    double q[1024];
    for (int d = 0; d < head_k; d++) {
        q[d] = get_element(p->q_dtype, p->q, token * p->q_token_stride + (int64_t)head * head_k + d);
    }
    for (int t = 0; t < r->key_len; t++) {
        int visible = (r->left < 0 || t >= position - r->left) && (r->right < 0 || t <= position + r->right);
        if (p->key_first) {
            visible = t >= p->key_first[token] && t <= p->key_last[token];
        }
        logits[t] = -INFINITY;
        if (!visible) {
            continue;
        }
        double x = 0;
        for (int d = 0; d < head_k; d++) {
            x += q[d] * keys->k[(int64_t)t * head_k + d];
        }
        x *= p->scale;
        if (p->softcap != 0) {
            x = p->softcap * tanh(x / p->softcap);
        }
        if (p->alibi_slopes) {
            x += p->alibi_slopes[head] * (double)(t - position);
        }
        logits[t] = x;
        highest = x > highest ? x : highest;
    }
    for (int d = 0; d < head_v; d++) {
        out[d] = 0;
    }
    *lse = -INFINITY;
    if (highest == -INFINITY) {
        return;
    }
    double sum = p->sinks ? exp(p->sinks[head] - highest) : 0;
    for (int t = 0; t < r->key_len; t++) {
        const double weight = logits[t] == -INFINITY ? 0 : exp(logits[t] - highest);
        sum += weight;
        for (int d = 0; weight != 0 && d < head_v; d++) {
            out[d] += weight * keys->v[(int64_t)t * head_v + d];
        }
    }
    for (int d = 0; d < head_v; d++) {
        out[d] /= sum;
    }
    *lse = highest + log(sum);
}

// The error of a logit, and with it that of the output, grows with the logit: more is allowed where queries are large,
// or where ALiBi adds hundreds because the visible keys lie far from the query.
static double sharpness = 1;

static double tolerance(const bifocal_cpu_params *p) {
    return p->q_dtype == BIFOCAL_CPU_FLOAT32 ? 4e-6 * sharpness : p->q_dtype == BIFOCAL_CPU_FLOAT16 ? 3e-3 : 1.2e-2;
}

static double worst_error[3];
static double worst_lse[3];

static void compare(const struct test_case *c) {
    const bifocal_cpu_params *p = &c->p;
    const int64_t rows = (int64_t)c->tokens * p->num_q_heads;
    const int n = p->cache.head_size_v;
    double *wanted = calloc((size_t)(rows * n + 1), sizeof(double));
    double *wanted_lse = calloc((size_t)rows + 1, sizeof(double));
    double squares = 0;
    for (int request = 0; request < c->requests; request++) {
        const int group = p->num_q_heads / p->cache.num_kv_heads;
        for (int h = 0; h < p->num_q_heads; h++) {
            static struct keys keys;
            if (h % group == 0) {
                keys = read_keys(c, request, h / group);
            }
            for (int i = 0; i < c->request[request].query_len; i++) {
                const int64_t row = (int64_t)(c->request[request].query_first + i) * p->num_q_heads + h;
                reference_row(c, &keys, request, i, h, wanted + row * n, wanted_lse + row);
                for (int d = 0; d < n; d++) {
                    squares += wanted[row * n + d] * wanted[row * n + d];
                }
            }
            if (h % group == group - 1) {
                free(keys.k);
                free(keys.v);
            }
        }
    }
    const double rms = rows ? sqrt(squares / (double)rows) : 0;
    int reported = 0;
    for (int64_t row = 0; row < rows && reported < 3; row++) {
        const int64_t token = row / p->num_q_heads;
        const int64_t head = row % p->num_q_heads;
        double difference = 0;
        double norm = 0;
        for (int d = 0; d < n; d++) {
            const double got = get_element(p->out_dtype, p->out, token * p->out_token_stride + head * n + d);
            difference += (got - wanted[row * n + d]) * (got - wanted[row * n + d]);
            norm += wanted[row * n + d] * wanted[row * n + d];
        }
        const double scale = fmax(sqrt(norm), rms);
        const double error = scale > 0 ? sqrt(difference) / scale : sqrt(difference);
        if (!(error <= tolerance(p))) {
            FAIL("token %ld head %ld: error %.3g, bound %.3g", (long)token, (long)head, error, tolerance(p));
            reported++;
        }
        worst_error[p->q_dtype] = fmax(worst_error[p->q_dtype], sharpness == 1 ? error : 0);
        if (p->lse) {
            const double got = p->lse[token * p->lse_token_stride + head];
            const double want = wanted_lse[row];
            const double bound = p->q_dtype == BIFOCAL_CPU_FLOAT32 ? 1e-5 : p->q_dtype == BIFOCAL_CPU_FLOAT16 ? 1e-5 : 2e-4;
            const double e = want == got ? 0 : fabs(got - want) / fmax(1, fabs(want));
            if (!(e <= bound)) {
                FAIL("token %ld head %ld: lse %.9g, wanted %.9g", (long)token, (long)head, got, want);
                reported++;
            }
            worst_lse[p->q_dtype] = fmax(worst_lse[p->q_dtype], e);
        }
    }
    free(wanted);
    free(wanted_lse);
}

// Shape and features, then memory. fill() gives values.
struct shape {
    int q_dtype, kv_dtype, out_dtype, head_k, head_v, kv_heads, group, block_size, lse, padding;
};

static void allocate(struct test_case *c, const struct shape *s) {
    bifocal_cpu_params *p = &c->p;
    bifocal_cpu_cache *a = &p->cache;
    p->size = sizeof *p;
    p->q_dtype = s->q_dtype;
    p->out_dtype = s->out_dtype;
    p->num_q_heads = s->kv_heads * s->group;
    a->dtype = s->kv_dtype;
    a->num_kv_heads = s->kv_heads;
    a->block_size = s->block_size;
    a->head_size_k = s->head_k;
    a->head_size_v = s->head_v;
    c->tokens = 0;
    c->blocks = 1;
    int most_blocks = 1;
    for (int i = 0; i < c->requests; i++) {
        struct request *r = &c->request[i];
        r->query_first = c->tokens;
        c->tokens += r->query_len;
        const int blocks = (r->key_len + s->block_size - 1) / s->block_size;
        r->first_block = c->blocks;
        c->blocks += blocks;
        most_blocks = blocks > most_blocks ? blocks : most_blocks;
    }
    a->k_head_stride = bifocal_cpu_cache_head_bytes(s->kv_dtype, s->head_k, s->block_size) + s->padding;
    a->v_head_stride = bifocal_cpu_cache_head_bytes(s->kv_dtype, s->head_v, s->block_size) + s->padding;
    a->k_block_stride = a->k_head_stride * s->kv_heads + s->padding;
    a->v_block_stride = a->v_head_stride * s->kv_heads + s->padding;
    // The last block ends where its last head ends, so that the guard page is right behind.
    c->k = guarded_new((size_t)(a->k_block_stride * c->blocks - 2 * s->padding), 4);
    c->v = guarded_new((size_t)(a->v_block_stride * c->blocks - 2 * s->padding), 4);
    a->k = c->k.data;
    a->v = c->v.data;
    p->q_token_stride = (int64_t)p->num_q_heads * s->head_k + s->padding;
    p->out_token_stride = (int64_t)p->num_q_heads * s->head_v + s->padding;
    p->lse_token_stride = p->num_q_heads;
    const int64_t t = c->tokens;
    const int cut = t ? s->padding : 0;
    c->q = guarded_new((size_t)((p->q_token_stride * t - cut) * bytes_of_type(s->q_dtype)), 2);
    c->out = guarded_new((size_t)((p->out_token_stride * t - cut) * bytes_of_type(s->out_dtype)), 2);
    p->q = c->q.data;
    p->out = c->out.data;
    c->lse = guarded_new((size_t)(t * p->num_q_heads * 4), 4);
    p->lse = s->lse ? (float *)c->lse.data : 0;
    p->block_table_stride = most_blocks;
    c->table = guarded_new((size_t)(c->requests * most_blocks) * 4, 4);
    int32_t *table = (int32_t *)c->table.data;
    p->block_table = table;
    // Blocks of all requests in one random order; unused entries stay -1.
    int *order = calloc((size_t)c->blocks, sizeof(int));
    for (int i = 1; i < c->blocks; i++) {
        const int j = between(1, i);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < c->requests; i++) {
        for (int b = 0; b < (c->request[i].key_len + s->block_size - 1) / s->block_size; b++) {
            table[i * most_blocks + b] = order[c->request[i].first_block + b];
        }
    }
    free(order);
}

static void fill(struct test_case *c, double q_size) {
    bifocal_cpu_params *p = &c->p;
    bifocal_cpu_cache *a = &p->cache;
    const int64_t width = (int64_t)p->num_q_heads * a->head_size_k;
    for (int64_t t = 0; t < c->tokens; t++) {
        for (int64_t i = 0; i < width; i++) {
            put_element(p->q_dtype, c->q.data, t * p->q_token_stride + i, normal() * q_size);
        }
    }
    for (int request = 0; request < c->requests; request++) {
        for (int t = 0; t < c->request[request].key_len; t++) {
            const int64_t block = p->block_table[request * p->block_table_stride + t / a->block_size];
            const int place = t % a->block_size;
            for (int h = 0; h < a->num_kv_heads; h++) {
                char *k = (char *)a->k + block * a->k_block_stride + h * a->k_head_stride;
                char *v = (char *)a->v + block * a->v_block_stride + h * a->v_head_stride;
                double size = 1;
                if (token_scaled(a->dtype)) {
                    const double top = a->dtype == BIFOCAL_CPU_INT8_PER_TOKEN_HEAD ? 40 : 100;
                    const float k_scale = (float)((0.5 + uniform()) / top);
                    const float v_scale = (float)((0.5 + uniform()) / top);
                    memcpy(k + (int64_t)a->block_size * a->head_size_k + place * 4, &k_scale, 4);
                    memcpy(v + (int64_t)a->block_size * a->head_size_v + place * 4, &v_scale, 4);
                    size = top;
                }
                for (int d = 0; d < a->head_size_k; d++) {
                    put_element(a->dtype, k, index_k(a->dtype, a->head_size_k, place, d), normal() * size);
                }
                for (int d = 0; d < a->head_size_v; d++) {
                    put_element(a->dtype, v, index_v(a->dtype, a->head_size_v, place, d), normal() * size);
                }
            }
        }
    }
}

static void release(struct test_case *c) {
    struct guarded *all[] = {&c->q,     &c->k,        &c->v,        &c->out,         &c->lse,         &c->table,   &c->first, &c->last, &c->alibi,
                             &c->sinks, &c->k_scales, &c->v_scales, &c->partial_out, &c->partial_lse, &c->scratch, &c->items, &c->merges};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->map) {
            guarded_free(all[i]);
        }
    }
}

static float *guarded_floats(struct guarded *g, int n) {
    *g = guarded_new((size_t)n * 4, 4);
    return (float *)g->data;
}

// Cuts the case into items of at most `tile` tokens and at most `keys` keys, runs them in a random order, and merges.
static void run(struct test_case *c, int tile, int keys) {
    bifocal_cpu_params *p = &c->p;
    const int group = p->num_q_heads / p->cache.num_kv_heads;
    int64_t items = 0, merges = 0, rows = 0;
    for (int pass = 0; pass < 2; pass++) {
        bifocal_cpu_item *item = (bifocal_cpu_item *)c->items.data;
        bifocal_cpu_merge_item *merge = (bifocal_cpu_merge_item *)c->merges.data;
        items = merges = rows = 0;
        for (int i = 0; i < c->requests; i++) {
            const struct request *r = &c->request[i];
            const int splits = keys >= r->key_len ? 1 : (r->key_len + keys - 1) / keys;
            for (int first = 0; first < r->query_len; first += tile) {
                const int n = r->query_len - first < tile ? r->query_len - first : tile;
                for (int h = 0; h < p->cache.num_kv_heads; h++) {
                    const int64_t row = rows;
                    for (int s = 0; s < splits; s++) {
                        if (pass) {
                            item[items] = (bifocal_cpu_item){
                                .request = i,
                                .kv_head = h,
                                .query_first = r->query_first + first,
                                .query_count = n,
                                .position = r->position + first,
                                .key_len = r->key_len,
                                .left_window = r->left,
                                .right_window = r->right,
                                .key_begin = splits == 1 ? 0 : s * keys,
                                .key_end = splits == 1 || s == splits - 1 ? r->key_len : (s + 1) * keys,
                                .partial_row = splits == 1 ? -1 : row + (int64_t)s * n * group,
                            };
                        }
                        items++;
                    }
                    if (splits > 1) {
                        if (pass) {
                            merge[merges] = (bifocal_cpu_merge_item){row, h, r->query_first + first, n, splits};
                        }
                        merges++;
                        rows += (int64_t)splits * n * group;
                    }
                }
            }
        }
        if (!pass) {
            c->items = guarded_new((size_t)items * sizeof(bifocal_cpu_item), 8);
            c->merges = guarded_new((size_t)merges * sizeof(bifocal_cpu_merge_item), 8);
            p->partial_out = guarded_floats(&c->partial_out, (int)rows * p->cache.head_size_v);
            p->partial_lse = guarded_floats(&c->partial_lse, (int)rows);
        }
    }
    const int64_t size = bifocal_cpu_scratch_bytes(p, tile);
    if (size < 0) {
        FAIL("scratch: %s", bifocal_cpu_error_text((int32_t)size));
        return;
    }
    c->scratch = guarded_new((size_t)size, 64);
    bifocal_cpu_item *item = (bifocal_cpu_item *)c->items.data;
    for (int64_t i = items - 1; i > 0; i--) {
        const int64_t j = below((int)i + 1);
        const bifocal_cpu_item t = item[i];
        item[i] = item[j];
        item[j] = t;
    }
    int32_t code = bifocal_cpu_attend(p, item, items, c->scratch.data);
    if (code) {
        FAIL("attend: %s", bifocal_cpu_error_text(code));
        return;
    }
    code = bifocal_cpu_merge(p, (bifocal_cpu_merge_item *)c->merges.data, merges);
    if (code) {
        FAIL("merge: %s", bifocal_cpu_error_text(code));
        return;
    }
    // Padding between rows is nobody's.
    const int64_t width = (int64_t)p->num_q_heads * p->cache.head_size_v;
    for (int64_t t = 0; t + 1 < c->tokens; t++) {
        for (int64_t i = width; i < p->out_token_stride; i++) {
            for (int b = 0; b < bytes_of_type(p->out_dtype); b++) {
                if ((uint8_t)c->out.data[(t * p->out_token_stride + i) * bytes_of_type(p->out_dtype) + b] != 0xFF) {
                    FAIL("padding of the output was written");
                    return;
                }
            }
        }
    }
}

static void random_case(uint64_t seed, int number) {
    state = seed * 1000003u + (uint64_t)number;
    static const int heads[] = {32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512};
    static const int odd_heads[] = {2, 6, 16, 18, 34, 48, 66, 100, 130, 200, 576};
    static const int groups[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 64};
    struct test_case c = {0};
    struct shape s = {
        .q_dtype = below(3),
        .kv_dtype = 0,
        .head_k = pick(heads, 11),
        .kv_heads = between(1, 2),
        .group = pick(groups, 10),
        .block_size = PICK(16, 32, 48, 64, 128, 256),
        .lse = chance(70),
        .padding = chance(30) ? 4 * between(1, 9) : 0,
    };
    if (chance(20)) {
        s.head_k = pick(odd_heads, 11);
    }
    s.kv_dtype = chance(50) ? s.q_dtype : below(7);
    s.out_dtype = chance(30) ? BIFOCAL_CPU_FLOAT32 : s.q_dtype;
    s.head_v = chance(75) ? s.head_k : chance(70) ? pick(heads, 11) : pick(odd_heads, 11);
    c.requests = between(1, 3);
    const int kind = below(6);
    const int window = PICK(0, 1, 7, 15, 16, 31, 63, 100, 300);
    const int small = chance(50);
    // Work is bounded, because the reference is slow.
    int64_t budget = 6000000 / ((int64_t)s.head_k + s.head_v) / (s.kv_heads * s.group);
    for (int i = 0; i < c.requests; i++) {
        struct request *r = &c.request[i];
        r->key_len = chance(4) ? 0 : small ? between(1, 130) : between(1, 1400);
        r->query_len = chance(35) ? 1 : chance(5) ? 0 : between(1, small ? 40 : 200);
        r->position = r->key_len - r->query_len;
        if (chance(10) && kind != 5) {
            r->position = between(-20, r->key_len + 20);
        } else if (r->query_len > r->key_len) {
            r->query_len = r->key_len;
            r->position = 0;
        }
        while (r->query_len > 1 && (int64_t)r->query_len * r->key_len > budget) {
            r->query_len = r->query_len / 2;
            r->position = r->key_len - r->query_len;
        }
        budget -= (int64_t)r->query_len * r->key_len;
        budget = budget < 300 ? 300 : budget;
        r->left = kind == 1 || kind == 2 || kind == 3 ? window : -1;
        r->right = kind == 2 || kind == 4 ? -1 : kind == 3 ? window : 0;
    }
    allocate(&c, &s);
    bifocal_cpu_params *p = &c.p;
    p->scale = chance(5) ? -0.05f : chance(5) ? 0 : (float)(1 / sqrt(s.head_k) * (0.5 + uniform()));
    p->softcap = chance(20) ? (float)PICK(2, 30, 50) : 0;
    if (chance(20)) {
        float *slopes = guarded_floats(&c.alibi, p->num_q_heads);
        for (int h = 0; h < p->num_q_heads; h++) {
            slopes[h] = (float)(uniform() * 0.5);
        }
        p->alibi_slopes = slopes;
    }
    if (chance(25)) {
        float *sinks = guarded_floats(&c.sinks, p->num_q_heads);
        for (int h = 0; h < p->num_q_heads; h++) {
            sinks[h] = (float)(normal() * 3);
        }
        p->sinks = sinks;
    }
    if (chance(50)) {
        p->cache.scale_stride = below(2);
        const int n = p->cache.scale_stride ? s.kv_heads : 1;
        float *k = guarded_floats(&c.k_scales, n);
        float *v = guarded_floats(&c.v_scales, n);
        for (int h = 0; h < n; h++) {
            k[h] = (float)(0.5 + uniform());
            v[h] = (float)(0.5 + uniform());
        }
        p->cache.k_scale = token_scaled(s.kv_dtype) ? 0 : k;
        p->cache.v_scale = token_scaled(s.kv_dtype) ? 0 : v;
    }
    if (kind == 5) {
        c.first = guarded_new((size_t)c.tokens * 4, 4);
        c.last = guarded_new((size_t)c.tokens * 4, 4);
        int32_t *first = (int32_t *)c.first.data;
        int32_t *last = (int32_t *)c.last.data;
        for (int i = 0; i < c.requests; i++) {
            const struct request *r = &c.request[i];
            for (int t = 0; t < r->query_len; t++) {
                int lo = between(-5, r->key_len + 3), hi = between(-5, r->key_len + 70);
                first[r->query_first + t] = chance(30) ? 0 : lo;
                last[r->query_first + t] = chance(30) ? r->key_len - 1 : hi;
            }
        }
        p->key_first = first;
        p->key_last = last;
    }
    sharpness = chance(10) ? 8 : 1;
    fill(&c, sharpness);
    sharpness *= p->alibi_slopes && kind > 1 ? 3 : 1;
    const int tile = chance(40) ? 1 + below(8) : chance(50) ? bifocal_cpu_query_tile(p) : 1 << 20;
    const int keys = chance(30) ? 16 * between(1, 20) : 1 << 20;
    snprintf(current, sizeof current,
             "--seed %lu --case %d: q %s, cache %s, out %s, heads %dx%d, sizes %d/%d, block %d, mask %d window %d, scale %g, softcap %g, "
             "alibi %d, sinks %d, tile %d, keys %d, lengths %d/%d@%d %d/%d@%d %d/%d@%d",
             (unsigned long)seed, number, type_names[s.q_dtype], type_names[s.kv_dtype], type_names[s.out_dtype], s.kv_heads, s.group, s.head_k,
             s.head_v, s.block_size, kind, window, p->scale, p->softcap, p->alibi_slopes != 0, p->sinks != 0, tile, keys,
             c.request[0].query_len, c.request[0].key_len, c.request[0].position, c.request[1].query_len, c.request[1].key_len,
             c.request[1].position, c.request[2].query_len, c.request[2].key_len, c.request[2].position);
    if (verbose) {
        printf("%s\n", current);
        fflush(stdout);
    }
    run(&c, tile, keys);
    compare(&c);
    sharpness = 1;
    release(&c);
}

// ----------------------------------------------------------------------------------------- one request, given shape

static struct test_case single(struct shape s, int query_len, int key_len, int left, int right) {
    struct test_case c = {0};
    c.requests = 1;
    c.request[0] = (struct request){.query_len = query_len, .position = key_len - query_len, .key_len = key_len, .left = left, .right = right};
    allocate(&c, &s);
    c.p.scale = (float)(1 / sqrt(s.head_k));
    return c;
}

static struct shape plain_shape(int q_dtype, int kv_dtype, int head, int group) {
    return (struct shape){.q_dtype = q_dtype, .kv_dtype = kv_dtype, .out_dtype = q_dtype, .head_k = head, .head_v = head, .kv_heads = 1, .group = group, .block_size = 16, .lse = 1};
}

static void every_tail_length(void) {
    for (int q = 0; q < 3; q++) {
        for (int kv = 0; kv < 7; kv++) {
            for (int n = 1; n <= 82; n++) {
                state = (uint64_t)n;
                struct test_case c = single(plain_shape(q, kv, 32, 3), n % 3 == 0 ? (n < 9 ? n : 9) : 1, n, -1, 0);
                snprintf(current, sizeof current, "tail: q %s, cache %s, %d keys", type_names[q], type_names[kv], n);
                fill(&c, 1);
                run(&c, 1 << 20, 1 << 20);
                compare(&c);
                release(&c);
            }
        }
    }
}

static void every_head_size_and_group(void) {
    static const int heads[] = {32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512};
    static const int groups[] = {1, 3, 5, 6, 7, 8, 12, 64};
    for (int q = 0; q < 3; q++) {
        for (int h = 0; h < 11; h++) {
            for (int g = 0; g < 8; g++) {
                for (int query_len = 1; query_len <= 35; query_len += 34) {
                    if (groups[g] == 64 && query_len > 1 && h > 2) {
                        continue;
                    }
                    state = (uint64_t)(h * 100 + g);
                    struct test_case c = single(plain_shape(q, q, heads[h], groups[g]), query_len, 77, -1, 0);
                    snprintf(current, sizeof current, "shape: %s, head %d, group %d, %d queries", type_names[q], heads[h], groups[g], query_len);
                    fill(&c, 1);
                    run(&c, 1 << 20, 1 << 20);
                    compare(&c);
                    release(&c);
                }
            }
        }
    }
}

// Every code of a cache type, read as V through one visible key, comes out as its value; as K it gives its logit.
static void every_code(void) {
    for (int kv = 0; kv < 7; kv++) {
        for (int queries = 1; queries <= 40; queries += 39) {
            for (int q = 0; q < 3; q++) {
                const int codes = bytes_of_type(kv) == 1 ? 256 : kv == BIFOCAL_CPU_FLOAT32 ? 0 : 65536;
                for (int base = 0; base < codes; base += 512) {
                    struct shape s = plain_shape(q, kv, 512, 1);
                    s.head_k = 32;
                    s.out_dtype = BIFOCAL_CPU_FLOAT32;
                    struct test_case c = single(s, queries, queries, 0, 0);
                    snprintf(current, sizeof current, "codes: q %s, cache %s, from %d, %d queries", type_names[q], type_names[kv], base, queries);
                    fill(&c, 0);
                    const bifocal_cpu_cache *a = &c.p.cache;
                    for (int t = 0; t < queries; t++) {
                        char *v = (char *)a->v + c.p.block_table[t / 16] * a->v_block_stride;
                        for (int d = 0; d < 512; d++) {
                            const int code = (base + d) % codes;
                            const int64_t i = index_v(kv, 512, t % 16, d);
                            if (bytes_of_type(kv) == 1) {
                                ((uint8_t *)v)[i] = (uint8_t)(code == 128 && kv == BIFOCAL_CPU_INT8_PER_TOKEN_HEAD ? 1 : code);
                            } else {
                                ((uint16_t *)v)[i] = (uint16_t)code;
                            }
                        }
                    }
                    run(&c, 1 << 20, 1 << 20);
                    // Only the last query is looked at: with one query per key NaN of other keys cannot reach it unless masked badly.
                    const int t = queries - 1;
                    int bad = 0;
                    for (int d = 0; d < 512 && bad < 3; d++) {
                        const double want = v_value(&c, 0, 0, t, d);
                        const double got = ((const float *)c.p.out)[(int64_t)t * c.p.out_token_stride + d];
                        // Other keys' NaN and infinities times a zero probability are not excluded by the contract.
                        const int polluted = queries > 1 && !isfinite(want);
                        // The dot instruction takes subnormal bfloat16 as zero.
                        // The scale of a token is part of a probability, which bfloat16 arithmetic rounds.
                        const double bound = token_scaled(kv) && q == BIFOCAL_CPU_BFLOAT16 ? 4e-3 : 1e-6;
                        const int same = isnan(want) ? isnan(got) : fabs(got - want) <= bound * fabs(want) || got == want || fabs(want) < 1.2e-38;
                        if (!same && !polluted) {
                            FAIL("element %d: %.9g, wanted %.9g", d, got, want);
                            bad++;
                        }
                    }
                    release(&c);
                }
            }
        }
    }
}

// ------------------------------------------------------------------------------------------------- special numbers

static void set_q(struct test_case *c, double x) {
    for (int64_t t = 0; t < c->tokens; t++) {
        for (int64_t i = 0; i < (int64_t)c->p.num_q_heads * c->p.cache.head_size_k; i++) {
            put_element(c->p.q_dtype, c->q.data, t * c->p.q_token_stride + i, i % c->p.cache.head_size_k == 0 ? x : 0);
        }
    }
}

// K of token t is (x, 0, 0, ...).
static void set_k(struct test_case *c, int t, double x) {
    const bifocal_cpu_cache *a = &c->p.cache;
    for (int h = 0; h < a->num_kv_heads; h++) {
        char *k = (char *)a->k + c->p.block_table[t / a->block_size] * a->k_block_stride + h * a->k_head_stride;
        for (int d = 0; d < a->head_size_k; d++) {
            put_element(a->dtype, k, index_k(a->dtype, a->head_size_k, t % a->block_size, d), d == 0 ? x : 0);
        }
    }
}

static void check_run(struct test_case *c) {
    run(c, 1 << 20, 1 << 20);
    compare(c);
    release(c);
}

static void very_negative_logits(void) {
    for (int q = 0; q < 3; q += 2) {
        for (int queries = 1; queries <= 40; queries += 39) {
            state = 5;
            snprintf(current, sizeof current, "logits near -245000, %s, %d queries", type_names[q], queries);
            struct test_case c = single(plain_shape(q, q, 64, 4), queries, 700, -1, 0);
            fill(&c, 1);
            set_q(&c, 512);
            for (int t = 0; t < 700; t++) {
                set_k(&c, t, -3840);
            }
            check_run(&c);
            snprintf(current, sizeof current, "logits of -1e30, %s, %d queries", type_names[q], queries);
            c = single(plain_shape(q, q, 64, 4), queries, 700, -1, 0);
            fill(&c, 1);
            set_q(&c, 1e15);
            c.p.scale = 1;
            for (int t = 0; t < 700; t++) {
                set_k(&c, t, -1e15);
            }
            check_run(&c);
            // The first tiles of most rows are masked, what is left is about -300.
            snprintf(current, sizeof current, "masked first tile, logits near -300, %s, %d queries", type_names[q], queries);
            c = single(plain_shape(q, q, 64, 4), queries, 1400, 20, -1);
            fill(&c, 1);
            set_q(&c, 1);
            c.p.scale = 1;
            c.request[0].position = 600;
            for (int t = 0; t < 1400; t++) {
                set_k(&c, t, -300 + t % 3);
            }
            check_run(&c);
            snprintf(current, sizeof current, "intervals far apart, %s, %d queries", type_names[q], queries);
            c = single(plain_shape(q, q, 64, 4), queries, 1400, -1, -1);
            fill(&c, 1);
            c.first = guarded_new((size_t)queries * 4, 4);
            c.last = guarded_new((size_t)queries * 4, 4);
            for (int t = 0; t < queries; t++) {
                ((int32_t *)c.first.data)[t] = t % 2 ? 1390 : 3;
                ((int32_t *)c.last.data)[t] = t % 2 ? 1395 : t % 4 ? 9 : 2;
            }
            c.p.key_first = (int32_t *)c.first.data;
            c.p.key_last = (int32_t *)c.last.data;
            check_run(&c);
        }
    }
}

// The bits of dimension 0 of a key.
static void set_code(struct test_case *c, int t, uint32_t code) {
    const bifocal_cpu_cache *a = &c->p.cache;
    const int bytes = bytes_of_type(a->dtype);
    char *k = (char *)a->k + c->p.block_table[t / a->block_size] * a->k_block_stride;
    memcpy(k + index_k(a->dtype, a->head_size_k, t % a->block_size, 0) * bytes, &code, (size_t)bytes);
}

static void every_row_is_nan(struct test_case *c, int keys) {
    run(c, 1 << 20, keys);
    for (int64_t r = 0; r < (int64_t)c->tokens * c->p.num_q_heads; r++) {
        const float out = ((float *)c->p.out)[r * c->p.cache.head_size_v];
        if (!isnan(out) || !isnan(c->p.lse[r])) {
            FAIL("row %ld: out %g, lse %g, wanted NaN", (long)r, out, c->p.lse[r]);
            break;
        }
    }
    release(c);
}

// A visible key that is no number leaves no number, whatever stands beside it, and never looks like no key at all.
static void visible_nan_stays(void) {
    static const struct {
        int q, kv;
        uint32_t nan, infinity;
    } codes[] = {
        {BIFOCAL_CPU_FLOAT32, BIFOCAL_CPU_FLOAT32, 0x7FC00000, 0x7F800000},   {BIFOCAL_CPU_FLOAT32, BIFOCAL_CPU_FLOAT32, 0x7F800001, 0xFF800000},
        {BIFOCAL_CPU_FLOAT32, BIFOCAL_CPU_FLOAT32, 0xFFFFFFFF, 0x7F800000},   {BIFOCAL_CPU_FLOAT16, BIFOCAL_CPU_FLOAT16, 0x7E00, 0x7C00},
        {BIFOCAL_CPU_BFLOAT16, BIFOCAL_CPU_BFLOAT16, 0x7FC0, 0x7F80},         {BIFOCAL_CPU_BFLOAT16, BIFOCAL_CPU_BFLOAT16, 0xFFFF, 0xFF80},
        {BIFOCAL_CPU_BFLOAT16, BIFOCAL_CPU_FLOAT8_E5M2, 0xFE, 0x7C},          {BIFOCAL_CPU_BFLOAT16, BIFOCAL_CPU_FLOAT8_E4M3, 0xFF, 0x7E},
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        for (int number = 0; number < 16; number++) {
            const int queries = number & 1 ? 20 : 1;
            const int keys = number & 2 ? 32 : 1 << 20;
            const int softcap = number & 4 ? 30 : 0;
            const int before = number & 8 ? 9 : 28; // the infinite key
            snprintf(current, sizeof current, "NaN %x in %s, %d queries, parts of %d keys, softcap %d, %x at %d", codes[i].nan,
                     type_names[codes[i].kv], queries, keys, softcap, codes[i].infinity, before);
            state = (uint64_t)number + 43;
            struct shape s = plain_shape(codes[i].q, codes[i].kv, 64, 4);
            s.out_dtype = BIFOCAL_CPU_FLOAT32;
            struct test_case c = single(s, queries, 100, -1, -1);
            c.p.softcap = (float)softcap;
            fill(&c, 1);
            set_code(&c, before, codes[i].infinity);
            set_code(&c, 18, codes[i].nan);
            every_row_is_nan(&c, keys);
        }
    }
    for (int queries = 1; queries <= 20; queries += 19) {
        snprintf(current, sizeof current, "logits past all floats, %d queries", queries);
        state = 43;
        struct shape s = plain_shape(BIFOCAL_CPU_BFLOAT16, BIFOCAL_CPU_BFLOAT16, 64, 4);
        s.out_dtype = BIFOCAL_CPU_FLOAT32;
        struct test_case c = single(s, queries, 100, -1, -1);
        fill(&c, 1);
        set_q(&c, 3.3e38);
        c.p.scale = 1;
        for (int t = 0; t < 100; t++) {
            set_k(&c, t, 1);
        }
        every_row_is_nan(&c, 1 << 20);
    }
}

static void known_answers(void) {
    // Two keys with logits 200 and 100, cap 50: 0.8538 and 0.1462.
    snprintf(current, sizeof current, "softcap 50 on logits 200 and 100");
    struct test_case c = single(plain_shape(0, 0, 32, 1), 1, 2, -1, 0);
    fill(&c, 1);
    set_q(&c, 1);
    c.p.scale = 1;
    c.p.softcap = 50;
    set_k(&c, 0, 200);
    set_k(&c, 1, 100);
    for (int t = 0; t < 2; t++) {
        for (int d = 0; d < 32; d++) {
            put_element(0, c.v.data, c.p.block_table[0] * (c.p.cache.v_block_stride / 4) + index_v(0, 32, t, d), t == 0);
        }
    }
    run(&c, 1, 1 << 20);
    const double first = ((float *)c.p.out)[0];
    if (!(fabs(first - 0.8538) < 1e-4)) {
        FAIL("weight of the first key %.6f", first);
    }
    release(&c);
    // Two keys with logit 0 and a sink of 0: a third each.
    snprintf(current, sizeof current, "sink 0 beside two logits 0");
    c = single(plain_shape(0, 0, 32, 1), 1, 2, -1, 0);
    fill(&c, 0);
    c.p.sinks = guarded_floats(&c.sinks, 1);
    ((float *)c.sinks.data)[0] = 0;
    for (int d = 0; d < 32; d++) {
        put_element(0, c.v.data, c.p.block_table[0] * (c.p.cache.v_block_stride / 4) + index_v(0, 32, 0, d), 3);
        put_element(0, c.v.data, c.p.block_table[0] * (c.p.cache.v_block_stride / 4) + index_v(0, 32, 1, d), 6);
    }
    run(&c, 1, 1 << 20);
    if (!(fabs(((float *)c.p.out)[5] - 3) < 1e-5) || !(fabs(c.p.lse[0] - log(3)) < 1e-6)) {
        FAIL("out %.6f lse %.6f", ((float *)c.p.out)[5], c.p.lse[0]);
    }
    release(&c);
    for (int sink = 0; sink < 2; sink++) {
        for (int split = 0; split < 2; split++) {
            snprintf(current, sizeof current, "no visible key, sink %d, split %d", sink, split);
            c = single(plain_shape(0, 0, 32, 2), 3, 40, -1, 0);
            c.request[0].position = -7;
            fill(&c, 1);
            if (sink) {
                c.p.sinks = guarded_floats(&c.sinks, 2);
                ((float *)c.sinks.data)[0] = 1.5f;
                ((float *)c.sinks.data)[1] = -2;
            }
            run(&c, 1 << 20, split ? 16 : 1 << 20);
            for (int r = 0; r < 6; r++) {
                const float want = sink ? (r % 2 ? -2 : 1.5f) : -INFINITY;
                if (!(c.p.lse[r] == want || fabsf(c.p.lse[r] - want) < 1e-6f)) {
                    FAIL("lse %g, wanted %g", c.p.lse[r], want);
                }
                for (int d = 0; d < 32; d++) {
                    if (((float *)c.p.out)[r * 32 + d] != 0) {
                        FAIL("out %g", ((float *)c.p.out)[r * 32 + d]);
                    }
                }
            }
            release(&c);
        }
    }
}

static void merge_ignores_empty_parts(void) {
    snprintf(current, sizeof current, "merge with empty parts");
    struct test_case c = single(plain_shape(0, 0, 32, 1), 1, 16, -1, 0);
    float out[4][32], lse[4] = {0.7f, -INFINITY, INFINITY, 1.2f};
    for (int d = 0; d < 32; d++) {
        out[0][d] = 3;
        out[1][d] = NAN;
        out[2][d] = 9;
        out[3][d] = 5;
    }
    c.p.partial_out = &out[0][0];
    c.p.partial_lse = lse;
    bifocal_cpu_merge_item item = {0, 0, 0, 1, 4};
    bifocal_cpu_merge(&c.p, &item, 1);
    const double a = exp(0.7), b = exp(1.2);
    if (!(fabs(((float *)c.p.out)[7] - (3 * a + 5 * b) / (a + b)) < 1e-6) || !(fabs(c.p.lse[0] - log(a + b)) < 1e-6)) {
        FAIL("out %g lse %g", ((float *)c.p.out)[7], c.p.lse[0]);
    }
    lse[0] = lse[3] = -INFINITY;
    bifocal_cpu_merge(&c.p, &item, 1);
    if (((float *)c.p.out)[7] != 0 || c.p.lse[0] != -INFINITY) {
        FAIL("all parts empty: out %g lse %g", ((float *)c.p.out)[7], c.p.lse[0]);
    }
    c.p.partial_out = 0;
    c.p.partial_lse = 0;
    release(&c);
}

// Blocks far beyond 2^31 bytes and elements from the base, in a sparse mapping.
static void far_blocks(void) {
    snprintf(current, sizeof current, "blocks behind 2^31 elements");
    struct test_case c = single(plain_shape(0, 0, 32, 1), 1, 20, -1, 0);
    fill(&c, 1);
    const int64_t stride = (int64_t)3 << 30; // bytes; block 4 lies 12 GiB from the base
    bifocal_cpu_cache *a = &c.p.cache;
    char *map = mmap(0, (size_t)stride * 6, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        printf("SKIP %s: no address space\n", current);
        release(&c);
        return;
    }
    int32_t *table = (int32_t *)c.table.data;
    for (int b = 0; b < 2; b++) {
        memcpy(map + (b ? 4 : 5) * stride, (char *)a->k + table[b] * a->k_block_stride, (size_t)a->k_block_stride);
        memcpy(map + (b ? 4 : 5) * stride + (1 << 20), (char *)a->v + table[b] * a->v_block_stride, (size_t)a->v_block_stride);
        table[b] = b ? 4 : 5;
    }
    a->k = map;
    a->v = map + (1 << 20);
    a->k_block_stride = a->v_block_stride = stride;
    run(&c, 1, 1 << 20);
    compare(&c);
    munmap(map, (size_t)stride * 6);
    release(&c);
}

// ------------------------------------------------------------------------------------------------------- KV write

enum { ALIKE_TOKENS = 1024, ALIKE_HEAD = 256 };

// Tokens stored one after the other: the bytes of the portable kernels.
static int stored_alike(const void *k, const void *v, int dtype, int tokens, int head, int cache_dtype, const float *scale) {
    static char stored[2][2][ALIKE_TOKENS * (ALIKE_HEAD + 4)];
    static int64_t slots[ALIKE_TOKENS];
    for (int i = 0; i < tokens; i++) {
        slots[i] = i;
    }
    char isa[32];
    snprintf(isa, sizeof isa, "%s", bifocal_cpu_isa());
    const int block = (tokens + 15) / 16 * 16;
    const int64_t stride = bifocal_cpu_cache_head_bytes(cache_dtype, head, block);
    for (int portable = 0; portable < 2; portable++) {
        memset(stored[portable][0], 0x55, (size_t)stride);
        memset(stored[portable][1], 0x55, (size_t)stride);
        const bifocal_cpu_cache cache = {.k = stored[portable][0], .v = stored[portable][1], .k_block_stride = stride, .v_block_stride = stride, .k_head_stride = stride, .v_head_stride = stride, .k_scale = scale, .v_scale = scale, .block_size = block, .dtype = cache_dtype, .num_kv_heads = 1, .head_size_k = head, .head_size_v = head};
        const bifocal_cpu_kv_write w = {.size = sizeof w, .cache = cache, .k = k, .v = v, .k_token_stride = head, .v_token_stride = head, .slots = slots, .dtype = dtype};
        bifocal_cpu_select_isa(portable ? "portable" : isa);
        const int32_t code = bifocal_cpu_write_kv(&w, 0, tokens);
        bifocal_cpu_select_isa(isa);
        if (code) {
            FAIL("%s", bifocal_cpu_error_text(code));
            return 0;
        }
    }
    if (memcmp(stored[0][0], stored[1][0], (size_t)stride) || memcmp(stored[0][1], stored[1][1], (size_t)stride)) {
        FAIL("%s", "differs from the portable kernels");
        return 0;
    }
    return 1;
}

// Each bfloat16 there is, stored with each scale. Neighbours in a row are neighbours in value in one order, far apart in the other.
static void every_bf16_is_stored_alike(void) {
    enum { TOKENS = 512, HEAD = 128 };
    static const float scales[] = {1, 0.5f, 4, 0x1p-20f, 0x1p30f, 0.3f, 1.7f, 0x1.fffffep0f, 3e-5f, 1e-30f, 1e30f, 1e-42f};
    static const int types[] = {BIFOCAL_CPU_FLOAT8_E4M3, BIFOCAL_CPU_FLOAT8_E5M2, BIFOCAL_CPU_INT8_PER_TOKEN_HEAD, BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD};
    static uint16_t rows[2][TOKENS * HEAD];
    for (int i = 0; i < TOKENS * HEAD; i++) {
        rows[0][i] = (uint16_t)i;
        rows[1][i] = (uint16_t)(i % HEAD * TOKENS + i / HEAD);
    }
    for (int type = 0; type < 4; type++) {
        for (int i = 0; i < (token_scaled(types[type]) ? 1 : (int)(sizeof scales / sizeof *scales)); i++) {
            snprintf(current, sizeof current, "every bfloat16 as %s, scale %a", type_names[types[type]], (double)scales[i]);
            if (!stored_alike(rows[0], rows[1], BIFOCAL_CPU_BFLOAT16, TOKENS, HEAD, types[type], token_scaled(types[type]) ? 0 : scales + i)) {
                return;
            }
        }
    }
}

// Each bfloat16 there is in a row whose largest has each mantissa there is, so over each token's scale there is, up to powers of two.
static void every_bf16_is_divided_alike(void) {
    enum { TOKENS = 258, HEAD = 128, OTHERS = HEAD - 1 };
    static const int largest_of_exponent[] = {0x3F80, 0x2A80, 0x5000};
    static uint16_t rows[2][TOKENS * HEAD];
    for (int i = 0; i < 3 * 128; i++) {
        const int largest = largest_of_exponent[i / 128] + i % 128;
        const int tokens = largest / OTHERS + 1;
        for (int x = 0; x < tokens * OTHERS; x++) {
            const int at = x / OTHERS * HEAD + x % OTHERS + 1;
            rows[0][at] = (uint16_t)(x < largest ? x : largest);
            rows[1][at] = rows[0][at] | 0x8000;
        }
        for (int t = 0; t < tokens; t++) {
            rows[0][t * HEAD] = (uint16_t)(largest | 0x8000);
            rows[1][t * HEAD] = (uint16_t)largest;
        }
        for (int type = BIFOCAL_CPU_INT8_PER_TOKEN_HEAD; type <= BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD; type++) {
            snprintf(current, sizeof current, "every bfloat16 up to %#x as %s", (unsigned)largest, type_names[type]);
            if (!stored_alike(rows[0], rows[1], BIFOCAL_CPU_BFLOAT16, tokens, HEAD, type, 0)) {
                return;
            }
        }
    }
}

static uint32_t infinite_bits(int dtype) { return dtype == BIFOCAL_CPU_FLOAT32 ? 0x7F800000 : dtype == BIFOCAL_CPU_BFLOAT16 ? 0x7F80 : 0x7C00; }

static void put_bits(int dtype, void *row, int i, uint32_t bits) {
    if (dtype == BIFOCAL_CPU_FLOAT32) {
        ((uint32_t *)row)[i] = bits;
    } else {
        ((uint16_t *)row)[i] = (uint16_t)bits;
    }
}

static uint32_t bits_at(int dtype, const void *row, int i) {
    return dtype == BIFOCAL_CPU_FLOAT32 ? ((const uint32_t *)row)[i] : ((const uint16_t *)row)[i];
}

// A row of any bits, of finite numbers, of those over twenty powers of two with some that are no numbers, or of what lies half way between
// two of e4m3's when the first, the largest, is 448, and next to that.
static void random_row(int dtype, void *row, int head) {
    const int kind = below(4);
    const uint32_t infinite = infinite_bits(dtype);
    const double largest = ldexp(1 + uniform(), dtype == BIFOCAL_CPU_FLOAT16 ? between(-10, 14) : between(-60, 60));
    for (int i = 0; i < head; i++) {
        if (kind < 2) {
            const uint32_t bits = (uint32_t)next_random();
            put_bits(dtype, row, i, kind == 0 || (bits & infinite) != infinite ? bits : 0);
            continue;
        }
        const double part = ldexp(kind == 2 ? uniform() : fmin((below(16) + 0.5) / 14, 1), -below(18));
        put_element(dtype, row, i, (i ? largest * part : largest) * (chance(50) ? 1 : -1));
        if (kind == 2 && chance(1)) {
            put_bits(dtype, row, i, bits_at(dtype, row, i) | infinite);
        }
        if (i && kind == 3 && part < 0.99) {
            put_bits(dtype, row, i, bits_at(dtype, row, i) + (uint32_t)between(-1, 1));
        }
    }
}

static void random_rows_are_stored_alike(uint64_t seed) {
    enum { TOKENS = 64 };
    static uint32_t rows[2][TOKENS * ALIKE_HEAD];
    state = seed;
    for (int i = 0; i < 600; i++) {
        const int dtype = i % 3;
        const int type = BIFOCAL_CPU_FLOAT8_E4M3 + below(4);
        const int head = chance(50) ? PICK(64, 80, 96, 128, 256) : 2 * between(1, ALIKE_HEAD / 2);
        const float scale = (float)ldexp(0.5 + uniform(), between(-8, 8));
        for (int t = 0; t < TOKENS; t++) {
            for (int is_v = 0; is_v < 2; is_v++) {
                random_row(dtype, (char *)rows[is_v] + t * head * bytes_of_type(dtype), head);
            }
        }
        snprintf(current, sizeof current, "random rows --seed %lu, number %d: %s as %s, head size %d", (unsigned long)seed, i, type_names[dtype], type_names[type], head);
        if (!stored_alike(rows[0], rows[1], dtype, TOKENS, head, type, token_scaled(type) ? 0 : &scale)) {
            return;
        }
    }
}

static void write_case(uint64_t seed, int number) {
    state = seed * 7919u + (uint64_t)number;
    struct shape s = {
        .q_dtype = below(3),
        .kv_dtype = below(7),
        .head_k = 2 * between(1, chance(50) ? 20 : 130),
        .kv_heads = between(1, 3),
        .group = 1,
        .block_size = PICK(16, 32, 48, 64),
        .padding = chance(30) ? 4 * between(1, 9) : 0,
    };
    s.out_dtype = s.q_dtype;
    s.head_k = chance(40) ? PICK(32, 64, 80, 128, 256) : s.head_k;
    s.head_v = chance(60) ? s.head_k : 2 * between(1, 100);
    struct test_case c = {0};
    c.requests = 1;
    c.request[0].key_len = between(1, 200);
    allocate(&c, &s);
    bifocal_cpu_cache *a = &c.p.cache;
    const int tokens = chance(20) ? between(0, 3) : between(1, 150);
    float scale[6];
    for (int i = 0; i < 6; i++) {
        scale[i] = (float)(chance(30) ? 0.01 : 0.5 + uniform());
    }
    a->scale_stride = below(2);
    if (chance(70) && (s.kv_dtype == BIFOCAL_CPU_FLOAT8_E4M3 || s.kv_dtype == BIFOCAL_CPU_FLOAT8_E5M2)) {
        a->k_scale = scale;
        a->v_scale = scale + 3;
    }
    const int64_t k_width = (int64_t)s.kv_heads * s.head_k + s.padding;
    const int64_t v_width = (int64_t)s.kv_heads * s.head_v + s.padding;
    const int cut = tokens ? s.padding : 0;
    struct guarded k = guarded_new((size_t)((k_width * tokens - cut) * bytes_of_type(s.q_dtype)), 2);
    struct guarded v = guarded_new((size_t)((v_width * tokens - cut) * bytes_of_type(s.q_dtype)), 2);
    struct guarded slots = guarded_new((size_t)tokens * 8, 8);
    const double size = chance(20) ? 1000 : chance(20) ? 1e-3 : 1;
    for (int t = 0; t < tokens; t++) {
        const double row = chance(5) ? 0 : size;
        for (int64_t i = 0; i < (int64_t)s.kv_heads * s.head_k; i++) {
            put_element(s.q_dtype, k.data, t * k_width + i, normal() * row);
        }
        for (int64_t i = 0; i < (int64_t)s.kv_heads * s.head_v; i++) {
            put_element(s.q_dtype, v.data, t * v_width + i, normal() * row);
        }
    }
    // A run of consecutive slots, or scattered ones, each used once; some tokens are not stored.
    const int all = c.blocks * s.block_size;
    char *used = calloc((size_t)all, 1);
    int at = below(all);
    for (int t = 0; t < tokens; t++) {
        int slot = (at + t) % all;
        if (chance(number % 3 == 0 ? 50 : 3)) {
            slot = below(all);
        }
        const int skip = used[slot] || chance(3);
        ((int64_t *)slots.data)[t] = skip ? -1 - below(5) : slot;
        used[slot] = 1;
    }
    free(used);
    char *before_k = malloc(c.k.size + 1), *before_v = malloc(c.v.size + 1);
    memcpy(before_k, c.k.data, c.k.size);
    memcpy(before_v, c.v.data, c.v.size);
    snprintf(current, sizeof current, "write --seed %lu --case %d: from %s to %s, heads %d, sizes %d/%d, block %d, %d tokens", (unsigned long)seed,
             number, type_names[s.q_dtype], type_names[s.kv_dtype], s.kv_heads, s.head_k, s.head_v, s.block_size, tokens);
    bifocal_cpu_kv_write w = {.size = sizeof w, .cache = *a, .k = k.data, .v = v.data, .k_token_stride = k_width, .v_token_stride = v_width, .slots = (int64_t *)slots.data, .dtype = s.q_dtype};
    const int middle = between(0, tokens);
    const int32_t code = bifocal_cpu_write_kv(&w, middle, tokens - middle) | bifocal_cpu_write_kv(&w, 0, middle);
    if (code) {
        FAIL("%s", bifocal_cpu_error_text(code));
    }
    // What should be there: the old bytes with the new elements put in one by one.
    for (int t = 0; t < tokens; t++) {
        const int64_t slot = ((int64_t *)slots.data)[t];
        if (slot < 0) {
            continue;
        }
        for (int h = 0; h < s.kv_heads; h++) {
            for (int is_v = 0; is_v < 2; is_v++) {
                const int n = is_v ? s.head_v : s.head_k;
                char *to = is_v ? before_v + slot / s.block_size * a->v_block_stride + h * a->v_head_stride
                                : before_k + slot / s.block_size * a->k_block_stride + h * a->k_head_stride;
                const int place = (int)(slot % s.block_size);
                const float *scales = is_v ? a->v_scale : a->k_scale;
                const float divide = scales ? scales[h * a->scale_stride] : 1;
                float largest = 0;
                for (int d = 0; d < n; d++) {
                    const float x = (float)get_element(s.q_dtype, is_v ? v.data : k.data, is_v ? t * v_width + (int64_t)h * n + d : t * k_width + (int64_t)h * n + d);
                    largest = fmaxf(largest, fabsf(x));
                }
                const float top = s.kv_dtype == BIFOCAL_CPU_INT8_PER_TOKEN_HEAD ? 127 : 448;
                const float token_scale = largest > 0 ? largest / top : 1;
                if (token_scaled(s.kv_dtype)) {
                    memcpy(to + (int64_t)s.block_size * n + place * 4, &token_scale, 4);
                }
                for (int d = 0; d < n; d++) {
                    float x = (float)get_element(s.q_dtype, is_v ? v.data : k.data, is_v ? t * v_width + (int64_t)h * n + d : t * k_width + (int64_t)h * n + d);
                    if (token_scaled(s.kv_dtype)) {
                        x /= token_scale;
                    } else if (bytes_of_type(s.kv_dtype) == 1) {
                        x /= divide;
                    }
                    put_element(s.kv_dtype, to, is_v ? index_v(s.kv_dtype, n, place, d) : index_k(s.kv_dtype, n, place, d), x);
                }
            }
        }
    }
    for (int is_v = 0; is_v < 2; is_v++) {
        const char *got = is_v ? c.v.data : c.k.data;
        const char *want = is_v ? before_v : before_k;
        for (size_t i = 0; i < (is_v ? c.v.size : c.k.size); i++) {
            if (got[i] != want[i]) {
                FAIL("byte %zu of %s: %02x, wanted %02x", i, is_v ? "V" : "K", (uint8_t)got[i], (uint8_t)want[i]);
                break;
            }
        }
    }
    free(before_k);
    free(before_v);
    guarded_free(&k);
    guarded_free(&v);
    guarded_free(&slots);
    release(&c);
}

// --------------------------------------------------------------------------------------------------- refusals

static void expect(int64_t got, int64_t want, const char *what) {
    if (got != want) {
        FAIL("%s: %ld, wanted %ld (%s)", what, (long)got, (long)want, bifocal_cpu_error_text((int32_t)want));
    }
}

static void refusals(void) {
    snprintf(current, sizeof current, "refusals");
    struct test_case c = single(plain_shape(0, 0, 32, 2), 1, 20, -1, 0);
    bifocal_cpu_params p = c.p;
    bifocal_cpu_item item = {.query_count = 1, .position = 19, .key_len = 20, .left_window = -1, .key_end = 20, .partial_row = -1};
    fill(&c, 1);
    struct guarded scratch = guarded_new((size_t)bifocal_cpu_scratch_bytes(&p, 1), 64);
    expect(bifocal_cpu_attend(&p, &item, 1, scratch.data), BIFOCAL_CPU_OK, "a good call");
    expect(bifocal_cpu_attend(&p, &item, 0, 0), BIFOCAL_CPU_OK, "no items");
    expect(bifocal_cpu_attend(&p, &item, 1, 0), BIFOCAL_CPU_BAD_POINTER, "no scratch");
    expect(bifocal_cpu_attend(0, &item, 1, scratch.data), BIFOCAL_CPU_BAD_POINTER, "no params");
    expect(bifocal_cpu_abi_version(), BIFOCAL_CPU_ABI_VERSION, "version");
    expect(bifocal_cpu_sizeof_params(), sizeof p, "sizeof params");
    expect(bifocal_cpu_sizeof_item(), sizeof item, "sizeof item");
#define REFUSED(FIELD, VALUE, CODE)                                                                                    \
    p = c.p;                                                                                                           \
    p.FIELD = VALUE;                                                                                                   \
    expect(bifocal_cpu_attend(&p, &item, 1, scratch.data), CODE, #FIELD " = " #VALUE)
    REFUSED(size, 8, BIFOCAL_CPU_BAD_SIZE);
    REFUSED(q_dtype, BIFOCAL_CPU_FLOAT8_E4M3, BIFOCAL_CPU_BAD_DTYPE);
    REFUSED(out_dtype, BIFOCAL_CPU_BFLOAT16, BIFOCAL_CPU_BAD_DTYPE);
    REFUSED(cache.dtype, 7, BIFOCAL_CPU_BAD_DTYPE);
    REFUSED(cache.head_size_k, 33, BIFOCAL_CPU_BAD_HEAD_SIZE);
    REFUSED(cache.head_size_v, 0, BIFOCAL_CPU_BAD_HEAD_SIZE);
    REFUSED(cache.block_size, 24, BIFOCAL_CPU_BAD_BLOCK_SIZE);
    REFUSED(cache.num_kv_heads, 0, BIFOCAL_CPU_BAD_HEADS);
    REFUSED(num_q_heads, 0, BIFOCAL_CPU_BAD_HEADS);
    REFUSED(softcap, NAN, BIFOCAL_CPU_BAD_NUMBER);
    REFUSED(softcap, -1, BIFOCAL_CPU_BAD_NUMBER);
    REFUSED(scale, INFINITY, BIFOCAL_CPU_BAD_NUMBER);
    REFUSED(q, 0, BIFOCAL_CPU_BAD_POINTER);
    REFUSED(key_first, (const int32_t *)scratch.data, BIFOCAL_CPU_BAD_POINTER);
    p = c.p;
    p.partial_out = 0;
    p.partial_lse = 0;
#define BAD_ITEM(FIELD, VALUE, CODE)                                                                                   \
    do {                                                                                                               \
        bifocal_cpu_item bad = item;                                                                                   \
        bad.FIELD = VALUE;                                                                                             \
        expect(bifocal_cpu_attend(&p, &bad, 1, scratch.data), CODE, #FIELD " = " #VALUE);                              \
    } while (0)
    BAD_ITEM(kv_head, 1, BIFOCAL_CPU_BAD_ITEM);
    BAD_ITEM(query_count, -1, BIFOCAL_CPU_BAD_ITEM);
    BAD_ITEM(key_end, 21, BIFOCAL_CPU_BAD_ITEM);
    BAD_ITEM(key_end, 8, BIFOCAL_CPU_BAD_ITEM);
    BAD_ITEM(key_begin, 3, BIFOCAL_CPU_BAD_ITEM);
    BAD_ITEM(left_window, -2, BIFOCAL_CPU_BAD_ITEM);
    BAD_ITEM(request, -1, BIFOCAL_CPU_BAD_ITEM);
    BAD_ITEM(partial_row, 0, BIFOCAL_CPU_BAD_POINTER);
    expect(bifocal_cpu_isa_available("mmx"), BIFOCAL_CPU_BAD_ISA, "unknown instruction set");
    expect(bifocal_cpu_select_isa(0), BIFOCAL_CPU_BAD_ISA, "no instruction set");
    expect(bifocal_cpu_cache_head_bytes(BIFOCAL_CPU_INT8_PER_TOKEN_HEAD, 128, 32), 128 * 32 + 128, "bytes of a head");
    guarded_free(&scratch);
    release(&c);
}

static int all_tests(uint64_t seed, int cases, int only) {
    const int before = failures;
    memset(worst_error, 0, sizeof worst_error);
    memset(worst_lse, 0, sizeof worst_lse);
    if (only < 0) {
        refusals();
        known_answers();
        visible_nan_stays();
        very_negative_logits();
        merge_ignores_empty_parts();
        far_blocks();
        every_code();
        every_bf16_is_stored_alike();
        every_bf16_is_divided_alike();
        random_rows_are_stored_alike(seed);
        every_tail_length();
        every_head_size_and_group();
    }
    for (int i = only < 0 ? 0 : only; i < (only < 0 ? cases : only + 1) && failures - before < 10; i++) {
        random_case(seed, i);
        write_case(seed, i);
    }
    printf("%-11s %s   worst error: float32 %.2g, float16 %.2g, bfloat16 %.2g; lse %.2g, %.2g, %.2g\n", bifocal_cpu_isa(),
           failures == before ? "ok  " : "FAIL", worst_error[0], worst_error[1], worst_error[2], worst_lse[0], worst_lse[1], worst_lse[2]);
    fflush(stdout);
    return failures == before;
}

int main(int argc, char **argv) {
    uint64_t seed = 20251129;
    int cases = 500;
    int only = -1;
    const char *isa = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--verbose")) {
            verbose = 1;
        } else if (i + 1 < argc && !strcmp(argv[i], "--cases")) {
            cases = atoi(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--seed")) {
            seed = strtoull(argv[++i], 0, 10);
        } else if (i + 1 < argc && !strcmp(argv[i], "--case")) {
            only = atoi(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--isa")) {
            isa = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--cases N] [--seed S] [--case I] [--isa NAME] [--verbose]\n", argv[0]);
            return 2;
        }
    }
    printf("seed %lu, %d random cases, chosen at load: %s\n", (unsigned long)seed, cases, bifocal_cpu_isa());
    static const char *names[] = {"portable", "avx2", "avx512f", "avx512bf16", "amx"};
    int ran = 0;
    for (int i = 0; i < 5; i++) {
        if (isa && strcmp(isa, names[i])) {
            continue;
        }
        const int available = bifocal_cpu_isa_available(names[i]);
        if (available == 1) {
            bifocal_cpu_select_isa(names[i]);
            all_tests(seed, cases, only);
            ran++;
        } else {
            printf("%-11s not %s\n", names[i], available == 0 ? "on this machine" : "in this build");
        }
    }
    return failures || !ran;
}
