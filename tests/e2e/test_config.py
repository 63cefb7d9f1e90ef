# SPDX-License-Identifier: Apache-2.0
"""The configuration as an operator meets it: what is understood, and what is said about what is not."""

import os
import pathlib
import re
import shutil
import tempfile

import pytest

from harness import build
from harness.server import await_true, run, write_config

PLACE = re.compile(r"^(?P<file>\S+):(?P<line>\d+):(?P<col>\d+): (?P<text>.*)$", re.M)


@pytest.fixture
def folder(tmp_path, site_root):
    """Writes a configuration of which monkey.conf is given whole."""

    def write(text="[SERVER]\n    Listen 127.0.0.1:0\n", **files):
        write_config(
            tmp_path / "conf",
            site_root,
            files={"monkey.conf": text, **{k.replace("__", "/"): v for k, v in files.items()}},
        )
        return tmp_path / "conf"

    return write


def check(conf, **rest):
    return run("-c", conf, "-t", **rest)


def problems(result):
    return [
        (os.path.basename(m["file"]), int(m["line"]), int(m["col"]), m["text"]) for m in PLACE.finditer(result.stderr)
    ]


def effective(conf, *args, **rest):
    """The rows of --show-config: key to (value, origin)."""
    result = run("-c", conf, *args, "--show-config", **rest)
    assert result.returncode == 0, result.stderr
    rows = {}
    for row in result.stdout.splitlines():
        if found := re.match(r"\s+(\w+)\s+(.*?)(?:\s+#\s*(.*))?$", row):
            rows.setdefault(found[1], (found[2], found[3]))
    return rows


# ── what is wrong, and where ──

WRONG = {
    # text after the section line, line, column of the key or value, words that the message must have
    "unknown key": ("    Listen 127.0.0.1:0\n    Workerz 1\n", 3, 5, ["Workerz", "Workers"]),
    "unknown key, nothing near": ("    Flurblewitz 1\n", 2, 5, ["Flurblewitz"]),
    "key twice": ("    Workers 1\n    Workers 2\n", 3, 5, ["Workers"]),
    "boolean": ("    KeepAlive maybe\n", 2, 15, ["On", "Off"]),
    "number": ("    Workers many\n", 2, 13, ["many"]),
    "negative number": ("    Workers -1\n", 2, 13, ["-1"]),
    "duration": ("    Timeout soon\n", 2, 13, ["soon"]),
    "duration with an unknown unit": ("    Timeout 10parsecs\n", 2, 13, ["10parsecs"]),
    "size": ("    MaxHeadSize huge\n", 2, 17, ["huge"]),
    "size overflow": ("    MaxBodySize 99999999999999999999G\n", 2, 17, []),
    "choice": ("    LogLevel loud\n", 2, 14, ["error", "warn", "info", "debug"]),
    "choice of a plugin": ("    SymLink Maybe\n", 2, 13, ["Off", "Inside", "On"]),
    "value missing": ("    Workers\n", 2, None, ["Workers"]),
    "a word too many": ("    Workers 1 2\n", 2, 15, []),
    "port too large": ("    Listen 99999\n", 2, 12, ["99999"]),
    "port is a word": ("    Listen 127.0.0.1:http\n", 2, 12, ["http"]),
    "address": ("    Listen 300.1.2.3:80\n", 2, 12, ["300.1.2.3"]),
    "address of version 6": ("    Listen [::g]:80\n", 2, 12, []),
    "indentation": ("    Workers 1\n      Timeout 5\n", 3, None, []),
    "indentation by tab": ("    Workers 1\n\tTimeout 5\n", 3, None, []),
    "key without indentation": ("    Workers 1\nTimeout 5\n", 3, 1, []),
    "unknown section": ("    Workers 1\n[SERVR]\n    Workers 1\n", 3, None, ["SERVR", "SERVER"]),
    "section not closed": ("    Workers 1\n[HOST\n", 3, None, []),
    "unknown directive": ("    Workers 1\n@INCLUD x\n", 3, None, []),
    "include missing": ("    Workers 1\n@INCLUDE nowhere.conf\n", 3, None, ["nowhere.conf"]),
    "undefined variable": ("    ErrorLog ${NOT_DEFINED_ANYWHERE}\n", 2, 14, ["NOT_DEFINED_ANYWHERE"]),
    "variable not closed": ("    ErrorLog ${HOME\n", 2, None, []),
    "quote not closed": ('    ErrorLog "abc\n', 2, None, []),
    "control byte": ("    Workers 1\x01\n", 2, None, []),
    "line too long": ("    Indexfile " + "i" * 5000 + "\n", 2, None, []),
    "unknown transport": ("    TransportLayer carrier-pigeon\n", 2, None, ["carrier-pigeon"]),
}


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_wrong(folder, case):
    text, line, column, words = WRONG[case]
    result = check(folder("[SERVER]\n" + text))
    assert result.returncode == 1, result.stderr
    found = [p for p in problems(result) if p[0] == "monkey.conf" and p[1] == line]
    assert found, result.stderr
    if column:
        assert column in [p[2] for p in found], result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_wrong_does_not_start(folder, case):
    """Without -t the same sentences, the same exit code, and no server."""
    conf = folder("[SERVER]\n" + WRONG[case][0])
    result = run("-c", conf)
    assert result.returncode == 1
    assert problems(result)[:1] == problems(check(conf))[:1]


def test_caret_points_at_the_place(folder):
    result = check(folder("[SERVER]\n    Listen 127.0.0.1:0\n    Workers  many\n"))
    rows = result.stderr.splitlines()
    source = next(i for i, row in enumerate(rows) if "Workers  many" in row and ":3:" not in row)
    assert rows[source + 1].index("^") == rows[source].index("many")


def test_caret_below_tabs(folder):
    """A tab before the place does not move the caret."""
    result = check(folder("[SERVER]\n\tListen 127.0.0.1:0\n\tWorkers\tmany\n"))
    rows = result.stderr.splitlines()
    source = next(i for i, row in enumerate(rows) if "many" in row and ":3:" not in row)
    assert rows[source + 1].expandtabs().index("^") == rows[source].expandtabs().index("many")


def test_all_errors_at_once(folder):
    result = check(
        folder(
            "[SERVER]\n    Workerz 1\n    Timeout soon\n    KeepAlive perhaps\n    Listen 1:2:3\n[NOSUCH]\n    A b\n",
            sites__default="[HOST]\n    ServerNam localhost\n    DocumentRoot /nonexistent\n",
        )
    )
    assert result.returncode == 1
    places = {(file, line) for file, line, *_ in problems(result)}
    assert {
        ("monkey.conf", 2),
        ("monkey.conf", 3),
        ("monkey.conf", 4),
        ("monkey.conf", 5),
        ("monkey.conf", 6),
        ("default", 2),
    } <= places


def test_did_you_mean(folder):
    for wrong, right in {
        "Lisen": "Listen",
        "keepalivetimout": "KeepAliveTimeout",
        "MaxHeadsize_": "MaxHeadSize",
        "Symlinks": "SymLink",
    }.items():
        result = check(folder(f"[SERVER]\n    {wrong} 1\n"))
        assert right in result.stderr, result.stderr


def test_keys_in_any_case(folder):
    rows = effective(
        folder("[server]\n    LISTEN 127.0.0.1:0\n    keepalivetimeout 7s\n    SymLink off\n    KeepAlive ON\n")
    )
    assert rows["KeepAliveTimeout"][0] == "7s"


def test_values_out_of_range(folder):
    for row in ("Workers 100000", "MaxHeaders 0", "Timeout 0", "MaxHeadSize 1", "Backlog -5", "MaxRequestLine 1"):
        result = check(folder(f"[SERVER]\n    {row}\n"))
        assert result.returncode == 1, row
        assert problems(result)[0][1] == 2, result.stderr


def test_terminal_escapes_are_not_passed_on(folder):
    result = check(folder("[SERVER]\n    Work\x1b[31merz 1\n"))
    assert result.returncode == 1
    assert "\x1b" not in result.stderr


# ── files ──


def test_missing_folder(tmp_path):
    result = check(tmp_path / "nowhere")
    assert result.returncode == 1
    assert str(tmp_path / "nowhere") in result.stderr


def test_missing_default_site(folder):
    conf = folder()
    (conf / "sites" / "default").unlink()
    result = check(conf)
    assert result.returncode == 1
    assert "sites" in result.stderr


def test_missing_document_root(folder):
    result = check(folder(sites__default="[HOST]\n    ServerName localhost\n    DocumentRoot /nonexistent/root\n"))
    assert result.returncode == 1
    assert problems(result)[0][:2] == ("default", 3)
    assert "/nonexistent/root" in result.stderr


def test_document_root_that_is_a_file(folder, tmp_path):
    (tmp_path / "file").write_text("x")
    result = check(folder(sites__default=f"[HOST]\n    DocumentRoot {tmp_path / 'file'}\n"))
    assert result.returncode == 1 and problems(result)[0][:2] == ("default", 2)


def test_no_document_root(folder):
    result = check(folder(sites__default="[HOST]\n    ServerName localhost\n"))
    assert result.returncode == 1 and "DocumentRoot" in result.stderr


def test_listener_is_tried(folder, site):
    """-t says that a port is taken, here by a Unix socket's path that cannot be and by a foreign address."""
    result = check(folder("[SERVER]\n    Listen unix:/nonexistent/dir/socket\n"))
    assert result.returncode in (1, 3) and "/nonexistent/dir/socket" in result.stderr
    result = check(folder("[SERVER]\n    Listen 192.0.2.1:0\n"))
    assert result.returncode in (1, 3) and "192.0.2.1" in result.stderr


def test_good_says_so(folder):
    result = check(folder())
    assert result.returncode == 0, result.stderr


def test_configuration_of_the_distribution():
    """What is shipped is right."""
    result = check(build.TOP / "dist" / "conf")
    assert result.returncode == 0, result.stderr
    assert not problems(result)


SECTIONS = {
    "sites/default": [
        "[PROXY]\n    Match /app\n    To http://127.0.0.1:8080\n",
        "[HEADERS]\n    Set X-A b\n",
        "[COMPRESS]\n",
        "[REDIRECT]\n    Match /old\n    To /new\n",
        "[LOGGER]\n    AccessLog ../access.log\n",
        "[MAINTENANCE]\n    FlagFile /run/closed\n",
        "[DIRLISTING]\n    Match /files\n",
    ],
    "monkey.conf": ["[STATUS]\n    Enabled On\n", "[HEALTH]\n    LivenessPath /live\n"],
}


@pytest.mark.skipif(build.PRESET == "small", reason="it has none of these plugins")
def test_sections_in_the_configuration_of_the_distribution(tmp_path):
    """They work without a further file, and the cache of files stays."""
    shutil.copytree(build.TOP / "dist" / "conf", tmp_path / "conf")
    shutil.copytree(build.TOP / "dist" / "htdocs", tmp_path / "htdocs")
    assert not (tmp_path / "conf" / "plugins.load").exists()
    for file, texts in SECTIONS.items():
        with (tmp_path / "conf" / file).open("a") as out:
            out.write("\n" + "\n".join(texts))
    result = run("-c", tmp_path / "conf", "-t")
    assert result.returncode == 0 and not problems(result), result.stderr
    shown = run("-c", tmp_path / "conf", "--show-config").stdout
    assert "[CACHE]" in shown


def test_include(folder):
    conf = folder(
        "[SERVER]\n    Listen 127.0.0.1:0\n@INCLUDE parts/*.conf\n",
        **{
            "parts__1.conf": "[SERVER]\n    KeepAliveTimeout 3s\n",
            "parts__2.conf": "[SERVER]\n  MaxKeepAliveRequest 7\n",
        },
    )
    rows = effective(conf)
    assert rows["KeepAliveTimeout"][0] == "3s" and rows["MaxKeepAliveRequest"][0] == "7"
    assert "1.conf:2" in rows["KeepAliveTimeout"][1] and "2.conf:2" in rows["MaxKeepAliveRequest"][1]


@pytest.mark.parametrize("name", ["[a]", "*", "?", "a\\b", "[", "\\[a]"])
def test_a_folder_that_looks_like_a_pattern(tmp_path, site_root, name):
    """Its files are read: the hosts, what they include, and the plugins that their keys need."""
    files = {
        "sites/other": f"[HOST]\n    ServerName other\n    DocumentRoot {site_root}\n@INCLUDE ../parts/*.conf\n",
        "parts/1.conf": "[CORS]\n    Match /a\n    Origins https://a.example\n",
        "parts/2.conf": "[CORS]\n    Origins https://a.example\n    Nonsense On\n",
    }
    for other in ("a", "b"):  # that the pattern would match
        (tmp_path / other).mkdir()
    result = check(write_config(tmp_path / name, site_root, files=files))
    assert result.returncode == 1 and [row[:2] for row in problems(result)] == [("2.conf", 3)], result.stderr


def test_include_shows_its_chain(folder):
    result = check(
        folder(
            "[SERVER]\n    Listen 127.0.0.1:0\n@INCLUDE part.conf\n", **{"part.conf": "[SERVER]\n    Nonsens 3s\n"}
        )
    )
    assert result.returncode == 1
    assert problems(result)[0][:2] == ("part.conf", 2)
    assert re.search(r"monkey\.conf:3", result.stderr)


def test_include_of_itself_ends(folder):
    result = check(folder("[SERVER]\n    Listen 127.0.0.1:0\n@INCLUDE monkey.conf\n"))
    assert result.returncode == 1
    assert problems(result)


def multiplying_includes(folder):
    parts = {f"part{n}": f"@INCLUDE part{n + 1}\n" * 8 for n in range(12)}
    return folder("[SERVER]\n    Listen 127.0.0.1:0\n@INCLUDE part0\n", **parts)


def sites_that_include_all(folder):
    sites = {f"sites__{n}": "@INCLUDE ../sites/*\n@INCLUDE ../sites/*\n" for n in range(9)}
    return folder("[SERVER]\n    Listen 127.0.0.1:0\n", **sites)


@pytest.mark.parametrize("options", [[], ["-t"], ["-t", "--json"]], ids=["start", "check", "json"])
@pytest.mark.parametrize("make", [multiplying_includes, sites_that_include_all])
def test_includes_that_multiply(folder, make, options):
    """The first that has no end is named, and no file is included behind it."""
    text = "files are included more than 10 deep"
    result = run("-c", make(folder), *options)
    output = result.stderr + result.stdout
    assert result.returncode in (1, 3) and text in output and "out of memory" not in output, output[-1000:]
    assert output.count(text) == 1


def test_include_glob_without_match(folder):
    """A glob may match nothing: an empty folder of snippets is no mistake."""
    assert check(folder("[SERVER]\n    Listen 127.0.0.1:0\n@INCLUDE parts/*.conf\n")).returncode == 0


def test_variables(folder, site_root):
    conf = folder(
        "@SET time=4s\n[SERVER]\n    Listen 127.0.0.1:0\n    KeepAliveTimeout ${time}\n",
        sites__default=f"@SET top={site_root.parent}\n[HOST]\n    DocumentRoot ${{top}}/{site_root.name}\n",
    )
    rows = effective(conf)
    assert rows["KeepAliveTimeout"][0] == "4s"
    assert rows["DocumentRoot"][0] == str(site_root)


def test_environment(folder):
    conf = folder(
        "[SERVER]\n    Listen 127.0.0.1:${TEST_PORT:-0}\n    KeepAliveTimeout ${TEST_TIME:-9s}\n"
        "    Workers ${TEST_WORKERS}\n"
    )
    env = build.environment() | {"TEST_WORKERS": "2"}
    rows = effective(conf, env=env)
    assert rows["KeepAliveTimeout"][0] == "9s" and rows["Workers"][0] == "2"
    rows = effective(conf, env=env | {"TEST_TIME": "8s"})
    assert rows["KeepAliveTimeout"][0] == "8s"
    assert check(conf).returncode == 1


def test_variable_is_not_syntax(folder):
    """What a variable brings is a value, whatever is in it."""
    conf = folder("[SERVER]\n    Listen 127.0.0.1:0\n    KeepAliveTimeout ${EVIL}\n")
    result = check(conf, env=build.environment() | {"EVIL": "5s\n    Workers 3\n[HOST]"})
    assert result.returncode == 1


UNITS = {
    "KeepAliveTimeout": {"5": "5s", "500ms": "500ms", "2m": "2m", "1h": "1h", "90s": "90s"},
    "MaxHeadSize": {"16384": "16K", "16K": "16K", "32K": "32K", "20000B": "20000B"},
}


@pytest.mark.parametrize("key, value", [(k, v) for k, values in UNITS.items() for v in values])
def test_units(folder, key, value):
    shown = effective(folder(f"[SERVER]\n    Listen 127.0.0.1:0\n    {key} {value}\n"))[key][0]
    assert amount(shown) == amount(value), shown


def amount(text):
    number, unit = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text).groups()
    return (
        int(number)
        * {
            "": 1,
            "ms": 0.001,
            "s": 1,
            "m": 60,
            "h": 3600,
            "d": 86_400,
            "B": 1,
            "K": 1024,
            "M": 1 << 20,
            "G": 1 << 30,
        }[unit]
    )


def test_max_request_size_counts_in_kb(folder):
    """The one bare number that is not bytes: the directive is older than units."""
    assert (
        amount(effective(folder("[SERVER]\n    Listen 127.0.0.1:0\n    MaxRequestSize 32\n"))["MaxRequestSize"][0])
        == 32 * 1024
    )


def test_comments_blank_lines_and_line_ends(folder):
    text = "\ufeff# first\r\n\r\n[SERVER] # second\r\n    # third\r\n\r\n"
    text += "    Listen 127.0.0.1:0   # fourth\r\n    KeepAliveTimeout 6s\r\n"
    assert effective(folder(text))["KeepAliveTimeout"][0] == "6s"


# ── plugins ──


def test_section_of_a_plugin_that_is_not_loaded(folder):
    """A key of the plugin `static`, but only liana is loaded: the message names the plugin."""
    result = check(
        folder(
            "[SERVER]\n    Listen 127.0.0.1:0\n    SymLink On\n", **{"plugins.load": "[PLUGINS]\n    Load liana\n"}
        )
    )
    assert result.returncode == 1
    assert problems(result)[0][:2] == ("monkey.conf", 3)
    assert "static" in result.stderr


def test_unknown_plugin(folder):
    result = check(folder(**{"plugins.load": "[PLUGINS]\n    Load liana\n    Load statik\n"}))
    assert result.returncode == 1
    assert problems(result)[0][:2] == ("plugins.load", 3)
    assert "statik" in result.stderr and "static" in result.stderr.replace("statik", "")


def test_plugin_twice(folder):
    result = check(folder(**{"plugins.load": "[PLUGINS]\n    Load liana\n    Load static\n    Load static\n"}))
    assert result.returncode == 1 and "static" in result.stderr


def test_no_transport(folder):
    result = check(folder(**{"plugins.load": "[PLUGINS]\n    Load static\n"}))
    assert result.returncode in (1, 3) and "liana" in result.stderr


def test_error_in_the_file_of_a_plugin(folder):
    result = check(folder(**{"plugins/static/static.conf": "[SERVER]\n    Nonsens On\n"}))
    assert result.returncode == 1
    assert ("static.conf", 2) in [p[:2] for p in problems(result)]


def test_plugin_without_content(serve):
    """Without the plugin static no plugin answers: 404, and the server continues."""
    server = serve(
        config={"plugins.load": "[PLUGINS]\n    Load liana\n", "sites/default": "[HOST]\n    ServerName localhost\n"}
    )
    client = server.connect()
    assert client.ask("/hello.txt").status == 404
    assert client.ask("/hello.txt", method="POST", body=b"x").status in (404, 405)


# ── what it shows ──


def test_show_config_can_be_read_again(folder, tmp_path, site_root):
    conf = folder(
        "@SET t=7s\n[SERVER]\n    Listen 127.0.0.1:0\n    Listen [::1]:0\n    KeepAliveTimeout ${t}\n"
        "    SymLink Inside\n    Indexfile a.html b.html\n"
    )
    first = run("-c", conf, "--show-config")
    assert first.returncode == 0
    server_part = "[SERVER]" + first.stdout.split("[SERVER]", 1)[1].split("\n[", 1)[0] + "\n"
    again = write_config(tmp_path / "again", site_root, files={"monkey.conf": server_part})
    assert check(again).returncode == 0, check(again).stderr
    values = {key: value for key, (value, _) in effective(again).items()}
    assert values == {key: value for key, (value, _) in effective(conf).items()}


def test_show_config_says_where_from(folder):
    conf = folder("[SERVER]\n    Listen 127.0.0.1:0\n    Timeout 11s\n")
    rows = effective(conf, "-w", "3")
    assert "monkey.conf:3" in rows["Timeout"][1]
    assert "default" in rows["KeepAliveTimeout"][1]
    assert rows["Workers"][0] == "3" and "--workers" in rows["Workers"][1]


def test_reference_is_the_documentation():
    result = run("--reference")
    assert result.returncode == 0
    assert result.stdout == (build.TOP / "docs" / "reference" / "configuration.md").read_text()


@pytest.mark.parametrize("name", ["[HOST]", "host", "LOGGER", "Server"])
def test_reference_of_a_section(name):
    """Each part of the manual with this heading, and nothing else."""
    result = run("--reference", name)
    parts = re.split(r"^(?=## )", run("--reference").stdout, flags=re.M)
    word = name.strip("[]").upper()
    expected = [part.rstrip("\n") for part in parts if part.startswith(f"## `[{word}]`")]
    assert len(expected) == (2 if word == "LOGGER" and build.PRESET != "small" else 1)
    assert result.returncode == 0 and result.stdout == "\n\n".join(expected) + "\n"


def test_reference_of_an_unknown_section():
    result = run("--reference=TLX")
    assert result.returncode == 2 and result.stdout == ""
    assert "TLX" in result.stderr and "SERVER" in result.stderr and "HOST" in result.stderr


HOSTS = {"sites/one": ("one.org", "*.one.org"), "sites/two": ("two.org",)}


@pytest.mark.parametrize(
    "host, file", [("one.org", "one"), ("www.ONE.org", "one"), ("two", "two"), ("default", "default"), (None, None)]
)
def test_show_config_of_a_host(tmp_path, site_root, host, file):
    files = {
        name: f"[HOST]\n    ServerName {' '.join(names)}\n    DocumentRoot {site_root}\n"
        for name, names in HOSTS.items()
    }
    conf = write_config(tmp_path / "conf", site_root, files=files)
    result = run("-c", conf, "--show-config", *([host] if host else []))
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("[SERVER]\n")
    shown = re.findall(r"^# .*/sites/(\w+)\n\[HOST\]$", result.stdout, re.M)
    assert shown == ([file] if file else ["default", "one", "two"])
    assert result.stdout.count("[HOST]") == len(shown)


def test_show_config_of_an_unknown_host(folder):
    result = run("-c", folder(), "--show-config", "nobody.org")
    assert result.returncode == 2 and result.stdout == "" and "nobody.org" in result.stderr


def test_reference_names_every_key(folder):
    text = run("--reference").stdout
    for key in effective(folder()):
        assert key in text


# ── that the values work ──


def test_relative_document_root(serve, tmp_path):
    """Relative to the file that says it, not to where the server was started."""
    conf = tmp_path / "server0" / "conf"
    (conf / "htdocs").mkdir(parents=True)
    (conf / "htdocs" / "a.txt").write_text("relative\n")
    server = serve(root="../htdocs", cwd="/")
    assert server.connect().ask("/a.txt").body == b"relative\n"


def test_log_level(serve, tmp_path):
    log = tmp_path / "error.log"
    server = serve({"ErrorLog": log, "LogLevel": "info"}, wait=False)
    await_true(lambda: log.exists() and "listening on" in log.read_text(), 30)
    assert server.log == ""
    server.stop()
    quiet = tmp_path / "quiet.log"
    socket_path = tmp_path / "s"
    server = serve({"Listen": f"unix:{socket_path}", "ErrorLog": quiet, "LogLevel": "error"}, wait=False)
    await_true(socket_path.exists, 30)
    server.names = [f"unix:{socket_path}"]
    await_true(lambda: answers(server), 30)
    server.baseline = server.descriptors()
    assert quiet.read_text() == ""


def answers(server):
    try:
        with server.connect() as client:
            return client.ask().status == 200
    except OSError:
        return False


def test_error_log_that_cannot_be_opened(folder):
    result = run("-c", folder("[SERVER]\n    Listen 127.0.0.1:0\n    ErrorLog /nonexistent/dir/error.log\n"))
    assert result.returncode in (1, 3)
    assert "/nonexistent/dir/error.log" in result.stderr


@pytest.mark.parametrize("key", ["FDT On", "UserDir public_html"])
def test_keys_of_the_original_server(folder, key):
    """The message names what there is instead."""
    result = run("-c", folder(f"[SERVER]\n    Listen 127.0.0.1:0\n    {key}\n"), "-t")
    assert result.returncode == 1
    assert f'3:5: error: "{key.split()[0]}" is not a key of [SERVER] here; ' in result.stderr


RENAMED = [
    ("SERVER", "ClientFrom", "RealIPHeader"),
    ("SERVER", "StopDelay", "ShutdownDelay"),
    ("SERVER", "DrainTimeout", "ShutdownTimeout"),
    ("SERVER", "MaxDrainSize", "MaxDiscardSize"),
    ("SERVER", "BodyMinRate", "MinBodyRate"),
    ("HTTP2", "MaxStreams", "MaxConcurrentStreams"),
    ("HTTP2", "MaxFaults", "MaxStreamErrors"),
    ("HTTP2", "MaxSmallUpdates", "MaxWindowUpdates"),
    ("HEALTH", "Live", "LivenessPath"),
    ("HEALTH", "Ready", "ReadinessPath"),
    ("HOST", "MaxDrainSize", "MaxDiscardSize"),
    ("HOST", "BodyMinRate", "MinBodyRate"),
    ("MAINTENANCE", "File", "FlagFile"),
]


@pytest.mark.parametrize("name, old, new", RENAMED)
def test_renamed_keys(tmp_path, site_root, name, old, new):
    path, first, line = "monkey.conf", "SERVER", "Listen 127.0.0.1:0"
    if name in ("HOST", "MAINTENANCE"):
        path, first, line = "sites/default", "HOST", f"DocumentRoot {site_root}"
    text = f"[{first}]\n    {line}\n" + ("" if name == first else f"[{name}]\n") + f"    {old} 1\n"
    result = run("-c", write_config(tmp_path / "conf", site_root, files={path: text}), "-t")
    assert result.returncode == 1
    assert f'"{old}" is not a key of [{name}] here; it is called {new}' in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_sites_that_cannot_be_listed():
    """The default host can be read, but the other hosts cannot be listed."""
    nobody = 65534
    with tempfile.TemporaryDirectory() as folder:
        conf = write_config(pathlib.Path(folder) / "conf", "/", {"Listen": "127.0.0.1:0"})
        os.chmod(folder, 0o755)
        (conf / "sites").chmod(0o711)
        result = run("-c", conf, "-t", user=nobody)
    assert result.returncode == 1 and "sites cannot be listed: Permission denied" in result.stderr


def test_sites_that_lead_to_themselves(tmp_path):
    conf = write_config(tmp_path / "conf", "/")
    shutil.rmtree(conf / "sites")
    (conf / "sites").symlink_to("sites")
    result = run("-c", conf, "-t")
    assert result.returncode == 1 and "sites cannot be listed: Too many levels of symbolic links" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("load", [None, "[PLUGINS]\n    Load liana auth static\n"])
@pytest.mark.parametrize("place", ["plugins/auth/auth.conf", "plugins/auth", "plugins"])
def test_files_of_plugins_that_cannot_be_read(load, place):
    """They may ask for logins: a reload without root must not go without."""
    nobody = 65534
    files = {"plugins/auth/auth.conf": "", **({"plugins.load": load} if load else {})}
    with tempfile.TemporaryDirectory() as folder:
        conf = write_config(pathlib.Path(folder) / "conf", "/", {"Listen": "127.0.0.1:0"}, files=files)
        os.chmod(folder, 0o755)
        (conf / place).chmod(0o600)
        result = run("-c", conf, "-t", user=nobody)
    assert result.returncode == 1 and "plugins/auth/auth.conf: error: " in result.stderr
    assert "Permission denied" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_warnings_beside_a_folder_that_cannot_be_read():
    names = ("aaa", "nope", "zzz")  # no plugins
    files = {f"plugins/{name}/{name}.conf": "[RULES]\n" for name in names}
    with tempfile.TemporaryDirectory() as folder:
        conf = write_config(pathlib.Path(folder) / "conf", "/", {"Listen": "127.0.0.1:0"}, files=files)
        os.chmod(folder, 0o755)
        (conf / "plugins" / "nope").chmod(0)
        result = run("-c", conf, "-t", user=65534)
    assert result.returncode == 0
    assert all(f"{name}.conf: warning: this file is not read" in result.stderr for name in ("aaa", "zzz"))
