/* SPDX-License-Identifier: Apache-2.0 */
/* A module that asks for the code of kernels in the way of FlashInfer's: two C functions, one that takes a callback and
   one that the callback hands the code to. Its own functions tell how many bytes they got. */
#include <stdexcept>
#include <string>
#include <thread>

#include <tvm/ffi/tvm_ffi.h>

namespace ffi = tvm::ffi;

namespace {

void (*callback)(const char *, const char *) = nullptr;
thread_local std::string current;

std::string Code(ffi::String name, ffi::String sha256) {
  if (!callback) throw std::runtime_error("nobody answers");
  callback(name.c_str(), sha256.c_str());
  return current;
}

/* As FlashInfer does: empty code is an error. */
int64_t Load(ffi::String name, ffi::String sha256) {
  std::string code = Code(name, sha256);
  if (code.empty()) throw std::runtime_error("no code for " + std::string(name.c_str()));
  return static_cast<int64_t>(code.size());
}

/* Takes whatever it gets. */
int64_t Careless(ffi::String name, ffi::String sha256) { return static_cast<int64_t>(Code(name, sha256).size()); }

/* Asks on a thread of its own. */
int64_t Elsewhere(ffi::String name, ffi::String sha256) {
  int64_t bytes = -1;
  std::thread other([&] { bytes = Careless(name, sha256); });
  other.join();
  return bytes;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void FlashInferSetCubinCallback(void (*asked)(const char *,
                                                                                                const char *)) {
  callback = asked;
}

extern "C" __attribute__((visibility("default"))) void FlashInferSetCurrentCubin(const char *code, int bytes) {
  current = std::string(code, bytes);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(load, Load);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(careless, Careless);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(elsewhere, Elsewhere);
