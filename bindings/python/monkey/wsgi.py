# SPDX-License-Identifier: Apache-2.0
"""WSGI (PEP 3333): applications of Flask, Django and others on the server, in one thread."""

import io
import re
import sys

from .calls import end_call, keep_exception
from .library import ffi, lib, make_str
from .request import check, set_head
from .server import Server

# ── the environment ──


def as_native(text):
    """Bytes as PEP 3333 has them in text: one character for each."""
    return None if text is None else text.encode("utf-8", "surrogateescape").decode("latin-1")


def get_authority(request):
    """What was asked for, with its port: of the absolute form (RFC 9112 section 3.2.2), else of Host."""
    absolute = re.match(r"[^/]*://([^/?]*)", request.target)
    return absolute[1] if absolute else request.header("Host") or request.host or None


def get_port(request):
    """The port of this server; behind a proxy, or on a Unix socket, the one that the client has used."""
    port = request.local[1]
    if not port or request.is_from_proxy:
        asked = re.search(r":(\d+)$", get_authority(request) or "")
        port = int(asked[1]) if asked else None
    return str(port or (443 if request.scheme == "https" else 80))


def get_length(request):
    has_body = request.body or request.header("Content-Length")
    return str(len(request.body)) if has_body else None


def get_auth_type(request):
    value = request.header("Authorization")
    return value.split(" ", 1)[0] if value and request.user is not None else None


# Those that have no value are left out. As the plugins cgi and fastcgi have them.
VARIABLES = {
    "GATEWAY_INTERFACE": lambda request: "CGI/1.1",
    "SERVER_SOFTWARE": lambda request: "monkey",
    "SERVER_NAME": lambda request: request.host or request.local[0] or "localhost",
    "SERVER_ADDR": lambda request: request.local[0],
    "SERVER_PORT": get_port,
    "SERVER_PROTOCOL": lambda request: request.protocol,
    "REQUEST_SCHEME": lambda request: request.scheme,
    "HTTPS": lambda request: "on" if request.scheme == "https" else None,
    "REQUEST_METHOD": lambda request: request.method,
    "REQUEST_URI": lambda request: as_native(re.sub(r"^[^/]*://[^/?]*", "", request.target) or "/"),
    "QUERY_STRING": lambda request: as_native(request.query or ""),
    "CONTENT_LENGTH": get_length,
    "CONTENT_TYPE": lambda request: request.header("Content-Type"),
    "REMOTE_ADDR": lambda request: request.client[0],
    "REMOTE_PORT": lambda request: request.client[1] and str(request.client[1]),
    "REMOTE_USER": lambda request: as_native(request.user),
    "AUTH_TYPE": get_auth_type,
    "SCRIPT_NAME": lambda request: "",
    "PATH_INFO": lambda request: as_native(request.path),
    "HTTP_HOST": get_authority,
    "wsgi.version": lambda request: (1, 0),
    "wsgi.url_scheme": lambda request: request.scheme,
    "wsgi.input": lambda request: io.BytesIO(request.body),
    "wsgi.input_terminated": lambda request: True,
    "wsgi.errors": lambda request: sys.stderr,
    "wsgi.multithread": lambda request: False,
    "wsgi.multiprocess": lambda request: False,
    "wsgi.run_once": lambda request: False,
}

# Of one connection (RFC 9110 section 7.6), and those that have variables of another name, or none: HTTP_PROXY would be
# that of programs (CVE-2016-5385). Authorization is for the application, which is the program itself.
NOT_PASSED = {
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "http2-settings", "upgrade",
    "content-length", "content-type", "host", "expect", "proxy-authorization", "proxy",
}  # fmt: skip


def passes(request, name, of_connection):
    """Whether a header is a variable. One with other characters, such as X_User, would be taken for X-User."""
    if not re.fullmatch(r"[A-Za-z0-9-]+", name) or name.lower() in NOT_PASSED | of_connection:
        return False
    text, kept = make_str(name.encode())
    passed = lib.mk_request_passes_header(request.handle, text)
    del kept
    return passed


def make_environment(request):
    environment = {name: value for name, get in VARIABLES.items() if (value := get(request)) is not None}
    of_connection = {word.strip().lower() for word in (request.header("Connection") or "").split(",")}
    for name in {name.lower(): None for name, _ in request.headers()}:
        if passes(request, name, of_connection):
            environment[f"HTTP_{name.upper().replace('-', '_')}"] = request.header(name)
    return environment


# ── the response ──

SLICE_BYTES = 64 * 1024


class Response:
    """
    The response of an application. Each piece is given to the server before the next one is asked for: in the next turn
    of the loop, or, for a client that does not take it, when it has.
    """

    def __init__(self, request, keep):
        self.handle, self.keep = request.handle, keep  # keep: a set of what is under way
        self.status = self.headers = self.pieces = self.iterator = None
        self.waiting = []  # views of bytes that are to be sent
        self.has_head = self.is_complete = False
        self.is_head = request.method == "HEAD"
        self.left = None  # how many bytes of the declared length are to come
        self.context = ffi.new_handle(self)
        self.task = ffi.new("struct mk_task *")
        lib.mk_task_init(self.task, on_turn)
        lib.mk_response_on_writable(self.handle, on_writable, self.context)
        check(lib.mk_arena_defer(lib.mk_request_arena(self.handle), on_end, self.context))
        keep[self.task] = self

    def start(self, status, headers, exc_info=None):
        """start_response() of PEP 3333."""
        try:
            if exc_info and self.has_head:
                raise exc_info[1].with_traceback(exc_info[2])
            if self.headers is not None and not exc_info:
                raise AssertionError("start_response() was called before, and there is no exc_info")
        finally:
            exc_info = None  # its traceback has this frame
        self.status, self.headers = int(status.split(" ", 1)[0]), list(headers)
        return self.write

    def write(self, data):
        """What start_response() has returned: there is no other way to wait than that the client has taken it."""
        self.waiting.append(memoryview(bytes(data)))
        if not self.has_head:
            self.send_head()
        while self.waiting:
            self.send_slice()

    def begin(self, pieces):
        """Gets the first piece, before which the head may still change. The others follow in further turns."""
        self.pieces = pieces
        self.iterator = iter(pieces)
        self.next_piece()
        if not self.has_head:
            self.send_head()
        self.send()

    def next_piece(self):
        """Asks for the next piece that has bytes. Without one the iterator is None."""
        while self.iterator is not None and not self.waiting:
            piece = next(self.iterator, None)
            if piece is None:
                self.iterator = None
            elif not isinstance(piece, (bytes, bytearray, memoryview)):
                raise TypeError(f"an application yields bytes, not {type(piece).__name__}")
            elif len(piece):
                self.waiting.append(memoryview(piece).cast("B"))

    def send_head(self):
        if self.headers is None:
            raise AssertionError("start_response() was not called before the first piece of the body")
        length = set_head(self.handle, self.status, self.headers)
        if length is None and isinstance(self.pieces, (list, tuple)):
            length = sum(map(len, self.pieces))
        if length is not None:
            check(lib.mk_response_set_length(self.handle, int(length)))
            self.left = None if self.is_head or self.status in (204, 304) else int(length)
        self.has_head = True

    def send_slice(self):
        """Adds some bytes to the response. Returns whether the client is to take them first."""
        piece = self.waiting[0][:SLICE_BYTES]
        if self.left is not None and len(piece) > self.left:
            raise AssertionError("the body has more bytes than its Content-Length says")
        self.left = self.left and self.left - len(piece)
        data, kept = make_str(piece)
        result = check(lib.mk_response_write(self.handle, data))
        del kept
        self.waiting[0] = self.waiting[0][SLICE_BYTES:]
        if not len(self.waiting[0]):
            del self.waiting[0]
        return result > 0

    def send(self):
        """Sends what waits, or ends the response."""
        while self.waiting:
            if self.send_slice():
                return  # until on_writable()
        if self.iterator is None:
            if self.left:
                raise AssertionError("the body has fewer bytes than its Content-Length says")
            self.is_complete = True
            lib.mk_response_end(self.handle)
        else:
            lib.mk_task_schedule(lib.mk_request_loop(self.handle), self.task)

    def proceed(self):
        """In a further turn of the loop."""
        if self.is_complete:
            return
        try:
            if not self.waiting:
                self.next_piece()
            self.send()
        except BaseException as exception:
            self.is_complete = True
            lib.mk_response_abort(self.handle)
            keep_exception(exception)

    def end(self):
        """The exchange has ended, complete or not."""
        lib.mk_task_cancel(self.task)
        del self.keep[self.task]
        self.handle = self.iterator = None
        close(self.pieces)


def close(pieces):
    try:
        getattr(pieces, "close", lambda: None)()
    except BaseException as exception:
        keep_exception(exception)


under_way = {}  # responses by their tasks


@ffi.callback("void(struct mk_task *)", onerror=end_call)
def on_turn(task):
    under_way[task].proceed()


@ffi.callback("void(struct mk_request *, void *)", onerror=end_call)
def on_writable(req, ctx):
    ffi.from_handle(ctx).proceed()


@ffi.callback("void(void *)", onerror=end_call)
def on_end(ctx):
    ffi.from_handle(ctx).end()


def call(app, request):
    """Calls the application, and begins its response."""
    response = Response(request, under_way)
    pieces = app(make_environment(request), response.start)
    response.begin(pieces)
    request.answered = True


def make_server(app, text="", folder=None):
    """A server whose every path is the application's."""
    server = Server(text, folder)
    server.handle("ANY", "/*path")(lambda request: call(app, request))
    return server


def serve(app, text="", folder=None):
    """Serves the application until Ctrl-C."""
    make_server(app, text, folder).serve()
