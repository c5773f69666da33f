#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh DESTINATION
# Builds the libraries that the tests load. What cannot be built is named, with the reason, in DESTINATION/absent.txt;
# the tests that need it are then skipped with that reason, and this script succeeds.
set -u
here=$(cd "$(dirname "$0")" && pwd)
destination=$1
mkdir -p "$destination"
destination=$(cd "$destination" && pwd)
absent=$destination/absent.txt
c_compiler=${CC:-cc}
cxx_compiler=${CXX:-c++}
python=${PYTHON:-python3}

without() {
  echo "$*" >>"$absent"
  echo "tests of TVM-FFI: $*" >&2
  exit 0
}

# A file is built again when its source, this script or the pinned version is newer.
current() {
  [ -e "$1" ] && [ "$1" -nt "$2" ] && [ "$1" -nt "$0" ] && [ "$1" -nt "$here/requirements.txt" ]
}

# library NAME SOURCE FLAGS...
library() {
  name=$1
  source=$here/$2
  shift 2
  current "$destination/$name" "$source" && return
  case $source in
    *.cc) compiler=$cxx_compiler ;;
    *) compiler=$c_compiler ;;
  esac
  "$compiler" -shared -fPIC -O1 -Wall -Werror "$source" "$@" -o "$destination/$name.part" ||
    without "$compiler cannot build ${source##*/}"
  mv "$destination/$name.part" "$destination/$name"
}

rm -f "$absent"
[ "$(uname -s)" = Linux ] || without "this is $(uname -s), and TVM-FFI libraries are loaded on Linux"
command -v "$c_compiler" >/dev/null 2>&1 || without "no C compiler ($c_compiler) here"

library libthief.so thief.c
library libolder_runtime.so fake_runtime.c -DREVISION=2 -DWHOLE
library libpart_of_runtime.so fake_runtime.c -DREVISION=99

wheel=$destination/wheel
if ! current "$destination/libtvm_ffi.so" "$here/requirements.txt"; then
  "$python" -m pip --version >/dev/null 2>&1 || without "no $python with pip here to fetch apache-tvm-ffi"
  rm -rf "$wheel"
  "$python" -m pip download --quiet --disable-pip-version-check --retries 1 --timeout 15 --no-deps \
    --require-hashes --only-binary :all: --implementation cp --python-version 3.11 --abi cp311 \
    --platform "manylinux_2_28_$(uname -m)" --dest "$wheel" --requirement "$here/requirements.txt" ||
    without "pip cannot fetch the apache-tvm-ffi of requirements.txt"
  "$python" -m zipfile -e "$wheel"/*.whl "$wheel" || without "the wheel of apache-tvm-ffi cannot be unpacked"
  cp "$wheel/tvm_ffi/lib/libtvm_ffi.so" "$destination/libtvm_ffi.so"
  find "$wheel" -mindepth 1 -maxdepth 1 ! -name tvm_ffi -exec rm -rf {} +
  find "$wheel/tvm_ffi" -mindepth 1 -maxdepth 1 ! -name include -exec rm -rf {} +
fi

include=$wheel/tvm_ffi/include
library libdrifted_module.so drifted_module.c -isystem "$include"
library libnewer_module.so newer_module.c -isystem "$include"
command -v "$cxx_compiler" >/dev/null 2>&1 || without "no C++ compiler ($cxx_compiler) here"
library libcpu_module.so cpu_module.cc -std=c++17 -O0 -DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1 -isystem "$include"
library libcubin_module.so cubin_module.cc -std=c++17 -O0 -pthread -isystem "$include"
