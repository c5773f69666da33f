#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh WORK DESTINATION
# Builds libbifocal_cpu in the folder WORK and puts it into the folder DESTINATION, if make and a C compiler are here.
# Without them it says so and succeeds: the CPU backends then run on Java kernels.
set -u
work=$1
destination=$2
compiler=${CC:-cc}
for tool in make "$compiler"; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "libbifocal_cpu is not built: no $tool here; the CPU backends will run on Java kernels" >&2
    exit 0
  fi
done
mkdir -p "$work" "$destination"
if ! make -C "$(dirname "$0")" -s -j2 CC="$compiler" OUT="$work"; then
  rm -f "$destination/libbifocal_cpu.so"
  echo "libbifocal_cpu is not built: $compiler failed; the CPU backends will run on Java kernels" >&2
  exit 0
fi
cmp -s "$work/libbifocal_cpu.so" "$destination/libbifocal_cpu.so" ||
  cp "$work/libbifocal_cpu.so" "$destination/libbifocal_cpu.so"
