#!/usr/bin/env python3
"""Writes tests/golden/megatron/*.{bin,idx} from the format's description, without our code: three documents, the
second of two sequences, so that sequences and documents differ. Plain Python."""
import pathlib
import struct

folder = pathlib.Path(__file__).parent / "megatron"
folder.mkdir(exist_ok=True)
sequences, boundaries = [[5, 6, 7], [1, 65535], [40000], [2, 3, 4, 9]], [0, 1, 3, 4]
for name, code, letter in (("u16", 8, "H"), ("i32", 4, "i"), ("i64", 5, "q")):
    data = [struct.pack(f"<{len(s)}{letter}", *s) for s in sequences]
    (folder / f"{name}.bin").write_bytes(b"".join(data))
    pointers = [sum(map(len, data[:i])) for i in range(len(data))]
    (folder / f"{name}.idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(sequences), len(boundaries))
        + struct.pack(f"<{len(sequences)}i", *map(len, sequences)) + struct.pack(f"<{len(pointers)}q", *pointers)
        + struct.pack(f"<{len(boundaries)}q", *boundaries))
