#!/usr/bin/env python3
"""Compares a token file of the quickstart's text (u16) with what make_tokenizer_goldens.py recorded.
Usage: check_text_tokens.py FILE.bin NAME. Plain Python."""
import array
import json
import pathlib
import sys
import zlib

expected = json.loads((pathlib.Path(__file__).parent / "tokenizers" / "quickstart_text.json").read_text())[sys.argv[2]]
ids = array.array("H", pathlib.Path(sys.argv[1]).read_bytes())
got = {"tokens": len(ids), "crc32": zlib.crc32(array.array("i", ids).tobytes())}
if got != expected:
    sys.exit(f"{sys.argv[2]}: {got} instead of {expected}")
