# SPDX-License-Identifier: Apache-2.0
"""Reads files, with limits, and finds those that a pattern of an include means."""

import glob
import os

from .report import ConvertError, Node, Place, Report

FILE_MAX = 4 << 20
FILES_MAX = 500
DEPTH_MAX = 64  # of blocks, and of files that include each other


class Reader:
    """Reads a file and what it includes; `parse(text, file)` returns nodes."""

    def __init__(self, parse, report: Report):
        self.parse, self.report, self.open, self.count = parse, report, [], 0

    def read(self, path: str, place: Place) -> list:
        self.count += 1
        if self.count > FILES_MAX:
            raise ConvertError(place, f"more than {FILES_MAX} files are included")
        try:
            with open(path, "rb") as file:
                data = file.read(FILE_MAX + 1)
        except OSError as error:
            raise ConvertError(place, f"{path} cannot be read: {error.strerror}") from None
        if len(data) > FILE_MAX:
            raise ConvertError(place, f"{path} has more than {FILE_MAX >> 20} MB")
        text = data.decode(errors="surrogateescape").replace("\r\n", "\n")
        if "\0" in text:
            raise ConvertError(Place(path, 1), "the file has a zero byte: it is no text")
        return self.parse(text.removeprefix("\ufeff"), path)

    def include(self, pattern: str, base: str, node: Node) -> list:
        return self.include_expanded(pattern, base, node, list)

    def include_expanded(self, pattern: str, base: str, node: Node, expand) -> list:
        """The nodes of the files that a pattern means, each passed through `expand` while the file is known to be open.
        A missing file is reported, a loop is an error."""
        path = os.path.join(base, pattern)
        is_pattern = any(c in path for c in "*?[")
        names = [name for name in sorted(glob.glob(path)) if not os.path.isdir(name)] if is_pattern else [path]
        if not names:
            self.report.drop(Node(node.text(), [], node.place), "no file has such a name")
        nodes = []
        for name in names:
            if not os.path.exists(name):
                self.report.skip(node, f"the file {name} does not exist")
                continue
            real = os.path.realpath(name)
            if real in self.open:
                raise ConvertError(node.place, f"{pattern} includes itself")
            if len(self.open) >= DEPTH_MAX:
                raise ConvertError(node.place, f"files include each other more than {DEPTH_MAX} deep")
            self.open.append(real)
            nodes += expand(self.read(name, node.place))
            self.open.pop()
        return nodes
