# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""C++ text as tokens, brackets and functions: as much of the language as messages.py needs."""
import dataclasses
import re

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?P<raw>.*?)\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
                   r"|[A-Za-z_]\w*|\d[\w.']*|::|->|\+=|==|!=|<=|>=|\s+|.", re.S)
OPENING = {"(": ")", "[": "]", "{": "}"}
CONTROL = {"if", "for", "while", "switch", "catch"}
ESCAPES = {"n": "\n", "t": "\t"}


@dataclasses.dataclass(frozen=True)
class Token:
    text: str
    line: int
    is_literal: bool = False


def unescaped(literal: str) -> str:
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found.group(1), found.group(1)), literal)


class Source:
    """One file: its tokens, the bracket that closes each, and the blocks around each place, read when first asked for.

    Literals that stand together are one token. A range of tokens is (its first, the one after its last)."""

    def __init__(self, name: str, text: str):
        self.name = name
        self.text = text

    def __getattr__(self, name: str):
        if name not in ("tokens", "close", "around"):
            raise AttributeError(name)
        self.tokens = self.read_tokens()
        self.close, self.around = self.match_brackets()
        return self.__dict__[name]

    def read_tokens(self) -> list:
        tokens, line = [], 1
        for found in TOKEN.finditer(self.text):
            word = found.group()
            if word[0] == '"' or found.group("raw") is not None:
                said = unescaped(word[1:-1]) if word[0] == '"' else found.group("raw")
                if tokens and tokens[-1].is_literal:
                    said = tokens.pop().text + said
                tokens.append(Token(said, line, True))
            elif tokens and tokens[-1].is_literal and re.fullmatch(r"[A-Z][A-Z0-9_]+", word):  # a macro for a literal
                tokens.append(Token(tokens.pop().text + "{}", line, True))
            elif not word.isspace() and not word.startswith(("//", "/*")):
                tokens.append(Token(word, line))
            line += word.count("\n")
        return tokens

    def match_brackets(self) -> tuple:
        close, around, stack, blocks = {}, [], [], [None]
        for i, token in enumerate(self.tokens):
            around.append(blocks[-1])  # the innermost { before it
            if token.is_literal:
                continue
            if token.text in OPENING:
                stack.append(i)
                if token.text == "{":
                    blocks.append(i)
            elif token.text in OPENING.values() and stack:
                if token.text == "}":
                    blocks.pop()
                close[stack.pop()] = i
        return close, around

    def is_word(self, i: int, *texts: str) -> bool:
        return 0 <= i < len(self.tokens) and not self.tokens[i].is_literal and self.tokens[i].text in texts

    def said(self, begin: int, end: int) -> list:
        return [token.text for token in self.tokens[begin:end]]

    def calls(self, names) -> list:
        """The places of names before a bracket."""
        if not re.search(rf"\b(?:{'|'.join(names)})\s*[({{]", self.text):
            return []
        return [i for i in range(len(self.tokens)) if self.is_word(i, *names) and self.is_word(i + 1, "(", "{")]

    def split(self, begin: int, end: int, *separators: str) -> list:
        """Where one of them stands outside all brackets."""
        at, found = begin, []
        while at < end:
            if self.is_word(at, *separators):
                found.append(at)
            at = self.close.get(at, at) + 1
        return found

    def arguments(self, opens: int) -> list:
        """The ranges between the commas of the brackets that open there."""
        commas = self.split(opens + 1, self.close[opens], ",")
        ranges = list(zip([opens + 1] + [comma + 1 for comma in commas], commas + [self.close[opens]]))
        return ranges if ranges[-1][0] < ranges[-1][1] else ranges[:-1]

    def defines(self, name: str) -> bool:
        return any(self.is_word(i + 1, "(") and self.is_word(self.close[i + 1] + 1, "{") for i in self.calls([name]))

    def is_unnamed(self, at: int) -> bool:
        """Whether a place is in an unnamed namespace, which no other file sees."""
        block = self.around[at]
        while block is not None and not self.is_word(block - 1, "namespace"):
            block = self.around[block]
        return block is not None

    def functions(self, at: int):
        """(name, {parameter: its type}, its {) of the functions and lambdas around a place, from the innermost."""
        block = self.around[at]
        while block is not None:
            first = block
            while first > 0 and not self.is_word(first - 1, ";", "{", "}"):
                first -= 1
            opens = next((i for i in range(first, block) if self.is_word(i, "(")), None)
            if opens and not self.is_word(opens - 1, *CONTROL):
                parameters = {}
                for begin, end in self.arguments(opens):
                    last = (self.split(begin, end, "=") or [end])[0] - 1
                    parameters[self.tokens[last].text] = self.said(begin, last)
                yield self.tokens[opens - 1].text, parameters, block
            block = self.around[block]
