#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh WORK
# What takes minutes: the kernels' tests under the address and undefined-behaviour sanitizers, and a build for aarch64. Says what
# cannot be done here, and fails when something that was done is wrong.
set -u
work=$1
here=$(dirname "$0")
cross=aarch64-linux-gnu-gcc
for tool in make "${CC:-cc}"; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "the CPU kernels are not checked: no $tool here" >&2
    exit 0
  fi
done
mkdir -p "$work"
if ! echo 'int main(void) { return 0; }' | "${CC:-cc}" -fsanitize=address,undefined -x c -o "$work/probe" - 2>/dev/null; then
  echo "the CPU kernels are not tested under sanitizers: ${CC:-cc} has none" >&2
else
  make -C "$here" -s CC="${CC:-cc}" OUT="$work" asan || exit 1
fi
if ! command -v $cross >/dev/null 2>&1; then
  echo "the CPU kernels are not compiled for aarch64: no $cross here" >&2
else
  make -C "$here" -s CC=$cross OUT="$work/aarch64" || exit 1
  echo "the CPU kernels compile for aarch64; nothing has run there"
fi
