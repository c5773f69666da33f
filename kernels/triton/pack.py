"""Loads a CUDA kernel pack through the driver and launches from it: the way a runtime without Python does it, in
Python. torch is used for memory and streams only; no Triton is needed here."""

from __future__ import annotations

import ctypes
import hashlib
import json
from pathlib import Path

import torch

MAX_DYNAMIC_SHARED = 8
DATA_TYPES = {"u8": 0, "fp16": 6, "fp32": 7, "bf16": 9}
L2_PROMOTION_256 = 3
SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}


class LaunchConfig(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("num_attributes", ctypes.c_uint32)]


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16)]


PROGRAMMATIC_STREAM_SERIALIZATION = 6


class Driver:
    """The few driver calls a pack needs, each checked."""

    def __init__(self):
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.library = ctypes.CDLL("libcuda.so.1")
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), torch.cuda.current_device())
        self.device = device.value

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {text.value.decode() if text.value else status}")


def tensor_map(driver, base, element, shape, byte_strides, box, swizzle, element_bytes):
    """A CUtensorMap over [block, slot, head, dim]; the driver wants the innermost dimension first."""
    rank = len(shape)
    room = (ctypes.c_uint8 * 192)()
    start = (ctypes.addressof(room) + 63) // 64 * 64
    dims = (ctypes.c_uint64 * rank)(*reversed(shape))
    steps = (ctypes.c_uint64 * (rank - 1))(*reversed(byte_strides))
    boxes = (ctypes.c_uint32 * rank)(*reversed(box))
    ones = (ctypes.c_uint32 * rank)(*[1] * rank)
    driver.call("cuTensorMapEncodeTiled", ctypes.c_void_p(start), DATA_TYPES[element], rank, ctypes.c_void_p(base),
                dims, steps, boxes, ones, 0, swizzle, L2_PROMOTION_256, 0)
    return room, start


class Kernel:
    def __init__(self, driver, entry, directory):
        binary = (directory / entry["file"]).read_bytes()
        if hashlib.sha256(binary).hexdigest() != entry["sha256"]:
            raise RuntimeError(f"{entry['file']} is not what the manifest describes")
        self.driver, self.entry = driver, entry
        library, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        self.binary = ctypes.create_string_buffer(binary, len(binary))
        driver.call("cuLibraryLoadData", ctypes.byref(library), self.binary, None, None, 0, None, None, 0)
        driver.call("cuLibraryGetKernel", ctypes.byref(self.handle), library, entry["symbol"].encode())
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        for index, argument in enumerate(entry["arguments"]):
            driver.call("cuKernelGetParamInfo", self.handle, ctypes.c_size_t(index), ctypes.byref(offset),
                        ctypes.byref(size))
            if (offset.value, size.value) != (argument["offset"], argument["size"]):
                raise RuntimeError(f"{entry['key']}: {argument['name']} is at {offset.value} with {size.value} bytes, "
                                   f"the manifest says {argument['offset']} and {argument['size']}")
        if entry["shared_memory"] > 48 * 1024:
            driver.call("cuKernelSetAttribute", MAX_DYNAMIC_SHARED, entry["shared_memory"], self.handle,
                        driver.device)

    def bind(self, arguments, grid):
        """A launch with everything marshalled, ready to be repeated. `arguments` maps names to tensors, numbers or,
        for tensor maps, (tensor, [block, slot, head, dim] shape, strides in elements)."""
        kept, pointers, expected = [], [], None
        for argument in self.entry["arguments"]:
            name, kind = argument["name"], argument["kind"]
            if kind == "tensor_map":
                tensor, shape, steps = arguments[name]
                width = argument["element_bytes"]
                room, start = tensor_map(self.driver, tensor.data_ptr(), argument["element"], shape,
                                         [step * width for step in steps[:-1]], argument["box"],
                                         argument["swizzle"], width)
                expected = {f"{name}_shape_{i}": n for i, n in enumerate(shape)}
                expected |= {f"{name}_stride_{i}": n for i, n in enumerate(steps)}
                kept += [room, tensor]
                pointers.append(start)
                continue
            if name in ("global_scratch", "profile_scratch"):
                value = ctypes.c_void_p(0)
            elif expected and name in expected:
                value = SCALARS[argument["element"]](expected[name])
            elif kind == "pointer":
                tensor = arguments[name]
                kept.append(tensor)
                value = ctypes.c_void_p(tensor.data_ptr())
            else:
                value = SCALARS[argument["element"]](arguments[name])
            kept.append(value)
            pointers.append(ctypes.addressof(value))
        return Launch(self, kept, (ctypes.c_void_p * len(pointers))(*pointers), grid)


class Launch:
    def __init__(self, kernel, kept, pointers, grid):
        self.kernel, self.kept, self.pointers = kernel, kept, pointers
        threads = kernel.entry["num_warps"] * kernel.entry["warp_size"]
        self.config = LaunchConfig((ctypes.c_uint32 * 3)(*grid), (ctypes.c_uint32 * 3)(threads, 1, 1),
                                   kernel.entry["shared_memory"], None, None, 0)
        if kernel.entry.get("programmatic_launch"):
            self.attribute = LaunchAttribute(PROGRAMMATIC_STREAM_SERIALIZATION)
            self.attribute.value[0] = 1
            self.config.attributes, self.config.num_attributes = ctypes.addressof(self.attribute), 1
        self.function = kernel.driver.library.cuLaunchKernelEx

    def __call__(self):
        self.config.stream = torch.cuda.current_stream().cuda_stream
        status = self.function(ctypes.byref(self.config), self.kernel.handle, self.pointers, None)
        if status:
            raise RuntimeError(f"{self.kernel.entry['key']}: launch failed with {status}")


class Pack:
    def __init__(self, directory, driver=None):
        self.directory = Path(directory)
        self.driver = driver or Driver()
        manifest = json.loads((self.directory / "manifest.json").read_text())
        if manifest["format"] != 1:
            raise RuntimeError(f"manifest format {manifest['format']}, this loader reads 1")
        self.entries = {entry["key"]: entry for entry in manifest["kernels"]}
        self.loaded = {}

    def __getitem__(self, key):
        if key not in self.loaded:
            self.loaded[key] = Kernel(self.driver, self.entries[key], self.directory)
        return self.loaded[key]

    def __contains__(self, key):
        return key in self.entries
