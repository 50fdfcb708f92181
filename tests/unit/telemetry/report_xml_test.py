# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs fourfold-report on a run with every kind of record and reads the page with Python's XML parser."""

import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree


def records():
    yield {"event": "start", "time": 1.7e9, "from_step": 0, "steps": 300, "mesh": "pp1 dp2 cp1 tp1", "version": "0.1.0",
           "rank_hosts": ["a<b", "c&d"], "parameters": 1000, "libraries": [["MPI \"x\"", "1"]]}
    for step in range(1, 301):
        if step == 151:
            yield {"event": "resume", "time": 1.7e9, "from_step": 150, "steps": 300, "checkpoint": "step-150",
                   "rank_hosts": ["e"]}
        loss = None if step in (20, 21, 200) else 1 + 3 / step
        yield {"event": "step", "time": 1.7e9 + step, "step": step, "loss": loss, "grad_norm": 1e300 if step == 5 else 1,
               "lr": 1e-3, "tokens": step * 64, "step_s": 0.25, "tokens_per_s": 256, "data_s": 0.001}
        if step % 50 == 0:
            yield {"event": "eval", "time": 1.7e9 + step, "step": step, "loss": 1.5, "tokens": 100, "eval_s": 1}
            yield {"event": "checkpoint", "time": 1.7e9 + step, "step": step, "path": f"step-{step}", "bytes": 10,
                   "save_s": 1}
    yield {"event": "end", "time": 1.7e9 + 301, "step": 300, "code": 65, "reason": "loss > 1 & rising"}


def main(program):
    with tempfile.TemporaryDirectory() as scratch:
        run = pathlib.Path(scratch) / "run"
        run.mkdir()
        (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records()))
        both = pathlib.Path(scratch) / "both.html"
        subprocess.run([program, str(run)], check=True)
        subprocess.run([program, str(run), str(run), "-o", str(both)], check=True)
        for page, lines in ((run / "report.html", 2), (both, 3)):
            root = ElementTree.parse(page).getroot()
            charts = root.findall(".//svg")
            assert len(charts) == 6, page
            assert len(charts[0].findall(".//path[@class]")) >= lines, page
            assert len(charts[0].findall(".//path[@class='gap']")) >= 3, page
        missing = subprocess.run([program, str(run / "absent")], capture_output=True, text=True)
        assert missing.returncode == 78 and "metrics.jsonl" in missing.stderr, missing


main(sys.argv[1])
