# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""A test that has passed is known in every clone, as long as nothing that its result depends on has changed: tests/unchanged.py over a
project of two programs, built by CMake and Ninja. Usage: unchanged_test.py"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

UNCHANGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unchanged.py")
FILES = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(two LANGUAGES CXX)
enable_testing()
add_library(sum STATIC sum.cpp)
add_executable(first first.cpp)
target_link_libraries(first PRIVATE sum)
target_compile_definitions(first PRIVATE DATA="${PROJECT_SOURCE_DIR}/data")
add_executable(second second.cpp)
add_test(NAME first COMMAND first)
add_test(NAME second COMMAND ${CMAKE_BINARY_DIR}/second)
add_test(NAME whole COMMAND ${CMAKE_COMMAND} -E true ${PROJECT_SOURCE_DIR})
""",
    "CMakePresets.json": "{}",
    "sum.hpp": "int sum(int a, int b);\n",
    "sum.cpp": '#include "sum.hpp"\nint sum(int a, int b) { return a + b; }\n',
    "first.cpp": '#include "sum.hpp"\n#include <fstream>\nint main() { int n = 0; std::ifstream(DATA "/n") >> n; return sum(n, -n); }\n',
    "second.cpp": "int main() { return 0; }\n",
    "data/n": "7\n",
    "notes": "nothing\n",
}


def run(*words, cwd=None):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def unchanged(folder, *definitions):
    """After a build: the tests that are left out."""
    build = os.path.join(folder, "build")
    run("cmake", "-G", "Ninja", "-S", folder, "-B", build, *definitions)
    run("ninja", "-C", build)
    expression = run(sys.executable, UNCHANGED, "select", build).strip()
    return {name for name in ("first", "second", "whole") if expression and re.search(expression, name)}


def test(folder):
    build = os.path.join(folder, "build")
    subprocess.run(["ctest", "--output-junit", "passed.xml"], cwd=build, capture_output=True, check=False)
    run(sys.executable, UNCHANGED, "note", build, os.path.join(build, "passed.xml"))


def expect(found, wanted, why):
    assert found == wanted, f"{why}: {found} left out, not {wanted}"


def main():
    with tempfile.TemporaryDirectory() as work:
        os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
        one, two = os.path.join(work, "one"), os.path.join(work, "elsewhere", "two")
        for name, text in FILES.items():
            write(one, name, text)
        run("git", "init", "-q", one)
        write(one, ".gitignore", "build\n")
        shutil.copytree(one, two)
        expect(unchanged(one), set(), "nothing has run")
        test(one)
        both = {"first", "second"}
        expect(unchanged(one), both, "the same again")
        expect(unchanged(two), both, "another clone")
        # Each of these is put back after.
        changes = [
            ("a source", "second.cpp", FILES["second.cpp"] + "// more\n", {"first"}),
            ("a header", "sum.hpp", FILES["sum.hpp"] + "// more\n", {"second"}),
            ("a library", "sum.cpp", FILES["sum.cpp"] + "// more\n", {"second"}),
            ("data", "data/n", "8\n", {"second"}),
            ("more data", "data/m", "8\n", {"second"}),
            ("the presets, whose environment tests have", "CMakePresets.json", "{ }", set()),
            ("what no test depends on", "notes", "something\n", both),
            ("a test's command", "CMakeLists.txt", FILES["CMakeLists.txt"].replace("COMMAND first", "COMMAND first again"), {"second"}),
        ]
        for why, name, text, wanted in changes:
            write(two, name, text)
            expect(unchanged(two), wanted, why)
            if name in FILES:
                write(two, name, FILES[name])
            else:
                os.unlink(os.path.join(two, name))
            expect(unchanged(two), both, f"{why}, as it was")
        expect(unchanged(two, "-DCMAKE_CXX_FLAGS=-O1"), set(), "another option of the compiler")
        expect(unchanged(two, "-DCMAKE_CXX_FLAGS="), both, "the options of before")
        os.environ["OMP_NUM_THREADS"] = "3"
        expect(unchanged(two), set(), "another environment")
        del os.environ["OMP_NUM_THREADS"]
        # Nothing is known where there is no dpkg-query, nor kept.
        path = os.environ["PATH"]
        os.environ["PATH"] = os.path.join(work, "bin")
        for program in ("cmake", "ninja", "git", "c++", "cc", "as", "ld", "ar", "ranlib", "ctest"):
            write(work, "bin/.made", "")
            os.symlink(shutil.which(program, path=path), os.path.join(work, "bin", program))
        expect(unchanged(two), set(), "without dpkg-query")
        test(two)
        os.environ["PATH"] = path
        # What fails is not kept.
        write(two, "second.cpp", "int main() { return 1; }\n")
        expect(unchanged(two), {"first"}, "before it fails")
        test(two)
        expect(unchanged(two), {"first"}, "after it has failed")
        # Nor what has passed long ago.
        passed = os.path.join(work, "cache", "fourfold", "passed-tests")
        old = time.time() - 8 * 24 * 3600
        for file in os.scandir(passed):
            os.utime(file, (old, old))
        expect(unchanged(one), set(), "eight days later")


main()
