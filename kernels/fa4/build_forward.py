#!/usr/bin/env python3
"""Builds forwards of FlashAttention 4 for Hopper ahead of time; no GPU is needed and none is used.

    build_forward.py OUT

writes OUT/<name>.so for each variant, the libraries that they need and OUT/manifest.json. Runs in a virtual environment of its own (OUT/.venv unless
--venv names one). A library whose variant, sources and packages are unchanged is kept.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
FORMAT = 2
IN_VENV = "BIFOCAL_FA4_VENV"
RUNTIME = "libcute_dsl_runtime.so"

# Head sizes and query heads of a key/value head. Of each there are a causal forward, one of all keys for lowered images, and
# one that takes its bounds for layers with a window. Blocks of as many slots as a tile has keys are read by the tensor memory
# accelerator, others by copies of single rows.
SHAPES = (
    *({"head-size": 128, "group": group} for group in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)),
    *({"head-size": 256, "group": group} for group in (1, 2, 4, 8)),
    *({"head-size": 64, "group": group} for group in (1, 4, 7, 8)),
    *({"head-size": 128, "group": group, "dtype": "fp16"} for group in (4, 8)),
    *({"head-size": 128, "group": 4, "page-size": page} for page in (16, 32)),
    *({"head-size": 256, "group": 2, "page-size": page} for page in (16, 32)),
)


def variants():
    for shape in SHAPES:
        variant = {"page-size": 64, **shape, "tile-keys": 64}
        if variant["group"] > 1:
            variant["pack"] = True
        yield variant
        yield {**variant, "full": True}
        yield {**variant, "window": True}


def enter_venv(venv):
    """Makes the environment if it is missing or stale, then starts over inside it."""
    python = venv / "bin" / "python"
    stamp = venv / ".requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not python.exists() or not stamp.exists() or stamp.read_text() != wanted:
        print(f"making {venv} from {REQUIREMENTS.name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        # Without dependencies: FlashAttention 4 names torch, which compiling does not need.
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement",
                        str(REQUIREMENTS)], check=True)
        stamp.write_text(wanted)
    os.environ[IN_VENV] = "1"
    os.execv(str(python), [str(python), str(Path(__file__).resolve()), *sys.argv[1:]])


def words(variant):
    """A variant as arguments of compile_forward.py."""
    made = []
    for name, value in variant.items():
        made += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return made


def inputs(variant):
    digest = hashlib.sha256(json.dumps({"format": FORMAT, "variant": variant}, sort_keys=True).encode())
    for file in (REQUIREMENTS, HERE / "compile_forward.py"):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def runtime_folder():
    """Where the package has the library that compiled code needs."""
    import nvidia_cutlass_dsl
    return Path(next(iter(nvidia_cutlass_dsl.__path__))) / "cu13" / "lib"


def build(variant, out):
    """The manifest's entry."""
    done = subprocess.run([sys.executable, str(HERE / "compile_forward.py"), str(out), *words(variant)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    name = done.stdout.split(":")[0].splitlines()[-1]
    compiled, library = out / f"{name}.o", out / f"{name}.so"
    subprocess.run([os.environ.get("CXX", "c++"), "-shared", str(compiled), f"-L{runtime_folder()}",
                    f"-l:{RUNTIME}", "-Wl,-rpath,$ORIGIN", "-o", str(library)], check=True)
    compiled.unlink()
    return {"name": name, "file": library.name, "sha256": digest(library), "inputs": inputs(variant),
            "package": "flash-attn-4", "version": pinned("flash-attn-4"), "licence": "BSD-3-Clause",
            "dtype": variant.get("dtype", "bf16"), "head_size": variant["head-size"], "group": variant["group"],
            "page_size": variant["page-size"], "sight": sight(variant)}


def sight(variant):
    """Which keys a query sees."""
    return "bounds" if variant.get("window") else "full" if variant.get("full") else "causal"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pinned(name):
    return re.search(rf"^{name}==(\S+)", REQUIREMENTS.read_text(), re.M).group(1)


def kept(out):
    """Entries of the manifest that are intact, by the hash of their inputs."""
    manifest = out / "manifest.json"
    if not manifest.exists():
        return {}
    read = json.loads(manifest.read_text())
    return {entry["inputs"]: entry for entry in read["modules"]
            if (out / entry["file"]).exists() and digest(out / entry["file"]) == entry["sha256"]}


def place_runtime(out):
    """Puts the library of TVM-FFI into the pack, and a link to NVIDIA's, which stays where its package has it."""
    import tvm_ffi
    copy = out / "libtvm_ffi.so"
    shutil.copyfile(Path(tvm_ffi.__file__).parent / "lib" / copy.name, copy)
    link = out / RUNTIME
    link.unlink(missing_ok=True)
    link.symlink_to(runtime_folder() / RUNTIME)
    return {"file": copy.name, "sha256": digest(copy), "package": "apache-tvm-ffi",
            "version": pinned("apache-tvm-ffi"), "licence": "Apache-2.0"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--venv", type=Path, help="virtual environment (default OUT/.venv)")
    parser.add_argument("--only", default=".", help="regular expression on the variants as --list writes them; others "
                                                  "are left as they are")
    parser.add_argument("--list", action="store_true", help="write the variants and build nothing")
    options = parser.parse_args()
    every = list(variants())
    chosen = [variant for variant in every if re.search(options.only, " ".join(words(variant)))]
    if options.list or not chosen:
        print("\n".join(" ".join(words(variant)) for variant in chosen))
        sys.exit(0 if chosen else f"no variant matches {options.only!r}")
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    if not os.environ.get(IN_VENV):
        enter_venv((options.venv or options.out / ".venv").resolve())
    before, entries, failed = kept(options.out), [], []
    for number, variant in enumerate(every, 1):
        if inputs(variant) in before:
            entries.append(before[inputs(variant)])
            continue
        if variant not in chosen:
            continue
        started = time.monotonic()
        try:
            entries.append(build(variant, options.out))
            print(f"[{number}/{len(every)}] {entries[-1]['name']}: {time.monotonic() - started:.0f} s", flush=True)
        except RuntimeError as problem:
            failed.append(" ".join(words(variant)))
            print(f"[{number}/{len(every)}] {failed[-1]}: FAILED {problem}", flush=True)
    manifest = {
        "format": FORMAT, "family": "fa4", "target": "sm_90a", "runtime": [place_runtime(options.out)],
        "needs": {"file": RUNTIME, "package": "nvidia-cutlass-dsl-libs-cu13",
                  "version": pinned("nvidia-cutlass-dsl-libs-cu13"), "licence": "NVIDIA's; not part of the pack"},
        "modules": entries}
    (options.out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    if failed:
        sys.exit(f"\n{len(failed)} failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
