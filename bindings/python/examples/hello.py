# SPDX-License-Identifier: Apache-2.0
"""Functions that answer, and the files of a folder. Ends with a request for /stop."""

import sys

from monkey import Server

server = Server("[SERVER]\n    Listen 127.0.0.1:0\n", sys.argv[1])
notes = {}


@server.handle("GET", "/hello/:name")
def say_hello(request):
    return f"Hello, {request.param('name')}!\n"


@server.handle("PUT", "/notes/:id")
def keep_note(request):
    notes[request.param("id")] = request.body
    return 201, "text/plain", f"{len(notes)} notes\n"


@server.handle("GET", "/notes/:id")
def show_note(request):
    return 200, "text/plain", notes[request.param("id")]


@server.handle("POST", "/stop")
def stop(request):
    server.stop()
    return "the end\n"


server.start()
print(f"http://127.0.0.1:{server.port}/hello/you", flush=True)
server.serve()
