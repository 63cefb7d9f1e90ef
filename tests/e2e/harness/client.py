# SPDX-License-Identifier: Apache-2.0
"""A raw client with a strict reader of responses: what RFC 9110 and 9112 forbid is an error here, whatever the
test asks."""

import calendar
import email.utils
import functools
import re
import socket
import struct
import threading
import time

from .messages import octets, request

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) ([\t\x20-\x7e]*)")
FIELD = re.compile(
    rb"(" + TOKEN + rb"): ?((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)"
)
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\x20-\x7e]*)?")
IMF_DATE = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT"
)
REPEATABLE = {"set-cookie", "vary", "link", "via", "allow"}
DEFAULT_TIMEOUT = 30.0  # longer than a loaded machine stalls a process
DATE_SECONDS = 30  # of a clock that is not read for each response


class ProtocolError(AssertionError):
    """The server sent something that no server may send."""


def insist(condition, message, *values):
    """A message with {} is formatted with the values only when it is needed."""
    if not condition:
        raise ProtocolError(message.format(*values) if values else message)


@functools.lru_cache(maxsize=4096)
def parse_date(text):
    insist(IMF_DATE.fullmatch(text), f"not an IMF-fixdate: {text!r}")
    return calendar.timegm(email.utils.parsedate(text))


class Response:
    """One response: status, reason, fields in their order, body and trailers."""

    type_is_owed = True  # a body must have a Content-Type
    OWED = {
        206: "Content-Range",
        301: "Location",
        302: "Location",
        307: "Location",
        308: "Location",
        401: "WWW-Authenticate",
        405: "Allow",
        416: "Content-Range",
        426: "Upgrade",
    }

    def __init__(self, head, method, since=None):
        """`since` is a time before which the response was not made; without it, it is new."""
        self.head, self.method, self.body, self.trailers, self.since = head, method, b"", [], since
        rows = head.split(b"\r\n")
        insist(not re.search(rb"(?<!\r)\n|\r(?!\n)|\0", head), "bare line end or NUL in {!r}", head)
        line = STATUS_LINE.fullmatch(rows[0])
        insist(line, "malformed status line {!r}", rows[0])
        self.status, self.reason = int(line[1]), line[2].decode()
        self.fields = [parse_field(row) for row in rows[1:]]
        self.check_names()
        self.check_head()

    def __getitem__(self, name):
        """The value of a field, None without it."""
        return self.values.get(name.lower())

    def __repr__(self):
        return f"<{self.status} {self.reason}, {len(self.body)} bytes: {self.fields}>"

    @property
    def interim(self):
        return self.status < 200

    @property
    def closes(self):
        return "close" in re.split(r"\s*,\s*", (self["Connection"] or "").lower())

    @property
    def bodiless(self):
        return self.method == "HEAD" or self.interim or self.status in (204, 304)

    @property
    def length(self):
        return None if self["Content-Length"] is None else int(self["Content-Length"])

    def check_names(self):
        names = [name.lower() for name, _ in self.fields]
        values = [value for _, value in self.fields]
        self.values = dict(zip(reversed(names), reversed(values)))  # the first of a name counts
        if len(self.values) < len(names):
            repeated = {name for name in names if names.count(name) > 1} - REPEATABLE
            insist(not repeated, "repeated fields {}: {}", repeated, self)

    def check_head(self):
        """The fields that each status owes (RFC 9110 §15), and the rules of framing (RFC 9112 §6)."""
        length, coding = self["Content-Length"], self["Transfer-Encoding"]
        insist(length is None or re.fullmatch(r"\d+", length), "Content-Length: {!r}", length)
        insist(length is None or coding is None, "Content-Length together with Transfer-Encoding: {}", self)
        if self.interim or self.status == 204:
            insist(length is None and coding is None, "framing fields in {}: {}", self.status, self)
        if self.interim:
            return
        insist(self["Date"], "no Date: {}", self)
        since, now = self.since or time.time(), time.time()
        insist(since - DATE_SECONDS < parse_date(self["Date"]) < now + DATE_SECONDS, "wrong Date: {}", self["Date"])
        owed = self.OWED.get(self.status)
        insist(owed is None or self[owed] is not None, "{} without {}: {}", self.status, owed, self)
        if self["Last-Modified"]:
            insist(parse_date(self["Last-Modified"]) <= parse_date(self["Date"]), "modified in the future: {}", self)
        if self["ETag"]:
            insist(re.fullmatch(r'(W/)?"[\x21\x23-\x7e]*"', self["ETag"]), "ETag: {}", self["ETag"])

    def check_body(self):
        if self.body and self.status != 206 and self.type_is_owed:
            insist(self["Content-Type"], "a body without Content-Type: {}", self)


def parse_field(row):
    field = FIELD.fullmatch(row)
    insist(field, "malformed field {!r}", row)
    return field[1].decode(), field[2].decode("latin-1")


class Client:
    """One connection. `timeout` bounds every single wait for bytes."""

    def __init__(self, address, timeout=DEFAULT_TIMEOUT, rcvbuf=None):
        family = (
            socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        )
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.buffer = b""
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.connect(address)
        self.opened = time.time()
        if family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ── sending ──

    def send(self, data):
        self.sock.sendall(octets(data))

    def send_all_you_can(self, data):
        """Sends although the server may answer and close early; true if everything left."""
        try:
            self.sock.sendall(octets(data))
            return True
        except OSError:  # the test may have closed it, too
            return False

    def send_in_background(self, data):
        """Sends while the test reads: more than the buffers between client and server hold."""
        threading.Thread(target=self.send_all_you_can, args=(data,), daemon=True).start()

    def ask(self, target="/hello.txt", *fields, method="GET", **rest):
        """Sends a well-formed request and reads its final response."""
        self.send(request(target, *fields, method=method, **rest))
        return self.response(method)

    def shut(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """Closes with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()

    # ── receiving ──

    def fill(self, most=262144):
        data = self.receive(most)
        self.buffer += data
        return bool(data)

    def receive(self, most):
        """At least a byte, or none at the end."""
        return self.sock.recv(most)

    def until(self, mark, limit=65536):
        while (end := self.buffer.find(mark)) < 0:
            insist(len(self.buffer) <= limit, f"no {mark!r} in {limit} bytes")
            insist(self.fill(), f"closed within a head or line: {self.buffer[:300]!r}")
        found, self.buffer = self.buffer[:end], self.buffer[end + len(mark) :]
        return found

    def exactly(self, count):
        if len(self.buffer) >= count:
            data, self.buffer = self.buffer[:count], self.buffer[count:]
            return data
        data, self.buffer = bytearray(self.buffer), b""
        while len(data) < count:
            piece = self.receive(min(262144, count - len(data)))
            insist(piece, f"closed {count - len(data)} bytes before the end of {count}")
            data += piece
        return bytes(data)

    def rest(self):
        """Everything up to the server's FIN."""
        while self.fill():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def interim(self):
        """The next head, which must be an interim response."""
        head = Response(self.until(b"\r\n\r\n"), "GET")
        insist(head.interim, f"expected an interim response, not {head}")
        return head

    def head(self, method="GET"):
        """The next head only; interim ones are passed over."""
        while (head := Response(self.until(b"\r\n\r\n"), method, self.opened)).interim:
            pass
        return head

    def response(self, method="GET"):
        """The next final response, whole."""
        answer = self.head(method)
        if answer.bodiless:
            return answer
        if answer["Transfer-Encoding"]:
            insist(answer["Transfer-Encoding"].lower() == "chunked", f"coding {answer}")
            answer.body, answer.trailers = self.chunks()
        elif answer.length is not None:
            answer.body = self.exactly(answer.length)
        else:
            insist(answer.closes, f"delimited by close without saying so: {answer}")
            answer.body = self.rest()
        answer.check_body()
        return answer

    def chunks(self):
        body = bytearray()
        while True:
            line = self.until(b"\r\n", 4096)
            size = CHUNK_LINE.fullmatch(line)
            insist(size, f"chunk line {line!r}")
            if int(size[1], 16) == 0:
                break
            body += self.exactly(int(size[1], 16))
            insist(self.exactly(2) == b"\r\n", "chunk without its CRLF")
        trailers = []
        while row := self.until(b"\r\n", 4096):
            trailers.append(parse_field(row))
        return bytes(body), trailers

    def responses(self, methods=()):
        """All responses until the server closes; `methods` names those that are not GET, in order."""
        answers, methods = [], iter(methods)
        while self.buffer or self.fill():
            answers.append(self.response(next(methods, "GET")))
        return answers

    # ── what the connection does next ──

    def assert_closed(self):
        """The server sends nothing more and closes in an orderly way."""
        left = self.rest()
        assert left == b"", f"unexpected bytes before the close: {left[:300]!r}"

    def assert_gone(self):
        """The server gives the connection up, by FIN or by RST."""
        try:
            while self.fill():
                self.buffer = b""
        except ConnectionResetError:
            pass

    def assert_open(self):
        """The connection is between two requests and serves the next one."""
        assert self.buffer == b""
        answer = self.ask("/hello.txt")
        assert (answer.status, answer.body) == (200, b"Hello, world\n")

    def assert_quiet(self, seconds=0.15):
        """Nothing comes for a while and the connection stays open. Costs its whole time: use it sparingly."""
        assert self.buffer == b""
        self.sock.settimeout(seconds)
        try:
            data = self.sock.recv(65536)
            raise AssertionError(f"expected silence, got {data[:300]!r}")
        except TimeoutError:
            self.sock.settimeout(DEFAULT_TIMEOUT)
