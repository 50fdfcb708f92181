#!/usr/bin/env python3
"""Makes tests/golden/tokenizers: small tokenizers of the GPT-2 and the Llama-3 kind, a page of nasty Unicode, and the
tokens that the `tokenizers` library and spm_encode give for it; small tokenizers of the structures of published ones
(tokenizer_structures.py) and odd ones (odd_tokenizers.py) with their tokens and decoded texts; what spm_decode makes of
tokens. --young prints the characters that src/data/unicode/unicode_text.cpp has in a table, and needs unicodedata2==18.0.0.

Usage: make_tokenizer_goldens.py TEXT [--only-expected], with TEXT made by scripts/quickstart-text.
Needs: tokenizers==0.23.3; spm_train, spm_encode and spm_decode (Debian 12: sentencepiece 0.1.97)."""
import argparse
import array
import json
import pathlib
import random
import subprocess
import zlib

import tokenizers
from odd_tokenizers import make_odd_tokenizers
from tokenizer_structures import LLAMA3, STRUCTURES, trained
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__
FOLDER = pathlib.Path(__file__).parent / "tokenizers"
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# All 25 code points of White_Space, and some that look like it but are not (U+180E, U+200B, U+FEFF, separators).
SPACES = [chr(c) for c in (*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
                           0x205F, 0x3000)]
ALMOST_SPACES = [chr(c) for c in (0x08, 0x0E, 0x1C, 0x1D, 0x1E, 0x1F, 0x7F, 0x180E, 0x200B, 0x200C, 0x200D, 0x2060,
                                  0xFEFF)]


def nasty_page():
    lines = [
        "plain words, and don't we'll THEY'RE I'VE it'S 'tis 'S 's's's o'clock\u017f '\u017f '\u017fa I\u2019ve",
        "combining: e\u0301 n\u0303 a\u0308\u0304 Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034dA\u036b\u0357 \u0301alone \u0301\u0301\u0301",
        "emoji: \U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466 \U0001F44D\U0001F3FD \U0001F1E9\U0001F1EA \u2764\ufe0f 1\ufe0f\u20e3 \U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
        "rtl: \u0645\u0631\u062d\u0628\u0627 \u200f\u05e9\u05dc\u05d5\u05dd\u200e \u202eevil\u202c \u0661\u0662\u0663 \u0643\u0650\u062a\u064e\u0627\u0628",
        "scripts: \u4e2d\u6587\u6c49\u5b57 \u65e5\u672c\u8a9e\u30c6\u30ad\u30b9\u30c8 \ud55c\uad6d\uc5b4 \u1112\u1161\u11ab \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u0939\u093f\u0928\u094d\u0926\u0940 \u1793\u17b7\u1799\u17b6\u1799 \u10d0\u10d1\u10d2 \u13a0\u13a1 \uab70",
        "numbers: 1 12 123 1234 12345678901234567890 3.14159 1,000,000 \u00bd \u00b2 \u2167 \u0967\u0968\u0969\u096a \uff11\uff12\uff13 \U0001D7D8\U0001D7D9 \u3220\u3221 1st 0x1F",
        "case: \u01c4\u01c5\u01c6 \u0130\u0131 \u00df\u1e9e \ufb00\ufb05\ufb06 \u03a3\u03c3\u03c2 \u212a\u212b \u2126 camelCaseWord HTTPServer XMLHttpRequest \u02b0\u02b7",
        "punctuation: !!! ... \u2026 \u00ab\u00bb \u201cquotes\u201d ---\u2014\u2013 @user #tag $100 50% a/b\\c {}[]<>|~`^ \u00a1\u00bf \u3001\u3002 \u2e3a",
        "private and unassigned: \ue000\uf8ff \U000F0000 \U0010FFFD \u0378 \U000E0001 \ufffe \uffff \U0001FFFF",
        "replacement \ufffd and noncharacters \ufdd0, specials \ufff9a\ufffab\ufffb",
        "edges of UTF-8: \u007f\u0080 \u07ff\u0800 \ud7ff\ue000 \uffff\U00010000 \U0010FFFF",
        "nul:\x00 \x00\x00 a\x00b; controls: \x01\x02\x1b[31m\x7f",
        "added: <|endoftext|> <|endoftext|><|endoftext|> x<|endoftext|>y <|endoftext| > <|end<|endoftext|> <|pad|> <|pad|>< [MASK]x",
        "tabs\t\ttwo  spaces   three    four \t mixed\t ",
        "    indented\n        twice\n\n\n\n   \n\t\n",
        "crlf\r\nline\r\n\r\nline\r\r\rold mac\rend \r\n \n\r ",
        "a" * 5000 + " " + "ab" * 3000 + " " + "\u00e9" * 1500 + "!" * 2000 + " " * 1000 + "x" + "9" * 999 + "\n" * 300,
        "\u4e00" * 2000 + "\U0001F600" * 500,
        "def f(x):\n\treturn {'a': x**2, \"b\": [1, 2,3]}  # comment\n\n\nclass A:\n    pass\n",
        "https://example.org/a?b=c&d=%20e#f user@example.org /usr/lib/x86_64.so.1",
    ]
    page = "\n".join(lines)
    for space in SPACES + ALMOST_SPACES:
        name = f"{ord(space):04x}"
        page += f"{name}{space}a {space} b{space}{space}c{space}\n{space}\n\n{space}{space}{space}d 1{space}2{space}.{space}{space}!"
    return page + "  the end   "


def trained_bytes(pre_tokenizer, size, added, text, ignore_merges):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.add_special_tokens(added)
    return tokenizer


def llama3_like(expression=LLAMA3):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(expression), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def unreachable_words(path, words):
    """Puts whole words into the vocabulary that no merge makes: only ignore_merges finds them. Added tokens move up."""
    document = json.loads(path.read_text())
    vocab = document["model"]["vocab"]
    for word in words:
        vocab.setdefault(word, len(vocab))
    for number, token in enumerate(document["added_tokens"]):
        token["id"] = len(vocab) + number
    document["model"]["merges"] = [" ".join(merge) for merge in document["model"]["merges"]]  # as older files have them
    path.write_text(json.dumps(document, ensure_ascii=False, indent=0))


def make_tokenizers(text, page):
    corpus = [text[:400_000], page]
    gpt2 = trained_bytes(pre_tokenizers.ByteLevel(add_prefix_space=False), 900, ["<|endoftext|>"], corpus, False)
    (FOLDER / "gpt2").mkdir(parents=True, exist_ok=True)
    gpt2.model.save(str(FOLDER / "gpt2"))
    vocab_file = FOLDER / "gpt2" / "vocab.json"
    vocab = json.loads(vocab_file.read_text())
    vocab["<|endoftext|>"] = len(vocab)  # as in the published file
    vocab_file.write_text(json.dumps(vocab, ensure_ascii=False))
    gpt2.save(str(FOLDER / "gpt2.json"))
    added = [AddedToken("<|endoftext|>", normalized=False), AddedToken("<|end", normalized=True, special=False),
             AddedToken("<|pad|>", normalized=False), AddedToken("<|pad|><", normalized=False),
             AddedToken("[MASK]", normalized=True)]
    for name, pre_tokenizer in (
            ("llama3", llama3_like()), ("gpt4o", llama3_like(GPT4O)),
            ("prefix_space", pre_tokenizers.ByteLevel(add_prefix_space=True)),
            ("words", pre_tokenizers.Sequence([
                pre_tokenizers.Split("\n", "removed"),
                pre_tokenizers.Split(Regex(r"[\S\t]+|[^\S\u3000]{1,4}"), "removed", invert=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]))):
        tokenizer = trained_bytes(pre_tokenizer, 700, added, corpus, name == "llama3")
        tokenizer.save(str(FOLDER / f"{name}.json"))
    unreachable_words(FOLDER / "llama3.json", ["ĠNebuchadnezzar", "thing", "Ġrtl", "xyzzy", "camelCaseWord", "123"])
    spm = FOLDER / "spm"
    training = FOLDER / "spm.training.txt"
    training.write_text("\n".join(line for line in text.splitlines()[:6000] if line) + "\n")
    subprocess.run(["spm_train", f"--input={training}", f"--model_prefix={spm}", "--vocab_size=600", "--model_type=bpe",
                    "--byte_fallback=true", "--normalization_rule_name=identity", "--character_coverage=1.0", "--num_threads=1", "--minloglevel=2"], check=True)
    training.unlink()
    (FOLDER / "spm.vocab").unlink()


def gpt2_pair():
    """As users of the pair of files get it."""
    tokenizer = Tokenizer(models.BPE.from_file(str(FOLDER / "gpt2/vocab.json"), str(FOLDER / "gpt2/merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def make_expected(text, page):
    expected = {"text_bytes": len(text.encode())}
    for name in ("gpt2", "llama3", "gpt4o", "prefix_space", "words"):
        tokenizer = gpt2_pair() if name == "gpt2" else Tokenizer.from_file(str(FOLDER / f"{name}.json"))
        ids = tokenizer.encode(page, add_special_tokens=False).ids
        (FOLDER / f"{name}.ids").write_text(" ".join(map(str, ids)) + "\n")
        whole = tokenizer.encode(text, add_special_tokens=False).ids
        expected[name] = {"tokens": len(whole), "crc32": zlib.crc32(array.array("i", whole).tobytes())}
        assert name != "gpt2" or Tokenizer.from_file(str(FOLDER / "gpt2.json")).encode(page).ids == ids
        print(name, tokenizer.get_vocab_size(), "tokens;", len(ids), "on the page;", expected[name])
    lines = [line for line in page.replace("\x00", " ").splitlines() if line.strip()]
    (FOLDER / "spm.txt").write_text("\n".join(lines) + "\n")
    ids = subprocess.run(["spm_encode", f"--model={FOLDER / 'spm.model'}", "--output_format=id"],
                         input=(FOLDER / "spm.txt").read_bytes(), capture_output=True, check=True).stdout
    (FOLDER / "spm.ids").write_bytes(ids)
    (FOLDER / "quickstart_text.json").write_text(json.dumps(expected, indent=1) + "\n")


def short_page():
    """Some of the nasty page, and what normalizers, byte fallback, digits and blanks make of text."""
    lines = [line for line in nasty_page().split("\n") if len(line) < 400][:19]
    lines += ["e\u0301 \u1e69 s\u0323\u0307 s\u0307\u0323 \u212b\u2126\uf900 \u1112\u1161\u11ab \u0958 \u09c7\u09be q\u0315\u0300\u05ae\u0328x",
              "young \u0898\u0301 a\u08ca\u0334 o\U0001e2ae\u0334 \U00011938\U00011935\U00011930 \u32ff \U00010781",
              "0 01 012 0123 \u0663\u0664 \u2167 x1y22z333 1.5e-10 \u00b2",
              "<s>a</s> b <|endoftext|>  <unk>x <|end|>  \n  y <think> \u2581 \u2581\u2581 _",
              "  two   three    four\t\ttabs\n\n\n  \u00a0\u00a0\u3000 end  "]
    return "\n".join(lines)


def make_structures(text, page, trains):
    """One small tokenizer for each published structure, the tokens of the page, and what they decode to."""
    expected = {}
    for name in sorted(STRUCTURES.keys() - {"gpt2"}):
        byte_level = STRUCTURES[name][0] == "bytes"
        file = FOLDER / "structures" / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        if trains:  # which of equally frequent characters it keeps is left to chance in the library
            file.write_text(trained(name, [text[:300_000], page], 480 if byte_level else 700) + "\n")
        tokenizer = Tokenizer.from_file(str(file))
        ids = tokenizer.encode(page, add_special_tokens=False).ids
        mixed = list(range(0, tokenizer.get_vocab_size(), 7)) + ids[1::3]  # no text has them in this order
        expected[name] = {"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False), "mixed": mixed,
                          "decoded_mixed": tokenizer.decode(mixed, skip_special_tokens=False)}
        print(name, tokenizer.get_vocab_size(), "tokens;", len(ids), "on the short page")
    (FOLDER / "structures" / "page.txt").write_bytes(page.encode())
    (FOLDER / "structures" / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


def make_spm_decoded():
    """Rows of tokens, and the text that spm_decode makes of each, ended by a record separator."""
    chosen = random.Random(7)
    known = [list(map(int, line.split())) for line in (FOLDER / "spm.ids").read_text().splitlines()]
    rows = [line[start:start + 40] for line in known[:20] for start in (chosen.randrange(4),)]
    rows += [[chosen.choice((chosen.randrange(600), chosen.randrange(3, 259), chosen.choice(chosen.choice(known))))
              for _ in range(30)] for _ in range(20)]
    rows += [[chosen.choice((0, 1, 2, 3 + 0xC3, 3 + 0xA9, 3 + 0xF0, *chosen.sample(range(259, 600), 2))) for _ in range(20)]
             for _ in range(20)]
    decoded = b""
    for row in rows:
        ids = " ".join(map(str, row))
        text = subprocess.run(["spm_decode", f"--model={FOLDER / 'spm.model'}", "--input_format=id"], check=True,
                              input=ids.encode(), capture_output=True).stdout
        assert text.endswith(b"\n") and b"\x1e" not in text, text
        decoded += ids.encode() + b"\n" + text[:-1] + b"\x1e"
    (FOLDER / "spm_decoded.txt").write_bytes(decoded)


def print_young():
    """Characters with a class or a decomposition in the newest Unicode, which the library leaves alone."""
    import unicodedata2
    forms = {name: getattr(normalizers, name)() for name in ("NFC", "NFD", "NFKC", "NFKD")}
    runs = []
    for code in (c for c in range(0x110000) if not 0xD800 <= c < 0xE000):
        character, combining = chr(code), unicodedata2.combining(chr(code))
        if combining or unicodedata2.decomposition(character):
            after = "\u0334" if combining > 1 else "\u0301"
            texts = (character, "a" + character + after, "\u0315" + character if combining else character)
            if any(form.normalize_str(text) != unicodedata2.normalize(name, text)
                   for name, form in forms.items() for text in texts):
                if runs and runs[-1][1] == code - 1:
                    runs[-1][1] = code
                else:
                    runs.append([code, code])
    print(f"Unicode {unicodedata2.unidata_version}:", ", ".join(f"{{0x{first:X}, 0x{last:X}}}" for first, last in runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path, nargs="?")
    parser.add_argument("--young", action="store_true")
    parser.add_argument("--only-expected", action="store_true", help="keep the tokenizers, make the expected tokens anew")
    arguments = parser.parse_args()
    if arguments.young:
        print_young()
        return
    FOLDER.mkdir(exist_ok=True)
    text, page = arguments.text.read_text(), nasty_page()
    (FOLDER / "nasty.txt").write_bytes(page.encode())
    if not arguments.only_expected:
        make_tokenizers(text, page)
    make_expected(text, page)
    make_spm_decoded()
    make_structures(text, short_page(), not arguments.only_expected)
    make_odd_tokenizers(FOLDER / "odd.json")


main()
