# SPDX-License-Identifier: Apache-2.0
"""A server in the thread of the program, and the requests that its functions get."""

import os
import traceback

from .library import ffi, lib, make_str, read_bytes, read_text


class MonkeyError(OSError):
    """A call that has failed, with the sentence of the server."""


class Request:
    """One request; valid until the function that got it returns."""

    def __init__(self, handle, body):
        self.handle, self.body = handle, body
        self.answered = False

    @property
    def method(self):
        return read_text(lib.mk_request_method_name(self.handle))

    @property
    def path(self):
        return read_text(lib.mk_request_path(self.handle))

    @property
    def query(self):
        return read_text(lib.mk_request_query(self.handle))

    @property
    def host(self):
        return read_text(lib.mk_request_host(self.handle))

    @property
    def scheme(self):
        return read_text(lib.mk_request_scheme(self.handle))

    def param(self, name):
        """The part of the path that is `name` in the pattern; None without it."""
        return read_text(lib.mk_request_param(self.handle, name.encode()))

    def header(self, name):
        """The value of a header; None without it."""
        text, kept = make_str(name.encode("latin-1"))
        value = read_bytes(lib.mk_request_header_by_name(self.handle, text))
        del kept
        return None if value is None else value.decode("latin-1")

    def headers(self):
        """All header lines, as (name, value)."""
        name, value = ffi.new("struct mk_str *"), ffi.new("struct mk_str *")
        n = 0
        while lib.mk_request_header_at(self.handle, n, name, value):
            yield read_bytes(name[0]).decode("latin-1"), read_bytes(value[0]).decode("latin-1")
            n += 1

    def respond(self, status, headers, body):
        """Sends a response; headers that only the server sets are left out."""
        self.answered = True
        err = lib.mk_response_set_status(self.handle, status)
        for name, value in headers:
            err = err or self.add_header(name.encode("latin-1"), value.encode("latin-1"))
        text, kept = make_str(body)
        err = err or min(lib.mk_response_write(self.handle, text), 0)
        del kept
        if err:
            lib.mk_response_error(self.handle, 500)
            raise MonkeyError(-err, os.strerror(-err))
        lib.mk_response_end(self.handle)

    def add_header(self, name, value):
        (name_text, kept_name), (value_text, kept_value) = make_str(name), make_str(value)
        if lib.mk_response_header_reserved(name_text):
            return 0
        copy = lib.mk_arena_dup(lib.mk_request_arena(self.handle), name_text)  # the server does not copy names
        err = lib.mk_response_header(self.handle, copy, value_text) if copy.p != ffi.NULL else -12
        del kept_name, kept_value
        return err


def answer(request, result):
    """Sends what a function has returned: text, bytes or (status, type, body)."""
    status, kind, body = result if isinstance(result, tuple) else (200, None, result)
    kind = kind or ("text/plain; charset=utf-8" if isinstance(body, str) else "application/octet-stream")
    # Text from a path or a parameter may have bytes that are not UTF-8: they are sent as they came.
    data = body.encode("utf-8", "surrogateescape") if isinstance(body, str) else bytes(body)
    request.respond(status, [("Content-Type", kind)], data)


def run(fn, handle, body):
    """Calls a function for a request. No exception may reach the server, which is written in C."""
    request = Request(handle, body)
    try:
        result = fn(request)
        if not request.answered:
            answer(request, result)
    except Exception:
        traceback.print_exc()
        if not request.answered:
            lib.mk_response_error(handle, 500)


@ffi.callback("void(struct mk_request *, struct mk_str, bool, void *)")
def on_body(req, body, end, ctx):
    run(ffi.from_handle(ctx), req, read_bytes(body) or b"")


@ffi.callback("int(struct mk_request *, void *)", error=-5)
def on_request(req, ctx):
    lib.mk_request_collect(req, 0, on_body, ctx)
    return 0


class Server:
    """A server: its functions are called by run_once(), in the same thread."""

    def __init__(self, text="", folder=None):
        self.handles, self.stopping, self.running = [], False, False
        self.server = lib.mk_server_new()
        self.check(lib.mk_server_in_caller(self.server))
        self.check(lib.mk_server_text(self.server, text.encode()))
        if folder is not None:
            self.check(lib.mk_server_folder(self.server, os.fsencode(folder)))

    def check(self, result):
        if result < 0:
            raise MonkeyError(-result, ffi.string(lib.mk_server_error(self.server)).decode())
        return result

    def handle(self, methods, pattern):
        """A decorator for functions that answer: @server.handle("GET", "/users/:id")."""

        def add(fn):
            kept = ffi.new_handle(fn)
            self.check(lib.mk_server_handle(self.server, methods.encode(), pattern.encode(), on_request, kept))
            self.handles.append((kept, fn))
            return fn

        return add

    def start(self):
        self.check(lib.mk_server_start(self.server))
        self.running = True

    @property
    def port(self):
        return self.check(lib.mk_server_port(self.server))

    def fileno(self):
        """For the loop of the program: run_once(0) when it is readable."""
        return self.check(lib.mk_server_fd(self.server))

    def run_once(self, timeout_ms=-1):
        """Handles what has happened. Other threads of the program run while it waits."""
        self.check(lib.mk_server_run_once(self.server, timeout_ms))

    def serve(self):
        """Starts the server, unless it runs, and serves until stop() or Ctrl-C."""
        if not self.running:
            self.start()
        try:
            while not self.stopping:
                self.run_once(1000)
        except KeyboardInterrupt:
            pass
        self.close()

    def stop(self):
        """Ends serve(); for functions of requests, too."""
        self.stopping = True

    def close(self):
        """Stops the server and frees it."""
        if self.server:
            if self.running:
                self.check(lib.mk_server_stop(self.server))
            lib.mk_server_free(self.server)
        self.server, self.running, self.handles = ffi.NULL, False, []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
