# SPDX-License-Identifier: Apache-2.0
"""Reads TOML files (workloads, servers, rules) and checks them; each message has file, line and key."""

import difflib
import pathlib
import re
import tomllib
from typing import Any, NamedTuple

from . import WrError

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
WORD = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
NAME = r"[A-Za-z0-9][\w.-]*", "a name of letters, digits, _, . and -"
RELATIVE = r"(?!\.\.?(/|$))[^/\0]+(/(?!\.\.?(/|$))[^/\0]+)*", "a path below the folder of files"
TYPES = {
    str: "a string", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "a table",
}  # fmt: skip


class Problem(WrError):
    """A mistake in a file or a command line, or a server that cannot be measured, in one sentence."""


class Key(NamedTuple):
    """What a key of a file may hold. `of`: the schema of a table; or a Key or type, of each of its entries. `pattern`:
    (regular expression, what it permits in words)."""

    type: type
    required: bool = False
    default: Any = None
    of: Any = None
    choices: tuple = ()
    low: float | None = None
    high: float | None = None
    pattern: tuple = ()
    example: str = ""


def split_keys(text):
    return tuple(word.strip("\"'") for word in WORD.findall(text))


def find_lines(text):
    """{keys: line}: tables of arrays have their number among the keys, such as ("rule", 1, "cost_max")."""
    lines, table, counts, quote = {}, (), {}, None
    for number, line in enumerate(text.split("\n"), 1):
        if quote:
            quote = None if quote in line else quote
            continue
        if header := HEADER.match(line):
            table = split_keys(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table += (counts[table],)
            lines.setdefault(table, number)
        elif key := KEY.match(line):
            lines.setdefault(table + split_keys(key[1]), number)
        quote = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), None)
    return lines


class Document:
    """A file that was read: its values, and where each of its keys stands."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        try:
            self.values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise Problem(self.locate_error(str(error))) from None
        self.lines = find_lines(text)

    def locate_error(self, text):
        place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", text)
        line = (place[1] if place else None) or self.text.count("\n") + 1
        return f"{self.path}:{line}: {text[: place.start()] if place else text}"

    def problem(self, keys, text):
        """A Problem at the line of `keys`, or of the innermost table of them that has a line."""
        keys, line = tuple(keys), None
        for length in range(len(keys), 0, -1):
            if line := self.lines.get(keys[:length]):
                break
        name = ".".join(str(key + 1) if isinstance(key, int) else key for key in keys)
        return Problem(f"{self.path}:{line or 1}: {name}: {text}")


def read_document(path):
    try:
        return Document(str(path), pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Problem(f"{path}: this is no UTF-8 text") from None


def suggest(word, known):
    """What `word` may have been meant as, to be put behind a message."""
    found = difflib.get_close_matches(str(word), [str(name) for name in known], 1, 0.6)
    if found:
        return f"do you mean {found[0]}?"
    return "there are " + ", ".join(map(str, known)) if known else ""


def fits(value, wanted):
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, wanted) and not (wanted is int and isinstance(value, bool))


def check_type(document, keys, value, wanted, key):
    if not fits(value, wanted):
        example = f", for example {key.example}" if key.example else ""
        raise document.problem(keys, f"{value!r} is not {TYPES[wanted]}{example}")


def check_value(document, keys, value, key):
    """`value` as the program has it, with the defaults of inner tables."""
    check_type(document, keys, value, key.type, key)
    if key.choices and value not in key.choices:
        raise document.problem(keys, f"{value!r} is not one of {', '.join(map(repr, key.choices))}")
    if key.low is not None and not value >= key.low:
        raise document.problem(keys, f"{value} is too low: {key.low} is the least")
    if key.high is not None and not value <= key.high:
        raise document.problem(keys, f"{value} is too high: {key.high} is the most")
    if key.pattern and not re.fullmatch(key.pattern[0], value):
        raise document.problem(keys, f"{value!r} is not {key.pattern[1]}")
    if key.type is dict and isinstance(key.of, dict):
        return check_table(document, keys, value, key.of)
    if key.type is dict and key.of:
        return {name: check_entry(document, (*keys, name), entry, key.of) for name, entry in value.items()}
    if key.type is list and key.of:
        return [check_entry(document, (*keys, n), entry, key.of) for n, entry in enumerate(value)]
    return value


def check_entry(document, keys, value, of):
    """An entry of a list or a table: `of` is a Key, the schema of a table, or a type."""
    if isinstance(of, Key):
        return check_value(document, keys, value, of)
    if isinstance(of, dict):
        check_type(document, keys, value, dict, Key(dict))
        return check_table(document, keys, value, of)
    check_type(document, keys, value, of, Key(of))
    return value


def check_table(document, keys, values, schema):
    for name in values:
        if name not in schema:
            raise document.problem((*keys, name), f"unknown key; {suggest(name, schema)}")
    found = {}
    for name, key in schema.items():
        if name in values:
            found[name] = check_value(document, (*keys, name), values[name], key)
        elif key.required:
            example = f", for example {name} = {key.example}" if key.example else ""
            raise document.problem((*keys, name), f"the key is missing{example}")
        else:
            found[name] = key.default() if callable(key.default) else key.default
    return found


def read(path, schema):
    """(Document, its values with defaults)"""
    document = read_document(path)
    return document, check_table(document, (), document.values, schema)


def list_names(kind):
    """Of the files in data/<kind>."""
    return sorted(path.stem for path in (DATA / kind).glob("*.toml"))


def find_file(kind, name):
    """The file of a workload or server: a path that ends in .toml, or the name of one in data/<kind>."""
    if name.endswith(".toml"):
        return pathlib.Path(name)
    path = DATA / kind / f"{name}.toml"
    if not path.is_file():
        raise Problem(f"there is no {kind.rstrip('s')} {name}: {suggest(name, list_names(kind))}")
    return path
