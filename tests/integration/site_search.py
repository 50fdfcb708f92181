#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Asks the search of the built site, as a reader's browser does. Usage: site_search.py SITE

Exit code 1 if a page does not come first.
The index and the worker are those of the site; mini-racer, the engine of browsers, runs them."""
import glob
import json
import sys

import py_mini_racer

# What a reader types, and the page that has to come first.
FIRST = {
    "learning rate": "docs/run-file.html",
    "resume": "docs/checkpoints.html",
    "out of memory": "docs/choosing.html",
    "78": "docs/exit-codes.html",
    "tokenizer.json": "docs/data.html",
    "micro_batch": "docs/run-file.html",
}
# What a worker finds around it; messages go to `answers`.
AROUND = """
var self = globalThis, answers = [], listeners = [], console = {warn() {}, error() {}};
function addEventListener(kind, listener) { listeners.push(listener); }
function postMessage(message) { answers.push(message); }
function ask(type, data) { listeners.forEach(listener => listener({data: {type, data}})); }
"""


def main() -> int:
    site = sys.argv[1]
    [worker] = glob.glob(f"{site}/assets/javascripts/workers/search.*.min.js")
    index = json.load(open(f"{site}/search/search_index.json", encoding="utf-8"))
    engine = py_mini_racer.MiniRacer()
    engine.eval(AROUND)
    engine.eval(open(worker, encoding="utf-8").read())
    engine.eval(f"ask(0, {json.dumps({**index, 'options': {'suggest': False}})})")
    wrong = 0
    for words, page in FIRST.items():
        engine.eval(f"answers = []; ask(2, {json.dumps(words)})")
        said = engine.eval("JSON.stringify(answers.at(-1).data.items.slice(0, 5).map(([i]) => [i.location, i.score]))")
        items = json.loads(said)
        found = [location.split("#")[0] for location, score in items]
        good = bool(found) and found[0] == page
        wrong += not good
        print(f"{'' if good else 'NOT FIRST '}{words!r}: {items}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
