# SPDX-License-Identifier: Apache-2.0
"""Several hosts at one address: which of them answers for a name, and what is said of names that cannot be."""

import resource

import pytest

from harness.content import populate
from harness.messages import lines, request
from harness.server import run, section, write_config

# a file in sites/ to its names; each host has its own document root, whose /who holds the name of that file
SITES = {
    "default": "localhost 127.0.0.1",
    "exact": "example.org WWW.Example.Org trailing.example.",
    "wild": "*.example.org",
    "deep": "*.deep.example.org",
    "v6": "[0:0::1] 192.0.2.1",
    "nameless": None,
}

FOUND = {
    "localhost": "default",
    "127.0.0.1": "default",
    "127.0.0.1:2001": "default",
    "nowhere.example": "default",
    "ample.org": "default",
    "org": "default",
    "": "default",
    "example.org": "exact",
    "EXAMPLE.org": "exact",
    "example.org:80": "exact",
    "example.org:": "exact",
    "example.org.": "exact",
    "Example.Org.:8080": "exact",
    "www.example.org": "exact",
    "trailing.example": "exact",
    "a.example.org": "wild",
    "A.b.C.example.ORG.": "wild",
    "deep.example.org": "wild",
    "www.www.example.org:1": "wild",
    "a.deep.example.org": "deep",
    "a.b.deep.example.org:65535": "deep",
    "[::1]": "v6",
    "[::1]:2001": "v6",
    "[0:0:0:0:0:0:0:1]": "v6",
    "[::0.0.0.1]": "v6",
    "192.0.2.1": "v6",
    "[::2]": "default",
    "192.0.2.2": "default",
    ".".join("a" * 127): "default",
    "a." * 115 + "deep.example.org": "deep",
    "a" * 300 + ".example.org": "default",
}


def write_sites(folder, sites):
    """sites/ with a document root for each; returns what write_config() wants as its files."""
    texts = {}
    for name, names in sites.items():
        root = populate(folder / "roots" / name, {"who": name.encode()})
        texts[f"sites/{name}"] = section("HOST", {**({"ServerName": names} if names else {}), "DocumentRoot": root})
    return texts


@pytest.fixture
def sites(tmp_path, serve):
    return serve(config=write_sites(tmp_path, SITES))


def test_by_host_field(sites):
    with sites.connect() as client:
        answers = {name: client.ask("/who", host=name).body.decode() for name in FOUND}
    assert answers == FOUND


def test_by_absolute_target(sites):
    """The authority of the target wins, whatever Host says (RFC 9112 section 3.2.2)."""
    with sites.connect() as client:
        for name, host in FOUND.items():
            if name:
                answer = client.ask(f"http://{name}/who", host="a.deep.example.org")
                assert (name, answer.status, answer.body) == (name, 200, host.encode())


def test_one_connection_meets_many_hosts(sites):
    names = ["example.org", "a.example.org", "a.deep.example.org", "[::1]", "other"] * 4
    with sites.connect() as client:
        client.send(b"".join(request("/who", host=name) for name in names))
        assert [client.response().body.decode() for _ in names] == [FOUND.get(name, "default") for name in names]


def test_old_clients_meet_the_default(sites):
    assert sites.talk(lines("GET /who HTTP/1.0"))[0].body == b"default"
    assert sites.talk(lines("GET /who HTTP/1.0", "Host: www.example.org"))[0].body == b"exact"


def test_files_of_another_host_are_not_there(sites):
    (sites.conf.parent.parent / "roots" / "exact" / "only.txt").write_bytes(b"here")
    with sites.connect() as client:
        assert client.ask("/only.txt", host="example.org").status == 200
        assert client.ask("/only.txt", host="a.example.org").status == 404
        assert client.ask("/../exact/only.txt", host="a.example.org").status == 404


# ── what is wrong ──

WRONG = {
    # ServerName of sites/b, the column, words of the message
    "star inside": ("www.*.org", 16, "first label"),
    "star within a label": ("ok w*.example.org", 19, "first label"),
    "star alone": ("*", 16, "first label"),
    "empty label": ("ok ok2 example..org", 23, "two dots"),
    "leading dot": (".example.org", 16, "all names below a domain"),
    "port": ("example.org:80", 16, "no port"),
    "port behind an address": ("[::1]:80", 16, "without a port"),
    "address without brackets": ("::1", 16, "brackets"),
    "slash": ("example.org/", 16, "a name has no slash"),
    "beyond ASCII": ("bücher.example", 16, "xn--"),
    "too long": ("a" * 254, 16, "253 bytes"),
}


def check(tmp_path, sites):
    conf = write_config(tmp_path / "conf", tmp_path, files=write_sites(tmp_path, sites))
    return conf, run("-c", conf, "-t")


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_malformed_name(tmp_path, case):
    names, column, words = WRONG[case]
    conf, result = check(tmp_path, {"a": "a.example", "b": names})
    assert result.returncode == 1
    row = next(row for row in result.stderr.splitlines() if "error:" in row)
    assert row.startswith(f"{conf}/sites/b:2:{column}: error: ServerName "), result.stderr
    assert words in row


@pytest.mark.parametrize(
    "names", ["b.example twin.example", "TWIN.Example.", "*.Twin.example", "[0::0:1]", "localhost"], ids=str
)
def test_two_hosts_with_one_name(tmp_path, names):
    """Both places are named; what differs in spelling only is the same."""
    sites = {"a": "a.example twin.example *.twin.example [::1]", "z": names}
    conf, result = check(tmp_path, sites)
    assert result.returncode == 1
    second = names.split()[-1]
    column, first = 16 + names.index(second), "default" if second == "localhost" else "a"
    expected = f'{conf}/sites/z:2:{column}: error: ServerName "{second}" is in {conf}/sites/{first}:2 already'
    assert expected in result.stderr.splitlines(), result.stderr


def test_one_host_with_a_name_twice(tmp_path):
    conf, result = check(tmp_path, {"a": "a.example A.example."})
    assert result.returncode == 1
    assert f'{conf}/sites/a:2:26: error: ServerName "A.example." is in {conf}/sites/a:2 already' in result.stderr


def test_unreachable_host(tmp_path):
    """A warning, with its file; the default host needs no name."""
    conf = write_config(tmp_path / "conf", tmp_path)
    (conf / "sites" / "other").write_text(f"[HOST]\n    DocumentRoot {tmp_path}\n")
    (conf / "sites" / "default").write_text(f"[HOST]\n    DocumentRoot {tmp_path}\n")
    result = run("-c", conf, "-t")
    assert result.returncode == 0
    assert f"{conf}/sites/other:1:1: warning: no request can reach this host" in result.stderr
    assert result.stderr.count("warning:") == 1, result.stderr


def test_all_wrong_names_are_reported_at_once(tmp_path):
    _, result = check(tmp_path, {"a": "a.example b..example", "b": "a.example *x", "c": "c:1"})
    assert result.returncode == 1
    assert result.stderr.count("error: ServerName") == 4, result.stderr


# ── many ──


def start_with_sites(serve, roots, count):
    return serve(config={
        f"sites/s{i:05}": f"[HOST]\n    ServerName host{i}.example *.w{i}.example\n    DocumentRoot {roots[i % 7]}\n"
        for i in range(count)
    }, start_seconds=600)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("count", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_sites(tmp_path, serve, count):
    """They load with work that grows with their number, not with its square, and all are found."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < count + 500:
        pytest.skip("each site keeps its document root open, and this system does not allow so many descriptors")
    roots = [populate(tmp_path / f"root{i}", {"who": str(i).encode()}) for i in range(7)]
    few = start_with_sites(serve, roots, count // 8).cpu_seconds()
    server = start_with_sites(serve, roots, count)
    with server.connect() as client:
        for i in (0, 1, count // 2 - 1, count - 1):
            assert client.ask("/who", host=f"Host{i}.example").body == str(i % 7).encode()
            assert client.ask("/who", host=f"a.b.w{i}.example").body == str(i % 7).encode()
        assert client.ask("/hello.txt", host=f"host{count}.example").status == 200
    assert server.cpu_seconds() < few * 24 + 0.5, "8 times as many cost 64 times as much if all are compared"
