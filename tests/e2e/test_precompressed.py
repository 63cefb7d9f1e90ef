# SPDX-License-Identifier: Apache-2.0
"""Precompressed variants: which file an Accept-Encoding gets, and that each variant is its own representation."""

import gzip
import os

import pytest

from harness import build
from harness.content import OLD, pattern, populate
from harness.metrics import scrape, status_section, total
from harness.server import run, write_config
from test_config import problems

HAS_STATUS = (build.PLUGINS / "status.so").exists()
SCRIPT = b"console.log('hello')\n" * 50
GZ = gzip.compress(SCRIPT, mtime=0)
FILES = {
    "app.js": SCRIPT,
    "app.js.br": b"brotli of app",
    "app.js.zst": b"zstd of app",
    "app.js.gz": GZ,
    "few.css": b"a {}\n",
    "few.css.gz": b"gzip of few",
    "none.txt": b"none",
    "stale.txt": b"fresh",
    "stale.txt.gz": b"gzip of something older",
    "dir/index.html": b"<p>index",
    "dir/index.html.br": b"brotli of index",
    "pic.svgz": b"svgz",
    "pic.svgz.gz": b"never",
    "PIC2.SVGZ": b"svgz",
    "PIC2.SVGZ.gz": b"never",
    "large.bin": pattern(300_000),
    "large.bin.gz": pattern(200_000, 9),
    "orphan.js.gz": b"gzip of nothing",
}


@pytest.fixture
def site(serve):
    server = serve(files=FILES, host={"Precompressed": "br zstd gzip"})
    os.utime(server.root / "stale.txt.gz", (OLD - 1, OLD - 1))
    return server


CHOICES = [
    ("/app.js", "gzip, deflate, br, zstd", "br", b"brotli of app"),
    ("/app.js", "gzip, zstd", "zstd", b"zstd of app"),
    ("/app.js", "gzip", "gzip", GZ),
    ("/app.js", "GZIP;q=0.5, br;q=0.4", "gzip", GZ),
    ("/app.js", "br;q=0, *", "zstd", b"zstd of app"),
    ("/app.js", "*;q=0, gzip;q=0.1", "gzip", GZ),
    ("/app.js", "identity;q=0", None, SCRIPT),
    ("/app.js", "identity, gzip;q=0.9", None, SCRIPT),
    ("/app.js", "gzip;q=7, br", None, SCRIPT),
    ("/app.js", "", None, SCRIPT),
    ("/app.js", None, None, SCRIPT),
    ("/few.css", "br, zstd, gzip", "gzip", b"gzip of few"),
    ("/none.txt", "br, zstd, gzip", None, b"none"),
    ("/stale.txt", "gzip", None, b"fresh"),
    ("/dir/", "br", "br", b"brotli of index"),
]


def note_times(server):
    """Sets the times of variants in nanoseconds after those of their files."""
    second = 10**9
    for name, file, variant in (
        ("none.txt", OLD * second + 600_000_000, OLD * second),  # brotli 1.0.9 keeps whole seconds
        ("few.css", OLD * second, OLD * second + 1),
        ("app.js", OLD * second, (OLD - 1) * second + 999_999_999),
    ):
        os.utime(server.root / name, ns=(file, file))
        os.utime(server.root / f"{name}.gz", ns=(variant, variant))


def test_fractions_of_seconds(serve):
    """Whole seconds are compared. A variant that is older is counted, and the first one of a host is logged."""
    config = {"plugins/status/status.conf": status_section()} if HAS_STATUS else {}
    server = serve(files={**FILES, "none.txt.gz": b"gz"}, host={"Precompressed": "gzip"}, config=config)
    note_times(server)
    client = server.connect()
    for path, coding in (("/none.txt", "gzip"), ("/few.css", "gzip"), ("/app.js", None)):
        for _ in range(3):
            assert client.ask(path, "Accept-Encoding: gzip")["Content-Encoding"] == coding, path
    server.wait_log("is older than the file without .gz")
    said = [line for line in server.logged if "is older than the file without .gz" in line]
    assert len(said) == 1 and "/app.js.gz" in said[0]
    if HAS_STATUS:
        assert total(scrape(client), "monkey_static_old_variants_total") == 3


@pytest.mark.parametrize("path, accept, coding, body", CHOICES)
def test_choice(site, path, accept, coding, body):
    client = site.connect()
    for _ in range(2):  # from the disk, and from memory
        answer = client.ask(path, *([] if accept is None else [f"Accept-Encoding: {accept}"]))
        assert (answer.status, answer["Content-Encoding"], answer.body) == (200, coding, body)
        assert answer["Vary"] == "Accept-Encoding"
        assert answer["Content-Type"] == client.ask(path)["Content-Type"]
    head = client.ask(path, *([] if accept is None else [f"Accept-Encoding: {accept}"]), method="HEAD")
    head_fields, fields = ([f for f in a.fields if f[0].lower() != "date"] for a in (head, answer))
    assert head_fields == fields  # a second may have passed between them


def test_field_lines_are_one_list(site):
    answer = site.connect().ask("/app.js", "Accept-Encoding: br;q=0.1", "Accept-Encoding: gzip")
    assert answer["Content-Encoding"] == "gzip"


def test_variants_by_their_own_names(site):
    client = site.connect()
    for path, kind in {
        "/app.js.gz": "application/gzip",
        "/app.js.zst": "application/zstd",
        "/orphan.js.gz": "application/gzip",
    }.items():
        answer = client.ask(path, "Accept-Encoding: gzip, br, zstd")
        assert (answer.status, answer["Content-Type"], answer["Content-Encoding"]) == (200, kind, None)
        assert answer["Vary"] is None and answer.body == FILES[path[1:]]
    assert client.ask("/orphan.js", "Accept-Encoding: gzip").status == 404
    for path in ("/pic.svgz", "/PIC2.SVGZ"):
        svgz = client.ask(path, "Accept-Encoding: gzip")
        assert (svgz["Content-Encoding"], svgz["Content-Type"], svgz.body) == ("gzip", "image/svg+xml", b"svgz")


def test_each_variant_has_its_tag(site):
    client = site.connect()
    tags = {c: client.ask("/app.js", f"Accept-Encoding: {c}")["ETag"] for c in ("identity", "br", "zstd", "gzip")}
    assert len(set(tags.values())) == 4
    for coding in ("br", "zstd", "gzip"):
        assert tags[coding].endswith(f'-{coding}"')
    for asked in tags:
        for known, tag in tags.items():
            answer = client.ask("/app.js", f"Accept-Encoding: {asked}", f"If-None-Match: {tag}")
            assert answer.status == (304 if asked == known else 200)
            assert answer["Vary"] == "Accept-Encoding"
            assert answer["ETag"] == tags[asked]
            assert answer.status == 200 or answer["Content-Encoding"] is None
            assert client.ask("/app.js", f"Accept-Encoding: {asked}", f"If-Match: {tag}").status == (
                200 if asked == known else 412
            )


def test_ranges_are_of_the_variant(site):
    client, whole = site.connect(), FILES["large.bin.gz"]
    first = client.ask("/large.bin", "Accept-Encoding: gzip")
    assert first.body == whole
    accept = "Accept-Encoding: gzip"
    part = client.ask("/large.bin", accept, "Range: bytes=100-199", f"If-Range: {first['ETag']}")
    assert (part.status, part.body, part["Content-Encoding"]) == (206, whole[100:200], "gzip")
    assert (part["Content-Range"], part["Vary"]) == (f"bytes 100-199/{len(whole)}", "Accept-Encoding")
    other = client.ask("/large.bin", "Range: bytes=100-199", f"If-Range: {first['ETag']}")
    assert (other.status, other.body) == (200, FILES["large.bin"])
    assert client.ask("/large.bin", accept, "Range: bytes=250000-").status == 416
    assert client.ask("/large.bin", "Range: bytes=250000-").status == 206


def test_off_unless_asked_for(serve):
    answer = serve(files=FILES).connect().ask("/app.js", "Accept-Encoding: br, gzip")
    assert (answer["Content-Encoding"], answer["Vary"], answer.body) == (None, None, SCRIPT)


def test_the_order_is_the_servers(serve):
    server = serve(files=FILES, host={"Precompressed": "gzip br"})
    assert server.connect().ask("/app.js", "Accept-Encoding: br, zstd, gzip")["Content-Encoding"] == "gzip"
    assert server.connect().ask("/app.js", "Accept-Encoding: zstd")["Content-Encoding"] is None


def test_many_fields(site):
    """What is asked for stays bounded: 1,000 codings are read like three."""
    value = ", ".join(f"x{i};q=0.5" for i in range(300)) + ", gzip"
    assert site.connect().ask("/app.js", f"Accept-Encoding: {value}")["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    "patterns, path, varies",
    [
        (["*.js *.css"], "/app.js", True),
        (["*.js *.css"], "/few.css", True),
        (["*.js"], "/few.css", False),
        (["*.js", "*.css"], "/few.css", True),
        (["/dir"], "/dir/", True),
        (["*.html"], "/dir/", True),
        (["=/dir/index.html"], "/dir/", True),
        (["=/dir/"], "/dir/", False),
        (["/dir"], "/app.js", False),
        (["/"], "/app.js", True),
    ],
)
def test_only_where_it_is_wanted(serve, patterns, path, varies):
    """Elsewhere nothing varies, and what lies next to the file does not matter."""
    client = serve(files=FILES, host={"Precompressed": "br gzip", "PrecompressedMatch": patterns}).connect()
    for _ in range(2):
        answer = client.ask(path, "Accept-Encoding: br, gzip")
        assert (answer.status, answer["Vary"]) == (200, "Accept-Encoding" if varies else None)
        assert (answer["Content-Encoding"] is not None) == varies


def test_patterns_and_what_was_tried(serve):
    """By the name that is taken for the path."""
    files = {"index.html": b"index", "index.html.gz": b"gzip of index"}
    host = {"TryFiles": "$path /index.html", "Precompressed": "gzip", "PrecompressedMatch": "*.html"}
    answer = serve(files=files, host=host).connect().ask("/users", "Accept-Encoding: gzip")
    assert (answer["Vary"], answer.body) == ("Accept-Encoding", b"gzip of index")


def test_patterns_and_aliases(serve, tmp_path):
    """By the path that the client asks for, wherever the file lies."""
    populate(tmp_path / "assets", {"app.js": SCRIPT, "app.js.gz": GZ})
    rules = "".join(
        f"[ALIAS]\n    Match {match}\n    To {tmp_path}/assets{name}\n"
        for match, name in {"/assets": "", "/other": "", "=/one": "/app.js", "=/two": "/app.js"}.items()
    )
    server = serve(
        files=FILES,
        config={"sites/default": f"""[HOST]
    DocumentRoot {tmp_path}
    Precompressed gzip
    PrecompressedMatch /assets =/one
{rules}"""},
    )
    client = server.connect()
    for path, varies in {"/assets/app.js": True, "/other/app.js": False, "/one": True, "/two": False}.items():
        answer = client.ask(path, "Accept-Encoding: gzip")
        assert (answer.body, answer["Vary"]) == ((GZ, "Accept-Encoding") if varies else (SCRIPT, None)), path


def test_patterns_of_nothing(tmp_path, site_root):
    result = run("-c", write_config(tmp_path / "conf", site_root, host={"PrecompressedMatch": "*.css"}), "-t")
    assert result.returncode == 0
    assert 'warning: "PrecompressedMatch" does nothing without "Precompressed"' in result.stderr


def test_patterns_that_are_none(tmp_path, site_root):
    host = {"Precompressed": "gzip", "PrecompressedMatch": "*.css assets"}
    result = run("-c", write_config(tmp_path / "conf", site_root, host=host), "-t")
    (problem,) = problems(result)
    assert result.returncode == 1 and "a pattern is a path" in problem[3]
    assert problem[2] == len("    PrecompressedMatch *.css ") + 1


def test_place_of_a_fault_in_an_expression(tmp_path, site_root):
    host = {"Precompressed": "gzip", "PrecompressedMatch": "*.css ~^/(a"}
    result = run("-c", write_config(tmp_path / "conf", site_root, host=host), "-t")
    (problem,) = problems(result)
    assert problem[2] == len("    PrecompressedMatch *.css ~^/(a") and "parenthesis" in problem[3]


@pytest.mark.parametrize(
    "value, word", [("br deflate", "deflate"), ("gzip br gzip", "gzip"), ("br br foo", "br foo"), (".gz", ".gz")]
)
def test_mistakes(tmp_path, site_root, value, word):
    result = run("-c", write_config(tmp_path / "conf", site_root, host={"Precompressed": value}), "-t")
    row = f"    Precompressed {value}"
    assert result.returncode != 0
    for problem, name in zip(problems(result), word.split(), strict=True):
        assert problem[:3] == ("default", 4, row.rindex(name) + 1)
        assert f'not "{name}"' in problem[3]


def test_thousands_of_lines(tmp_path, site_root):
    host = {"Precompressed": "gzip", "PrecompressedMatch": [f"/p{n} *.p{n}" for n in range(4000)]}
    result = run("-c", write_config(tmp_path / "conf", site_root, host=host), "-t")
    assert result.returncode == 0, result.stderr
