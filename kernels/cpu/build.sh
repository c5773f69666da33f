#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh WORK DESTINATION [LIBRARY]
# Builds a library (libbifocal_cpu) in the folder WORK and puts it into the folder DESTINATION, if make and a C compiler are here.
# Without them it says so and succeeds: the CPU backends then run on Java kernels.
set -u
work=$1
destination=$2
library=${3:-libbifocal_cpu}
compiler=${CC:-cc}
case $library in
  libbifocal_cpu) without="; the CPU backends will run on Java kernels" ;;
  *) without= ;;
esac
for tool in make "$compiler"; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "$library is not built: no $tool here$without" >&2
    exit 0
  fi
done
mkdir -p "$work" "$destination"
if ! make -C "$(dirname "$0")" -s -j2 CC="$compiler" OUT="$work" "$work/$library.so"; then
  rm -f "$destination/$library.so"
  echo "$library is not built: $compiler failed$without" >&2
  exit 0
fi
cmp -s "$work/$library.so" "$destination/$library.so" ||
  cp "$work/$library.so" "$destination/$library.so"
