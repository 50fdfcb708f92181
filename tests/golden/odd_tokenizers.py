# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Small tokenizer files of kinds that the `tokenizers` library accepts, each with texts, the tokens that the library
gives for them and the text it decodes them to. Used by make_tokenizer_goldens.py."""
import json

from tokenizers import Tokenizer

BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
LLAMA_DECODER = {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
TEXTS = ["", "abc", "a b  ab\n", "aZb Zé", "é", "ZZéZa", "a<x> <y>b <x>", " <x> a<x>b  <y>", "\u0301a", "A Ab", "<x>   a b \n\n  a<x>\n<x> \n a"]


def vocabulary(tokens, first=0, step=1):
    return {token: first + step * number for number, token in enumerate(tokens)}


def document(vocab="abcĠ", merges=(), added=(), normalizer=None, pre_tokenizer=BYTES, decoder=BYTES, **flags):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [
        {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": False} | more for number, content, more in added],
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": decoder,
        "model": model | flags | {"vocab": vocab if isinstance(vocab, dict) else vocabulary(vocab),
                                  "merges": [list(merge) for merge in merges]}}


def characters(vocab="abc▁", merges=(), **more):
    return document(vocab, merges, **({"pre_tokenizer": None, "decoder": LLAMA_DECODER} | more))


def split(behavior, invert=False, pattern=None):
    return {"type": "Split", "pattern": pattern or {"Regex": "b|Z"}, "behavior": behavior, "invert": invert}


def metaspace(scheme, cuts=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cuts}


def sequence(*parts, key="pretokenizers"):
    return {"type": "Sequence", key: list(parts)}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def fallback(*lacking):
    return ["<unk>"] + [f"<0x{byte:02X}>" for byte in range(256) if byte not in lacking]


# The alphabet of bytes, a few letters of it, and merges.
ALPHABET = [chr(c) for c in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))]
WORDS = ["ab", "Ġa", "Ġab", "<", "x", ">", "<x", "<x>"]
MERGES = [("a", "b"), ("Ġ", "a"), ("Ġ", "ab")]
BOTH = [(90, "<x>", {}), (91, "<y>", {})]


def cases():
    # bytes that the vocabulary lacks: left out, the unknown token, fused or not, of bytes again
    yield "lacks bytes", document("abcĠ" + "Ċ", [])
    yield "lacks bytes, merges across them", document(["a", "b", "c", "ab"], [("a", "b")])
    yield "lacks bytes, unknown token", document(["<unk>", *"abc"], unk_token="<unk>")
    yield "lacks bytes, fused unknown token", document(["<unk>", *"abc"], unk_token="<unk>", fuse_unk=True)
    yield "lacks bytes, fallback to tokens of bytes", document(["a", *fallback()], byte_fallback=True)
    yield "unknown token merges", document(["<unk>", *"abc", "<unk>a"], [("<unk>", "a")], unk_token="<unk>")
    # numbers of added tokens
    yield "numbers beyond the vocabulary", document(added=[(50, "<x>", {}), (70, "<y>", {})])
    yield "numbers below", document(added=[(1, "<x>", {}), (1, "<y>", {})])
    yield "numbers out of order", document(added=[(9, "<x>", {}), (4, "<y>", {})])
    yield "gaps in the vocabulary", document(vocabulary("abcĠ", 0, 3), added=BOTH)
    yield "vocabulary begins late", document(vocabulary("abcĠ", 7), added=BOTH)
    yield "one text twice", document(added=[(4, "<x>", {}), (5, "<x>", {}), (6, "<y>", {})])
    yield "one text twice, the second takes blanks", document(added=[(4, "<x>", {}), (5, "<x>", {"lstrip": True})])
    yield "texts of the vocabulary", document(ALPHABET + WORDS, MERGES, added=[(0, "<x>", {}), (1, "ab", {}), (2, "<y>", {})])
    yield "an empty one", document(added=[(4, "", {}), (5, "<x>", {})])
    yield "two tokens with one number", document({"a": 0, "b": 1, "c": 1, "Ġ": 2})
    # what added tokens take with them
    for flags in ({"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}, {"single_word": True},
                  {"normalized": True}, {"normalized": True, "single_word": True, "lstrip": True}):
        yield f"added with {sorted(flags)}", document(ALPHABET + WORDS[:3], MERGES, added=[(1, "<x>", flags), (2, "b", flags)])
    # one among the blanks that the one before it takes (where both take the same ones, the library may end)
    for flags in ({}, {"rstrip": True}, {"single_word": True}):
        yield f"blanks as added tokens with {sorted(flags)}", document(ALPHABET + WORDS[:3], MERGES, added=[
            (1, "<x>", {"rstrip": True}), (2, "  ", flags), (3, "b", {"lstrip": True, "rstrip": True}), (4, "\n", flags)])
    yield "normal forms of added tokens", characters(
        [*"abc▁<>xy", "▁<x>"], added=[(9, "<X>", {"normalized": True}), (10, "b", {"normalized": True}), (11, "<y>", {})],
        normalizer=sequence({"type": "Lowercase"}, {"type": "Prepend", "prepend": "▁"}, key="normalizers"))
    yield "runs of blanks", document(ALPHABET + WORDS[:3], MERGES, added=[
        (1, "  ", {"normalized": True}), (2, "    ", {"normalized": True}), (3, " ", {"normalized": True})])
    yield "longest first", document(ALPHABET, added=[(1, "a", {}), (2, "ab", {}), (3, "a b", {}), (4, "<x", {}), (5, "<x>b", {})])
    # characters and fallback
    yield "characters vanish", characters()
    yield "unknown token", characters(["<unk>", *"abc▁"], unk_token="<unk>")
    yield "fused unknown token", characters(["<unk>", *"abc▁"], unk_token="<unk>", fuse_unk=True)
    yield "fallback", characters([*fallback(), *"abc▁"], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    yield "fallback lacks a byte", characters([*fallback(0xA9, 0x5A), *"abc▁"], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    yield "fallback lacks a byte, not fused", characters([*fallback(0x5A), *"abc▁"], unk_token="<unk>", byte_fallback=True)
    yield "fallback lacks all, nothing unknown", characters("abc▁", byte_fallback=True)
    yield "tokens of bytes merge", characters([*fallback(), *"abc", "<0x5A>b", "a<0x20>"],
                                              [("<0x5A>", "b"), ("a", "<0x20>")], byte_fallback=True)
    yield "merges across words", characters([*"abcZ ", "a ", "a b", "b a"], [("a", " "), ("a ", "b"), ("b", " ")][:2],
                                            decoder={"type": "Fuse"})
    yield "ignores merges", characters([*"abc", "abc", "ab"], [("a", "b")], ignore_merges=True, pre_tokenizer=split("Isolated", pattern={"String": " "}))
    # splitting
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield f"split {behavior} {invert}", characters([*"abcéZ <xy>", "ab", "Zé", "bZ", "aZ", "Zb", " Z", "a<"],
                                                           [("a", "b"), ("Z", "é"), ("b", "Z"), ("a", "Z"), ("Z", "b"),
                                                            (" ", "Z"), ("a", "<")],
                                                           pre_tokenizer=split(behavior, invert), decoder={"type": "Fuse"})
    yield "anchors", document(ALPHABET + WORDS[:3], MERGES, pre_tokenizer=sequence(
        split("Isolated", pattern={"Regex": r"\s+$"}), split("Isolated", pattern={"Regex": "^a"}), BYTES))
    yield "empty and nested sequences", document(
        ALPHABET + WORDS[:3], MERGES, normalizer=sequence(sequence(key="normalizers"), key="normalizers"),
        pre_tokenizer=sequence(sequence(), sequence({"type": "Digits", "individual_digits": False}, sequence(BYTES))),
        decoder=sequence(sequence(BYTES, key="decoders"), key="decoders"))
    yield "whitespace", characters("abcZé<>xyA", pre_tokenizer={"type": "Whitespace"}, decoder=None)
    yield "whitespace split", characters("abcZé<>xyA", pre_tokenizer={"type": "WhitespaceSplit"}, decoder=None)
    for scheme in ("always", "first", "never"):
        for cuts in (True, False):
            yield f"metaspace {scheme} {cuts}", characters(
                [*"abc▁", "▁a", "b▁", "▁▁"], [("▁", "a"), ("b", "▁"), ("▁", "▁")], added=[(7, "<x>", {}), (8, "Z", {})],
                pre_tokenizer=metaspace(scheme, cuts), decoder=metaspace(scheme, cuts))
    yield "prefix space", document(ALPHABET + WORDS[:3], MERGES, added=BOTH, pre_tokenizer=BYTES | {"add_prefix_space": True})
    # normalizing
    for name, normalizer in {
            "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
            "strip left": {"type": "Strip", "strip_left": True, "strip_right": False},
            "replace text": replace({"String": "ab"}, "é"), "replace expression": replace({"Regex": "[a-b]+ ?"}, "Z"),
            "replace by nothing": replace({"String": "a"}, ""), "prepend": {"type": "Prepend", "prepend": "Z"},
            "lower case": {"type": "Lowercase"}, "nfd": {"type": "NFD"}, "nfkc": {"type": "NFKC"}}.items():
        yield f"normalizer {name}", characters(
            [*"abcZézA\u0301 ", "Zb"], [("Z", "b")], normalizer=normalizer, added=[(20, "<y>", {"normalized": True})],
            unk_token="a", decoder={"type": "Fuse"})
    # decoding
    spelled = ["a", "▁b", "<0x41>", "<0xC3>", "<0xA9>", "<0x4>", "▁", "Ġ", "é", "  ", "<y>"]
    for name, decoder in {
            "none": None, "bytes": BYTES, "fallback": {"type": "ByteFallback"}, "fuse": {"type": "Fuse"},
            "llama": LLAMA_DECODER, "metaspace": metaspace("always"), "metaspace never": metaspace("never"),
            "strip": {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            "replace": replace({"Regex": "[a-b▁]+"}, "_"),
            "replace behind fuse": sequence({"type": "Fuse"}, replace({"String": "▁b"}, "!"), key="decoders"),
            "strip behind bytes": sequence(BYTES, {"type": "Strip", "content": "a", "start": 2, "stop": 0}, key="decoders"),
            "strip ends": {"type": "Strip", "content": "b", "start": 0, "stop": 1},
            "fallback behind replace": sequence(replace({"String": "▁"}, "<0x20>"), {"type": "ByteFallback"}, key="decoders"),
            "strip before fuse": sequence({"type": "Strip", "content": " ", "start": 1, "stop": 0}, {"type": "Fuse"}, key="decoders"),
            "long strip behind fuse": sequence({"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 3, "stop": 0}, key="decoders"),
            }.items():
        yield f"decoder {name}", characters(spelled, pre_tokenizer=None, decoder=decoder, added=[(12, "é", {}), (13, "Ġx", {}), (14, "a b", {})])


BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def pieces(expression, behavior="Isolated", invert=False):
    """Characters without merges, and a mark before each piece that the expression leaves."""
    return characters([*"abcABxstSßſkKiİf12 ▁{},\n", "é", "É"], decoder={"type": "Fuse"}, pre_tokenizer=sequence(
        split(behavior, invert, {"Regex": expression}), metaspace("always", False)))


def cases_with_texts():
    # repetitions: Oniguruma (Ruby syntax) has no lazy {n} and no possessive {n,m}; PCRE2 has both
    for expression in (r"[12]{2}?[ab]", r"(?:1|2){1}?a", r"[12]{1,2}?[ab]?", r"1{,2}?a", r"[12]{2,}?", r"a{,2}b", r"(?:a{,2}){2}b",
                       r"a{1,2}+b", r"[ab]{2}+1", r"(?:ab){1,2}+a", r"a{2,1}a", r"a{2,1}?b", r"a{1,2}{2}b", r"a+?+b", r"a?{2}b",
                       r"a{b}", r"a{,}", r"a{1,b}", r"a{ 1}", r"{a", r"a++b", r"a?+b", r"a+?b", r".*?++ab", r"(a|b{2}?)+1"):
        yield f"repetition {expression}", pieces(expression), [
            "12a1ab", "1a2b12b121a", "aab1aaaab aaaaab", "aaaa", "abab1", "bb1 b1", "a{b}a{,}a{1,b}a{ 1}{a"]
    # matches of nothing, which part what stands around them
    for expression in ("a?", "a*", "b*?", "^", "$", "(?=a)", "(?<=b)", "|a", "(?:a|1*)+", "\\n*", "a*b*", r"(?<=\s)|(?=\p{L}\p{N})"):
        for behavior in ("Isolated", "MergedWithNext") if expression != "a?" else BEHAVIORS:
            yield f"empty {expression} {behavior}", pieces(expression, behavior), ["aabab1", "b1 bb a", "a\nb\n", "éab"]
    for behavior in BEHAVIORS:
        for invert in (False, True):
            yield f"empty text {behavior} {invert}", pieces(r"(?=[ab])|1", behavior, invert), ["aab 1éb", "1x1"]
    yield "empty string", characters("ab▁é", pre_tokenizer=sequence(split("Isolated", pattern={"String": ""}), metaspace("always")), decoder={"type": "Fuse"}), ["abé"]
    # case: what folds to one character, and what is text but not side by side
    for expression in (r"(?i:k)", r"(?i:s|t)", r"(?i:[st]+)", r"(?i:[^s]+)", r"(?i:é)x", r"(?i:s+t)", r"(?i:(?:s|x)s)", r"s(?i:s)",
                       r"(?i:s{2})", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|s", r"(?i:\p{Ll})", r"(?i:\P{Lu}+)", r"(?i:a(?i:b)A)", r"(?i:a)b",
                       r"(?i:fa|if)"):
        yield f"case {expression}", pieces(expression), ["kKKa", "sSſtß", "éxÉx", "ssSſtST", "xsss Ss", "'s'ſ'S", "aBAabaABAB", "FAfaIFif"]
    # characters of [...] that only PCRE2 takes for more
    for expression in (r"[.a.]", r"[:ab:]+", r"[=a=]+", r"[a-c-x]+", r"[--a]+", r"[a-]+"):
        yield f"class {expression}", pieces(expression), ["abcx-.:=a", "a-x"]


def cases_of_first():
    """Metaspace that marks what begins where the text begins, behind what moves that place."""
    def first(*parts, normalizers=(), added=()):
        return characters([*"abcxyAB▁ 12.éfi", "e", "\u0301"], added=added, decoder={"type": "Fuse"},
                          normalizer=sequence(*normalizers, key="normalizers"), pre_tokenizer=sequence(*parts))
    strip = {"type": "Strip", "strip_left": True, "strip_right": False}
    one, lower, x = metaspace("first", False), {"type": "Lowercase"}, {"type": "Prepend", "prepend": "xy"}
    each = split("Isolated", pattern={"Regex": "."})
    yield "strip", first(one, normalizers=[strip])
    yield "strip, then more", first(one, normalizers=[strip, x, lower])
    yield "first blanks replaced", first(one, normalizers=[replace({"Regex": r"^\s+"}, "")])
    yield "first character replaced", first(each, one, normalizers=[replace({"Regex": "^[^b]"}, "1")])
    yield "first two characters replaced", first(each, one, normalizers=[replace({"String": "ab"}, "xy")])
    yield "put before", first(each, one, normalizers=[x])
    yield "put before and taken off", first(each, one, normalizers=[x, replace({"String": "x"}, ""), strip])
    yield "in lower case", first(each, one, normalizers=[lower])
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield f"in {form}", first(each, one, normalizers=[{"type": form}])
    yield "decomposed, then composed", first(each, one, normalizers=[{"type": "NFKD"}, x, {"type": "NFC"}])
    yield "marked twice", first(one, {"type": "Digits", "individual_digits": True}, one)
    yield "marked, cut and marked", first(metaspace("first"), each, one)
    yield "always, then first", first(metaspace("always", False), each, one)
    yield "behind added tokens", first(one, normalizers=[x], added=[(40, "xy", {"normalized": True}), (41, "<x>", {})])
    yield "in removed pieces", first(split("Removed", pattern={"Regex": "^."}), one)


FIRST_TEXTS = ["a b", " a b", "  ab c", "ab c", "abab", "", " ", "éa", "e\u0301a b", "\u0301a", "ﬁa", "①b", "ﬃ", "e\u0323\u0301a",
               "1 2a", "a1", "12", "xya", "<x>a", "İa", "AB a", "\u3000a", "각a", "\u1100\u1161b"]


def make_odd_tokenizers(file):
    listed = []
    for name, made, *more in (*cases(), *cases_with_texts(), *((*case, FIRST_TEXTS) for case in cases_of_first())):
        tokenizer = Tokenizer.from_str(json.dumps(made))
        size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        texts = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in (more[0] if more else TEXTS)]
        rows = [[number] for number in range(size)] if size < 60 else []
        rows += [list(range(size))[-60:], list(range(size))[:-60:-1], [number * 7 % size for number in range(30)]] + [text["ids"] for text in texts]
        if more or "two tokens with one number" in name:  # which of the two it decodes to is left to chance in the library
            rows = []
        decoded = [{"ids": row, "text": tokenizer.decode(row, skip_special_tokens=False)} for row in rows]
        listed.append({"name": name, "tokenizer": made, "texts": texts, "decoded": decoded})
    file.write_text("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in listed) + "\n]\n")
    print(len(listed), "odd tokenizers,", file.stat().st_size, "bytes")
