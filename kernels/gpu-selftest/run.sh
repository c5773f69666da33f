#!/bin/sh
# Runs the tests tagged "gpu" and then the benchmark, from an unpacked bundle. No JDK, Maven or network
# is needed; python3 with PyTorch is used for the peers of the benchmark, if it is there.
#
#   run.sh OUT [tests|bench|quick|all]
#
# OUT gets tests.log, bench.log, bench.json and commands.log. Exit 0: every test passed and the
# benchmark ran.
set -u

if [ $# -lt 1 ]; then
  echo "usage: run.sh OUT [tests|bench|quick|all]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd -P)
mkdir -p "$1"
out=$(cd "$1" && pwd -P)
what=${2:-all}
failed=0

java() {
  "$here/runtime/bin/java" --enable-native-access=ALL-UNNAMED -Dguice_custom_class_loading=CHILD \
    --sun-misc-unsafe-memory-access=allow "-Dbifocal.cuda.packs=$here/packs" \
    "-Dbifocal.bench.peers=$here/peers" ${BIFOCAL_SEED:+-Dbifocal.seed=$BIFOCAL_SEED} \
    ${BIFOCAL_SCALE:+-Dbifocal.conformance.scale=$BIFOCAL_SCALE} "$@"
}

tests() {
  java -Xmx8g -cp "$here/tests:$here/lib/*" org.junit.platform.console.ConsoleLauncher execute \
    --disable-banner --disable-ansi-colors --details=tree --include-tag=gpu \
    --fail-if-no-tests --select-package=bifocal.cuda >"$out/tests.log" 2>&1
  status=$?
  grep -a 'compute capability' "$out/tests.log" | head -n 2
  grep -a -A1 '\[X\]\|=>' "$out/tests.log" | head -n 120
  tail -n 14 "$out/tests.log"
  [ $status -eq 0 ] || failed=1
}

bench() {
  java -Xmx4g -cp "$here/lib/*" bifocal.cli.Main bench --suite gpu --json "$out/bench.json" "$@" \
    >"$out/bench.log" 2>&1 || failed=1
  cat "$out/bench.log"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
echo "commit $(cat "$here/commit")"
case $what in
  tests) tests ;;
  bench) bench ;;
  quick)
    tests
    bench --quick
    ;;
  all)
    tests
    bench
    ;;
  *)
    echo "unknown part $what" >&2
    exit 2
    ;;
esac
exit $failed
