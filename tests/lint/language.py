# SPDX-License-Identifier: Apache-2.0
"""Spelling (codespell), and words that this project does not use: metaphors, and persons where programs are meant."""

import re
import subprocess

from source import COMMENT_OR_LITERAL, ROOT, Finding

# word: what to write instead
BANNED = {
    "whoever": "the client, the caller ...", "somebody": "a client, a caller ...",
    "(?<!`)nobody(?!`)": "no client, nothing ...",  # `nobody` is a user
    "deeds?": "flood counters", "morsels?": "small frames", "graves?": "deferred frees",
    "bury|buries|buried": "free later", "guests?": "handoff", "heirs?": "the successor", "farewells?": "shutdown",
    "goodbyes?": "close_notify, GOAWAY", "mailbox(?:es)?": "inbox", "bells?": "eventfd", "toll": "statistics",
    "hurr(?:y|ies|ied)": "drain now", "in the clothes of": "IPv4-mapped", "the house": "the project",
    "(?<![-\"])whom?": "which client, which user ...",
    "(?:client|frame|head|module|object|request|response|setting)s? of http/[12]": "HTTP/2 frame ...",
    "slip of the keyboard": "a typo", "moments? of a plugin": "hook", "hoards?|hoarders?": "stalled streams",
}
TEST_NAME = re.compile(r"\bdef (test_\w+)|^TEST\((\w+)")
PATTERN = re.compile(r"(?i)\b(?:" + "|".join(f"({word})" for word in BANNED) + r")\b")
KEYS = list(BANNED)

# Words that codespell takes for others.
IGNORED = "te,ser,crate,statics,hel,fo,ot,nd,ue,ba,ans,inout,clen,ist,nin,ro,compres,loger,includ,nonsens,gost"
SKIPPED = ("docs/figures/", "CHANGELOG.md", "LICENSE", "dist/htdocs/", "tests/fuzz/", "tests/lint/language.py",
           "tests/lint/lint_test.py")


def is_test(source):
    return source.is_in("tests") and source.kind in ("c", "python")


def test_names(source):
    return [(number, (match[1] or match[2]).replace("_", " "))
            for number, line in enumerate(source.lines, 1) for match in TEST_NAME.finditer(line)]


def is_checked(source):
    if source.path.startswith(SKIPPED):
        return False
    ours = source.kind == "c" and source.is_in("lib", "plugins", "bin", "include")
    return ours or source.path.endswith(".md") or is_test(source)


def text_lines(source):
    """Lines of prose: a document as it is, the comments and strings of C, and the names of tests."""
    if is_test(source):
        return test_names(source)
    if source.kind != "c":
        return list(enumerate(source.lines, 1))
    lines = []
    for match in COMMENT_OR_LITERAL.finditer(source.text):
        first = source.text.count("\n", 0, match.start()) + 1
        lines += [(first + n, line) for n, line in enumerate(match[0].split("\n"))]
    return lines


def check_words(source):
    for number, line in text_lines(source):
        for match in PATTERN.finditer(line):
            instead = BANNED[KEYS[match.lastindex - 1]]
            yield Finding(source.path, number, f'"{match[0]}" is not a word of this project: {instead}')


def check_spelling(sources, root=ROOT):
    paths = [source.path for source in sources if not source.path.startswith(SKIPPED)]
    done = subprocess.run(["codespell", "--ignore-words-list", IGNORED, *paths], cwd=root, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    for line in done.stdout.splitlines():
        match = re.match(r"^(?:\./)?([^:]+):(\d+): (.*)$", line)
        if match:
            yield Finding(match[1], int(match[2]), f"spelling: {match[3]}")


def check(sources):
    for source in sources:
        if is_checked(source):
            yield from check_words(source)
    yield from check_spelling(sources)
