# SPDX-License-Identifier: Apache-2.0
"""A WebSocket server for the tests of wr-load that counts messages, and misbehaves as its paths say."""

import asyncio
import base64
import hashlib
import re
import threading


def accept(key):
    return base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())


def make_frame(data, first=0x81):
    length = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
    return bytes([first]) + length + data


class WebSocketServer:
    """Answers on 127.0.0.1 in its own thread. `messages` are the distinct ones received, `count` all of them.

    /echo   sends each message back, behind a ping     /all    sends it to all clients of /all, the sender included
    /two    in two fragments                           /wrong  with another character
    /cut    without its last character                 /close  answers with a close frame
    /end    ends the connection                        /never  sends nothing
    /200    refuses the handshake
    """

    def __init__(self):
        self.messages, self.count, self.connections, self.clients = set(), 0, 0, []
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=1000))
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

    def url(self, path):
        return f"ws://127.0.0.1:{self.port}{path}"

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            if path == "/200":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                return
            key = re.search(rb"(?i)\r\nSec-WebSocket-Key: *(\S+)", head)[1]
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         b"Sec-WebSocket-Accept: " + accept(key) + b"\r\n\r\n")  # fmt: skip
            self.clients += [writer] if path == "/all" else []
            while True:
                await self.answer(path, writer, await self.read_message(reader))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def read_message(self, reader):
        first, size = await reader.readexactly(2)
        assert first == 0x81 and size & 0x80, "a masked text message in one frame"
        size &= 0x7F
        if size == 126:
            size = int.from_bytes(await reader.readexactly(2), "big")
        key, data = await reader.readexactly(4), await reader.readexactly(size)
        message = bytes(byte ^ key[i % 4] for i, byte in enumerate(data))
        self.messages.add(message)
        self.count += 1
        return message

    async def answer(self, path, writer, message):
        if path == "/all":
            for client in self.clients:
                client.write(make_frame(message))
        elif path == "/end":
            raise ConnectionError
        elif path != "/never":
            half = len(message) // 2
            writer.write({
                "/echo": make_frame(b"ping", 0x89) + make_frame(message),
                "/two": make_frame(message[:half], 0x01) + make_frame(message[half:], 0x80),
                "/wrong": make_frame(b"?" + message[1:]),
                "/cut": make_frame(message[:-1]),
                "/close": make_frame(b"\x03\xe8", 0x88),
            }[path])  # fmt: skip
        await writer.drain()
