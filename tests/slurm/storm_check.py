# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""What became of a chain of the storm (storm.py): by `fourfold status --json`, its files, and Slurm's records and log. sys.argv[1] is fourfold."""

import json
import os
import re
import subprocess
import sys

FOURFOLD = sys.argv[1]
# A script that these end in its first seconds has not begun a start, and may not have queued its successor.
ENDS_AT_ONCE = {"script", "node", "slurmd", "scancel", "srun", "TERM"}


def says(key, pattern, *codes):
    """Whether the chain's last end says so: its "reason", or "no_next", why there is no next job."""
    return lambda end: (not codes or end["code"] in codes) and re.search(pattern, end[key])


# What a chain may end with beside "finished": why, how it is known, and the kinds of events of which it must have got one.
ALLOWED = [
    ("no next job could be queued: the controller was away, or the partition closed, at each of the tries",
     says("no_next", r"sbatch|Slurm does not answer", 75, 85, 86, None), {"slurmctld", "drained"}),
    ("its last job was cancelled before it had queued another", says("no_next", r"was cancelled before", 75, None), {"scancel"}),
    ("the controller was killed before it had saved that its last job had begun, started that once more, and its node ended both",
     lambda end: end["was_started_twice"], {"slurmctld"}),
    ("three starts in a row met their end before a checkpoint",
     says("reason", r"got no further", 93), {"rank", "srun", "script", "freeze", "node", "slurmd", "scancel"}),
    ("its last job ended before its script could begin a start", lambda end: end["has_not_begun"], ENDS_AT_ONCE),
    ("the controller was killed before it had saved that there is its last job", lambda end: end["is_forgotten"], {"slurmctld"}),
]


def run(*words, timeout=60):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", "")


def events_of(path):
    records = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    records.append(json.loads(line))
                except ValueError:  # being written
                    pass
    except FileNotFoundError:
        pass
    return records


def ended(chain):
    """How it did, asked once: Slurm may give a number that it has forgotten to another job."""
    if chain.verdict is None:
        chain.verdict = verdict(chain)
    return chain.verdict


def status_of(chain):
    return json.loads(run(FOURFOLD, "status", "--json", chain.name).stdout)["runs"][0]


def is_forgotten(chain, job):
    """Slurm gives the number of a job that it has forgotten to the next one; and it may have forgotten the first job of a chain, too."""
    shown = run("scontrol", "--oneliner", "show", "job", job) if job else None
    return shown is None or f" JobName={chain.name} " not in shown.stdout


def was_started_twice(job):
    """Slurm's log: after it has come back it allocates nodes to the job again, on which the job's processes still are, and kills it."""
    ctld = os.path.join(os.environ["TEST_CLUSTER_DIR"], "log", "slurmctld.log")
    with open(ctld, encoding="utf-8", errors="replace") as log:
        lines = [line for line in log if re.search(rf"(Allocate|Started) JobId={job} |Requeue of JobId={job} returned an error|slurmctld version", line)]
    text = "".join(lines)
    return re.search(rf"JobId={job} .*\n(.*slurmctld version.*\n)+.*(Allocate|Started) JobId={job} .*\n.*Requeue of JobId={job} returned an error", text) is not None


def verdict(chain):
    """"finished", or why not: "WRONG ..." where the table does not allow it."""
    try:
        status = status_of(chain)
    except (ValueError, IndexError):
        return "WRONG: no status"
    if status["state"] == "finished":
        return "finished"
    last = status["attempts"][-1] if status["attempts"] else {}
    code, reason, no_next = last.get("code"), last.get("reason") or "", last.get("no_next") or ""
    refused = status.get("refused") or {}
    if refused.get("code") == 93:
        code, reason = 93, refused["reason"]
    jobs = slurm_jobs({chain.name})
    begun = {one["job"] for one in events_of(f"{chain.name}/attempts.jsonl") if one["event"] == "begin"}
    end = {"code": code, "reason": reason, "no_next": no_next,
           "is_forgotten": is_forgotten(chain, last.get("job")),
           "was_started_twice": was_started_twice(last.get("job")),
           "has_not_begun": bool(jobs) and jobs[-1]["job"] not in begun}
    told = f"{status['state']}, code {code}, {reason[:120]}; no next job: {no_next[:120]}"
    for why, is_it, kinds in ALLOWED:
        if is_it(end) and kinds & (chain.shared | set(chain.events)):
            return f"allowed ({why}): {told}"
    return f"WRONG: {told}"


def losses(path):
    last = {}
    for one in events_of(path):
        if one["event"] in ("start", "resume"):
            last = {step: loss for step, loss in last.items() if step <= one["from_step"]}
        elif one["event"] == "step":
            last[one["step"]] = one["loss"]
    return last


def lost_saves(chain):
    """Resumes from before a save that was announced before them."""
    saved, lost = 0, []
    for one in events_of(f"{chain.name}/metrics.jsonl"):
        if one["event"] == "checkpoint":
            saved = max(saved, one["step"])
        elif one["event"] in ("start", "resume") and one["from_step"] < saved:
            lost.append((saved, one["from_step"]))
    return lost


def slurm_jobs(names):
    """Those that have begun and ended, by Slurm's accounts; one that has lost a node has two entries."""
    jobs = []
    rows = run("env", "SLURM_TIME_FORMAT=%s", "sacct", "--duplicates", "--allocations", "--noheader", "--parsable2", "--starttime=now-1day",
               "--format=JobIDRaw,JobName,Start,End,NNodes").stdout
    for line in rows.splitlines():
        job, name, start, end, nodes = line.split("|")
        if name in names and start.isdigit() and end.isdigit():
            jobs.append({"job": job, "name": name, "start": int(start), "end": int(end), "nodes": int(nodes)})
    return sorted(jobs, key=lambda job: job["start"])
