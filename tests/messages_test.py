#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that messages.py finds what is thrown however it is put together, and that troubleshooting.py refuses what it
should."""
import pathlib
import tempfile
import unittest

import messages
import troubleshooting

FORWARDERS = """
namespace {
void refuse(ExitCode code, const std::string& why) { throw UserError(code, why); }
void line(const std::string& what) { throw UserError(ExitCode::config, format_message("{}: {}", file_, what)); }
}
void f() {
  refuse(ExitCode::usage, "the first is wrong");
  line(format_message("the {} is wrong", x));
}
"""


def listed(text):
    """The messages of a tree with this file, as (codes, text), and whether all could be told."""
    with tempfile.TemporaryDirectory() as root:
        path = pathlib.Path(root, "src", "a.cpp")
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        reader = messages.Reader(root)
        found = reader.read()
    return [(message.codes, message.text) for message in found], not reader.unclear


class Messages(unittest.TestCase):
    def check(self, body, *expected):
        found = listed("void f(const std::string& path) {\n" + body + "\n}\n")
        self.assertEqual(found, (sorted(expected, key=lambda one: one[1]), True), body)

    def test_literals(self):
        self.check('throw UserError(ExitCode::config, "no such " /* a */ "file; // name \\"another\\"");',
                   ((78,), 'no such file; // name "another"'))
        self.check('throw UserError(ExitCode::usage, R"(say (it) again)");', ((64,), "say (it) again"))
        self.check('// throw UserError(ExitCode::usage, "not thrown");\n')
        self.check('throw UserError(ExitCode::config, "it is wrong; " SAY_SO " to us");', ((78,), "it is wrong; {} to us"))

    def test_formats(self):
        self.check('throw UserError(ExitCode::usage, format_message("{}: is {:.2f} of {}; give {}", a(b, c), d, e));',
                   ((64,), "{}: is {} of {}; give {}"))
        self.check('throw SystemError(a ? ExitCode::hang : ExitCode::internal, fmt::format("it failed in {0}", x));',
                   ((70, 86), "it failed in {}"))
        self.check('throw UserError(ExitCode::config, path + " is no file of " + name(path) + "; give one");',
                   ((78,), "{} is no file of {}; give one"))

    def test_choices(self):
        self.check('throw UserError(ExitCode::config, a ? "the first" : b ? "the second" : "the third one");',
                   ((78,), "the first"), ((78,), "the second"), ((78,), "the third one"))

    def test_variables(self):
        self.check('const auto why = format_message("the {} is wrong", x);\nthrow UserError(ExitCode::config, why);',
                   ((78,), "the {} is wrong"))
        self.check('auto error = UserError(ExitCode::usage, "it is wrong");', ((64,), "it is wrong"))

    def test_parameters(self):
        self.assertEqual(listed(FORWARDERS), ([((64,), "the first is wrong"), ((78,), "the {} is wrong")], True))

    def test_what_cannot_be_told(self):
        for said in ("other(path)", "failure->message", 'format_message("{}: {}", path, error.what())'):
            body = f"throw UserError(ExitCode::config, {said});"
            self.assertEqual(listed("void f(const std::string& path) { " + body + " }"), ([], False), said)


def entry(*pieces, cause="It is.", fix="Mend it.", title="A title"):
    return troubleshooting.Entry("mesh", title, list(pieces), cause, fix)


def message(text):
    return messages.Message(text, "src/a.cpp", 1, (78,))


class Troubleshooting(unittest.TestCase):
    text = "{} does not fit {} ranks; give {}"

    def wrong(self, *entries):
        return troubleshooting.assign([message(self.text)], list(entries))

    def test_one_entry_for_each(self):
        for piece in ("does not fit {} ranks", "not fit * ranks; give", "= " + self.text):
            self.assertEqual(self.wrong(entry(piece)), [], piece)

    def test_mistakes(self):
        for words, *entries in (
                ("no entry", entry("does not divide")),
                ("no entry", entry("= does not fit {} ranks")),
                ("several entries", entry("does not fit"), entry("ranks; give {}", title="Another")),
                ("same anchor", entry("does not fit"), entry("does not divide")),
                ("different anchors", entry("does not fit", title="Option --set")),
                ("no message has", entry("does not fit", "does not divide")),
                ("too short", entry("does not fit", "ranks")),
                ("cause is missing", entry("does not fit", cause="")),
                ("fix is missing", entry("does not fit", fix="Mend it"))):
            self.assertTrue(any(words in line for line in self.wrong(*entries)), words)

    def test_stops(self):
        for text in ("it is wrong (of course) set it to {}", "it is wrong ({}) {}, or leave it", "a is {} name another",
                     "it is wrong (a) NCCL_DEBUG=INFO says"):
            self.assertTrue(troubleshooting.run_on([message(text)]), text)
        for text in ("it is wrong (of course); set it to {}", "f() is wrong ({}) of {}; give another",
                     "it is wrong. Set it to {}"):
            self.assertEqual(troubleshooting.run_on([message(text)]), [], text)

    def test_lines(self):
        text = "one `two three` " * 20
        lines = troubleshooting.wrapped(text).splitlines()
        self.assertEqual(" ".join(lines), text.strip())
        self.assertTrue(all(len(line) <= troubleshooting.WIDTH and line.count("`") % 2 == 0 for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
