# SPDX-License-Identifier: Apache-2.0
"""The commands `upstreams` and `upstream` of monkey shell: what groups are like, and servers that it drains."""

import contextlib
import re
import threading

import pytest

from harness import build
from harness.backend import answer
from harness.groups import ask_many, group, hold
from harness.load import Asking
from harness.messages import request
from harness.origins import Origin
from harness.proxies import TEXT
from harness.server import await_true, section
from harness.services import reload
from test_shell import Shell, path, shell, terminal  # noqa: F401 (fixtures)

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / name).exists() for name in ("cheetah.so", "upstream.so")),
        reason="the preset has no plugins",
    ),
]


@pytest.fixture
def serve_shown(serve_group, path):
    """A server that passes all requests to a group, and has a socket for shells."""

    def start(servers, keys=None, **rest):
        conf = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
        return serve_group(servers, keys, config={**conf, **rest.pop("config", {})}, **rest)

    return start


def read(one, name="app"):
    """The rows of a group by the addresses of its servers."""
    return {row["server"]: row for row in one.ask(f"upstreams {name}")}


def order(one, server, what):
    (row,) = [each for each in one.ask(f"upstream app {server.address} {what}") if "server" in each]
    assert row["server"] == server.address
    return row


# ── upstreams ──


def test_a_list(serve_shown, backends, shell):
    one, drained, dead, busy = backends(4)
    dead.refuse()
    busy.scripts[:] = [hold]
    rows = [dead, f"{one.address} weight=3", f"{drained.address} drain", f"{busy.address} backup weight=2"]
    other = group([busy], name="other")
    keys = {"Balance": "First", "EjectAfter": 1, "EjectTime": "5m"}
    server = serve_shown(rows, keys)
    server.groups.write_text(server.groups.read_text() + other)
    reload(server)
    asking = shell()
    assert ask_many(server, 4) == {0: 4}
    await_true(lambda: read(asking)[one.address]["active"] == 0)
    found = read(asking)
    assert list(found) == [dead.address, one.address, drained.address, busy.address]
    assert {key: value for key, value in found[one.address].items()} == {
        "group": "app",
        "server": one.address,
        "state": "up",
        "weight": 3,
        "active": 0,
        "requests": 4,
        "failures": 0,
        "ejections": 0,
        "conf_state": "up",
        "conf_weight": 3,
        "backup": False,
    }
    assert found[dead.address]["state"] == "ejected" and 0 < found[dead.address]["ejected_s"] <= 300
    assert [found[dead.address][key] for key in ("requests", "failures", "ejections")] == [1, 1, 1]
    assert (found[drained.address]["state"], found[drained.address]["conf_state"]) == ("drain", "drain")
    assert found[busy.address]["backup"] and found[busy.address]["weight"] == 2
    assert [(row["group"], row["server"]) for row in asking.ask("upstreams")] == [
        *(("app", each) for each in found),
        ("other", busy.address),
    ]
    assert order(asking, one, "down")["shell_state"] == "down"
    client = server.connect()
    client.send(request("/"))
    busy.wait_requests(1)
    assert await_true(lambda: read(asking)[busy.address]["active"] == 1)
    busy.tell("go")
    assert client.response().status == 200
    client.close()
    await_true(lambda: read(asking)[busy.address]["active"] == 0)


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("upstreams x", "there is no group x; upstreams lists them"),
        ("upstreams app x", "that is not understood: write upstreams [GROUP]"),
        ("upstream", "that is not understood: write upstream GROUP SERVER up|drain|down|weight N|reset"),
        ("upstream app {0}", "that is not understood: write upstream GROUP SERVER up|drain|down|weight N|reset"),
        ("upstream x {0} up", "there is no group x; upstreams lists them"),
        ("upstream app 192.0.2.1 up", "the group app has no server 192.0.2.1; upstreams app lists them"),
        ("upstream app {0} off", "behind the server is expected: up, drain, down, weight N or reset"),
        ("upstream app {0} weight 257", "a weight is a number from 0 to 256"),
    ],
)
def test_wrong_actions(serve_shown, backends, shell, line, sentence):
    (one,) = backends(1)
    server = serve_shown([one])
    assert shell().refused(line.format(one.address)) == sentence
    assert ask_many(server, 2) == {0: 2}


# ── upstream ──


@pytest.mark.parametrize("state", ["down", "drain", "weight 0"])
def test_a_server_without_new_requests(serve_shown, backends, shell, state):
    """Requests under way continue; the next ones go to others, until it is up again."""
    one, two = backends(2)
    one.scripts[:] = [hold]
    server = serve_shown([one, two], {"Balance": "First"})
    held, asking = server.connect(), shell()
    held.send(request("/"))
    one.wait_requests(1)
    row = order(asking, one, state)
    assert row["active"] == 1 and (row["weight"] == 0 if state == "weight 0" else row["state"] == state)
    server.wait_log(rf"upstream app: the shell \(process \d+, user \d+\) has set .*{re.escape(one.address)} to ")
    assert ask_many(server, 20) == {1: 20}
    one.tell("go")
    assert held.response().body == b"0"
    held.close()
    row = order(asking, one, "reset")
    assert (row["state"], row["weight"]) == ("up", 1) and "shell_state" not in row and "shell_weight" not in row
    assert ask_many(server, 3) == {0: 3}


def test_weights(serve_shown, backends, shell):
    one, two = backends(2)
    server = serve_shown([one, two], {"Balance": "RoundRobin"})
    row = order(shell(), two, "weight 3")
    assert (row["weight"], row["conf_weight"], row["shell_weight"]) == (3, 1, 3)
    assert ask_many(server, 40) == {0: 10, 1: 30}


def test_up_against_the_configuration(serve_shown, backends, shell):
    """A server that the configuration has down, and whose ejection `up` ends."""
    sick, well = backends(2)
    sick.scripts[:] = [answer(b"no", TEXT, status=503, reason="Unavailable")]
    server = serve_shown([f"{sick.address} down", well], {"Balance": "First", "EjectAfter": 1, "EjectTime": "5m"})
    asking = shell()
    assert ask_many(server, 2) == {1: 2}
    row = order(asking, sick, "up")
    assert (row["state"], row["conf_state"], row["shell_state"]) == ("up", "down", "up")
    with server.connect() as client:
        assert [client.ask("/").status for _ in range(3)] == [503, 200, 200]
        assert read(asking)[sick.address]["state"] == "ejected"
        assert order(asking, sick, "up")["state"] == "up"
        server.wait_log(f"has set {re.escape(sick.address)} to up, which ends its ejection")
        assert [client.ask("/").status for _ in range(2)] == [503, 200]


def test_a_drained_server_keeps_its_browsers(serve_shown, backends, shell):
    """A request whose sticky cookie names it still gets it, and no other one does; one that is down gets none."""
    one, two = backends(2)
    server = serve_shown([one, two], {"Balance": "Sticky"})
    asking = shell()
    order(asking, two, "down")
    with server.connect() as client:
        cookie = client.ask("/")["Set-Cookie"].split(";")[0]
        order(asking, two, "up")
        order(asking, one, "drain")
        for _ in range(5):
            assert client.ask("/", f"Cookie: {cookie}").body == b"0"
            assert client.ask("/").body == b"1"
        order(asking, one, "down")
        assert client.ask("/", f"Cookie: {cookie}").body == b"1"


def test_requests_that_hold(serve_shown, backends, shell):
    """With Hold they wait until a server is up."""
    (one,) = backends(1)
    server = serve_shown([f"{one.address} down"], {"Hold": "60s"})
    asking = shell()
    with server.connect() as client:
        client.send(request("/"))
        await_true(lambda: asking.ask("status")[0]["requests_under_way"] == 1, what="the request")
        order(asking, one, "up")
        assert client.response().body == b"0"


def test_none_is_left(serve_shown, backends, shell):
    """The answer warns of it."""
    one, two = backends(2)
    server = serve_shown([one, two])
    asking = shell()
    assert not [row for row in asking.ask(f"upstream app {one.address} down") if "warning" in row]
    rows = asking.ask(f"upstream app {two.address} drain")
    assert {"warning": "no server of the group app gets new requests now"} in rows
    with server.connect() as client:
        assert client.ask("/").status == 503
    order(asking, one, "up")
    assert ask_many(server, 2) == {0: 2}


def test_reloads_and_the_end_of_the_process(serve_shown, backends, shell, path):
    """What was set stays over reloads that name the server, and ends with the process, or without the server."""
    one, two, three = backends(3)
    server = serve_shown([one, two, three], {"Balance": "First"})
    asking = shell()
    order(asking, one, "drain")
    order(asking, two, "weight 0")
    for servers in ([one, two, three], [three, f"{one.address} weight=5", two], [one, f"{two.address} down", three]):
        server.groups.write_text(group(servers, Balance="First"))
        reload(server)
        rows = read(asking)
        assert (rows[one.address]["state"], rows[one.address]["shell_state"]) == ("drain", "drain")
        assert rows[two.address]["shell_weight"] == 0
        assert ask_many(server, 2) == {2: 2}
    assert rows[two.address]["conf_state"] == "down"
    server.groups.write_text(group([three]))
    reload(server)
    server.wait_log("the configuration before the last reload is not in use any more", 4)
    server.groups.write_text(group([one, three], Balance="First"))
    reload(server)
    assert "shell_state" not in read(asking)[one.address]
    assert ask_many(server, 2) == {0: 2}
    order(asking, one, "down")
    asking.close()
    server.stop()
    again = serve_shown([one, two], {"Balance": "First"})
    with Shell(path) as other:
        assert "shell_state" not in read(other)[one.address]
    assert ask_many(again, 2) == {0: 2}


@pytest.mark.parametrize("balance", ["LeastLoaded", "RoundRobin"])
def test_a_slow_start(serve_shown, backends, shell, balance):
    """A server that is in use again gets one request of eleven at first: 54.5, with a deviation of 7 if it is drawn."""
    one, two = backends(2)
    server = serve_shown([one, two], {"Balance": balance, "SlowStart": "1h"})
    asking = shell()
    order(asking, one, "down")
    assert ask_many(server, 10) == {1: 10}
    order(asking, one, "up")
    found = ask_many(server, 600)
    assert 20 < found[0] < 95, found


@pytest.mark.load
@pytest.mark.concurrent
@pytest.mark.parametrize("count", [2, 4])
def test_a_rolling_restart_under_load(serve, serve_shown, shell, count):
    """Each server is drained, killed, started and used again, one after the other: no request fails."""
    origins = [Origin(serve) for _ in range(count)]
    server = serve_shown([each.address for each in origins], settings={"Workers": 2})

    def get(client):
        assert client.ask("/b").body == Origin.BODY

    def post(client):
        """Is not repeated once it was sent."""
        assert client.ask("/b", method="POST", body=b"x" * 1000).status == 405

    asking = shell()
    with Asking(server, get, post) as clients:
        for each in origins:
            row = lambda: read(asking)[each.address]
            await_true(lambda: row()["requests"] > 5 or clients.errors, what="requests of the server")
            order(asking, each, "drain")
            await_true(lambda: row()["active"] == 0, what="the end of its requests")
            before = row()["requests"]
            each.kill()
            clients.await_answers(20)
            assert row()["requests"] == before
            each.start()
            clients.await_answers(20)
            order(asking, each, "up")
            await_true(lambda: row()["requests"] > before or clients.errors, what="requests after that")
            assert row()["failures"] == 0
    assert not clients.errors, clients.errors


def test_completion(serve_shown, backends, shell, terminal):
    one, two = backends(2)
    server = serve_shown([one, two], {"Balance": "First"})
    asking = shell()
    complete = lambda words: [row["word"] for row in asking.ask(f"complete {words}")]
    assert complete("upstreams") == complete("upstream") == ["app"]
    assert complete("upstream app") == [one.address, two.address]
    assert complete(f"upstream app {one.address}") == ["up", "drain", "down", "weight", "reset"]
    assert complete(f"upstream app {one.address} weight") == complete("upstream x") == []
    screen = terminal()
    screen.wait("monkey> ")
    screen.type("upstream a\t")
    screen.wait("pp ")
    screen.type(f"{one.address}\tdr\t\r")
    server.wait_log(f"has set {re.escape(one.address)} to drain")
    screen.wait("monkey> ")
    screen.type("upstreams\r")
    screen.wait(rf"{re.escape(one.address)} +drain")
    assert screen.end("\x04") == 0


def test_a_server_that_fails_its_checks(serve_shown, backends, shell):
    """`up` of the shell does not overrule its checks, but `down` is shown first."""
    sick, well = backends(2)
    sick.scripts[:] = [answer(b"no", TEXT, status=503, reason="Unavailable")]
    server = serve_shown([sick, well], {"Balance": "First", "Check": "/", "CheckInterval": "1h"})
    server.wait_log("is down, and gets no requests: GET /: 503")
    asking = shell()
    assert [row["state"] for row in read(asking).values()] == ["unhealthy", "up"]
    order(asking, sick, "up")
    assert ask_many(server, 4) == {1: 4}
    assert order(asking, sick, "down")["state"] == "down"


# ── names ──


def test_addresses_of_a_name(names, serve_shown, shell):
    """Each has a row; an order is for all of them, and for those that come later."""
    names.set("app.test", "127.0.0.1", "127.0.0.2")
    serve_shown(["app.test:81", "127.0.0.3:81"], {"NameServer": names.address, "Resolve": "1s"})
    asking = shell()

    def read_states():
        return [(row.get("address"), row["state"]) for row in asking.ask("upstreams app")]

    both, other = ("127.0.0.1:81", "127.0.0.2:81"), (None, "up")
    await_true(lambda: read_states() == [(both[0], "up"), (both[1], "up"), other], what="the first addresses")
    assert [row["address"] for row in asking.ask("upstream app app.test:81 drain")] == list(both)
    assert read_states() == [(both[0], "drain"), (both[1], "drain"), other]
    names.set("app.test", "127.0.0.2", "127.0.0.4")
    changed = [(both[1], "drain"), ("127.0.0.4:81", "drain"), other]
    await_true(lambda: read_states() == changed, what="the addresses")


def test_an_order_outlives_the_records_of_its_line(names, serve_shown, shell):
    """A reload names another name server, which does not answer: the line has no server until the next one."""
    names.set("s0.test", "127.0.0.1")
    names.set_srv("_http._tcp.app.test", (0, 1, 81, "s0.test"))
    line, keys = "srv:_http._tcp.app.test", {"NameServer": names.address, "Resolve": "1s"}
    server = serve_shown([line], keys)
    asking = shell()
    read_state = lambda: [(row["state"], row.get("shell_state")) for row in asking.ask("upstreams app")]
    await_true(lambda: read_state() == [("up", None)], what="the record")
    asking.ask(f"upstream app {line} drain")
    assert read_state() == [("drain", "drain")]
    server.groups.write_text(group([line], NameServer="127.0.0.1:9", Resolve="1s"))
    reload(server)
    await_true(lambda: read_state() == [], what="a group without servers")
    server.groups.write_text(group([line], **keys))
    reload(server)
    await_true(lambda: read_state() == [("drain", "drain")], what="the order")
