#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints beside the disk by itself, `ckpt reshard` beside `cp`, and both ways beside PyTorch's distributed checkpoints:
medians of measurements taken in turn, as a table. Nothing else should run meanwhile. Needs some 20 GiB on the disk.

    benchmarks/checkpoint_speed/measure.py DIRECTORY --build build/host-release --peer-python PYTHON --markdown table.md
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SAVED = "dp=2,zero=1"
PLANS = ("dp=16384", "pp=4,dp=512,tp=8,zero=1", "dp=16384,zero=1", "tp=8,dp=2048,zero=1")


def records(*command):
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def timed(command):
    """Seconds and the peak of resident memory in MiB."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{command} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def drop_pages(folder):
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def reshard(options, kind):
    """`ckpt reshard`, whose result is on the disk when it ends, and `cp` with the sync of what it wrote, in turn."""
    saved = options.directory / "checkpoints"
    copy = options.directory / "copy"
    rows = {"cp": [], "cp and sync": [], "reshard": []}
    peak = 0
    for repeat in range(options.repeats):
        for turn in range(len(rows)):
            what = list(rows)[(repeat + turn) % len(rows)]  # whoever comes after another is not always the same
            shutil.rmtree(copy, ignore_errors=True)
            os.sync()
            if kind == "cold":
                drop_pages(saved)
            if what == "reshard":
                seconds, mib = timed([options.build / "bin" / "fourfold-ckpt", "reshard", saved, copy, "--to", options.mesh,
                                      "--memory", "256M", "--progress", "none"])
                peak = max(peak, mib)
            else:
                tail = "" if what == "cp" else ' && find "$2" -type f -exec sync -d {} +'
                seconds, _ = timed(["bash", "-c", 'cp -r "$1" "$2"' + tail, "copy", saved, copy])
            rows[what].append(seconds)
    shutil.rmtree(copy, ignore_errors=True)
    return rows, peak


def sharing(options, program, ranks=2):
    """Replicas that each read all of a checkpoint, beside replicas that share the reading. Each rank sees a copy of the files of its own
    at the same path, as nodes have a page cache each; all are on one disk. Needs root."""
    saved = options.directory / "checkpoints"
    shutil.rmtree(saved, ignore_errors=True)
    records(options.mpiexec, "-n", "2", program, options.directory, "--state-gib", 1, "--repeats", 1, "--save-only")
    shutil.rmtree(options.directory / "raw", ignore_errors=True)
    copies = [options.directory / f"copy{rank}" for rank in range(ranks)]
    for copy in copies:
        subprocess.run(["cp", "-r", saved, copy], check=True)
    found = []
    for _ in range(options.repeats):
        for share_from in (0, 2):
            command = [options.mpiexec]
            for copy in copies:
                command += [":"] if len(command) > 1 else []
                command += ["-n", "1", "unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "rank", copy, saved, program,
                            options.directory, "--load-only", "--state-gib", 1, "--repeats", 1, "--loaded", f"dp={ranks}",
                            "--share-reads-from", share_from]
            found += [each | {"share_from": share_from} for each in records(*command)]
    for copy in copies:
        shutil.rmtree(copy)
    return found


def rate(byte_count, seconds):
    return f"{byte_count / statistics.median(seconds) / 1e9:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path, help="on the disk in question")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/host-release"))
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--mesh", default="tp=2,pp=2", help="that reshard cuts for")
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--parts", nargs="+", default=["speed", "peer", "reshard", "plan"],
                        choices=["speed", "peer", "reshard", "plan", "sharing"])
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    parser.add_argument("--markdown", type=pathlib.Path, help="where to write the table")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    program = options.build / "bin" / "checkpoint_speed"
    found = []
    lines = ["| | GB/s | beside it | GB/s | ratio |", "|---|---|---|---|---|"]
    ours = {}
    if "speed" in options.parts:
        for each in records(options.mpiexec, "-n", "2", program, options.directory, "--repeats", options.repeats):
            found.append(each)
            kind, mesh, *how = each["what"].split()
            if kind == "save" or mesh == SAVED:
                ours[" ".join([kind, *[word for word in how if word != "reserved"]])] = each["ours_s"]
            ratio = statistics.median(each["raw_s"]) / statistics.median(each["ours_s"])
            raw = {"save": "pwrite, fdatasync", "load": "pread"}[kind] + (", blocks reserved" if "reserved" in how else "")
            cache = " ".join(word for word in how if word != "reserved")
            lines.append(f"| {kind} `{mesh}` {cache} | {rate(each['bytes'], each['ours_s'])} "
                         f"| {raw} | {rate(each['bytes'], each['raw_s'])} | {ratio:.2f} |")
    if "peer" in options.parts:
        for threads in (1, 4):
            for each in records(options.peer_python, HERE / "peer.py", options.directory, "--repeats", options.repeats, "--threads", threads):
                found.append(each)
                what = each["what"].removeprefix("dcp ").split(",")[0]
                if what in ours:
                    ratio = statistics.median(each["peer_s"]) / statistics.median(ours[what])
                    lines.append(f"| {what} | {rate(each['bytes'], ours[what])} | PyTorch DCP, {threads} threads | "
                                 f"{rate(each['bytes'], each['peer_s'])} | {ratio:.2f} |")
    if "reshard" in options.parts:
        saved = options.directory / "checkpoints"
        shutil.rmtree(saved, ignore_errors=True)
        records(options.mpiexec, "-n", "2", program, options.directory, "--state-gib", 4, "--repeats", 1, "--save-only")
        shutil.rmtree(options.directory / "raw", ignore_errors=True)
        byte_count = sum(path.stat().st_size for path in saved.rglob("*") if path.is_file())
        for kind in ("warm", "cold"):
            rows, peak = reshard(options, kind)
            found.append({"what": f"reshard {kind}", "bytes": byte_count, "peak_mib": peak, "seconds": rows})
            for beside in ("cp", "cp and sync"):
                ratio = statistics.median(rows[beside]) / statistics.median(rows["reshard"])
                lines.append(f"| reshard {kind}, at most {peak:.0f} MiB resident | {rate(byte_count, rows['reshard'])} | {beside} | "
                             f"{rate(byte_count, rows[beside])} | {ratio:.2f} |")
    if "sharing" in options.parts:
        runs = sharing(options, program)
        found += runs
        for cache in ("warm", "cold"):
            alone, shared = ([run["ours_s"][0] for run in runs if run["what"].endswith(cache) and run["share_from"] == share] for share in (0, 2))
            ratio = statistics.median(alone) / statistics.median(shared)
            lines.append(f"| load by replicas that share the reading, {cache} | {rate(runs[0]['bytes'], shared)} | each reads all | "
                         f"{rate(runs[0]['bytes'], alone)} | {ratio:.2f} |")
    shutil.rmtree(options.directory / "checkpoints", ignore_errors=True)
    if "plan" in options.parts:
        lines += ["", "| mesh | ranks | tensors | extents | layouts, s | fingerprint, s | plan, s |", "|---|---|---|---|---|---|---|"]
        for mesh in PLANS:
            runs = records(program, options.directory, "--plan", mesh, "--repeats", 5)
            found += runs
            median = {key: statistics.median(run[key] for run in runs) for key in ("layouts_s", "fingerprint_s", "plan_s")}
            lines.append(f"| `{mesh}` | {runs[0]['ranks']} | {runs[0]['tensors']} | {runs[0]['extents']} | "
                         + " | ".join(f"{value:.3f}" for value in median.values()) + " |")
    print("\n".join(lines))
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
