// SPDX-License-Identifier: Apache-2.0
// What each instruction set's file gives to the dispatcher.
#ifndef BIFOCAL_KERNELS_H
#define BIFOCAL_KERNELS_H

#include "../bifocal_cpu.h"

struct kernels {
    const char *name;
    int32_t (*query_tile)(const bifocal_cpu_params *);
    int64_t (*scratch_bytes)(const bifocal_cpu_params *);
    void (*attend)(const bifocal_cpu_params *, const bifocal_cpu_item *, int64_t count, void *scratch);
    void (*merge)(const bifocal_cpu_params *, const bifocal_cpu_merge_item *, int64_t count);
    void (*write_kv)(const bifocal_cpu_kv_write *, int64_t first, int64_t count);
};

extern const struct kernels bifocal_kernels_portable;
#ifdef __x86_64__
extern const struct kernels bifocal_kernels_avx2;
extern const struct kernels bifocal_kernels_avx512f;
extern const struct kernels bifocal_kernels_avx512bf16;
extern const struct kernels bifocal_kernels_amx;
#endif

#endif
