/* SPDX-License-Identifier: Apache-2.0 */
/* A module made for a runtime with a function that no runtime has yet. */
#include <tvm/ffi/c_api.h>

int TVMFFIFromTheFuture(void);

__attribute__((visibility("default"))) int __tvm_ffi_foresee(void *self, const TVMFFIAny *args, int32_t count,
                                                             TVMFFIAny *result) {
  (void)self, (void)args, (void)count;
  result->type_index = kTVMFFIInt;
  result->v_int64 = TVMFFIFromTheFuture();
  return 0;
}
