# SPDX-License-Identifier: Apache-2.0
"""Checks values that come from JSON against the annotations of a dataclass: a file may be changed by hand, or be made
by another program."""

import functools
import types
import typing
from typing import Any

NUMBER_MAX = 1e300  # what is more has no place in a float
WORDS = {str: "text", int: "an integer", float: "a number", bool: "true or false", dict: "an object", list: "a list",
         types.NoneType: "null"}  # fmt: skip


def is_number(value: Any) -> bool:
    """Whether it is finite, and a float may hold it."""
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and -NUMBER_MAX <= value <= NUMBER_MAX)


def fits(value: Any, wanted: Any) -> bool:
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, inner[1]) for each in value.values())
    if origin in (list, tuple):
        return isinstance(value, (list, tuple)) and all(fits(each, inner[0]) for each in value)
    if wanted in (int, float):
        return is_number(value) and (wanted is float or isinstance(value, int))
    if wanted is tuple:
        wanted = (list, tuple)
    return wanted is Any or isinstance(value, wanted)


def describe(wanted: Any) -> str:
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(describe, inner))
    if origin is dict:
        return f"an object, each member {describe(inner[1])}"
    if origin in (list, tuple):
        return f"a list, each entry {describe(inner[0])}"
    return WORDS.get(wanted, str(wanted))


@functools.cache
def annotations_of(kind: type) -> dict:
    return typing.get_type_hints(kind)


def shorten(value: Any) -> str:
    is_out = isinstance(value, (int, float)) and not isinstance(value, bool) and not is_number(value)
    text = "a number out of range" if is_out else repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def check_fields(kind: type, values: dict) -> None:
    """Raises ValueError for a value that its annotation does not permit."""
    for name, wanted in annotations_of(kind).items():
        if name in values and not fits(values[name], wanted):
            raise ValueError(f"{name} is {shorten(values[name])} instead of {describe(wanted)}")
