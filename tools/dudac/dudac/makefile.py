# SPDX-License-Identifier: Apache-2.0
"""Reads the variables of a Makefile.in: assignments, references, and the functions that such files use. Rules are left
out, and of conditionals all branches count."""

import os
import pathlib
import re
import shlex
import subprocess

from . import DudacError

ASSIGNMENT = re.compile(r"^ *(?:export +)?([A-Za-z_]\w*)\s*(\+=|\?=|:{0,2}=)\s*(.*)$")
CLOSING = {"(": ")", "{": "}"}
DEPTH_MAX = 32
BYTES_MAX = 1 << 20
SHELL_SECONDS = 30


def join_lines(text: str):
    for line in re.sub(r"\\\r?\n\s*", " ", text).splitlines():
        if not line.startswith("\t"):
            yield re.sub(r"(?<!\\)#.*", "", line).rstrip()


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
        self.path, self.values = path, {}
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise DudacError(f"{path}: {error.strerror}") from None
        if len(text) > BYTES_MAX:
            raise DudacError(f"{path} is larger than {BYTES_MAX} bytes")
        for line in join_lines(text):
            if match := ASSIGNMENT.match(line):
                self.assign(*match.groups())

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
        return "".join([*parts, text[at:]])

    def resolve(self, inside: str, depth: int) -> str:
        function, _, argument = inside.partition(" ")
        if argument and function == "shell":
            return " ".join(self.run_shell(self.expand(argument, depth)).split())
        if argument and function == "wildcard":
            return " ".join(self.find_files(self.expand(argument, depth)))
        name, _, change = inside.partition(":")
        value = self.values.get(name)
        value = os.environ.get(name, "") if value is None else self.expand(value, depth)
        old, equals, new = change.partition("=")
        if equals:
            value = " ".join(re.sub(re.escape(old) + "$", lambda _: new, word) for word in value.split())
        return value

    def find_files(self, patterns: str):
        for pattern in patterns.split():
            folder = self.path.parent
            yield from sorted(os.path.relpath(path, folder) for path in folder.glob(pattern))

    def run_shell(self, command: str) -> str:
        """Returns what a command prints. As in make, one that fails gives less; what it says of that is shown."""
        try:
            done = subprocess.run(["sh", "-c", command], cwd=self.path.parent, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, timeout=SHELL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise DudacError(f"{self.path}: {command}: no end after {SHELL_SECONDS} s") from None
        return done.stdout
