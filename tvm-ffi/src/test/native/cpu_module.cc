/* SPDX-License-Identifier: Apache-2.0 */
/* A module for the host: one function for each kind of value that goes in or comes out. */
#include <dlfcn.h>

#include <string>

#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>

namespace ffi = tvm::ffi;

namespace {

int64_t Add(int64_t a, int64_t b) { return a + b; }

double Half(double x) { return x / 2; }

bool Not(bool x) { return !x; }

int64_t OrSeven(ffi::Optional<int64_t> x) { return x.has_value() ? x.value() : 7; }

ffi::String Greet(ffi::String name) { return ffi::String("good morning, " + std::string(name.c_str())); }

ffi::String Initial(ffi::String name) { return ffi::String(std::string(name.c_str()).substr(0, 1)); }

ffi::Bytes Reversed(ffi::Bytes bytes) {
  std::string content(bytes.data(), bytes.size());
  return ffi::Bytes(std::string(content.rbegin(), content.rend()));
}

void *Same(void *pointer) { return pointer; }

ffi::Any Echo(ffi::Any value) { return value; }

DLDataType TypeOf(ffi::TensorView x) { return x.dtype(); }

DLDevice DeviceOf(ffi::TensorView x) { return x.device(); }

ffi::Shape ShapeOf(ffi::TensorView x) { return ffi::Shape(x.shape().begin(), x.shape().end()); }

ffi::Array<int64_t> StridesOf(ffi::TensorView x) {
  ffi::Array<int64_t> strides;
  for (int i = 0; i < x.ndim(); ++i) strides.push_back(x.stride(i));
  return strides;
}

int64_t Volume(ffi::Shape shape) {
  int64_t volume = 1;
  for (int64_t size : shape) volume *= size;
  return volume;
}

int64_t Sum(ffi::Array<int64_t> numbers) {
  int64_t sum = 0;
  for (int64_t number : numbers) sum += number;
  return sum;
}

ffi::Array<int64_t> Plan(int64_t count) {
  ffi::Array<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i * i);
  return numbers;
}

/* out = factor * x, for matrices of float with any strides. */
void Scale(ffi::TensorView x, double factor, ffi::TensorView out) {
  DLDataType wanted{kDLFloat, 32, 1};
  TVM_FFI_CHECK(x.dtype() == wanted, TypeError) << "x must be float32";
  TVM_FFI_CHECK(x.ndim() == 2 && out.ndim() == 2, ValueError) << "x and out must be matrices";
  TVM_FFI_CHECK(x.size(0) == out.size(0) && x.size(1) == out.size(1), ValueError) << "x and out differ in shape";
  auto *from = static_cast<const float *>(x.data_ptr());
  auto *to = static_cast<float *>(out.data_ptr());
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t j = 0; j < x.size(1); ++j) {
      to[i * out.stride(0) + j * out.stride(1)] =
          static_cast<float>(factor * from[i * x.stride(0) + j * x.stride(1)]);
    }
  }
}

/* Takes a tensor object, and no other kind of tensor. */
int64_t References(ffi::Tensor x) { return x.use_count(); }

bool IsPresent(ffi::Optional<ffi::Tensor> x) { return x.has_value(); }

ffi::Optional<ffi::Tensor> &Remembered() {
  static ffi::Optional<ffi::Tensor> remembered;
  return remembered;
}

void Remember(ffi::Tensor x) { Remembered() = x; }

ffi::Tensor Recall() { return Remembered().value(); }

void Forget() { Remembered() = ffi::Optional<ffi::Tensor>(); }

void Fail(ffi::String kind, ffi::String message) { throw ffi::Error(kind.c_str(), message.c_str(), ""); }

ffi::Error Failure(ffi::String message) { return ffi::Error("ValueError", message.c_str(), ""); }

ffi::Any Apply(ffi::Function function, ffi::Any argument) { return function(argument); }

ffi::Function Adder(int64_t a) {
  return ffi::Function::FromTyped([a](int64_t b) { return a + b; });
}

ffi::Map<ffi::String, int64_t> Counts() { return ffi::Map<ffi::String, int64_t>{{"one", 1}, {"two", 2}}; }

int64_t CountOf(ffi::Map<ffi::String, int64_t> counts, ffi::String name) { return counts[name]; }

void *Stream(int64_t type, int64_t id) {
  return TVMFFIEnvGetStream(static_cast<int32_t>(type), static_cast<int32_t>(id));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(add, Add);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(half, Half);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(negate, Not);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(or_seven, OrSeven);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(greet, Greet);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(initial, Initial);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(reversed, Reversed);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(same, Same);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(echo, Echo);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(type_of, TypeOf);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(device_of, DeviceOf);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(shape_of, ShapeOf);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(strides_of, StridesOf);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(volume, Volume);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(sum, Sum);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(plan, Plan);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, Scale);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(references, References);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(is_present, IsPresent);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(remember, Remember);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(recall, Recall);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(forget, Forget);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(fail, Fail);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(failure, Failure);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(apply, Apply);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(adder, Adder);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(counts, Counts);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(count_of, CountOf);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(stream, Stream);
