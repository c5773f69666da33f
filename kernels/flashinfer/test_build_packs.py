"""What the builder plans and what it keeps, with compilers that only count. Needs nothing but Python."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import build_packs
import build_profile
import plan

SCHEMA = {"type_schema": json.dumps({"type": "ffi.Function", "named_args": {
    "return": [{"type": "None"}],
    "params": [{"type": "DLTensor*"}, {"type": "Optional", "args": [{"type": "ffi.Tensor"}]}]}})}


class CountingTools:
    """Stands for the compilers: an object file is a copy of its source, a library its objects one after another."""

    def __init__(self, folder, broken=()):
        self.folder = folder
        self.broken = set(broken)
        self.versions = build_packs.pinned()
        self.compiled = []

    def generate(self, module):
        names = {"page": ["page.cu", "binding.cu"], "cascade": ["cascade.cu"]}.get(module.kind) or [
            f"batch_prefill_{call}_kernel_mask_{mode}.cu" for call in plan.CALLS for mode in range(4)] + ["binding.cu"]
        uri = "-".join([module.kind] + [str(value) for _, value in module.fields if isinstance(value, int)])
        sources = []
        for name in names:
            source = self.folder / "generated" / uri / name
            source.parent.mkdir(parents=True, exist_ok=True)
            if not source.exists():
                source.write_text(f"{uri} {name}")
            sources.append(str(source))
        return {"uri": uri, "sources": sources, "nvcc": ["-O3"], "cxx": ["-O3"]}

    def inputs(self, unit):
        return unit.source.read_text() + " ".join(unit.flags)

    def compile(self, unit, result):
        if unit.source.name in self.broken:
            raise build_packs.Failed("no such instruction")
        self.compiled.append(unit.name)
        result.write_text(unit.source.read_text())

    def link(self, objects, result):
        result.write_text("\n".join(file.read_text() for file in objects))

    def describe(self, library):
        return {"run": SCHEMA}

    def runtime(self, file):
        library = self.folder / "wheels" / file
        library.parent.mkdir(exist_ok=True)
        library.write_text(file)
        return library


class Packs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.said = []

    def build(self, entries, tools=None, keep_others=False):
        tools = tools or CountingTools(self.folder)
        modules = plan.modules_of({"name": "a test", "modules": entries})
        build = build_packs.Build(self.folder, "sm_90a", tools, 2, self.said.append)
        failed = build.build([(module, tools.generate(module)) for module in modules], keep_others)
        return failed, tools

    def manifest(self):
        return json.loads((self.folder / "sm_90a" / "manifest.json").read_text())

    def files(self):
        return {path.name for path in (self.folder / "sm_90a").iterdir()}


class Profiles(unittest.TestCase):
    def test_lists_stand_for_their_product_and_keep_their_order(self):
        modules = plan.modules_of({"modules": [
            {"kind": "decode", "dtype": "bf16", "head_size": [256, 512], "window": [False, True]}]})
        self.assertEqual([(module.head_size, module.window) for module in modules],
                         [(256, False), (256, True), (512, False), (512, True)])

    def test_a_module_that_is_asked_for_twice_is_built_once(self):
        self.assertEqual(len(plan.modules_of({"modules": [{"kind": "page"}, {"kind": "page"}]})), 1)

    def test_unknown_kinds_fields_and_values_are_refused_by_name(self):
        for entry, named in (({"kind": "mla"}, "'mla'"), ({"kind": "page", "dtype": "bf16"}, "'dtype'"),
                             ({"kind": "decode", "dtype": "bf16"}, "head_size"),
                             ({"kind": "decode", "dtype": "fp8", "head_size": 256}, "'fp8'"),
                             ({"kind": "decode", "dtype": "bf16", "head_size": True}, "True"),
                             ({"kind": "xqa", "dtype": "bf16", "head_size": 128, "group": 4, "page_size": 48}, "48"),
                             ({"kind": "prefill", "engine": "fa3", "dtype": "bf16", "head_size": 512}, "512"),
                             ({"kind": "prefill", "engine": "fa2", "dtype": "bf16", "head_size": 256,
                               "masks": ["none", "tree"]}, "'tree'")):
            with self.assertRaisesRegex(ValueError, named):
                plan.modules_of({"modules": [entry]})

    def test_gemma_has_both_head_sizes_and_the_kernels_that_are_measured(self):
        modules = plan.modules_of(json.loads(build_packs.profile_file(Path("gemma-4-31b")).read_text()))
        found = {(module.kind, *[value for name, value in module.fields if name in ("engine", "head_size", "window")])
                 for module in modules}
        for wanted in (("page",), ("cascade",), ("decode", 256, False), ("decode", 512, False), ("xqa", 128, False),
                       *[("prefill", "fa2", size, window) for size in (256, 512) for window in (False, True)],
                       ("prefill", "fa3", 128, False), ("prefill", "fa3", 256, False)):
            self.assertIn(wanted, found)

    def test_every_profile_can_be_planned(self):
        for file in sorted((build_packs.HERE / "profiles").glob("*.json")):
            profile = json.loads(file.read_text())
            self.assertEqual(profile["name"], file.stem)
            self.assertIn(profile["target"], plan.TARGETS)
            self.assertTrue(plan.modules_of(profile))


class Manifests(Packs):
    PREFILL = {"kind": "prefill", "engine": "fa2", "dtype": "bf16", "head_size": 256, "masks": ["causal", "none"],
               "calls": ["paged"]}

    def test_masks_and_calls_that_are_not_asked_for_are_neither_compiled_nor_listed(self):
        _, tools = self.build([self.PREFILL])
        names = sorted(name.split("/")[1] for name in tools.compiled)
        self.assertEqual(names, ["batch_prefill_paged_kernel_mask_0.cu", "batch_prefill_paged_kernel_mask_1.cu",
                                 "binding.cu"])
        self.assertEqual(self.manifest()["modules"][0]["masks"], {"paged_run": [0, 1], "ragged_run": []})

    def test_an_entry_tells_what_the_module_is_and_where_it_is_from(self):
        self.build([self.PREFILL])
        entry = self.manifest()["modules"][0]
        told = {name: entry[name] for name in ("kind", "engine", "dtype_q", "dtype_kv", "dtype_o", "dtype_idx",
                                               "head_dim_qk", "head_dim_vo", "window", "softcap", "kv_strides",
                                               "package", "version")}
        self.assertEqual(told, {"kind": "prefill", "engine": "fa2", "dtype_q": "bf16", "dtype_kv": "bf16",
                                "dtype_o": "bf16", "dtype_idx": "i32", "head_dim_qk": 256, "head_dim_vo": 256,
                                "window": False, "softcap": False, "kv_strides": "equal",
                                "package": "flashinfer-python",
                                "version": build_packs.pinned()["flashinfer-python"]})
        self.assertEqual(entry["sha256"], build_packs.digest(self.folder / "sm_90a" / entry["file"]))
        self.assertEqual([(one["name"], one["signature"]) for one in entry["exports"]],
                         [("run", "(DLTensor*, Optional<ffi.Tensor>) -> None")])
        self.assertEqual(json.loads(entry["exports"][0]["metadata"]), SCHEMA)

    def test_the_libraries_that_modules_need_lie_beside_them(self):
        self.build([{"kind": "page"}])
        for library in self.manifest()["runtime"]:
            self.assertEqual(library["sha256"], build_packs.digest(self.folder / "sm_90a" / library["file"]))
        self.assertEqual(self.files(), {"page.so", "libcudart.so.13", "libtvm_ffi.so", "manifest.json"})


class Resuming(Packs):
    def test_what_is_unchanged_is_not_compiled_again(self):
        self.build([{"kind": "page"}, {"kind": "cascade"}])
        before = self.manifest()
        failed, tools = self.build([{"kind": "page"}, {"kind": "cascade"}])
        self.assertEqual((failed, tools.compiled), ([], []))
        self.assertEqual(self.manifest(), before)

    def test_one_changed_source_is_compiled_and_its_module_linked(self):
        self.build([{"kind": "page"}, {"kind": "cascade"}])
        before = {entry["uri"]: entry["sha256"] for entry in self.manifest()["modules"]}
        (self.folder / "generated" / "page" / "binding.cu").write_text("other")
        _, tools = self.build([{"kind": "page"}, {"kind": "cascade"}])
        after = {entry["uri"]: entry["sha256"] for entry in self.manifest()["modules"]}
        self.assertEqual(tools.compiled, ["page/binding.cu"])
        self.assertNotEqual(after["page"], before["page"])
        self.assertEqual(after["cascade"], before["cascade"])

    def test_a_build_that_failed_names_the_unit_and_goes_on_from_there(self):
        failed, first = self.build([{"kind": "page"}, {"kind": "cascade"}],
                                   CountingTools(self.folder, broken=["binding.cu"]))
        self.assertEqual(failed, ["page/binding.cu"])
        self.assertEqual([entry["uri"] for entry in self.manifest()["modules"]], ["cascade"])
        self.assertTrue(any("binding.cu: FAILED no such instruction" in line for line in self.said))
        failed, second = self.build([{"kind": "page"}, {"kind": "cascade"}])
        self.assertEqual((failed, second.compiled), ([], ["page/binding.cu"]))
        self.assertEqual([entry["uri"] for entry in self.manifest()["modules"]], ["cascade", "page"])

    def test_a_library_that_was_changed_is_linked_again_without_compiling(self):
        self.build([{"kind": "page"}])
        library = self.folder / "sm_90a" / "page.so"
        whole = library.read_text()
        library.write_text("cut off")
        _, tools = self.build([{"kind": "page"}])
        self.assertEqual(tools.compiled, [])
        self.assertEqual(library.read_text(), whole)

    def test_modules_that_are_not_asked_for_go_unless_they_are_to_stay(self):
        self.build([{"kind": "page"}, {"kind": "cascade"}])
        self.build([{"kind": "page"}], keep_others=True)
        self.assertEqual([entry["uri"] for entry in self.manifest()["modules"]], ["cascade", "page"])
        self.build([{"kind": "page"}])
        self.assertEqual([entry["uri"] for entry in self.manifest()["modules"]], ["page"])
        self.assertNotIn("cascade.so", self.files())

    def test_each_unit_is_told_with_its_number_and_its_seconds(self):
        self.build([{"kind": "page"}])
        told = [line for line in self.said if line.startswith("[")]
        self.assertEqual([line.split("]")[0] for line in told], ["[1/2", "[2/2"])
        for line in told:
            self.assertRegex(line, r"^\[\d/2\] page/\w+\.cu: \d+ s$")


class ByName(unittest.TestCase):
    def commands(self, *arguments):
        return [[Path(word).name if "/" in word else word for word in command]
                for command in build_profile.commands(build_profile.parsed(["/packs", *arguments]))]

    def test_without_a_name_the_packs_are_those_of_triton(self):
        self.assertEqual(self.commands("--target", "sm_80", "--venv", "/packs/.venv"), [
            ["build_packs.py", "packs", "--profile", "llama-3.1-8b.json", "--profile", "gemma-4-31b.json", "--target",
             "sm_80", "--venv", ".venv", "--jobs", "1", "--only", "."]])

    def test_a_profile_of_both_families_is_built_by_both(self):
        self.assertEqual(self.commands("--profile", "gemma-4-31b", "--target", "sm_90", "--jobs", "2"), [
            ["build_packs.py", "packs", "--profile", "gemma-4-31b.json", "--target", "sm_90", "--jobs", "2", "--only",
             "."],
            ["build_packs.py", "flashinfer", "--profile", "gemma-4-31b", "--jobs", "2", "--only", "."]])

    def test_a_profile_of_one_family_is_built_by_it_alone(self):
        self.assertEqual([command[1] for command in self.commands("--profile", "smoke")], ["flashinfer"])
        self.assertEqual([command[1] for command in self.commands("--profile", "llama-3.1-8b")], ["packs"])

    def test_an_unknown_profile_is_refused_with_the_names_of_all(self):
        with self.assertRaisesRegex(ValueError, "'gemma'.*gemma-4-31b.*smoke"):
            self.commands("--profile", "gemma")


if __name__ == "__main__":
    unittest.main()
