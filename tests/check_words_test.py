#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that check_words.py finds old words wherever an identifier or a file has them, and nothing else."""
import unittest

import check_words


class CheckWords(unittest.TestCase):
    def found(self, text, path="src/comm/communicator/mesh.cpp"):
        return [words for _, words in check_words.breaches(path, text)]

    def test_identifiers(self):
        for text in ("int seams_ = 0;", "class TestSeams {};", "seams.begin();", "void add_court();", "auto voiceCount = 1;", "StepFate fate;",
                     "HangVerdict of();", "run(first_rank_does);", "std::vector<ParameterShare::Run> runs;", "class MyStartWatch {};"):
            self.assertTrue(self.found(text), text)

    def test_others(self):
        for text in ("// a seam of the model", 'log("the court is in session");', "int seamless = 0;", "bool courteous;", "startWatchdog();",
                     "StartupWatchdog dog;", "/* fate */ int status;", 'auto x = R"(voice)";', "class Restart {}; class Watchdog {};"):
            self.assertEqual(self.found(text), [], text)

    def test_files(self):
        self.assertTrue(self.found("int x;", "src/model/seams.hpp"))
        self.assertTrue(self.found("int x;", "src/comm/watchdog/start_judge.cpp"))
        self.assertEqual(self.found("int x;", "src/model/parallel_hooks.hpp"), [])

    def test_scripts(self):
        for text in ("seams() {", "function judge() {", "  local voice=1", "def add_court(self):", "    fate = 1", "class StepFate(Status):", "for bell in 1 2; do"):
            self.assertEqual([line for line, _ in check_words.breaches("slurm/job.bash", "#!/bin/bash\n" + text + "\n")], [2], text)
        for text in ("# a seam", "echo the court is in session", "if judge; then", "startWatchdog() {", "fateful=1", "export FOURFOLD_SETTLE_S=3"):
            self.assertEqual(self.found(text, "slurm/job.bash"), [], text)
        self.assertTrue(self.found("", "slurm/judge.bash"))

    def test_lines(self):
        self.assertEqual([line for line, _ in check_words.breaches("src/a.cpp", "int a;\n\"x\\\"\";\nint seams;\n")], [3])


if __name__ == "__main__":
    unittest.main()
