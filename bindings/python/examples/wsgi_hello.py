# SPDX-License-Identifier: Apache-2.0
"""A WSGI application in the server: it greets, and sends a body back. It ends with a line on stdin."""

import selectors
import sys

from monkey.wsgi import make_server


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Application", "hello")])
    if environ["REQUEST_METHOD"] == "POST":
        return [environ["wsgi.input"].read()]
    return [f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}\n".encode("latin-1")]


def main():
    """The loop of the program: a line on stdin ends it, and the server has its turns."""
    with make_server(application, "[SERVER]\n    Listen 127.0.0.1:0\n") as server, selectors.DefaultSelector() as loop:
        server.start()
        loop.register(server, selectors.EVENT_READ)
        loop.register(sys.stdin, selectors.EVENT_READ)
        print(f"http://127.0.0.1:{server.port}/", flush=True)
        while True:
            ready = [key.fileobj for key, _ in loop.select()]
            if server in ready:
                server.run_once(0)
            if sys.stdin in ready:
                return


if __name__ == "__main__":
    main()
