# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""The structures of published tokenizers, as their tokenizer.json has them, rebuilt with the `tokenizers` package and
trained on any text: normalizers, pre-tokenizers, decoders, added tokens and flags of the model. Used by
make_tokenizer_goldens.py (small vocabularies, committed) and by benchmarks/tokenizer_speed."""
import json

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")
LLAMA3 = QWEN.replace(r"\p{N}| ?", r"\p{N}{1,3}| ?")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CHARACTERS_FROM = "\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff"


def added(content, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True} | flags


def split(expression, behavior="isolated"):
    return pre_tokenizers.Split(Regex(expression), behavior)


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=use_regex)


LLAMA_DECODER = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]

# name: (kind of training, normalizer, pre-tokenizer, decoder, added tokens, flags of the model)
STRUCTURES = {
    "qwen2.5": ("bytes", normalizers.NFC(), pre_tokenizers.Sequence([split(QWEN), byte_level(False)]),
                decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
                [added("<|endoftext|>"), added("<|im_start|>"), added("<|im_end|>"),
                 added("<tool_call>", special=False)], {}),
    "pythia": ("bytes", normalizers.NFC(), byte_level(True), decoders.ByteLevel(),
               [added("<|endoftext|>"), added("<|padding|>")]
               + [added(" " * n, normalized=True, special=False) for n in range(24, 1, -1)], {}),
    "smollm": ("bytes", None, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)]),
               decoders.ByteLevel(), [added("<|endoftext|>"), added("<|im_start|>"), added("<repo_name>")], {}),
    "deepseek": ("bytes", normalizers.Sequence([]),
                 pre_tokenizers.Sequence([split(r"\p{N}{1,3}"), split(f"[{CHARACTERS_FROM}]+"), split(DEEPSEEK),
                                          byte_level(False)]),
                 decoders.ByteLevel(), [added("<｜begin▁of▁sentence｜>"), added("<｜end▁of▁sentence｜>"),
                                        added("<think>", special=False, normalized=True)], {}),
    "llama2": ("characters", normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
               decoders.Sequence(LLAMA_DECODER), [added("<unk>"), added("<s>"), added("</s>")],
               {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}),
    "gemma": ("characters", normalizers.Replace(" ", "▁"),
              pre_tokenizers.Split(" ", "merged_with_previous"), decoders.Sequence(LLAMA_DECODER[:3]),
              [added("<pad>"), added("<eos>"), added("<bos>"), added("<unk>")]
              + [added("\n" * n, special=False) for n in range(2, 12)]
              + [added("▁" * n, special=False) for n in range(2, 32)] + [added("<table>", special=False)],
              {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}),
    "llama3": ("bytes", None, pre_tokenizers.Sequence([split(LLAMA3), byte_level(False)]), decoders.ByteLevel(),
               [added("<|begin_of_text|>"), added("<|end_of_text|>"), added("<|eot_id|>")], {"ignore_merges": True}),
    # beside the seven
    "gpt2": ("bytes", None, byte_level(True), decoders.ByteLevel(), [added("<|endoftext|>")], {}),
    **{form: ("bytes", normalizer, byte_level(True), decoders.ByteLevel(), [added("<s>")], {})
       for form, normalizer in (("nfd", normalizers.NFD()), ("nfkd", normalizers.NFKD()), ("lower", normalizers.Lowercase()),
                                ("nfkc", normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])))},
    "mistral": ("characters", None,
                pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False),
                decoders.Sequence(LLAMA_DECODER), [added("<unk>"), added("<s>"), added("</s>")],
                {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}),
    "phi3": ("characters", normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
             decoders.Sequence(LLAMA_DECODER),
             [added("<unk>"), added("<s>"), added("</s>", special=False, rstrip=True), added("<|endoftext|>"),
              added("<|assistant|>", rstrip=True), added("<|end|>", rstrip=True)],
             {"byte_fallback": True, "fuse_unk": False, "unk_token": "<unk>"}),
}


def trained(name, text, size):
    """The tokenizer of a structure, as a file's text, with a vocabulary of `size` tokens from a list of texts."""
    kind, normalizer, pre_tokenizer, decoder, tokens, flags = STRUCTURES[name]
    if kind == "bytes":
        learner = Tokenizer(models.BPE())
        learner.normalizer, learner.pre_tokenizer = normalizer, pre_tokenizer
        learner.train_from_iterator(text, trainers.BpeTrainer(
            vocab_size=size - len(tokens), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        vocab_first = []
    else:  # words are learned with their blank, as SentencePiece does; only the model is taken
        learner = Tokenizer(models.BPE())
        learner.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
        learner.train_from_iterator(
            (line for part in text for line in part.splitlines()),
            trainers.BpeTrainer(vocab_size=size - 256 - len(tokens), limit_alphabet=min(1500, size // 3),
                                show_progress=False))
        vocab_first = [token["content"] for token in tokens] + [f"<0x{byte:02X}>" for byte in range(256)]
    document = json.loads(learner.to_str())
    model = document["model"]
    if vocab_first:
        learned = sorted(model["vocab"], key=model["vocab"].get)
        order = vocab_first + [token for token in learned if token not in set(vocab_first)]
        model["vocab"] = {token: number for number, token in enumerate(order)}
    model |= flags
    whole = Tokenizer(models.BPE())
    if normalizer is not None:
        whole.normalizer = normalizer
    if pre_tokenizer is not None:
        whole.pre_tokenizer = pre_tokenizer
    whole.decoder = decoder
    document |= {key: json.loads(whole.to_str())[key] for key in ("normalizer", "pre_tokenizer", "decoder")}
    first = len(model["vocab"])
    document["added_tokens"] = [{"id": model["vocab"].get(token["content"], first + number)} | token
                                for number, token in enumerate(tokens)]
    return Tokenizer.from_str(json.dumps(document)).to_str(pretty=False)


def difficult_characters(newest=14):
    """Every character assigned up to Unicode 14 (Python 3.11), beside blanks, and those that are no plain letters beside
    letters, digits and marks, too; marks in many orders; decomposed text."""
    import unicodedata
    assert int(unicodedata.unidata_version.split(".")[0]) == newest, unicodedata.unidata_version
    assigned = [chr(c) for c in range(0x110000)
                if not 0xD800 <= c < 0xE000 and (c < 0xF0000 or c > 0x10FFF0) and unicodedata.category(chr(c)) != "Cn"]
    lines = []
    for start in range(0, len(assigned), 64):
        part = assigned[start:start + 64]
        lines.append("".join(part))
        lines.append(" ".join(part))
        lines.append("".join(f"a{c}\u0301{c}\u0323 1{c}2 .{c}" for c in part
                             if c not in "\r\n" and unicodedata.category(c) not in ("Lo", "Co")))
    marks = [c for c in assigned if unicodedata.combining(c)]
    for start in range(0, len(marks), 8):
        lines.append("o" + "".join(reversed(marks[start:start + 8])) + "x" + "e".join(marks[start:start + 8]))
    lines += [unicodedata.normalize(form, "".join(assigned[start:start + 400]))
              for form in ("NFD", "NFKC") for start in range(0, 20000, 400)]
    return "\n".join(lines)


def blanks():
    """Long runs of blanks of all kinds, as code and tables have them."""
    runs = [c * n for c in (" ", "\t", "\n", "\r\n", "\u00a0", "\u3000", " \n", "\t ", "  \t")
            for n in (*range(1, 40), 63, 64, 65, 127, 1000)]
    return "".join(f"{run}x{run}1{run}.{run}\n{run}" for run in runs)
