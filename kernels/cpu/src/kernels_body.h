// SPDX-License-Identifier: Apache-2.0
// Everything one instruction set needs, from its vector header upwards. ISA names it.
#include "kernels.h"

#include "elements.h"
#include "matmul.h"
#include "decode.h"
#ifdef __AMX_BF16__
#define HAS_TILES 1
#include "amx.h"
#else
#define HAS_TILES 0
#endif
#ifdef __AVX512VBMI__
#define HAS_BYTE_TABLES 1
#else
#define HAS_BYTE_TABLES 0
#endif
#include "expand.h"
#include "softmax.h"
#include "attend.h"
#include "merge.h"
#include "write.h"

static int32_t query_tile(const bifocal_cpu_params *p) { return most_tokens(p); }

static int64_t scratch_bytes(const bifocal_cpu_params *p) { return make_plan(p).size; }

#define JOIN(a, b) a##b
#define NAMED(isa) JOIN(bifocal_kernels_, isa)
#define QUOTE(x) #x
#define TEXT(x) QUOTE(x)

const struct kernels NAMED(ISA) = {
    .name = TEXT(ISA),
    .query_tile = query_tile,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .merge = merge,
    .write_kv = write_kv,
};
