# SPDX-License-Identifier: Apache-2.0
"""Durations, sizes and small texts of other servers, as this one writes them."""

import re

SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "M": 2592000, "y": 31536000, "": 1}
HSTS = re.compile(r"max-age=\"?(\d+)\"?\s*(;\s*includeSubDomains)?\s*(;\s*preload)?\s*;?", re.I)


def read_seconds(text: str):
    """The seconds of `1h30m`, `65` or `500ms`; None: it is no duration."""
    text = text.replace(" ", "")
    parts = re.findall(r"(\d+)(ms|[smhdwMy]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(int(number) * SECONDS[unit] for number, unit in parts)


def write_seconds(seconds: float) -> str:
    if seconds != int(seconds):
        return f"{round(seconds * 1000)}ms"
    for unit in ("d", "h", "m"):
        if seconds >= SECONDS[unit] and seconds % SECONDS[unit] == 0 and not (unit == "m" and seconds == 60):
            return f"{int(seconds // SECONDS[unit])}{unit}"
    return f"{int(seconds)}s"


def duration(text: str, most: float = 3600, least: float = 0.1):
    seconds = read_seconds(text)
    return None if seconds is None else write_seconds(min(max(seconds, least), most))


def size(text: str):
    """`10m` and `10MB` as `10M`; None: it is no size."""
    match = re.fullmatch(r"(\d+)\s*([kmg]?)(i?b)?", text, re.I)
    return (match[1].lstrip("0") or "0") + match[2].upper() if match else None


def strict_transport(value: str):
    """The value of StrictTransportSecurity for one of the header; None: it is another text."""
    match = HSTS.fullmatch(value.strip())
    if not match or int(match[1]) == 0:
        return None
    return write_seconds(int(match[1])) + " includeSubDomains" * bool(match[2]) + " preload" * bool(match[3])
