#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's distributed checkpoints (DCP) with the state that checkpoint_speed saves: DTensors cut by rows among processes
that talk by gloo. Prints one JSON object per kind of measurement, as checkpoint_speed does. Needs a Python with torch.

    benchmarks/checkpoint_speed/peer.py DIRECTORY --state-gib 2 --repeats 5
"""
import argparse
import json
import os
import pathlib
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

STATES = ("master", "exp_avg", "exp_avg_sq")


def shapes(state_gib):
    """Of the parameters, as saved_state.cpp has them."""
    hidden, layers, vocab = 1024, 8, 16000
    parameters = state_gib * 2**30 / 12
    ffn = int((parameters - 2 * vocab * hidden - layers * 4 * hidden * hidden) / (layers * 3 * hidden)) // 16 * 16
    table = {"embedding": (vocab, hidden), "head": (vocab, hidden), "norm": (hidden,)}
    for layer in range(layers):
        table |= {f"{layer}.{name}": (hidden, hidden) for name in "qkvo"}
        table |= {f"{layer}.up": (ffn, hidden), f"{layer}.gate": (ffn, hidden), f"{layer}.down": (hidden, ffn)}
        table |= {f"{layer}.norm1": (hidden,), f"{layer}.norm2": (hidden,)}
    return table


def make_state(state_gib, mesh, fill):
    state = {}
    for name, shape in shapes(state_gib).items():
        rows = shape[0] // dist.get_world_size()
        for kind in STATES:
            local = torch.empty((rows, *shape[1:]))
            if fill:
                local.normal_()
            else:
                local.zero_()
            state[f"{name}/{kind}"] = DTensor.from_local(local, mesh, [Shard(0)])
    return state


def timed(work):
    dist.barrier()
    start = time.perf_counter()
    work()
    dist.barrier()
    return time.perf_counter() - start


def drop_pages(folder):
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port), RANK=str(rank), WORLD_SIZE=str(options.processes))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=options.processes)
    mesh = init_device_mesh("cpu", (options.processes,))
    state = make_state(options.state_gib, mesh, fill=True)
    byte_count = sum(each.numel() * 4 for each in state.values())
    folder = options.directory / "dcp"

    def alone(work):
        dist.barrier()
        if rank == 0:
            work()
        dist.barrier()

    def tell(what, seconds):
        if rank == 0:
            print(json.dumps({"what": f"dcp {what}", "bytes": byte_count, "peer_s": [round(each, 4) for each in seconds]}), flush=True)

    def save():  # sync_files: every file is brought to the disk
        dcp.save(state, storage_writer=FileSystemWriter(folder, single_file_per_rank=True, sync_files=True, thread_count=options.threads))

    seconds = []
    for _ in range(options.repeats):
        alone(lambda: shutil.rmtree(folder, ignore_errors=True))
        seconds.append(timed(save))
    tell(f"save, {options.threads} threads", seconds)
    target = make_state(options.state_gib, mesh, fill=False)
    for kind in ("warm", "cold"):
        seconds = []
        for _ in range(options.repeats):
            if kind == "cold":
                alone(lambda: drop_pages(folder))
            seconds.append(timed(lambda: dcp.load(target, storage_reader=FileSystemReader(folder))))
        tell(f"load {kind}", seconds)
    name = "0.up/master"
    assert torch.equal(target[name].to_local(), state[name].to_local())
    alone(lambda: shutil.rmtree(folder, ignore_errors=True))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path, help="on the disk in question")
    parser.add_argument("--state-gib", type=float, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="that write, per process")
    parser.add_argument("--port", type=int, default=29571)
    options = parser.parse_args()
    mp.spawn(measure, args=(options,), nprocs=options.processes)


if __name__ == "__main__":
    main()
