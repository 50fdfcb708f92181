#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Lists the messages with which programs of fourfold refuse or fail, and their exit codes: what UserError and its kin
say.

Usage: messages.py [ROOT]. It reads the C++ text: literals that stand together are one, what fmt fills in becomes {},
and a message that a function takes as its parameter is looked for where that function is called. A throw whose text it
cannot find is an error; message_places.py has those that it finds by their place."""
import dataclasses
import functools
import pathlib
import re
import sys

from cpp_text import Source
from message_places import CODES, DEFINED_IN, FRAGMENT, KEEPERS, PASSED_ON, RETURNED, THROWN, WORDED_ELSEWHERE

FOLDERS = ("src", "io", "kernels", "apps")
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
TEXT_TYPES = (["const", "std", "::", "string", "&"], ["std", "::", "string"])
LEAST_WORDS = 2  # what says less is a frame for another message


class Unclear(Exception):
    """An expression whose text is not in the source."""


class Parameter(Exception):
    """An expression that is a parameter of the function around it: (name of the function, number of the parameter)."""


@dataclasses.dataclass(frozen=True, order=True)
class Message:
    text: str
    file: str
    line: int
    codes: tuple


@dataclasses.dataclass(frozen=True)
class Forwarder:
    """A function that throws what it is given."""
    message: int  # the number of that parameter
    code: object  # of the exit code, if that is a parameter too
    codes: tuple
    is_seen: bool  # by other files


def is_long(text: str) -> bool:
    return len(re.findall(r"[A-Za-z][A-Za-z']+", text)) >= LEAST_WORDS


def with_holes(text: str) -> str:
    return re.sub(r"\{[^{}]*\}", "{}", text)


def folder_of(file: str) -> str:
    return file.rpartition("/")[0]


def codes_in(source: Source, begin: int, end: int) -> tuple:
    said = source.said(begin, end)
    return tuple(sorted({CODES[c] for a, b, c in zip(said, said[1:], said[2:]) if (a, b) == ("ExitCode", "::")}))


def is_declaration(source: Source, begin: int, end: int) -> bool:
    return re.search(r"std :: string( &|( (message|text))?$)", " ".join(source.said(begin, end))) is not None


class Reader:
    def __init__(self, root):
        root = pathlib.Path(root)
        paths = sorted(p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in SUFFIXES)
        self.sources = [Source(p.relative_to(root).as_posix(), p.read_text(encoding="utf-8")) for p in paths]
        self.messages = set()
        self.unclear = []  # (file, line, expression)
        self.forwarders = {}  # name: {file: Forwarder}
        self.looked_for = set()
        self.passed_on = set()  # what of PASSED_ON there is

    def read(self) -> list:
        for source in self.sources:
            if source.name not in DEFINED_IN:
                for i in source.calls(THROWN):
                    self.thrown(source, i, *THROWN[source.tokens[i].text])
            for (name, file), (message, codes, added) in KEEPERS.items():
                if source.name == file:
                    for i in source.calls([name]):
                        self.thrown(source, i, message, None, codes, added)
            for function, codes in RETURNED.get(source.name, {}).items():
                self.returned(source, function, codes)
        while self.forwarders.keys() - self.looked_for:
            name = min(self.forwarders.keys() - self.looked_for)
            self.looked_for.add(name)
            for source in self.sources:
                for i in source.calls([name]):
                    self.forwarded(source, i, name)
        return sorted(self.messages)

    def stale_places(self) -> list:
        """What message_places.py names and is not there."""
        files = {source.name for source in self.sources}
        named = {*DEFINED_IN, *RETURNED, *(file for _, file in KEEPERS), *(file for file, _ in WORDED_ELSEWHERE)}
        throws = {(file, words) for file, of in PASSED_ON.items() for words in of}
        return sorted(named - files) + [f"{file}: {words}" for file, words in sorted(throws - self.passed_on)]

    def forwarded(self, source: Source, i: int, name: str):
        """A call of a function of that name, if it is one of those that throw what they are given."""
        by_file = self.forwarders[name]
        called = by_file.get(source.name)
        if not called and not source.defines(name):
            is_public = any("/include/" in one.name and re.search(rf"\b{name}\(", one.text) for one in self.sources)
            called = next((one for file, one in by_file.items()
                           if one.is_seen and (is_public or folder_of(file) == folder_of(source.name))), None)
        if called:
            self.thrown(source, i, called.message, called.code, called.codes)

    def thrown(self, source: Source, i: int, number: int, code_number, codes: tuple, added: str = ""):
        """What the call at i is given as its message."""
        arguments = source.arguments(i + 1)
        if len(arguments) <= number or is_declaration(source, *arguments[number]):
            return
        begin, end = arguments[number]
        expression = " ".join(source.said(begin, end))
        passed_on = [(source.name, words) for words in PASSED_ON.get(source.name, ()) if expression.startswith(words)]
        if passed_on:
            self.passed_on.update(passed_on)
            return
        line, code_parameter = source.tokens[i].line, None
        if code_number is not None and code_number < len(arguments):
            first, after = arguments[code_number]
            codes = codes_in(source, first, after)
            if not codes and after == first + 1:
                word = source.tokens[first].text
                code_parameter = next((list(of).index(word) for _, of, _ in source.functions(i) if word in of), None)
        try:
            texts = self.texts(source, begin, end)
            if not all(is_long(text) for text in texts):
                raise Unclear()
            self.messages.update(Message(text + added, source.name, line, codes) for text in texts)
        except Parameter as parameter:
            name, message = parameter.args
            if source.name not in self.forwarders.setdefault(name, {}):
                self.forwarders[name][source.name] = Forwarder(message, code_parameter, codes, not source.is_unnamed(i))
                self.looked_for.discard(name)
        except Unclear:
            for (file, words), (text, its_codes) in WORDED_ELSEWHERE.items():
                if source.name == file and expression.startswith(words):
                    self.messages.add(Message(text, file, line, its_codes))
                    return
            self.unclear.append((source.name, line, expression))

    def texts(self, source: Source, begin: int, end: int) -> list:
        """All that the expression between the two can say."""
        if end <= begin:
            raise Unclear()
        if source.is_word(begin, "(") and source.close[begin] == end - 1:
            return self.texts(source, begin + 1, end - 1)
        if questions := source.split(begin, end, "?"):
            colons = source.split(questions[0], end, ":")
            colon = colons[-1] if len(questions) == 1 else colons[0]
            return self.texts(source, questions[0] + 1, colon) + self.texts(source, colon + 1, end)
        if sums := source.split(begin, end, "+"):
            ranges = zip([begin] + [at + 1 for at in sums], sums + [end])
            parts = [self.texts_or_hole(source, *of) for of in ranges]
            return functools.reduce(lambda said, more: [a + b for a in said for b in more], parts)
        if end == begin + 1 and source.tokens[begin].is_literal:
            return [source.tokens[begin].text]
        opens = next((i for i in range(begin, end) if source.is_word(i, "(", "{")), None)
        if opens and source.close[opens] == end - 1:
            arguments = source.arguments(opens)
            if source.is_word(opens - 1, "format_message", "format"):
                return self.formatted(source, arguments)
            if arguments and source.is_word(opens - 1, "located", "string", "MadeLines", "optional"):
                return self.texts(source, *arguments[0])
        if source.is_word(begin, "*"):
            begin += 1
        if end == begin + 1 and re.fullmatch(r"[a-z_]\w*", source.tokens[begin].text):
            return self.named(source, begin, source.tokens[begin].text)
        raise Unclear()

    def texts_or_hole(self, source: Source, begin: int, end: int) -> list:
        try:
            return self.texts(source, begin, end)
        except (Unclear, Parameter):
            return ["{}"]

    def formatted(self, source: Source, arguments: list) -> list:
        said = []
        for form in map(with_holes, self.texts(source, *arguments[0])):
            said += [form] if is_long(form) else self.filled(source, form, arguments[1:])
        return said

    def filled(self, source: Source, frame: str, arguments: list) -> list:
        """A frame whose own words are too few to be a message: what is put into it makes one."""
        parts, said, parameter = frame.split("{}"), [""], None
        for part, argument in zip(parts, arguments):
            fills, parameter = ["{}"], None
            try:
                fills = self.texts(source, *argument)
            except Unclear:
                pass
            except Parameter as found:  # counts if it is the last one: those before name a file
                parameter = found
            said = [text + part + fill for text in said for fill in fills]
        if parameter and not any(is_long(text) for text in said):
            raise parameter
        return [text + parts[-1] for text in said]

    def named(self, source: Source, at: int, name: str) -> list:
        """What a variable or a parameter of that name holds."""
        for function, parameters, block in source.functions(at):
            said = []
            for i in range(block, at):
                if source.is_word(i, name) and source.is_word(i + 1, "=", "+="):
                    end = source.split(i + 2, len(source.tokens), ";", ")")[0]
                    said += filter(is_long, self.texts_or_hole(source, i + 2, end))
            if said:
                return said
            if name in parameters:
                if parameters[name] in TEXT_TYPES:
                    raise Parameter(function, list(parameters).index(name))
                break
        raise Unclear()

    def returned(self, source: Source, function: str, codes: tuple):
        """The literals of a function; "" is the file."""
        found = len(self.messages)
        for i, token in enumerate(source.tokens):
            text = with_holes(token.text)
            if not token.is_literal or not is_long(text) or FRAGMENT.match(text):
                continue
            if not function or any(name == function for name, _, _ in source.functions(i)):
                end = source.split(i, len(source.tokens), ";", "}")
                own = codes_in(source, i, end[0] if end else i)
                self.messages.add(Message(text, source.name, token.line, own or codes))
        if found == len(self.messages):
            self.unclear.append((source.name, 1, f"there is no {function}(), or it says nothing"))


def main() -> int:
    reader = Reader(sys.argv[1] if len(sys.argv) > 1 else ".")
    for message in reader.read():
        print(f"{message.file}:{message.line}: {','.join(map(str, message.codes)) or '-'}: {message.text!r}")
    for file, line, expression in reader.unclear:
        print(f"{file}:{line}: cannot tell what this says: {expression}")
    return 1 if reader.unclear else 0


if __name__ == "__main__":
    sys.exit(main())
