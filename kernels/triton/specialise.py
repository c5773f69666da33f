"""What is compiled: specialisations of the kernels, their keys, argument lists, constants and tile shapes."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field

TARGETS = {
    "sm_80": ("cuda", 80, 32),
    "sm_90": ("cuda", 90, 32),
    "sm_100": ("cuda", 100, 32),
    "gfx90a": ("hip", "gfx90a", 64),
    "gfx942": ("hip", "gfx942", 64),
}

# Bytes of shared memory one program can have.
SHARED_LIMIT = {"sm_80": 166912, "sm_90": 232448, "sm_100": 232448, "gfx90a": 65536, "gfx942": 65536}

DTYPES = ("bf16", "fp16", "fp32")
KV_FORMATS = ("same", "e4m3", "e5m2", "int8")
WIDTHS = {"bf16": 2, "fp16": 2, "fp32": 4, "u8": 1, "i8": 1, "i32": 4, "i64": 8, "f32": 4}

# name, Triton type, and whether the launcher promises a multiple of 16 (an address in bytes, a stride in elements).
POINTER, SCALAR, STRIDE = "pointer", "scalar", "stride"


@dataclass(frozen=True)
class Argument:
    name: str
    kind: str
    element: str


def _pointers(*pairs):
    return [Argument(name, POINTER, element) for name, element in pairs]


def _strides(*names):
    return [Argument(name, STRIDE, "i64") for name in names]


def _loose(*names):
    return [Argument(name, SCALAR, "i64") for name in names]


def _scalars(element, *names):
    return [Argument(name, SCALAR, element) for name in names]


@dataclass(frozen=True)
class Tile:
    block_m: int = 0
    block_n: int = 0
    warps: int = 4
    stages: int = 2
    phased: bool = False
    chunk: int = 0


@dataclass(frozen=True)
class Specialisation:
    """One cubin. `use` is prefill, decode, merge or write; `engine` is portable or hopper (prefill only)."""

    use: str
    dtype: str
    head_size: int
    engine: str = "portable"
    variant: str = "causal"
    kv: str = "same"
    token_scales: bool = False
    group: int = 1
    block_size: int = 0
    softcap: bool = False
    alibi: bool = False
    out: str = "same"
    tile: Tile | None = field(default=None)

    def __post_init__(self):
        if self.dtype not in DTYPES or self.kv not in KV_FORMATS:
            raise ValueError(f"unknown dtype or cache format: {self}")
        if self.head_size % 16 or not 16 <= self.head_size <= 512:
            raise ValueError(f"head size must be a multiple of 16 up to 512: {self}")
        if self.kv == "int8" and not self.token_scales:
            raise ValueError(f"int8 needs scales per token and head: {self}")
        if self.kv == "same" and self.token_scales:
            raise ValueError(f"an unquantised cache has no scales: {self}")
        if self.out not in ("same", "fp32"):
            raise ValueError(f"unknown type of output: {self}")
        if self.out == "fp32" and (self.dtype == "fp32" or self.engine == "hopper" or self.use == "write"):
            raise ValueError(f"fp32 outputs are for portable attention of narrower types: {self}")

    @property
    def kernel(self):
        if self.use == "merge":
            return "merge_splits"
        if self.use == "write":
            return "write_kv"
        return "hopper_attention" if self.engine == "hopper" else "paged_attention"

    @property
    def key(self):
        cache = self.kv + ("-token" if self.token_scales else "")
        if self.use == "merge":
            parts = ["merge", self.dtype, f"d{self.head_size}"]
        elif self.use == "write":
            parts = ["write", self.dtype, cache, f"d{self.head_size}"]
        else:
            parts = [self.use, self.variant, self.dtype, cache, f"d{self.head_size}", f"g{self.group}",
                     f"b{self.block_size}"]
            parts += ["softcap"] * self.softcap + ["alibi"] * self.alibi
            if self.engine != "portable":
                parts.append(self.engine)
        if self.out != "same":
            parts.append(f"{self.out}out")
        if self.tile:
            tile = self.tile
            parts.append(f"m{tile.block_m}n{tile.block_n}w{tile.warps}s{tile.stages}"
                         + ("p" if tile.phased else "") + (f"c{tile.chunk}" if tile.chunk else ""))
        return "-".join(parts)

    @property
    def select(self):
        """What the loader looks a kernel up by."""
        chosen = {"use": self.use, "dtype": self.dtype, "head_size": self.head_size}
        if self.use != "merge":
            chosen |= {"kv": self.kv, "token_scales": self.token_scales}
        if self.use in ("prefill", "decode"):
            chosen |= {"engine": self.engine, "variant": self.variant, "group": self.group,
                       "block_size": self.block_size, "softcap": self.softcap, "alibi": self.alibi}
        return chosen | ({"out": self.out} if self.out != "same" else {})


def padded(size):
    power = 16
    while power < size:
        power *= 2
    return power


def out_element(spec):
    return spec.dtype if spec.out == "same" else spec.out


def cache_element(spec):
    return {"same": spec.dtype, "int8": "i8"}.get(spec.kv, "u8")


ATTENTION_STRIDES = (_strides("q_stride_token", "q_stride_head", "out_stride_token", "out_stride_head")
                     + _loose("lse_stride_token", "lse_stride_head", "block_table_stride"))
CACHE_STRIDES = _strides("k_stride_block", "k_stride_slot", "k_stride_head",
                         "v_stride_block", "v_stride_slot", "v_stride_head")
SCALE_STRIDES = _loose("ks_stride_block", "ks_stride_slot", "ks_stride_head",
                       "vs_stride_block", "vs_stride_slot", "vs_stride_head")


def arguments(spec):
    """The run-time arguments in the kernel's own order."""
    cache = cache_element(spec)
    if spec.use == "merge":
        return (_pointers(("out", out_element(spec)), ("lse", "fp32"), ("partial_out", "fp32"), ("partial_lse", "fp32"),
                          ("tiles", "i32"))
                + _strides("out_stride_token", "out_stride_head") + _loose("lse_stride_token", "lse_stride_head")
                + _scalars("i32", "num_splits", "write_lse"))
    if spec.use == "write":
        return (_pointers(("key", spec.dtype), ("value", spec.dtype), ("k_cache", cache), ("v_cache", cache),
                          ("slot_mapping", "i64"), ("k_scales", "fp32"), ("v_scales", "fp32"))
                + _strides("key_stride_token", "key_stride_head", "value_stride_token", "value_stride_head")
                + CACHE_STRIDES + SCALE_STRIDES + _scalars("i32", "num_kv_heads", "block_size"))
    if spec.engine == "hopper":
        return (_pointers(("q", spec.dtype))
                + [Argument("k_map", "tensor_map", spec.dtype), Argument("v_map", "tensor_map", spec.dtype)]
                + _pointers(("out", spec.dtype), ("lse", "fp32"), ("tiles", "i32"),
                            ("key_low", "i32"), ("key_high", "i32"), ("block_table", "i32"), ("sinks", "fp32"),
                            ("alibi_slopes", "fp32"))
                + _scalars("f32", "softmax_scale", "softcap") + ATTENTION_STRIDES
                + _scalars("i32", "write_lse", "has_sinks", "num_tiles", "num_kv_heads", "tiles_per_unit"))
    return (_pointers(("q", spec.dtype), ("k_cache", cache), ("v_cache", cache), ("out", out_element(spec)), ("lse", "fp32"),
                      ("partial_out", "fp32"), ("partial_lse", "fp32"), ("tiles", "i32"),
                      ("key_low", "i32"), ("key_high", "i32"), ("block_table", "i32"), ("sinks", "fp32"),
                      ("alibi_slopes", "fp32"), ("k_scales", "fp32"), ("v_scales", "fp32"))
            + _scalars("f32", "softmax_scale", "softcap") + ATTENTION_STRIDES + CACHE_STRIDES + SCALE_STRIDES
            + _scalars("i32", "num_splits", "write_lse", "has_sinks"))


def tile(spec, target):
    """Rows, keys, warps and pipeline depth. The numbers come from sweeps on the machine named in README.md; targets
    nobody measured get conservative ones."""
    if spec.tile:
        return spec.tile
    head = padded(spec.head_size)
    if spec.use == "merge":
        return Tile(block_n=max(1, min(64, 8192 // head)), warps=4, stages=1)
    if spec.use == "write":
        return Tile(block_m=max(1, min(8, 2048 // head)), warps=4, stages=1)
    rows = padded(spec.group)
    if spec.engine == "hopper":
        return Tile(block_m=128 if head <= 256 else 64, block_n={64: 128, 128: 128, 256: 64, 512: 32}[max(64, head)],
                    warps=4, stages=2)
    if spec.dtype == "fp32":
        return Tile(block_m=max(rows, 16), block_n=32 if head <= 256 else 16, warps=4, stages=1)
    hopper = target in ("sm_90", "sm_100")
    if spec.use == "decode":
        if not hopper:
            return Tile(block_m=rows, block_n=32 if head <= 256 else 16, warps=4, stages=2)
        if spec.kv != "same":
            block_n, warps, stages = {128: (64, 2, 3), 256: (64, 4, 4), 512: (64, 4, 2)}[max(128, head)]
        else:
            block_n, warps, stages = {64: (64, 2, 3), 128: (64, 2, 2), 256: (64, 4, 2), 512: (32, 4, 3)}[max(64, head)]
        return Tile(block_m=rows, block_n=block_n, warps=warps if rows == 16 else 4, stages=stages)
    if head <= 128:
        return Tile(block_m=max(rows, 128), block_n=64, warps=8, stages=3 if hopper else 2,
                    phased=True)
    if head <= 256:
        return Tile(block_m=max(rows, 128 if hopper else 64), block_n=64 if hopper else 32,
                    warps=8 if hopper else 4, stages=2, phased=True)
    return Tile(block_m=max(rows, 64 if hopper else 32), block_n=32 if hopper else 16, warps=8 if hopper else 4,
                stages=2, phased=True)


def constants(spec, target):
    shape = tile(spec, target)
    head = padded(spec.head_size)
    backend = TARGETS[target][0]
    if spec.use == "merge":
        return {"HEAD_SIZE": spec.head_size, "HEAD_PADDED": head, "SPLITS": shape.block_n, "SIGNALS": signals(target)}
    if spec.use == "write":
        return {"KV": spec.kv, "TOKEN_SCALES": spec.token_scales, "HEAD_SIZE": spec.head_size, "HEAD_PADDED": head,
                "HEADS": shape.block_m}
    chosen = {"GENERAL": spec.variant == "general", "SOFTCAP": spec.softcap, "ALIBI": spec.alibi,
              "GROUP": spec.group, "HEAD_SIZE": spec.head_size, "BLOCK_SIZE": spec.block_size,
              "BLOCK_M": shape.block_m, "BLOCK_N": shape.block_n}
    if spec.engine == "hopper":
        return chosen | {"STAGES": shape.stages, "HEAD_PADDED": max(64, head)}
    words = spec.use == "decode" and spec.kv != "same" and spec.dtype != "fp32" and backend == "cuda"
    return chosen | {"SPLIT": spec.use == "decode", "PHASED": shape.phased, "KV": spec.kv,
                     "TOKEN_SCALES": spec.token_scales, "HEAD_PADDED": head,
                     "NATIVE_FP8": target in ("sm_90", "sm_100"),
                     "WORDS": words,
                     "HALF": words and not spec.token_scales,
                     "SIGNALS": spec.use == "decode" and signals(target),
                     "PRECISION": "ieee" if spec.dtype != "fp32" or backend == "hip" else "tf32x3"}


def signals(target):
    """Whether a decode launch lets its merge launch start early (programmatic dependent launch)."""
    return target in ("sm_90", "sm_100")


def grid(spec, target):
    """How the launcher makes the grid of what it knows; README.md says what the words mean."""
    shape = tile(spec, target)
    if spec.use == "merge":
        return {"x": "tiles", "y": "query_heads", "z": "tile_tokens"}
    if spec.use == "write":
        return {"x": "tokens", "y": f"kv_heads/{shape.block_m}", "z": "1"}
    if spec.engine == "hopper":
        return {"x": "programs", "y": "1", "z": "1"}
    return {"x": "tiles", "y": "kv_heads", "z": "splits" if spec.use == "decode" else "1"}


def expand(entry):
    """A profile entry with lists stands for their product."""
    entry = dict(entry)
    shape = entry.pop("tile", None)
    if isinstance(shape, dict):
        shapes = [Tile(**dict(zip(shape, values))) for values in
                  itertools.product(*[v if isinstance(v, list) else [v] for v in shape.values()])]
    else:
        shapes = [None]
    names = list(entry)
    for values in itertools.product(*[v if isinstance(v, list) else [v] for v in entry.values()]):
        for one in shapes:
            yield Specialisation(**dict(zip(names, values)), tile=one)


def specialisations(profile):
    """Every specialisation of a profile, once, in a stable order."""
    found = {}
    for entry in profile["specialisations"]:
        for spec in expand(entry):
            if spec.engine == "hopper" and not hopper_runs(spec):
                continue
            found.setdefault(spec.key, spec)
    return list(found.values())


def hopper_runs(spec):
    """Power-of-two blocks of at least 16 slots, 16-bit numbers, no quantised cache."""
    return (spec.use == "prefill" and spec.dtype != "fp32" and spec.kv == "same" and spec.block_size >= 16
            and spec.block_size & (spec.block_size - 1) == 0 and spec.group <= 64)


def applies(spec, target):
    return spec.engine == "portable" or target == "sm_90"


def describe(spec):
    plain = dataclasses.asdict(spec)
    plain["tile"] = dataclasses.asdict(spec.tile) if spec.tile else None
    return plain
