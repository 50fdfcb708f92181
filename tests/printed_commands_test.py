#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that printed_commands.py takes files and commands of a page as they stand there, and runs them."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "integration"))
import printed_commands  # noqa: E402

PAGE = """# A page
```toml title="conf/run.toml"
[a]
  b = 1
```
Some text, `ls` in it.
1. A list:
   ```bash
   # a comment
   export WORD=two   # another
   mkdir far && cd far

   for i in 1 \\
     2; do
     echo "$i $WORD"
   done
   cat <<'END'
   ```bash
   END
   ```
```sh
false
```
```text
false
```
"""


class PrintedCommands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_page(self, text):
        return printed_commands.run(printed_commands.steps_of("page.md", text), self.folder)

    def test_steps(self):
        steps = printed_commands.steps_of("page.md", PAGE)
        self.assertEqual([(step.line, step.file, step.text) for step in steps], [
            (3, "conf/run.toml", "[a]\n  b = 1\n"),
            (10, "", "export WORD=two   # another"), (11, "", "mkdir far && cd far"),
            (13, "", 'for i in 1 \\\n  2; do\n  echo "$i $WORD"\ndone'), (17, "", "cat <<'END'\n```bash\nEND")])

    def test_run(self):
        record = self.run_page(PAGE)
        self.assertEqual([one["code"] for one in record], [0, 0, 0, 0])
        self.assertEqual([one["stdout"] for one in record], ["", "", "1 two\n2 two\n", "```bash\n"])
        self.assertEqual((self.folder / "conf/run.toml").read_text(), "[a]\n  b = 1\n")
        self.assertTrue((self.folder / "far").is_dir())

    def test_failures(self):
        for command, code in (("(exit 3)", 3), ("exit 4", 4), ("no-such-command-here", 127),
                              ("true\nfalse | cat | false\ntrue", 1)):
            record = self.run_page(f"```bash\n{command}\ntouch after\n```\n")
            self.assertEqual(record[-1]["code"], code, command)
            self.assertFalse((self.folder / "after").exists(), command)

    def test_a_file_is_written_where_it_stands(self):
        record = self.run_page("".join(f'```text title="a"\n{word}\n```\n```bash\ncat a\n```\n' for word in "12"))
        self.assertEqual([one["stdout"] for one in record], ["1\n", "2\n"])

    def test_refused(self):
        for text, said in (("```\nls\n```\n", "page.md:1: say what this block is"),
                           ("```python\nx\n```\n", "say what"),
                           ("a\n```bash\nls\n", "page.md:2: this block has no end"),
                           ('```bash\nls\necho "x\n```\n', "page.md:3: this command has no end")):
            with self.assertRaises(printed_commands.WrongPage) as refused:
                printed_commands.steps_of("page.md", text)
            self.assertIn(said, str(refused.exception))


if __name__ == "__main__":
    unittest.main()
