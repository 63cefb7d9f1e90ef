# SPDX-License-Identifier: Apache-2.0
"""A server for the tests of wr-load that counts what it is asked, and misbehaves as its paths say."""

import asyncio
import collections
import threading
import time

BODY = b"0123456789" * 100000


class CountingServer:
    """Answers on 127.0.0.1 in its own thread. `requests` counts paths, `connections` the accepted ones.

    /bytes/N     N bytes with a Content-Length      /chunked/N   the same, chunked
    /status/N    an empty answer with that status   /close/N     N bytes, then the connection is closed, as announced
    /until/N     N bytes until the end              /continue    after two answers 100
    /slow/MS     after so many milliseconds         /malformed   no answer of HTTP
    /half        half an answer, then the end       /never       no answer
    """

    def __init__(self, most=None, stall=None):
        self.requests, self.connections = collections.Counter(), 0
        self.per_connection = []  # answers of each
        self.most = most  # answers on a connection, which then ends without a word
        self.stall = stall  # (seconds after the first request, seconds): nothing is answered meanwhile
        self.started = None
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(
            asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 20, backlog=1000))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    @property
    def total(self):
        return sum(self.requests.values())

    async def serve(self, reader, writer):
        self.connections += 1
        number, answered = len(self.per_connection), 0
        self.per_connection.append(0)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.started = self.started or time.monotonic()
                method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
                self.requests[path] += 1
                await self.wait_for_stall()
                continues = await self.answer(writer, method, path.split("/")[1:], b"\r\nConnection: close\r\n" in head)
                await writer.drain()
                answered += 1
                self.per_connection[number] = answered
                if not continues or answered == self.most:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        writer.close()

    async def wait_for_stall(self):
        if self.stall:
            now = time.monotonic() - self.started
            if self.stall[0] <= now < sum(self.stall):
                await asyncio.sleep(sum(self.stall) - now)

    async def answer(self, writer, method, words, asks_to_close):
        what, value = words[0], int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        end = "Connection: close\r\n" if asks_to_close or what == "close" else ""
        body, status = BODY[:value], 200
        if what == "slow":
            await asyncio.sleep(value / 1000)
            body = b""
        elif what == "status":
            body, status = b"", value
        elif what == "never":
            await asyncio.sleep(3600)
        elif what == "malformed":
            writer.write(b"SSH-2.0-x\r\n\r\n")
            return False
        elif what == "half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
            return False
        elif what == "until":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
            return False
        elif what == "continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 2)
        if what == "chunked":
            head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{end}\r\n"
            parts = [body[i : i + 1000] for i in range(0, len(body), 1000)]
            coded = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        else:
            head, coded = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{end}\r\n", body
        writer.write(head.encode() + (b"" if method == "HEAD" else coded))
        return not end
