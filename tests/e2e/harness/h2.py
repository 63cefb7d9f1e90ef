# SPDX-License-Identifier: Apache-2.0
"""A client over HTTP/2 with a strict reader: what RFC 9113 forbids a server is an error here, whatever the test asks.
It has the calls of harness/client.py; streams run at the same time between `begin` and `response`."""

import re
import struct
import time

import hpack

from . import frames as f
from .client import DEFAULT_TIMEOUT, TOKEN, ProtocolError, Response, insist
from .messages import octets

NAME = re.compile(TOKEN.replace(b"A-Z", b""))
VALUE = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
OF_HTTP_1 = {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}  # RFC 9113 §8.2.2


class StreamReset(ProtocolError):
    """The server has reset the stream; `code` says why."""

    def __init__(self, stream, code):
        super().__init__(f"stream {stream} was reset with error {code}")
        self.stream, self.code = stream, code


class GoneAway(ProtocolError):
    """The server has ended the connection; `code` is that of its GOAWAY, None without one."""

    def __init__(self, code, what):
        super().__init__(f"the connection ended (GOAWAY {code}) while waiting for {what}")
        self.code = code


def code_of(client, stream):
    """The error with which the server resets the stream."""
    try:
        answer = client.response(stream)
    except StreamReset as reset:
        return reset.code
    raise AssertionError(f"answered instead of reset: {answer}")


class H2Response(Response):
    """One response of a stream. `fields` have lower-case names, as they came."""

    OWED = {status: name for status, name in Response.OWED.items() if name != "Upgrade"}

    def __init__(self, fields, method, client):
        self.head, self.method, self.body, self.trailers, self.since = None, method, b"", [], client.opened
        self.client, self.reason = client, ""
        insist(fields and fields[0][0] == b":status", "does not begin with :status: {}", fields)
        insist(re.fullmatch(rb"[1-5][0-9][0-9]", fields[0][1]), ":status {!r}", fields[0][1])
        self.status = int(fields[0][1])
        insist(self.status != 101, "101 over HTTP/2")
        self.fields = plain_fields(fields[1:])
        self.check_names()
        self.check_head()

    @property
    def closes(self):
        """Has the server said GOAWAY?"""
        return self.client.goaway is not None


def plain_fields(fields):
    for name, value in fields:
        insist(NAME.fullmatch(name), "malformed name {!r}", name)
        insist(VALUE.fullmatch(value), "malformed value of {!r}: {!r}", name, value)
        insist(name not in OF_HTTP_1, "a field of HTTP/1 connections: {!r}", name)
    return [(name.decode(), value.decode("latin-1")) for name, value in fields]


class Stream:
    """A request on its way out, and its response on its way in."""

    def __init__(self, method, credit, room):
        self.method, self.credit, self.room = method, credit, room  # what they, and we, may still send
        self.out, self.ending, self.last_words = b"", False, ()
        self.interims, self.answer, self.body, self.trailers = [], None, bytearray(), []
        self.taken = 0  # of the body, by H2Client.exactly
        self.ended, self.sent, self.code = False, False, None

    @property
    def over(self):
        return self.ended or self.code is not None

    @property
    def active(self):
        return not (self.over and (self.sent or self.code is not None))


class H2Client:
    """One connection. `timeout` bounds every single wait for bytes. With `credit` the client takes whatever comes, as
    browsers do; without it, a test grants each byte itself (`grant`), beyond what `window` allows each stream."""

    def __init__(
        self,
        address,
        timeout=DEFAULT_TIMEOUT,
        rcvbuf=None,
        context=None,
        *,
        window=f.WINDOW,
        credit=True,
        values=None,
        first=b"",
        name="localhost",
    ):
        self.conn = f.FrameConnection(address, timeout, rcvbuf, context, greet=False, first=first, name=name)
        self.scheme, self.opened = "https" if context else "http", time.time()
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.streams, self.last, self.unanswered = {}, -1, []
        self.unfinished = {}  # the streams that are active, and some that were
        self.granting, self.credit, self.window = credit, f.WINDOW, f.WINDOW
        self.room, self.stream_room, self.frame_max = f.WINDOW, f.WINDOW, f.FRAME_MIN
        self.theirs, self.most_streams = None, 100  # until they are there, what every server should allow
        self.goaway = None  # (last stream, error code)
        self.unacknowledged, self.pongs = [], 0
        self.arrivals = []  # (stream, bytes) of each DATA, in their order
        self.conn.send(f.PREFACE)
        self.change({f.ENABLE_PUSH: 0, f.INITIAL_WINDOW_SIZE: window, **(values or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.conn.close()

    def reset(self):
        self.conn.reset()

    # ── sending ──

    def begin(self, target="/hello.txt", *fields, method="GET", body=b"", end=True, trailers=(), **pseudo):
        """Opens a stream and returns its number; the body leaves as the server's windows allow. Fields are
        "Name: value", or pairs that are sent as they are. `pseudo` replaces (or with None removes) :authority,
        :scheme, or adds :protocol. Without `end` the body continues with `more`."""
        self.settle(lambda: self.active() < self.most_streams or self.goaway, "room for a stream")
        names = {"method": method, "scheme": self.scheme, "authority": "localhost", "path": target, **pseudo}
        rows = [(f":{name}", value) for name, value in names.items() if value is not None]
        rows += [pair(field) for field in fields]
        if body and end and not any(name == "content-length" for name, _ in rows):
            rows.append(("content-length", str(len(body))))
        self.last += 2
        stream = Stream(method, self.window, self.stream_room)
        self.streams[self.last] = self.unfinished[self.last] = stream
        self.unanswered.append(self.last)
        over = end and not body and not trailers
        self.send_block(self.last, rows, over)
        stream.sent = over
        if not over:
            self.more(self.last, body, end=end, trailers=trailers)
        return self.last

    def more(self, number, body=b"", *, end=False, trailers=()):
        """The next piece of a body."""
        stream = self.streams[number]
        assert not stream.ending, "the body has ended"
        stream.out += body
        stream.ending, stream.last_words = end, trailers
        self.flush()

    def ask(self, target="/hello.txt", *fields, method="GET", **rest):
        """Sends a well-formed request and reads its final response."""
        return self.response(self.begin(target, *fields, method=method, **rest))

    def send_block(self, number, rows, end):
        text = self.encoder.encode([(octets(name), octets(value)) for name, value in rows], huffman=True)
        pieces = [text[at : at + self.frame_max] for at in range(0, len(text), self.frame_max)]
        out = [f.headers(number, pieces[0], end=end, whole=len(pieces) == 1)]
        out += [f.continuation(number, piece, whole=piece is pieces[-1]) for piece in pieces[1:]]
        self.conn.send(*out)

    def flush(self):
        """Sends of all bodies what both windows allow."""
        for number, stream in self.unfinished.items():
            while not stream.sent and self.push(number):
                pass

    def push(self, number):
        """Sends one frame of a body; false if there is none, or the windows are closed."""
        stream = self.streams[number]
        if stream.sent or stream.code is not None:
            return False
        size = min(len(stream.out), self.frame_max, max(0, self.room), max(0, stream.room))
        last = stream.ending and size == len(stream.out)
        if not size and not last:
            return False
        if size or not stream.last_words:
            self.conn.send(f.data(number, stream.out[:size], end=last and not stream.last_words))
        stream.out = stream.out[size:]
        self.room -= size
        stream.room -= size
        stream.sent = last
        if last and stream.last_words:
            self.send_block(number, [pair(field) for field in stream.last_words], True)
        return not last

    def cancel(self, number, code=f.CANCEL):
        self.conn.send(f.rst_stream(number, code))
        self.streams[number].code = code

    def change(self, values):
        """Sends SETTINGS; they count for what comes behind the server's ACK."""
        self.unacknowledged.append(values)
        self.conn.send(f.settings(values))

    def grant(self, count, number=0):
        """Lets the server send so much more: on a stream, or (0) on the connection."""
        self.conn.send(f.window_update(number, count))
        if number:
            self.streams[number].credit += count
        else:
            self.credit += count

    def ping(self):
        """Whatever was sent before has been seen, and what came before the answer has been read."""
        before = self.pongs
        self.conn.send(f.ping(b"in sync?"))
        self.settle(lambda: self.pongs > before, "PING's ACK")

    # ── receiving ──

    def settle(self, condition, what):
        """Reads frames until the condition holds; bodies are sent meanwhile."""
        while not condition():
            frame = self.conn.read()
            if frame is None:
                raise GoneAway(self.goaway and self.goaway[1], what)
            self.take(frame)
            self.flush()

    def active(self):
        self.unfinished = {number: stream for number, stream in self.unfinished.items() if stream.active}
        return len(self.unfinished)

    def next_stream(self, number):
        return self.unanswered[0] if number is None else number

    def head(self, number=None):
        """The head of a final response: of that stream, or of the first without one."""
        number = self.next_stream(number)
        stream = self.streams[number]
        self.settle(lambda: stream.answer or stream.code is not None, f"a head on stream {number}")
        if not stream.answer:
            self.forget(number)
            raise StreamReset(number, stream.code)
        return stream.answer

    def response(self, number=None):
        """The whole final response: of that stream, or of the oldest one that was not returned yet."""
        number = self.next_stream(number)
        stream = self.streams[number]
        self.settle(lambda: stream.over, f"the end of stream {number}")
        self.forget(number)
        if not stream.ended:
            raise StreamReset(number, stream.code)
        answer = stream.answer
        answer.body, answer.trailers = bytes(stream.body), stream.trailers
        answer.check_body()
        return answer

    def responses(self):
        """All that are still to come, in the order of their requests."""
        return [self.response() for _ in list(self.unanswered)]

    def exactly(self, count, number=None):
        """So many bytes more of a body."""
        stream = self.streams[self.next_stream(number)]
        self.settle(lambda: len(stream.body) >= stream.taken + count or stream.over, f"{count} bytes")
        insist(len(stream.body) >= stream.taken + count, f"the body ended {len(stream.body)} bytes on")
        stream.taken += count
        return bytes(stream.body[stream.taken - count : stream.taken])

    def forget(self, number):
        if number in self.unanswered:
            self.unanswered.remove(number)

    def take(self, frame):
        insist(self.theirs is not None or frame.type == f.SETTINGS, "the first frame is no SETTINGS: {}", frame)
        insist(frame.type != f.PUSH_PROMISE, "a promise that was not allowed")
        insist(frame.type != f.CONTINUATION, "CONTINUATION without a head")
        if frame.stream:
            insist(frame.stream in self.streams, "on a stream that nobody opened: {}", frame)
        handler = TAKERS.get(frame.type)
        if handler:
            handler(self, frame)

    def take_data(self, frame):
        stream = self.streams[frame.stream]
        self.check_open(stream, frame)
        insist(stream.answer, "a body before its head: {}", frame)
        self.arrivals.append((frame.stream, len(frame.payload)))
        self.credit -= frame.length
        stream.credit -= frame.length
        insist(self.credit >= 0 and stream.credit >= 0, "more than the window allows: {}", frame)
        insist(not stream.answer.bodiless or not frame.payload, "a body that may not be: {}, {}", frame, stream.answer)
        if stream.code is None:
            stream.body += frame.payload
        if self.granting:
            self.renew(frame, stream)
        if frame.flags & f.END_STREAM:
            self.end(stream)

    def renew(self, frame, stream):
        if self.credit < f.WINDOW // 2:
            self.grant(f.WINDOW - self.credit)
        if not frame.flags & f.END_STREAM and stream.code is None and stream.credit < self.window // 2:
            self.grant(self.window - stream.credit, frame.stream)

    def check_open(self, stream, frame):
        insist(not stream.ended, "behind the end of its stream: {}", frame)

    def end(self, stream):
        """RFC 9113 §8.1.1: the length that was promised is the length that came."""
        stream.ended = stream.code is None
        answer = stream.answer
        if stream.ended and not answer.bodiless and answer.length is not None:
            insist(answer.length == len(stream.body), "{} bytes came of {}", len(stream.body), answer)

    def take_headers(self, frame):
        stream = self.streams[frame.stream]
        self.check_open(stream, frame)
        text, part = frame.payload, frame
        while not part.flags & f.END_HEADERS:
            part = self.conn.read()
            insist(part and part.type == f.CONTINUATION and part.stream == frame.stream, "within a head: {}", part)
            text += part.payload
        fields = [(bytes(name), bytes(value)) for name, value in self.decoder.decode(text, raw=True)]
        over = frame.flags & f.END_STREAM
        if stream.answer:
            insist(over, "trailers without END_STREAM")
            stream.trailers = plain_fields(fields)
        else:
            answer = self.make_response(fields, stream.method)
            insist(not (answer.interim and over), "ends with an interim response: {}", answer)
            if answer.interim:
                stream.interims.append(answer)
                return
            stream.answer = answer
        if over:
            self.end(stream)

    def make_response(self, fields, method):
        return H2Response(fields, method, self)

    def take_reset(self, frame):
        stream = self.streams[frame.stream]
        if stream.ended:  # §8.1: the rest of the request is not wanted, or was malformed
            stream.sent = True
        else:
            insist(frame.number != f.NO_ERROR, f"half an answer, and no error: {frame}")
            stream.code = frame.number

    def take_settings(self, frame):
        if frame.flags & f.ACK:
            insist(self.unacknowledged, "an ACK that nobody waits for")
            self.apply_ours(self.unacknowledged.pop(0))
            return
        values = dict(struct.iter_unpack(">HI", frame.payload))
        insist(values.get(f.ENABLE_PUSH, 0) == 0, f"a server that allows itself to be pushed: {values}")
        insist(values.get(f.INITIAL_WINDOW_SIZE, 0) <= f.WINDOW_MAX, f"{values}")
        insist(f.FRAME_MIN <= values.get(f.MAX_FRAME_SIZE, f.FRAME_MIN) < 1 << 24, f"{values}")
        insist(values.get(f.ENABLE_CONNECT_PROTOCOL, 0) in (0, 1), f"{values}")
        self.apply_theirs(values)
        self.conn.send(f.settings(ack=True))

    def apply_ours(self, values):
        if f.INITIAL_WINDOW_SIZE in values:
            for stream in self.streams.values():
                stream.credit += values[f.INITIAL_WINDOW_SIZE] - self.window
            self.window = values[f.INITIAL_WINDOW_SIZE]
        self.conn.frame_max = values.get(f.MAX_FRAME_SIZE, self.conn.frame_max)
        if f.HEADER_TABLE_SIZE in values:
            self.decoder.max_allowed_table_size = values[f.HEADER_TABLE_SIZE]

    def apply_theirs(self, values):
        self.theirs = {**(self.theirs or {}), **values}
        self.frame_max = self.theirs.get(f.MAX_FRAME_SIZE, f.FRAME_MIN)
        self.most_streams = self.theirs.get(f.MAX_CONCURRENT_STREAMS, 1 << 31)
        if f.INITIAL_WINDOW_SIZE in values:
            for stream in self.streams.values():
                stream.room += values[f.INITIAL_WINDOW_SIZE] - self.stream_room
            self.stream_room = values[f.INITIAL_WINDOW_SIZE]
        if f.HEADER_TABLE_SIZE in values:
            self.encoder.header_table_size = min(4096, values[f.HEADER_TABLE_SIZE])

    def take_ping(self, frame):
        if not frame.flags & f.ACK:
            self.conn.send(f.ping(frame.payload, ack=True))
            return
        insist(frame.payload == b"in sync?", f"an answer to another PING: {frame}")
        self.pongs += 1

    def take_goaway(self, frame):
        last, code = struct.unpack(">II", frame.payload[:8])
        insist(self.goaway is None or last <= self.goaway[0], f"GOAWAY takes more streams than before: {last}")
        self.goaway = (last, code)

    def take_window(self, frame):
        increment = frame.number
        insist(0 < increment <= f.WINDOW_MAX, f"an increment of {increment}")
        if frame.stream:
            self.streams[frame.stream].room += increment
            insist(self.streams[frame.stream].room <= f.WINDOW_MAX, "the window of a stream overflows")
        else:
            self.room += increment
            insist(self.room <= f.WINDOW_MAX, "the window of the connection overflows")

    # ── what the connection does next ──

    def await_goaway(self):
        """The error code of the server's GOAWAY."""
        self.settle(lambda: self.goaway, "GOAWAY")
        return self.goaway[1]

    def assert_closed(self, code=f.NO_ERROR):
        """The server says GOAWAY, sends no more on any stream, and closes in an orderly way."""
        while frame := self.conn.read():
            insist(frame.type not in (f.DATA, f.HEADERS), f"unexpected before the close: {frame}")
            self.take(frame)
        assert self.goaway and self.goaway[1] == code, f"closed after GOAWAY {self.goaway}"

    def assert_gone(self):
        """The server gives the connection up, by FIN or by RST."""
        try:
            while self.conn.fill():
                self.conn.buffer = b""
        except ConnectionResetError:
            pass

    def assert_open(self):
        """The connection serves the next request."""
        answer = self.ask("/hello.txt")
        assert (answer.status, answer.body) == (200, b"Hello, world\n")


TAKERS = {
    f.DATA: H2Client.take_data,
    f.HEADERS: H2Client.take_headers,
    f.RST_STREAM: H2Client.take_reset,
    f.SETTINGS: H2Client.take_settings,
    f.PING: H2Client.take_ping,
    f.GOAWAY: H2Client.take_goaway,
    f.WINDOW_UPDATE: H2Client.take_window,
}


def pair(field):
    """From "Name: value"; pairs stay as they are."""
    if isinstance(field, tuple):
        return field
    name, _, value = octets(field).partition(b":")
    return name.decode("latin-1").lower(), value.strip(b" \t").decode("latin-1")
