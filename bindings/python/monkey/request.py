# SPDX-License-Identifier: Apache-2.0
"""Requests, as functions get them."""

import os
import socket

from .library import ffi, lib, make_c_string, make_str, read_bytes, read_text


class MonkeyError(OSError):
    """A call that has failed, with the sentence of the server."""


def check(err):
    """Raises an error of the system that a function of the library has returned."""
    if err < 0:
        raise MonkeyError(-err, os.strerror(-err))
    return err


def read_address(address):
    """The address as text and its port; None for what is unknown."""
    families = {socket.AF_INET: 4, socket.AF_INET6: 16}
    if address.family == socket.AF_UNIX:
        return "unix", None
    if address.family not in families:
        return None, None
    data = bytes(address.bytes)[: families[address.family]]
    return socket.inet_ntop(address.family, data), address.port or None


class Request:
    """One request, valid until the function that got it returns; `body` stays."""

    def __init__(self, handle, body):
        self.current, self.body = handle, body
        self.answered = False

    @property
    def handle(self):
        """The request of the library, which uses the memory for other requests once the function has returned."""
        if self.current is None:
            raise MonkeyError("the request has ended: its function has returned")
        return self.current

    @property
    def method(self):
        return read_text(lib.mk_request_method_name(self.handle))

    @property
    def target(self):
        """Path and query, as the client has sent them."""
        return read_text(lib.mk_request_target(self.handle))

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

    @property
    def protocol(self):
        major = lib.mk_request_major(self.handle)
        return f"HTTP/{major}" if major > 1 else f"HTTP/{major}.{lib.mk_request_minor(self.handle)}"

    @property
    def user(self):
        """The user that a login of the configuration has checked; None without one."""
        return read_text(lib.mk_request_user(self.handle))

    @property
    def client(self):
        """The address of the client, and its port; None for what is unknown."""
        return read_address(lib.mk_request_client(self.handle))

    @property
    def local(self):
        """The address of this machine that the client, or a proxy, has connected to, and its port."""
        return read_address(lib.mk_connection_local(lib.mk_request_connection(self.handle)))

    @property
    def is_from_proxy(self):
        """Whether a proxy of TrustedProxies has sent it."""
        peer = ffi.new("struct mk_address *", lib.mk_request_peer(self.handle))
        return lib.mk_generation_trusts(lib.mk_worker_generation(lib.mk_request_worker(self.handle)), peer)

    def param(self, name):
        """The part of the path that is `name` in the pattern; None without it."""
        return read_text(lib.mk_request_param(self.handle, make_c_string(name, "the name of a parameter")))

    def header(self, name):
        """The value of a header, of several lines joined; None without it."""
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
        set_head(self.handle, status, headers)
        text, kept = make_str(body)
        check(lib.mk_response_write(self.handle, text))
        del kept
        self.answered = True
        lib.mk_response_end(self.handle)


def set_head(handle, status, headers):
    """Sets status and headers of a response. Returns the value of its Content-Length, None without one."""
    length = None
    check(lib.mk_response_set_status(handle, status))
    for name, value in headers:
        if name.lower() == "content-length":
            length = value
        add_header(handle, name.encode("latin-1"), value.encode("latin-1"))
    return length


def add_header(handle, name, value):
    (name_text, kept_name), (value_text, kept_value) = make_str(name), make_str(value)
    if not lib.mk_response_header_reserved(name_text):
        copy = lib.mk_arena_dup(lib.mk_request_arena(handle), name_text)  # the server does not copy names
        check(lib.mk_response_header(handle, copy, value_text) if copy.p != ffi.NULL else -12)
    del kept_name, kept_value
