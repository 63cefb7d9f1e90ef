# SPDX-License-Identifier: Apache-2.0
"""The protocol that tests speak when they do not care: HTTP/1.1, or with MONKEY_PROTOCOL=h2c the same requests over
HTTP/2. What cannot be said there skips the test, so they need not be sorted:

    test ── ask(), send(request() + request()) ──► HTTP/1.1 or HTTP/2
         ── send(b"GET /..."), until(), closes ──► HTTP/1.1, or pytest.skip
"""

import re

import pytest

from . import build
from .client import FIELD
from .client import Client as Http1Client
from .h2 import GoneAway, H2Client, H2Response
from .messages import CLOSE, Requests, octets, request

METHOD = re.compile(r"[A-Z]+")
TARGET = re.compile(r"(/[\x21-\x7e]*|\*)")
UNSPEAKABLE = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te", "host"}
OF_CONNECTIONS = {"connection", "keep-alive", "transfer-encoding", "upgrade"}


def skip(what):
    pytest.skip(f"only HTTP/1 has this: {what}")


class Answer(H2Response):
    """What only HTTP/1 says about a response is not asked for here."""

    public = False  # the checks of the harness come first

    def publish(self):
        self.fields = [("-".join(map(str.capitalize, name.split("-"))), value) for name, value in self.fields]
        self.public = True
        return self

    def __getitem__(self, name):
        if self.public and name.lower() in OF_CONNECTIONS:
            skip(name)
        return super().__getitem__(name)

    @property
    def closes(self):
        return skip("the connection ends with a response")


class TranslatedClient(H2Client):
    """The calls of Client over HTTP/2. Requests that are sent together run at the same time."""

    asked = 0  # requests of the whole run

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options
        super().__init__(*arguments, **options)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return skip(name)

    def make_response(self, fields, method):
        return Answer(fields, method, self).publish()

    def send(self, data):
        if not isinstance(data, Requests):
            skip("bytes of HTTP/1.1")
        if any(CLOSE in message.fields for message in data.messages[:-1]):
            skip("requests behind the last one")
        for row in [translate(message) for message in data.messages]:
            TranslatedClient.asked += 1
            self.begin(row[0], *row[1], **row[2])

    def send_all_you_can(self, data):
        try:
            self.send(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    send_in_background = send

    def ask(self, target="/hello.txt", *fields, method="GET", **rest):
        """A request that the server has not taken before its GOAWAY is sent on a new connection (RFC 9113 6.8)."""
        message = request(target, *fields, method=method, **rest)
        self.send(message)
        try:
            return self.response()
        except GoneAway:
            if not self.goaway or self.goaway[1] or self.last <= self.goaway[0]:
                raise
        self.close()
        self.__init__(*self.arguments, **self.options)
        self.send(message)
        return self.response()

    def response(self, method=None):  # each stream knows its own
        del method
        return super().response()

    def responses(self, methods=()):
        del methods
        return super().responses()

    def head(self, method=None):
        del method
        self.current = self.unanswered[0]
        answer = super().head(self.current)
        self.forget(self.current)
        return answer

    def exactly(self, count, number=None):
        return super().exactly(count, number or self.current)

    def assert_closed(self, code=0):
        del code
        skip("how a connection ends")

    def assert_gone(self):
        skip("how a connection ends")


def translate(message):
    """The arguments of H2Client.begin for a message of HTTP/1.1."""
    target, method = octets(message.target).decode("latin-1"), octets(message.method).decode("latin-1")
    if message.version != "HTTP/1.1" or not message.host:
        skip("versions, and requests without Host")
    if not METHOD.fullmatch(method) or method == "CONNECT" or not TARGET.fullmatch(target):
        skip("this request line")
    fields = [translate_field(octets(field), message.body) for field in message.fields if field != CLOSE]
    return target, fields, {"method": method, "body": message.body, "authority": message.host}


def translate_field(field, body):
    row = FIELD.fullmatch(field)
    name = row[1].decode().lower() if row else "malformed fields"
    if not row or name in UNSPEAKABLE or name == "content-length" and int(row[2]) != len(body):
        skip(name)
    return name, row[2].decode("latin-1")


CLIENTS = {"http/1.1": Http1Client, "h2c": TranslatedClient}
Client = CLIENTS[build.PROTOCOL]
