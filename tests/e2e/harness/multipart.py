# SPDX-License-Identifier: Apache-2.0
"""Answers of several parts (RFC 9110 §14.6), taken apart byte by byte."""

import re

from .client import Response, parse_date

PART = re.compile(rb"Content-Type: ([^\r\n]+)\r\nContent-Range: bytes (\d+)-(\d+)/(\d+)\r\n\r\n")


class Multipart(Response):
    """The head of an answer in parts, whose Content-Range stands in the parts."""

    def check_head(self):
        assert self.status == 206 and self["Content-Range"] is None, self
        assert parse_date(self["Date"]) and self["ETag"] and parse_date(self["Last-Modified"]), self
        assert self["Accept-Ranges"] == "bytes" and self["Transfer-Encoding"] is None, self


def read_multipart(client):
    """The next answer: its head with its whole body."""
    answer = Multipart(client.until(b"\r\n\r\n"), "GET")
    answer.body = client.exactly(answer.length)
    return answer


def boundary_of(answer):
    form = re.fullmatch(r"multipart/byteranges; boundary=([A-Za-z0-9]{20,70})", answer["Content-Type"])
    assert form, answer
    return form[1].encode()


def take_apart(answer):
    """The parts as (type, first, last, size, bytes): each byte of the body belongs to something."""
    boundary, body, at, parts = boundary_of(answer), answer.body, 0, []
    mark = b"\r\n--" + boundary
    while body[at:] != mark + b"--\r\n":
        assert body.startswith(mark + b"\r\n", at), body[at : at + 300]
        head = PART.match(body, at + len(mark) + 2)
        assert head, body[at : at + 300]
        first, last, size = (int(number) for number in head.groups()[1:])
        end = head.end() + last - first + 1
        parts.append((head[1].decode(), first, last, size, body[head.end() : end]))
        at = end
    assert not any(boundary in part[4] for part in parts)
    return parts
