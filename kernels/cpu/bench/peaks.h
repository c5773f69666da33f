// SPDX-License-Identifier: Apache-2.0
// What the machine can do at most: loops of nothing but one instruction, and a plain read of memory.
#include <stddef.h>
#include <stdint.h>

#ifdef __x86_64__
#define EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define VECTOR_REGISTERS                                                                                               \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

// All registers zero: a stray subnormal would measure the microcode.
static inline void clear_registers(void) {
#define X(k) "vpxord %%zmm" #k ", %%zmm" #k ", %%zmm" #k "\nvpxord %%zmm1" #k ", %%zmm1" #k ", %%zmm1" #k "\n"
    __asm__ volatile(EIGHT(X) "vpxord %%zmm8, %%zmm8, %%zmm8\nvpxord %%zmm9, %%zmm9, %%zmm9" ::: VECTOR_REGISTERS, "xmm8", "xmm9");
#undef X
}

// Each returns the FLOPs of n rounds.
static inline double fma_flops(int64_t n) {
    clear_registers();
    for (int64_t i = 0; i < n; i++) {
#define X(k) "vfmadd231ps %%zmm8, %%zmm9, %%zmm" #k "\nvfmadd231ps %%zmm8, %%zmm9, %%zmm1" #k "\n"
        __asm__ volatile(EIGHT(X)::: VECTOR_REGISTERS);
#undef X
    }
    return (double)n * 16 * 32;
}

static inline double narrow_fma_flops(int64_t n) {
    __asm__ volatile("vzeroall" ::: VECTOR_REGISTERS, "xmm8", "xmm9");
    for (int64_t i = 0; i < n; i++) {
#define X(k) "vfmadd231ps %%ymm8, %%ymm9, %%ymm" #k "\n"
        __asm__ volatile(EIGHT(X) "vfmadd231ps %%ymm8, %%ymm9, %%ymm10\nvfmadd231ps %%ymm8, %%ymm9, %%ymm11\n" ::: VECTOR_REGISTERS);
#undef X
    }
    return (double)n * 10 * 16;
}

static inline double dot_flops(int64_t n) {
    clear_registers();
    for (int64_t i = 0; i < n; i++) {
#define X(k) "vdpbf16ps %%zmm8, %%zmm9, %%zmm" #k "\nvdpbf16ps %%zmm8, %%zmm9, %%zmm1" #k "\n"
        __asm__ volatile(EIGHT(X)::: VECTOR_REGISTERS);
#undef X
    }
    return (double)n * 16 * 64;
}

static inline double tile_flops(int64_t n) {
    struct __attribute__((packed)) {
        uint8_t palette, start, zero[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shape.bytes[i] = 64;
        shape.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0\ntilezero %%tmm0\ntilezero %%tmm1\ntilezero %%tmm2\ntilezero %%tmm3\ntilezero %%tmm4\ntilezero %%tmm5\n"
                     "tilezero %%tmm6\ntilezero %%tmm7" ::"m"(shape));
    for (int64_t i = 0; i < n; i++) {
        __asm__ volatile("tdpbf16ps %%tmm4, %%tmm6, %%tmm0\ntdpbf16ps %%tmm4, %%tmm7, %%tmm1\n"
                         "tdpbf16ps %%tmm5, %%tmm6, %%tmm2\ntdpbf16ps %%tmm5, %%tmm7, %%tmm3" ::: "memory");
    }
    __asm__ volatile("tilerelease");
    return (double)n * 4 * 16384;
}
#endif

// Reads n bytes, a multiple of 256, from an address that is a multiple of 64.
static inline void read_memory(const char *p, size_t n, int wide) {
    (void)wide;
#ifdef __x86_64__
    if (wide) {
        for (size_t i = 0; i < n; i += 256) {
            __asm__ volatile("prefetcht2 4096(%0)\nprefetcht2 4160(%0)\nprefetcht2 4224(%0)\nprefetcht2 4288(%0)\n"
                             "vmovaps (%0), %%zmm0\nvmovaps 64(%0), %%zmm1\nvmovaps 128(%0), %%zmm2\nvmovaps 192(%0), %%zmm3" ::"r"(p + i)
                             : "xmm0", "xmm1", "xmm2", "xmm3");
        }
        return;
    }
#endif
    for (size_t i = 0; i < n; i += 256) {
        __asm__ volatile("" ::"r"(*(const volatile long *)(p + i)), "r"(*(const volatile long *)(p + i + 64)),
                         "r"(*(const volatile long *)(p + i + 128)), "r"(*(const volatile long *)(p + i + 192)));
    }
}
