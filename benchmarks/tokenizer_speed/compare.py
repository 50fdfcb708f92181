#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Every token, and the time, of `fourfold data prepare` beside `encode_batch` of the Hugging Face `tokenizers` library on
one core, for the structures of published tokenizers, trained here on the text that is given.

Usage: compare.py [--build build/host-release] [--baseline OTHER/bin] [--only NAME,...] TEXT...
TEXT: files and folders (text, code) with 45 MB or more in all; a page of every character of Unicode 14 and long runs of
blanks are added. Needs the packages tokenizers==0.23.3 and numpy. Prints a page for benchmarks/results.

Seconds are those of the processor (user and system, of the whole program of fourfold with reading JSON and writing the
token files; of the library encoding alone), the least of --rounds rounds in which both take turns. Ends with 1 when a
token differs or the bar of --bar is missed."""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
import numpy  # noqa: E402
import tokenizers  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "golden"))
import tokenizer_structures  # noqa: E402

TIMED = ["qwen2.5", "pythia", "smollm", "deepseek", "llama2", "gemma", "llama3"]


def documents_of(paths, most_bytes):
    """Texts in an order that mixes folders, up to a number of bytes."""
    files = [file for path in map(pathlib.Path, paths)
             for file in ([path] if path.is_file() else sorted(path.rglob("*"))) if file.is_file()]
    files.sort(key=lambda file: hash_of(str(file)))
    documents, size = [], 0
    for file in files:
        try:
            text = file.read_bytes().decode()
        except (UnicodeDecodeError, OSError):
            continue
        if text.strip() and "\0" not in text and len(text) < 4_000_000:
            documents.append(text)
            size += len(text.encode())
        if size >= most_bytes:
            return documents
    sys.exit(f"the texts have {size} bytes instead of {most_bytes}; name more")


def first_of(documents, most_bytes):
    taken = []
    for text in documents:
        taken.append(text)
        most_bytes -= len(text.encode())
        if most_bytes < 0:
            break
    return taken


def hash_of(name):
    value = 14695981039346656037
    for byte in name.encode(errors="surrogateescape"):
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def child_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def prepare(program, tokenizer, corpus, output, is_expected=True):
    before = child_seconds()
    done = subprocess.run([program, "prepare", "--progress", "none", "--tokenizer", tokenizer, "--output", output, corpus],
                          check=is_expected, stdout=subprocess.DEVNULL, stderr=None if is_expected else subprocess.DEVNULL)
    return child_seconds() - before if done.returncode == 0 else None


def tokens_in(output, vocab):
    return numpy.fromfile(f"{output}.bin", dtype=numpy.uint16 if vocab < 65500 else numpy.int32).astype(numpy.int64)


def compared(name, size, learned_from, documents, corpus, arguments, folder):
    file = folder / f"{name}.json"
    file.write_text(tokenizer_structures.trained(name, learned_from, size))
    library = tokenizers.Tokenizer.from_file(str(file))
    output = str(folder / "tokens")
    seconds = {"fourfold": [], "library": [], "baseline": []}
    for _ in range(arguments.rounds):
        seconds["fourfold"].append(prepare(arguments.build / "bin/fourfold-data", file, corpus, output))
        if arguments.baseline:
            old = prepare(arguments.baseline / "fourfold-data", file, corpus, output + "-old", False)
            seconds["baseline"] += [old] if old is not None else []  # it may not know this kind
        begin = time.process_time()
        encoded = library.encode_batch(documents, add_special_tokens=False)
        seconds["library"].append(time.process_time() - begin)
    expected = numpy.concatenate([numpy.asarray(one.ids, dtype=numpy.int64) for one in encoded])
    got = tokens_in(output, library.get_vocab_size())
    shorter = min(len(got), len(expected))
    different = int((got[:shorter] != expected[:shorter]).sum()) + abs(len(got) - len(expected))
    if different:
        first = int(numpy.argmax(numpy.append(got[:shorter] != expected[:shorter], True)))
        print(f"{name}: differs from token {first} on: {got[first:first + 8]} instead of {expected[first:first + 8]}, "
              f"after {library.decode(expected[max(first - 12, 0):first].tolist(), skip_special_tokens=False)!r}",
              file=sys.stderr)
    least = {who: min(times) for who, times in seconds.items() if times}
    return {"name": name, "tokens": len(expected), "different": different, **least}


def table(rows, megabytes):
    lines = ["| structure | tokens | different | fourfold | library | ratio | against the baseline |", "|---|--:|--:|--:|--:|--:|--:|"]
    for row in rows:
        old = f"{row['fourfold'] / row['baseline']:.2f} x its time" if "baseline" in row else "not known to it"
        lines.append(f"| {row['name']} | {row['tokens']:,} | {row['different']} | {row['fourfold']:.2f} s, "
                     f"{megabytes / row['fourfold']:.1f} MB/s | {row['library']:.2f} s, {megabytes / row['library']:.2f} MB/s | "
                     f"**{row['library'] / row['fourfold']:.1f}** | {old} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/host-release"))
    parser.add_argument("--baseline", type=pathlib.Path, help="bin folder of an older build, whose time is shown beside")
    parser.add_argument("--only", default=",".join(TIMED))
    parser.add_argument("--megabytes", type=float, default=30)
    parser.add_argument("--vocab", type=int, default=32000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bar", type=float, default=7)
    arguments = parser.parse_args()
    documents = documents_of(arguments.texts, arguments.megabytes * 1e6 * 3 / 2)
    learned_from = first_of(documents[3::4], 4e6)
    documents = [tokenizer_structures.difficult_characters(), tokenizer_structures.blanks()] + first_of(
        [text for number, text in enumerate(documents) if number % 4 != 3], arguments.megabytes * 1e6)
    megabytes = sum(len(text.encode()) for text in documents) / 1e6
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        corpus = folder / "corpus.jsonl"
        corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
        rows = []
        for name in arguments.only.split(","):
            rows.append(compared(name, arguments.vocab, learned_from, documents, corpus, arguments, folder))
            print(rows[-1], file=sys.stderr)
    print(f"{megabytes:.1f} MB of UTF-8 in {len(documents)} documents, vocabularies of {arguments.vocab}, "
          f"tokenizers {tokenizers.__version__}, least of {arguments.rounds} rounds\n")
    print(table(rows, megabytes))
    missed = [row["name"] for row in rows if row["different"] or row["library"] / row["fourfold"] < arguments.bar]
    sys.exit(f"missed: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
