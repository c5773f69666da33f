// SPDX-License-Identifier: Apache-2.0
#define ISA amx
#include "vector_avx512.h"
#include "kernels_body.h"
