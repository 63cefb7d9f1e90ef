# SPDX-License-Identifier: Apache-2.0
"""Hosts that begin within files: [HOST example.org] in monkey.conf, in what it includes, and in a file of sites/; and a
configuration that is one file."""

import re
import shutil
import signal

import pytest

from harness import build
from harness.certificates import Authority, TlsClient
from harness.content import populate
from harness.protocol import Client
from harness.recipes import needs_plugins
from harness.server import Server, free_port, run, write_config

SERVER = "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n"


@pytest.fixture
def roots(tmp_path):
    """Document roots; /who holds the name of each."""
    return {name: populate(tmp_path / "roots" / name, {"who": name.encode()}) for name in "abcd"}


@pytest.fixture
def one(tmp_path, roots):
    """Writes a configuration of one file, with {a} to {d} for the document roots: one(text, {other file: text})."""

    def write(text, files=None):
        folder = tmp_path / "one"
        for name, content in {"web.conf": SERVER + text, **(files or {})}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content.format(**roots))
        return folder / "web.conf"

    return write


@pytest.fixture
def start_one(one, request):
    def start(*args, **rest):
        server = Server(one(*args), **rest)
        request.addfinalizer(server.stop)
        return server

    return start


def who(server, *names):
    """Which document root answers for each name."""
    with server.connect() as client:
        return "".join(client.ask("/who", host=name).body.decode() for name in names)


# ── which host a line belongs to ──

HOSTS = (
    "[HOST example.org www.example.org]\n    DocumentRoot {a}\n    ServerName example.com\n"
    "[HOST *.example.net]\n    DocumentRoot {b}\n"
)


def test_names_add_up(start_one):
    server = start_one(HOSTS)
    assert who(server, "example.org", "www.example.org", "example.com", "x.example.net") == "aaab"


@needs_plugins("headers")
def test_sections_belong_to_the_host_above(start_one):
    """Those above the first host are of all hosts, after their own."""
    text = (
        "[HEADERS]\n    Set X-All 1\n"
        "[HOST a.test]\n    DocumentRoot {a}\n[HEADERS]\n    Set X-Own a\n"
        "[HOST b.test]\n    DocumentRoot {b}\n[HEADERS]\n    Set X-Own b\n"
        "[HOST c.test]\n    DocumentRoot {c}\n"
    )
    with start_one(text).connect() as client:
        for name, own in (("a", "a"), ("b", "b"), ("c", None)):
            answer = client.ask("/who", host=f"{name}.test")
            assert (answer["X-All"], answer["X-Own"]) == ("1", own)


INCLUDES = {
    "a file with hosts": ("@INCLUDE hosts\n", {"hosts": HOSTS}, "example.org x.example.net", "ab"),
    "several files": (
        "@INCLUDE more/*\n",
        {"more/1": "[HOST a.test]\n    DocumentRoot {a}\n", "more/2": "[HOST b.test]\n    DocumentRoot {b}\n"},
        "a.test b.test", "ab",
    ),
    "keys of the host that includes": (
        "[HOST a.test]\n@INCLUDE root\n[HOST b.test]\n    DocumentRoot {b}\n",
        {"root": "[HOST]\n    DocumentRoot {a}\n    ServerName more.test\n"},
        "a.test more.test b.test", "aab",
    ),
    "a host within a host": (
        "[HOST a.test]\n    DocumentRoot {a}\n@INCLUDE inner\n[ALIAS]\n    Match /x\n    To {a}\n"
        "[HOST c.test]\n    DocumentRoot {c}\n",
        {"inner": "[HOST b.test]\n    DocumentRoot {b}\n"},
        "a.test b.test c.test", "abc",
    ),
    "a variable": (
        "@SET name=a.test b.test\n[HOST ${{name}}]\n    DocumentRoot {a}\n[HOST]\n    DocumentRoot {b}\n", {},
        "a.test b.test c.test", "aab",
    ),
    "in quotes": ('[HOST "a.test" b.test ] # a comment\n    DocumentRoot {a}\n[HOST]\n    DocumentRoot {b}\n', {},
                  "a.test b.test c.test", "aab"),
    "in small letters": ("[host a.test]\n    DocumentRoot {a}\n[Host b.test]\n    DocumentRoot {b}\n", {},
                         "a.test b.test", "ab"),
}  # fmt: skip


@pytest.mark.parametrize("name", INCLUDES)
def test_where_a_host_begins(start_one, name):
    text, files, names, found = INCLUDES[name]
    assert who(start_one(text, files), *names.split()) == found


DEFAULTS = {
    "the one without a name": ("[HOST a.test]\n    DocumentRoot {a}\n[HOST]\n    DocumentRoot {b}\n", {}, "b"),
    "the first one": ("[HOST a.test]\n    DocumentRoot {a}\n[HOST b.test]\n    DocumentRoot {b}\n", {}, "a"),
    "sites/default": (
        "[HOST a.test]\n    DocumentRoot {a}\n",
        {"sites/default": "[HOST]\n    DocumentRoot {b}\n", "sites/a": "[HOST c.test]\n    DocumentRoot {c}\n"}, "b",
    ),
    "without sites/default": (
        "[HOST b.test]\n    DocumentRoot {b}\n", {"sites/a": "[HOST a.test]\n    DocumentRoot {a}\n"}, "b",
    ),
    "several in sites/default": (
        "[HOST d.test]\n    DocumentRoot {d}\n",
        {"sites/default": "[HOST c.test]\n    DocumentRoot {c}\n[HOST b.test]\n    DocumentRoot {b}\n"}, "c",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_host(tmp_path, serve, roots, name):
    """A folder with hosts in monkey.conf, with and without sites/."""
    text, files, found = DEFAULTS[name]
    folder = tmp_path / "conf"
    for file, content in {"monkey.conf": SERVER + text, **files}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content.format(**roots))
    server = Server("-c", folder)
    try:
        assert who(server, "nowhere.test") == found
        for letter, content in zip("ab", (text, "".join(files.values())), strict=True):
            if f"{letter}.test" in content:
                assert who(server, f"{letter}.test") == letter
    finally:
        server.stop()


def test_a_host_of_one_listener_is_not_the_default(start_one):
    bound = "    Listen 127.0.0.2:0\n[HOST]\n    Listener 127.0.0.2:0\n    DocumentRoot {c}\n"
    server = start_one(bound + "[HOST a.test]\n    DocumentRoot {a}\n", listeners=2)
    assert who(server, "x.test") == "a"


# ── one file ──


@pytest.mark.parametrize("args", [[], ["-c"]], ids=["alone", "-c"])
def test_only_that_file_is_read(one, args):
    """Neither sites/ nor files of plugins next to it; relative paths are relative to its folder."""
    file = one("[HOST]\n    DocumentRoot ../roots/a\n", {
        "sites/default": "[HOST]\n    DocumentRoot {b}\n", "monkey.conf": "nonsense", "plugins.load": "nonsense",
        "plugins/static/static.conf": "nonsense",
    })  # fmt: skip
    server = Server(*args, file)
    try:
        assert who(server, "x.test") == "a"
    finally:
        server.stop()


def test_reload(start_one, one):
    server = start_one(HOSTS)
    one(HOSTS.replace("{a}", "{c}") + "[HOST d.test]\n    DocumentRoot {d}\n")
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    assert who(server, "example.org", "x.example.net", "d.test") == "cbd"
    one("[HOST a.test]\n    Nonsense\n")
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration cannot be used, the old one stays")
    assert who(server, "example.org", "d.test") == "cd"


def test_file_in_the_working_folder(tmp_path, one, roots):
    more = {"more": "[HOST b.test]\n    DocumentRoot {b}\n"}
    file = one("[HOST]\n    DocumentRoot ../roots/a\n@INCLUDE more\n", more)
    server = Server(file.name, cwd=file.parent)
    try:
        assert who(server, "a.test", "b.test") == "ab"
    finally:
        server.stop()


@pytest.mark.parametrize("args", [[], ["-c"]], ids=["alone", "-c"])
def test_check_while_it_serves(one, tmp_path, args):
    """The port is its own, unless another file has it."""
    file = one(HOSTS)
    file.write_text(file.read_text().replace("127.0.0.1:0", f"127.0.0.1:{free_port()}"))
    shutil.copy(file, file.with_name("copy.conf"))
    server = Server(*args, file.name, cwd=file.parent)
    try:
        for name, cwd in ((file, "/"), (file.name, file.parent)):
            assert run("-t", "-c", name, cwd=cwd).stderr == "monkey: the configuration is fine\n"
        assert f"in use: the process {server.pid} (" in run("-t", "-c", file.with_name("copy.conf")).stderr
    finally:
        server.stop()


def test_show_config(one):
    """What is shown is a configuration of one file."""
    file = one(HOSTS)
    shown = run("-c", file, "--show-config")
    assert shown.returncode == 0, shown.stderr
    hosts = shown.stdout.split("[HOST]")[1:]
    rows = [re.findall(r"ServerName +(\S+)  # \S+web.conf:(\d+)", text) for text in hosts]
    assert rows == [[("example.org", "4"), ("www.example.org", "4"), ("example.com", "6")], [("*.example.net", "7")]]
    again = one("", {"again.conf": shown.stdout.replace("{", "{{").replace("}", "}}")}).with_name("again.conf")
    assert run("-t", "-c", again).stderr == "monkey: the configuration is fine\n"


@needs_plugins("mandril", "proxy", "tls")
def test_the_configuration_of_the_readme(tmp_path, one):
    text = re.search(r"```\n(\[SERVER\].*?)```", (build.TOP / "README.md").read_text(), re.S)[1]
    ca = Authority(tmp_path / "ca")
    pair = ca.make("example.org", "example.org")
    for old, new in (
        ("Listen              80", "Listen 127.0.0.1:0"), ("Listen              443 tls", "Listen 127.0.0.2:0 tls"),
        ("/srv/www", "{a}"), ("/etc/ssl/example.org.pem", str(pair.cert)),
        ("/etc/ssl/private/example.org.key", str(pair.key)), ("http://127.0.0.1:3000", "http://127.0.0.1:1"),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    file = one("")
    file.write_text(text.replace("{a}", str(tmp_path / "roots" / "a")))
    server = Server(file, listeners=2)
    try:
        with Client(server.addresses[0]) as client:
            answer = client.ask("/who", host="www.example.org")
            assert (answer.status, answer["Location"].split(":")[0]) == (301, "https")
        with TlsClient(server.addresses[1], ca.context(), name="example.org") as client:
            statuses = {client.ask("/api/x", host="example.org").status for _ in range(40)}
        assert statuses == {502, 429}
    finally:
        server.stop()


# ── mistakes ──

NO_NAME = (
    "no request can reach this host: it has no name, and the host in {}web.conf:4 answers for names that no other host "
    "has: write [HOST example.org]"
)
MISTAKES = {
    "a name twice": (
        "[HOST a.test]\n    DocumentRoot {a}\n[HOST b.test a.test]\n    DocumentRoot {b}\n",
        6, 14, 'ServerName "a.test" is in {}web.conf:4 already',
    ),
    "a name twice in one host": (
        "[HOST a.test]\n    DocumentRoot {a}\n    ServerName b.test a.test\n",
        6, 23, 'ServerName "a.test" is in {}web.conf:4 already',
    ),
    "two without names": (
        "[HOST]\n    DocumentRoot {a}\n[HOST]\n    DocumentRoot {b}\n", 6, 1, NO_NAME,
    ),
    "a section of the server": (
        "[HOST a.test]\n    DocumentRoot {a}\n[SERVER]\n    Workers 1\n",
        6, 1, "[SERVER] is of the server: write it in monkey.conf, above the first [HOST]",
    ),
    "no host": ("", 0, 0, "there is no host: it begins with [HOST example.org], or [HOST] for all names"),
    "a name that is none": (
        "[HOST a.test http://b.test]\n    DocumentRoot {a}\n", 4, 14, 'ServerName "http://b.test": ',
    ),
    "a variable that is not set": (
        "[HOST ${{nothing}}]\n    DocumentRoot {a}\n", 4, 7, "${{nothing}} is neither set with @SET",
    ),
    "a quote that is not closed": ('[HOST "a.test]\n    DocumentRoot {a}\n', 4, 7, "this quote is never closed"),
    "names of a section that has none": (
        "[HOST a.test]\n    DocumentRoot {a}\n[ALIAS b.test]\n    /a {a}\n",
        6, 1, "unknown section [ALIAS b.test]; did you mean [ALIAS]?",
    ),
    "a key that is set twice": (
        "[HOST a.test]\n    DocumentRoot {a}\n    DocumentRoot {b}\n",
        6, 5, '"DocumentRoot" is set twice; the first time in line 5',
    ),
    "no folder of files": ("[HOST a.test]\n[HOST b.test]\n    DocumentRoot {b}\n", 4, 1, '[HOST] lacks "DocumentRoot"'),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(one, roots, name):
    text, line, col, words = MISTAKES[name]
    file = one(text)
    result = run("-t", "-c", file)
    assert result.returncode == 1
    place = f"{file}:{line}:{col}: error: " if line else f"{file}: error: "
    assert result.stderr.startswith(place + words.format(f"{file.parent}/")), result.stderr
    assert result.stderr.count(" error: ") == 1, result.stderr


def test_a_name_in_both_forms(tmp_path, site_root):
    """In monkey.conf and in sites/: both lines are named."""
    files = {"monkey.conf": f"{SERVER}[HOST localhost]\n    DocumentRoot {site_root}\n"}
    folder = write_config(tmp_path / "conf", site_root, files=files)
    result = run("-t", "-c", folder)
    assert result.returncode == 1
    words = f'sites/default:2:16: error: ServerName "localhost" is in {folder}/monkey.conf:4 already'
    assert words in result.stderr, result.stderr


def test_a_host_without_a_name_next_to_sites_default(tmp_path, site_root):
    files = {"monkey.conf": f"{SERVER}[HOST]\n    DocumentRoot {site_root}\n"}
    folder = write_config(tmp_path / "conf", site_root, files=files)
    result = run("-t", "-c", folder)
    assert result.returncode == 1
    assert f"monkey.conf:4:1: error: {NO_NAME.format(f'{folder}/sites/default:1 ')[:40]}" in result.stderr
    assert f"the host in {folder}/sites/default:1 answers" in result.stderr


def test_neither_form(tmp_path):
    """A folder without any host."""
    (tmp_path / "sites").mkdir()
    (tmp_path / "monkey.conf").write_text(SERVER)
    result = run("-t", "-c", tmp_path)
    assert result.returncode == 1
    assert "sites/default is missing: it answers for every name that no other host has; a section [HOST] in " in (
        result.stderr
    )


def test_a_file_called_monkey_conf(one, tmp_path):
    """Without sites/ next to it, it is a configuration as any other."""
    other = one(HOSTS).rename(tmp_path / "monkey.conf")
    assert run("-t", "-c", other).returncode == 0
    (tmp_path / "sites").mkdir()
    result = run("-t", "-c", other)
    assert result.returncode == 2 and f"is a file; write -c {tmp_path}/" in result.stderr


def test_two_configurations(tmp_path, one):
    file = one(HOSTS)
    result = run("-c", tmp_path, file)
    assert result.returncode == 2 and "monkey: " in result.stderr


# ── a directory as one file ──


@needs_plugins("auth", "logger", "proxy", "respond", "tls")
def test_a_directory_as_one_file(tmp_path, roots):
    """Variables and includes are resolved, and paths are those of the files that had them."""
    pair = Authority(tmp_path / "ca").make("example.org", "example.org")
    conf = tmp_path / "conf"
    populate(conf, {"pages/a page.txt": b"fixed", "users": b"", "sites/default": b""})
    (conf / "users").chmod(0o600)
    site = (
        f"@SET root={roots['a']}\n@INCLUDE ../more.inc\n"
        "[HOST]\n    ServerName example.org\n    DocumentRoot ${root}\n    Proxy /api http://127.0.0.1:1\n"
        "    Login /private ../users\n"
        f"[TLS]\n    Certificate ../../ca/{pair.cert.name}\n    CertificateKey ../../ca/{pair.key.name}\n"
        '[RESPOND]\n    Match /fixed\n    File "../pages/a page.txt"\n    Header X-Text "a, b"\n'
    )
    (conf / "sites/default").write_text(site)
    (conf / "more.inc").write_text("[LOGGER]\n    AccessLog ../access.log\n")
    server = "[SERVER]\n    Listen 127.0.0.1:0\n    Listen 127.0.0.2:0 tls\n    PidFile here.pid\n"
    (conf / "monkey.conf").write_text(server)
    (conf / "plugins.load").write_text("[PLUGINS]\n    Load liana tls auth respond proxy static logger\n")
    made = run("-c", conf, "--one-file")
    assert (made.returncode, made.stderr) == (
        0,
        "monkey: plugins.load has no place in one file: a plugin is loaded for its sections\n",
    )
    lines = [line.split("#")[0].split() for line in made.stdout.splitlines()]
    for line in (
        f"PidFile {conf}/here.pid", f"DocumentRoot {roots['a']}", f"AccessLog {conf}/sites/../../access.log",
        f"Users {conf}/sites/../users", f"Certificate {conf}/sites/../../ca/{pair.cert.name}",
        f'File "{conf}/sites/../pages/a page.txt"', 'Header X-Text "a, b"', "Match /api", "To http://127.0.0.1:1",
    ):  # fmt: skip
        assert line.split() in lines, made.stdout
    file = tmp_path / "elsewhere.conf"
    file.write_text(made.stdout)
    server = Server(file, listeners=2)
    try:
        with Client(server.addresses[0]) as client:
            assert client.ask("/fixed").body == b"fixed" and client.ask("/who").body == b"a"
            assert client.ask("/private/x").status == 401 and client.ask("/api").status == 502
    finally:
        server.stop()


def test_one_file_of_what_is_wrong(one):
    """The mistakes are reported, and nothing is printed."""
    made = run(one("[HOST a]\n    Nonsense 1\n"), "--one-file")
    assert made.returncode == 1 and made.stdout == "" and "web.conf:5:5: error: unknown key" in made.stderr


WORDS = {  # behind -t, and what is said
    "none.conf": "monkey: none.conf: No such file or directory\n",
    "folder": "monkey: folder is a directory: write -c folder\n",
    "/dev/null": "monkey: /dev/null is not a regular file\n",
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_is_no_file(tmp_path, word):
    (tmp_path / "folder").mkdir()
    checked = run("-t", word, cwd=tmp_path)
    assert (checked.returncode, checked.stderr) == (2, WORDS[word])


def test_two_files(one):
    file = one("[HOST a]\n")
    checked = run("-t", file, file)
    sentence = f'monkey: there is one configuration, {file}: "{file}" is too much\n'
    assert (checked.returncode, checked.stderr) == (2, sentence)
