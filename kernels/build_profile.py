#!/usr/bin/env python3
"""Builds the kernel packs of one profile by its name: Triton's, and FlashInfer's where there is such a profile.

    build_profile.py OUT --profile gemma-4-31b --target sm_90 --jobs 2

makes OUT/<target> and OUT/flashinfer/<target>. Without a name, Triton's packs of the models in DEFAULT are built.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFAULT = ("llama-3.1-8b", "gemma-4-31b")


def profiles(family):
    return sorted(file.stem for file in (HERE / family / "profiles").glob("*.json"))


def commands(options):
    """The builders to run, one after another."""
    names = [options.profile] if options.profile else DEFAULT
    known = {family: profiles(family) for family in ("triton", "flashinfer")}
    for name in names:
        if not any(name in of for of in known.values()):
            raise ValueError(f"no profile {name!r}; there are {', '.join(sorted({*sum(known.values(), [])}))}")
    common = ["--jobs", str(options.jobs), "--only", options.only]
    made = []
    triton = [name for name in names if name in known["triton"]]
    if triton:
        made.append([str(HERE / "triton" / "build_packs.py"), str(options.out),
                     *[word for name in triton
                       for word in ("--profile", str(HERE / "triton" / "profiles" / f"{name}.json"))],
                     *[word for target in options.target for word in ("--target", target)],
                     *(["--venv", str(options.venv)] if options.venv else []), *common])
    if options.profile in known["flashinfer"]:
        made.append([str(HERE / "flashinfer" / "build_packs.py"), str(options.out / "flashinfer"),
                     "--profile", options.profile,
                     *(["--venv", f"{options.venv}-flashinfer"] if options.venv else []), *common])
    return made


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="directory that gets the packs")
    parser.add_argument("--profile", default="", help="name of a profile; empty: those of DEFAULT, Triton's only")
    parser.add_argument("--target", action="append", default=[], help="targets of Triton's packs; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="compilers at a time (default 1)")
    parser.add_argument("--venv", type=Path, help="virtual environment of Triton's builder; FlashInfer's gets its "
                                                  "name with -flashinfer")
    parser.add_argument("--only", default=".", help="regular expression on the names of kernels and modules")
    return parser.parse_args(arguments)


def main():
    try:
        todo = commands(parsed(sys.argv[1:]))
    except ValueError as refused:
        sys.exit(str(refused))
    for command in todo:
        done = subprocess.run([sys.executable, *command])
        if done.returncode != 0:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
