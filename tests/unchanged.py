# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that have passed as they are: of the same sources, compiled by the same commands, on a machine like this one.

usage: unchanged.py select BUILD_DIR    prints a regular expression for `ctest -E`, and how many it leaves out on stderr
       unchanged.py note BUILD_DIR JUNIT_FILE    keeps what has passed since, by `ctest --output-junit`
       unchanged.py explain BUILD_DIR TEST    prints what its result depends on

Only of a compiled test program is it known what its result depends on: all files that it is compiled and linked from, headers of
others too (by content), the commands, folders of this repository that are named in a definition (-D), the test's command and
environment, the CPU, the Debian packages. A test that a script runs, or that reads this repository as a whole, or the build folder,
always runs. So does one whose pass is older than a week. Run between build and test: Ninja knows by then what includes what.
docs/adr/0028-tests-that-have-passed.md says why.
"""

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

WEEK_S = 7 * 24 * 3600
# What a person sets for programs that tests start.
ENVIRONMENT = re.compile(r"^(FOURFOLD|OMP|KMP|UCX|MPI|PMI|HDF5|[AULT]B?SAN|LD|CUDA|LC_|LANG)")


class Unknown(Exception):
    """What a test depends on, or the machine, is not known."""


def output(*words, cwd=None):
    return subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True).stdout


class Build:
    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.commands, self.inputs = {}, {}
        with open(f"{self.folder}/CMakeCache.txt", encoding="utf-8") as cache:
            self.source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.MULTILINE)[1]
        self.targets = {line.rsplit(":", 1)[0] for line in output("ninja", "-t", "targets", "all", cwd=self.folder).splitlines()}
        self.headers = {}  # of each object, as the compiler has told
        for block in output("ninja", "-t", "deps", cwd=self.folder).split("\n\n"):
            name, *files = block.strip("\n").split("\n")
            self.headers[name.split(": #deps ")[0]] = [self.name(file.strip()) for file in files]

    def name(self, path):
        """As Ninja calls it: relative to the build folder, if it is in there."""
        path = os.path.normpath(os.path.join(self.folder, path))
        return os.path.relpath(path, self.folder) if path.startswith(self.folder + "/") else path

    def plain(self, text):
        """Without where this repository lies: the same in every clone."""
        return text.replace(self.folder, "<build>").replace(self.source, "<source>")

    @functools.cache
    def hash_of(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            content = file.read()
        if not name.startswith("/"):  # generated
            content = self.plain(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        return hashlib.sha256(content).hexdigest()

    @functools.cache
    def tracked(self, folder):
        """A digest of the files of this repository in there."""
        files = output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder, cwd=self.source).split("\0")
        digest = hashlib.sha256()
        for file in sorted(set(filter(None, files))):
            path = os.path.join(self.source, file)
            digest.update(f"{file} {self.hash_of(path) if os.path.isfile(path) else '-'}\n".encode())
        return digest.hexdigest()

    def files_of(self, target):
        """All that it is made of and that this build does not make. (The commit, which it asks Git for, is in no test's result.)"""
        seen, left, files = set(), [target] + output("ninja", "-t", "inputs", target, cwd=self.folder).split("\n"), set()
        while left:
            name = left.pop()
            if not name or name in seen:
                continue
            seen.add(name)
            left += self.headers.get(name, [])
            # What this build makes is known by what it is made of.
            if name not in self.targets and os.path.isfile(os.path.join(self.folder, name)):
                files.add(name)
        return files

    def add_target(self, target, lines, done):
        if target in done:
            return
        done.add(target)
        commands = output("ninja", "-t", "commands", target, cwd=self.folder)
        lines.append(self.plain(commands))
        for file in self.files_of(target):
            lines.append(f"{self.plain(file)} {self.hash_of(file)}")
        for command in commands.splitlines():
            for path in re.findall(r" -D\w+=[\\'\"]*(/[^\\'\" ]+)", command) if " -c " in command else []:
                self.add_path(path, lines, done)

    def add_path(self, path, lines, done):
        """What a test is told of: a program of this build, a folder of this repository."""
        path = os.path.normpath(path)
        if path in (self.folder, self.source):
            raise Unknown(path)
        if path.startswith(self.folder + "/"):
            name = self.name(path)
            targets = [name] if name in self.targets else [f"{name}.so", self.name(os.path.realpath(path))]
            if not self.targets.issuperset(targets):
                raise Unknown(path)
            for target in targets:
                self.add_target(target, lines, done)
        elif path.startswith(self.source + "/"):
            lines.append(f"{self.plain(path)} {self.tracked(path)}")

    def facts(self, test):
        """What the result of a test depends on, but for the machine."""
        words = test.get("command")
        if not words or any(one["name"] == "DISABLED" and one["value"] for one in test.get("properties", [])):
            raise Unknown("not built")
        program = os.path.basename(words[0])
        if program.startswith("mpiexec"):
            program = next((word for word in words[1:] if word.startswith(self.folder + "/")), "")
        elif not words[0].startswith(self.folder + "/"):
            raise Unknown(words[0])
        properties = {one["name"]: one["value"] for one in test.get("properties", [])}
        lines, done = [self.plain(json.dumps(words + [properties.get("ENVIRONMENT"), properties.get("WORKING_DIRECTORY")]))], set()
        for text in words + (properties.get("ENVIRONMENT") or []):
            for path in re.findall(r"/[^\s:=;,]+", text):
                self.add_path(path, lines, done)
        if not done:
            raise Unknown(program)
        for file in ("CMakePresets.json", "tests/leaks_of_others.supp"):  # the environment of `ctest --preset`
            lines.append(f"{file} {self.tracked(file)}")
        return sorted(lines)

    def tests(self):
        return json.loads(output("ctest", "--show-only=json-v1", cwd=self.folder))["tests"]


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = sorted(set(line for line in file if re.match(r"(model name|flags|Features|processor)\b", line)))
    try:
        packages = output("dpkg-query", "-W")
    except FileNotFoundError as error:
        raise Unknown("this is no Debian, whose packages would be known") from error
    environment = sorted(f"{name}={value}" for name, value in os.environ.items() if ENVIRONMENT.match(name))
    with open(__file__, encoding="utf-8") as own:
        return "".join(cpu) + packages + "\n".join(environment) + own.read()


def passed_folder():
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fourfold", "passed-tests")


def select(folder):
    kept = os.path.join(folder, "test_keys.json")
    if os.path.exists(kept):
        os.unlink(kept)  # those of another build, should this fail
    try:
        here = machine()
    except Unknown as why:
        print(f"all tests run: {why}", file=sys.stderr)
        return
    build, keys, unchanged = Build(folder), {}, []
    for test in build.tests():
        try:
            text = "\n".join([here] + build.facts(test))
        except Unknown:
            continue
        keys[test["name"]] = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
        try:
            if time.time() - os.stat(os.path.join(passed_folder(), keys[test["name"]])).st_mtime < WEEK_S:
                unchanged.append(test["name"])
        except FileNotFoundError:
            pass
    with open(kept, "w", encoding="utf-8") as file:
        json.dump(keys, file)
    print("^(" + "|".join(re.escape(name) for name in unchanged) + ")$" if unchanged else "")
    print(f"{len(unchanged)} of {len(keys)} compiled tests have passed as they are", file=sys.stderr)


def note(folder, junit):
    try:
        with open(os.path.join(folder, "test_keys.json"), encoding="utf-8") as file:
            keys = json.load(file)
    except FileNotFoundError:  # of no test it is known
        return
    os.makedirs(passed_folder(), exist_ok=True)
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        if case.get("status") == "run" and case.get("name") in keys:
            with open(os.path.join(passed_folder(), keys[case.get("name")]), "w", encoding="utf-8") as file:
                file.write(case.get("name") + "\n")
    for file in os.scandir(passed_folder()):
        if time.time() - file.stat().st_mtime > 2 * WEEK_S:
            os.unlink(file)


def explain(folder, name):
    build = Build(folder)
    try:
        print("\n".join(build.facts(next(test for test in build.tests() if test["name"] == name))))
    except Unknown as why:
        print(f"{name} always runs: {why} is none of the compiled programs and folders that would be known")


if __name__ == "__main__":
    {"select": select, "note": note, "explain": explain}[sys.argv[1]](*sys.argv[2:])
