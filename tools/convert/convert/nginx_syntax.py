# SPDX-License-Identifier: Apache-2.0
"""The syntax of nginx: words, `;`, and blocks in braces. Text in, nodes out."""

from .reader import DEPTH_MAX
from .report import ConvertError, Node, Place

ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Tokens:
    """Words, and `;` `{` `}` as (text, is_word, place)."""

    def __init__(self, text: str, file: str):
        self.text, self.file, self.at, self.line, self.begin = text, file, 0, 1, 0

    def place(self) -> Place:
        return Place(self.file, self.line, self.at - self.begin + 1)

    def step(self) -> str:
        c = self.text[self.at]
        self.at += 1
        if c == "\n":
            self.line += 1
            self.begin = self.at
        return c

    def skip_blank(self) -> None:
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == "#":
                while self.at < len(self.text) and self.text[self.at] != "\n":
                    self.at += 1
            elif c.isspace():
                self.step()
            else:
                return

    def quoted(self, quote: str) -> str:
        place, word = self.place(), ""
        self.step()
        while self.at < len(self.text):
            c = self.step()
            if c == quote:
                return word
            if c == "\\" and self.at < len(self.text):
                following = self.step()
                word += ESCAPES.get(following, following if following in "\"'\\" else "\\" + following)
            else:
                word += c
        raise ConvertError(place, f"the text that begins with {quote} does not end")

    def bare(self) -> str:
        word = ""
        while self.at < len(self.text):
            c = self.text[self.at]
            if c.isspace() or c in ";{" and not (c == "{" and word.endswith("$")):
                return word
            if c == "{":  # of a variable: ${name}
                while self.at < len(self.text) and self.text[self.at] not in "}\n":
                    word += self.step()
                continue
            word += self.step()
            if c == "\\" and self.at < len(self.text):
                word += self.step()
        return word

    def next(self):
        self.skip_blank()
        if self.at >= len(self.text):
            return None
        place, c = self.place(), self.text[self.at]
        if c in ";{}":
            self.step()
            return c, False, place
        if c in "\"'":
            return self.quoted(c), True, place
        return self.bare(), True, place


def parse(text: str, file: str) -> list:
    tokens, top = Tokens(text, file), []
    blocks, words, start = [(top, None)], [], None
    while token := tokens.next():
        value, is_word, place = token
        if is_word:
            start = start or place
            words.append(value)
            continue
        if value == "}":
            if words:
                raise ConvertError(start, f'there is no ";" behind "{words[0]}"')
            if len(blocks) == 1:
                raise ConvertError(place, 'there is no block that this "}" ends')
            blocks.pop()
            continue
        if not words:
            raise ConvertError(place, f'there is no directive before "{value}"')
        node = Node(words[0], words[1:], start, [] if value == "{" else None)
        blocks[-1][0].append(node)
        words, start = [], None
        if value == "{":
            if len(blocks) > DEPTH_MAX:
                raise ConvertError(place, f"blocks are more than {DEPTH_MAX} deep")
            blocks.append((node.block, node))
    if words:
        raise ConvertError(start, f'there is no ";" behind "{words[0]}"')
    if len(blocks) > 1:
        open_node = blocks[-1][1]
        raise ConvertError(open_node.place, f'there is no "}}" for the block "{open_node.word}"')
    return top
