# SPDX-License-Identifier: Apache-2.0
"""A server in the thread of the program."""

import errno
import os
import select
import threading

from .calls import Handler, on_request, raise_kept
from .library import ffi, lib, make_c_string
from .request import MonkeyError


class Server:
    """A server: its functions are called by run_once(), in the thread that has started it."""

    def __init__(self, text="", folder=None):
        self.handlers, self.thread = [], None
        self.running = self.in_function = self.stopping = False
        self.loop = None  # of serve()
        self.ended = threading.Event()
        text = make_c_string(text, "the configuration")
        folder = None if folder is None else make_c_string(folder, "the folder")
        self.server = lib.mk_server_new()
        self.check(lib.mk_server_in_caller(self.server))
        self.check(lib.mk_server_text(self.server, text))
        if folder is not None:
            self.check(lib.mk_server_folder(self.server, folder))

    def check(self, result):
        if result < 0:
            raise MonkeyError(-result, ffi.string(lib.mk_server_error(self.server)).decode())
        return result

    def handle(self, methods, pattern):
        """A decorator for functions that answer: @server.handle("GET", "/users/:id")."""
        methods, pattern = make_c_string(methods, "the list of methods"), make_c_string(pattern, "the pattern")

        def add(fn):
            handle = ffi.new_handle(Handler(self, fn))
            self.check(lib.mk_server_handle(self.server, methods, pattern, on_request, handle))
            self.handlers.append(handle)
            return fn

        return add

    def start(self):
        self.check(lib.mk_server_start(self.server))
        self.ended.clear()
        self.running, self.stopping, self.thread = True, False, threading.get_ident()

    @property
    def port(self):
        return self.check(lib.mk_server_port(self.server))

    def fileno(self):
        """For the loop of the program: run_once(0) when it is readable."""
        return self.check(lib.mk_server_fd(self.server))

    def run_once(self, timeout_ms=-1):
        """Handles what has happened. Other threads of the program run while it waits."""
        result = lib.mk_server_run_once(self.server, timeout_ms)
        raise_kept()
        self.check(result)
        if self.stopping:
            self.end()

    def serve(self):
        """Starts the server, unless it runs, and serves until stop() or Ctrl-C."""
        if not self.running:
            self.start()
        loop = self.loop = Loop(self)
        try:
            while self.running:
                loop.run_once()
        except KeyboardInterrupt:
            pass
        finally:
            self.loop = None
            self.close()
            loop.close()

    def stop(self):
        """
        Stops the server, and waits until its responses are sent, up to ShutdownTimeout. In a function of a request it
        stops when the function has returned. In another thread it waits until the thread of the server has stopped it,
        in serve() or by its next run_once().
        """
        if not self.running:
            return
        if threading.get_ident() != self.thread:
            self.stop_from_outside()
        elif self.in_function:
            self.stopping = True
        else:
            self.end()

    def stop_from_outside(self):
        self.stopping = True  # before the loop is looked at, which looks at this once it is there
        loop = self.loop
        if loop:
            loop.wake()
        self.ended.wait()

    def end(self):
        try:
            self.check(lib.mk_server_stop(self.server))
        finally:
            self.running = self.stopping = False
            self.ended.set()
        raise_kept()

    def close(self):
        """Stops the server and frees it."""
        if self.in_function:
            raise MonkeyError(errno.EDEADLK, "a function of a request cannot close its server: call stop()")
        if self.server and self.running:
            self.end()
        lib.mk_server_free(self.server)
        self.server, self.handlers = ffi.NULL, []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class Loop:
    """The loop of serve(), which other threads can wake."""

    def __init__(self, server):
        self.server = server
        self.reader, self.writer = os.pipe()
        self.poll = select.poll()
        for fd in (server.fileno(), self.reader):
            self.poll.register(fd, select.POLLIN)

    def run_once(self):
        if self.server.stopping:
            self.server.end()
        elif self.reader not in [fd for fd, _ in self.poll.poll()]:
            self.server.run_once(0)

    def wake(self):
        """In another thread, whose server.stopping is seen then."""
        os.write(self.writer, b".")

    def close(self):
        os.close(self.reader)
        os.close(self.writer)
