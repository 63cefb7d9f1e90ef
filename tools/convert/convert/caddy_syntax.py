# SPDX-License-Identifier: Apache-2.0
"""The syntax of a Caddyfile: lines of words, and blocks in braces. Text in, nodes out."""

import os
import re

from .reader import DEPTH_MAX
from .report import ConvertError, Node, Place

VARIABLE = re.compile(r"\{\$(\w+)(?::([^}]*))?\}")


def read_words(text: str, file: str) -> list:
    """The lines of a text as lists of (word, is_quoted, place)."""
    lines, words, at, line, begin = [], [], 0, 1, 0
    size = len(text)
    while at <= size:
        c = text[at] if at < size else "\n"
        place = Place(file, line, at - begin + 1)
        if c == "\n":
            if words:
                lines.append(words)
            words, at, line, begin = [], at + 1, line + 1, at + 1
        elif c == "\\" and text[at + 1:at + 2] == "\n":  # the line continues
            at, line, begin = at + 2, line + 1, at + 2
        elif c.isspace():
            at += 1
        elif c == "#":
            end = text.find("\n", at)
            at = end if end >= 0 else size
        else:
            word, quoted, end = read_word(text, at, place)
            words.append((word, quoted, place))
            line += text.count("\n", at, end)
            if "\n" in text[at:end]:
                begin = text.rfind("\n", at, end) + 1
            at = end
    return lines


def read_word(text: str, at: int, place: Place) -> tuple:
    """Returns a word, whether it is in quotes, and where it ends."""
    c = text[at]
    if c in "\"`":
        end, word = at + 1, ""
        while end < len(text) and text[end] != c:
            if c == '"' and text[end] == "\\" and text[end + 1:end + 2] in ('"', "\\"):
                end += 1
            word += text[end]
            end += 1
        if end >= len(text):
            raise ConvertError(place, f"the text that begins with {c} does not end")
        return word, True, end + 1
    heredoc = re.compile(r"<<(\w+)\n").match(text, at)
    if heredoc:
        end = re.compile(rf"^[ \t]*{heredoc[1]}(?!\w)", re.M).search(text, heredoc.end())
        if not end:
            raise ConvertError(place, f"the text that begins with <<{heredoc[1]} does not end")
        return text[heredoc.end():end.start()].rstrip("\n"), True, end.end()
    end = at
    while end < len(text) and not text[end].isspace():
        end += 1
    return text[at:end], False, end


def expand(word: str) -> str:
    """Variables of the environment: {$NAME} and {$NAME:default}."""
    return VARIABLE.sub(lambda found: os.environ.get(found[1], found[2] or ""), word)


def parse(text: str, file: str) -> list:
    top: list = []
    blocks = [(top, None)]
    for words in read_words(text, file):
        place = words[0][2]
        if len(words) == 1 and words[0][:2] == ("}", False):
            if len(blocks) == 1:
                raise ConvertError(place, 'there is no block that this "}" ends')
            blocks.pop()
            continue
        opens = words[-1][:2] == ("{", False)
        closes = not opens and len(words) > 1 and words[-1][:2] == ("}", False) and len(blocks) > 1
        texts = [expand(word) if not quoted else word for word, quoted, _ in words]
        if opens or closes:
            texts.pop()
        if not opens and any(word[:2] in (("{", False), ("}", False)) for word in words[:-1]):
            raise ConvertError(place, 'a "{" ends its line, and a "}" has one for itself')
        node = Node(texts[0] if texts else "", texts[1:], place, [] if opens else None)
        blocks[-1][0].append(node)
        if opens:
            if len(blocks) > DEPTH_MAX:
                raise ConvertError(place, f"blocks are more than {DEPTH_MAX} deep")
            blocks.append((node.block, node))
        elif closes:
            blocks.pop()
    if len(blocks) > 1:
        open_node = blocks[-1][1]
        raise ConvertError(open_node.place, f'there is no "}}" for the block "{open_node.text().strip() or "{"}"')
    return top
