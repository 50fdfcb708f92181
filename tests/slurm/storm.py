# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Chains of jobs on a test cluster, and events that befall them: storm.bash starts it.

usage: storm.py FOURFOLD CLUSTER_SCRIPT SEED EVENTS CHAINS

Each chain trains the run in run.toml on two nodes, two chains at a time, in 3 to 6 jobs. Of each kind of event there are as many, in an
order that the seed gives, and then one more of each until there are CHAINS chains of 3 to 6 jobs, and every third event came while a job
of its chain ended, or the next one started. storm.jsonl has what was done. At the end everything is compared with what `fourfold status --json`, metrics.jsonl and Slurm's records of jobs say (storm_check.py).
"""

import json
import os
import random
import re
import signal
import sys
import threading
import time

from storm_check import ended, events_of, losses, lost_saves, run, slurm_jobs, status_of

FOURFOLD, CLUSTER, SEED, EVENTS, CHAINS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
PARTITION = "test"
CONF = os.environ["SLURM_CONF"].encode()
MOST_LINKS = 20

KINDS = ["TERM", "USR2", "scancel", "scancel_full", "rank", "srun", "script", "freeze", "node", "slurmd", "slurmctld", "drained", "edited"]
# After these a job goes on as a rule.
HARMLESS = {"freeze", "slurmctld", "drained", "edited"}
# These befall all chains that live then.
SHARED = {"slurmctld", "drained"}
LIVING = []
# A chain that has had so many jobs is only told of what does not end it.
MOST_JOBS, LEAST_JOBS = 5, 3
# Some end early, by a reason of the table.
MOST_CHAINS = CHAINS + -(-CHAINS // 6)
SHORTEST, LONGEST = 3, 6
# One node or daemon at a time.
GLOBAL = threading.Lock()
LOG = threading.Lock()
POOL = threading.RLock()


def cluster(*words):
    return run(CLUSTER, *words, timeout=200)


def environ_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
    except OSError:
        return {}


def processes_of(job, pattern):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        own = environ_of(pid)
        if re.search(pattern, words) and own.get(b"SLURM_JOB_ID") == str(job).encode() and own.get(b"SLURM_CONF") == CONF:
            found.append(int(pid))
    return found


def kill(pids, sign):
    for pid in pids:
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            pass
    return bool(pids)


class Chain:
    def __init__(self, number, rng):
        self.number, self.rng, self.name = number, rng, f"chain{number:02d}"
        self.events = []  # kinds that were meant for it
        self.verdict = None
        self.shared = set()  # and those that were not, but befell it

    def jobs(self, state=None):
        words = ["squeue", "--noheader", f"--name={self.name}", "--format=%A %T %N"] + ([f"--states={state}"] if state else [])
        return [line.split() for line in run(*words).stdout.splitlines()]

    def running(self):
        for job, state, *nodes in self.jobs("RUNNING"):
            return job, run("scontrol", "show", "hostnames", nodes[0]).stdout.split() if nodes else []
        return None, []

    def links(self):
        return len({one["job"] for one in events_of(f"{self.name}/attempts.jsonl") if one["event"] == "begin"})

    def starts(self):
        return sum(one["event"] in ("start", "resume") for one in events_of(f"{self.name}/metrics.jsonl"))

    def steps_since_start(self):
        steps = 0
        for one in events_of(f"{self.name}/metrics.jsonl"):
            steps = 0 if one["event"] in ("start", "resume") else steps + (one["event"] == "step")
        return steps

    def submit(self):
        words = [FOURFOLD, "submit", f"{self.name}.toml", "--nodes", "2", "--tasks-per-node", "1", "--time", "4", "--chain", str(MOST_LINKS),
                 "--name", self.name, "--set", f"log.dir={self.name}", "--go"]
        if self.number % 2:
            words += ["--restarts-inside", "2"]
        with open("run.toml", encoding="utf-8") as source, open(f"{self.name}.toml", "w", encoding="utf-8") as own:
            own.write(source.read())
        for _ in range(20):  # the controller may be away
            done = run(*words)
            if done.returncode == 0:
                return
            time.sleep(2)
        raise RuntimeError(f"{self.name} is not submitted: {done.stderr}")

    def is_over(self):
        """Seen twice: a controller that has just come back may not know its jobs yet."""
        for wait_s in (2, 0):
            if run("squeue", "--noheader").returncode != 0 or self.jobs():
                return False
            time.sleep(wait_s)
        return True


def note(chain, kind, phase, done, **more):
    if kind in SHARED:
        for one in list(LIVING):
            one.shared.add(kind)
    with LOG, open("storm.jsonl", "a", encoding="utf-8") as log:
        log.write(json.dumps({"time": time.time(), "chain": chain.name, "kind": kind, "phase": phase, "done": done, **more}) + "\n")


def back(node):
    cluster("start-node", node[4:])
    for _ in range(60):
        if run("sinfo", "--noheader", "--states=idle,mixed,alloc,comp", f"--nodes={node}", "--format=%T").stdout.strip() not in ("", "down*"):
            return
        time.sleep(0.5)


def inject(kind, chain):
    """One event. Whether it could be done."""
    job, nodes = chain.running()
    rng = chain.rng

    def processes(pattern):
        """They may come in a moment, where the job has just begun."""
        found = []
        wait_for(lambda: found.extend(processes_of(job, pattern)) or found, 2)
        return found

    if job is None and kind not in ("slurmctld", "drained", "edited"):
        return False
    if kind in ("TERM", "USR2"):
        return run("scancel", f"--signal={kind}", job).returncode == 0
    if kind == "scancel":
        return run("scancel", job).returncode == 0
    if kind == "scancel_full":
        return run("scancel", "--full", f"--signal={rng.choice(['USR1', 'USR2'])}", job).returncode == 0
    if kind == "rank":
        ranks = processes(r"^\S*fourfold-train")
        return bool(ranks) and kill([rng.choice(ranks)], signal.SIGKILL)
    if kind == "srun":
        return kill(processes(r"^srun .*fourfold.* train ")[:1], signal.SIGKILL)
    if kind == "script":
        return kill(processes(r"^(/bin/)?bash .*chain\.sbatch")[:1], signal.SIGKILL)
    if kind == "freeze":
        ranks = processes(r"^\S*fourfold-train")
        if not ranks:
            return False
        rank = rng.choice(ranks)
        kill([rank], signal.SIGSTOP)
        time.sleep(rng.uniform(1, 12))
        kill([rank], signal.SIGCONT)
        return True
    if kind in ("node", "slurmd"):
        with GLOBAL:
            node = rng.choice(nodes) if nodes else None
            if node is None or cluster("kill-" + kind, node[4:]).returncode != 0:
                return False
            time.sleep(rng.uniform(2, 25))
            back(node)
        return True
    if kind == "slurmctld":
        with GLOBAL:
            # Killed, it forgets its last seconds; told to end, as by its service, nothing.
            cluster(rng.choice(["kill-ctld", "stop-ctld"]))
            time.sleep(rng.uniform(1, 10))
            return cluster("start-ctld").returncode == 0
    if kind == "drained":
        with GLOBAL:
            run("scontrol", "update", f"PartitionName={PARTITION}", f"State={rng.choice(['DOWN', 'DRAIN'])}")
            time.sleep(rng.uniform(2, 12))
            return run("scontrol", "update", f"PartitionName={PARTITION}", "State=UP").returncode == 0
    if kind == "edited":
        choice = rng.randrange(3)
        if choice == 0:
            os.replace(f"{chain.name}.toml", f"{chain.name}.toml.gone")
        else:
            with open(f"{chain.name}.toml", "w", encoding="utf-8") as own:
                own.write("half = sav" if choice == 1 else '[model]\nlayers = 5\n[log]\ndir = "elsewhere"\n')
        return True
    raise ValueError(kind)


def wait_for(condition, seconds):
    until = time.time() + seconds
    while time.time() < until:
        if condition():
            return True
        time.sleep(0.2)
    return False


def resume_drained():
    """What init is slow to reap Slurm takes for a process that cannot be killed, and drains its node."""
    for node in run("sinfo", "--noheader", "--Node", f"--partition={PARTITION}", "--states=drain,drained,draining", "--format=%N").stdout.split():
        run("scontrol", "update", f"NodeName={node}", "State=RESUME")


class Pool:
    """The events that are still to come, so many of each kind."""

    def __init__(self, events):
        self.left = {kind: events // len(KINDS) + (number < events % len(KINDS)) for number, kind in enumerate(KINDS)}
        self.done = self.at_edges = 0

    def draw(self, rng, kinds, preferred):
        """Of these kinds one that is left, rather of those that are preferred; none: there is none."""
        with POOL:
            possible = [kind for kind in kinds if self.left[kind] > 0]
            if not possible:
                return None
            kind = rng.choices(possible, weights=[self.left[one] * (4 if one in preferred else 1) for one in possible])[0]
            self.left[kind] -= 1
            return kind

    def put(self, kind, done, phase):
        with POOL:
            if not done:
                self.left[kind] += 1
            else:
                self.done += 1
                self.at_edges += phase != "middle"

    def is_empty(self):
        return not any(self.left.values())

    def refill(self):
        with POOL:
            for kind in KINDS:
                self.left[kind] += 1

    def wants_edge(self):
        return 3 * self.at_edges <= self.done + 8  # some to spare: not each can be done there


def one_event(chain, pool, kinds, phase=lambda: "middle"):
    """Its kind; none: nothing was done."""
    # Those that end no job come while one ends, or there would be few that do.
    preferred = set(KINDS) - HARMLESS if phase() == "middle" and pool.wants_edge() else HARMLESS if pool.wants_edge() else set()
    kind = None if chain.is_over() else pool.draw(chain.rng, kinds, preferred)
    if kind is None:
        return None
    when = phase()
    done = inject(kind, chain)
    note(chain, kind, when, done)
    pool.put(kind, done, when)
    if done:
        chain.events.append(kind)
    resume_drained()
    return kind if done else None


def kinds_for(chain, pool, quota):
    """What may befall the chain now; none: it is let go on to its end."""
    jobs = chain.links()
    if jobs >= MOST_JOBS:
        return sorted(HARMLESS) if len(chain.events) < quota and any(pool.left[kind] for kind in HARMLESS) else []
    if len(chain.events) < quota:
        return KINDS
    return [kind for kind in KINDS if kind not in HARMLESS] if jobs < LEAST_JOBS else []


def befall(chain, pool, quota):
    """One chain, from its submission to its end."""
    chain.submit()
    for _ in range(40):
        kinds = kinds_for(chain, pool, quota)
        if not kinds or chain.is_over() or pool.is_empty():
            break
        wait_for(lambda: chain.steps_since_start() > 60 or chain.is_over(), 90)
        time.sleep(chain.rng.uniform(0, 3))
        starts, job = chain.starts(), chain.running()[0]

        def phase(starts=starts, job=job):
            return "middle" if chain.starts() > starts else "end" if chain.running()[0] == job else "start"

        kind = one_event(chain, pool, kinds)
        # While the job ends, or when the next one begins; or twice.
        for _ in range(2 if kind is not None and kind not in HARMLESS else 0):
            if not pool.wants_edge() or not kinds_for(chain, pool, quota) or phase() == "middle":
                break
            if chain.rng.random() < 0.5:
                time.sleep(chain.rng.uniform(0, 1.5))
            else:
                wait_for(lambda: phase() != "end" or chain.is_over(), 20)
                time.sleep(chain.rng.uniform(0, 1))
            for _ in range(4):  # of a job that ends there may be no rank left to kill
                if one_event(chain, pool, kinds_for(chain, pool, quota), phase) is not None or phase() == "middle":
                    break
                time.sleep(0.2)
        # It goes on, or it is over; what befell it may also have done nothing to it.
        wait_for(lambda: chain.starts() > starts or chain.is_over(), 6)
    if not wait_for(lambda: resume_drained() or chain.is_over(), 600):
        note(chain, "driver", "end", False, text="the chain is not over after 600 s: " + run("squeue").stdout)
        run("scancel", f"--name={chain.name}")


def is_whole(jobs):
    return SHORTEST <= jobs <= LONGEST


def worker(numbers, pool, chains):
    while True:
        with POOL:
            if pool.is_empty() and (sum(is_whole(chain.links()) for chain in chains) < CHAINS + 2 or 3 * pool.at_edges < pool.done):
                pool.refill()
            if not numbers or pool.is_empty():
                return
            number = numbers.pop(0)
            chain = Chain(number, random.Random(SEED * 1000 + number))
            chains.append(chain)
            # As many as are left for each of the chains that are to come.
            quota = -(-sum(pool.left.values()) // max(MOST_CHAINS - len(chains) + 1, 1))
        LIVING.append(chain)
        try:
            befall(chain, pool, min(quota, 9))
        except Exception as error:  # pylint: disable=broad-except  # told, and the other chains go on
            note(chain, "driver", "end", False, text=repr(error))
        LIVING.remove(chain)
        print(f"{chain.name}: {ended(chain)}; {chain.links()} jobs; got {' '.join(chain.events)}", flush=True)


def main():
    pool = Pool(EVENTS)
    chains, numbers = [], list(range(1, 3 * CHAINS))
    workers = [threading.Thread(target=worker, args=(numbers, pool, chains)) for _ in range(2)]
    for one in workers:
        one.start()
        time.sleep(5)
    for one in workers:
        one.join()

    broken = []
    calm = losses("calm/metrics.jsonl")
    finished = 0
    for chain in chains:
        said = ended(chain)
        if said.startswith("WRONG"):
            broken.append(f"{chain.name}: {said}; got {chain.events}")
        own = losses(f"{chain.name}/metrics.jsonl")
        if any(own[step] != calm[step] for step in own) or (said == "finished" and own.keys() != calm.keys()):
            broken.append(f"{chain.name}: other losses than the calm run")
        finished += said == "finished"
        if lost_saves(chain):
            broken.append(f"{chain.name}: saves lost: {lost_saves(chain)}")
    happened = [one for one in events_of("storm.jsonl") if one["done"]]
    counts = {kind: sum(one["kind"] == kind for one in happened) for kind in KINDS}
    at_edges = sum(one["phase"] != "middle" for one in happened)
    broken += [f"{one['chain']}: {one['text']}" for one in events_of("storm.jsonl") if one["kind"] == "driver"]
    jobs, by_slurm = slurm_jobs({chain.name for chain in chains}), {}
    lengths = {chain.name: len({job["job"] for job in jobs if job["name"] == chain.name}) for chain in chains}
    whole = sum(map(is_whole, lengths.values()))
    for job in jobs:
        by_slurm[job["name"]] = by_slurm.get(job["name"], 0) + (job["end"] - job["start"]) * job["nodes"] / 3600
    # One whose last job has left no end, and has no next one, counts as starting until it has been silent for ten minutes.
    wait_for(lambda: not any(status_of(chain)["state"] in ("starting", "running") for chain in chains), 700)
    by_status = {chain.name: status_of(chain)["node_hours_used"] for chain in chains}
    ratio = sum(by_status.values()) / max(sum(by_slurm.values()), 1e-9)
    print(f"seed {SEED}: {len(happened)} events, {at_edges} of them in starts and ends, {counts}")
    print(f"{len(chains)} chains of {sum(lengths.values())} jobs, {finished} finished; node-hours {sum(by_status.values()):.4f} by status, "
          f"{sum(by_slurm.values()):.4f} by Slurm, ratio {ratio:.4f}; {whole} chains of 3 to 6 jobs")
    for chain in chains:
        print(f"  {chain.name}: {lengths[chain.name]} jobs, {by_status[chain.name]:.4f} of {by_slurm.get(chain.name, 0):.4f}")
    if abs(ratio - 1) > 0.05:
        broken.append(f"node-hours differ: {ratio:.4f}")
    if len(happened) < EVENTS or whole < CHAINS or 3 * at_edges < len(happened):
        broken.append(f"only {len(happened)} events, {at_edges} of them in starts and ends, {whole} chains of 3 to 6 jobs")
    for one in broken:
        print("FAILED", one)
    sys.exit(bool(broken))


main()
