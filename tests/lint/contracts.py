# SPDX-License-Identifier: Apache-2.0
"""Each public function has a comment: directly above it, or above a group that it belongs to without an empty line."""

import re

from source import Finding

DECLARATION = re.compile(r"^(?:MK_API|static inline)\b[^;={]*?\b(mk_\w+)\(")
SINGULAR = re.compile(r"^(?:[A-Z][a-z]+s|Is|Has)\b")  # "Returns": of one function; "Return": of a group


def comment_before(lines, number):
    """The text of the comment that ends in the line before `number` (from 1); None if there is none."""
    if number < 2 or not lines[number - 2].rstrip().endswith("*/"):
        return None
    first = number - 2
    while "/*" not in lines[first]:
        first -= 1
    return " ".join(line.strip(" /*") for line in lines[first:number - 1]).strip()


def check_header(source):
    comment, count = None, 0  # of the group: its comment, how many functions it has
    for number, line in enumerate(source.lines, 1):
        above = comment_before(source.lines, number)
        if not line.strip() or line.startswith("}"):
            comment = None
        elif above is not None:
            comment, count = above, 0
        match = DECLARATION.match(line)
        if not match:
            continue
        count += 1
        if comment is None:
            yield number, f"{match[1]}() has no comment"
        elif count > 1 and SINGULAR.match(comment) and match[1] not in comment:
            yield number, f'{match[1]}() has no comment: the one above says "{comment.split()[0]}", of one function'


def check(sources):
    for source in sources:
        if source.is_in("include"):
            for number, text in check_header(source):
                yield Finding(source.path, number, text)
