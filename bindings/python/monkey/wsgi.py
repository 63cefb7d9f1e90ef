# SPDX-License-Identifier: Apache-2.0
"""WSGI (PEP 3333): applications of Flask, Django and others on the server, in one thread."""

import io
import sys

from .server import Server


def make_environment(request, port):
    environment = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path.encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": request.query or "",
        "SERVER_NAME": request.host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": request.scheme,
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "CONTENT_LENGTH": str(len(request.body)),
    }
    for name, value in request.headers():
        key = name.upper().replace("-", "_")
        if key == "CONTENT_TYPE":
            environment[key] = value
        elif key not in ("CONTENT_LENGTH", "PROXY"):  # Proxy: would be the environment variable HTTP_PROXY
            key = f"HTTP_{key}"
            environment[key] = f"{environment[key]},{value}" if key in environment else value
    return environment


def call(app, request, port):
    """Calls the application, and sends its response."""
    head, body = [], []

    def start_response(status, headers, exception=None):
        if exception and head and body:
            raise exception[1]
        head[:] = [int(status.split(" ", 1)[0]), headers]
        return body.append

    result = app(make_environment(request, port), start_response)
    try:
        body += result
    finally:
        getattr(result, "close", lambda: None)()
    request.respond(head[0], head[1], b"".join(body))


def make_server(app, text="", folder=None):
    """A server whose every path is the application's."""
    server = Server(text, folder)
    server.handle("ANY", "/*path")(lambda request: call(app, request, server.port))
    return server


def serve(app, text="", folder=None):
    """Serves the application until Ctrl-C."""
    make_server(app, text, folder).serve()
