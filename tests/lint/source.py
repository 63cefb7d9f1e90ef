# SPDX-License-Identifier: Apache-2.0
"""The tree as the lint rules see it: which files there are, their text, and C without its comments and strings."""

import os
import re
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED_FOLDERS = {"build", "corpus", "__pycache__", ".git", ".pytest_cache"}
SKIPPED_FILES = re.compile(r"docs/contest/results/[^/]+/README\.md")  # what `wr report` has written
SUFFIX_KINDS = {
    ".c": "c", ".h": "c", ".py": "python", ".sh": "shell", ".cmake": "cmake", ".in": "template", ".md": "text",
    ".conf": "text", ".load": "text", ".mime": "text", ".html": "text", ".css": "text", ".mjs": "text",
    ".json": "text", ".svg": "text", ".txt": "text", ".1": "text", ".ini": "text", ".map": "text", ".dict": "text",
    ".rs": "rust",
}
COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


class Finding(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


class Source:
    """One file. `lines` is its text; `code` the same lines of C with comments blanked, `bare` with strings too."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        self.kind = kind_of(path, text)
        if self.kind == "c":
            self.code = COMMENT_OR_LITERAL.sub(without_comment, text).split("\n")
            self.bare = COMMENT_OR_LITERAL.sub(without_content, text).split("\n")

    def is_in(self, *folders):
        return self.path.startswith(tuple(folder + "/" for folder in folders))


def kind_of(path, text):
    name = os.path.basename(path)
    if name == "CMakeLists.txt":
        return "cmake"
    kind = SUFFIX_KINDS.get(os.path.splitext(name)[1], "text")
    if kind == "text" and text.startswith("#!"):
        program = os.path.basename(text.split("\n", 1)[0].split()[0].lstrip("#!"))
        return "python" if "python" in program else "make" if program == "make" else "shell"
    return kind


def without_comment(match):
    return match[0] if match[0][0] in "\"'" else "\n" * match[0].count("\n")


def without_content(match):
    return match[0][0] * 2 if match[0][0] in "\"'" else "\n" * match[0].count("\n")


def read_tree(root=ROOT):
    """Every text file of the project, in a stable order."""
    sources = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS)
        for name in sorted(set(files) - {".git"}):  # a file in a second work tree
            path = os.path.relpath(os.path.join(folder, name), root)
            if SKIPPED_FILES.fullmatch(path):
                continue
            try:
                if os.path.islink(os.path.join(root, path)):
                    continue  # compile_commands.json
                with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
                    sources.append(Source(path, file.read()))
            except UnicodeDecodeError:
                continue  # an image
    return sources
