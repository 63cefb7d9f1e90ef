# SPDX-License-Identifier: Apache-2.0
"""`monkey -t`: every mistake in one go, each at its line, none that only follows from another; and the JSON form."""

import json
import os
import pathlib
import pwd
import re
import shutil
import tempfile

import pytest

from harness import build
from harness.content import populate
from harness.server import Server, run, write_config
from harness.certificates import Authority

pytestmark = pytest.mark.single_protocol

PLACE = re.compile(r"^(?P<file>\S+?):(?P<line>\d+)(:\d+)?: (?P<severity>error|warning): (?P<text>.*)$", re.M)
ANY = re.compile(r"^(?:\S+: )?(?:error|warning): .*$", re.M)
SERVER = "[SERVER]\n    Listen 127.0.0.1:0\n"


@pytest.fixture
def folder(tmp_path, site_root):
    def write(text=SERVER, **files):
        files = {k.replace("__", "/"): v for k, v in files.items()}
        write_config(tmp_path / "conf", site_root, files={"monkey.conf": text, **files})
        return tmp_path / "conf"

    return write


def check(conf, *more):
    return run("-c", conf, "-t", *more)


def found(result):
    """Places and severities, in order."""
    return [(os.path.basename(m["file"]), int(m["line"]), m["severity"]) for m in PLACE.finditer(result.stderr)]


def exactly(result, *places):
    """These errors and no others."""
    assert result.returncode == 1, result.stderr
    assert sorted(found(result)) == sorted((*p, "error") for p in places), result.stderr
    assert len(ANY.findall(result.stderr)) == len(places), result.stderr


# ── the right line ──


def test_the_line_behind_entries_that_do_not_parse(folder):
    result = check(folder("[SERVER]\n    Listen 127.0.0.1:x\n    Listen 127.0.0.1:0\n    Listen 127.0.0.1:0 carrier\n"))
    exactly(result, ("monkey.conf", 2), ("monkey.conf", 4))


def test_the_line_of_a_handler(folder, site_root):
    host = f"[HOST]\n    DocumentRoot {site_root}\n[HANDLERS]\n    Match nonsense static\n    Match /a nothing\n"
    exactly(check(folder(sites__default=host)), ("default", 4), ("default", 5))


# ── all in one go ──


def test_stages(folder, site_root, tmp_path):
    """Errors of the parser, of roots, plugins, hosts, listeners and logs do not hide each other."""
    (tmp_path / "a-file").write_text("")
    text = (
        "[SERVER]\n    Listen 127.0.0.1:0\n    Workerz 1\n    ErrorLog /nonexistent/error.log\n"
        "    PidFile /nonexistent/pid\n    Listen unix:/nonexistent/socket\n"
        "[HEALTH]\n    LivenessPath /up\n    Listener 1:2\n"
    )
    default = (
        "[HOST]\n    ServerNam a\n    DocumentRoot /nonexistent/root\n    TryFiles index.html\n"
        "[LOGGER]\n    AccessLog /nonexistent/access\n    ErrorLog /nonexistent/errors\n"
        "[REDIRECT]\n    Match /a\n    To /a/b\n"
    )
    other = f"[HOST]\n    ServerName b\n    DocumentRoot {tmp_path / 'a-file'}\n    Timeouts 3\n"
    result = check(folder(text, sites__default=default, sites__other=other))
    exactly(
        result,
        *[("monkey.conf", n) for n in (3, 4, 5, 6, 9)],
        *[("default", n) for n in (2, 3, 4, 6, 7, 10)],
        *[("other", n) for n in (3, 4)],
    )


def test_files_of_certificates(folder, site_root, tmp_path):
    """A missing certificate does not hide an open key, nor one pair the other."""
    ca = Authority(tmp_path / "ca")
    pair = ca.make("pair", "localhost")
    key = tmp_path / "open.key"
    key.write_bytes(pathlib.Path(pair.key).read_bytes())
    key.chmod(0o644)
    host = (
        f"[HOST]\n    ServerName localhost\n    DocumentRoot {site_root}\n[TLS]\n"
        f"    Certificate /nonexistent/a.pem\n    CertificateKey {key}\n"
        f"    Certificate {pair.cert}\n    CertificateKey /nonexistent/b.key\n"
    )
    result = check(folder("[SERVER]\n    Listen 127.0.0.1:0 tls\n", sites__default=host))
    exactly(result, *[("default", n) for n in (5, 6, 8)])
    assert "is open to others" in result.stderr


PID_FILES = {
    "text": lambda path: path.write_text("not a number\n"),
    "fifo": os.mkfifo,
    "link": lambda path: path.symlink_to("elsewhere"),
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", PID_FILES, ids=str)
def test_pid_files_that_a_start_refuses(folder, tmp_path, kind):
    PID_FILES[kind](tmp_path / "pid")
    conf = folder(SERVER + f"    PidFile {tmp_path / 'pid'}\n")
    exactly(check(conf), ("monkey.conf", 3))
    result = run("-c", conf)
    assert result.returncode == 3 and "cannot write" in result.stderr, result.stderr


def test_a_pid_file_of_before(folder, tmp_path):
    (tmp_path / "pid").write_text("123\n")
    result = check(folder(SERVER + f"    PidFile {tmp_path / 'pid'}\n"))
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "pid").read_text() == "123\n"


def test_a_fifo_as_configuration(folder, tmp_path):
    conf = folder(SERVER + "@INCLUDE extra\n")
    os.mkfifo(conf / "extra")
    result = check(conf)
    exactly(result, ("monkey.conf", 3))
    assert "extra\": it is not a regular file" in result.stderr


# ── and nothing that only follows ──

FOLLOWS = {
    "a misspelt key that must be there": ("    DocumentRot /srv\n", [2]),
    "a value that is missing": ("    DocumentRoot\n", [2]),
    "a variable that is not known": ("    DocumentRoot ${NO_SUCH_VARIABLE}\n", [2]),
    "a line that is indented otherwise": ("    ServerName a\n     DocumentRoot /srv\n", [3]),
    "a misspelt section": ("    DocumentRoot {root}\n[TSL]\n    Certificate a\n    CertificateKey b\n", [3]),
    "a section that is not closed": ("    DocumentRoot {root}\n[REDIRECT\n    Match /a\n    To /b\n", [3]),
    "a file that cannot be included": ("@INCLUDE nothing.conf\n", [2]),
    "a certificate without a value": ("    DocumentRoot {root}\n[TLS]\n    Certificate\n    CertificateKey /k\n", [4]),
    "an expression": ("    DocumentRoot {root}\n[REDIRECT]\n    Match ~(\n    To /$1\n", [4]),
}


@pytest.mark.parametrize("case", FOLLOWS, ids=str)
def test_nothing_follows(folder, site_root, case):
    text, lines = FOLLOWS[case]
    result = check(folder(sites__default="[HOST]\n" + text.replace("{root}", str(site_root))))
    exactly(result, *[("default", line) for line in lines])


def test_nothing_follows_from_a_variable(folder, site_root):
    host = f"@SET where=${{NO_SUCH_VARIABLE}}\n[HOST]\n    DocumentRoot ${{where}}/a\n"
    exactly(check(folder(sites__default=host)), ("default", 1))


def test_nothing_follows_from_a_missing_section(folder):
    exactly(check(folder(sites__default="[HOTS]\n    DocumentRoot /srv\n")), ("default", 1))


def test_nothing_follows_from_a_missing_folder(tmp_path):
    result = check(tmp_path / "nothing")
    assert result.returncode == 1 and len(ANY.findall(result.stderr)) == 1, result.stderr


ALONE = {
    "a root that is not said": ("", 1),
    "an alias without a path": ("[ALIAS]\n    To {root}\n", 3),
    "an alias without a folder": ("[ALIAS]\n    Match /a\n", 3),
    "an alias for a glob": ("[ALIAS]\n    Match *\n    To {root}\n", 4),
    "an alias with a semicolon": ("[ALIAS]\n    Match /a\n    To {root};\n", 5),
    "captures without an expression": ("[REDIRECT]\n    To /b$1\n", 3),
    "captures of an expression that is wrong": ("[REDIRECT]\n    Match\n    To /b$1\n", 4),
    "captures of a key that is misspelt": ("[REDIRECT]\n    Matchx ~^/(a)$\n    To /b$1\n", 4),
}


@pytest.mark.parametrize("case", ALONE, ids=str)
def test_one_mistake_is_one_error(folder, site_root, case):
    text, line = ALONE[case]
    key = "DocumentRoot {root}" if line > 1 else "ServerName a"
    host = f"[HOST]\n    {key}\n{text}".replace("{root}", str(site_root))
    exactly(check(folder(sites__default=host)), ("default", line))


@pytest.mark.parametrize("line", ["Load", "Load health;", "Loadx health", "Load \x01"])
def test_nothing_follows_from_a_line_of_plugins_load(folder, line):
    """What the line would have loaded is not known: its sections and keys are not reported as well."""
    load = f"[PLUGINS]\n    Load liana\n    {line}\n    Load static\n"
    exactly(check(folder(SERVER + "[HEALTH]\n    LivenessPath /live\n", **{"plugins.load": load})), ("plugins.load", 3))


@pytest.mark.parametrize("line", ["", "    CertificateKey\n", "    CertificateKeyx {key}\n"])
def test_one_mistake_of_a_certificate_is_one_error(folder, site_root, tmp_path, line):
    made = Authority(tmp_path / "ca").make("pair", "a.example")
    lines = f"[TLS]\n    Certificate {made.cert}\n{line}".replace("{key}", str(made.key))
    host = f"[HOST]\n    ServerName a.example\n    DocumentRoot {site_root}\n{lines}"
    result = check(folder("[SERVER]\n    Listen 127.0.0.1:0 tls\n", sites__default=host))
    exactly(result, ("default", 6 if line else 5))


def test_keys_of_a_misspelt_plugin_are_no_errors(folder):
    load = {"plugins.load": "[PLUGINS]\n    Load liana\n    Load sttaic\n"}
    host = "[HOST]\n    DocumentRoot /nonexistent\n"
    result = check(folder("[SERVER]\n    Workerz 1\n", **load, sites__default=host))
    exactly(result, ("plugins.load", 3), ("monkey.conf", 2))
    assert 'did you mean "static"?' in result.stderr


def test_a_start_and_a_reload_refuse_the_same(folder):
    conf = folder("[SERVER]\n    Workerz 1\n", sites__default="[HOST]\n    DocumentRoot /nonexistent\n")
    result = run("-c", conf)
    exactly(result, ("monkey.conf", 2), ("default", 2))


# ── suggestions ──

MEANT = {
    "log level": ("    LogLevel wran\n", "warn"),
    "log level of another server": ("    LogLevel warning\n", "warn"),
    "log level that is none here": ("    LogLevel crit\n", "error"),
    "transport": ("    Listen 127.0.0.1:0 tsl\n", "tls"),
    "transport of another server": ("    Listen 127.0.0.1:0 ssl\n", "tls"),
    "transport of all": ("    TransportLayer lianna\n", "liana"),
    "word": ("    Scheduler fiar\n", "fair"),
    "switch": ("    KeepAlive yes\n", "On"),
}


@pytest.mark.parametrize("case", MEANT, ids=str)
def test_did_you_mean(folder, case):
    text, meant = MEANT[case]
    result = check(folder("[SERVER]\n" + text))
    exactly(result, ("monkey.conf", 2))
    assert f'; did you mean "{meant}"?' in result.stderr, result.stderr


@pytest.mark.parametrize("name, meant", [("statik", "static"), ("compres", "compress"), ("loger", "logger")])
def test_did_you_mean_a_plugin(folder, name, meant):
    result = check(folder(**{"plugins.load": f"[PLUGINS]\n    Load liana static\n    Load {name}\n"}))
    assert f'; did you mean "{meant}"?' in result.stderr, result.stderr


def test_a_misspelt_plugin_before_its_right_name(folder):
    """What is checked in its place is not loaded: the right name is neither the second, nor late."""
    plugins = "[PLUGINS]\n    Load liana\n    Load loger\n    Load headrs\n    Load headers static\n    Load logger\n"
    exactly(check(folder(**{"plugins.load": plugins})), ("plugins.load", 3), ("plugins.load", 4))


def test_a_plugin_whose_file_is_missing(folder, tmp_path):
    """Its own name is no suggestion."""
    server = tmp_path / "bin" / "monkey"
    server.parent.mkdir()
    shutil.copy(build.binary(), server)
    conf = folder(**{"plugins.load": "[PLUGINS]\n    Load liana\n    Load tls\n    Load static\n"})
    result = run("-c", conf, "-t", program=server)
    if result.returncode == 0:
        pytest.skip("tls is installed where this copy looks for it")
    assert 'there is no plugin "tls"' in result.stderr and "did you mean" not in result.stderr


def test_did_you_mean_a_handler(folder, site_root):
    host = f"[HOST]\n    DocumentRoot {site_root}\n[HANDLERS]\n    Match /a statik\n"
    result = check(folder(sites__default=host))
    exactly(result, ("default", 4))
    assert '; did you mean "static"?' in result.stderr


# ── configurations from nginx ──


def test_semicolons(folder, site_root):
    host = f"[HOST]\n    DocumentRoot {site_root};\n"
    result = check(folder("[SERVER]\n    Listen 127.0.0.1:0;\n    Workers 1;\n", sites__default=host))
    exactly(result, ("monkey.conf", 2), ("monkey.conf", 3), ("default", 2))
    assert result.stderr.count("lines do not end with a semicolon") == 3


def test_a_semicolon_in_a_text(folder):
    result = check(folder(SERVER + "    DefaultMimeType text/plain;\n"))
    assert result.returncode == 0 and found(result) == [("monkey.conf", 3, "warning")], result.stderr
    assert check(folder(SERVER + '    DefaultMimeType "text/plain;"\n')).stderr == "monkey: the configuration is fine\n"


def test_braces(folder, site_root):
    conf = folder(
        "server {\n    listen 80;\n    location / {\n        root /srv;\n    }\n}\n" + SERVER + "    Workerz 1\n",
        sites__default=f"[HOST]\n    DocumentRoot {site_root}\n"
        "    location /x {\n        expires 3d;\n    }\n    TryFile 1\n",
    )
    result = check(conf)
    exactly(result, ("monkey.conf", 1), ("monkey.conf", 9), ("default", 3), ("default", 6))
    assert result.stderr.count("braces are not used: a section begins with a line [NAME]") == 2


def test_braces_within_words(folder, site_root):
    host = f"@SET a={site_root}\n[HOST]\n    DocumentRoot ${{a}}\n[REDIRECT]\n    Match ~^/a{{2}}$\n    To /b\n"
    assert check(folder(sites__default=host)).returncode == 0


# ── plugins.load ──

COMMENTED = "[PLUGINS]\n    Load liana\n    #Load mandril\n    # Of other origins.\n    #Load cors\n    Load static\n"
CORS = "[CORS]\n    Origins *\n"
BELOW_LIANA, BELOW_STATIC = ', below "Load liana" in line 2', ', below "Load static" in line 2'
MISSING = {
    "in a comment": (COMMENTED, CORS, "cors", ": remove the # in line 5"),
    "behind another": ("    Load liana\n    Load static\n", CORS, "cors", BELOW_LIANA),
    "at the end": ("    Load liana static\n", "[LOGGER]\n    AccessLog a\n", "logger", BELOW_STATIC),
    "a key": ("    Load liana\n    Load static\n", "    Redirect /a\n", "redirect", BELOW_LIANA),
}


@pytest.mark.parametrize("case", MISSING, ids=str)
def test_where_a_missing_plugin_belongs(folder, site_root, case):
    load, text, name, place = MISSING[case]
    load = load if load == COMMENTED else f"[PLUGINS]\n{load}"
    host = f"[HOST]\n    DocumentRoot {site_root}\n{text}"
    result = check(folder(sites__default=host, **{"plugins.load": load}))
    exactly(result, ("default", 3))
    assert f'which is not loaded: add "Load {name}" to plugins.load{place}\n' in result.stderr, result.stderr


def list_sections():
    """The sections of plugins that the reference has, but not those of the plugins that are always loaded."""
    reference = (build.TOP / "docs" / "reference" / "configuration.md").read_text()
    found = {}
    for part in re.split(r"^## ", reference, flags=re.M)[1:]:
        name, plugin = re.match(r"`\[(\w+)\]`", part), re.search(r"; plugin `(\w+)`\*$", part, re.M)
        if name and plugin and name[1] not in ("SERVER", "HOST", "ALIAS", "ERROR_PAGES"):
            found[name[1]] = plugin[1]
    return found


SECTIONS = list_sections()


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_loads_its_plugin(folder, site_root, name):
    """Where plugins.load does not hide it; then it is said which section that is."""
    text, host = f"[{name}]\n", f"[HOST]\n    DocumentRoot {site_root}\n"
    own = {"sites__default": host + text} if name == "WEB_SERVICE" else {"monkey.conf": SERVER + text}
    said = check(folder(**own)).stderr
    assert "unknown section" not in said and "not loaded" not in said and "not here" not in said
    load = "[PLUGINS]\n    Load liana\n    Load static\n"
    result = check(folder(**own, **{"plugins.load": load}))
    assert f'[{name}] belongs to the plugin "{SECTIONS[name]}", which is not loaded: add "Load' in result.stderr


def test_where_a_missing_transport_belongs(folder):
    load = {"plugins.load": "[PLUGINS]\n    Load liana\n    Load static\n"}
    result = check(folder("[SERVER]\n    Listen 127.0.0.1:0 tls\n", **load))
    exactly(result, ("monkey.conf", 2))
    assert 'it takes "Load tls" in plugins.load, below "Load liana" in line 2' in result.stderr


def test_a_plugin_that_lists_folders_before_their_index_is_found(folder):
    load = {"plugins.load": "[PLUGINS]\n    Load liana\n    Load dirlisting\n    Load static\n"}
    result = check(folder(**load))
    exactly(result, ("plugins.load", 4))
    sentence = 'the plugin "static" must come before "dirlisting": folders with an index would be listed'
    assert f"plugins.load:4:10: error: {sentence}" in result.stderr


# ── files that are not read ──

RULES = "[RULES]\n    Match /\n    Action deny\n"


def test_files_of_plugins_that_are_not_loaded(folder):
    """Rules in them have no effect, which a start says, too."""
    load = "[PLUGINS]\n    Load liana\n    Load static\n"
    more = {"plugins__mandrill__mandrill.conf": RULES, "plugins__auth__auth.conf": "# [AUTH]\n",
            "plugins__mandril__more.conf": RULES, "plugins__static__static.conf": "[HTTP2]\n"}  # fmt: skip
    conf = folder(**{"plugins.load": load, "plugins__mandril__mandril.conf": RULES, **more})
    result = check(conf)
    said = [line.partition(": warning: ") for line in result.stderr.splitlines() if ": warning: " in line]
    assert result.returncode == 0 and [place.rpartition("/")[2] for place, _, _ in said] == [
        "mandril.conf",
        "mandrill.conf",
    ]
    sentence = 'this file is not read, and has no effect: no plugin "mandril" is loaded, for which plugins.load'
    assert said[0][2].startswith(sentence)
    server = Server("-c", conf)
    try:
        server.wait_log(re.escape(sentence))
    finally:
        server.stop()


def test_files_of_plugins_that_are_found(folder):
    """Without plugins.load they are loaded by their sections."""
    conf = folder(**{"plugins__mandril__mandril.conf": RULES, "plugins__mandrill__mandrill.conf": RULES})
    result = check(conf)
    assert result.returncode == 0 and re.findall("warning: .*", result.stderr) == [
        'warning: this file is not read, and has no effect: no plugin "mandrill" is loaded'
    ]


# ── copies of files ──

COPIES = ["a.bak", "a.orig", "a.swp", "a~", "a.dpkg-old", "a.dpkg-dist", "a.rpmnew", "a.rpmsave", "#a#"]


@pytest.mark.parametrize("name", COPIES)
def test_copies_in_sites_are_skipped(folder, site_root, name):
    """They would have the names of the hosts that they are copies of. A start logs the same line."""
    conf = folder(**{f"sites__{name}": f"[HOST]\n    ServerName localhost\n    DocumentRoot {site_root}\n[AUHT]\n"})
    result = check(conf)
    lines = result.stderr.splitlines()
    assert result.returncode == 0 and len(lines) == 2, result.stderr
    sentence = rf".*/sites/{re.escape(name)}: warning: this file is skipped: by its name it is .*, not a host"
    assert re.fullmatch(sentence, lines[0])
    server = Server("-c", conf)
    try:
        server.wait_log(rf"/sites/{re.escape(name)}: warning: this file is skipped")
    finally:
        server.stop()


INCLUDES = {
    "all of a folder": ("monkey.conf", "d/*", ["monkey.conf"]),
    "by a set": ("monkey.conf", "d/[a#]*", ["monkey.conf"]),
    "by its end": ("monkey.conf", "d/*[!x]", ["monkey.conf"]),
    "of a host": ("sites/default", "../d/*", ["sites/default"]),
    "of two hosts": ("sites/default", "../d/*", ["sites/default", "sites/other"]),
    "of an included file": ("parts/1", "../d/*", ["parts/1"]),
}


@pytest.mark.parametrize("case", INCLUDES, ids=str)
@pytest.mark.parametrize("name", COPIES)
def test_copies_are_not_included(folder, site_root, name, case):
    """One warning for each, with the words of sites/; what it has is not read, and loads no plugin."""
    _, pattern, places = INCLUDES[case]
    texts = {"monkey.conf": SERVER, "sites/default": f"[HOST]\n    DocumentRoot {site_root}\n"}
    texts["sites/other"] = texts["sites/default"].replace("]\n", "]\n    ServerName other\n")
    texts["parts/1"] = ""
    for place in places:
        texts[place] += f"@INCLUDE {pattern}\n"
    texts["monkey.conf"] += "@INCLUDE parts/1\n"
    copy = "[SREVER]\n    Workers 7\n[CORS]\n    Nonsense\n"
    conf = folder(**{key.replace("/", "__"): text for key, text in texts.items()}, **{f"d__{name}": copy})
    result = check(conf)
    lines = result.stderr.splitlines()
    assert result.returncode == 0 and len(lines) == 2, result.stderr
    assert re.fullmatch(rf".*/d/{re.escape(name)}: warning: this file is skipped: by its name it is .*", lines[0])


def test_a_copy_that_is_included_by_its_name(folder):
    result = check(folder(SERVER + "@INCLUDE d/a.bak\n", **{"d__a.bak": "[SERVER]\n    Wrokers 2\n"}))
    exactly(result, ("a.bak", 2))


def test_hidden_files_in_sites(folder):
    """No warning while an editor has a file open."""
    assert check(folder(**{"sites__.default.swp": "x", "sites__.gitignore": "x"})).stderr.count("\n") == 1


# ── another user ──


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_what_another_user_cannot_read_is_a_warning():
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        root = populate(pathlib.Path(top) / "root", {"a": b"a"})
        conf = write_config(pathlib.Path(top) / "conf", root, {"User": pwd.getpwuid(65534).pw_name})
        root.chmod(0o700)
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        people = run("-c", conf, "-t", env=env)
        programs = run("-c", conf, "-t", "--json", env=env)
    assert people.returncode == 0 and "error:" not in people.stderr, people.stderr
    assert re.search(r"default:\d+:\d+: warning: cannot open the document root .*: Permission denied", people.stderr)
    assert people.stderr.endswith("monkey: the configuration is fine, with 1 warning\n")
    document = json.loads(programs.stdout)
    assert programs.returncode == 0 and document["summary"] == {"valid": True, "errors": 0, "warnings": 1}
    assert [p["severity"] for p in document["problems"]] == ["warning"]


# ── for programs ──


def test_json(folder):
    conf = folder("[SERVER]\n    Listen 127.0.0.1:0\n    Workerz 1\n    Title \"a\n")
    result = check(conf, "--json")
    assert result.returncode == 1 and result.stderr == ""
    document = json.loads(result.stdout)
    assert document["summary"] == {"valid": False, "errors": 2, "warnings": 0}
    assert document["problems"][0] == {
        "severity": "error",
        "file": str(conf / "monkey.conf"),
        "line": 3,
        "column": 5,
        "message": 'unknown key "Workerz" in [SERVER]; did you mean "Workers"?',
        "suggestion": "Workers",
    }
    assert set(document["problems"][1]) == {"severity", "file", "line", "column", "message"}


def test_json_of_a_good_one(folder):
    result = check(folder(), "--json")
    assert result.returncode == 0 and result.stderr == ""
    assert json.loads(result.stdout) == {"problems": [], "summary": {"valid": True, "errors": 0, "warnings": 0}}


def test_json_of_an_option(folder):
    result = check(folder(), "--json", "-l", "192.0.2.1:0")
    (problem,) = json.loads(result.stdout)["problems"]
    assert problem["file"] is None and problem["line"] is None and problem["column"] is None
    assert problem["message"].startswith("option --listen: cannot listen on 192.0.2.1:0: ")


def test_json_is_utf8(tmp_path, site_root):
    """Paths and contents in any bytes, and what JSON wants escaped."""
    top = os.fsencode(tmp_path) + b'/a"\xff\xc3\xa9\xed\xa0\x80'
    os.mkdir(top)
    conf = pathlib.Path(os.fsdecode(top)) / "conf"
    write_config(conf, site_root)
    (conf / "monkey.conf").write_bytes(b'[SERVER]\n    Listen 127.0.0.1:0\n    Work\xfe\xc3\xa9\\"er 1\n')
    result = run("-c", conf, "-t", "--json")
    (problem,) = json.loads(result.stdout)["problems"]
    assert '/a"\ufffd\u00e9\ufffd\ufffd\ufffd/conf/monkey.conf' in problem["file"]
    assert 'Work\ufffd\u00e9\\"er' in problem["message"]


def test_json_counts_what_it_does_not_list(folder):
    text = SERVER + "".join(f"    Nonsense{i}x 1\n" for i in range(130))
    document = json.loads(check(folder(text), "--json").stdout)
    assert len(document["problems"]) == 100 and document["summary"]["errors"] == 130


def test_json_alone(folder):
    assert run("-c", folder(), "--json").returncode == 2
