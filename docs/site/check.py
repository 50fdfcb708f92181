#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Looks through a built site. Usage: check.py SITE

Exit code 1 and a line for each link to nowhere, each part that would be loaded from elsewhere, and each public header
without a page of the C++ API."""
import html.parser
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
API = "api"  # Doxygen checks its own links


class Page(html.parser.HTMLParser):
    """What a page links to, what it loads, and the places in it that a link may name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.parts: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.places.update(filter(None, (values.get("id"), values.get("name"))))
        for name in ("href", "src"):
            if values.get(name):
                (self.links if tag == "a" else self.parts).append(values[name])


def breaches(site: pathlib.Path):
    """A line for each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))
             if path.relative_to(site).parts[0] != API}
    for path, page in pages.items():
        name = path.relative_to(site)
        for part in page.parts:
            if urllib.parse.urlsplit(part).scheme not in ("", "data"):
                yield f"{name}: loads {part}"
        for link in page.links + page.parts:
            address = urllib.parse.urlsplit(link)
            if address.scheme or name.name == "404.html":
                continue
            target = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
            if not target.is_file():
                yield f"{name}: there is no {link}"
            elif address.fragment and target in pages:
                if urllib.parse.unquote(address.fragment) not in pages[target].places:
                    yield f"{name}: there is no place {link}"
    described = headers_with_page(site / API)
    for room in ("src", "kernels", "io", "apps"):
        for header in sorted((ROOT / room).glob("**/include/fourfold/**/*.hpp")):
            if header.relative_to(ROOT) not in described:
                yield f"{header.relative_to(ROOT)}: has no page"


def headers_with_page(api: pathlib.Path) -> set[pathlib.Path]:
    """By what Doxygen lists for other programs."""
    files = xml.etree.ElementTree.parse(api / "fourfold.tag").findall("compound[@kind='file']")
    return {(ROOT / file.findtext("path", "") / file.findtext("name", "")).relative_to(ROOT) for file in files
            if (api / file.findtext("filename", "")).is_file()}


if __name__ == "__main__":
    found = list(breaches(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found))
    sys.exit(1 if found else 0)
