#!/usr/bin/env python3
"""Makes the result files of a run of the bundle: docs/results/DATE-DEVICE.json and .md.

    write_results.py OUT DATE [--driver VERSION] [--commit HASH] [--notes FILE] [--into docs/results]

OUT is what run.sh wrote. DATE is the day of the run, yyyy-mm-dd. Numbers are taken as they were measured. FILE has
points of Markdown for the notes, beside those about the commands and the checkers, which are made here of their logs.
"""

import argparse
import json
import re
from pathlib import Path


def significant(value):
    return float(f"{value:.5g}") if isinstance(value, float) else value


def rounded(tree):
    if isinstance(tree, dict):
        return {key: rounded(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [rounded(value) for value in tree]
    return significant(tree)


def speed(entry):
    return entry.get("tflops", entry.get("tbps"))


def table(result):
    peers = list(dict.fromkeys(name for row in result["rows"] for name in row["peers"]))
    lines = ["| work | ours | backend | " + " | ".join(peers) + " | ratio to the fastest |",
             "| --- " * (4 + len(peers)) + "|"]
    for row in result["rows"]:
        digits = 2 if "tbps" in row["ours"] else 0
        cells = [f"{speed(row['peers'][name]):.{digits}f}" if name in row["peers"] else "-" for name in peers]
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
        lines.append(f"| {row['work']} | **{speed(row['ours']):.{digits}f}** | {row['ours']['backend']} | "
                     + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def tests(log):
    text = log.read_text(errors="replace") if log.exists() else ""
    found = re.search(r"\[\s*(\d+) tests found", text)
    passed = re.search(r"\[\s*(\d+) tests successful", text)
    failed = re.search(r"\[\s*(\d+) tests failed", text)
    seed = re.search(r"seed (\d{6,})", text)
    if not found:
        return "The tests were not run."
    return (f"Tests tagged `gpu`: {passed.group(1)} of {found.group(1)} passed, {failed.group(1)} failed"
            + (f" (seed {seed.group(1)})." if seed else "."))


def commands(out):
    """What `attend --check` and `replay` said."""
    log, replay = out / "commands.log", out / "replay.json"
    points = []
    if log.exists():
        errors = re.findall(r"worst error\s+([\d.e+-]+).*?bound ([\d.e+-]+)", log.read_text(errors="replace"))
        if errors:
            worst, bound = max(errors, key=lambda pair: float(pair[0]))
            points.append(f"`attend` and `replay` with `--platform cuda`: checks passed, worst error {worst} (bound {bound}).")
    if replay.exists() and replay.read_text().strip().startswith("{"):
        points.append("`replay --platform cuda --lowering --format json` ran to its end.")
    return points


def checkers(out):
    """What compute-sanitizer said of a small run."""
    points = []
    for name, what in (("memcheck", "memory accesses"), ("racecheck", "shared memory, all but `hopper_attention`")):
        log = out / f"{name}.log"
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: ([^\n]*)", log.read_text(errors="replace")) if log.exists() else []
        if summary:
            points.append(f"`compute-sanitizer` over a few shapes, {what}: {summary[-1]}.")
    races = out / "races.txt"
    if races.exists():
        points.append(f"{races.read_text().splitlines()[0]} ([what these are](../cuda.md#checkers)).")
    return points


def notes(options):
    """The points of the notes."""
    points = [f"- {point}" for point in commands(options.out) + checkers(options.out)]
    if options.notes:
        points.append(options.notes.read_text().strip())
    return "\n## Notes\n\n" + "\n".join(points) + "\n" if points else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("date")
    parser.add_argument("--driver", help="version of the driver, where the log of the run has it")
    parser.add_argument("--commit", help="commit of the sources, where the file of the run does not say it")
    parser.add_argument("--notes", type=Path, help="points of Markdown to add to the notes")
    parser.add_argument("--into", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    result = rounded(json.loads((options.out / "bench.json").read_text()))
    result = {"date": options.date} | result
    if options.driver:
        result["driver"] = options.driver
    if options.commit:
        result["commit"] = options.commit
    name = f"{options.date}-{re.sub('[^a-z0-9]+', '-', result['device'].lower())}"
    options.into.mkdir(parents=True, exist_ok=True)
    rows = ",\n  ".join(json.dumps(row) for row in result["rows"])
    text = json.dumps({key: value for key, value in result.items() if key != "rows"}, indent=1)[:-2] + f',\n "rows": [\n  {rows}\n ]\n}}\n'
    json.loads(text)
    (options.into / f"{name}.json").write_text(text)
    host = "\n".join(f"| {cost['backend']} | {cost['forward_micros']:.1f} | {cost['build_micros']:.1f} | "
                     f"{cost['forward_bytes']:.0f} |" for cost in result["host"])
    lowered = "\n".join(f"| {cost['work']} | {cost.get('by', '').removeprefix('by ') or 'TRITON_ATTN_CAUSAL'} | {cost['lowered_ms']:.3f} | {cost['causal_ms']:.3f} | "
                        f"{cost['pairs_ratio']:.2f} | {cost['tokens_ratio']:.2f} |" for cost in result["lowered"])
    unit = {"tflops": "TFLOP/s", "tbps": "TB/s"}
    best = "\n".join(f"| {row['work']} | {row['best_child']} | "
                     + " | ".join(f"{row[key]:.3f} {unit[key]}" for key in unit if key in row)
                     + f" | {row.get('ratio', float('nan')):.2f} |".replace("nan", "–") for row in result.get("best", []))
    turns = "\n".join(f"| {turn['work']} | {turn['first']} | {turn['first_ms']:.3f} | {turn['second']} | {turn['second_ms']:.3f} | "
                      f"{turn['ratio']:.2f} |" for turn in result.get("turns", []))
    versions = ", ".join(f"{key} {value}" for key, value in result["versions"].items())
    (options.into / f"{name}.md").write_text(f"""# {result['device']}, {options.date}

Driver {result['driver']}; peers: {versions}. Commit {result['commit'][:12]}. Made by `run.sh` of
[kernels/gpu-selftest](../../kernels/gpu-selftest/README.md); every number is in [{name}.json]({name}.json).

{tests(options.out / 'tests.log')}

## Speed

TFLOP/s for prefill (4 × head size for each visible pair and query head), TB/s for decode (each key and value once).
(query heads, KV heads, head size) batch × keys; bf16, blocks of 64, shuffled; medians of single forwards timed by events,
other data read through the device's cache before each. Peers are PyTorch's, in the same run, over contiguous keys and values.

{table(result)}

## The best child

Of each work the fastest row, and its speed as a multiple of the fastest peer's.

| work | child | speed | ratio |
| --- | --- | --- | --- |
{best}

## Images as runs

The fast child computes the images as causal and non-causal runs. Beside it, in turns, the same batch without images.

| work | child | with images, ms | without, ms | its visible pairs per second | its tokens per second |
| --- | --- | --- | --- | --- | --- |
{lowered}

## Routes of a batch with one image

31 requests of text and one with an image of 256 tokens, each with a chunk of 512 queries; "whole batch" sends all of them to
`TRITON_ATTN`. The two of a row took turns; the ratio says how many times as fast the first is.

| work | first | ms | second | ms | ratio |
| --- | --- | --- | --- | --- | --- |
{turns}

## Host

64 decodes of 1024 keys, (32,8,128), or (32,16,256) for other makers' kernels: microseconds of a forward (one launch) until it returns, of a build, and bytes of Java heap
that a forward allocates.

| backend | forward, µs | build, µs | bytes |
| --- | --- | --- | --- |
{host}
{notes(options)}""")
    print(options.into / f"{name}.md")


if __name__ == "__main__":
    main()
