#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/troubleshooting from the messages of the source (messages.py) and the entries in its .ini files, and
checks both.

Usage: troubleshooting.py [--write] [ROOT]. An entry is a section: `messages` has a piece of each message that it
explains, a line each, with * for anything, or after `= ` a whole message; `cause` and `fix` are sentences. Refused: a
message without an entry or with two, a piece that is in no message, an entry without cause or fix, a message that runs
from what is wrong into what to do without a stop, and pages that are not what --write makes."""
import configparser
import dataclasses
import pathlib
import re
import sys

from message_places import CODES
from messages import Message, Reader

FOLDER = pathlib.Path("docs/troubleshooting")
# The order of the pages; each is NAME.ini.
PAGES = ("command-line", "run-file", "mesh", "data", "tokenizer", "start", "gpu", "training", "resume", "checkpoints",
         "files", "conversion", "slurm", "bugs")
NAMES = {number: name for name, number in CODES.items()}
LEAST_LETTERS = 10  # of a piece: less would catch messages of all kinds
# After the reason in parentheses a sentence goes on with one of these, or a stop stands before what to do.
GOES_ON = r"(?!it has|is |of |or |cannot |nor |made |failed|says |and |in |\()"
RUNS_ON = re.compile(rf"(?<!\()\) {GOES_ON}[a-z{{A-Z]|"
                     r"\{\} (let|set|use|give|name|put|choose|lower|raise|start|leave|write|look|this is)\b")
WIDTH = 120


@dataclasses.dataclass
class Entry:
    page: str
    title: str
    pieces: list
    cause: str
    fix: str
    messages: list = dataclasses.field(default_factory=list)
    used: set = dataclasses.field(default_factory=set)  # of the pieces

    @property
    def anchor(self) -> str:
        """As GitHub and MkDocs make it of the title."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    @property
    def codes(self) -> list:
        return sorted({code for message in self.messages for code in message.codes})


def pattern(piece: str) -> re.Pattern:
    if piece.startswith("= "):
        return re.compile(re.escape(piece[2:]) + r"\Z")
    return re.compile(".*?".join(map(re.escape, piece.split("*"))), re.S)


def joined(text: str) -> str:
    return " ".join(text.split())


def read_ini(path: pathlib.Path) -> configparser.ConfigParser:
    """Sections whose names and values may have any characters; ;; begins a comment."""
    ini = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=(";;",), default_section="")
    with open(path, encoding="utf-8") as file:
        ini.read_file(file)
    return ini


def read_entries(root: pathlib.Path) -> tuple:
    """(title, about) of each page, and all entries."""
    pages, entries = {}, []
    for page in PAGES:
        ini = read_ini(root / FOLDER / f"{page}.ini")
        for title in ini.sections():
            of = ini[title]
            if title == "page":
                pages[page] = (of["title"], joined(of["about"]))
                continue
            pieces = [line for line in of.get("messages", "").splitlines() if line.strip()]
            entries.append(Entry(page, title, pieces, joined(of.get("cause", "")), joined(of.get("fix", ""))))
    return pages, entries


def mistakes_of(entry: Entry):
    """What is wrong with an entry that has been given its messages."""
    for piece in entry.pieces:
        if piece not in entry.used:
            yield f"no message has '{piece}'"
        elif len(re.findall(r"\w", piece)) < LEAST_LETTERS and not piece.startswith("= "):
            yield f"'{piece}' is too short to name a message"
    for name in ("cause", "fix"):
        if not re.search(r"[.`?]$", getattr(entry, name)):
            yield f"{name} is missing, or no sentence"
    if "--" in entry.anchor or entry.anchor.startswith("-"):
        yield "GitHub and MkDocs make different anchors of this title"


def assign(found: list, entries: list) -> list:
    """Gives each message to its entry; returns what is wrong."""
    wrong = []
    pieces = [(entry, piece, pattern(piece)) for entry in entries for piece in entry.pieces]
    for message in found:
        place = f"{message.file}:{message.line}"
        of = [(entry, piece) for entry, piece, matches in pieces if matches.search(message.text)]
        for entry, piece in of:
            entry.used.add(piece)
        if not of:
            wrong.append(f"{place}: no entry in {FOLDER} explains: {message.text}")
        elif len({id(entry) for entry, _ in of}) > 1:
            by = ", ".join(f"[{entry.title}] by '{piece}'" for entry, piece in of)
            wrong.append(f"{place}: several entries explain '{message.text}': {by}")
        else:
            of[0][0].messages.append(message)
    anchors = set()
    for entry in entries:
        place = f"{FOLDER}/{entry.page}.ini: [{entry.title}]"
        wrong += [f"{place}: {mistake}" for mistake in mistakes_of(entry)]
        if (entry.page, entry.anchor) in anchors:
            wrong.append(f"{place}: another entry of this page has the same anchor")
        anchors.add((entry.page, entry.anchor))
    return wrong


def run_on(found: list) -> list:
    """Messages in which nothing stands between what is wrong and what to do."""
    return [f"{message.file}:{message.line}: no stop between what is wrong and what to do: {message.text}"
            for message in found if RUNS_ON.search(message.text)]


def shown(message: Message) -> str:
    """As a reader meets it: what the program fills in is an ellipsis."""
    text = joined(re.sub(r"(\{\})+", "…", message.text))
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def wrapped(text: str) -> str:
    """Lines of at most WIDTH characters, broken at blanks outside code."""
    lines = [""]
    for word in re.findall(r"(?:`[^`]*`|[^\s`])+", text):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines)


def page_text(page: str, title: str, about: str, entries: list) -> str:
    out = [f"<!-- Made by tests/troubleshooting.py --write of {page}.ini and the messages in the source. -->",
           f"# {title}", "", wrapped(about), ""]
    for entry in entries:
        codes = ", ".join(f"{code} ({NAMES[code]})" for code in entry.codes) or "that of what it reports"
        out += [f"## {entry.title}", ""]
        out += [f"- {text}" for text in sorted(map(shown, entry.messages))]
        out += ["", wrapped(f"{entry.cause} **Exit code** {codes}."), "", wrapped(f"**Fix:** {entry.fix}"), ""]
    return "\n".join(out)


def index_text(pages: dict, entries: list) -> str:
    count = sum(len(entry.messages) for entry in entries)
    out = ["<!-- Made by tests/troubleshooting.py --write. -->", "# Troubleshooting by message", "",
           wrapped(f"The {count} messages with which a program of fourfold refuses or fails, in {len(entries)} "
                   "entries: what each means, its exit code, and what to do. Search for a few words of your message, "
                   "without names, numbers and paths: these stand as … here. [exit-codes.md](../exit-codes.md) says "
                   "what a batch script does with a code."), ""]
    for page, (title, _) in pages.items():
        out += [f"## [{title}]({page}.md)", ""]
        out += [f"- [{entry.title}]({page}.md#{entry.anchor})" for entry in entries if entry.page == page] + [""]
    out += ["## By exit code", "", "| code | name | entries on |", "|---|---|---|"]
    for code, name in sorted(NAMES.items()):
        counts = {page: sum(code in entry.codes for entry in entries if entry.page == page) for page in pages}
        on = ", ".join(f"[{pages[page][0]}]({page}.md) ({count})" for page, count in counts.items() if count)
        out += [f"| {code} | {name} | {on} |"] if on else []
    return "\n".join(out) + "\n"


def page_texts(pages: dict, entries: list) -> dict:
    """The text of each generated file."""
    texts = {f"{page}.md": page_text(page, *pages[page], [entry for entry in entries if entry.page == page])
             for page in pages}
    return {**texts, "README.md": index_text(pages, entries)}


def main() -> int:
    arguments = [word for word in sys.argv[1:] if word != "--write"]
    root = pathlib.Path(arguments[0] if arguments else ".")
    reader = Reader(root)
    found = reader.read()
    pages, entries = read_entries(root)
    wrong = [f"{file}:{line}: cannot tell what this says: {expression}" for file, line, expression in reader.unclear]
    wrong += [f"tests/message_places.py: there is no such file or throw: {place}" for place in reader.stale_places()]
    wrong += assign(found, entries) + run_on(found)
    for name, text in page_texts(pages, entries).items():
        path = root / FOLDER / name
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            wrong.append(f"{path} is not what the source says: run python3 tests/troubleshooting.py --write")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    without = sum(": no entry in " in line for line in wrong)
    print(f"{len(found)} messages, {len(entries)} entries, {without} messages without one, {len(wrong)} mistakes")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
