# SPDX-License-Identifier: Apache-2.0
"""Cases of WebSockets: (what is sent, what comes back, how it ends). The first is a list of bytes; the second of
(opcode, payload), pongs among them; the last is the code of the server's close frame, "no code", or None: it stays
open."""

import pytest

from .websocket import Closed, Ended, WebSocket, close_frame, cut

CHOPS = {"whole": None, "frames": 0, "997": 997, "octets": 1}
OCTETS_MAX = 1500  # of a case whose bytes are sent one by one


def chop(sent, size):
    """The pieces in which a case is sent."""
    if size is None:
        return [b"".join(sent)]
    return sent if size == 0 else cut(b"".join(sent), size)


def play(server, case, size):
    """Plays a case; raises AssertionError if it ends otherwise."""
    sent, wanted, end = case
    ws = WebSocket(server, "/ws/plain")
    for piece in chop(sent, size):
        ws.send_all_you_can(piece)
    got = []
    if end is None:
        ws.send(close_frame(4321, b"the case is over"))
    with pytest.raises(Closed) as closed:
        while True:
            seen = len(ws.controls)
            try:
                message = ws.message()
            finally:
                got += ws.controls[seen:]
            got.append(message)
    assert got == wanted, f"{[(opcode, data[:40]) for opcode, data in got]}"
    code = {None: 4321, "no code": None}.get(end, end)
    assert closed.value.code == code
    ws.assert_end()
    ws.drop()


def play_last(server, case, _=None):
    """Plays a case whose client ends its side with the last byte: what is due is sent before the connection ends."""
    sent, wanted, end = case
    ws = WebSocket(server, "/ws/plain")
    ws.send_last(b"".join(sent))
    got = []
    with pytest.raises((Closed, Ended)) as ended:
        while True:
            seen = len(ws.controls)
            try:
                message = ws.message()
            finally:
                got += ws.controls[seen:]
            got.append(message)
    assert got == wanted, f"{[(opcode, data[:40]) for opcode, data in got]}"
    code = "none" if isinstance(ended.value, Ended) else ended.value.code
    assert code == {None: "none", "no code": None}.get(end, end)
    ws.drop()


def play_all(server, table, size, play_case=play):
    failures = {}
    for name, case in table.items():
        if size == 1 and len(b"".join(case[0])) > OCTETS_MAX:
            continue
        try:
            play_case(server, case, size)
        except (AssertionError, OSError, pytest.fail.Exception) as failure:
            failures[name] = str(failure)
    assert not failures, "\n".join(f"{name}: {text}" for name, text in failures.items())
