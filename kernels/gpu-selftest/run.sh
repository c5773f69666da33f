#!/bin/sh
# Runs the tests tagged "gpu", the command's own checks and the benchmark, from an unpacked bundle. No
# JDK, Maven or network is needed; python3 is used for a case file and, with PyTorch, for the peers.
#
#   run.sh OUT [tests|commands|sanitizer|bench|quick|all]
#   run.sh OUT bench --only 'image prefill'      # what follows bench goes to `bifocal bench`
#
# OUT gets a log for each part, and the benchmark's and the replay's JSON. Exit 0: all that ran passed.
set -u

if [ $# -lt 1 ]; then
  echo "usage: run.sh OUT [tests|commands|sanitizer|bench|quick|all]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd -P)
mkdir -p "$1"
out=$(cd "$1" && pwd -P)
what=${2:-all}
[ $# -lt 2 ] || shift
shift
failed=0
before=
select=--select-package=bifocal.cuda

java() {
  $before "$here/runtime/bin/java" --enable-native-access=ALL-UNNAMED -Dguice_custom_class_loading=CHILD \
    --sun-misc-unsafe-memory-access=allow --add-modules=jdk.incubator.vector "-Dbifocal.cuda.packs=$here/packs" \
    "-Dbifocal.bench.peers=$here/peers" "-Dbifocal.bench.commit=$(cat "$here/commit")" ${BIFOCAL_SEED:+-Dbifocal.seed=$BIFOCAL_SEED} \
    ${BIFOCAL_SCALE:+-Dbifocal.conformance.scale=$BIFOCAL_SCALE} "$@"
}

bifocal() {
  java -Xmx4g -cp "$here/lib/*" bifocal.cli.Main "$@"
}

console() {
  log=$1
  shift
  java -Xmx8g "$@" -cp "$here/tests:$here/lib/*" org.junit.platform.console.ConsoleLauncher execute \
    --disable-banner --disable-ansi-colors --details=tree --include-tag=gpu --fail-if-no-tests \
    "$select" >"$log" 2>&1
  status=$?
  grep -a 'compute capability' "$log" | head -n 2
  grep -a -A1 '=>' "$log" | head -n 120
  tail -n 14 "$log"
  [ $status -eq 0 ] || failed=1
}

tests() {
  console "$out/tests.log"
}

# The same numbers from the command: a case checked against the reference, and a real trace.
commands() {
  python3 "$here/peers/make_case.py" "$out/case.safetensors" || failed=1
  {
    for backend in TRITON_ATTN TRITON_PAIR; do
      bifocal attend --in "$out/case.safetensors" --out "$out/result.safetensors" --platform cuda \
        --backend $backend --check --lse || failed=1
    done
    bifocal attend --in "$out/case.safetensors" --out "$out/result.safetensors" --platform cuda \
      --backend TRITON_PAIR --lowering --check --lse || failed=1
    bifocal replay --platform cuda --backend TRITON_PAIR --requests "${BIFOCAL_REQUESTS:-4}" || failed=1
  } >"$out/commands.log" 2>&1
  bifocal replay --platform cuda --backend TRITON_PAIR --lowering --compare TRITON_ATTN --requests "${BIFOCAL_REQUESTS:-4}" \
    --format json >"$out/replay.json" 2>>"$out/commands.log" || failed=1
  rm -f "$out/case.safetensors" "$out/result.safetensors"
  cat "$out/commands.log"
}

# A few shapes under the checker of memory accesses, then under that of shared memory, where it is. Of
# warp-specialised kernels the latter reports how Triton's warps are told their part: check_races.py.
sanitizer() {
  tool=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
  if [ -z "$tool" ]; then
    echo "no compute-sanitizer on this machine"
    return
  fi
  checked memcheck --tool memcheck --report-api-errors no
  checked racecheck --tool racecheck --kernel-name-exclude kns=hopper_attention
  before="$tool --tool racecheck --kernel-name kns=hopper_attention --racecheck-report hazard"
  select=--select-class=bifocal.cuda.triton.TritonGpuTest
  console "$out/racecheck-hopper.log" -Dbifocal.gpu.shapes=3 -Dbifocal.gpu.small=true
  before=
  select=--select-package=bifocal.cuda
  python3 "$here/peers/check_races.py" "$out/racecheck-hopper.log" >"$out/races.txt" || failed=1
  cat "$out/races.txt"
}

checked() {
  name=$1
  shift
  before="$tool $* --error-exitcode 9"
  select=--select-class=bifocal.cuda.triton.TritonGpuTest
  console "$out/$name.log" -Dbifocal.gpu.shapes=3 -Dbifocal.gpu.small=true
  before=
  select=--select-package=bifocal.cuda
  grep -a 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/$name.log"
}

bench() {
  bifocal bench --suite gpu --json "$out/bench.json" "$@" >"$out/bench.log" 2>&1 || failed=1
  cat "$out/bench.log"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
echo "commit $(cat "$here/commit")"
case $what in
  tests | commands | sanitizer) $what ;;
  bench) bench "$@" ;;
  quick)
    tests
    commands
    bench --quick
    ;;
  all)
    tests
    commands
    sanitizer
    bench
    ;;
  *)
    echo "unknown part $what" >&2
    exit 2
    ;;
esac
exit $failed
