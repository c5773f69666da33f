"""Number formats as raw arrays, worked out independently of the kernels: the tests' side of every conversion."""

import numpy as np

RAW = {"bf16": np.uint16, "fp16": np.float16, "fp32": np.float32, "e4m3": np.uint8, "e5m2": np.uint8,
       "int8": np.int8}
LIMIT = {"e4m3": 448.0, "e5m2": 57344.0, "int8": 127.0}


def _fp8_table(exponent_bits, mantissa_bits, bias):
    values = np.empty(256)
    for byte in range(256):
        exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = byte & ((1 << mantissa_bits) - 1)
        if exponent:
            value = (1 + mantissa / 2 ** mantissa_bits) * 2.0 ** (exponent - bias)
        else:
            value = mantissa / 2 ** mantissa_bits * 2.0 ** (1 - bias)
        values[byte] = -value if byte & 0x80 else value
    return values


TABLES = {"e4m3": _fp8_table(4, 3, 7), "e5m2": _fp8_table(5, 2, 15)}


def decode(raw, fmt):
    """Raw elements as float64."""
    if fmt == "bf16":
        return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if fmt in TABLES:
        return TABLES[fmt][raw]
    return raw.astype(np.float64)


def encode(x, fmt):
    """The nearest representable numbers, ties to even; the narrow formats saturate."""
    if fmt == "bf16":
        bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    if fmt in TABLES:
        x = np.clip(np.asarray(x, dtype=np.float64), -LIMIT[fmt], LIMIT[fmt])
        positive = TABLES[fmt][: 0x80]
        positive = positive[positive <= LIMIT[fmt]]
        magnitude = np.abs(x)
        above = np.clip(np.searchsorted(positive, magnitude), 1, len(positive) - 1)
        below = above - 1
        to_above, to_below = positive[above] - magnitude, magnitude - positive[below]
        nearest = np.where((to_above < to_below) | ((to_above == to_below) & (above % 2 == 0)), above, below)
        return (nearest | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)
    if fmt == "int8":
        return np.clip(np.rint(x), -127, 127).astype(np.int8)
    return np.asarray(x).astype(RAW[fmt])


def poison(shape, fmt):
    """An array no kernel may leave behind: NaN where the format has one."""
    if fmt == "bf16":
        return np.full(shape, 0x7FC1, np.uint16)
    if fmt in ("e4m3", "e5m2"):
        return np.full(shape, 0x7F, np.uint8)
    return np.full(shape, 77 if fmt == "int8" else np.nan, RAW[fmt])
