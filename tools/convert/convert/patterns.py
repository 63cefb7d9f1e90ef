# SPDX-License-Identifier: Apache-2.0
"""Patterns of paths as this server writes them: =/exact, /prefix, ~expression, ~*expression, *.php.

`covers` and `overlaps` are careful: an expression whose paths are not known overlaps all, and covers none."""

import re

SPECIAL = set("\\^$.|?*+()[]{}")
NAMES = {r"\.php$": "*.php", r"\.html$": "*.html", r"\.js$": "*.js", r"\.css$": "*.css", r"\.json$": "*.json"}


def is_prefix(pattern: str) -> bool:
    return pattern.startswith("/") and "*" not in pattern


def clean_prefix(path: str) -> str:
    """A prefix: with everything below it, with or without a slash at its end."""
    return path.rstrip("/") or "/"


def expression(text: str, ignore_case: bool = False) -> str:
    """A pattern that is an expression: without blanks and number signs, which would end it."""
    if not ignore_case and text in NAMES:
        return NAMES[text]
    text = text.replace(" ", r"\x20").replace("#", r"\x23").replace("\n", r"\n").replace("${", r"$(?:){")
    return ("~*" if ignore_case else "~") + text


def literal_start(pattern: str) -> str:
    """What all paths of an expression begin with; empty: not known."""
    if not pattern.startswith("~"):
        return ""
    text = pattern.lstrip("~").removeprefix("*")
    if not text.startswith("^") or has_alternative(text):
        return ""
    start, at = "", 1
    while at < len(text):
        c = text[at]
        if c == "\\" and at + 1 < len(text) and not text[at + 1].isalnum():
            c, at = text[at + 1], at + 1
        elif c in SPECIAL:
            if c in "?*{":  # the character before it may be missing
                start = start[:-1]
            break
        start, at = start + c, at + 1
    return "" if pattern.startswith("~*") else start


def has_alternative(text: str) -> bool:
    """Whether an expression has a `|` outside of parentheses."""
    depth, at = 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] in "()":
            depth += 1 if text[at] == "(" else -1
        elif text[at] == "|" and depth == 0:
            return True
        at += 1
    return False


def below(prefix: str, path: str) -> bool:
    return prefix == "/" or path == prefix or path.startswith(prefix.rstrip("/") + "/")


def covers(pattern: str, other: str) -> bool:
    """Whether all paths of the other pattern are certainly paths of this one."""
    if pattern in ("/", other):
        return True
    if is_prefix(pattern) and other.startswith("~"):
        return literal_start(other).startswith(pattern.rstrip("/") + "/")
    if is_prefix(pattern):
        return below(pattern, other.removeprefix("=")) and not other.startswith("*")
    if pattern.startswith("*.") and other.startswith("="):
        return other.endswith(pattern[1:])
    return False


def extensions(pattern: str) -> set:
    """The extensions of all paths of *.php or ~\\.(css|js)$, in lower case; empty: not known."""
    if pattern.startswith("*."):
        return {pattern[2:].lower()}
    match = re.search(r"\\\.(?:\((?:\?:)?([\w|]+)\)|(\w+))\$$", pattern)
    if not match or not pattern.startswith("~") or has_alternative(pattern):
        return set()
    return set((match[1] or match[2]).lower().split("|"))


def overlaps(pattern: str, other: str) -> bool:
    """Whether a path may be one of both."""
    if covers(pattern, other) or covers(other, pattern):
        return True
    if extensions(pattern) and extensions(other) and not extensions(pattern) & extensions(other):
        return False
    for one, two in ((pattern, other), (other, pattern)):
        if one.startswith("=") and two.startswith(("~", "*")):
            return search(two, one[1:])
        start = literal_start(one)
        if is_prefix(two) and start:
            return below(two, start) or two.startswith(start)
        if is_prefix(two) and one.startswith(("~", "*")):
            return True
    return not any(each.startswith(("=", "/")) for each in (pattern, other))


def search(pattern: str, path: str) -> bool:
    """Whether an expression or a glob of a name has the path; true where that is not known."""
    if pattern.startswith("*."):
        return path.endswith(pattern[1:])
    try:
        flags = re.IGNORECASE if pattern.startswith("~*") else 0
        return re.search(pattern.lstrip("~").removeprefix("*"), path, flags) is not None
    except re.error:
        return True


def body_of(pattern: str) -> str:
    """An expression that begins at the start of a path, for the paths of a pattern."""
    if pattern.startswith("="):
        return re.escape(pattern[1:]) + "$"
    if is_prefix(pattern):
        return re.escape(pattern) + "(/|$)" if pattern != "/" else "/"
    if pattern.startswith("*."):
        return ".*" + re.escape(pattern[1:]) + "$"
    text = pattern.lstrip("~").removeprefix("*")
    text = f"(?:{text})" if has_alternative(text) else text
    text = text[1:] if text.startswith("^") else ".*" + text
    return f"(?i:{text})" if pattern.startswith("~*") else text


def without(pattern: str, others: list) -> str:
    """An expression for the paths of a prefix that are none of the others."""
    excluded = "".join(f"(?!{body_of(other)})" for other in others)
    if not excluded:
        return pattern
    rest = "/" if pattern == "/" else body_of(pattern)
    return f"~^{excluded}{rest}"


def within(prefix: str, pattern: str) -> str:
    """The paths of an expression that are below a prefix."""
    if prefix == "/" or not pattern.startswith(("~", "*.")) or below(prefix, literal_start(pattern) or "."):
        return pattern
    mark = "~*" if pattern.startswith("~*") else "~"
    text = body_of(pattern) if pattern.startswith("*.") else pattern.lstrip("~").removeprefix("*")
    if text.startswith("^"):
        return f"{mark}^(?={re.escape(prefix)}(/|$)){text[1:]}"
    return f"{mark}^(?={re.escape(prefix)}(/|$)).*{text.removeprefix('.*')}"
