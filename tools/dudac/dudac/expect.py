# SPDX-License-Identifier: Apache-2.0
"""What the response of a check must be. Each expectation returns what is wrong, or nothing.

In the values of `headers` and `json_has` a table with one of these keys is a pattern: matches, any, absent, keep."""

import http.client
import json
import re
from dataclasses import dataclass

SHOWN_CHARS = 200  # of a body
NAME = re.compile(r"[A-Za-z_]\w*")
MISSING = object()  # in the place of a value that is not there
KINDS = {"value": object, "string": str, "number": (int, float), "integer": int, "boolean": bool, "array": list,
         "object": dict}


class ResponseObject(dict):
    """An object of a response. It is no pattern, also when a later step compares with it."""


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def read_json(self):
        return json.loads(self.text, object_hook=ResponseObject)


def shorten(text: str) -> str:
    return shorten_text(repr(text[:SHOWN_CHARS + 1]), len(text))


def shorten_text(shown: str, length: int = 0) -> str:
    return shown if len(shown) <= SHOWN_CHARS else f"{shown[:SHOWN_CHARS]}... ({length or len(shown)} characters)"


def show(value) -> str:
    return "missing" if value is MISSING else shorten_text(json.dumps(value))


# ── patterns: each returns whether the value is as wanted ──


def is_match(value, expression: str) -> bool:
    return isinstance(value, str) and bool(re.search(expression, value, re.M))


def is_kind(value, kind: str) -> bool:
    if value is MISSING or isinstance(value, bool) and kind in ("number", "integer"):
        return False
    return isinstance(value, KINDS[kind])


def is_absent(value, _) -> bool:
    return value is MISSING


def is_there(value, _) -> bool:
    return value is not MISSING


# key: function, and the sentence of a value that does not fit
PATTERNS = {
    "matches": (is_match, "which does not match {}"),
    "any": (is_kind, "instead of any {}"),
    "absent": (is_absent, "instead of absent"),
    "keep": (is_there, "instead of a value to keep as {}"),
}


def find_pattern(wanted):
    """Returns the key of a pattern, or None for another value."""
    is_table = isinstance(wanted, dict) and not isinstance(wanted, ResponseObject)
    key = next(iter(wanted)) if is_table and len(wanted) == 1 else None
    return key if key in PATTERNS else None


def check_pattern(key: str, argument) -> str | None:
    """Returns what the argument must be if it cannot be one."""
    if key == "any":
        is_kind_name = isinstance(argument, str) and argument in KINDS
        return None if is_kind_name else f'any must be one of {", ".join(KINDS)}, as in {{any = "number"}}'
    if key == "absent":
        return None if argument is True else "absent can only be true: {absent = true}"
    if key == "keep":
        is_name = isinstance(argument, str) and NAME.fullmatch(argument)
        return None if is_name else 'keep must be a name of letters, digits and _, as in {keep = "id"}'
    try:
        re.compile(argument)
    except (re.error, OverflowError, RecursionError) as error:
        return f"matches: {error}"
    except TypeError:
        return 'matches must be a regular expression, as in {matches = "^[0-9]+$"}'


def list_patterns(wanted):
    """Yields (key, argument) of the patterns in a value."""
    if key := find_pattern(wanted):
        yield key, wanted[key]
    elif isinstance(wanted, (dict, list)):
        for each in wanted.values() if isinstance(wanted, dict) else wanted:
            yield from list_patterns(each)


def match_value(value, wanted):
    """Returns what is wrong with a value for a pattern, or for one that it must be equal to."""
    key = find_pattern(wanted)
    if key is None:
        same = value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
        return None if same else f"{show(value)} instead of {show(wanted)}"
    fits, sentence = PATTERNS[key]
    return None if fits(value, wanted[key]) else f"{show(value)}, {sentence.format(wanted[key])}"


def compare(value, wanted, place: str):
    """Objects may have more keys than wanted; arrays have as many elements. `place` is that of the value."""
    if find_pattern(wanted) or not isinstance(wanted, (dict, list)) or not isinstance(value, type(wanted)):
        mistake = match_value(value, wanted)
        return mistake and f"{place} is {mistake}"
    if isinstance(wanted, dict):
        pairs = [(value.get(key, MISSING), each, f"{place}.{key}") for key, each in wanted.items()]
    elif len(value) != len(wanted):
        return f"{place} has {len(value)} elements instead of {len(wanted)}: {show(value)}"
    else:
        pairs = [(one, each, f"{place}[{number}]") for number, (one, each) in enumerate(zip(value, wanted))]
    return next(filter(None, (compare(*pair) for pair in pairs)), None)


# ── expectations ──


def expect_status(answer: Answer, wanted: int):
    if answer.status != wanted:
        return f"the status is {answer.status} instead of {wanted}: {shorten(answer.text)}"


def expect_body(answer: Answer, wanted: str):
    if answer.text != wanted:
        return f"the body is {shorten(answer.text)} instead of {shorten(wanted)}"


def expect_contains(answer: Answer, wanted: str):
    if wanted not in answer.text:
        return f"the body {shorten(answer.text)} does not contain {shorten(wanted)}"


def expect_matches(answer: Answer, wanted: str):
    if not re.search(wanted, answer.text, re.M):
        return f"the body {shorten(answer.text)} does not match {wanted}"


def expect_json(answer: Answer, wanted, compare_all=True):
    try:
        value = answer.read_json()
    except (ValueError, RecursionError) as error:
        return f"the body {shorten(answer.text)} is no JSON: {error}"
    if not compare_all:
        return compare(value, wanted, "the body")
    if value != wanted:
        return f"the body is {show(value)} instead of {show(wanted)}"


def expect_json_has(answer: Answer, wanted):
    return expect_json(answer, wanted, compare_all=False)


def expect_headers(answer: Answer, wanted: dict):
    for name, value in wanted.items():
        found = answer.headers.get_all(name, [])
        if all(match_value(each, value) for each in found or [MISSING]):
            shown = ", ".join(map(repr, found)) or "missing"
            return f"{name} is {shown} {describe_header(value)}"


def describe_header(wanted) -> str:
    key = find_pattern(wanted)
    return PATTERNS[key][1].format(wanted[key]) if key else f"instead of {wanted!r}"


EXPECTATIONS = {"status": expect_status, "headers": expect_headers, "body": expect_body, "contains": expect_contains,
                "matches": expect_matches, "json": expect_json, "json_has": expect_json_has}
