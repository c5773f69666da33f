#!/bin/sh
# Makes target/gpu-selftest/bifocal-gpu-selftest.tar.gz: everything that a bare Linux machine with an
# NVIDIA GPU needs to run the tests tagged "gpu" and `bifocal bench --suite gpu`. See README.md.
#
#   make_bundle.sh PACKS
#
# PACKS is what kernels/triton/build_packs.py wrote; modules of FlashInfer are taken from PACKS/flashinfer. Needs a JDK 25 (JAVA_HOME) and Maven.
set -eu

if [ $# -ne 1 ] || [ ! -d "$1" ]; then
  echo "usage: make_bundle.sh PACKS   (the directory that build_packs.py wrote)" >&2
  exit 2
fi
packs=$(cd "$1" && pwd -P)
here=$(cd "$(dirname "$0")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
out=$root/target/gpu-selftest
bundle=$out/bifocal-gpu-selftest
junit=1.14.4
maven_dependency=org.apache.maven.plugins:maven-dependency-plugin:3.11.0
modules=java.base,java.instrument,java.logging,java.management,java.net.http,java.xml
modules=$modules,jdk.incubator.vector,jdk.jfr,jdk.management,jdk.unsupported

: "${JAVA_HOME:?set it to a JDK 25}"
rm -rf "$out"
mkdir -p "$bundle/lib" "$bundle/packs" "$bundle/peers"

echo "building the modules"
(cd "$root" && mvn -B -q ${MAVEN_OPTIONS:-} -pl cli,backends-cuda,conformance -am package \
  -Dtest=KernelPackTest -Dsurefire.failIfNoSpecifiedTests=false)
cp "$root"/cli/target/bifocal.jar "$root"/cli/target/lib/*.jar "$bundle/lib"
cp "$root"/conformance/target/bifocal-conformance-*.jar "$root"/reference/target/bifocal-reference-*.jar "$bundle/lib"
cp -r "$root/backends-cuda/target/test-classes" "$bundle/tests"

echo "fetching the test libraries"
for artifact in org.junit.platform:junit-platform-console-standalone:$junit \
  "org.assertj:assertj-core:$(sed -n 's:.*<assertj.version>\(.*\)</assertj.version>.*:\1:p' "$root/pom.xml")"; do
  (cd "$out" && mvn -B -q ${MAVEN_OPTIONS:-} $maven_dependency:copy "-Dartifact=$artifact" \
    "-DoutputDirectory=$bundle/lib")
done

echo "linking the runtime"
"$JAVA_HOME/bin/jlink" --add-modules "$modules" --strip-debug --no-header-files --no-man-pages \
  --compress zip-0 --output "$bundle/runtime"

for target in "$packs"/sm_* "$packs"/flashinfer/sm_*; do
  [ -f "$target/manifest.json" ] || continue
  folder=$bundle/packs/$(dirname "${target#"$packs"/}")
  mkdir -p "$folder"
  cp -r "$target" "$folder"
done
for script in bench_peers bench_kernels cases formats pack specialise test_kernels; do
  cp "$root/kernels/triton/$script.py" "$bundle/peers"
done
cp "$here/make_case.py" "$here/check_races.py" "$bundle/peers"
cp "$here/run.sh" "$bundle"
git -C "$root" rev-parse HEAD >"$bundle/commit" 2>/dev/null || echo unknown >"$bundle/commit"

tar -C "$out" -czf "$out/bifocal-gpu-selftest.tar.gz" bifocal-gpu-selftest
bytes=$(wc -c <"$out/bifocal-gpu-selftest.tar.gz")
echo "$out/bifocal-gpu-selftest.tar.gz: $((bytes / 1048576)) MiB"
if [ "$bytes" -gt $((55 * 1048576)) ]; then
  echo "the bundle is larger than 55 MiB" >&2
  exit 1
fi
