# SPDX-License-Identifier: Apache-2.0
"""Calls of the program by the library. No exception may get into the library, which is written in C: an error is
printed with its traceback; KeyboardInterrupt, SystemExit and the like are kept, and raised again by run_once()."""

import threading
import traceback

from .library import ffi, lib
from .request import Request

kept = threading.local()


def keep_exception(exception):
    """Prints an error, or keeps what is to end the program."""
    if isinstance(exception, Exception):
        traceback.print_exception(type(exception), exception, exception.__traceback__)
    else:
        kept.exception = exception


def raise_kept():
    exception, kept.exception = getattr(kept, "exception", None), None
    if exception is not None:
        raise exception


def end_call(kind, exception, trace):
    """After an exception outside of what the callback catches, such as Ctrl-C at its beginning."""
    handle = trace.tb_frame.f_locals.get("req") if trace else None
    if handle:
        lib.mk_response_error(handle, 500)  # without an effect on a response that has ended
    keep_exception(exception)


def answer(request, result):
    """Sends what a function has returned: text, bytes or (status, type, body)."""
    status, kind, body = result if isinstance(result, tuple) else (200, None, result)
    if isinstance(body, str):  # what is not UTF-8 in a path or a parameter is sent as it came
        kind, body = kind or "text/plain; charset=utf-8", body.encode("utf-8", "surrogateescape")
    elif not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError(f"a function returns text, bytes or (status, type, body), not {type(body).__name__}")
    request.respond(status, [("Content-Type", kind or "application/octet-stream")], body)


def run(fn, handle, body):
    """Calls a function for a request."""
    request = Request(handle, body)
    try:
        result = fn(request)
        if not request.answered:
            answer(request, result)
    except BaseException as exception:
        if not request.answered:
            lib.mk_response_error(handle, 500)
        keep_exception(exception)
    finally:
        request.current = None


class Handler:
    """A function of the program, and its server."""

    def __init__(self, server, fn):
        self.server, self.fn = server, fn

    def call(self, req, body):
        self.server.in_function = True
        try:
            run(self.fn, req, body)
        finally:
            self.server.in_function = False


def read_body(body):
    return ffi.unpack(body.p, body.len) if body.len else b""


@ffi.callback("void(struct mk_request *, struct mk_str, bool, void *)", onerror=end_call)
def on_body(req, body, end, ctx):
    ffi.from_handle(ctx).call(req, read_body(body))


@ffi.callback("int(struct mk_request *, void *)", error=-5, onerror=end_call)
def on_request(req, ctx):
    lib.mk_request_collect(req, 0, on_body, ctx)
    return 0
