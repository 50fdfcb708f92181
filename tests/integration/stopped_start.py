# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Starts of a run that stand still (SIGSTOP) and go on when another start has taken the run over:

    stopped_start.py TRAIN SHIM RUN_FILE calls|moments COUNT [SEED]

`calls`: one rank, stopped by the shim (tests/unit/io/save/crash_shim.cpp) before COUNT of its calls that change the file system
below log.dir. `moments`: two ranks, both stopped COUNT times at a random time after they have the run's leases. The second start trains on, logs and saves;
then the first goes on until it ends, and no file of the run may change by that. Every other time the second has ended by
then, else it stands still meanwhile (not where the first has no lease yet: it would take the second for dead). Prints the seed and what the first ended with; ends with 1 where a file changed."""
import concurrent.futures
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

TRAIN, SHIM, RUN_FILE, HOW, COUNT = sys.argv[1:6]
SEED = int(sys.argv[6]) if len(sys.argv) > 6 else random.randrange(1 << 31)
LEASES = (".run-lease", "checkpoints/.lease")
STEPS = 12  # of the first start; the second trains on from there
PATIENCE_S = 120
# What a process notes of itself before it becomes the program.
NOTED = ["bash", "-c", 'echo $$ >>"$0" && exec "$@"']


def until(holds, what):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("waited in vain until " + what)
        time.sleep(0.01)


def state_of(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(") ", 1)[1][0]
    except OSError:
        return "X"


class Start:
    """One start of the run in `folder`, on `ranks` ranks."""

    def __init__(self, folder, ranks, steps, name, environment=None):
        self.pids_file = folder / f"{name}.pids"
        self.output = folder / f"{name}.output"
        command = [TRAIN, RUN_FILE, "--set", f"log.dir='{folder}/run'", "--set", f"train.steps={steps}"]
        command = NOTED + [str(self.pids_file)] + command
        if ranks > 1:
            command = [os.environ["MPIEXEC"], "-n", str(ranks)] + command
        self.ranks = ranks
        with open(self.output, "wb") as output:
            self.launcher = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                             env={**os.environ, **(environment or {})})

    def pids(self):
        try:
            return [int(line) for line in self.pids_file.read_text().split()]
        except OSError:
            return []

    def has_ended(self):
        return self.launcher.poll() is not None

    def stands_still(self):
        return len(self.pids()) == self.ranks and all(state_of(pid) == "T" for pid in self.pids())

    def signal(self, number):
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def end(self):
        return self.launcher.wait(PATIENCE_S)

    def text(self):
        return self.output.read_text(errors="replace")[-2000:]


def gone_process():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def take_for_dead(folder):
    """Its leases name a process that is gone: who finds them need not watch them for half a minute."""
    for lease in LEASES:
        try:
            with open(folder / "run" / lease, "r+", encoding="utf-8") as file:
                words = file.read().split(" ")
                words[5] = str(gone_process())
                file.seek(0)
                file.write(" ".join(words))
                file.truncate()
        except (OSError, IndexError):  # it has none, or not yet
            pass


def files_of(run):
    found = {}
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        if any(part.startswith((".run-lease", ".lease")) for part in path.relative_to(run).parts):
            continue
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def differences(before, after):
    return [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]


def has_saved(run, last_before):
    steps = [int(path.name[5:]) for path in run.glob("checkpoints/step-*")]
    return bool(steps) and max(steps) > last_before


def newest(run):
    return max((int(path.name[5:]) for path in run.glob("checkpoints/step-*")), default=0)


def attempt(number, first, stop, folder):
    """@return what the first start ended with; nothing: it had ended before it was stopped."""
    try:
        stop(first)
        if not first.stands_still():
            first.signal(signal.SIGCONT)
            first.end()
            return None
        take_for_dead(folder)
        run = folder / "run"
        lives = number % 2 == 0 and all((run / lease).exists() for lease in LEASES)
        begins_at = newest(run)
        second = Start(folder, first.ranks, 1000000 if lives else STEPS + 8, "second")
        if lives:
            until(lambda: second.has_ended() or has_saved(run, begins_at), "the second start has saved")
            second.signal(signal.SIGSTOP)
            until(lambda: second.has_ended() or second.stands_still(), "the second start stands still")
            assert not second.has_ended(), "the second start has ended: " + second.text()
        else:
            assert second.end() == 0, "the second start: " + second.text()
        before = files_of(run)
        first.signal(signal.SIGCONT)
        until(lambda: all(state_of(pid) in "XZ" for pid in first.pids()), "the first start ends")
        code = first.end()
        changed = differences(before, files_of(run))
        assert not changed, f"changed by the first start (ended with {code}): {changed}\n{first.text()}"
        assert code != 73, f"the first start does not say that it was taken over: {first.text()}"
        if lives:
            second.signal(signal.SIGCONT)
            second.signal(signal.SIGTERM)
            code_of_second = second.end()
            assert code_of_second == 75, f"the second start ended with {code_of_second}: {second.text()}"
        left = [path.name for path in [*run.glob(".run-lease*"), *run.glob("checkpoints/.lease*")]]
        assert not left, f"left behind: {left}"
        third = Start(folder, first.ranks, newest(run) + 2, "third")
        assert third.end() == 0, "a third start: " + third.text()
        return code
    finally:
        for name in ("first", "second", "third"):
            for pid in (int(line) for line in (folder / f"{name}.pids").read_text().split()) if (
                    folder / f"{name}.pids").exists() else []:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def at_call(number, at):
    folder = pathlib.Path(f"call-{at}").absolute()
    folder.mkdir()
    shim = {"LD_PRELOAD": SHIM, "FOURFOLD_CRASH_UNDER": str(folder / "run"), "FOURFOLD_CRASH_AT": str(at),
            "FOURFOLD_CRASH_HOW": "stop"}
    code = attempt(number, Start(folder, 1, STEPS, "first", shim),
                   lambda first: until(lambda: first.has_ended() or first.stands_still(), "it stands still"), folder)
    return code, folder


def at_moment(number, seconds):
    folder = pathlib.Path(f"moment-{number}").absolute()
    folder.mkdir()

    def stop(first):
        # Without its leases it would be the later start of the two.
        until(lambda: all((folder / "run" / lease).exists() for lease in LEASES), "it has its leases")
        time.sleep(seconds)
        first.signal(signal.SIGSTOP)
        time.sleep(0.02)

    code = attempt(number, Start(folder, 2, 400, "first"), stop, folder)
    return code, folder


def calls_there_are():
    folder = pathlib.Path("rehearsal").absolute()
    folder.mkdir()
    first = Start(folder, 1, STEPS, "first", {"LD_PRELOAD": SHIM, "FOURFOLD_CRASH_UNDER": str(folder / "run"),
                                              "FOURFOLD_CRASH_COUNT": str(folder / "calls")})
    assert first.end() == 0, first.text()
    return int((folder / "calls").read_text())


def main():
    chosen = random.Random(SEED)
    print(f"seed {SEED}", flush=True)
    if HOW == "calls":
        calls = calls_there_are()
        places = sorted(chosen.sample(range(1, calls + 1), min(int(COUNT), calls)))
        print(f"{len(places)} of {calls} calls")
        work = at_call
    else:
        places = [chosen.uniform(0, 1) for _ in range(int(COUNT))]
        work = at_moment
    codes, failures = {}, 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        attempts = {pool.submit(work, number, place): place for number, place in enumerate(places)}
        for done in concurrent.futures.as_completed(attempts):
            try:
                code, folder = done.result()
                codes[code] = codes.get(code, 0) + 1
                shutil.rmtree(folder)
            except (AssertionError, subprocess.TimeoutExpired) as failure:
                failures += 1
                print(f"{HOW} {attempts[done]}: {failure}", flush=True)
    print("the first starts ended with", ", ".join(f"{code}: {times} times" for code, times in codes.items()))
    stopped = sum(times for code, times in codes.items() if code is not None)
    sys.exit(1 if failures or stopped * 2 < len(places) else 0)


main()
