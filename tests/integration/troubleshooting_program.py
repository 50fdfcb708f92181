#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Provokes messages as provocations/*.ini say, looks for each among those of its entry in docs/troubleshooting, and
tries the fix.

A section is one provocation: `entry` (the title of the entry), `code` (the exit code), `says` (what is said, where the
words are a library's), `setup` (shell, may be left out), `provoke` (the command that is refused) and `fix` (it must end
with 0). Each begins in a copy of BASE, which has text.txt, its tokens, run.toml and the folder `run` of a run that has
finished at step 2; `again` trains that run, and `fresh` one in the folder `new`.

Usage: troubleshooting_program.py SOURCE_DIR BASE [NAME...], in an empty folder and with fourfold in PATH. Without names
it draws as many as FOURFOLD_PROVOCATIONS says (30; `all` takes all) by the seed FOURFOLD_SEED, or else by the number of
the day."""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

PRELUDE = """again() { fourfold train run.toml "$@"; }
fresh() { fourfold train run.toml --set log.dir=new "$@"; }
"""


def run(shell: str, folder: pathlib.Path) -> tuple:
    """(exit code, what it wrote to standard error)"""
    done = subprocess.run(["bash", "-c", PRELUDE + shell], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", timeout=60)
    return done.returncode, done.stderr


def says(message, said: str) -> bool:
    """Whether a text has the message, with anything where the program fills something in."""
    parts = " ".join(message.text.split()).split("{}")
    return re.search(".*?".join(map(re.escape, parts)), " ".join(said.split())) is not None


def wrong_with(case, entry, folder: pathlib.Path) -> tuple:
    """What does not hold, and the messages that were seen."""
    if "setup" in case:
        code, said = run(case["setup"], folder)
        if code != 0:
            return f"the setup ends with {code}: {said}", set()
    code, said = run(case["provoke"], folder)
    seen = {message for message in entry.messages
            if (case["says"] in said if "says" in case else says(message, said))}
    if not seen:
        return f"says no message of [{entry.title}] (code {code}): {said}", seen
    if code != int(case["code"]):
        return f"ends with {code}, not {case['code']}: {said}", seen
    if not any(code in message.codes or not message.codes for message in seen):
        return f"ends with {code}, which the page does not say", seen
    code, said = run(case["fix"], folder)
    return (f"the fix ends with {code}: {said}" if code != 0 else None), seen


def read_cases(folder: pathlib.Path, read_ini) -> dict:
    cases = {}
    for path in sorted(folder.glob("*.ini")):
        for name, case in read_ini(path).items():
            if name in cases:
                raise SystemExit(f"{path}: [{name}] is there twice")
            if name:
                cases[name] = case
    return cases


def drawn(names: list) -> list:
    # The variables are ours, and unknown to the programs.
    count = os.environ.pop("FOURFOLD_PROVOCATIONS", "30")
    seed = int(os.environ.pop("FOURFOLD_SEED", "") or time.time() // 86400)
    if count == "all":
        return names
    print(f"seed {seed}: {count} of {len(names)} provocations (FOURFOLD_SEED={seed} draws them again)", flush=True)
    return sorted(random.Random(seed).sample(names, int(count)))


def main() -> int:
    root, base = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(root / "tests"))
    import messages
    import troubleshooting
    _, entries = troubleshooting.read_entries(root)
    troubleshooting.assign(messages.Reader(root).read(), entries)
    by_title = {entry.title: entry for entry in entries}
    cases = read_cases(root / "tests/integration/provocations", troubleshooting.read_ini)
    broken = [f"[{name}]: docs/troubleshooting has no [{cases[name]['entry']}]" for name in cases
              if cases[name]["entry"] not in by_title]
    names = sys.argv[3:] or drawn(list(cases))
    all_seen = set()
    for number, name in enumerate([] if broken else names):
        began = time.monotonic()
        folder = pathlib.Path(f"case-{number}").absolute()
        shutil.copytree(base, folder, symlinks=True)
        wrong, seen = wrong_with(cases[name], by_title[cases[name]["entry"]], folder)
        shutil.rmtree(folder)
        all_seen |= seen
        verdict = "FAILED" if wrong else "ok"
        print(f"{verdict:6} [{name}] -> [{cases[name]['entry']}] {time.monotonic() - began:.2f} s", flush=True)
        broken += [f"[{name}]: {wrong}"] if wrong else []
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{len(names)} provoked, {len(all_seen)} different messages, {len(broken)} mistakes")
    return 1 if broken or not names else 0


if __name__ == "__main__":
    sys.exit(main())
