// SPDX-License-Identifier: Apache-2.0
#define ISA portable
#include "vector_portable.h"
#include "kernels_body.h"
