// SPDX-License-Identifier: Apache-2.0
#define ISA avx512bf16
#include "vector_avx512.h"
#include "kernels_body.h"
