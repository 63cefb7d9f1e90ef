# SPDX-License-Identifier: Apache-2.0
"""Reads the variables of a Makefile.in: assignments, references, and the functions that such files use. Of rules only
the targets are read, and of conditionals all branches count."""

import glob
import os
import pathlib
import re
import shlex

from . import DudacError, read_text
from .programs import Program, run_program

ASSIGNMENT = re.compile(r"^(?:export +)?([A-Za-z_]\w*)\s*(\+=|\?=|:{0,2}=)\s*(.*)$")
RULE = re.compile(r"^[^\t#=]*:(?!=)")
REFERENCE_IN_RULE = re.compile(r"^[^:]*\$[({][^:)}]*:")  # $(OBJECTS:.o=.d), whose colon is none of a rule
CLOSING = {"(": ")", "{": "}"}
DEPTH_MAX = 32
BYTES_MAX = 1 << 20  # of a file, and of what a reference stands for
REFERENCES_MAX = 10_000  # of one variable, by way of others, too
SHELL_SECONDS = 30


def join_lines(text: str):
    """Yields the lines that are no recipes: a tab begins one below the first rule only."""
    has_rule = False
    for line in re.sub(r"\\\n[ \t]*", " ", text).split("\n"):
        if not (has_rule and line.startswith("\t")):
            line = re.sub(r"(?<!\\)#.*", "", line).strip()
            has_rule = has_rule or bool(RULE.match(line))
            yield line


def replace_words(text: str, old: str, new: str) -> str:
    """$(VAR:old=new) and $(patsubst old,new,text): `old` is a pattern with %, or the end of a word."""
    if "%" not in old:
        old, new = f"%{old}", f"%{new}"
    before, _, after = old.partition("%")

    def replace(word: str) -> str:
        if len(word) < len(before + after) or not word.startswith(before) or not word.endswith(after):
            return word
        return new.replace("%", word[len(before):len(word) - len(after)], 1)

    return " ".join(replace(word) for word in text.split())


def find_end(text: str, start: int) -> int:
    """The position of the bracket that closes the one at `start`, or -1."""
    opening, depth = text[start], 0
    for at in range(start, len(text)):
        depth += (text[at] == opening) - (text[at] == CLOSING[opening])
        if depth == 0:
            return at
    return -1


class Makefile:
    """Variables of a file, whose references are resolved when they are asked for, as make does."""

    def __init__(self, path: pathlib.Path):
        self.path, self.values, self.references = path, {}, 0
        self.rules = []  # what is before the colons
        for line in join_lines(read_text(path, BYTES_MAX, "replace")):
            if match := ASSIGNMENT.match(line):
                self.assign(*match.groups())
            elif RULE.match(line) and not REFERENCE_IN_RULE.match(line):
                self.rules.append(line.partition(":")[0])

    def assign(self, name: str, operator: str, value: str) -> None:
        if operator == "+=":
            self.values[name] = f"{self.values.get(name, '')} {value}".strip()
        elif operator == "?=":
            self.values.setdefault(name, value)
        elif operator == "=":
            self.values[name] = value
        else:
            self.values[name] = self.expand(value).replace("$", "$$")

    def get(self, name: str) -> str:
        self.references = 0
        return self.expand(self.values.get(name, "")).strip()

    def words(self, name: str) -> list:
        """The words of a variable, as the shell of a recipe would see them."""
        value = self.get(name)
        try:
            if "`" in value or "$(" in value:
                return self.run_shell(f"printf '%s\\n' {value}").split("\n")[:-1]
            return shlex.split(value)
        except ValueError as error:
            raise DudacError(f"{self.path}: {name}: {error}") from None

    def targets(self) -> list:
        self.references = 0
        return [target for rule in self.rules for target in self.expand(rule).split()]

    def expand(self, text: str, depth: int = 0) -> str:
        if depth > DEPTH_MAX:
            raise DudacError(f"{self.path}: a variable refers to itself")
        parts, at = [], 0
        while (dollar := text.find("$", at)) >= 0 and dollar + 1 < len(text):
            parts.append(text[at:dollar])
            following = text[dollar + 1]
            end = find_end(text, dollar + 1) if following in CLOSING else dollar + 1
            if end < 0:
                raise DudacError(f"{self.path}: ${following} is never closed")
            inside = text[dollar + 2:end] if following in CLOSING else following
            parts.append("$" if following == "$" else self.resolve(inside, depth + 1))
            at = end + 1
        whole = "".join([*parts, text[at:]])
        if len(whole) > BYTES_MAX:
            raise DudacError(f"{self.path}: a variable is longer than {BYTES_MAX} bytes")
        return whole

    def resolve(self, inside: str, depth: int) -> str:
        self.references += 1
        if self.references > REFERENCES_MAX:
            raise DudacError(f"{self.path}: a variable has more than {REFERENCES_MAX} references")
        function, _, argument = inside.partition(" ")
        if argument and function == "shell":
            return " ".join(self.run_shell(self.expand(argument, depth)).split())
        if argument and function == "wildcard":
            return " ".join(self.find_files(self.expand(argument, depth)))
        if function == "patsubst" and argument.count(",") >= 2:
            old, new, text = (self.expand(each, depth).strip() for each in argument.split(",", 2))
            return replace_words(text, old, new)
        name, _, change = inside.partition(":")
        value = self.values.get(name)
        value = os.environ.get(name, "") if value is None else self.expand(value, depth)
        old, equals, new = change.partition("=")
        if equals:
            value = replace_words(value, old, new)
        return value

    def find_files(self, patterns: str):
        for pattern in patterns.split():
            yield from sorted(glob.glob(pattern, root_dir=self.path.parent))

    def run_shell(self, command: str) -> str:
        """Returns what a command prints. As in make, one that fails gives less; what it says of that is shown."""
        done = run_program(Program(["sh", "-c", command], self.path.parent, SHELL_SECONDS, errors=None))
        if done.status is None:
            raise DudacError(f"{self.path}: {command}: no end after {SHELL_SECONDS} s")
        return done.text("surrogateescape")
