# SPDX-License-Identifier: Apache-2.0
"""Values of a response for later steps of a check: {keep = "id"} and the groups (?P<id>...) of regular expressions keep
one, ${id} is replaced by it. $${id} is the text ${id}."""

import json
import re

from .expect import Answer, find_pattern, list_patterns, match_value

REFERENCE = re.compile(r"\$?\$\{([A-Za-z_]\w*)\}")
TYPED = ("send_json", "json", "json_has")  # in which a text that is only a reference becomes the value


def list_names(row: dict) -> set:
    """The names under which a request keeps values."""
    patterns = [*list_patterns(row.get("headers")), *list_patterns(row.get("json_has"))]
    expressions = [row.get("matches", ""), *(argument for key, argument in patterns if key == "matches")]
    groups = {name for expression in expressions for name in re.compile(expression).groupindex}
    return groups | {argument for key, argument in patterns if key == "keep"}


def list_references(value):
    """Yields the names of references in a value; a regular expression has none."""
    if isinstance(value, str):
        yield from (match[1] for match in REFERENCE.finditer(value) if not match[0].startswith("$$"))
    elif isinstance(value, (dict, list)) and not find_pattern(value):
        for each in value.values() if isinstance(value, dict) else value:
            yield from list_references(each)


def without_expression(row: dict) -> dict:
    return {key: value for key, value in row.items() if key != "matches"}


def fill_row(row: dict, kept: dict) -> dict:
    """A request in which values are in the place of references."""
    filled = {key: fill_value(value, kept, key in TYPED) for key, value in without_expression(row).items()}
    return {**row, **filled}


def fill_value(value, kept: dict, is_typed: bool):
    if isinstance(value, dict) and not find_pattern(value):
        return {key: fill_value(each, kept, is_typed) for key, each in value.items()}
    if isinstance(value, list):
        return [fill_value(each, kept, is_typed) for each in value]
    if not isinstance(value, str):
        return value
    match = REFERENCE.fullmatch(value)
    if is_typed and match and not value.startswith("$$"):
        return kept[match[1]]
    return REFERENCE.sub(lambda found: found[0][1:] if found[0].startswith("$$") else to_text(kept[found[1]]), value)


def to_text(value) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def read_kept(answer: Answer, expected: dict) -> dict:
    """What a response that is as expected has for later steps."""
    kept = read_groups(answer.text, expected.get("matches", ""))
    for name, wanted in expected.get("headers", {}).items():
        fitting = (each for each in answer.headers.get_all(name, []) if not match_value(each, wanted))
        kept |= read_values(next(fitting, ""), wanted)
    if "json_has" in expected:
        kept |= read_values(answer.read_json(), expected["json_has"])
    return kept


def read_groups(text: str, expression: str) -> dict:
    return {name: value or "" for name, value in re.search(expression, text, re.M).groupdict().items()}


def read_values(value, wanted) -> dict:
    key = find_pattern(wanted)
    if key == "keep":
        return {wanted[key]: value}
    if key == "matches":
        return read_groups(value, wanted[key])
    if key or not isinstance(wanted, (dict, list)):
        return {}
    pairs = [(value.get(name), each) for name, each in wanted.items()] if isinstance(wanted, dict) else \
        zip(value, wanted)
    return {name: found for pair in pairs for name, found in read_values(*pair).items()}
