# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""The pages of the site, for mkdocs: the Markdown files of the repository, each at its own place.

So every link that works in a browser of the repository works here. What they link to that is no page comes along; a
folder gets an index."""
import logging
import pathlib
import posixpath
import re
import subprocess

import markdown_it
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)[^)\s]*\)")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "slurm/*.md", "docs/*.md",
         "benchmarks/*.md")
ASSETS = ("docs/site/iframe-worker.js", "docs/site/site.css")
# Last: reports of measurements, and what was long ago. Messages come after the pages that explain their subject. First:
# the way out where memory ends, and the keys.
WEIGHT_IN_SEARCH = {r"benchmarks/|docs/adr/|CHANGELOG": 0.1, r"docs/troubleshooting/": 0.3,
                    r"docs/(choosing|run-file)": 2}
log = logging.getLogger("mkdocs.hooks.pages")


def tracked_files(patterns):
    """Names of the repository's files that match, new ones with them."""
    command = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in set(listed.splitlines()) if (ROOT / name).is_file())


def targets(page):
    """What a page links to in the repository, as names from its root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in LINK.findall(text):
        if "://" not in link and not link.startswith("mailto:"):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def folder_index(folder):
    """A page that lists the files of a folder, by their titles."""
    lines = [f"# {posixpath.basename(folder)}/", ""]
    for name in tracked_files([f"{folder}/"]):
        first = (ROOT / name).read_text(encoding="utf-8", errors="replace").split("\n", 1)[0]
        title = first.lstrip("# ") if name.endswith(".md") else posixpath.relpath(name, folder)
        lines.append(f"- [{title}]({posixpath.relpath(name, folder)})")
    return "\n".join(lines) + "\n"


def on_config(config):
    """An entry of the navigation may be a pattern."""
    def expanded(entries):
        for entry in entries:
            if isinstance(entry, dict):
                entry = {title: list(expanded(inner)) if isinstance(inner, list) else inner
                         for title, inner in entry.items()}
                yield from [entry] if any(entry.values()) else []
            elif "*" in entry:
                yield from tracked_files([entry])
            else:
                yield entry

    config.nav = list(expanded(config.nav))


def on_files(files, config):
    """Replaces what mkdocs has found in docs/ by the files of the repository."""
    ours = Files([file for file in files if file.src_dir != config.docs_dir])
    pages = tracked_files(PAGES)
    names = dict.fromkeys([*pages, *ASSETS])
    for page in pages:
        names.update(dict.fromkeys(name for name in targets(page) if (ROOT / name).is_file()))
        for folder in targets(page):
            index = f"{folder}/README.md"
            if (ROOT / folder).is_dir() and not (ROOT / index).exists() and ours.get_file_from_path(index) is None:
                ours.append(File.generated(config, index, content=folder_index(folder)))
                names.update(dict.fromkeys(tracked_files([f"{folder}/"])))
    for name in names:
        ours.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    return ours


def on_nav(nav, config, files):
    """Doxygen's pages stand beside these; mkdocs does not know them."""
    reference = next(item for item in nav.items if item.title == "Reference")
    reference.children.append(Link("C++ API", "api/index.html"))
    return nav


def on_page_markdown(markdown, page, config, files):
    """Links to folders lead to their index; some pages come first or last in the search, or have words of their own."""
    for pages, boost in WEIGHT_IN_SEARCH.items():
        if re.match(pages, page.file.src_uri):
            page.meta["search"] = {"boost": boost}
    page.meta["tags"] = config.extra["search_words"].get(page.file.src_uri, [])
    here = posixpath.dirname(page.file.src_uri)

    def to_index(link):
        return f"]({link[1]}/README.md)" if (ROOT / here / link[1]).is_dir() else link[0]

    return re.sub(r"\]\(([\w./-]+?)/?\)", to_index, markdown)


def on_page_content(html, page, config, files):
    """mkdocs reads Markdown in its own way. What CommonMark has as a list, table or block is one here too."""
    plain = markdown_it.MarkdownIt("commonmark").enable("table").render(page.markdown)
    for element in ("li", "table", "tr", "pre", "h2", "h3", "blockquote"):
        wanted, found = (len(re.findall(rf"<{element}\b", text)) for text in (plain, html))
        if wanted != found:
            log.warning("%s: %d times <%s> here, %d in CommonMark", page.file.src_uri, found, element, wanted)
    return html
