# SPDX-License-Identifier: Apache-2.0
"""Nodes of a configuration, their places, and what is to be said about them."""

import dataclasses
import os
import typing


class Place(typing.NamedTuple):
    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


class ConvertError(Exception):
    """A file that cannot be parsed or read: a sentence, with its place."""

    def __init__(self, place: Place, sentence: str):
        super().__init__(f"{place.file}:{place.line}:{place.column}: {sentence}")


@dataclasses.dataclass(eq=False)
class Node:
    """A directive: its word, its arguments, and the directives of its block (None: it has no block)."""

    word: str
    args: list
    place: Place
    block: typing.Optional[list] = None

    def count(self) -> int:
        return 1 + sum(node.count() for node in self.block or ())

    def find(self, *words) -> list:
        """The directives of the block with one of these words, in any case of letters."""
        return [node for node in self.block or () if node.word.lower() in words]

    def text(self) -> str:
        return " ".join([self.word, *self.args])


class Report:
    """What was read, and what of it is not converted, different here, or needs no line here."""

    def __init__(self):
        self.lines, self.skipped_lines = 0, 0
        self.skipped, self.notes, self.unneeded = [], [], []

    def skip(self, node: Node, sentence: str) -> None:
        row = node.place, f"{node.word} is not converted: {sentence}"
        if row not in self.skipped:
            self.skipped.append(row)
            self.skipped_lines += node.count()

    def note(self, node: Node, sentence: str) -> None:
        """The directive is converted, and something is different here."""
        if (node.place, sentence) not in self.notes:
            self.notes.append((node.place, sentence))

    def drop(self, node: Node, why: str) -> None:
        """The directive needs no line here."""
        if (node.word, node.place, why) not in self.unneeded:
            self.unneeded.append((node.word, node.place, why))

    def summary(self) -> str:
        verb = "is" if self.skipped_lines == 1 else "are"
        return f"{self.skipped_lines} of {self.lines} lines {verb} not converted"
