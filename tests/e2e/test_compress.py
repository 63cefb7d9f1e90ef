# SPDX-License-Identifier: Apache-2.0
"""Responses that are compressed on their way: which ones, what their fields say, and that the bytes are the same."""

import re
import threading

import pytest

from harness import build
from harness.codings import decode, decode_some
from harness.content import pattern, populate
from harness.messages import request
from harness.queues import await_full
from harness.server import await_true, run, section, write_config
from test_concurrent import in_parallel

MODULE = build.binary().parent.parent / "lib" / "monkey" / "compress.so"
pytestmark = pytest.mark.skipif(not MODULE.exists(), reason=f"the preset {build.PRESET} does not build compress")

LOAD = ("liana", "redirect", "cors", "headers", "static", "compress")
ALL = "Accept-Encoding: zstd, br, gzip"
CODINGS = ["zstd", "br", "gzip"]


def text(size, seed=1):
    """Text of this size, which compresses as text does."""
    words = [b"%x" % n for n in pattern(size // 3 + 1, seed)]
    return (b" ".join(words) + b"\n" * size)[:size]


PAGE = text(20_000)
LARGE = text(1_000_000, 2)
FILES = {
    "page.html": PAGE,
    "large.txt": LARGE,
    "empty.txt": b"",
    "one.txt": b"1",
    "under.txt": text(1023),
    "just.txt": text(1024),
    "data.json": text(5000),
    "picture.png": text(5000),
    "drawing.svg": text(5000),
    "page.css": text(5000),
    "page.css.br": b"brotli of page.css",
    "index.html": text(3000),
    "lost.html": text(6000),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return populate(tmp_path_factory.mktemp("compress"), FILES)


def files_of(root, keys=None, *, limits=None, extra="", load=LOAD, host=None):
    """What is in the configuration folder: keys of the host's section, of the server's one, and more for the host."""
    own = {"ServerName": "localhost", "DocumentRoot": root, **(host or {})}
    texts = {
        "plugins.load": section("PLUGINS", {"Load": load}),
        "sites/default": section("HOST", own) + section("COMPRESS", keys or {}) + extra,
    }
    if limits:
        texts["plugins/compress/compress.conf"] = section("COMPRESS", limits)
    return texts


@pytest.fixture
def start(serve, root):
    def make(keys=None, settings=None, *, program=None, **rest):
        if program:
            rest["load"] = ("probe", *rest.get("load", LOAD))
        return serve(settings, root=root, config=files_of(root, keys, **rest), program=program)

    return make


@pytest.fixture
def probe(start):
    if not build.probe().exists():
        pytest.skip(f"the preset {build.PRESET} has no monkey-probe")
    return lambda keys=None, settings=None, **rest: start(keys, settings, program=build.probe(), **rest)


def vary(answer):
    """The words of all Vary lines."""
    lines = [value for name, value in answer.fields if name.lower() == "vary"]
    return [word.strip() for line in lines for word in line.split(",")]


def fields(answer):
    return [field for field in answer.fields if field[0] != "Date"]


# ── bodies ──


@pytest.mark.parametrize("coding", CODINGS)
def test_each_coding(start, coding):
    client = start().connect()
    for name in ("page.html", "large.txt", "just.txt", "data.json"):
        answer = client.ask(f"/{name}", f"Accept-Encoding: {coding}")
        assert (answer.status, answer["Content-Encoding"], vary(answer)) == (200, coding, ["Accept-Encoding"])
        assert decode(coding, answer.body) == FILES[name] and len(answer.body) < len(FILES[name]) * 0.8
        assert answer["Content-Length"] is None and answer["Accept-Ranges"] is None
        assert answer["ETag"] == "W/" + client.ask(f"/{name}")["ETag"]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 65_537, 1_000_000, 6_000_000])
def test_unknown_length(probe, coding, size):
    client = probe(settings={"KeepAliveTimeout": "5m"}).connect()
    answer = client.ask(f"/probe/stream?{size}", f"Accept-Encoding: {coding}")
    assert answer["Content-Encoding"] == coding and decode(coding, answer.body) == b"g" * size
    answer = client.ask(f"/probe/stream?{size}")
    assert answer["Content-Encoding"] is None and answer.body == b"g" * size and vary(answer) == ["Accept-Encoding"]


def test_incompressible(start, serve, tmp_path):
    noise = pattern(3_000_000, 7)
    root = populate(tmp_path / "noise", {"noise.txt": noise})
    client = serve(root=root, config=files_of(root)).connect()
    for coding in CODINGS:
        assert decode(coding, client.ask("/noise.txt", f"Accept-Encoding: {coding}").body) == noise


def test_each_level(start):
    for keys, coding, levels in (
        ("ZstdLevel", "zstd", (1, 12)),
        ("BrotliLevel", "br", (0, 6)),
        ("GzipLevel", "gzip", (1, 9)),
    ):
        sizes = []
        for level in levels:
            client = start({keys: level}).connect()
            answer = client.ask("/large.txt", f"Accept-Encoding: {coding}")
            assert decode(coding, answer.body) == LARGE
            sizes.append(len(answer.body))
        assert sizes[1] < sizes[0]


def test_old_clients(start):
    """HTTP/1.0: the end of the connection ends the body."""
    client = start().connect()
    client.send(request("/page.html", ALL, version="HTTP/1.0"))
    answer = client.response()
    assert answer["Content-Encoding"] == "zstd" and decode("zstd", answer.body) == PAGE


def test_pipeline(start):
    client = start().connect()
    client.send(request("/page.html", ALL) * 20)
    assert all(decode("zstd", client.response().body) == PAGE for _ in range(20))


def test_head(start):
    client = start().connect()
    for coding in (*CODINGS, "identity"):
        accept = f"Accept-Encoding: {coding}"
        for name in ("page.html", "under.txt", "empty.txt", "picture.png", "missing"):
            got, head = client.ask(f"/{name}", accept), client.ask(f"/{name}", accept, method="HEAD")
            assert fields(head) == fields(got)


# ── which ones ──


@pytest.mark.parametrize("name", ["empty.txt", "one.txt", "under.txt", "picture.png", "missing"])
def test_left_alone(start, name):
    answer = start().connect().ask(f"/{name}", ALL)
    assert answer["Content-Encoding"] is None and vary(answer) == []
    assert answer.body == FILES.get(name, answer.body) and answer.length == len(answer.body)


def test_smallest(start):
    client = start({"MinSize": 1}).connect()
    for name in ("empty.txt", "one.txt", "under.txt"):
        answer = client.ask(f"/{name}", "Accept-Encoding: gzip")
        assert decode(answer["Content-Encoding"], answer.body) == FILES[name]
        assert answer["Content-Encoding"] == (None if name == "empty.txt" else "gzip")


@pytest.mark.parametrize(
    "accept, coding",
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, br", "br"),
        ("gzip;q=0.9, br;q=0.8, zstd;q=0.1", "gzip"),
        ("br;q=0.5, *;q=0.7", "zstd"),
        ("*", "zstd"),
        ("x-gzip", "gzip"),
        ("GZIP", "gzip"),
        ("zstd;q=0, br;q=0, gzip", "gzip"),
        ("deflate", None),
        ("identity", None),
        ("identity;q=1, gzip;q=0.5", None),
        ("gzip;q=0", None),
        ("gzip;q=2", None),
        ("", None),
        (None, None),
    ],
)
def test_choice(start, accept, coding):
    answer = start().connect().ask("/page.html", *([] if accept is None else [f"Accept-Encoding: {accept}"]))
    assert answer["Content-Encoding"] == coding and decode(coding, answer.body) == PAGE
    assert vary(answer) == ["Accept-Encoding"]


def test_preference_of_the_host(start):
    client = start({"Codings": "gzip br"}).connect()
    assert client.ask("/page.html", ALL)["Content-Encoding"] == "gzip"
    assert client.ask("/page.html", "Accept-Encoding: zstd, br")["Content-Encoding"] == "br"
    assert client.ask("/page.html", "Accept-Encoding: zstd")["Content-Encoding"] is None


def test_paths(start):
    """The first section that matches counts."""
    extra = section("COMPRESS", {"Match": "*.json", "Codings": "gzip"})
    client = start({"Match": "*.html", "Codings": "none"}, extra=extra).connect()
    answer = client.ask("/page.html", ALL)
    assert answer["Content-Encoding"] is None and vary(answer) == [] and answer["Accept-Ranges"] == "bytes"
    assert client.ask("/data.json", ALL)["Content-Encoding"] == "gzip"
    assert client.ask("/large.txt", ALL)["Content-Encoding"] is None


def test_types(start):
    client = start({"Types": ["image/png", "*+xml"]}).connect()
    assert client.ask("/picture.png", ALL)["Content-Encoding"] == "zstd"
    assert client.ask("/drawing.svg", ALL)["Content-Encoding"] == "zstd"
    assert client.ask("/page.html", ALL)["Content-Encoding"] is None


def test_a_host_without_a_section(serve, root):
    config = {**files_of(root), "sites/default": section("HOST", {"ServerName": "localhost", "DocumentRoot": root})}
    answer = serve(root=root, config=config).connect().ask("/page.html", ALL)
    assert answer.length == len(PAGE) and answer["Vary"] is None


def test_malformed_request(start):
    client = start().connect()
    client.send(b"GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\nbad\r\n\r\n")
    assert client.response().status == 400


# ── fields ──


def cache_fields(answer):
    names = ("etag", "vary", "cache-control", "content-location", "expires")
    return sorted((name.lower(), value) for name, value in answer.fields if name.lower() in names)


@pytest.mark.parametrize("target", ["/page.html", "/", "/picture.png", "/under.txt", "/page.css"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_not_modified(start, target, method):
    """It has the fields of the 200 to the same request (RFC 9110 section 15.4.5), in whatever form the tag comes."""
    client = start().connect()
    for accept in (ALL, "Accept-Encoding: br", "Accept-Encoding: identity", "X: none", "Cache-Control: no-transform"):
        whole = client.ask(target, accept, method=method)
        assert whole.status == 200
        for tag in (whole["ETag"], whole["ETag"].removeprefix("W/"), "*"):
            answer = client.ask(target, accept, f"If-None-Match: {tag}", method=method)
            assert (answer.status, answer.body) == (304, b"")
            assert cache_fields(answer) == cache_fields(whole), (accept, tag)
            for name in ("Content-Type", "Content-Encoding", "Content-Length", "Accept-Ranges"):
                assert answer[name] is None


def test_preconditions_of_compressed_files(start):
    client = start().connect()
    coded, plain = client.ask("/page.html", ALL)["ETag"], client.ask("/page.html")["ETag"]
    assert coded == "W/" + plain
    assert client.ask("/page.html", ALL, f"If-Match: {coded}").status == 412
    assert client.ask("/page.html", ALL, f"If-Match: {plain}").status == 200


def test_ranges(start):
    client = start().connect()
    coded = client.ask("/page.html", ALL)["ETag"]
    answer = client.ask("/page.html", ALL, "Range: bytes=100-4099")
    assert (answer.status, answer.body, answer["Content-Encoding"]) == (206, PAGE[100:4100], None)
    assert not answer["ETag"].startswith("W/") and vary(answer) == ["Accept-Encoding"]
    assert vary(client.ask("/picture.png", ALL, "Range: bytes=100-4099")) == []
    client.send(request("/page.html", ALL, "Range: bytes=0-1500,9000-10500"))
    head = client.until(b"\r\n\r\n")
    assert b" 206 " in head and b"multipart/byteranges" in head and b"Content-Encoding" not in head
    assert b"Vary: Accept-Encoding\r\n" in head
    client.exactly(int(re.search(rb"Content-Length: (\d+)", head)[1]))
    answer = client.ask("/page.html", ALL, "Range: bytes=100-4099", f"If-Range: {coded}")
    assert answer.status == 200 and decode("zstd", answer.body) == PAGE
    answer = client.ask("/page.html", ALL, "Range: bytes=99999-")
    assert (answer.status, answer["Content-Encoding"]) == (416, None)


def test_no_transform(start):
    extra = section("HEADERS", {"Match": "=/data.json", "Set": 'Cache-Control "max-age=5, no-transform"'})
    client = start(extra=extra).connect()
    answer = client.ask("/data.json", ALL)
    assert answer.body == FILES["data.json"] and vary(answer) == [] and answer["Accept-Ranges"] == "bytes"
    answer = client.ask("/page.html", ALL, "Cache-Control: no-transform")
    assert answer.body == PAGE and vary(answer) == ["Accept-Encoding"]


def test_beside_precompressed(start):
    """A file's own variant is sent as it lies there; where there is none of it, one is made."""
    client = start(host={"Precompressed": "br"}).connect()
    answer = client.ask("/page.css", "Accept-Encoding: br")
    assert (answer.body, answer["Content-Encoding"]) == (b"brotli of page.css", "br")
    assert vary(answer) == ["Accept-Encoding"] and answer["Accept-Ranges"] == "bytes" and '-br"' in answer["ETag"]
    answer = client.ask("/page.css", "Accept-Encoding: gzip")
    assert decode("gzip", answer.body) == FILES["page.css"] and vary(answer) == ["Accept-Encoding"]


@pytest.mark.parametrize(
    "extra, words",
    [
        ("[CORS]\n    Origins https://a.test\n", ["Origin", "Accept-Encoding"]),
        ("[HEADERS]\n    Set Vary *\n", ["*"]),
        ('[HEADERS]\n    Set Vary "Cookie, accept-encoding"\n', ["Cookie", "accept-encoding"]),
        ("[HEADERS]\n    Add Vary Cookie\n    Add Vary Accept-Encoding\n", ["Cookie", "Accept-Encoding"]),
    ],
)
def test_vary(start, extra, words):
    answer = start(extra=extra).connect().ask("/page.html", ALL)
    assert vary(answer) == words and decode("zstd", answer.body) == PAGE


def test_fields_of_the_old_bytes(start):
    names = ["Content-MD5", "Content-Digest", "Repr-Digest", "Digest"]
    client = start(extra=section("HEADERS", {"Set": [f"{name} x" for name in names]})).connect()
    coded, plain = client.ask("/page.html", ALL), client.ask("/page.html")
    for name in names:
        assert coded[name] is None and plain[name] == "x"


def test_a_coding_of_the_handlers_own(start):
    answer = start(extra=section("HEADERS", {"Set": "Content-Encoding gzip"})).connect().ask("/page.html", ALL)
    assert answer.body == PAGE and answer["Content-Encoding"] == "gzip" and answer["Accept-Ranges"] == "bytes"


# ── errors ──

PAGES = section("ERROR_PAGES", {"404": "/lost.html"})


def test_error_pages(start):
    answer = start(extra=PAGES).connect().ask("/missing", ALL)
    assert (answer.status, answer["Content-Encoding"]) == (404, "zstd")
    assert decode("zstd", answer.body) == FILES["lost.html"]


@pytest.mark.parametrize("load", [("compress", *LOAD[:-1]), ("liana", "compress", "static", "headers")])
def test_other_orders_of_plugins(start, load):
    """What replaces a body after it was to be compressed is not said to be."""
    client = start({"MinSize": 1}, extra=PAGES, load=load).connect()
    answer = client.ask("/missing", ALL)
    assert answer["Content-Encoding"] is None and answer.body == FILES["lost.html"]
    assert decode("zstd", client.ask("/page.html", ALL).body) == PAGE


def test_broken_answers_have_no_end(probe):
    for coding in CODINGS:
        client = probe().connect()
        client.send(request("/probe/broken", f"Accept-Encoding: {coding}"))
        assert client.head()["Content-Encoding"] == coding
        assert not client.rest().endswith(b"0\r\n\r\n")


# ── pieces ──


def chunk_of(client):
    size = int(client.until(b"\r\n"), 16)
    data = client.exactly(size)
    client.exactly(2)
    return data


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("kind", ["text/plain", "text/event-stream"])
def test_pieces_arrive_as_they_are_written(probe, coding, kind):
    """Each tick can be read before the next one is written."""
    extra = section("HEADERS", {"Set": f"Content-Type {kind}"})
    client = probe({"Types": "text/* text/event-stream"}, extra=extra).connect()
    client.send(request("/probe/ticks?4", f"Accept-Encoding: {coding}"))
    assert client.head()["Content-Encoding"] == coding
    data = b""
    for n in range(1, 4):
        while decode_some(coding, data) != b"tick\n" * n:
            assert len(decode_some(coding, data)) < 5 * n
            data += chunk_of(client)
    body, _ = client.chunks()
    assert decode(coding, data + body) == b"tick\n" * 4


def test_event_streams_are_named_or_left_alone(probe):
    extra = section("HEADERS", {"Set": "Content-Type text/event-stream"})
    answer = probe(extra=extra).connect().ask("/probe/ticks?2", ALL)
    assert answer["Content-Encoding"] is None and answer.body == b"tick\n" * 2


def test_late_answers_and_posts(probe):
    client = probe({"MinSize": 1}).connect()
    assert decode("br", client.ask("/probe/late?30", "Accept-Encoding: br").body) == b"late\n"
    body = text(300_000)
    client.send_in_background(request("/probe/echo", "Accept-Encoding: br", method="POST", body=body))
    assert decode("br", client.response().body) == body
    assert client.ask("/probe/nothing", ALL)["Content-Encoding"] is None


@pytest.mark.parametrize("coding", CODINGS)
def test_slow_client(probe, coding):
    client = probe().connect(rcvbuf=4096)
    client.send(request("/large.txt", f"Accept-Encoding: {coding}") * 3)
    await_full(client)
    for _ in range(3):
        assert decode(coding, client.response().body) == LARGE


# ── what it may take ──


@pytest.mark.parametrize("coding", CODINGS)
def test_clients_leave(probe, coding):
    """In the middle of a body, again and again: nothing is kept (the sanitizer looks at the end)."""
    server = probe(limits={"Streams": 4})
    for n in range(24):
        client = server.connect(rcvbuf=4096)
        client.send(request("/probe/stream?100000000" if n % 2 else "/large.txt", f"Accept-Encoding: {coding}"))
        client.head()
        client.reset()
    coded = lambda: server.connect().ask("/page.html", ALL)["Content-Encoding"] == "zstd"
    await_true(coded, what="a free stream")


def test_streams(probe):
    server = probe(limits={"Streams": 2})
    held = [server.connect() for _ in range(2)]
    for client in held:
        client.send(request("/probe/ticks?1000", ALL))
        assert client.head()["Content-Encoding"] == "zstd"
    answer = server.connect().ask("/page.html", ALL)
    assert answer.body == PAGE and vary(answer) == ["Accept-Encoding"] and answer["Accept-Ranges"] == "bytes"
    held[0].reset()
    await_true(lambda: server.connect().ask("/page.html", ALL)["Content-Encoding"] == "zstd")


def test_no_streams(start):
    assert start(limits={"Streams": 0}).connect().ask("/page.html", ALL).body == PAGE


def test_memory(probe):
    """Half of MemoryLimit, and then what is smaller, and then what is there."""
    server = probe({"BrotliLevel": 4}, {"MemoryLimit": "8M"})
    seen = []
    for _ in range(24):
        client = server.connect()
        client.send(request("/probe/ticks?1000", ALL))
        seen.append(client.head()["Content-Encoding"])
    assert seen[0] == "zstd" and seen[-1] is None and "gzip" in seen
    assert seen.count("zstd") <= 2 and seen.count("br") <= 1 and seen.count("gzip") <= 14


@pytest.mark.single_protocol
def test_cpu_limit(serve, tmp_path):
    """One percent: what is being compressed waits, others have their turns meanwhile and leave as they are."""
    big = text(300_000, 3)
    root = populate(tmp_path / "big", {"big.txt": big, "page.html": PAGE})
    server = serve(root=root, config=files_of(root, {"GzipLevel": 9}, limits={"CpuLimit": 1}))
    slow, bodies = server.connect(), []
    slow.send(request("/big.txt", "Accept-Encoding: gzip"))
    assert slow.head()["Content-Encoding"] == "gzip"
    reader = threading.Thread(target=lambda: bodies.append(slow.chunks()[0]))
    reader.start()
    others, codings = server.connect(), []
    for _ in range(50):
        answer = others.ask("/page.html", "Accept-Encoding: gzip")
        codings.append(answer["Content-Encoding"])
        assert decode(codings[-1], answer.body) == PAGE and vary(answer) == ["Accept-Encoding"]
        assert not bodies, "nobody had to wait"
    assert codings.count(None) > 25
    reader.join(60)
    assert decode("gzip", bodies[0]) == big
    await_true(lambda: server.connect().ask("/page.html", ALL)["Content-Encoding"] == "zstd")


def test_cpu_limit_and_clients_that_leave(start):
    server = start({"GzipLevel": 9}, limits={"CpuLimit": 1})
    for _ in range(5):
        client = server.connect()
        client.send(request("/large.txt", "Accept-Encoding: gzip"))
        client.head()
        client.reset()
    server.connect().ask("/page.html")


@pytest.mark.concurrent
def test_many_at_once(start):
    server = start(settings={"Workers": 3}, limits={"CpuLimit": 50, "Streams": 20})

    def work(i):
        client = server.connect()
        for coding in CODINGS[i % 3 :] + CODINGS[: i % 3]:
            answer = client.ask("/large.txt" if i % 5 == 0 else "/page.html", f"Accept-Encoding: {coding}")
            assert decode(answer["Content-Encoding"], answer.body) == (LARGE if i % 5 == 0 else PAGE)

    in_parallel(40, work)


def test_two_hundred_clients(start):
    server = start()
    clients = [server.connect() for _ in range(200)]
    for client in clients:
        client.send(request("/page.html", ALL))
    codings = []
    for client in clients:
        answer = client.response()
        codings.append(answer["Content-Encoding"])
        assert decode(codings[-1], answer.body) == PAGE
    assert set(codings) <= {*CODINGS, None} and codings.count("zstd") >= 50


# ── the configuration ──


@pytest.mark.parametrize(
    "key, value, words",
    [
        ("Codings", "gzip deflate", 'not "deflate"'),
        ("Codings", "gzip gzip", "each once"),
        ("Codings", "none gzip", 'not "none"'),
        ("ZstdLevel", "0", "from 1 to 12"),
        ("ZstdLevel", "19", "from 1 to 12"),
        ("BrotliLevel", "11", "from 0 to 6"),
        ("GzipLevel", "10", "from 1 to 9"),
        ("MinSize", "small", "MinSize"),
        ("Types", "text/html html", '"html" is not a media type'),
        ("Match", "nothing", "Match"),
        ("CpuLimit", "50", "it belongs in [COMPRESS], in monkey.conf"),
    ],
)
def test_mistakes(tmp_path, root, key, value, words):
    result = run("-c", write_config(tmp_path, root, files=files_of(root, {key: value})), "-t")
    assert result.returncode == 1 and words in result.stderr, result.stderr
    assert re.search(r"default:5:\d+: error:", result.stderr)
    if key == "Types":
        assert "default:5:21: error:" in result.stderr  # at the word itself


@pytest.mark.parametrize("key, value", [("CpuLimit", "101"), ("CpuLimit", "x"), ("Streams", "-1")])
def test_mistakes_of_the_server(tmp_path, root, key, value):
    result = run("-c", write_config(tmp_path, root, files=files_of(root, limits={key: value})), "-t")
    assert result.returncode == 1 and re.search(rf"compress.conf:2:\d+: error: .*{key}", result.stderr), result.stderr


def test_a_section_that_can_never_match(tmp_path, root):
    extra = section("COMPRESS", {"Match": "/a"}) + section("COMPRESS", {"Match": "/a/b"})
    result = run("-c", write_config(tmp_path / "b", root, files=files_of(root, extra=extra)), "-t")
    assert result.returncode == 1 and result.stderr.count("this rule can never match") == 2, result.stderr


def test_not_loaded(tmp_path, root):
    result = run("-c", write_config(tmp_path, root, files=files_of(root, load=LOAD[:-1])), "-t")
    assert result.returncode == 1
    words = '[COMPRESS] belongs to the plugin "compress", which is not loaded: add "Load compress" to plugins.load'
    assert words in result.stderr


# ── a 304 that a handler makes itself ──


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="no plugin dirlisting")
@pytest.mark.parametrize("codings", [None, "gzip"])
def test_a_304_of_a_listing(serve, tmp_path, codings):
    """It has the Vary and the ETag of the 200, so that a cache does not give gzip to a client that takes none."""
    populate(tmp_path / "root", {f"pub/{n}.txt": b"x" for n in range(100)})
    load = ("liana", "static", "dirlisting", "compress")
    config = files_of(tmp_path / "root", load=load, extra=section("DIRLISTING", {}))
    server = serve(root=tmp_path / "root", config=config)
    with server.connect() as client:
        fields = [f"Accept-Encoding: {codings}"] if codings else []
        first = client.ask("/pub/", *fields)
        assert (first.status, first["Content-Encoding"]) == (200, codings)
        again = client.ask("/pub/", f"If-None-Match: {first['ETag']}", *fields)
        assert (again.status, again["ETag"]) == (304, first["ETag"])
        varies = [[value for name, value in answer.fields if name.lower() == "vary"] for answer in (first, again)]
        assert varies == [["Accept", "Accept-Encoding"]] * 2
        assert not again["Content-Type"] and not again["Content-Length"]
