#!/usr/bin/env python3
"""Builds FlashInfer's attention modules ahead of time; no GPU is needed and none is used.

    build_packs.py OUT --profile profiles/gemma-4-31b.json --jobs 2

writes OUT/<target>/<module>.so, the two libraries that they need, and OUT/<target>/manifest.json. Runs in a virtual
environment of its own (OUT/.venv unless --venv names one, made from requirements.txt on first use). An object file
whose inputs are unchanged is kept, so a build that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import plan

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
FORMAT = 1
IN_VENV = "BIFOCAL_FLASHINFER_VENV"
SCHEMA_IN_MODULE = "-DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1"
RUNTIME = {"libcudart.so.13": "nvidia-cuda-runtime", "libtvm_ffi.so": "apache-tvm-ffi"}
# The wheels of CUDA name their licence in a text file only.
LICENCES = {"nvidia-cuda-runtime": "NVIDIA CUDA Toolkit EULA (libcudart is redistributable)"}


class Failed(Exception):
    """A step that did not work, in one line."""


# --- environment ---------------------------------------------------------------------------------------------------

def pinned():
    return dict(re.findall(r"^([A-Za-z0-9_-]+)==(\S+)", REQUIREMENTS.read_text(), re.M))


def installed(name):
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def enter_venv(venv):
    """Makes the environment if it is missing or stale, then starts over inside it."""
    python = venv / "bin" / "python"
    stamp = venv / ".requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not python.exists() or not stamp.exists() or stamp.read_text() != wanted:
        print(f"making {venv} from {REQUIREMENTS.name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        # Without dependencies: FlashInfer names torch and much else that a build has no use for.
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement",
                        str(REQUIREMENTS)], check=True)
        stamp.write_text(wanted)
    os.environ[IN_VENV] = "1"
    os.execv(str(python), [str(python), str(Path(__file__).resolve()), *sys.argv[1:]])


def require_pinned():
    for name, version in pinned().items():
        if installed(name) != version:
            sys.exit(f"the environment has {name} {installed(name)}, wanted {version}")


# --- steps ---------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Unit:
    """A translation unit: one source of one module."""

    uri: str
    source: Path
    flags: tuple

    @property
    def name(self):
        return f"{self.uri}/{self.source.name}"


class Toolchain:
    """The compilers and what they are, all out of packages but the C++ compiler."""

    def __init__(self, build):
        self.build = build
        self.site = Path(distribution("flashinfer-python").locate_file("")).resolve()
        self.cuda = self.site / "nvidia" / "cu13"
        self.versions = pinned()
        self.cxx = os.environ.get("CXX", "c++")

    def generate(self, modules, target):
        """Writes the sources of the modules; a list of {"uri", "sources", "nvcc", "cxx"}, one each."""
        answer = self.build / "generated.json"
        environment = os.environ | {"FLASHINFER_CUDA_ARCH_LIST": plan.TARGETS[target], "CUDA_HOME": str(self.cuda),
                                    "FLASHINFER_WORKSPACE_BASE": str(self.build), "FLASHINFER_LOGGING_LEVEL": "error",
                                    "CUDA_VISIBLE_DEVICES": ""}
        request = json.dumps({"target": target, "modules": [module.describe() for module in modules]})
        subprocess.run([sys.executable, str(HERE / "generate.py"), str(answer)], input=request, text=True,
                       env=environment, check=True)
        return json.loads(answer.read_text())

    def compile(self, unit, result):
        compiler = [str(self.cuda / "bin" / "nvcc")] if unit.source.suffix == ".cu" else [self.cxx]
        run([*compiler, *unit.flags, "-c", str(unit.source), "-o", str(result)])

    def link(self, objects, result):
        run([self.cxx, "-shared", *map(str, objects), "-L" + str(self.cuda / "lib"), "-l:libcudart.so.13",
             "-Wl,-rpath,$ORIGIN", "-o", str(result)])
        if re.search(r"\bcu[A-Z]\w+$", undefined(result), re.M):
            # The driver is on the machine that runs the module; here only its name is.
            run([self.cxx, "-shared", *map(str, objects), "-L" + str(self.cuda / "lib"), "-l:libcudart.so.13",
                 "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", str(self.driver()), "-o", str(result)])

    def driver(self):
        """An empty library of the driver's name, which stands for it when modules are linked and asked."""
        library = self.build / "stub" / "libcuda.so.1"
        if not library.exists():
            library.parent.mkdir(parents=True, exist_ok=True)
            run([self.cxx, "-shared", "-x", "c", "/dev/null", "-Wl,-soname,libcuda.so.1", "-o", str(library)])
        return library

    def describe(self, library):
        """Metadata of each function of a module, as the module itself tells it."""
        environment = os.environ | {
            "LD_LIBRARY_PATH": f"{self.driver().parent}{os.pathsep}{self.cuda / 'lib'}", "CUDA_VISIBLE_DEVICES": ""}
        return json.loads(run([sys.executable, str(HERE / "describe.py"), str(library)], environment))

    def runtime(self, file):
        folder = {"libcudart.so.13": self.cuda / "lib", "libtvm_ffi.so": self.site / "tvm_ffi" / "lib"}[file]
        return folder / file

    def inputs(self, unit):
        """Hash of all that goes into an object file. Headers are those of pinned packages."""
        paths = {str(self.site): "$SITE", str(self.build): "$BUILD"}
        flags = [replaced(flag, paths) for flag in unit.flags]
        facts = {"format": FORMAT, "source": hashlib.sha256(unit.source.read_bytes()).hexdigest(), "flags": flags,
                 "included": generated_beside(unit), "packages": self.versions}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def generated_beside(unit):
    """Hashes of the headers that were generated for the module."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(unit.source.parent.glob("*.inc"))}


def replaced(text, paths):
    for path, name in paths.items():
        text = text.replace(path, name)
    return text


def run(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        telling = [line for line in lines if re.search(r"\berror\b", line, re.I)] or lines
        raise Failed(telling[0].strip() if telling else f"{Path(command[0]).name} ended with {done.returncode}")
    return done.stdout


def undefined(library):
    return run(["nm", "-D", "--undefined-only", str(library)])


# --- building ------------------------------------------------------------------------------------------------------

class Build:
    """One pack directory. `tools` is a Toolchain, or what stands for one."""

    def __init__(self, out, target, tools, jobs, say=print):
        self.directory = out / target
        self.objects = out / ".build" / target / "objects"
        self.target = target
        self.tools = tools
        self.jobs = jobs
        self.say = say
        self.lock = threading.Lock()
        self.directory.mkdir(parents=True, exist_ok=True)

    def units(self, module, generated):
        """The translation units of a module without those that the profile leaves out."""
        flags = {".cu": (*generated["nvcc"], SCHEMA_IN_MODULE), ".cpp": (*generated["cxx"], SCHEMA_IN_MODULE)}
        sources = [Path(source) for source in generated["sources"]]
        return [Unit(generated["uri"], source, flags[source.suffix])
                for source in sources if not module.leaves_out(source.name)]

    def object_file(self, unit):
        return self.objects / unit.uri / (unit.source.name + ".o")

    def up_to_date(self, unit):
        file = self.object_file(unit)
        stamp = file.with_suffix(".inputs")
        return file.exists() and stamp.exists() and stamp.read_text() == self.tools.inputs(unit)

    def compile(self, unit):
        """Seconds that it took."""
        started = time.monotonic()
        file = self.object_file(unit)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name("part-" + file.name)
        self.tools.compile(unit, part)
        part.replace(file)
        file.with_suffix(".inputs").write_text(self.tools.inputs(unit))
        return time.monotonic() - started

    def module_inputs(self, units):
        return hashlib.sha256("".join(self.tools.inputs(unit) for unit in units).encode()).hexdigest()

    def finish(self, module, generated, units):
        """Links a module and makes its entry of the manifest."""
        uri = generated["uri"]
        library = self.directory / (uri + ".so")
        part = library.with_suffix(".so.part")
        self.tools.link([self.object_file(unit) for unit in units], part)
        part.replace(library)
        exports = [{"name": name, "signature": signature(metadata), "metadata": json.dumps(metadata)}
                   for name, metadata in sorted(self.tools.describe(library).items())]
        return {
            "uri": uri,
            "file": library.name,
            "sha256": digest(library),
            "bytes": library.stat().st_size,
            "inputs": self.module_inputs(units),
            **package("flashinfer-python", self.tools.versions),
            **facts(module),
            "exports": exports,
        }

    def build(self, modules, keep_others=False):
        """Names of what failed. `modules` are pairs of a module and what was generated for it."""
        before = kept_entries(self.directory)
        entries, wanted = {}, []
        for module, generated in modules:
            units = self.units(module, generated)
            old = before.get(generated["uri"])
            if old and old["inputs"] == self.module_inputs(units) and intact(old, self.directory):
                entries[generated["uri"]] = old
            else:
                wanted.append((module, generated, units))
        units = [unit for _, _, units in wanted for unit in units]
        missing = [unit for unit in units if not self.up_to_date(unit)]
        self.say(f"{self.target}: {len(entries)} modules up to date, {len(wanted)} to build, "
                 f"{len(missing)} of their {len(units)} units to compile")
        failed = self.compile_and_link(wanted, missing, entries, before)
        self.sweep(entries, before if keep_others else {})
        self.write_manifest(entries)
        return failed

    def compile_and_link(self, wanted, missing, entries, before):
        failed, done = [], 0
        absent = set(missing)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            running = {pool.submit(self.compile, unit): unit for unit in missing}
            open_units = {generated["uri"]: {u for u in units if u in absent} for _, generated, units in wanted}
            self.link_complete(wanted, open_units, failed, entries, before)
            for future in concurrent.futures.as_completed(running):
                unit = running[future]
                done += 1
                try:
                    seconds = future.result()
                    self.say(f"[{done}/{len(missing)}] {unit.name}: {seconds:.0f} s")
                    open_units[unit.uri].discard(unit)
                except Failed as problem:
                    failed.append(unit.name)
                    self.say(f"[{done}/{len(missing)}] {unit.name}: FAILED {problem}")
                self.link_complete(wanted, open_units, failed, entries, before)
        return failed

    def link_complete(self, wanted, open_units, failed, entries, before):
        """Links every module that has all its object files and is not linked."""
        for module, generated, units in wanted:
            uri = generated["uri"]
            if uri not in open_units or open_units[uri]:
                continue
            del open_units[uri]
            try:
                entries[uri] = self.finish(module, generated, units)
                self.say(f"{uri}: linked, {entries[uri]['bytes'] // 1024} KiB")
                self.write_manifest(before | entries)
            except Failed as problem:
                failed.append(uri)
                self.say(f"{uri}: FAILED {problem}")

    def sweep(self, entries, others):
        """Removes what no entry names; takes over the intact modules of others."""
        for uri, old in others.items():
            if uri not in entries and intact(old, self.directory):
                entries[uri] = old
        known = {entry["file"] for entry in entries.values()} | set(RUNTIME)
        for path in self.directory.iterdir():
            if path.suffix in (".so", ".part") and path.name not in known:
                path.unlink()

    def write_manifest(self, entries):
        versions = self.tools.versions
        present = {uri: entry for uri, entry in entries.items() if (self.directory / entry["file"]).exists()}
        manifest = {
            "format": FORMAT,
            "family": "flashinfer",
            "target": self.target,
            "cuda": {"nvcc": versions["nvidia-cuda-nvcc"], "runtime_major": 13},
            "tvm_ffi": {"built_with": versions["apache-tvm-ffi"], "minimum": minimum_tvm_ffi()},
            "runtime": [self.place(file) for file in RUNTIME],
            "modules": [present[uri] for uri in sorted(present)],
        }
        part = self.directory / "manifest.json.part"
        part.write_text(json.dumps(manifest, indent=1) + "\n")
        part.replace(self.directory / "manifest.json")

    def place(self, file):
        """Puts a library that the modules need beside them."""
        source, copy = self.tools.runtime(file), self.directory / file
        if not copy.exists() or digest(copy) != digest(source):
            shutil.copyfile(source, copy)
        return {"file": file, "sha256": digest(copy), **package(RUNTIME[file], self.tools.versions)}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def package(name, versions):
    return {"package": name, "version": versions[name], "licence": licence(name)}


def licence(name):
    try:
        text = distribution(name).metadata
    except PackageNotFoundError:
        return LICENCES.get(name, "not installed")
    return LICENCES.get(name) or text.get("License-Expression") or text.get("License") or "see the package"


def minimum_tvm_ffi():
    """The oldest runtime that FlashInfer says it works with."""
    try:
        needs = distribution("flashinfer-python").requires or []
    except PackageNotFoundError:
        needs = []
    for need in needs:
        found = re.match(r"apache-tvm-ffi\b[^;]*>=([0-9.]+)", need)
        if found and "extra" not in need:
            return found.group(1)
    return pinned()["apache-tvm-ffi"]


def facts(module):
    """What a loader looks a module up by."""
    described = module.describe()
    masks, calls = described.pop("masks", None), described.pop("calls", None)
    if "dtype" in described:
        dtype = described.pop("dtype")
        described |= {"dtype_q": dtype, "dtype_kv": dtype, "dtype_o": dtype}
    if module.kind == "decode":
        described["engine"] = "fa2"
    if module.kind in ("decode", "prefill"):
        size = described.pop("head_size")
        described |= {"dtype_idx": "i32", "head_dim_qk": size, "head_dim_vo": size}
    if masks and calls:
        described["kv_strides"] = "equal" if module.engine == "fa2" else "any"
        described["masks"] = module.masks_linked()
    return described


def signature(metadata):
    """`(DLTensor*, Optional<ffi.Tensor>) -> None` out of a function's metadata."""
    def text(schema):
        of = schema.get("args", [])
        return schema["type"] + (f"<{', '.join(map(text, of))}>" if of else "")

    schema = metadata["type_schema"]
    schema = json.loads(schema) if isinstance(schema, str) else schema
    if "named_args" in schema:
        parameters = schema["named_args"].get("params", [])
        result = (schema["named_args"].get("return") or [{"type": "None"}])[0]
    else:
        result, *parameters = schema.get("args") or [{"type": "None"}]
    return f"({', '.join(map(text, parameters))}) -> {text(result)}"


def kept_entries(directory):
    manifest = directory / "manifest.json"
    if not manifest.exists():
        return {}
    try:
        read = json.loads(manifest.read_text())
    except ValueError:
        return {}
    return {entry["uri"]: entry for entry in read.get("modules", [])} if read.get("format") == FORMAT else {}


def intact(entry, directory):
    path = directory / entry["file"]
    return path.exists() and digest(path) == entry["sha256"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="directory that gets one pack directory per target")
    parser.add_argument("--profile", type=Path, action="append", required=True,
                        help="profile file, or the name of one in profiles/; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="compilers at a time (default 1)")
    parser.add_argument("--venv", type=Path, help="virtual environment (default OUT/.venv)")
    parser.add_argument("--only", help="regular expression; build only modules whose name matches, keep the rest")
    parser.add_argument("--keep-others", action="store_true", help="keep modules of other profiles in the pack")
    parser.add_argument("--list", action="store_true", help="print what would be built, and stop")
    options = parser.parse_args()
    options.out = options.out.resolve()
    wanted = {}
    for name in options.profile:
        profile = json.loads(profile_file(name).read_text())
        for module in plan.modules_of(profile):
            wanted.setdefault(profile["target"], {}).setdefault(module, None)
    if options.list:
        for target, modules in wanted.items():
            for module in modules:
                print(target, json.dumps(module.describe()))
        return
    if not os.environ.get(IN_VENV):
        enter_venv((options.venv or options.out / ".venv").resolve())
    require_pinned()
    failed = []
    for target, modules in wanted.items():
        failed += build_target(target, list(modules), options)
    if failed:
        sys.exit(f"\n{len(failed)} failed: " + ", ".join(failed))


def profile_file(name):
    return name if name.exists() else HERE / "profiles" / f"{name}.json"


def build_target(target, modules, options):
    started = time.monotonic()
    folder = options.out / ".build" / target
    folder.mkdir(parents=True, exist_ok=True)
    tools = Toolchain(folder)
    pairs = list(zip(modules, tools.generate(modules, target)))
    chosen = [(module, made) for module, made in pairs if not options.only or re.search(options.only, made["uri"])]
    build = Build(options.out, target, tools, options.jobs, lambda line: print(line, flush=True))
    failed = build.build(chosen, options.keep_others or bool(options.only))
    print(f"{target}: {len(chosen)} modules in {(time.monotonic() - started) / 60:.1f} min", flush=True)
    return [f"{target} {name}" for name in failed]


if __name__ == "__main__":
    main()
