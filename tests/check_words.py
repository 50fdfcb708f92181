#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Refuses words that the field has others for, in identifiers and file names (docs/glossary.md). Usage: check_words.py [ROOT]"""
import functools
import pathlib
import re
import sys

# Old word: new word. A word is a part of an identifier between underscores or capitals.
WORDS = {
    "seam": "hook", "seams": "hooks",
    "court": "watchdog_server", "voice": "peer", "voices": "peers",
    "judge": "server", "judges": "servers", "judged": "diagnosed",
    "settle": "confirm, finish_step, synchronize or resolve", "settled": "the same",
    "announcement": "startup_log", "fate": "status",
    "dealing": "shared_reduction", "bell": "notifier",
    "crowd": "oversubscription", "crowds": "oversubscriptions", "examiner": "health_check",
    "exercise": "collective_benchmark",
    "remake": "recompute", "remakes": "recomputes", "outlook": "eta",
    "endpoint": "transport", "endpoints": "transports",
    "recut": "reshard", "recuts": "reshards", "recutting": "resharding",
    "interchange": "model_conversion",
}
# Whole identifiers, whatever stands around them.
PHRASES = {
    "first_rank_does": "run_on_root", "look_at_gpus": "query_gpus", "sudden_end": "fatal_exit", "tell_everything": "enable_verbose_log",
    "other_branch": "collective_mismatch", "branch_judge": "desync_analysis", "start_judge": "startup_analysis", "start_meeting": "startup_rendezvous",
    "HangVerdict": "HangDiagnosis", "StartWatch": "StartupWatchdog", "Culprit": "SuspectRank", "DeviceMeeting": "DeviceRendezvous",
    "RoutedReduction": "RingTreeReduction", "ParameterShare": "ParameterShard", "StateShare": "CheckpointShardWriter", "WayRounds": "TimingRounds",
    "CodedSum": "QuantizedReducer", "LowRankSum": "PowerSgdReducer", "PieceSum": "PieceReducer", "BucketSum": "BucketReducer",
    "FastLevel": "LocalTier", "fast_level": "local_tier", "fast_word": "tier_id", "fast_step": "local_step", "fast_steps": "local_steps",
    "fast_dir": "node_local_dir", "front_door": "cli",
    "product_choice": "matmul_tuning", "product_choices": "matmul_tuning", "ProductChoice": "MatmulTuning", "ProductPlan": "GemmPlan",
    "ProductKind": "GemmKind", "WayTimes": "AlgorithmTimes", "find_ways": "find_algorithms",
    "weights_ahead": "prefetch_weights", "weights_needed": "acquire_weights", "weights_done": "release_weights", "gather_ahead": "prefetch_rows",
    "RoundMachine": "RoundTask", "make_machine": "make_task", "ForeignTensor": "ExternalTensor", "foreign_tensor": "external_tensor",
    "examine_fast": "examine_node_local", "save_fast": "save_node_local", "choose_products": "set_matmul_tuning",
    "chosen_products": "known_matmul_tuning", "product_library": "matmul_library",
    "WatchConfig": "WatchdogConfig", "post_validation": "nothing: it is gone",
}
FOLDERS = ("src", "io", "kernels", "apps", "tests", "benchmarks", "scripts", "slurm")
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
SCRIPTS = {".py", ".bash", ".sh", ".sbatch"}
# Saved names of earlier versions, which are read.
ALLOWED = {"src/runfile/run_key.cpp": {"post_validation"}, "tests/unit/runfile/run_key_test.cpp": {"post_validation"}}
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
# What a script defines or calls at the begin of a line; its texts and comments are not told from code.
IN_SCRIPT = re.compile(r"^\s*(?:(?:def|class|function|local|readonly|export|for)\s+)*([A-Za-z_]\w*)(?=\s*\(|\+?=|\s+=\s|\s+in\s)", re.M)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@functools.cache
def old_words(identifier):
    """(old, new) of each word of an identifier that has another."""
    phrases = [(phrase, new) for phrase, new in PHRASES.items()
               if re.search(rf"(?<![A-Za-z]){phrase}(?![a-z])|(?<=[a-z_]){phrase}(?![a-z])", identifier)]
    parts = [part.lower() for part in PART.findall(identifier)]
    return phrases + [(part, WORDS[part]) for part in parts if part in WORDS]


def breaches(path, text):
    """(line, words) of a source file and its name."""
    allowed = ALLOWED.get(path, set())
    for old, new in old_words(pathlib.PurePath(path).name.split(".")[0]):
        yield 1, f"the file is called after '{old}'; the word is {new}"
    if pathlib.PurePath(path).suffix not in SUFFIXES:
        for found in IN_SCRIPT.finditer(text):
            if found.group(1).isupper():  # a variable of the environment, which users set
                continue
            for old, new in old_words(found.group(1)):
                yield text.count("\n", 0, found.start(1)) + 1, f"'{found.group(1)}' says '{old}'; the word is {new}"
        return
    # Includes name files; other texts between quotes are no identifiers.
    code = NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for number, line in enumerate(code.splitlines(), 1):
        for identifier in IDENTIFIER.findall(line):
            for old, new in old_words(identifier):
                if old not in allowed:
                    yield number, f"'{identifier}' says '{old}'; the word is {new}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    paths = sorted(p for folder in FOLDERS for p in (root / folder).rglob("*")
                   if p.suffix in SUFFIXES | SCRIPTS or (folder == "scripts" and p.is_file() and not p.suffix))
    wrong = 0
    for path in paths:
        name = path.relative_to(root).as_posix()
        for line, words in breaches(name, path.read_text(encoding="utf-8")):
            print(f"{name}:{line}: {words}")
            wrong += 1
    print(f"{len(paths)} files, {wrong} old words")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
