#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the sources to the rules of docs/design.md. Usage: check_layers.py [ROOT]; exit code 1 and a line per breach.

Checked are the arrows between rooms, the doors to third parties, calls that only few files may make, file sizes, licence lines,
and that every public header of a room is included by a test.
"""
import pathlib
import re
import sys

# Room -> rooms whose headers it may include. Whatever a room may include, the rooms above it may include too.
ARROWS = {
    "base": [], "device": ["base"], "comm": ["device"], "kernels": ["device"], "io": ["comm"],
    "model": ["kernels"], "schedule": ["model"], "parallel": ["schedule", "comm"], "plan": ["schedule"], "data": ["io"],
    "runfile": ["parallel"], "model_conversion": ["runfile", "data"], "telemetry": ["runfile", "io"],
    "batch": ["telemetry"], "train": ["telemetry", "parallel", "plan", "data"], "program": ["base"], "exchange": ["comm"],
    "apps": ["train", "model_conversion", "batch", "program", "exchange"],
    "harness": ["comm", "program"], "tests": ["apps", "harness"], "benchmarks": ["apps"],
}
FOLDERS = {"io": "io", "kernels": "kernels", "apps": "apps", "tests": "tests", "benchmarks": "benchmarks",
           "apps/program": "program", "apps/exchange": "exchange", "tests/harness": "harness", **{f"src/{room}": room for room in
           ("base", "device", "comm", "model", "schedule", "parallel", "data", "runfile", "model_conversion",
            "telemetry", "batch", "train", "plan")}}
# The same inside rooms whose folders are compiled as one library. Their public headers belong to the folder of their source; those
# without one are named beside.
FOLDER_ARROWS = {
    "io": {
        "disk": [], "checksum": [], "hdf5": ["disk"], "tokens": ["disk", "checksum"], "external_formats": ["checksum", "hdf5"], "format": ["checksum", "hdf5"],
        "step": ["format"], "payload": ["step"], "load": ["step"], "save": ["payload", "load"],
        "reshard": ["save"], "repair": ["save"], "local_tier": ["save"],
    },
    "kernels": {
        "backend": ["runtime"], "runtime": [], "vectors": ["runtime"],
        **{topic: ["vectors"] for topic in ("activation", "attention", "cast", "compression", "cross_entropy", "dropout", "embedding", "optimizer")},
        "rotary": ["attention"], "libraries": ["attention"], "matmul": ["activation", "libraries"], "reduction": ["matmul"], "norm": ["reduction"],
    },
    "src/comm": {
        "communicator": [], "host": ["communicator"], "nccl": ["host"], "devices": ["nccl"], "watchdog": ["communicator"],
        "runtime": ["devices", "watchdog"],
    },
    "src/parallel": {
        "trace": [], "shards": [], "context": [], "tensor": ["context", "trace"], "gradients": ["shards", "trace"],
        "weights": ["gradients", "tensor"], "pipeline": ["trace"],
    },
    "src/train": {
        "optimizer": [], "inputs": ["optimizer"], "step": ["inputs"], "state": ["step"], "plan": ["state"], "saves": ["plan"], "verify": ["plan"], "run": ["saves", "verify"],
    },
    "src/data": {"unicode": [], "dataset": [], "tokenizer": ["unicode"], "prepare": ["tokenizer", "dataset"]},
}
HEADERS_ALONE = {"kernels": {"compression": "compression", "operands": "vectors", "reduction": "reduction"}, "src/comm": {"algorithm": "communicator", "device_options": "communicator"},
                 "src/parallel": {"action_recorder": "trace", "gradient_compression": "gradients", "gradient_reduction": "gradients"}, "io": {"checkpoint": "format", "save_request": "format", "tensor_state": "format"}}
# Third-party header -> the files that may include it (tests and benchmarks may too, to compare against).
DOORS = {
    r"mpi\.h$": r"^(src/comm|io)/(?!include/)", r"hdf5\w*\.h$|H5\w+\.h$": r"^io/(?!include/)",
    r"cuda(_\w+)?\.h$": r"^src/device/(?!include/)|^src/comm/devices/.*\.cuda\.cu$|^kernels/(?!include/)",
    r"(cuda_check|native_stream)\.hpp$": r"^(src/device|src/comm|kernels)/(?!include/)",
    r"cublasLt\.h$": r"^kernels/(?!include/)", r"nvtx3/": r"^(src/device|tests/harness)/(?!include/)",
    r"cudnn(_\w+)?\.h$|cudnn_frontend|nvrtc\.h$": r"^kernels/attention/[^/]*\.cudnn\.cpp$",
    # A kernel of one kind of device: what both kinds share knows none.
    r"(\w+/)?\w+(?<!host)_device\.hpp$": r"^kernels/\w+/(\w+_device\.|\w+\.(cudnn|emulated)\.)", r"(\w+/)?\w+_host\.hpp$": r"^kernels/\w+/\w+_host\.",
    r"emulated_gpu\.hpp$": r"^(src|kernels)/.*emulated(/|\.cpp$)",
    r"nccl\.h$": r"^src/comm/\w+/[^/]*\.nccl\.[ch]pp$", r"Kokkos_": r"^kernels/(?!include/)",
    r"(oneapi/)?dnnl": r"^kernels/(?!include/)", r"nlohmann/|simdjson": r"^(?!.*include/fourfold).*\.json\.[ch]pp$",
    r"toml\+\+|toml\.hpp": r"^(?!.*include/fourfold).*\.toml\.[ch]pp$",
    r"CLI/": r"^apps/", r"pcre2\.h|sentencepiece|utf8proc": r"^(io|src/data)/(?!include/)", r"omp\.h$": r"^kernels/(?!include/)",
}
# A call that few files alone may make -> those files (tests and benchmarks may too), and what others call instead.
CALLS = {
    r"\b\w*[jJ]son::parse\(|\.dump\(": ({"src/base/include/fourfold/base/json_text.hpp"},
                                     "parse_json, json_if_any or json_text of base/json_text.hpp, which convert every error"),
    r"fmt::print|std::c(out|err|log)\b|\bstd::(v?f?printf|f?puts|f?putc|putchar|fwrite)\(|\bSTD(OUT|ERR)_FILENO, .*(data|size)\(\)|\bperror\(":
        ({"src/base/log.cpp", "src/telemetry/console.cpp", "apps/program/print.cpp", "apps/status/terminal_page.cpp",
          "apps/program/run.cpp"},  # the last one: a constant, from a signal handler
         "program/print.hpp or base/log.hpp, which escape what a terminal obeys"),
    r"std::[io]?fstream\b|\bfopen\(|(?<!\w)::open\(":
        ({"src/base/regular_file.cpp",
          # Files of the kernel's.
          "apps/doctor/rank_facts.cpp", "io/disk/lease_file.cpp", "src/comm/host/clock_offset.cpp", "src/comm/runtime/mpi_runtime.mpi.cpp", "src/comm/host/shared_memory.cpp",
          "src/comm/watchdog/startup_watchdog.cpp", "src/device/process_memory.cpp", "src/device/process_memory.cpp",
          "io/disk/file.cpp", "io/disk/temporary.cpp",  # folders, and names that are of no use to others
          "io/disk/at_signal.cpp",  # in a signal handler, where nothing else may be called
          "io/external_formats/event_file.cpp"},  # what O_EXCL makes anew
         "base/regular_file.hpp, or what is built on it: no pipe, device or link may take a file's place"),
}
# What makes a message, and what may not stand between its brackets: text from outside would begin lines of its own there.
MESSAGE = re.compile(r"\b(?:\w*Error|log::(?:info|warning|local)|write_stderr|program::print_text)\s*\(")
UNESCAPED = re.compile(r"\bfmt::format\(|\b(?:what|string)\(\)\s*\+|\+\s*[\w.>-]*\b(?:what|string)\(\)")
# nvcc compiles these; it knows no format strings that are checked while compiling, and they tell nothing from outside.
OF_DEVICES = re.compile(r"\.(cuda|cudnn|cublaslt|kokkos)\.|^kernels/backend/")
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
LONGEST = 500


def reach(room, arrows=None):
    """The room itself and everything below it."""
    arrows = arrows or ARROWS
    return {room}.union(*(reach(below, arrows) for below in arrows[room]))


def room_of(path):
    owners = [folder for folder in FOLDERS if path.startswith(folder + "/")]
    return FOLDERS[max(owners, key=len)] if owners else None


def breaches(path, text):
    """What is wrong with one file: pairs of line number and words."""
    yield from unescaped_messages(path, text)
    lines = text.splitlines()
    if lines[:2] != ["// SPDX-FileCopyrightText: the fourfold authors", "// SPDX-License-Identifier: Apache-2.0"]:
        yield 1, "does not begin with the two licence lines"
    if len(lines) > LONGEST and not any("Length:" in line for line in lines[:20]):
        yield LONGEST, f"has {len(lines)} lines: split it, or give the reason as 'Length: ...' in its first comment"
    room = room_of(path)
    if room is None:
        yield 1, "lies in no room"
        return
    for number, line in enumerate(lines, 1):
        for pattern, (owners, instead) in CALLS.items():
            if re.search(pattern, line.split("//")[0]) and path not in owners and room not in ("tests", "benchmarks", "harness"):
                yield number, f"call {instead}"
        include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if not include:
            continue
        header = include.group(1)
        ours = re.match(r"fourfold/(\w+)/", header)
        if ours and ours.group(1) not in reach(room):
            yield number, f"room '{room}' must not include <{header}>"
        for pattern, door in DOORS.items():
            if re.match(pattern, header) and not re.search(door, path) and room not in ("tests", "benchmarks"):
                yield number, f"<{header}> may only be included in files that match {door}"


def bracketed(text, start):
    """What follows an opening bracket, up to its closing one. String literals may hold any bracket."""
    depth = 1
    for part in re.finditer(r'"(?:\\.|[^"\\])*"|[()]', text[start:]):
        depth += {"(": 1, ")": -1}.get(part.group(), 0)
        if depth == 0:
            return text[start:start + part.start()]
    return text[start:]


def unescaped_messages(path, text):
    """Messages that are not made by format_message(): pairs of line number and words."""
    if room_of(path) in ("tests", "benchmarks", "harness") or OF_DEVICES.search(path):
        return
    for begin in MESSAGE.finditer(text):
        in_comment = "//" in text[text.rfind("\n", 0, begin.start()) + 1:begin.start()]
        said = re.sub(r'"(?:\\.|[^"\\])*"', '""', bracketed(text, begin.end()))
        if not in_comment and UNESCAPED.search(said):
            yield text.count("\n", 0, begin.start()) + 1, "make the message by format_message of base/message.hpp: no text from outside begins a line then"


def folder_breaches(texts, root):
    """Includes inside a room against the arrows of its folders, and sources that lie in none. `texts`: contents by path."""
    arrows, room = FOLDER_ARROWS[root], root.split("/")[-1]
    folder_of = dict(HEADERS_ALONE.get(root, {}))
    for path in texts:
        if source := re.match(rf"{root}/(\w+)/(\w+)[.\w]*\.cpp$", path):
            folder_of[source.group(2)] = source.group(1)
    for path, text in texts.items():
        if not path.startswith(root + "/"):
            continue
        parts = path.removeprefix(root + "/").split("/")
        own = folder_of.get(parts[-1].split(".")[0]) if parts[0] == "include" else parts[0]
        if own not in arrows:
            yield f"{path}:1: lies in no folder of {room}"
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r'\s*#\s*include\s*"\.', line):
                yield f"{path}:{number}: name the folder of {room}, as in \"{own}/file.hpp\", not the way there"
            if include := re.match(rf'\s*#\s*include\s*(?:<fourfold/{room}/(\w+)\.hpp>|"(\w+)/)', line):
                other = folder_of.get(include.group(1)) or include.group(2)
                if other not in reach(own, arrows):
                    yield f"{path}:{number}: '{own}' of {room} must not include from '{other}'"


def untested(texts):
    """Public headers of the rooms that no file under tests/ includes. `texts`: contents by path."""
    included = {header for path, text in texts.items() if path.startswith("tests/")
                for header in re.findall(r"#\s*include\s*<fourfold/([^>]+)>", text)}
    for path in texts:
        public = re.search(r"include/fourfold/(.+\.hpp)$", path)
        if public and not path.startswith("tests/") and public.group(1) not in included:
            yield f"{path}:1: is included by no test"


def main(root):
    paths = sorted(p for folder in ("src", "kernels", "io", "apps", "tests", "benchmarks")
                   for p in (root / folder).rglob("*") if p.suffix in SUFFIXES)
    texts = {p.relative_to(root).as_posix(): p.read_text(encoding="utf-8") for p in paths}
    wrong = [f"{path}:{line}: {words}" for path, text in texts.items() for line, words in breaches(path, text)]
    wrong += untested(texts)
    for root in FOLDER_ARROWS:
        wrong += folder_breaches(texts, root)
    print("\n".join(wrong + [f"{len(paths)} files, {len(wrong)} breaches"]))
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
