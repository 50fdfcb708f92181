#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that the public address stands in one file: with one there, every place shows it; with none, no place does.

Usage: address_test.py BUILD_DIR [unittest's arguments]; the programs there have to say what this tree's ADDRESS says.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path("build/host-release")
RECIPE = "spack/spack_repo/fourfold/packages/fourfold/package.py"
FILES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", RECIPE)
ADDRESS = "https://one.example/of/this/test"


def reported(root):
    """What CMake has the programs say of a bug of ours."""
    script = f'include({root}/cmake/Address.cmake)\nmessage(STATUS "${{FOURFOLD_REPORT_IT}}")\n'
    path = root / "report.cmake"
    path.write_text(script, encoding="utf-8")
    said = subprocess.run(["cmake", "-P", path], capture_output=True, text=True, check=True).stdout
    return said.removeprefix("-- ").strip()


class Address(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name in (*FILES, "ADDRESS", "scripts/address", "cmake/Address.cmake"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)

    def script(self, *words):
        return subprocess.run([self.root / "scripts/address", *words], capture_output=True, text=True, check=False)

    def set_address(self, address):
        (self.root / "ADDRESS").write_text(f"# a comment\n{address}\n", encoding="utf-8")

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def test_this_tree_shows_what_it_says(self):
        self.assertEqual(self.script("--check").stdout, "")
        self.assertEqual(self.script("--check").returncode, 0)

    def test_an_address_is_shown_everywhere(self):
        self.set_address(ADDRESS)
        self.assertEqual(self.script("--check").returncode, 1)
        self.assertEqual(self.script().returncode, 0)
        self.assertEqual(self.script("--check").returncode, 0)
        for name in FILES:
            self.assertIn(ADDRESS, self.text(name), name)
        self.assertIn(f"git clone {ADDRESS}.git", self.text("README.md"))
        for line in (f'    homepage = "{ADDRESS}"', f'    git = "{ADDRESS}.git"', '    version("main", branch="main")'):
            self.assertIn("\n" + line + "\n", self.text(RECIPE))
        compile(self.text(RECIPE), RECIPE, "exec")
        self.assertEqual(reported(self.root), f"please report it at {ADDRESS}/issues")

    def test_another_address_takes_its_place_and_none_leaves_no_line(self):
        self.set_address("")
        self.script()
        bare = {name: self.text(name) for name in FILES}
        self.set_address(ADDRESS)
        self.script()
        self.set_address("https://another.example/fourfold")
        self.script()
        for name in FILES:
            self.assertNotIn("one.example", self.text(name), name)
            self.assertIn("another.example", self.text(name), name)
        self.set_address("")
        self.assertEqual(self.script().returncode, 0)
        self.assertEqual({name: self.text(name) for name in FILES}, bare)
        for name, text in bare.items():
            # What other projects have as an address may stay.
            self.assertIsNone(re.search(r"homepage|\bgit = |git clone|repository-code|/issues", text), name)
        self.assertEqual(reported(self.root), "please report it")

    def test_what_is_no_address_is_refused(self):
        for wrong in ("forge.example/fourfold", "https://forge.example", ADDRESS + "/", ADDRESS + '"',
                      ADDRESS + "\n" + ADDRESS):
            self.set_address(wrong)
            self.assertNotEqual(self.script().returncode, 0, wrong)
            self.assertIn("is no address", self.script().stderr)

    def test_a_place_that_is_gone_is_missed(self):
        text = self.text("README.md")
        (self.root / "README.md").write_text(text.replace("ADDRESS:home", "home"), encoding="utf-8")
        self.assertEqual(self.script("--check").returncode, 1)
        self.assertIn("README.md: has the places", self.script("--check").stdout)

    def test_programs_say_it(self):
        command = [BUILD / "bin/fourfold", "help", "version"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertIn("a bug of fourfold; " + reported_here(), " ".join(said.split()))
        for name in ("command_line.cpp", "run.cpp"):  # where the message of code 70 is made
            self.assertNotIn("please report", (ROOT / "apps/program" / name).read_text(encoding="utf-8"), name)


def reported_here():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "cmake").mkdir()
        for name in ("ADDRESS", "cmake/Address.cmake"):
            shutil.copy2(ROOT / name, pathlib.Path(folder) / name)
        return reported(pathlib.Path(folder))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = pathlib.Path(sys.argv.pop(1))
    unittest.main()
