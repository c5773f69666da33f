/* SPDX-License-Identifier: Apache-2.0 */
/* A module whose add takes one argument more than callers of cpu_module expect, and which writes its schema as older
   versions of TVM-FFI did: the result first. Its other function tells no signature. */
#include <string.h>
#include <tvm/ffi/c_api.h>

static const char SCHEMA[] =
    "{\"type_schema\":\"{\\\"type\\\":\\\"ffi.Function\\\",\\\"args\\\":[{\\\"type\\\":\\\"int\\\"},{\\\"type\\\":\\\"int\\\"},"
    "{\\\"type\\\":\\\"int\\\"},{\\\"type\\\":\\\"Optional\\\",\\\"args\\\":[{\\\"type\\\":\\\"bool\\\"}]}]}\"}";

__attribute__((visibility("default"))) int __tvm_ffi_add(void *self, const TVMFFIAny *args, int32_t count,
                                                         TVMFFIAny *result) {
  (void)self;
  if (count != 3) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "add takes 3 arguments");
    return -1;
  }
  result->type_index = kTVMFFIInt;
  result->v_int64 = args[0].v_int64 + args[1].v_int64;
  return 0;
}

__attribute__((visibility("default"))) int __tvm_ffi__metadata_add(void *self, const TVMFFIAny *args, int32_t count,
                                                                   TVMFFIAny *result) {
  (void)self, (void)args, (void)count;
  TVMFFIByteArray schema = {SCHEMA, strlen(SCHEMA)};
  return TVMFFIStringFromByteArray(&schema, result);
}

__attribute__((visibility("default"))) int __tvm_ffi_untold(void *self, const TVMFFIAny *args, int32_t count,
                                                            TVMFFIAny *result) {
  (void)self, (void)args, (void)count;
  result->type_index = kTVMFFINone;
  return 0;
}
