#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads tensors of a checkpoint, after docs/checkpoint-format.md and nothing else; it needs h5py.

    docs/read_checkpoint.py STEP_FOLDER            lists all tensors
    docs/read_checkpoint.py STEP_FOLDER NAME/STATE shows one, put together from its boxes, its digest checked
"""
import json
import pathlib
import sys

import h5py
import numpy as np

TYPES = {"f32": "<f4", "bf16": "<u2", "f16": "<f2", "f64": "<f8", "i32": "<i4", "i64": "<i8", "u8": "u1", "u16": "<u2", "u32": "<u4",
         "u64": "<u8"}


def mix64(v):
    v = v + np.uint64(0x9E3779B97F4A7C15)
    v = (v ^ v >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    v = (v ^ v >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return v ^ v >> np.uint64(31)


def digest(tensor):
    bits = tensor.reshape(-1).view(f"u{tensor.itemsize}").astype(np.uint64)
    i = np.arange(bits.size, dtype=np.uint64)

    def total(p, q):
        rows, columns = mix64(i // np.uint64(256) + np.uint64(p)), mix64(i % np.uint64(256) + np.uint64(q))
        return int(((rows | np.uint64(1)) * (columns | np.uint64(1)) * (bits + np.uint64(1))).sum(dtype=np.uint64))

    low, high = total(0, 0xBB67AE8584CAA73B), total(0x6A09E667F3BCC909, 0x3C6EF372FE94F82B)
    return f"{high:016x}{low:016x}"


class Checkpoint:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.manifest = json.loads((self.folder / "MANIFEST.json").read_text())
        with h5py.File(self.folder / "index.h5") as index:
            table = {name: {column: data[()] for column, data in index[name].items()} for name in ("tensors", "files", "extents")}
        self.files = [name.decode() for name in table["files"]["name"]]
        self.extents = table["extents"]
        tensors = table["tensors"]
        self.tensors = {f"{name.decode()}/{state.decode()}": (row, dtype.decode(), tuple(shape[:rank].tolist())) for row, (name, state, dtype, rank, shape)
                        in enumerate(zip(*(tensors[column] for column in ("name", "state", "dtype", "rank", "shape"))))}

    def read(self, name):
        row, dtype, shape = self.tensors[name]
        whole = np.empty(shape, TYPES[dtype])
        for k in np.flatnonzero(self.extents["tensor"] == row):
            offset, extent = (self.extents[column][k][:len(shape)] for column in ("offset", "extent"))
            part = np.fromfile(self.folder / self.files[self.extents["file"][k]], whole.dtype, int(np.prod(extent)),
                               offset=int(self.extents["byte_offset"][k]))
            whole[tuple(slice(o, o + e) for o, e in zip(offset, extent))] = part.reshape(extent)
        if digest(whole) != self.manifest["digests"][name]:
            raise ValueError(f"{name} is damaged: its digest is not that of the manifest")
        return (whole.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else whole


if __name__ == "__main__":
    checkpoint = Checkpoint(sys.argv[1])
    for name in sys.argv[2:]:
        print(name, checkpoint.read(name), sep="\n")
    for name, (_, dtype, shape) in checkpoint.tensors.items() if len(sys.argv) == 2 else ():
        print(name, dtype, list(shape))
