# SPDX-License-Identifier: Apache-2.0
"""The syntax of Apache: a directive in each line, and sections in angle brackets. Text in, nodes out."""

import re

from .reader import DEPTH_MAX
from .report import ConvertError, Node, Place

OPENING = re.compile(r"<([A-Za-z]\w*)\s*(.*?)>\s*$", re.S)
CLOSING = re.compile(r"</([A-Za-z]\w*)\s*>\s*$")


def read_lines(text: str, file: str):
    """Yields each line with its place; one that ends with a backslash continues."""
    whole, start = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        start = start or number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            whole += line[:-1]
            continue
        whole += line
        column = len(whole) - len(whole.lstrip()) + 1
        yield whole.strip(), Place(file, start, column)
        whole, start = "", 0
    if whole.strip():
        yield whole.strip(), Place(file, start)


def split_words(text: str, place: Place) -> list:
    words, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        quote = text[at] if text[at] in "\"'" else None
        at += bool(quote)
        word = ""
        while at < len(text) and (text[at] != quote if quote else not text[at].isspace()):
            if quote and text[at] == "\\" and text[at + 1:at + 2] in (quote, "\\") and text[at + 1:at + 2] == quote:
                at += 1
            word += text[at]
            at += 1
        if quote and at >= len(text):
            raise ConvertError(place, f"the text that begins with {quote} does not end")
        at += bool(quote)
        words.append(word)
    return words


def parse(text: str, file: str) -> list:
    top: list = []
    blocks = [(top, None)]
    for line, place in read_lines(text, file):
        if not line or line.startswith("#"):
            continue
        if line.startswith("</"):
            match = CLOSING.match(line)
            node = blocks[-1][1]
            if not match or node is None or node.word.lower() != match[1].lower():
                wanted = f"</{node.word}>" if node else "no closing tag"
                raise ConvertError(place, f"{line[:60]} does not fit: {wanted} is expected here")
            blocks.pop()
            continue
        if line.startswith("<"):
            match = OPENING.match(line)
            if not match:
                raise ConvertError(place, f"{line[:60]} is no section: its bracket does not end")
            node = Node(match[1], split_words(match[2], place), place, [])
            blocks[-1][0].append(node)
            if len(blocks) > DEPTH_MAX:
                raise ConvertError(place, f"sections are more than {DEPTH_MAX} deep")
            blocks.append((node.block, node))
            continue
        words = split_words(line, place)
        blocks[-1][0].append(Node(words[0], words[1:], place))
    if len(blocks) > 1:
        node = blocks[-1][1]
        raise ConvertError(node.place, f"there is no </{node.word}> for <{node.word}>")
    return top
