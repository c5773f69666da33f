"""What a profile asks for: modules, each a record of plain values. Imports nothing that has to be installed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

TARGETS = {"sm_90a": "9.0a"}
DTYPES = ("bf16", "fp16")
MASKS = {"none": 0, "causal": 1, "custom": 2, "items": 3}
CALLS = ("paged", "ragged")

# Fields of a module by its kind: those without a default have to be given.
NEEDED = object()
FIELDS = {
    "page": {},
    "cascade": {},
    "decode": {"dtype": NEEDED, "head_size": NEEDED, "window": False, "softcap": False},
    "prefill": {"engine": NEEDED, "dtype": NEEDED, "head_size": NEEDED, "window": False, "softcap": False,
                "masks": tuple(MASKS), "calls": CALLS},
    "xqa": {"dtype": NEEDED, "head_size": NEEDED, "page_size": NEEDED, "group": NEEDED, "window": False},
}
# These are lists by nature; a list in any other field stands for one module for each of its values.
LISTS = {"masks": tuple(MASKS), "calls": CALLS}
ALLOWED = {
    "engine": ("fa2", "fa3"),
    "dtype": DTYPES,
    "window": (False, True),
    "softcap": (False, True),
    "page_size": (16, 32, 64, 128),
}
HEAD_SIZES = {("prefill", "fa3"): (64, 128, 256)}


@dataclass(frozen=True)
class Module:
    """One library. `fields` are those of its kind, in their order, as pairs."""

    kind: str
    fields: tuple

    def __getattr__(self, name):
        for field, value in object.__getattribute__(self, "fields"):
            if field == name:
                return value
        raise AttributeError(name)

    def describe(self):
        return {"kind": self.kind, **{name: list(value) if isinstance(value, tuple) else value
                                      for name, value in self.fields}}

    def masks_linked(self):
        """Mask modes whose kernels are in the library, by the function that reaches them."""
        modes = sorted(MASKS[name] for name in self.masks)
        return {f"{call}_run": modes if call in self.calls else [] for call in CALLS}

    def leaves_out(self, source):
        """Whether a source of this module holds only kernels that the profile does not ask for."""
        if self.kind != "prefill" or "_kernel_mask_" not in source:
            return False
        mode = int(source.rsplit("_mask_", 1)[1].split(".", 1)[0])
        call = "ragged" if "_ragged_" in source else "paged"
        return call not in self.calls or mode not in {MASKS[name] for name in self.masks}


def modules_of(profile):
    """The modules that a profile asks for, in its order, each once."""
    found = {}
    for entry in profile["modules"]:
        for module in product(entry):
            found.setdefault(module, None)
    if not found:
        raise ValueError(f"profile {profile.get('name')}: no modules")
    return list(found)


def product(entry):
    entry = dict(entry)
    kind = entry.pop("kind", None)
    if kind not in FIELDS:
        raise ValueError(f"module kind {kind!r}, wanted one of {', '.join(FIELDS)}")
    unknown = sorted(set(entry) - set(FIELDS[kind]))
    if unknown:
        raise ValueError(f"{kind}: no field {unknown[0]!r}, fields are {', '.join(FIELDS[kind]) or 'none'}")
    choices = []
    for name, default in FIELDS[kind].items():
        value = entry.get(name, default)
        if value is NEEDED:
            raise ValueError(f"{kind}: needs {name}")
        if name in LISTS:
            choices.append([checked_list(kind, name, value)])
        else:
            values = value if isinstance(value, list) else [value]
            choices.append([checked(kind, name, one) for one in values])
    for values in itertools.product(*choices):
        module = Module(kind, tuple(zip(FIELDS[kind], values)))
        check_head_size(module)
        yield module


def checked(kind, name, value):
    allowed = ALLOWED.get(name)
    if allowed is not None and value not in allowed:
        raise ValueError(f"{kind}: {name} {value!r}, wanted one of {', '.join(map(str, allowed))}")
    if allowed is None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError(f"{kind}: {name} {value!r}, wanted a positive number")
    return value


def checked_list(kind, name, values):
    values = [values] if isinstance(values, str) else values
    for value in values:
        if value not in LISTS[name]:
            raise ValueError(f"{kind}: {name} {value!r}, wanted some of {', '.join(LISTS[name])}")
    if not values:
        raise ValueError(f"{kind}: {name} is empty")
    return tuple(one for one in LISTS[name] if one in values)


def check_head_size(module):
    allowed = HEAD_SIZES.get((module.kind, dict(module.fields).get("engine")))
    if allowed and module.head_size not in allowed:
        raise ValueError(f"{module.engine} {module.kind}: head_size {module.head_size}, wanted one of "
                         f"{', '.join(map(str, allowed))}")
