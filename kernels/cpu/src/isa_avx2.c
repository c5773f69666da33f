// SPDX-License-Identifier: Apache-2.0
#define ISA avx2
#include "vector_avx2.h"
#include "kernels_body.h"
