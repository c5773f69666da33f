// SPDX-License-Identifier: Apache-2.0
// Measures libbifocal_cpu beside the machine's peaks, in one process and interleaved.
//
//   bench_attention [--isa NAME] [--only TEXT] [--rounds N] [--threads 1|2]
//
// 8 query heads, 2 KV heads. One thread: CPU time of the thread, which other jobs on the machine disturb least. More threads:
// wall time. FLOPs are the useful ones, 4 * head size * query heads * visible (query, key) pairs.
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../bifocal_cpu.h"
#include "peaks.h"

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void *memory(size_t size) {
    const size_t huge = 2u << 20;
    char *p = mmap(0, size + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    p = (char *)(((uintptr_t)p + huge - 1) / huge * huge);
    madvise(p, size, MADV_HUGEPAGE);
    return p;
}

// --------------------------------------------------------------------------------------------------------- peaks

#ifdef __x86_64__
static double peak(double (*flops)(int64_t), int64_t n) {
    const double t = seconds(CLOCK_THREAD_CPUTIME_ID);
    const double done = flops(n);
    return done / (seconds(CLOCK_THREAD_CPUTIME_ID) - t) / 1e9;
}

static double peak_fma(void) { return peak(fma_flops, 1000000); }
static double peak_dot(void) { return peak(dot_flops, 500000); }
static double peak_tiles(void) { return peak(tile_flops, 200000); }
#endif

static char *big; // 1 GiB
static const size_t big_size = 1u << 30;

static void read_bytes(const char *p, size_t n) { read_memory(p, n, bifocal_cpu_isa_available("avx512f") == 1); }

// ------------------------------------------------------------------------------------------------------- threads

struct job {
    const bifocal_cpu_params *params;
    const bifocal_cpu_item *items;
    int64_t count;
    int64_t step; // items of one call
    const bifocal_cpu_merge_item *merges;
    int64_t merge_count;
    char *scratch[2];
    int threads;
    atomic_long next, next_merge;
    atomic_int arrived;
    size_t read; // instead: bytes of `big` to read
};

static void wait_for_all(struct job *j) {
    atomic_fetch_add(&j->arrived, 1);
    while (atomic_load(&j->arrived) % j->threads) {
    }
}

static void work(struct job *j, int thread) {
    for (;;) {
        const long i = atomic_fetch_add(&j->next, j->step);
        if (j->read) {
            if (i >= (long)j->read) {
                break;
            }
            read_bytes(big + i, (size_t)j->step);
            continue;
        }
        if (i >= j->count) {
            break;
        }
        const int64_t n = j->count - i < j->step ? j->count - i : j->step;
        const int32_t code = bifocal_cpu_attend(j->params, j->items + i, n, j->scratch[thread]);
        if (code) {
            fprintf(stderr, "%s\n", bifocal_cpu_error_text(code));
            exit(1);
        }
    }
    if (j->merge_count) {
        wait_for_all(j);
        for (long i; (i = atomic_fetch_add(&j->next_merge, 1)) < j->merge_count;) {
            bifocal_cpu_merge(j->params, j->merges + i, 1);
        }
    }
}

// The second thread spins for its work, as a worker would.
static struct job *_Atomic posted;
static atomic_int helper_done, helper_wanted;

static void *helper(void *unused) {
    (void)unused;
    while (atomic_load(&helper_wanted)) {
        struct job *j = atomic_exchange(&posted, 0);
        if (j) {
            work(j, 1);
            atomic_store(&helper_done, 1);
        }
        __asm__ volatile("" ::: "memory");
    }
    return 0;
}

static double run(struct job *j, int threads) {
    j->threads = threads;
    j->next = 0;
    j->next_merge = 0;
    j->arrived = 0;
    const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    const double t = seconds(clock);
    if (threads == 2) {
        atomic_store(&helper_done, 0);
        atomic_store(&posted, j);
    }
    work(j, 0);
    while (threads == 2 && !atomic_load(&helper_done)) {
    }
    return seconds(clock) - t;
}

// ---------------------------------------------------------------------------------------------------------- rows

struct request {
    int query_len, key_len, left, right;
};

static uint64_t state = 88172645463325252u;
static uint64_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
// Close enough to a normal distribution.
static float random_value(void) {
    float x = 0;
    for (int i = 0; i < 4; i++) {
        x += (float)(random_bits() >> 40) * 0x1p-24f - 0.5f;
    }
    return x * 1.73f;
}

static void put(int dtype, void *to, size_t i, float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    if (dtype == BIFOCAL_CPU_FLOAT32) {
        ((float *)to)[i] = x;
    } else if (dtype == BIFOCAL_CPU_BFLOAT16) {
        ((uint16_t *)to)[i] = (uint16_t)((u + 0x8000) >> 16);
    } else {
        const _Float16 h = (_Float16)x;
        memcpy((uint16_t *)to + i, &h, 2);
    }
}

static int element_bytes(int t) { return t == BIFOCAL_CPU_FLOAT32 ? 4 : t <= BIFOCAL_CPU_BFLOAT16 ? 2 : 1; }

static char *cache; // 2 GiB for K and V
static const size_t cache_size = (size_t)2200 << 20;

struct setting {
    bifocal_cpu_params p;
    struct job job;
    double flops, bytes;
    void *buffers[8];
};

static int larger_first(const void *a, const void *b) {
    const bifocal_cpu_item *x = a, *y = b;
    const double p = (double)x->query_count * (x->key_end - x->key_begin), q = (double)y->query_count * (y->key_end - y->key_begin);
    return (p < q) - (p > q);
}

static void prepare(struct setting *s, int q_dtype, int kv_dtype, int head, int block, const struct request *r, int requests, int splits) {
    memset(s, 0, sizeof *s);
    bifocal_cpu_params *p = &s->p;
    p->size = sizeof *p;
    p->q_dtype = p->out_dtype = q_dtype;
    p->num_q_heads = 8;
    p->scale = (float)(1 / sqrt(head));
    bifocal_cpu_cache *c = &p->cache;
    c->dtype = kv_dtype;
    c->num_kv_heads = 2;
    c->block_size = block;
    c->head_size_k = c->head_size_v = head;
    c->k_head_stride = c->v_head_stride = bifocal_cpu_cache_head_bytes(kv_dtype, head, block);
    c->k_block_stride = c->v_block_stride = 2 * c->k_head_stride;
    int tokens = 0, blocks = 0, most = 0;
    for (int i = 0; i < requests; i++) {
        const int n = (r[i].key_len + block - 1) / block;
        tokens += r[i].query_len;
        blocks += n;
        most = n > most ? n : most;
    }
    const size_t half = (size_t)blocks * (size_t)c->k_block_stride;
    if (2 * half > cache_size) {
        fprintf(stderr, "cache too small\n");
        exit(2);
    }
    c->k = cache;
    c->v = cache + (cache_size / 2) / 4096 * 4096;
    p->q_token_stride = p->out_token_stride = 8 * head;
    const size_t elements = (size_t)tokens * 8 * (size_t)head;
    char *q = s->buffers[0] = aligned_alloc(64, elements * 4);
    char *out = s->buffers[1] = aligned_alloc(64, elements * 4);
    for (size_t i = 0; i < elements; i++) {
        put(q_dtype, q, i, random_value());
    }
    memset(out, 0, elements * 4);
    p->q = q;
    p->out = out;
    int32_t *table = s->buffers[2] = malloc(sizeof(int32_t) * (size_t)requests * (size_t)most);
    int32_t *order = malloc(sizeof(int32_t) * (size_t)blocks);
    for (int i = 0; i < blocks; i++) {
        const int j = (int)(random_bits() % (uint64_t)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    int block_at = 0;
    for (int i = 0; i < requests; i++) {
        for (int b = 0; b < (r[i].key_len + block - 1) / block; b++) {
            table[i * most + b] = order[block_at++];
        }
    }
    p->block_table = table;
    p->block_table_stride = most;
    // Values through the library's own writer: some thousand tokens, then the same bytes again.
    const int distinct = 2048 / block < blocks ? 2048 / block : blocks;
    const size_t rows = (size_t)distinct * (size_t)block * 2 * (size_t)head;
    float *k = malloc(rows * 4), *v = malloc(rows * 4);
    int64_t *slots = malloc(8 * (size_t)distinct * (size_t)block);
    for (size_t i = 0; i < rows; i++) {
        k[i] = random_value();
        v[i] = random_value();
    }
    for (int i = 0; i < distinct * block; i++) {
        slots[i] = i;
    }
    const bifocal_cpu_kv_write w = {.size = sizeof w, .cache = *c, .k = k, .v = v, .k_token_stride = 2 * head, .v_token_stride = 2 * head, .slots = slots, .dtype = BIFOCAL_CPU_FLOAT32};
    if (bifocal_cpu_write_kv(&w, 0, (int64_t)distinct * block)) {
        exit(1);
    }
    for (int i = distinct; i < blocks; i++) {
        memcpy((char *)c->k + i * c->k_block_stride, (char *)c->k + i % distinct * c->k_block_stride, (size_t)c->k_block_stride);
        memcpy((char *)c->v + i * c->v_block_stride, (char *)c->v + i % distinct * c->v_block_stride, (size_t)c->v_block_stride);
    }
    free(k);
    free(v);
    free(slots);
    free(order);
    const int tile = bifocal_cpu_query_tile(p);
    const int64_t most_items = (tokens + requests) * 2 * (int64_t)splits + 16;
    bifocal_cpu_item *items = s->buffers[3] = malloc((size_t)most_items * sizeof *items);
    bifocal_cpu_merge_item *merges = s->buffers[4] = malloc((size_t)most_items * sizeof *merges);
    int64_t count = 0, merge_count = 0, row = 0;
    int first = 0;
    for (int i = 0; i < requests; i++) {
        for (int from = 0; from < r[i].query_len; from += tile) {
            const int n = r[i].query_len - from < tile ? r[i].query_len - from : tile;
            for (int h = 0; h < 2; h++) {
                const int step = (r[i].key_len + splits - 1) / splits / 64 * 64 + 64;
                if (splits > 1) {
                    merges[merge_count++] = (bifocal_cpu_merge_item){row, h, first + from, n, (r[i].key_len + step - 1) / step};
                }
                for (int at = 0; at < (splits > 1 ? r[i].key_len : 1); at += step) {
                    const int end = splits > 1 && at + step < r[i].key_len ? at + step : r[i].key_len;
                    items[count++] = (bifocal_cpu_item){.request = i, .kv_head = h, .query_first = first + from, .query_count = n, .position = r[i].key_len - r[i].query_len + from, .key_len = r[i].key_len, .left_window = r[i].left, .right_window = r[i].right, .key_begin = at, .key_end = end, .partial_row = splits > 1 ? row : -1};
                    row += n * 4;
                }
            }
        }
        for (int t = 0; t < r[i].query_len; t++) {
            const int64_t at = r[i].key_len - r[i].query_len + t;
            const int64_t lo = r[i].left < 0 || at < r[i].left ? 0 : at - r[i].left;
            const int64_t hi = r[i].right < 0 ? r[i].key_len - 1 : at + r[i].right;
            s->flops += 4.0 * head * 8 * (double)(hi - lo + 1);
        }
        s->bytes += (double)r[i].key_len * 2 * head * 2 * element_bytes(kv_dtype) + (kv_dtype > 4 ? (double)r[i].key_len * 16 : 0);
        first += r[i].query_len;
    }
    qsort(items, (size_t)count, sizeof *items, larger_first);
    p->partial_out = s->buffers[5] = malloc((size_t)row * (size_t)head * 4 + 64);
    p->partial_lse = s->buffers[6] = malloc((size_t)row * 4 + 64);
    const int64_t scratch = bifocal_cpu_scratch_bytes(p, tile);
    s->job = (struct job){.params = p, .items = items, .count = count, .step = 1, .merges = merges, .merge_count = merge_count};
    for (int t = 0; t < 2; t++) {
        s->job.scratch[t] = memory((size_t)scratch);
        memset(s->job.scratch[t], 0, (size_t)scratch);
    }
}

static void discard(struct setting *s) {
    for (int i = 0; i < 8; i++) {
        free(s->buffers[i]);
    }
    const int64_t scratch = bifocal_cpu_scratch_bytes(&s->p, 1);
    for (int t = 0; t < 2; t++) {
        munmap(s->job.scratch[t], (size_t)scratch);
    }
}

static const char *only;
static int rounds = 7;
static int most_threads = 2;

static void measure(const char *name, struct setting *s, int memory_bound, int threads) {
    char label[128];
    snprintf(label, sizeof label, "%s %dT", name, threads);
    if (threads > most_threads || (only && !strstr(label, only))) {
        return;
    }
    double ours[64], fma[64], dot[64], tiles[64], read[64];
    run(&s->job, threads);
    int n = 0;
    const double start = seconds(CLOCK_MONOTONIC);
    for (; n < rounds && (n < 3 || seconds(CLOCK_MONOTONIC) - start < 12); n++) {
        // Short work is repeated, so that a sample lasts some milliseconds.
        double t = 0;
        int repeats = 0;
        while (t < 0.01) {
            t += run(&s->job, threads);
            repeats++;
        }
        ours[n] = (memory_bound ? s->bytes : s->flops) * repeats / t / 1e9;
        fma[n] = dot[n] = tiles[n] = read[n] = 0;
        if (memory_bound) {
            struct job j = {.read = big_size / 4 * 3, .step = 1 << 20};
            read[n] = (double)j.read / run(&j, threads) / 1e9;
        } else {
#ifdef __x86_64__
            fma[n] = bifocal_cpu_isa_available("avx512f") == 1 ? peak_fma() : 0;
            dot[n] = bifocal_cpu_isa_available("avx512bf16") == 1 ? peak_dot() : 0;
            tiles[n] = bifocal_cpu_isa_available("amx") == 1 ? peak_tiles() : 0;
#endif
        }
    }
    const double middle = median(ours, n), best = ours[n - 1];
    if (memory_bound) {
        const double peak = median(read, n);
        printf("%-34s %8.2f %8.2f GB/s  %5.1f%% of DRAM read %.1f   %.1f thousand keys/ms\n", label, best, middle, 100 * middle / peak, peak,
               middle * 1e9 / (s->bytes / s->job.count) * s->job.items[0].key_end / 1e6);
    } else {
        printf("%-34s %8.1f %8.1f GF    %5.1f%% of FMA %.0f, %5.1f%% of vdpbf16ps %.0f, %4.1f%% of tdpbf16ps %.0f\n", label, best, middle,
               100 * middle / threads / median(fma, n), median(fma, n), 100 * middle / threads / median(dot, n), median(dot, n),
               100 * middle / threads / median(tiles, n), median(tiles, n));
    }
    fflush(stdout);
}

static int wanted(const char *name) {
    char both[256];
    snprintf(both, sizeof both, "%s 1T %s 2T", name, name);
    return !only || strstr(both, only);
}

static void row(const char *name, int q_dtype, int kv_dtype, int head, int block, const struct request *r, int requests, int splits, int memory_bound, int first_threads) {
    if (!wanted(name)) {
        return;
    }
    struct setting s;
    prepare(&s, q_dtype, kv_dtype, head, block, r, requests, splits);
    if (memory_bound && !big[0]) {
        memset(big, 1, big_size);
    }
    for (int t = first_threads; t <= 2; t++) {
        measure(name, &s, memory_bound, t);
    }
    discard(&s);
}

static void write_row(const char *name, int dtype, int kv_dtype, int head, int block) {
    if (!wanted(name)) {
        return;
    }
    enum { TOKENS = 2048 };
    struct setting s;
    const struct request r = {1, TOKENS, -1, 0};
    prepare(&s, dtype, kv_dtype, head, block, &r, 1, 1);
    const size_t rows = (size_t)TOKENS * 2 * (size_t)head;
    char *k = memory(rows * 4), *v = memory(rows * 4), *copy = memory(rows * 8);
    int64_t *slots = malloc(8 * TOKENS);
    for (size_t i = 0; i < rows; i++) {
        put(dtype, k, i, random_value());
        put(dtype, v, i, random_value());
    }
    for (int i = 0; i < TOKENS; i++) {
        slots[i] = (int64_t)s.p.block_table[i / block] * block + i % block;
    }
    const bifocal_cpu_kv_write w = {.size = sizeof w, .cache = s.p.cache, .k = k, .v = v, .k_token_stride = 2 * head, .v_token_stride = 2 * head, .slots = slots, .dtype = dtype};
    const size_t bytes = rows * (size_t)element_bytes(dtype);
    double ours[64], plain[64];
    for (int n = -1; n < rounds; n++) {
        double t = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 5; i++) {
            bifocal_cpu_write_kv(&w, 0, TOKENS);
        }
        const double write = (seconds(CLOCK_THREAD_CPUTIME_ID) - t) / 5;
        t = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 5; i++) {
            memcpy(copy, k, bytes);
            memcpy(copy + bytes, v, bytes);
            __asm__ volatile("" ::"r"(copy) : "memory");
        }
        if (n >= 0) {
            ours[n] = write;
            plain[n] = (seconds(CLOCK_THREAD_CPUTIME_ID) - t) / 5;
        }
    }
    const double a = median(ours, rounds), b = median(plain, rounds);
    printf("%-34s %8.1f us, memcpy of the source bytes %.1f us: %.2fx\n", name, a * 1e6, b * 1e6, a / b);
    free(slots);
    munmap(k, rows * 4);
    munmap(v, rows * 4);
    munmap(copy, rows * 8);
    discard(&s);
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--isa")) {
            if (bifocal_cpu_select_isa(argv[i + 1])) {
                fprintf(stderr, "%s: not available\n", argv[i + 1]);
                return 2;
            }
        } else if (!strcmp(argv[i], "--only")) {
            only = argv[i + 1];
        } else if (!strcmp(argv[i], "--rounds")) {
            rounds = atoi(argv[i + 1]) < 64 ? atoi(argv[i + 1]) : 63;
        } else if (!strcmp(argv[i], "--threads")) {
            most_threads = atoi(argv[i + 1]);
        }
    }
    printf("instruction set %s; best, median\n", bifocal_cpu_isa());
    cache = memory(cache_size);
    big = memory(big_size);
    pthread_t thread;
    if (most_threads > 1) {
        atomic_store(&helper_wanted, 1);
        pthread_create(&thread, 0, helper, 0);
    }
    enum { F32 = BIFOCAL_CPU_FLOAT32, F16 = BIFOCAL_CPU_FLOAT16, BF16 = BIFOCAL_CPU_BFLOAT16 };
    const struct request prompt = {2048, 2048, -1, 0};
    row("prefill 2048 bf16 D128", BF16, BF16, 128, 32, &prompt, 1, 1, 0, 1);
    row("prefill 2048 bf16 D256", BF16, BF16, 256, 32, &prompt, 1, 1, 0, 1);
    row("prefill 2048 f32 D128", F32, F32, 128, 32, &prompt, 1, 1, 0, 1);
    row("prefill 2048 f32 D256", F32, F32, 256, 32, &prompt, 1, 1, 0, 1);
    row("prefill 2048 f16 D128", F16, F16, 128, 32, &prompt, 1, 1, 0, 1);
    row("prefill 2048 bf16/e4m3 D128", BF16, BIFOCAL_CPU_FLOAT8_E4M3, 128, 32, &prompt, 1, 1, 0, 1);
    row("prefill 2048 bf16 D80", BF16, BF16, 80, 32, &prompt, 1, 1, 0, 1);
    row("prefill 2048 bf16 D128 blk16", BF16, BF16, 128, 16, &prompt, 1, 1, 0, 1);
    struct request many[64];
    for (int i = 0; i < 64; i++) {
        many[i] = (struct request){1, 16384, -1, 0};
    }
    row("decode 64x16384 bf16 blk32", BF16, BF16, 128, 32, many, 64, 1, 1, 1);
    row("decode 64x16384 bf16 blk64", BF16, BF16, 128, 64, many, 64, 1, 1, 1);
    row("decode 64x16384 e4m3 blk32", BF16, BIFOCAL_CPU_FLOAT8_E4M3, 128, 32, many, 64, 1, 1, 1);
    row("decode 64x16384 e5m2 blk32", BF16, BIFOCAL_CPU_FLOAT8_E5M2, 128, 32, many, 64, 1, 1, 1);
    row("decode 64x16384 int8tok blk32", BF16, BIFOCAL_CPU_INT8_PER_TOKEN_HEAD, 128, 32, many, 64, 1, 1, 1);
    row("decode 64x16384 e4m3tok blk32", BF16, BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD, 128, 32, many, 64, 1, 1, 1);
    row("decode 64x16384 f16 blk32", F16, F16, 128, 32, many, 64, 1, 1, 1);
    row("decode 64x16384 f16/e4m3 blk32", F16, BIFOCAL_CPU_FLOAT8_E4M3, 128, 32, many, 64, 1, 1, 1);
    row("decode 32x16384 f32 blk32", F32, F32, 128, 32, many, 32, 1, 1, 1);
    const struct request one = {1, 65536, -1, 0};
    row("decode 1x65536 bf16 split 8", BF16, BF16, 128, 32, &one, 1, 8, 1, 1);
    struct request mixed[16];
    for (int i = 0; i < 14; i++) {
        mixed[i] = (struct request){1, 512 + i * (4096 - 512) / 13, -1, 0};
    }
    mixed[14] = (struct request){512, 512, -1, 0};
    mixed[15] = (struct request){512, 1536, -1, 0};
    row("mixed bf16 D128", BF16, BF16, 128, 32, mixed, 16, 1, 0, 1);
    row("mixed f32 D128", F32, F32, 128, 32, mixed, 16, 1, 0, 1);
    const struct request causal = {16384, 16384, -1, 0};
    const struct request window = {16384, 16384, 1023, 0};
    row("causal 16384 bf16 D128", BF16, BF16, 128, 32, &causal, 1, 1, 0, 1);
    row("window 1024 in 16384 bf16 D128", BF16, BF16, 128, 32, &window, 1, 1, 0, 1);
    // A prompt of 2048 with four images of 280 as runs: text sees what is before it, an image sees itself as a whole.
    struct request runs[9];
    for (int i = 0, at = 0; i < 9; i++) {
        const int n = i % 2 ? 280 : i < 8 ? 186 : 2048 - 4 * (280 + 186);
        at += n;
        runs[i] = (struct request){n, at, -1, i % 2 ? -1 : 0};
    }
    row("lowered 4x280 in 2048 bf16 D128", BF16, BF16, 128, 32, runs, 9, 1, 0, 1);
    write_row("write 2048 bf16 D128", BF16, BF16, 128, 32);
    write_row("write 2048 f32 D128", F32, F32, 128, 32);
    write_row("write 2048 f16 D128", F16, F16, 128, 32);
    write_row("write 2048 bf16 to e4m3 D128", BF16, BIFOCAL_CPU_FLOAT8_E4M3, 128, 32);
    write_row("write 2048 bf16 to e5m2 D128", BF16, BIFOCAL_CPU_FLOAT8_E5M2, 128, 32);
    write_row("write 2048 bf16 to int8tok D128", BF16, BIFOCAL_CPU_INT8_PER_TOKEN_HEAD, 128, 32);
    write_row("write 2048 bf16 to e4m3tok D128", BF16, BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD, 128, 32);
    atomic_store(&helper_wanted, 0);
    if (most_threads > 1) {
        pthread_join(thread, 0);
    }
    return 0;
}
