# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""What scripts/gpu-check found out about a GPU and a build, in a folder that several runs may fill, group by group."""

import dataclasses
import json
import os

GROUPS = ["tests", "meshes", "curve", "sanitizer", "benchmarks", "bars"]


class OtherFacts(Exception):
    """The folder has a report of something else."""


@dataclasses.dataclass
class Result:
    group: str
    name: str
    verdict: str  # passed, FAILED, skipped
    seconds: float = 0
    note: str = ""


class Findings:
    """facts: what all results are of, such as the GPU and the build; command: of this run."""

    def __init__(self, folder, facts, machine, command):
        self.folder = folder
        self.facts = facts
        self.machines, self.commands = [], []
        self.results = {}  # by name, of earlier runs, too
        self.pages = {}  # of Markdown, by the check that made them
        self.keep_earlier()
        for known, one in ((self.machines, machine), (self.commands, command)):
            if one not in known:
                known.append(one)

    def keep_earlier(self):
        path = self.folder / "gpu-check.json"
        try:
            record = json.loads(path.read_text())
            others = [f"{name} {record['facts'][name]}, not {fact}" for name, fact in self.facts.items()
                      if record["facts"][name] != fact]
            self.machines, self.commands, self.pages = record["machines"], record["commands"], record["pages"]
            self.results = {one["name"]: Result(**one) for one in record["results"]}
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError) as problem:
            raise OtherFacts(f"{path} is no report that this gpu-check can go on with ({problem!r})") from problem
        if others:
            raise OtherFacts(f"{path} is the report of something else: {'; '.join(others)}")

    def add(self, result):
        """In the place of what an earlier run found. A check that is skipped finds nothing; a bar is judged by the newest."""
        if result.verdict != "skipped" or result.group == "bars" or result.name not in self.results:
            self.results[result.name] = result
        self.write()

    def write(self):
        results = sorted(self.results.values(), key=lambda one: GROUPS.index(one.group))
        record = {"facts": self.facts, "machines": self.machines, "commands": self.commands,
                  "results": [dataclasses.asdict(one) for one in results], "pages": self.pages}
        replace(self.folder / "gpu-check.json", json.dumps(record, indent=1) + "\n")
        facts = "; ".join(f"{name} {fact}" for name, fact in self.facts.items())
        text = f"# What a GPU proved\n\n{facts}.\n\n```\n" + "\n".join(self.commands) + "\n```\n\n"
        text += "| group | check | | s | |\n| --- | --- | --- | --- | --- |\n"
        for one in results:
            text += f"| {one.group} | {one.name} | {one.verdict} | {one.seconds} | {one.note.replace('|', '/')} |\n"
        for name in sorted(self.pages):
            text += "\n#" + self.pages[name]
        replace(self.folder / "gpu-check.md", text)


def replace(path, text):
    """A run that is killed leaves what was there before."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.replace(new, path)
