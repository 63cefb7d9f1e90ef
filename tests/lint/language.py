# SPDX-License-Identifier: Apache-2.0
"""Spelling (codespell), and words that this project does not use: metaphors, and persons where programs are meant."""

import ast
import functools
import io
import re
import subprocess
import tokenize

from source import COMMENT_OR_LITERAL, ROOT, Finding

# word: what to write instead
BANNED = {
    "whoever": "the client, the caller ...", "somebody": "a client, a caller ...",
    "(?<![`\"])nobody(?!`)|(?<!`)nobody(?![`\"])": "no client, nothing ...",  # `nobody` is a user
    "deeds?": "flood counters", "morsels?": "small frames", "graves?": "deferred frees",
    "bury|buries|buried": "free later", "guests?": "handoff", "heirs?": "the successor", "farewells?": "shutdown",
    "goodbyes?": "close_notify, GOAWAY", "mailbox(?:es)?": "inbox", "bells?": "eventfd", "toll": "statistics",
    "hurr(?:y|ies|ied)": "drain now", "in the clothes of": "IPv4-mapped", "the house": "the project",
    "(?<![-\"/])whom?": "which client, which user ...",
    "(?:client|frame|head|module|object|request|response|setting)s? of http/[12]": "HTTP/2 frame ...",
    "slip of the keyboard": "a typo", "moments? of a plugin": "hook", "hoards?|hoarders?": "stalled streams",
    "(?:go(?:es|ne|ing)?|went) on": "continue", "st(?:ands?|anding|ood) for": "mean, replace",
    "truth machines?": "the check of consistency", "verdicts?": "the result, the comparison ...",
}

# Parts of identifiers in tests, Duda and tools, in snake case, and with "def " before the name of a Python function:
# what to use instead. Prose may use most of these words.
BANNED_NAMES = {
    "worlds?": "fixture, environment", "told": "notified, logged, output ...", "verdicts?": "result, comparison",
    "truths?": "consistency, expected", "scenes?": "writers, cases", "acting": "handler",
    "leftovers?": "orphans, leaks",
    r"shakes?(?!_\d)|shaken": "handshake", "pins": "workers, references", "sieges?": "flood", "tab": "page",
    "^def wire$": "conn", "^def good$": "certificate",
    "^(?!def test_|test_)(?:.*_)?still(?:_.*)?$": "pending, remaining",
}
TEST_NAME = re.compile(r"\bdef (test_\w+)|^TEST\((\w+)")
PATTERN = re.compile(r"(?i)\b(?:" + "|".join(f"({word})" for word in BANNED) + r")\b")
KEYS = list(BANNED)
IDENTIFIER = re.compile(r"(?:\bdef )?\b[A-Za-z_]\w*")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
NAME_PATTERN = re.compile("|".join(f"({name if name[0] == '^' else f'(?:^|[_ ])(?:{name})(?:_|$)'})"
                                   for name in BANNED_NAMES))
NAME_KEYS = list(BANNED_NAMES)

# Words that codespell takes for others.
IGNORED = "merecat,te,ser,crate,statics,hel,fo,ot,nd,ue,ba,ans,inout,clen,ist,nin,ro,compres,loger,includ,nonsens,gost"
SKIPPED = ("docs/figures/", "CHANGELOG.md", "LICENSE", "dist/htdocs/", "tests/lint/language.py",
           "tests/lint/lint_test.py")
NOT_SPELLED = SKIPPED + ("tests/fuzz/",)  # dictionaries and seeds


def is_test(source):
    return source.is_in("tests") and source.kind in ("c", "python")


def is_code(source):
    if source.kind == "python":
        return source.is_in("tests", "duda", "tools")
    return source.kind == "c" and source.is_in("lib", "plugins", "bin", "include", "tests", "duda", "tools")


def has_checked_names(source):
    return source.kind in ("c", "python") and source.is_in("tests", "duda", "tools")


def is_checked(source):
    return not source.path.startswith(SKIPPED) and (is_code(source) or source.path.endswith(".md"))


def test_names(source):
    return [(number, (match[1] or match[2]).replace("_", " "))
            for number, line in enumerate(source.lines, 1) for match in TEST_NAME.finditer(line)]


def comments_of_c(source):
    """Comments and strings."""
    for match in COMMENT_OR_LITERAL.finditer(source.text):
        first = source.text.count("\n", 0, match.start()) + 1
        yield from enumerate(match[0].split("\n"), first)


@functools.lru_cache(maxsize=1)  # of the source that is checked
def python_tokens(source):
    return list(tokenize.generate_tokens(io.StringIO(source.text).readline))


def comments_of_python(source):
    """Comments and docstrings: other strings are what tests send and expect."""
    for token in python_tokens(source):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            yield from enumerate(ast.get_docstring(node, clean=False).split("\n"), node.body[0].lineno)


def text_lines(source):
    """Lines of prose: a document as it is, the comments of code, and the names of tests."""
    if source.kind == "c":
        yield from comments_of_c(source)
    elif source.kind == "python":
        yield from comments_of_python(source)
    else:
        yield from enumerate(source.lines, 1)
    if is_test(source):
        yield from test_names(source)


def code_lines(source):
    """Lines of code without strings and comments; of Python those that have names, whose tokens are joined."""
    if source.kind == "c":
        return list(enumerate(source.bare, 1))
    lines = {}
    for token in python_tokens(source):
        if token.type == tokenize.NAME:
            lines[token.start[0]] = f"{lines.get(token.start[0], '')} {token.string}"
    return sorted(lines.items())


def find_banned_name(identifier):
    return NAME_PATTERN.search(HUMP.sub("_", identifier).lower())


def check_names(source):
    if not any(map(find_banned_name, set(IDENTIFIER.findall(source.text)))):
        return  # most files: they need not be taken apart
    for number, line in code_lines(source):
        for identifier in IDENTIFIER.findall(line):
            match = find_banned_name(identifier)
            if match:
                instead = BANNED_NAMES[NAME_KEYS[match.lastindex - 1]]
                yield Finding(source.path, number, f'"{identifier}" is no name of this project: {instead}')


def check_words(source):
    if not PATTERN.search(source.text.replace("_", " ") if is_test(source) else source.text):
        return
    for number, line in text_lines(source):
        for match in PATTERN.finditer(line):
            instead = BANNED[KEYS[match.lastindex - 1]]
            yield Finding(source.path, number, f'"{match[0]}" is not a word of this project: {instead}')


def check_spelling(sources, root=ROOT):
    paths = [source.path for source in sources if not source.path.startswith(NOT_SPELLED)]
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
            if has_checked_names(source):
                yield from check_names(source)
    yield from check_spelling(sources)
