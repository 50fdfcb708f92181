#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the curves of a run as an offline run of Weights & Biases: docs/wandb_export.py RUN_DIR; it needs wandb."""
import json
import sys
import tomllib

import wandb

directory, steps = sys.argv[1].rstrip("/"), {}
with open(f"{directory}/metrics.jsonl", encoding="utf-8") as lines:
    for record in (json.loads(line) for line in lines if line.endswith("}\n")):  # a crash can cut a line
        if record["event"] in ("start", "resume"):  # what follows replaces later steps
            steps = {step: values for step, values in steps.items() if step <= record["from_step"]}
        elif record["event"] in ("step", "eval"):
            name = {"step": "train", "eval": "validation"}[record.pop("event")]
            steps.setdefault(record.pop("step"), {}).update({f"{name}/{key}": value for key, value in record.items()})
with open(f"{directory}/config.toml", "rb") as config:
    settings = {"mode": "offline", "project": "fourfold", "name": directory, "config": tomllib.load(config)}
with wandb.init(**settings) as run:
    for step in sorted(steps):
        run.log(steps[step], step=step)
