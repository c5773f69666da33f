// SPDX-License-Identifier: Apache-2.0
// libbifocal_cpu_peaks: the machine's peaks for benchmarks that are not written in C. The caller takes the time.
#define _GNU_SOURCE
#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "peaks.h"

#define API __attribute__((visibility("default")))

enum { FMA, DOT, TILES };

#ifdef __x86_64__
static int has_bit(int subleaf, int reg, int bit) {
    uint32_t r[4] = {0, 0, 0, 0};
    return __get_cpuid_count(7, (uint32_t)subleaf, r, r + 1, r + 2, r + 3) && (r[reg] >> bit & 1);
}

static int wide(void) { return __builtin_cpu_supports("avx512f"); }
static int has_dot(void) { return wide() && has_bit(1, 0, 5); }
// ARCH_REQ_XCOMP_PERM for XTILEDATA: Linux gives tile registers to those who ask.
static int has_tiles(void) { return has_bit(0, 3, 22) && has_bit(0, 3, 24) && !syscall(SYS_arch_prctl, 0x1023, 18); }
#else
static int wide(void) { return 0; }
#endif

// FLOPs of n rounds of a kind of instruction, 0 where the CPU has none.
API double bifocal_cpu_peak_flops(int32_t kind, int64_t n) {
#ifdef __x86_64__
    switch (kind) {
    case FMA: return wide() ? fma_flops(n) : __builtin_cpu_supports("fma") ? narrow_fma_flops(n) : 0;
    case DOT: return has_dot() ? dot_flops(n) : 0;
    case TILES: return has_tiles() ? tile_flops(n) : 0;
    }
#endif
    (void)kind;
    (void)n;
    return 0;
}

API void bifocal_cpu_peak_read(const void *p, int64_t n) { read_memory(p, (size_t)n, wide()); }
