#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sets training steps on this GPU beside PyTorch's, in one run, and writes a page for benchmarks/results/.

For each model the ways of PyTorch are tried with a few steps first; then gpu_step and the best of them take turns. Clocks, power
and temperature are noted meanwhile (and left as they are). Without --peer-python there is no peer. Nothing else should run on
the GPU.

    benchmarks/gpu_step/compare.py --build build/cuda --peer-python python3 --models gpt2-124m --markdown page.md
"""
import argparse
import contextlib
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "whole_step"))
import floors  # noqa: E402
import page  # noqa: E402
import shapes  # noqa: E402

MODELS = ["gpt2-124m", "gpt2-350m", "gpt2-1558m", "llama-8b-layers"]
# Those that are likely to be the best come first: time may end before the others.
WAYS = [(precision, "default", attention) for attention in ("cudnn", "default") for precision in ("bf16-weights", "bf16-autocast")]
WATCHED = {"clocks.sm": "SM MHz", "clocks.mem": "memory MHz", "power.draw": "W", "temperature.gpu": "°C"}


class Watch:
    """What nvidia-smi says of the GPU while something runs; nothing where there is none."""

    def __enter__(self):
        command = ["nvidia-smi", "--id=0", f"--query-gpu={','.join(WATCHED)}", "--format=csv,noheader,nounits", "-lms", "500"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
        self.seen = {}
        return self

    def __exit__(self, *_):
        if self.process is None:
            return
        self.process.terminate()
        lines = self.process.communicate()[0].splitlines()
        rows = [line.split(", ") for line in lines if line.count(",") == len(WATCHED) - 1]
        for column, name in enumerate(WATCHED.values()):
            values = [float(row[column]) for row in rows if row[column].replace(".", "", 1).isdigit()]
            if values:
                self.seen[name] = {"median": statistics.median(values), "highest": max(values)}


def why_it_ended(done):
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return next((line for line in lines if "error: " in line), lines[-1])


def run(command, limit_s):
    """What a program writes with --json, with what was seen meanwhile; or the error that ended it. Libraries print what they like."""
    with tempfile.TemporaryDirectory() as folder, Watch() as watch:
        figures = pathlib.Path(folder) / "figures.json"
        try:
            done = subprocess.run([*command, "--json", str(figures)], capture_output=True, text=True, timeout=limit_s, check=False,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return {"error": f"not over in {limit_s:.0f} s", "left_out": True, "limit_s": limit_s}
        except OSError as problem:
            return {"error": str(problem)}
        if done.returncode != 0:
            return {"error": why_it_ended(done)[:300]}
        try:
            found = json.loads(figures.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            return {"error": f"it ended well, but left no figures: {problem}"[:300]}
    return found | {"watched": watch.seen}


class Comparison:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.search_end = self.end  # of the model at hand

    def limit_s(self, end):
        return max(1.0, min(self.options.limit_s, end - time.monotonic()))

    def out_of_time(self):
        return time.monotonic() > self.end

    def searches(self):
        return time.monotonic() < self.search_end

    def counts(self, warmup, steps):
        return ["--warmup", str(warmup), "--steps", str(steps)]

    def fourfold(self, model, token_file):
        data = ["--token-file", token_file] if token_file else []
        return run([str(self.options.build / "bin" / "gpu_step"), "--model", model, *data,
                    *self.counts(self.options.warmup, self.options.steps)], self.limit_s(self.end))

    def peer(self, model, way, token_file, counts, end):
        precision, mode, attention = way
        data = ["--token-file", token_file] if token_file else []
        name = ["--tiny"] if model == "tiny" else ["--model", model]
        result = run([self.options.peer_python, str(HERE / "peer.py"), *name, *data, "--precisions", precision, "--modes", mode,
                      "--attentions", attention, *counts], self.limit_s(end))
        if "error" in result:
            return {"way": way, **result}
        return {"way": way, "peer": result["peer"], "watched": result["watched"], **result["runs"][0]}

    def best_way(self, model):
        """All ways with a few steps, then the slow compilation of the best of them. What there was no time for is left out, and
        may be made up for by another run (--tried)."""
        tries = []
        known = self.tried(model)

        def best():
            return max((one for one in tries if "error" not in one), key=rate, default=None)

        def attempt(way):
            if way in known and "error" not in known[way]:
                one = known[way]
            elif self.searches():
                one = self.peer(model, way, None, self.counts(3, self.options.search_steps), self.search_end)
            else:
                one = {"way": way, "error": "not tried: no time was left", "left_out": True}
            tries.append(one)
            tell(f"  PyTorch {' '.join(way)}", one)

        # What has not been over in an earlier run's time comes last: the others may have some left for it.
        for way in sorted(self.options.ways, key=lambda way: known.get(way, {}).get("left_out", False)):
            attempt(way)
        if best() and self.options.autotune:
            precision, _, attention = best()["way"]
            attempt((precision, "max-autotune", attention))
            if "error" in tries[-1]:  # its graphs do not go with gradients that are added up over micro-batches everywhere
                attempt((precision, "max-autotune-no-cudagraphs", attention))
        self.note_tried(model, tries)
        return tries, best()["way"] if best() else None

    def tried(self, model):
        """What an earlier run has tried, by way. What cannot be read was not tried."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(self.options.tried.read_text(encoding="utf-8"))
            return {tuple(one["way"]): one for one in record[model] if "error" in one or rate(one) > 0}
        return {}

    def note_tried(self, model, tries):
        path = self.options.tried
        if path is None:
            return
        record = {}
        with contextlib.suppress(OSError, ValueError, TypeError):
            record = dict(json.loads(path.read_text(encoding="utf-8")))
        # Ways that were never begun say nothing; other errors are tried again.
        begun = [one for one in tries if "error" not in one or "limit_s" in one]
        new = path.with_name(path.name + ".new")
        new.write_text(json.dumps(record | {model: begun}, indent=1) + "\n", encoding="utf-8")
        new.replace(path)

    def turns(self, model, way, token_file):
        """Ours and the peer's in turn."""
        ours, theirs = [], []
        for _ in range(self.options.rounds):
            if not self.out_of_time():
                ours.append(self.fourfold(model, token_file))
                tell("  fourfold", ours[-1])
            if way and not self.out_of_time():
                counts = self.counts(self.options.warmup, self.options.steps)
                theirs.append(self.peer(model, way, token_file, counts, self.end))
                tell(f"  PyTorch {' '.join(way)}", theirs[-1])
        return {"data": token_file or "random", "ours": ours, "peer": theirs}

    def model(self, model, models_left):
        """In its part of the time, of which more than half is for the turns; but where an earlier run has tried most ways, the others
        may take longer, and the turns find what was compiled then."""
        print(model, flush=True)
        share = 0.7 if self.tried(model) else 0.45
        self.search_end = time.monotonic() + share * (self.end - time.monotonic()) / models_left
        tries, way = self.best_way(model) if self.options.peer_python else ([], None)
        parts = [self.turns(model, way, token_file) for token_file in (None, *self.options.token_files)]
        return {"model": model, "tries": tries, "runs": [part | summary(part) for part in parts],
                "floors": floors_of(model, parts[0]["ours"], self.options)}


def rate(one):
    return one["median_tokens_per_s"]


def tell(what, one):
    print(f"{what}: {one['error'] if 'error' in one else f'{rate(one):.0f} tokens/s'}", flush=True)


def summary(part):
    """Medians over the steps of all turns, and their ratio."""
    found = {}
    for who in ("ours", "peer"):
        good = [one for one in part[who] if "error" not in one]
        if good:
            # A turn's rate comes from its median step, so that of all turns comes from the median of all steps.
            tokens = rate(good[0]) * statistics.median(good[0]["step_s"])
            found[f"{who}_tokens_per_s"] = tokens / statistics.median([s for one in good for s in one["step_s"]])
    if len(found) == 2:
        found["ratio"] = found["ours_tokens_per_s"] / found["peer_tokens_per_s"]
        mine, others = [next(one for one in part[who] if "error" not in one)["parameters"] for who in ("ours", "peer")]
        if mine != others:
            raise SystemExit(f"compare.py: the models differ ({mine} and {others} parameters)")
    return found


def floors_of(model, runs, options):
    """By the rates that gpu_kernels has measured, or an H100's; of what gpu_step has run."""
    good = [one for one in runs if "error" not in one]
    if not good:
        return {}
    made = {"tokens": good[0]["tokens"], "micro_batch": good[0]["micro_batch"], "global_batch": good[0]["batch"]}
    shape = dataclasses.replace(shapes.SHAPES[model], **made)
    machine = json.loads(options.kernels.read_text()) if options.kernels else floors.H100
    found = {name: {"tokens_per_s": floors.tokens_per_s(shape, machine, name), "seconds": floors.step_seconds(shape, machine, name)}
             for name in floors.ASSUMPTIONS}
    return found | {"flop_per_token_12": floors.flop_per_token(shape, 12)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/cuda"), help="a build folder, or a bundle")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=list(shapes.SHAPES))
    parser.add_argument("--peer-python", help="a Python that has torch")
    parser.add_argument("--ways", nargs="+", help="of PyTorch, as precision,mode,attention; without: all, and max-autotune of the best")
    parser.add_argument("--no-autotune", dest="autotune", action="store_false", help="leave out torch.compile's max-autotune")
    parser.add_argument("--token-files", nargs="*", default=[], help="prefixes of token files to train on besides random tokens")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each")
    parser.add_argument("--warmup", type=int, default=10, help="steps of a turn before the clock counts")
    parser.add_argument("--steps", type=int, default=20, help="steps of a turn that count")
    parser.add_argument("--search-steps", type=int, default=5, help="that count when ways are tried")
    parser.add_argument("--seconds", type=float, default=3600, help="start nothing after so long")
    parser.add_argument("--limit-s", type=float, default=400, help="for one run of a program")
    parser.add_argument("--kernels", type=pathlib.Path, help="what gpu_kernels --json wrote, for the floors; without: an H100's rates")
    parser.add_argument("--tried", type=pathlib.Path, help="a file of the ways that an earlier run has tried, which are taken from there; "
                        "those of this run are added")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    parser.add_argument("--markdown", type=pathlib.Path, help="where to write a page")
    options = parser.parse_args()
    options.ways = [tuple(way.split(",")) for way in options.ways] if options.ways else WAYS
    if any(len(way) != 3 for way in options.ways):
        parser.error("--ways wants precision,mode,attention")
    return options


def main():
    options = parse()
    comparison = Comparison(options)
    results = []
    for number, model in enumerate(options.models):
        if not comparison.out_of_time():
            results.append(comparison.model(model, len(options.models) - number))
        record = {"models": results, "command": " ".join(["compare.py", *sys.argv[1:]])}
        if options.json:
            options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if options.markdown:
            options.markdown.write_text(page.steps_page(record), encoding="utf-8")
    for result in results:
        for part in result["runs"]:
            print(page.one_line(result["model"], part))
    return 0 if results and all("ours_tokens_per_s" in part for result in results for part in result["runs"]) else 1


if __name__ == "__main__":
    sys.exit(main())
