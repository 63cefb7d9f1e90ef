# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server that counts its answers, and that dies or hangs on request.

    small_server.py [--die-after N | --hang-after N]

Prints its port. /count answers with the number of other answers so far, /missing with 404, all else with 5 bytes."""

import argparse
import asyncio
import os
import time

HEAD = "HTTP/1.1 {} OK\r\nContent-Length: {}\r\nConnection: {}\r\n\r\n"


class Counter:
    def __init__(self, options):
        self.options, self.answers = options, 0

    def count(self):
        self.answers += 1
        if self.answers == self.options.die_after:
            os._exit(3)
        while self.answers == self.options.hang_after:
            time.sleep(1000)


class Connection(asyncio.Protocol):
    def __init__(self, counter):
        self.counter, self.data = counter, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.data += data
        while b"\r\n\r\n" in self.data:
            head, _, self.data = self.data.partition(b"\r\n\r\n")
            self.answer(head.lower())

    def answer(self, head):
        path = head.split(b" ")[1]
        stays = b"connection: keep-alive" in head or (b"http/1.1" in head and b"connection: close" not in head)
        body = str(self.counter.answers).encode() if path == b"/count" else b"hello"
        if path != b"/count":
            self.counter.count()
        status = 404 if path == b"/missing" else 200
        self.transport.write(HEAD.format(status, len(body), "keep-alive" if stays else "close").encode() + body)
        if not stays:
            self.transport.close()


async def serve(options):
    counter = Counter(options)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(counter), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--die-after", type=int)
    parser.add_argument("--hang-after", type=int)
    asyncio.run(serve(parser.parse_args()))
