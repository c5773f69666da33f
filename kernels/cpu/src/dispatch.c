// SPDX-License-Identifier: Apache-2.0
// Chooses the instruction set, checks what is cheap to check, and calls it.
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t enabled_state(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) {
        return 0; // no OSXSAVE
    }
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static uint32_t leaf7(int subleaf, int reg) {
    uint32_t r[4] = {0, 0, 0, 0};
    if (!__get_cpuid_count(7, (uint32_t)subleaf, r, r + 1, r + 2, r + 3)) {
        return 0;
    }
    return r[reg];
}

enum { EAX, EBX, ECX, EDX };

static int runs_portable(void) { return 1; }

static int runs_avx2(void) {
    return (enabled_state() & 0x6) == 0x6 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
}

static int runs_avx512f(void) {
    return runs_avx2() && (enabled_state() & 0xE6) == 0xE6 && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static int runs_avx512bf16(void) { return runs_avx512f() && (leaf7(1, EAX) & (1u << 5)); }

static int runs_amx(void) {
    if (!runs_avx512bf16() || !__builtin_cpu_supports("avx512vbmi") || !(leaf7(0, EDX) & (1u << 22)) || !(leaf7(0, EDX) & (1u << 24)) ||
        (enabled_state() & 0x60000) != 0x60000) {
        return 0;
    }
    // Linux gives tile registers to a process that asks for them: ARCH_REQ_XCOMP_PERM, XTILEDATA.
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}
#else
static int runs_portable(void) { return 1; }
#endif

// Best first.
static const struct {
    const struct kernels *kernels;
    int (*runs)(void);
} known[] = {
#ifdef __x86_64__
    {&bifocal_kernels_amx, runs_amx},
    {&bifocal_kernels_avx512bf16, runs_avx512bf16},
    {&bifocal_kernels_avx512f, runs_avx512f},
    {&bifocal_kernels_avx2, runs_avx2},
#endif
    {&bifocal_kernels_portable, runs_portable},
};

enum { KNOWN = sizeof known / sizeof *known };

static const struct kernels *chosen;

int32_t bifocal_cpu_isa_available(const char *name) {
    for (int i = 0; name && i < KNOWN; i++) {
        if (!strcmp(known[i].kernels->name, name)) {
            return known[i].runs() ? 1 : 0;
        }
    }
    return BIFOCAL_CPU_BAD_ISA;
}

int32_t bifocal_cpu_select_isa(const char *name) {
    for (int i = 0; name && i < KNOWN; i++) {
        if (!strcmp(known[i].kernels->name, name) && known[i].runs()) {
            chosen = known[i].kernels;
            return BIFOCAL_CPU_OK;
        }
    }
    return BIFOCAL_CPU_BAD_ISA;
}

static __attribute__((constructor)) void choose_at_load(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
#endif
    const char *wanted = getenv("BIFOCAL_CPU_ISA");
    if (wanted && *wanted) {
        bifocal_cpu_select_isa(wanted);
        return;
    }
    for (int i = 0; i < KNOWN && !chosen; i++) {
        chosen = known[i].runs() ? known[i].kernels : 0;
    }
}

const char *bifocal_cpu_isa(void) { return chosen ? chosen->name : "none"; }

int32_t bifocal_cpu_abi_version(void) { return BIFOCAL_CPU_ABI_VERSION; }
int64_t bifocal_cpu_sizeof_params(void) { return sizeof(bifocal_cpu_params); }
int64_t bifocal_cpu_sizeof_item(void) { return sizeof(bifocal_cpu_item); }
int64_t bifocal_cpu_sizeof_merge_item(void) { return sizeof(bifocal_cpu_merge_item); }
int64_t bifocal_cpu_sizeof_kv_write(void) { return sizeof(bifocal_cpu_kv_write); }

static int is_float(int32_t dtype) { return dtype >= BIFOCAL_CPU_FLOAT32 && dtype <= BIFOCAL_CPU_BFLOAT16; }
static int is_cache_type(int32_t dtype) { return dtype >= BIFOCAL_CPU_FLOAT32 && dtype <= BIFOCAL_CPU_FLOAT8_PER_TOKEN_HEAD; }
static int is_head_size(int32_t n) { return n >= 2 && n <= 1024 && n % 2 == 0; }

static int32_t check_cache(const bifocal_cpu_cache *c) {
    if (!chosen) {
        return BIFOCAL_CPU_BAD_ISA;
    }
    if (!is_cache_type(c->dtype)) {
        return BIFOCAL_CPU_BAD_DTYPE;
    }
    if (!is_head_size(c->head_size_k) || !is_head_size(c->head_size_v)) {
        return BIFOCAL_CPU_BAD_HEAD_SIZE;
    }
    if (c->num_kv_heads < 1) {
        return BIFOCAL_CPU_BAD_HEADS;
    }
    return c->block_size < 16 || c->block_size % 16 ? BIFOCAL_CPU_BAD_BLOCK_SIZE : BIFOCAL_CPU_OK;
}

static int32_t check_params(const bifocal_cpu_params *p) {
    if (!p) {
        return BIFOCAL_CPU_BAD_POINTER;
    }
    if (p->size != (int64_t)sizeof *p) {
        return BIFOCAL_CPU_BAD_SIZE;
    }
    const int32_t cache = check_cache(&p->cache);
    if (cache != BIFOCAL_CPU_OK) {
        return cache;
    }
    if (!is_float(p->q_dtype) || (p->out_dtype != p->q_dtype && p->out_dtype != BIFOCAL_CPU_FLOAT32)) {
        return BIFOCAL_CPU_BAD_DTYPE;
    }
    if (p->num_q_heads < 1 || p->num_q_heads % p->cache.num_kv_heads) {
        return BIFOCAL_CPU_BAD_HEADS;
    }
    return isfinite(p->scale) && isfinite(p->softcap) && p->softcap >= 0 ? BIFOCAL_CPU_OK : BIFOCAL_CPU_BAD_NUMBER;
}

int32_t bifocal_cpu_query_tile(const bifocal_cpu_params *params) {
    const int32_t code = check_params(params);
    return code != BIFOCAL_CPU_OK ? code : chosen->query_tile(params);
}

int64_t bifocal_cpu_scratch_bytes(const bifocal_cpu_params *params, int32_t query_count) {
    const int32_t code = check_params(params);
    if (code != BIFOCAL_CPU_OK) {
        return code;
    }
    return query_count < 0 ? BIFOCAL_CPU_BAD_ITEM : chosen->scratch_bytes(params);
}

static int32_t check_item(const bifocal_cpu_params *p, const bifocal_cpu_item *i) {
    if (i->request < 0 || i->kv_head < 0 || i->kv_head >= p->cache.num_kv_heads || i->query_first < 0 || i->query_count < 0 ||
        i->key_len < 0 || i->left_window < -1 || i->right_window < -1 || i->key_begin < 0 || i->key_begin > i->key_end ||
        i->key_end > i->key_len || i->key_begin % 16 || (i->key_end % 16 && i->key_end != i->key_len)) {
        return BIFOCAL_CPU_BAD_ITEM;
    }
    const int partial = i->partial_row >= 0;
    if (partial ? !p->partial_out || !p->partial_lse : !p->out) {
        return BIFOCAL_CPU_BAD_POINTER;
    }
    return BIFOCAL_CPU_OK;
}

int32_t bifocal_cpu_attend(const bifocal_cpu_params *params, const bifocal_cpu_item *items, int64_t count, void *scratch) {
    int32_t code = check_params(params);
    if (code == BIFOCAL_CPU_OK && count < 0) {
        code = BIFOCAL_CPU_BAD_ITEM;
    }
    if (code == BIFOCAL_CPU_OK && count > 0 &&
        (!items || !scratch || (uintptr_t)scratch % 64 || !params->q || !params->block_table || !params->cache.k ||
         !params->cache.v || !params->key_first != !params->key_last)) {
        code = BIFOCAL_CPU_BAD_POINTER;
    }
    for (int64_t i = 0; i < count && code == BIFOCAL_CPU_OK; i++) {
        code = check_item(params, items + i);
    }
    if (code == BIFOCAL_CPU_OK && count > 0) {
        chosen->attend(params, items, count, scratch);
    }
    return code;
}

int32_t bifocal_cpu_merge(const bifocal_cpu_params *params, const bifocal_cpu_merge_item *items, int64_t count) {
    int32_t code = check_params(params);
    if (code == BIFOCAL_CPU_OK && count < 0) {
        code = BIFOCAL_CPU_BAD_ITEM;
    }
    if (code == BIFOCAL_CPU_OK && count > 0 && (!items || !params->out || !params->partial_out || !params->partial_lse)) {
        code = BIFOCAL_CPU_BAD_POINTER;
    }
    for (int64_t i = 0; i < count && code == BIFOCAL_CPU_OK; i++) {
        const bifocal_cpu_merge_item *m = items + i;
        if (m->kv_head < 0 || m->kv_head >= params->cache.num_kv_heads || m->query_first < 0 || m->query_count < 0 ||
            m->splits < 0 || m->partial_row < 0) {
            code = BIFOCAL_CPU_BAD_ITEM;
        }
    }
    if (code == BIFOCAL_CPU_OK && count > 0) {
        chosen->merge(params, items, count);
    }
    return code;
}

int32_t bifocal_cpu_write_kv(const bifocal_cpu_kv_write *params, int64_t first, int64_t count) {
    if (!params) {
        return BIFOCAL_CPU_BAD_POINTER;
    }
    if (params->size != (int64_t)sizeof *params) {
        return BIFOCAL_CPU_BAD_SIZE;
    }
    const int32_t code = check_cache(&params->cache);
    if (code != BIFOCAL_CPU_OK) {
        return code;
    }
    if (!is_float(params->dtype)) {
        return BIFOCAL_CPU_BAD_DTYPE;
    }
    if (first < 0 || count < 0) {
        return BIFOCAL_CPU_BAD_ITEM;
    }
    if (count > 0 && (!params->k || !params->v || !params->slots || !params->cache.k || !params->cache.v)) {
        return BIFOCAL_CPU_BAD_POINTER;
    }
    chosen->write_kv(params, first, count);
    return BIFOCAL_CPU_OK;
}

int64_t bifocal_cpu_cache_head_bytes(int32_t dtype, int32_t head_size, int32_t block_size) {
    if (!is_cache_type(dtype)) {
        return BIFOCAL_CPU_BAD_DTYPE;
    }
    if (!is_head_size(head_size)) {
        return BIFOCAL_CPU_BAD_HEAD_SIZE;
    }
    if (block_size < 16 || block_size % 16) {
        return BIFOCAL_CPU_BAD_BLOCK_SIZE;
    }
    const int64_t elements = (int64_t)head_size * block_size;
    switch (dtype) {
    case BIFOCAL_CPU_FLOAT32: return elements * 4;
    case BIFOCAL_CPU_FLOAT16:
    case BIFOCAL_CPU_BFLOAT16: return elements * 2;
    case BIFOCAL_CPU_FLOAT8_E4M3:
    case BIFOCAL_CPU_FLOAT8_E5M2: return elements;
    default: return elements + 4 * (int64_t)block_size;
    }
}

const char *bifocal_cpu_error_text(int32_t code) {
    switch (code) {
    case BIFOCAL_CPU_OK: return "ok";
    case BIFOCAL_CPU_BAD_SIZE: return "struct size differs from the library's";
    case BIFOCAL_CPU_BAD_DTYPE: return "element type unknown or not allowed here";
    case BIFOCAL_CPU_BAD_HEAD_SIZE: return "head size must be even, from 2 to 1024";
    case BIFOCAL_CPU_BAD_HEADS: return "query heads must be a positive multiple of KV heads";
    case BIFOCAL_CPU_BAD_BLOCK_SIZE: return "block size must be a positive multiple of 16";
    case BIFOCAL_CPU_BAD_POINTER: return "a required pointer is null, or scratch is not aligned to 64 bytes";
    case BIFOCAL_CPU_BAD_ITEM: return "work item out of range";
    case BIFOCAL_CPU_BAD_ISA: return "instruction set unknown, or not available on this CPU";
    case BIFOCAL_CPU_BAD_NUMBER: return "scale and softcap must be finite, softcap not negative";
    default: return "unknown code";
    }
}
