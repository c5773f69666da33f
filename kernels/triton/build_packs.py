#!/usr/bin/env python3
"""Compiles kernel packs ahead of time; no GPU is needed and none is used.

    build_packs.py OUT --profile profiles/llama-3.1-8b.json --target sm_90 --jobs 4

writes OUT/<target>/<key>.cubin (.hsaco for gfx targets) and OUT/<target>/manifest.json. Runs in a virtual environment
of its own (OUT/.venv unless --venv names one, made from requirements.txt on first use) unless the pinned Triton is
already importable. A kernel whose sources, specialisation and compiler are unchanged is kept.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
SOURCES = {"portable": ["attention.py"], "hopper": ["hopper.py"], "write": ["cache.py"]}
FORMAT = 1
IN_VENV = "BIFOCAL_PACKS_VENV"


def pinned_triton():
    return re.search(r"^triton==(\S+)", REQUIREMENTS.read_text(), re.M).group(1)


def importable_triton():
    try:
        from importlib.metadata import version
        return version("triton")
    except Exception:
        return None


def enter_venv(venv):
    """Makes the environment if it is missing or stale, then starts over inside it."""
    python = venv / "bin" / "python"
    stamp = venv / ".requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not python.exists() or not stamp.exists() or stamp.read_text() != wanted:
        print(f"making {venv} from {REQUIREMENTS.name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS)],
                       check=True)
        stamp.write_text(wanted)
    os.environ[IN_VENV] = "1"
    os.execv(str(python), [str(python), str(Path(__file__).resolve()), *sys.argv[1:]])


def source_hash(spec):
    files = SOURCES["write" if spec.use == "write" else spec.engine]
    digest = hashlib.sha256()
    for name in [*files, "specialise.py", "build_packs.py"]:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def input_hash(spec, target, triton_version):
    import specialise
    inputs = {"format": FORMAT, "sources": source_hash(spec), "spec": specialise.describe(spec), "target": target,
              "triton": triton_version}
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def signature(spec):
    """Triton's own names for the argument types, and the promised divisibility."""
    import specialise
    names = {"fp32": "fp32", "f32": "fp32"}
    types, attributes = {}, {}
    for index, argument in enumerate(specialise.arguments(spec)):
        element = names.get(argument.element, argument.element)
        if argument.kind == specialise.POINTER:
            types[argument.name] = "*" + element
        elif argument.kind == "tensor_map":
            types[argument.name] = tensor_map_type(spec, element)
        else:
            types[argument.name] = element
        if divisor(argument):
            attributes[(index,)] = [["tt.divisibility", divisor(argument)]]
    return types, attributes


def tensor_map_type(spec, element):
    import hopper
    rows, columns = hopper.box(spec.block_size, hopper_tile(spec).block_n)
    return f"tensordesc<{element}[1,{rows},1,{columns}],{hopper.box_layout()!r}>"


def hopper_tile(spec):
    import specialise
    return specialise.tile(spec, "sm_90")


def divisor(argument):
    """Pointers to rows of heads and their strides are multiples of 16; arrays of numbers only of their width."""
    import specialise
    if argument.kind == specialise.STRIDE:
        return 16
    if argument.kind == specialise.POINTER and argument.name in (
            "q", "k_cache", "v_cache", "out", "partial_out", "key", "value"):
        return 16
    return 0


def kernel_function(spec):
    import importlib
    module = {"write_kv": "cache", "hopper_attention": "hopper"}.get(spec.kernel, "attention")
    return getattr(importlib.import_module(module), spec.kernel)


def compile_one(spec, target):
    """Returns (binary, facts) of one specialisation."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource
    import specialise

    backend, architecture, warp_size = specialise.TARGETS[target]
    shape = specialise.tile(spec, target)
    function = kernel_function(spec)
    types, attributes = signature(spec)
    constants = specialise.constants(spec, target)
    constexprs = {(function.arg_names.index(name),): value for name, value in constants.items()}
    kind = GluonASTSource if spec.engine == "hopper" else ASTSource
    if list(function.arg_names[:len(types)]) != list(types) or set(function.arg_names) != set(types) | set(constants):
        raise AssertionError(f"{spec.kernel} takes {list(function.arg_names)}, specialise.py lists "
                             f"{[*types, *constants]}")
    full = types | {name: "constexpr" for name in function.arg_names[len(types):]}
    source = kind(fn=function, signature=full, constexprs=constexprs, attrs=attributes)
    options = {"num_warps": shape.warps, "num_stages": shape.stages}
    if backend == "cuda" and spec.engine == "hopper":
        options["maxnreg"] = None
    compiled = triton.compile(source, target=GPUTarget(backend, architecture, warp_size), options=options)
    metadata = compiled.metadata
    binary = compiled.asm["cubin" if backend == "cuda" else "hsaco"]
    facts = {
        "symbol": metadata.name,
        "warp_size": warp_size,
        # A warp-specialised kernel runs more warps than it was asked to compile for.
        "num_warps": metadata.num_warps,
        "num_stages": shape.stages,
        "shared_memory": metadata.shared,
        **{f"{kind}_scratch_{fact}": getattr(metadata, f"{kind}_scratch_{fact}", None) or empty
           for kind in ("global", "profile") for fact, empty in (("size", 0), ("align", 1))},
    }
    if metadata.shared > specialise.SHARED_LIMIT[target]:
        raise ValueError(f"{metadata.shared} bytes of shared memory, {target} has {specialise.SHARED_LIMIT[target]}")
    maps = [dict(m) for m in (getattr(metadata, "tensordesc_meta", None) or [])]
    schema = parameter_schema(spec, maps)
    if backend == "hip":
        check_against_amdgcn(schema, compiled.asm["amdgcn"], metadata.name)
    return binary, facts, schema


def parameter_schema(spec, maps):
    """Each kernel parameter with its offset and size, the two scratch pointers that Triton appends included."""
    import specialise
    schema, offset = [], 0

    def add(name, kind, element, size, align, **more):
        nonlocal offset
        offset = (offset + align - 1) // align * align
        schema.append({"name": name, "kind": kind, "element": element, "offset": offset, "size": size, **more})
        offset += size

    remaining = list(maps)
    for argument in specialise.arguments(spec):
        more = {"multiple_of": divisor(argument)} if divisor(argument) else {}
        if argument.kind == specialise.POINTER:
            add(argument.name, "pointer", argument.element, 8, 8, **more)
        elif argument.kind == "tensor_map":
            meta = remaining.pop(0)
            add(argument.name, "tensor_map", argument.element, 128, 64,
                box=list(meta["block_size"]), swizzle=meta["swizzle"], element_bytes=meta["elem_size"])
            for axis in range(4):
                add(f"{argument.name}_shape_{axis}", "scalar", "i32", 4, 4)
            for axis in range(4):
                add(f"{argument.name}_stride_{axis}", "scalar", "i64", 8, 8)
        else:
            width = specialise.WIDTHS[argument.element]
            add(argument.name, argument.kind, argument.element, width, width, **more)
    add("global_scratch", "pointer", "u8", 8, 8)
    add("profile_scratch", "pointer", "u8", 8, 8)
    return schema


def declared_in_cubin(path):
    """(offset, size) of each parameter as the binary itself states them, in order."""
    text = disassemble(path, "-elf")
    found = re.findall(r"EIATTR_KPARAM_INFO\s+Format:\s+\S+\s+Value:\s+Index : 0x\w+\s+Ordinal : 0x(\w+)"
                       r"\s+Offset\s+: 0x(\w+)\s+Size\s+: 0x(\w+)", text)
    return [(int(offset, 16), int(size, 16)) for _, offset, size in sorted(found, key=lambda one: int(one[0], 16))]


def check_against_cubin(schema, path, symbol):
    """The schema is worked out by rule; what the binary declares has the last word."""
    declared = declared_in_cubin(path)
    if [size for _, size in declared] != [entry["size"] for entry in schema]:
        raise AssertionError(f"{symbol}: parameters declared {declared}, expected "
                             f"{[(entry['offset'], entry['size']) for entry in schema]}")
    # A tensor map is aligned to 64 bytes of the constant bank, whose parameters do not start at a multiple of 64.
    for entry, (offset, _) in zip(schema, declared):
        entry["offset"] = offset


def check_against_amdgcn(schema, assembly, symbol):
    """The same for AMD, whose code objects list offset and size of each explicit kernel argument."""
    declared = []
    for chunk in assembly[assembly.index("amdhsa.kernels:"):].split("- .")[1:]:
        fields = dict(re.findall(r"\.?(\w+):\s+(\S+)", chunk))
        if "offset" in fields and not fields.get("value_kind", "").startswith("hidden"):
            declared.append((int(fields["offset"]), int(fields["size"])))
    expected = [(entry["offset"], entry["size"]) for entry in schema]
    if declared != expected:
        raise AssertionError(f"{symbol}: arguments declared {declared}, expected {expected}")


def disassemble(path, option):
    """What the disassembler that comes with Triton prints."""
    import triton
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    return subprocess.run([str(tool), option, str(path)], capture_output=True, text=True, check=True).stdout


def resources(path):
    """Registers of a thread and bytes of stack (spills among them)."""
    found = re.search(r"REG:(\d+) STACK:(\d+)", disassemble(path, "-res-usage"))
    return {"registers": int(found.group(1)), "stack": int(found.group(2))}


def build_entry(spec, target, directory, triton_version):
    import specialise
    sys.path.insert(0, str(HERE))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        import triton
        triton.knobs.cache.dir = scratch
        # Line tables would carry the paths of the machine that builds.
        triton.knobs.compilation.disable_line_info = True
        binary, facts, schema = compile_one(spec, target)
    suffix = "cubin" if specialise.TARGETS[target][0] == "cuda" else "hsaco"
    path = directory / f"{spec.key}.{suffix}"
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_bytes(binary)
    on_cuda = specialise.TARGETS[target][0] == "cuda"
    if on_cuda:
        facts |= resources(partial)
        check_against_cubin(schema, partial, facts["symbol"])
    partial.replace(path)
    shape = specialise.tile(spec, target)
    entry = {
        "key": spec.key,
        "file": path.name,
        "sha256": hashlib.sha256(binary).hexdigest(),
        "inputs": input_hash(spec, target, triton_version),
        "kernel": spec.kernel,
        "select": spec.select,
        **facts,
        "constants": specialise.constants(spec, target),
        "grid": specialise.grid(spec, target),
    }
    if spec.use == "merge" and specialise.signals(target):
        entry["programmatic_launch"] = True
    if spec.use in ("prefill", "decode"):
        entry["tile"] = {"rows": shape.block_m, "tokens": shape.block_m // spec.group, "keys": shape.block_n}
    entry["arguments"] = schema
    return entry, time.monotonic() - started


def attempt(spec, target, directory, triton_version):
    try:
        entry, seconds = build_entry(spec, target, directory, triton_version)
        return entry, seconds, None
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return None, 0.0, f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def kept_entries(directory):
    manifest = directory / "manifest.json"
    if not manifest.exists():
        return {}
    try:
        read = json.loads(manifest.read_text())
    except ValueError:
        return {}
    return {entry["key"]: entry for entry in read.get("kernels", [])} if read.get("format") == FORMAT else {}


def intact(entry, directory):
    path = directory / entry["file"]
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]


def write_manifest(directory, target, triton_version, entries):
    import specialise
    backend, architecture, warp_size = specialise.TARGETS[target]
    manifest = {"format": FORMAT, "target": target, "backend": backend, "warp_size": warp_size,
                "triton": triton_version, "kernels": [entries[key] for key in sorted(entries)]}
    partial = directory / "manifest.json.part"
    partial.write_text(json.dumps(manifest, indent=1) + "\n")
    partial.replace(directory / "manifest.json")


def build_target(target, specs, options, triton_version):
    import specialise
    directory = options.out / target
    directory.mkdir(parents=True, exist_ok=True)
    before = kept_entries(directory)
    entries, wanted = {}, []
    for spec in specs:
        if not specialise.applies(spec, target):
            continue
        old = before.get(spec.key)
        if old and old["inputs"] == input_hash(spec, target, triton_version) and intact(old, directory):
            entries[spec.key] = old
        else:
            wanted.append(spec)
    print(f"{target}: {len(entries)} up to date, {len(wanted)} to compile", flush=True)
    failed = []
    if wanted:
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
            pending = {pool.submit(attempt, spec, target, directory, triton_version): spec for spec in wanted}
            for done, future in enumerate(concurrent.futures.as_completed(pending), 1):
                spec = pending[future]
                entry, seconds, problem = future.result()
                if problem:
                    failed.append(spec.key)
                    print(f"[{done}/{len(wanted)}] {target} {spec.key}: FAILED {problem}", flush=True)
                    continue
                entries[spec.key] = entry
                print(f"[{done}/{len(wanted)}] {target} {spec.key}: {seconds:.1f} s, "
                      f"{(directory / entry['file']).stat().st_size // 1024} KiB, {entry['shared_memory']} B shared"
                      + (f", {entry['registers']} registers, {entry['stack']} B stack" if "registers" in entry else ""),
                      flush=True)
                if done % 16 == 0:
                    write_manifest(directory, target, triton_version, entries)
    if options.keep_others:
        for key, old in before.items():
            if key not in entries and intact(old, directory):
                entries[key] = old
    else:
        known = {entry["file"] for entry in entries.values()}
        for path in directory.iterdir():
            if path.suffix in (".cubin", ".hsaco", ".part") and path.name not in known:
                path.unlink()
    write_manifest(directory, target, triton_version, entries)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="directory that gets one pack directory per target")
    parser.add_argument("--profile", type=Path, action="append", required=True, help="profile file; may be repeated")
    parser.add_argument("--target", action="append", help="sm_80, sm_90, sm_100, gfx90a, gfx942; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="compiler processes (default 1)")
    parser.add_argument("--venv", type=Path, help="virtual environment (default OUT/.venv)")
    parser.add_argument("--only", help="regular expression; compile only keys that match, keep the rest")
    parser.add_argument("--keep-others", action="store_true", help="keep kernels of other profiles in the packs")
    parser.add_argument("--any-triton", action="store_true", help="use the importable Triton whatever its version")
    options = parser.parse_args()
    options.out = options.out.resolve()

    if importable_triton() != pinned_triton() and not (options.any_triton and importable_triton()):
        if os.environ.get(IN_VENV):
            sys.exit(f"the environment has Triton {importable_triton()}, wanted {pinned_triton()}")
        enter_venv((options.venv or options.out / ".venv").resolve())

    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    sys.path.insert(0, str(HERE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    import specialise
    specs, targets = {}, []
    for path in options.profile:
        profile = json.loads(path.read_text())
        targets += profile.get("targets", [])
        for spec in specialise.specialisations(profile):
            specs.setdefault(spec.key, spec)
    targets = options.target or list(dict.fromkeys(targets)) or ["sm_90"]
    chosen = [spec for spec in specs.values() if not options.only or re.search(options.only, spec.key)]
    options.keep_others |= bool(options.only)
    unknown = [target for target in targets if target not in specialise.TARGETS]
    if unknown:
        sys.exit(f"unknown target {unknown[0]}; known: {', '.join(specialise.TARGETS)}")
    failed = []
    for target in targets:
        failed += [f"{target} {key}" for key in build_target(target, chosen, options, importable_triton())]
    if failed:
        sys.exit(f"\n{len(failed)} kernels failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
