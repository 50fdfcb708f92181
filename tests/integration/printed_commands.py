#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the files and runs the commands that a page of the documentation prints, exactly as printed, in their order.

usage: printed_commands.py PAGE...                                  lists them
       printed_commands.py --run FOLDER [--record FILE] PAGE...     runs them in FOLDER, in one shell, until one fails

What a fenced block is, its first line says:
  ```bash                     commands; each is run
  ```LANGUAGE title="NAME"    the file NAME; it is written as it stands
  ```sh                       commands for another place (root, Slurm, this repository): shown, not run
  ```text                     output: shown, not run
Any other block is refused: nobody would know whether it is tested. --record writes a list of all commands to FILE, as
JSON: `page`, `line`, `command`, `code`, `stdout` and `stderr`. A test looks there at what they have said.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w.+-]*)(?P<rest>.*)$")
TITLE = re.compile(r'\btitle="([^"]*)"')
SHOWN = {"sh", "text"}


class WrongPage(Exception):
    """A page that this program cannot read; the message has its place."""


@dataclass
class Step:
    page: str
    line: int  # of its first line in the page, from 1
    text: str  # a command, or what the file holds
    file: str = ""  # its name; empty: a command

    def __str__(self) -> str:
        what = f"file {self.file}" if self.file else self.text
        return f"{self.page}:{self.line}: {what}"


def is_complete(command: str) -> bool:
    """Whether a shell would run this, or wait for another line."""
    if command.endswith("\\"):
        return False
    asked = subprocess.run(["bash", "-n", "-c", command + "\n"], capture_output=True, text=True, check=False)
    return asked.returncode == 0 and not asked.stderr  # it only warns of a here-document without an end


def commands(page: str, first: int, lines: list[str]) -> list[Step]:
    """The commands of a block whose first line has the number `first`; comments and blank lines are none."""
    steps: list[Step] = []
    begun: list[str] = []
    for number, line in enumerate(lines, first):
        if not begun and (not line.strip() or line.lstrip().startswith("#")):
            continue
        begun.append(line)
        if is_complete("\n".join(begun)):
            steps.append(Step(page, number - len(begun) + 1, "\n".join(begun)))
            begun = []
    if begun:
        raise WrongPage(f"{page}:{first + len(lines) - len(begun)}: this command has no end: {begun[0]}")
    return steps


def block_steps(page: str, first: int, opening: re.Match[str], lines: list[str]) -> list[Step]:
    """What a block asks for."""
    language, title = opening["language"], TITLE.search(opening["rest"])
    if title:
        return [Step(page, first, "".join(line + "\n" for line in lines), title[1])]
    if language == "bash":
        return commands(page, first, lines)
    if language in SHOWN:
        return []
    raise WrongPage(f"{page}:{first - 1}: say what this block is: bash (run), "
                    'a title="NAME" (a file), sh or text (shown only)')


def steps_of(page: str, text: str) -> list[Step]:
    """All commands and files of a page, in their order."""
    steps: list[Step] = []
    opening: re.Match[str] | None = None
    block: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        found = FENCE.match(line)
        if opening is None:
            if found:
                opening, block, first = found, [], number + 1
        elif found and found["fence"].startswith(opening["fence"]) and not found["language"] + found["rest"].strip():
            steps += block_steps(page, first, opening, block)
            opening = None
        else:
            block.append(line.removeprefix(opening["indent"]))
    if opening is not None:
        raise WrongPage(f"{page}:{first - 1}: this block has no end")
    return steps


def script_of(steps: list[Step], said: pathlib.Path) -> str:
    """A shell script that does the steps, and keeps what step N says in said/N.*; the texts are in said/N.text."""
    script = ["exec </dev/null"]
    for number, step in enumerate(steps):
        place = shlex.quote(str(said / str(number)))
        if step.file:
            folder = shlex.quote(str(pathlib.PurePath(step.file).parent))
            script.append(f"mkdir -p {folder} && cp {place}.text {shlex.quote(step.file)} || exit")
        else:  # in this shell, so that `cd` and `export` last
            script.append(f"exec >{place}.stdout 2>{place}.stderr\n. {place}.text\ncode=$?\necho $code >{place}.code\n"
                          "[ $code -eq 0 ] || exit $code")
    return "\n".join(script) + "\n"


def run(steps: list[Step], folder: pathlib.Path) -> list[dict[str, object]]:
    """Does the steps in the folder. What each command has said, up to the first that fails."""
    with tempfile.TemporaryDirectory() as temporary:
        said = pathlib.Path(temporary)
        for number, step in enumerate(steps):
            (said / f"{number}.text").write_text(step.text, encoding="utf-8")
        script = said / "script"
        script.write_text(script_of(steps, said), encoding="utf-8")
        ended = subprocess.run(["bash", str(script)], cwd=folder, check=False).returncode

        def read(number: int, ending: str) -> str:
            path = said / f"{number}.{ending}"
            return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

        record: list[dict[str, object]] = []
        for number, step in enumerate(steps):
            if step.file or not (said / f"{number}.stdout").exists():
                continue
            code = read(number, "code").strip()  # none: the command has ended the shell
            record.append({"page": step.page, "line": step.line, "command": step.text,
                           "code": int(code) if code else ended,
                           "stdout": read(number, "stdout"), "stderr": read(number, "stderr")})
        return record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    parser.add_argument("--run", metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("--record", metavar="FILE", type=pathlib.Path)
    words = parser.parse_args()
    try:
        steps = [step for page in words.pages
                 for step in steps_of(page, pathlib.Path(page).read_text(encoding="utf-8"))]
    except WrongPage as wrong:
        print(wrong, file=sys.stderr)
        return 1
    if not words.run:
        print("\n".join(map(str, steps)))
        return 0
    record = run(steps, words.run)
    if words.record:
        words.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for one in record:
        print(f"{one['page']}:{one['line']}: $ {one['command']}")
    wanted = [step for step in steps if not step.file]
    if len(record) < len(wanted) or not record or record[-1]["code"] != 0:
        last = record[-1] if record else None
        print(f"FAILED with {last['code']}:\n{last['stdout']}{last['stderr']}" if last else "FAILED: nothing was run")
        return 1
    print(f"{len(wanted)} commands, {len(steps) - len(wanted)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
