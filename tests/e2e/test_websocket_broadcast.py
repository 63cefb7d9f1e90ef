# SPDX-License-Identifier: Apache-2.0
"""Broadcasts across workers: channels, order, and all workers at once. Under ThreadSanitizer, too."""

import random
import threading

import pytest

from harness.server import await_true
from harness.ways import WAYS
from harness.websocket import TEXT, WebSocket, close_frame, needs_wsprobe, start_wsprobe

pytestmark = [needs_wsprobe, pytest.mark.single_protocol, pytest.mark.concurrent]
WORKERS = 3


@pytest.fixture
def server(serve, tmp_path, site_root):
    return start_wsprobe(serve, WAYS["h1"], tmp_path, site_root, {"Workers": WORKERS})


def in_threads(*works):
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if failures:
        raise failures[0]


def join(server, channel=1, **rest):
    """A member of a channel; it has been there when this returns."""
    ws = WebSocket(server, "/ws/chat", **rest)
    ws.send_message(f"/join {channel}")
    assert ws.message()[1] == b"joined"
    return ws


def test_others_of_a_channel_hear_it(server):
    """Not the sender, and not other channels."""
    first, second = [join(server, 1) for _ in range(9)], [join(server, 2) for _ in range(9)]
    for n, speaker in enumerate(first):
        speaker.send_message(f"one {n}")
        for ws in first:
            if ws is not speaker:
                assert ws.message()[1] == b"one %d" % n
    second[0].send_message("two")
    for ws in second[1:]:
        assert ws.message()[1] == b"two"
    for ws in (*first, *second):
        ws.close()


def test_moving_between_channels(server):
    one, two = join(server, 1), join(server, 2)
    for channel in (2, 3, 500, 1):
        for ws in (one, two):
            ws.send_message(f"/join {channel}")
            assert ws.message()[1] == b"joined"
        for speaker, other in ((one, two), (two, one)):
            speaker.send_message(f"channel {channel}")
            assert other.message()[1] == b"channel %d" % channel


def test_compressed_and_other_receivers(server):
    """A message is compressed once; those that did not agree to it, or with small windows, get it as it is."""
    offers = [None, "permessage-deflate", "permessage-deflate; server_max_window_bits=9"] * 3
    sockets = [join(server, 7, extensions=offer) for offer in offers]
    speaker = join(server, 7)
    for n in range(10):
        text = f"message {n}, " * 200
        speaker.send_message(text)
        for ws in sockets:
            assert ws.message() == (TEXT, text.encode())
            assert ws.packed == (ws.offer == "permessage-deflate")


def test_broadcasts_between_messages_with_context(server):
    """What is compressed for many is not in the sender's own context."""
    sockets = [WebSocket(server, "/ws/context", extensions="permessage-deflate") for _ in range(4)]
    shouter = WebSocket(server, "/ws/shout")
    for n in range(20):
        text = f"all of this is said again and again {n}, " * 30
        for ws in sockets:
            ws.assert_echo(text)
        shouter.send_message(text)
        for ws in (*sockets, shouter):
            assert ws.message()[1] == text.encode()
    for ws in sockets:
        ws.close()


@pytest.mark.parametrize("senders, count", [(WORKERS * 2, 60)])
def test_all_workers_at_once(server, senders, count):
    """Each WebSocket gets each message once, and those of each sender in order."""
    sockets = [WebSocket(server, "/ws/shout", extensions=[None, "permessage-deflate"][n % 2]) for n in range(senders)]
    for ws in sockets:
        ws.client.sock.settimeout(60)

    def work(me):
        ws, at = sockets[me], [0] * senders
        for n in range(count):
            ws.send_message(f"{me} {n} " + "x" * (n % 7 * 40))
        while sum(at) < senders * count:
            sender, number = map(int, ws.message()[1].split()[:2])
            assert at[sender] == number
            at[sender] += 1

    in_threads(*(lambda me=me: work(me) for me in range(senders)))
    for ws in sockets:
        ws.close()


def test_coming_and_going(server):
    """While two speak, others join, move, leave, and vanish; two that stay get everything."""
    listeners, speakers, done = [join(server, 1) for _ in range(2)], [join(server, 1) for _ in range(2)], [False]

    def speak(me):
        for n in range(300):
            speakers[me].send_message(f"{me} {n}")

    def listen(me):
        at = [0, 0]
        while sum(at) < 600:
            sender, number = map(int, listeners[me].message()[1].split())
            assert at[sender] == number
            at[sender] += 1
        done[0] = True

    def wander(seed):
        dice = random.Random(seed)
        while not done[0]:
            ws = WebSocket(server, "/ws/chat", extensions="permessage-deflate")
            for _ in range(dice.randrange(3)):
                ws.send_message(f"/join {dice.randrange(1, 4)}")
            if dice.random() < 0.5:
                ws.send(close_frame(1000))
                ws.closing()
            dice.choice([ws.drop, ws.reset])()

    in_threads(*(lambda me=me: speak(me) for me in range(2)), *(lambda me=me: listen(me) for me in range(2)),
               *(lambda seed=seed: wander(seed) for seed in range(3)))  # fmt: skip
    for ws in (*listeners, *speakers):
        ws.drop()
    await_true(lambda: server.log.count("wsprobe: open") <= server.log.count("wsprobe: closed"), 30, "all are closed")


def test_a_stop_while_all_speak(server):
    sockets = [WebSocket(server, "/ws/shout") for _ in range(WORKERS * 2)]
    ready = threading.Barrier(len(sockets) + 1)

    def work(ws):
        ready.wait(60)
        for n in range(2000):
            try:
                ws.send_message(f"message {n}")
            except OSError:
                return
            if n == 50:
                ready.wait(60)

    threads = [threading.Thread(target=work, args=(ws,)) for ws in sockets]
    for thread in threads:
        thread.start()
    ready.wait(60)
    ready.wait(60)
    server.send_signal(15)
    for ws in sockets:
        assert ws.closing()[0] == 1001
        ws.client.sock.close()
    for thread in threads:
        thread.join(60)
    assert server.wait() == 0
