#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Follows every link and picture of every page of this repository that leads to a file of it, or a heading there.

Usage: check_links.py [ROOT]; exit code 1 and a line per link that leads nowhere. Links to other sites are not followed.
"""
import functools
import html
import pathlib
import re
import subprocess
import sys
import urllib.parse

FENCED = re.compile(r"^(\s*)(`{3,}|~{3,})[^`\n]*\n.*?^\s*\2`*\s*$", re.M | re.S)
CODE = re.compile(r"(`+)(?:.|\n)*?[^`]\1(?!`)")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.M)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$", re.M)


def blank(found: re.Match[str]) -> str:
    """As many lines of nothing."""
    return re.sub(r"[^\n]", " ", found.group())


def anchor(heading: str) -> str:
    """What forges make of a heading: small letters, digits, - and _; blanks become -."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = html.unescape(re.sub(r"[`*]|</?\w+[^>]*>", "", text)).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@functools.cache
def anchors(path: pathlib.Path) -> frozenset[str]:
    """Of a page; of headings alike the second has -1 after it."""
    text = FENCED.sub(blank, path.read_text(encoding="utf-8"))
    seen: dict[str, int] = {}
    names = set(re.findall(r'<a\s+(?:id|name)="([^"]+)"', text))
    for heading in HEADING.findall(text):
        name = anchor(heading)
        names.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return frozenset(names)


def broken(root: pathlib.Path, page: pathlib.Path) -> list[str]:
    """The links of a page that lead nowhere, with their lines."""
    text = CODE.sub(blank, FENCED.sub(blank, page.read_text(encoding="utf-8")))
    wrong = []
    for found in LINK.finditer(text):
        link = found.group(1) or found.group(2)
        if re.match(r"[a-z][a-z+.-]*:", link):
            continue
        path, _, name = urllib.parse.unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        place = f"{page.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}: {link}"
        if not target.exists() or not target.is_relative_to(root):
            wrong.append(f"{place} is no file of this repository")
        elif name and target.suffix == ".md" and name not in anchors(target):
            wrong.append(f"{place} names no heading")
    return wrong


def main(root: pathlib.Path) -> int:
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=False)
    # Not a clone: an archive of the sources.
    pages = [root / name for name in listed.stdout.splitlines()] if listed.returncode == 0 else \
        [page for page in root.rglob("*.md") if "build" not in page.parts]
    wrong = [line for page in sorted(pages) if page.exists() for line in broken(root, page)]
    print("\n".join(wrong + [f"{len(pages)} pages, {len(wrong)} links that lead nowhere"]))
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
