#!/usr/bin/env python3
"""Writes a case for `bifocal attend`: a mixed batch in bf16 with two images; needs nothing but Python.

    make_case.py OUT.safetensors
"""

import array
import json
import random
import struct
import sys

HEADS, KV_HEADS, HEAD_SIZE = 8, 2, 128
QUERY_LENS, SEQ_LENS = [300, 1, 40], [300, 777, 120]
IMAGES = [0, 20, 119, 0, 150, 260]


def numbers(count, generator):
    floats = array.array("f", (generator.gauss(0, 1) for _ in range(count)))
    words = array.array("I", floats.tobytes())
    return array.array("H", (((word + 0x7FFF + ((word >> 16) & 1)) >> 16) & 0xFFFF for word in words)).tobytes()


def main():
    generator = random.Random(11)
    queries, keys = sum(QUERY_LENS), sum(SEQ_LENS)
    tensors = {
        "q": ("BF16", [queries, HEADS, HEAD_SIZE], numbers(queries * HEADS * HEAD_SIZE, generator)),
        "k": ("BF16", [keys, KV_HEADS, HEAD_SIZE], numbers(keys * KV_HEADS * HEAD_SIZE, generator)),
        "v": ("BF16", [keys, KV_HEADS, HEAD_SIZE], numbers(keys * KV_HEADS * HEAD_SIZE, generator)),
        "query_lens": ("I32", [len(QUERY_LENS)], struct.pack(f"<{len(QUERY_LENS)}i", *QUERY_LENS)),
        "seq_lens": ("I32", [len(SEQ_LENS)], struct.pack(f"<{len(SEQ_LENS)}i", *SEQ_LENS)),
        "images": ("I32", [len(IMAGES) // 3, 3], struct.pack(f"<{len(IMAGES)}i", *IMAGES)),
    }
    header = {"__metadata__": {"causal": "true", "mask": "clamp_past", "sliding_window": "100", "block_size": "64"}}
    offset = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(sys.argv[1], "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _dtype, _shape, data in tensors.values():
            file.write(data)


if __name__ == "__main__":
    main()
