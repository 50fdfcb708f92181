#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that check_links.py finds links that lead nowhere, and only those."""
import pathlib
import tempfile
import unittest

import check_links


class CheckLinks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "docs").mkdir()
        text = "# `zero = 3`: *what* it is, A & B\n```\n# no heading\n```\n## Twice\n## Twice\n"
        (self.root / "docs/other.md").write_text(text, encoding="utf-8")

    def broken(self, text):
        page = self.root / "page.md"
        page.write_text(text, encoding="utf-8")
        check_links.anchors.cache_clear()
        return check_links.broken(self.root, page)

    def test_right(self):
        for text in ("[a](docs/other.md)", "[a](docs)", "[a](docs/)", "[a](docs/other.md#zero--3-what-it-is-a--b)",
                     "[a](docs/other.md#twice-1)", "# Here\n[a](#here)", "[a](https://x.example/y)", "[a](mailto:x@y)",
                     "`[a](none.md)`", "```\n[a](none.md)\n```", "[`code` [1]](docs/other.md)", "[a]: docs/other.md",
                     "![p](docs/other.md \"title\")"):
            self.assertEqual(self.broken(text), [], text)

    def test_wrong(self):
        for text in ("[a](none.md)", "![a](docs/none.svg)", "[a](docs/other.md#no-heading)",
                     "[a](docs/other.md#twice-2)", "[a](#nowhere)", "[a](../outside.md)", "[a]: none.md",
                     "[a\nb](none.md)", "[![p](docs/none.png)](docs/other.md)"):
            self.assertEqual(len(self.broken(text)), 1, text)
        self.assertEqual(self.broken("x\n\n[a](none.md)"), ["page.md:3: none.md is no file of this repository"])


if __name__ == "__main__":
    unittest.main()
