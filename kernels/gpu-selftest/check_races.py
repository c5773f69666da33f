#!/usr/bin/env python3
"""Tells whether what racecheck reports of `hopper_attention` is only what it reports of every warp-specialised kernel.

    check_races.py racecheck-hopper.log

Triton tells the warps of such a kernel their part through eight bytes of shared memory: the first four warps write
them, all meet at barrier 1, and the others read one byte each; when the parts are done, all meet there again. racecheck
does not see that barrier's order once groups of warps also meet at barriers of their own, and reports the bytes, even
of a kernel that uses no shared memory itself. Anything else that it reports is a fault: exit 1.
"""

import collections
import re
import sys

HAZARD = re.compile(r"Potential (\w+) hazard detected at __shared__ (0x[0-9a-f]+) in block")
ACCESS = re.compile(r"(Write|Read) Thread \((\d+),0,0\) at (\S+)\+(0x[0-9a-f]+)")
FIRST_WARPS = 128
BYTES = 8


def hazards(lines):
    """(kind, address, {access: (thread, kernel, offset)}) of each report."""
    found = None
    for line in lines:
        hazard = HAZARD.search(line)
        if hazard:
            if found:
                yield found
            found = (hazard.group(1), int(hazard.group(2), 16), {})
        access = ACCESS.search(line)
        if found and access:
            found[2][access.group(1)] = (int(access.group(2)), access.group(3), access.group(4))
    if found:
        yield found


def main():
    others, dispatch = [], collections.defaultdict(set)
    for kind, address, accesses in hazards(open(sys.argv[1], errors="replace")):
        write, read = accesses.get("Write"), accesses.get("Read")
        if kind == "RAW" and write and read and write[0] < FIRST_WARPS <= read[0]:
            dispatch[write[1:] + read[1:]].add(address)
        else:
            others.append(f"{kind} at {address:#x}: {accesses}")
    for place, addresses in dispatch.items():
        if max(addresses) - min(addresses) >= BYTES:
            others.append(f"{place}: {len(addresses)} addresses from {min(addresses):#x} to {max(addresses):#x}")
    count = sum(len(addresses) for addresses in dispatch.values())
    print(f"racecheck of hopper_attention: {count} bytes of {len(dispatch)} places where warps are told their part, "
          f"{len(others)} other hazards")
    print("\n".join(others[:20]))
    sys.exit(1 if others else 0)


if __name__ == "__main__":
    main()
