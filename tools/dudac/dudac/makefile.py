# SPDX-License-Identifier: Apache-2.0
"""Reads the variables of a Makefile.in: assignments, references, conditionals, included files, and the functions that
such files use. Of rules only the targets are read, and what they are made of."""

import glob
import math
import os
import pathlib
import re
import shlex

from . import DudacError, read_text
from .programs import Program, run_program

ASSIGNMENT = re.compile(r"^(?:export +)?([A-Za-z_]\w*)\s*(\+=|\?=|:{0,2}=)\s*(.*)$")
CONDITION = re.compile(r"^(ifeq|ifneq|ifdef|ifndef|else|endif)\b[ \t]*(.*)$")
INCLUDE = re.compile(r"^(include|-include|sinclude)[ \t]+(.*)$")
QUOTED_PAIR = re.compile(r"""(?:"([^"]*)"|'([^']*)')[ \t]*(?:"([^"]*)"|'([^']*)')$""")
RULE = re.compile(r"^[^\t#=]*:(?!=)")
CLOSING = {"(": ")", "{": "}"}
DEPTH_MAX = 32
BYTES_MAX = 1 << 20  # of a file, and of what a reference expands to
REFERENCES_MAX = 10_000  # of one variable, by way of others, too
PRODUCT_MAX = 1 << 24  # of the lengths of a function's arguments, which limit its result and its time
INCLUDES_MAX = 100
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


def match_word(word: str, patterns: str) -> bool:
    """Returns whether a word is one of the patterns, in which a % is any text."""
    def match(pattern: str) -> bool:
        before, percent, after = pattern.partition("%")
        fits = len(word) >= len(before + after) and word.startswith(before) and word.endswith(after)
        return fits if percent else word == pattern

    return any(map(match, patterns.split()))


# Functions of texts: name to the number of arguments, of which the last may have commas, and the function.
FUNCTIONS = {
    "subst": (3, lambda old, new, text: text.replace(old, new) if old else text + new),
    "patsubst": (3, lambda old, new, text: replace_words(text, old.strip(), new.strip())),
    "addprefix": (2, lambda prefix, text: " ".join(prefix + word for word in text.split())),
    "addsuffix": (2, lambda suffix, text: " ".join(word + suffix for word in text.split())),
    "filter": (2, lambda patterns, text: " ".join(word for word in text.split() if match_word(word, patterns))),
    "filter-out": (2, lambda patterns, text: " ".join(word for word in text.split() if not match_word(word, patterns))),
    "sort": (1, lambda text: " ".join(sorted(set(text.split())))),
    "strip": (1, lambda text: " ".join(text.split())),
    "firstword": (1, lambda text: "".join(text.split()[:1])),
    "lastword": (1, lambda text: "".join(text.split()[-1:])),
    "dir": (1, lambda text: " ".join(re.sub(r"[^/]*$", "", word) or "./" for word in text.split())),
    "notdir": (1, lambda text: " ".join(re.sub(r".*/", "", word) for word in text.split())),
    "basename": (1, lambda text: " ".join(re.sub(r"\.[^./]*$", "", word) for word in text.split())),
}


def find_end(text: str, start: int) -> int:
    """The position of the bracket that closes the one at `start`, or -1."""
    opening, depth = text[start], 0
    for at in range(start, len(text)):
        depth += (text[at] == opening) - (text[at] == CLOSING[opening])
        if depth == 0:
            return at
    return -1


def split_arguments(text: str, count: int) -> list:
    """Splits at commas outside of brackets, into `count` arguments at most."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and depth == 0 and len(parts) + 1 < count:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def has_reference_at_colon(line: str) -> bool:
    """$(OBJECTS:.o=.d), whose colon is none of a rule."""
    before = line.partition(":")[0]
    return max(before.rfind("$("), before.rfind("${")) > max(before.rfind(")"), before.rfind("}"))


class Makefile:
    """Variables of a file, whose references are resolved when they are asked for, as make does."""

    def __init__(self, path: pathlib.Path):
        self.path, self.references, self.included = path, 0, 0
        self.values = dict.fromkeys(("CURDIR", "PWD"), str(path.parent).replace("$", "$$"))
        self.rules = []  # what is before and behind the colons
        self.branches = []  # of conditionals around the line: "waits", "active" or "done"
        self.read(path)

    def read(self, path: pathlib.Path) -> None:
        for line in join_lines(read_text(path, BYTES_MAX, "replace")):
            if self.follow_condition(line):
                continue
            if match := ASSIGNMENT.match(line):
                self.assign(*match.groups())
            elif match := INCLUDE.match(line):
                self.include(*match.groups())
            elif RULE.match(line) and not has_reference_at_colon(line):
                self.rules.append(line.partition(":")[::2])

    def include(self, how: str, names: str) -> None:
        for name in self.expand(names).split():
            self.included += 1
            if self.included > INCLUDES_MAX:
                raise DudacError(f"{self.path}: more than {INCLUDES_MAX} files are included")
            path = self.path.parent / name
            if path.exists():
                self.read(path)
            elif how == "include":
                raise DudacError(f"{self.path}: there is no file {name}, which it includes")

    # ── conditionals ──

    def follow_condition(self, line: str) -> bool:
        """Returns whether a line is one of a conditional, or in a branch that is not taken."""
        is_read = not self.branches or self.branches[-1] == "active"  # then those around it are, too
        match = CONDITION.match(line)
        if not match:
            return not is_read
        word, rest = match.groups()
        if word == "endif":
            del self.branches[-1:]
        elif word != "else":
            self.branches.append("done" if not is_read else "active" if self.holds(word, rest) else "waits")
        elif self.branches:
            inner, before = CONDITION.match(rest), self.branches.pop()
            takes = before == "waits" and (not inner or self.holds(*inner.groups()))
            self.branches.append("active" if takes else "waits" if before == "waits" else "done")
        return True

    def holds(self, word: str, rest: str) -> bool:
        if word in ("ifdef", "ifndef"):
            name = self.expand(rest).strip()
            return bool(self.values.get(name, os.environ.get(name))) == (word == "ifdef")
        match = QUOTED_PAIR.match(rest)
        sides = [match[1] or match[2] or "", match[3] or match[4] or ""] if match else split_arguments(rest[1:-1], 2)
        first, *second = [self.expand(side).strip() for side in sides]
        return (second == [first]) == (word == "ifeq")

    # ── variables ──

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
        return [target for names, _ in self.rules for target in self.expand(names).split()]

    def list_sources(self, suffix: str) -> list:
        """What the targets that end so are made of, by the rules."""
        self.references = 0
        found = [sources.partition(";")[0] for names, sources in self.rules
                 if any(name.endswith(suffix) for name in self.expand(names).split())]
        return [word for sources in found for word in self.expand(sources).split()]

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
        count, change_text = FUNCTIONS.get(function, (0, None))
        arguments = split_arguments(argument, count)
        if change_text and len(arguments) == count:
            return self.change(change_text, [self.expand(each, depth) for each in arguments])
        name, _, change = inside.partition(":")
        value = self.values.get(name)
        value = os.environ.get(name, "") if value is None else self.expand(value, depth)
        old, equals, new = change.partition("=")
        if equals:
            value = self.change(replace_words, [value, old, new])
        return value

    def change(self, change_text, arguments: list) -> str:
        if math.prod(len(each) + 1 for each in arguments) > PRODUCT_MAX:
            raise DudacError(f"{self.path}: the arguments of a function are too long")
        return change_text(*arguments)

    def find_files(self, patterns: str):
        for pattern in patterns.split():
            yield from sorted(glob.glob(pattern, root_dir=self.path.parent))

    def run_shell(self, command: str) -> str:
        """Returns what a command prints. As in make, one that fails gives less; what it says of that is shown."""
        done = run_program(Program(["sh", "-c", command], self.path.parent, SHELL_SECONDS, errors=None))
        if done.status is None:
            raise DudacError(f"{self.path}: {command}: no end after {SHELL_SECONDS} s")
        return done.text("surrogateescape")
