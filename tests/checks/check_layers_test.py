"""tools/check_layers finds each kind of fault: every test builds a small tree with one in it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers"
TABLE = """\
| folder | what lives there | may include |
|---|---|---|
| `tidemark/base` | text | – |
| `tidemark/types` | shapes | base |
| `tidemark/emit/{llvm,tile}` | kernels | types, base |
| `tidemark/run` | programs | everything above |
| `tidemark/api` | forwarding headers | everything above |
| `tidemark/tidemark.h` | all | everything above |
"""


class CheckLayers(unittest.TestCase):
    def check(self, files, table=TABLE):
        """The exit code and the output for a tree of these files."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"docs/tour.md": table, **files}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

    def test_passes_a_sound_tree(self):
        code, text = self.check({
            "tidemark/base/a.h": "#include <string>\n",
            "tidemark/types/b.h": '#include "tidemark/base/a.h"\n',
            "tidemark/types/deep/c.h": '#include "tidemark/types/b.h"\n',
            "tidemark/emit/llvm/d.cc": '#include <llvm/IR/Module.h>\n#include "tidemark/types/b.h"\n',
            "tidemark/api/e.h": '// Public.\n#pragma once\n\n#include "tidemark/types/b.h"\n',
            "tidemark/tidemark.h": '#include "tidemark/api/e.h"\n',
        })
        self.assertEqual((code, text), (0, "6 files, 7 rows: the layers hold\n"))

    def test_finds_an_include_that_goes_up(self):
        code, text = self.check({"tidemark/base/a.h": '#include "tidemark/types/b.h"\n', "tidemark/types/b.h": ""})
        self.assertEqual((code, text), (1, "tidemark/base/a.h:1: tidemark/base may not include tidemark/types/b.h\n"))

    def test_finds_an_include_of_a_sibling(self):
        code, text = self.check({"tidemark/emit/tile/a.h": '#include <tidemark/emit/llvm/b.h>\n', "tidemark/emit/llvm/b.h": ""})
        self.assertEqual(code, 1)
        self.assertIn("tidemark/emit/tile may not include tidemark/emit/llvm/b.h", text)

    def test_finds_a_question_to_the_cpu_past_the_backend(self):
        table = TABLE.replace("| `tidemark/run`", "| `tidemark/device` | threads | base |\n| `tidemark/compile` | tasks | device, base |\n| `tidemark/run`")
        header, include = "tidemark/device/threads.h", '#include "tidemark/device/threads.h"\n'
        code, text = self.check({header: "", "tidemark/compile/a.cc": include, "tidemark/compile/cpu/b.cc": include}, table)
        self.assertEqual((code, text), (1, "tidemark/compile/a.cc:1: tidemark/device/threads.h is about the CPU: "
                                           "ask the backend (tidemark/compile/backend.h)\n"))

    def test_finds_a_missing_header(self):
        self.assertIn("tidemark/base/gone.h does not exist", self.check({"tidemark/base/a.h": '#include "tidemark/base/gone.h"\n'})[1])

    def test_finds_an_include_that_is_no_path(self):
        self.assertIn("includes read as paths", self.check({"tidemark/base/a.h": '#include "b.h"\n'})[1])

    def test_finds_a_folder_without_a_row(self):
        self.assertIn("tidemark/new/a.h: its folder has no row", self.check({"tidemark/new/a.h": ""})[1])

    def test_finds_a_row_that_names_one_below(self):
        table = TABLE.replace("| text | – |", "| text | types |")
        self.assertIn("tidemark/base may include `types`, but no row above", self.check({}, table)[1])

    def test_finds_headers_that_include_each_other(self):
        code, text = self.check({"tidemark/base/a.h": '#include "tidemark/base/b.h"\n', "tidemark/base/b.h": '#include "tidemark/base/a.h"\n'})
        self.assertEqual((code, text), (1, "tidemark/base/a: is in a cycle of modules that include each other\n"
                                           "tidemark/base/b: is in a cycle of modules that include each other\n"))

    def test_finds_a_cycle_through_a_source(self):
        files = {
            "tidemark/base/a.h": "",
            "tidemark/base/a.cc": '#include "tidemark/base/a.h"\n#include "tidemark/base/c.h"\n',
            "tidemark/base/b.h": '#include "tidemark/base/a.h"\n',
            "tidemark/base/c.h": '#include "tidemark/base/b.h"\n',
            "tidemark/base/above.h": '#include "tidemark/base/c.h"\n',
        }
        code, text = self.check(files)
        self.assertEqual(code, 1)
        self.assertEqual([line.split(":")[0] for line in text.splitlines()], ["tidemark/base/a", "tidemark/base/b", "tidemark/base/c"])

    def test_finds_a_folder_with_too_many_files(self):
        files = {f"tidemark/base/{n}.h": "" for n in range(41)}
        self.assertEqual(self.check(files), (1, "tidemark/base: has 41 files, 40 at most\n"))

    def test_finds_code_in_a_public_header(self):
        code, text = self.check({"tidemark/api/a.h": "int f();\n", "tidemark/tidemark.h": '#include "tidemark/api/a.h"\n'})
        self.assertEqual((code, text), (1, "tidemark/api/a.h: headers in tidemark/api include others and hold nothing else\n"))

    def test_finds_a_public_header_that_users_do_not_get(self):
        self.assertEqual(self.check({"tidemark/api/a.h": ""}), (1, "tidemark/api/a.h: tidemark/tidemark.h does not include it\n"))

    def test_finds_llvm_outside_its_folder_through_a_header(self):
        code, text = self.check({"tidemark/emit/llvm/a.h": "#include <llvm/IR/Module.h>\n", "tidemark/run/b.cc": '#include "tidemark/emit/llvm/a.h"\n'})
        self.assertEqual((code, text), (1, "tidemark/run/b.cc: LLVM's headers are for tidemark/emit/llvm alone\n"))

    def test_finds_a_fourth_unit_with_llvm(self):
        files = {f"tidemark/emit/llvm/{n}.cc": "#include <llvm/IR/Module.h>\n" for n in range(4)}
        self.assertIn("LLVM's headers reach 4 translation units, 3 at most", self.check(files)[1])

    def test_finds_a_file_that_the_tour_invents(self):
        self.assertIn("names tidemark/base/gone.h", self.check({}, TABLE + "Read `tidemark/base/gone.h`.\n")[1])

    def test_finds_a_file_that_a_table_of_the_tour_invents(self):
        self.assertIn("names tidemark/base/gone.h", self.check({}, TABLE + "\n| `tidemark/base/gone.h` | text |\n")[1])

    def test_finds_a_broken_link(self):
        self.assertIn("README.md: links to docs/gone.md", self.check({"README.md": "[on](docs/gone.md)\n"})[1])

    def test_takes_no_lambda_for_a_link(self):
        page = "```cpp\nauto f = [](Scalar x) { return x; };\n```\nand `[](Term y)`\n"
        self.assertEqual(self.check({"docs/page.md": page})[0], 0)

    def test_wants_a_table(self):
        self.assertIn("there is no layer table", self.check({}, "Nothing here.\n")[1])


if __name__ == "__main__":
    unittest.main()
