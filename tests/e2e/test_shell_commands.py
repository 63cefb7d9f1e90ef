# SPDX-License-Identifier: Apache-2.0
"""Commands that plugins add to `monkey shell`: what a running server has of them, arguments, answers and completion."""

import threading

import pytest

from harness import build
from harness.metrics import needs_status
from harness.server import await_true, run, section, write_config
from test_shell import RELOADED, path, shell, shown, terminal  # noqa: F401 (fixtures)

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "cheetah.so").exists(), reason="the preset has no plugin cheetah"),
    pytest.mark.skipif(build.PROTOCOL != "http/1.1", reason="the shell's protocol is its own"),
]


def load(*plugins):
    """plugins.load with these besides the usual ones."""
    return section("PLUGINS", {"Load": ["liana", "static", *plugins, "cheetah"]})


def module(name):
    return build.MODULES / f"{name}.so"


@pytest.fixture
def commanded(shown):
    """A server with the plugin commander."""
    return lambda settings=None: shown(settings, config={"plugins.load": load(module("commander"))})


@build.needs_modules
def test_help_and_answers(commanded, shell):
    server, one = commanded(), shell()
    rows = {row["command"]: row for row in one.ask("help")}
    assert rows["doors"]["plugin"] == "commander" and rows["doors"]["arguments"] == "[NUMBER]"
    assert rows["status"]["plugin"] == "" and "complete" not in rows
    assert one.ask("help key")[0]["help"] == "turns the key"
    assert one.ask("doors") == [{"door": 0, "open": False}, {"door": 1, "open": True}, {"door": 2, "open": False}]
    assert one.ask('["DOORS", "1"]') == [{"door": 0, "open": False}]
    one.send("doors")
    assert one.read() == {"begin": "doors", "view": "table"}
    one.answer()
    one.send("key left")
    assert one.read() == {"begin": "key", "view": "list"}
    assert one.answer() == ([{"key": "left"}], {"end": True, "ok": True})
    server.wait_log(r"commander: process \d+, user \d+ turns the key: left")


@build.needs_modules
@pytest.mark.parametrize(
    "line, sentence",
    [
        ("doors 1 2", "that is not understood: write doors [NUMBER]"),
        ("doors x", "there are up to 1000000 doors"),
        ("key", "that is not understood: write key left|right"),
        ("key up", "that is not understood: write key left|right"),
        ("door", "there is no command door; did you mean doors?"),
    ],
)
def test_wrong_arguments(commanded, shell, line, sentence):
    commanded()
    one = shell()
    assert one.refused(line) == sentence
    assert one.ask("doors 1")


@build.needs_modules
def test_a_long_answer(commanded, shell):
    """It waits for its reader, and the worker serves meanwhile."""
    server, one = commanded(), shell(timeout=60)
    one.send("doors 100000")
    with server.connect() as client:
        for _ in range(20):
            assert client.ask("/hello.txt").status == 200
    rows, end = one.answer()
    assert end["ok"] and rows[-1] == {"warning": "those are many"}
    assert [row["door"] for row in rows[:-1]] == list(range(100000))
    one.send("doors 1000000")
    one.close()  # which ends the answer
    assert shell().ask("doors 1")


@build.needs_modules
def test_a_reload_during_an_answer(commanded, shell):
    """Its plugin may be gone: the answer ends."""
    server = commanded()
    server.baseline += RELOADED
    one, other = shell(timeout=60), shell()
    one.send("doors 1000000")
    assert one.read()["begin"] == "doors"
    assert other.ask("reload")
    rows, end = one.answer()
    assert end["error"] == "a reload has changed the configuration; ask again" and 0 < len(rows) < 1000000
    assert one.ask("doors 1")


@build.needs_modules
@pytest.mark.concurrent
def test_reloads_add_and_remove_a_plugin(commanded, shell):
    server, one = commanded({"Workers": 2}), shell()
    server.baseline += RELOADED
    names = lambda: {row["command"] for row in one.ask("help")}
    for _ in range(3):
        (server.conf / "plugins.load").write_text(load())
        assert one.ask("reload")
        assert not names() & {"doors", "key"}
        assert one.refused("doors") == "there is no command doors; help lists them, also those of the loaded plugins"
        (server.conf / "plugins.load").write_text(load(module("commander")))
        assert one.ask("reload")
        assert names() >= {"doors", "key"}
        assert len(one.ask("doors")) == 3


@build.needs_modules
@pytest.mark.parametrize(
    "plugins, sentence",
    [
        (["usurper"], 'the plugin usurper has a command "status", which the shell has already'),
        (["commander", "rival"], 'the plugin rival has a command "doors", which commander has already'),
    ],
)
def test_names_that_are_taken(tmp_path, site_root, path, plugins, sentence):
    files = {
        "plugins.load": load(*map(module, plugins)),
        "plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path}),
    }
    result = run("-c", write_config(tmp_path / "conf", site_root, files=files), "--test")
    assert result.returncode == 1 and sentence in result.stderr


def complete(one, *words):
    return [row["word"] for row in one.ask(" ".join(["complete", *words]))]


@build.needs_modules
def test_what_completion_offers(commanded, shell):
    commanded()
    one = shell()
    assert complete(one, "doors") == ["10", "1000"] and complete(one, "doors", "10") == []
    assert complete(one, "key") == ["left", "right"]
    assert complete(one, "status") == complete(one, "nothing") == complete(one) == []


@build.needs_modules
def test_completion_on_a_terminal(commanded, shell, terminal):
    """Commands and arguments of the running server, also after a reload."""
    server = commanded()
    server.baseline += RELOADED
    screen = terminal()
    screen.wait("monkey> ")
    screen.type("doo\t")
    screen.wait("rs ")
    screen.type("10\t\t")
    screen.wait(r"10 +1000")
    screen.type("\x15key \t\t")
    screen.wait(r"left +right")
    screen.type("ri\t\r")
    screen.wait(r"key\S* +right")
    screen.wait("monkey> ")
    (server.conf / "plugins.load").write_text(load())
    assert shell().ask("reload")
    screen.type("doo\tx\r")
    screen.wait("there is no command doox")
    assert screen.end("\x04") == 0


# ── commands of the plugins that the server comes with ──


def needs(*plugins):
    missing = [name for name in plugins if not (build.PLUGINS / f"{name}.so").exists()]
    return pytest.mark.skipif(bool(missing), reason=f"the preset has no plugin {' '.join(missing)}")


@needs("cache")
def test_cache(shown, shell):
    """Its figures, and clearing it."""
    server = shown(config={"plugins/cache/cache.conf": section("CACHE", {"Match": "/", "Files": "Revalidate 10s"})})
    one = shell()
    with server.connect() as client:

        def ask():
            assert client.ask("/hello.txt").status == 200
            return one.ask("cache")[0]

        before = await_true(lambda: row if (row := ask())["hits"] >= 2 else None)  # a young file is not kept at once
        assert before["misses"] >= 1 and before["memory_bytes"] > 0
        entries = lambda row: sum(value for key, value in row.items() if key.endswith("_entries"))
        assert entries(before) >= 1 and before["body_bytes"] + before["descriptor_bytes"] > 0
        (cleared,) = one.ask("cache clear")
        assert cleared["evicted"] == entries(before)
        assert entries(one.ask("cache")[0]) == 0
        server.wait_log(rf"cache: the shell \(process \d+, user \d+\) has cleared it: {cleared['evicted']} entries")
        assert client.ask("/hello.txt").status == 200
        assert one.ask("cache")[0]["misses"] > before["misses"]
    assert one.refused("cache drop") == "behind cache is expected: stats, entries, reset, add or clear"


@needs("cache")
def test_files_of_a_host_in_the_cache(shown, shell):
    """They are listed, removed and loaded by their paths."""
    server = shown(config={"plugins/cache/cache.conf": section("CACHE", {"Match": "/", "Files": "Revalidate 10s"})})
    one = shell()
    with server.connect() as client:

        def list_entries():
            assert client.ask("/hello.txt").status == 200
            return one.ask("cache entries localhost /hello")

        (entry,) = await_true(list_entries)  # a young file is not kept at once
        assert (entry["path"], entry["kind"]) == ("/hello.txt", "body")
        assert one.ask("cache reset localhost /hello.txt") == [{"removed": 1}]
        assert one.ask("cache entries localhost /hello") == []
        assert one.ask("cache add localhost /hello.txt") == [{"adding": "/hello.txt"}]
        server.wait_log("cache: the shell has added 1 of 1 paths")
        assert one.ask("cache entries localhost /hello")[0]["path"] == "/hello.txt"
        assert one.ask("cache reset localhost /he*") == [{"removed": 1}]
    assert "there is no host elsewhere" in one.refused("cache reset elsewhere")


@needs("cache")
def test_the_cache_is_cleared_under_load(shown, shell):
    server = shown({"Workers": 2}, config={"plugins/cache/cache.conf": section("CACHE", {"Match": "/"})})
    stop, bad = threading.Event(), []

    def ask():
        with server.connect() as client:
            while not stop.is_set():
                if client.ask("/hello.txt").status != 200:
                    bad.append(1)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        one = shell()
        for _ in range(50):
            one.ask("cache clear")
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert not bad


@needs_status
@needs("status")
def test_traffic(shown, shell):
    """The sums of the status page, for all hosts and for each."""
    server = shown(config={"plugins/status/status.conf": section("STATUS", {"Enabled": "On"})})
    one = shell()
    with server.connect() as client:
        for target in ("/hello.txt", "/hello.txt", "/nothing"):
            client.ask(target)

    def read():
        return {row["host"]: row for row in one.ask("traffic")}

    rows = await_true(lambda: (found := read()) if read()["(all)"]["requests"] == 3 else None)
    assert set(rows) == {"(all)", "localhost"}
    for row in rows.values():
        assert (row["requests"], row["2xx"], row["4xx"], row["5xx"], row["aborted"]) == (3, 2, 1, 0, 0)
        assert row["sent_bytes"] > 0 and 0 < row["p50_us"] <= row["p99_us"]
    assert one.ask("traffic LOCALHOST") == [rows["localhost"]]
    assert one.refused("traffic elsewhere").startswith("no requests of a host elsewhere were counted")
    assert complete(one, "traffic") == ["localhost"]


@needs("mandril")
def test_rules_with_clients(shown, shell):
    """Of a section that limits clients: how many it knows. Many rules come in pieces."""
    many = "".join(section("RULES", {"Name": f"r{i}", "Match": f"/r{i}", "Action": "deny 403"}) for i in range(2000))
    text = section("CLIENT_LIMITS", {"Name": "slow", "Match": "/slow", "Rate": "10/s", "MaxClients": 100}) + many
    server = shown(text=text)
    one = shell()
    with server.connect() as client:
        client.ask("/slow")
        assert client.ask("/r7").status == 403
    rows = one.ask("rules")
    names = [f'[RULES] "r{i}": deny 403' for i in range(2000)]
    assert [row["rule"] for row in rows] == [*names, '[CLIENT_LIMITS] "slow"']
    assert rows[7]["hits"] == 1 and "clients" not in rows[7]
    assert (rows[-1]["clients"], rows[-1]["evicted"]) == (1, 0) and rows[-1]["clients_max"] >= 100
    assert [row["rule"] for row in one.ask("rules r1999")] == ['[RULES] "r1999": deny 403']
    assert one.refused("rules a b") == "that is not understood: write rules [PATTERN]"


@needs("proxy")
def test_backends_without_requests(shown, shell):
    """The command is there while the plugin is loaded."""
    shown(text=section("PROXY", {"Match": "/app", "To": "http://127.0.0.1:1"}))
    one = shell()
    assert [(row["backend"], row["requests"]) for row in one.ask("backends")] == [("http://127.0.0.1:1", 0)]
    assert one.refused("backends x") == "backends takes no arguments"
