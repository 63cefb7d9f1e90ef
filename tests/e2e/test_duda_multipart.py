# SPDX-License-Identifier: Apache-2.0
"""Forms with files: bodies of multipart/form-data that a service gets whole, and in pieces."""

import json
import random
import subprocess

import pytest

from harness.services import HEAD, needs_duda
from harness.ways import WAYS

pytestmark = needs_duda

every_way = pytest.mark.parametrize("way", WAYS, indirect=True)

SERVICE = (
    HEAD
    + """
#include <errno.h>

static void print_fields(duda_request_t *dr)
{
    response->printf(dr, "%d fields", form->count(dr));
    for (int i = 0; i < form->count(dr); i++)
        response->printf(dr, " %s=%.40s(%zu)", form->name(dr, i), form->get_id(dr, i), strlen(form->get_id(dr, i)));
    response->printf(dr, "\\n");
}

static unsigned long sum(unsigned long before, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        before = before * 31 + (unsigned char)p[i];
    return before;
}

static void show(duda_request_t *dr)
{
    response->printf(dr, "%d files\\n", multipart->count(dr));
    print_fields(dr);
    for (int i = 0; i < multipart->count(dr); i++) {
        const struct duda_file *f = multipart->get_id(dr, i);
        response->printf(dr, "%s|%s|%s|%zu|%lx\\n", f->name, f->file_name, f->type, f->len, sum(0, f->data, f->len));
    }
    response->end(dr, NULL);
}

static void several(duda_request_t *dr)
{
    const struct duda_file *f;
    int at = 0;
    while ((f = multipart->next(dr, "f", &at)))
        response->printf(dr, "%s ", f->file_name);
    f = multipart->get(dr, "f");
    response->printf(dr, "first %s, %s, %s", f->file_name, multipart->get(dr, "none") ? "?" : "none",
                     multipart->get_id(dr, -1) || multipart->get_id(dr, 99) ? "?" : "none");
    response->end(dr, NULL);
}

struct totals {
    size_t bytes, calls;
    unsigned long sum;
};

static void take(duda_request_t *dr, const struct duda_file *f, bool end, void *data)
{
    struct totals *t = data;
    t->sum = sum(t->sum, f->data, f->len);
    t->bytes += f->len;
    if (!end)
        return;
    response->printf(dr, "%s|%s|%s|%zu|%lx ", f->name, f->file_name, f->type, t->bytes, t->sum);
    print_fields(dr);
    *t = (struct totals){0};
}

static void finish(duda_request_t *dr, void *data)
{
    (void)data;
    response->printf(dr, "end ");
    print_fields(dr);
    response->end(dr, NULL);
}

static void pieces(duda_request_t *dr)
{
    struct totals *t = calloc(1, sizeof(*t));
    gc->add(dr, t);
    int err = multipart->read(dr, 64 << 20, take, finish, t);
    if (err < 0) {
        response->http_status(dr, 415);
        response->printf(dr, "%d", err);
        response->end(dr, NULL);
    } else if (multipart->read(dr, 0, take, finish, t) != -EALREADY) {
        abort();
    }
}

static void small(duda_request_t *dr)
{
    struct totals *t = calloc(1, sizeof(*t));
    gc->add(dr, t);
    multipart->read(dr, 200, take, finish, t);
}

static void refuse_piece(duda_request_t *dr, const struct duda_file *f, bool end, void *data)
{
    (void)f;
    (void)end;
    if ((*(int *)data)++)
        abort(); /* a call after the end of the response */
    response->http_status(dr, 403);
    response->printf(dr, "no");
    response->end(dr, NULL);
}

static void refuse_end(duda_request_t *dr, void *data)
{
    (void)dr;
    (void)data;
    abort();
}

static void refuse(duda_request_t *dr)
{
    int *calls = calloc(1, sizeof(*calls));
    gc->add(dr, calls);
    multipart->read(dr, 0, refuse_piece, refuse_end, calls);
}

static int ask_early(duda_request_t *dr)
{
    if (multipart->count(dr) != 0 || multipart->read(dr, 0, take, finish, NULL) != -EINVAL)
        abort();
    return 0;
}

static void wrong(duda_request_t *dr)
{
    response->printf(dr, "%d %d %d", multipart->read(dr, 0, NULL, finish, NULL) == -EINVAL,
                     multipart->read(dr, 0, take, NULL, NULL) == -EINVAL, multipart->count(NULL) == -EINVAL);
    response->end(dr, NULL);
}

static void leave(duda_request_t *dr, void *data)
{
    (void)dr;
    (void)data;
    msg->info("the client has left");
}

static void wait_for_all(duda_request_t *dr)
{
    request->on_leave(dr, leave, NULL);
    pieces(dr);
    msg->info("the body is read");
}

int duda_main(void)
{
    router->limit(router->post("/show", show), 4 << 20);
    router->limit(router->post("/several", several), 4 << 20);
    router->before(router->post("/early", show), ask_early);
    router->stream_body(router->post("/pieces", pieces));
    router->stream_body(router->post("/small", small));
    router->stream_body(router->post("/refuse", refuse));
    router->stream_body(router->post("/wrong", wrong));
    return router->stream_body(router->post("/leave", wait_for_all));
}
"""
)

TYPE = "Content-Type: multipart/form-data; boundary=xy"


def part(name, content, file=None, kind=None):
    head = f'Content-Disposition: form-data; name="{name}"' + (f'; filename="{file}"' if file is not None else "")
    return "".join([head, f"\r\nContent-Type: {kind}" if kind else "", "\r\n\r\n"]).encode() + content


def body_of(*parts):
    return b"".join(b"--xy\r\n" + each + b"\r\n" for each in parts) + b"--xy--\r\n"


def sum_of(content):
    total = 0
    for byte in content:
        total = (total * 31 + byte) & (2**64 - 1)
    return f"{total:x}"


def row(name, file, kind, content):
    return f"{name}|{file}|{kind}|{len(content)}|{sum_of(content)}"


@pytest.fixture
def way(request):
    return WAYS[getattr(request, "param", "h1")]


@pytest.fixture
def ask(serve_services, tmp_path, way):
    server = way.start(serve_services, tmp_path, {"svc": SERVICE})
    client = server.open()

    def one(target, body, *fields, **rest):
        return client.ask("/svc" + target, *(fields or (TYPE,)), method="POST", body=body, **rest)

    one.server = server
    return one


PHOTO = bytes(range(256)) * 40 + b"\r\n--x\r\n--xz\r\n-"
BODY = body_of(
    part("title", "Grüße".encode()),
    part("photo", PHOTO, "C:\\photos\\a b.png", "image/png"),
    part("empty", b""),
    part("none", b"", ""),
    part("raw", b"", "../e.bin"),
)
FILES = [row("photo", "a b.png", "image/png", PHOTO), row("raw", "e.bin", "application/octet-stream", b"")]


@every_way
def test_a_whole_body(ask):
    got = ask("/show", BODY)
    fields = "2 fields title=Grüße(7) empty=(0)"
    assert (got.status, got.body.decode()) == (200, "\n".join(["2 files", fields, *FILES, ""]))


@every_way
def test_a_body_in_pieces(ask):
    """Fields are there as soon as they have come."""
    got = ask("/pieces", BODY)
    expected = [FILES[0] + " 1 fields title=Grüße(7)"]
    expected += [FILES[1] + " 2 fields title=Grüße(7) empty=(0)", "end 2 fields title=Grüße(7) empty=(0)", ""]
    assert (got.status, got.body.decode().split("\n")) == (200, expected)


def test_a_body_byte_by_byte(ask):
    body = body_of(part("a", b"1"), part("f", b"\r\n--x\r\r\n", "f.txt", "text/plain"))
    with ask.server.connect() as client:
        client.send(b"POST /svc/pieces HTTP/1.1\r\nHost: localhost\r\n" + TYPE.encode() + b"\r\n")
        client.send(b"Transfer-Encoding: chunked\r\n\r\n")
        for i in range(len(body)):
            client.send(b"1\r\n%s\r\n" % body[i : i + 1])
        client.send(b"0\r\n\r\n")
        lines = client.response("POST").body.decode().splitlines()
    assert lines == [row("f", "f.txt", "text/plain", b"\r\n--x\r\r\n") + " 1 fields a=1(1)", "end 1 fields a=1(1)"]


def test_several_files_of_a_field(ask):
    body = body_of(part("f", b"1", "a"), part("g", b"2", "b"), part("f", b"3", "c"))
    assert ask("/several", body).body == b"a c first a, none, none"


def test_a_large_file(ask):
    """Far more than the memory of a request, and text that looks like delimiters in it."""
    content = random.Random(5).randbytes(3_000_000).replace(b"\n", b"\r\n--xz") + b"\r\n--x"
    body = body_of(part("f", content, "large"), part("after", b"x" * 70_000))
    expected = f"f|large|application/octet-stream|{len(content)}|"
    assert ask("/pieces", body).body.decode().startswith(expected + sum_of(content))
    small = content[:2_000_000]
    got = ask("/show", body_of(part("f", small, "large"), part("after", b"x" * 70_000))).body.decode()
    assert got.split("\n")[1:3] == [f"1 fields after={'x' * 40}(70000)", row("f", "large", "application/octet-stream",
                                                                             small)]


# What is wrong with a body, count() of a body that is there whole, and the status of one in pieces.
WRONG = {
    "no delimiter": (b"a=1", -74, 400),
    "the end is missing": (BODY[:-8], -74, 400),
    "a part without a name": (b"--xy\r\n\r\n1\r\n--xy--", -74, 400),
    "a NUL in a field": (body_of(part("a", b"1\x002")), -22, 400),
    "a long head": (body_of(part("a" * 4096, b"1")), -90, 413),
    "many parts": (body_of(*[part("a", b"")] * 1001), -7, 413),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_body(ask, wrong):
    body, count, status = WRONG[wrong]
    assert ask("/show", body).body.decode() == f"{count} files\n{count} fields\n"
    assert ask.server.connect().ask("/svc/pieces", TYPE, method="POST", body=body).status == status
    assert ask("/show", BODY).body.startswith(b"2 files\n")


def test_other_types(ask):
    assert ask("/show", b"a=1", "Content-Type: application/x-www-form-urlencoded").body == b"0 files\n1 fields a=1(1)\n"
    assert ask("/show", b"a=1", "Content-Type: text/plain").body == b"0 files\n0 fields\n"
    assert ask("/show", b"x", "Content-Type: multipart/form-data").body == b"-74 files\n-74 fields\n"
    for kind in ("text/plain", "multipart/form-data", 'multipart/form-data; boundary="a\u00fc"'):
        got = ask("/pieces", b"x", f"Content-Type: {kind}")
        assert (kind, got.status, got.body) == (kind, 415, b"-95")


def test_limits_of_a_body_in_pieces(ask):
    def status(target, body):
        return ask.server.connect().ask("/svc" + target, TYPE, method="POST", body=body).status

    fits = body_of(part("a", b"1"), part("f", b"2", "f"))
    assert (len(fits) <= 200, status("/small", fits)) == (True, 200)
    assert status("/small", body_of(part("a", b"1" * 200))) == 413
    assert status("/pieces", body_of(part("a", b"1" * 200_000), part("b", b"1" * 60_000))) == 200
    assert status("/pieces", body_of(part("a", b"1" * 200_000), part("b", b"1" * 70_000))) == 413
    assert status("/pieces", body_of(part("a", b"1" * 300_000, "file"))) == 200
    assert status("/pieces", body_of(*[part("a", b"1" * 4000)] * 60)) == 200
    assert status("/pieces", body_of(*[part("a" * 3000, b"")] * 80)) == 200
    assert status("/pieces", body_of(*[part("a" * 3000, b"")] * 90)) == 413


def test_many_fields_and_files(ask):
    """Their names and values are not in the memory that the response needs."""
    got = ask("/show", body_of(*[part("a", b"1" * 4000)] * 500))
    assert got.body.startswith(b"0 files\n500 fields ")
    got = ask("/show", body_of(*[part("f", b"", "x" * 2000)] * 900))
    assert got.status == 200 and got.body.startswith(b"900 files\n0 fields\n")


def test_a_response_amid_a_file(ask):
    got = ask.server.connect().ask("/svc/refuse", TYPE, method="POST", body=BODY)
    assert (got.status, got.body) == (403, b"no")
    assert ask("/show", BODY).status == 200


def test_calls_at_the_wrong_time(ask):
    assert ask("/early", BODY).body.startswith(b"2 files\n")
    assert ask("/wrong", BODY).body == b"1 1 1"
    for call in ("read", "count"):
        ask.server.wait_log(rf"warn .*multipart->{call}\(\)")


def test_a_client_that_leaves(ask):
    with ask.server.connect() as client:
        client.send(b"POST /svc/leave HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(BODY))
        client.send(TYPE.encode() + b"\r\n\r\n" + BODY[:300])
        ask.server.wait_log("the body is read")
        client.reset()
    ask.server.wait_log("the client has left")
    assert ask("/show", BODY).status == 200


@pytest.mark.single_protocol
def test_curl(ask, tmp_path):
    """A quote in the name of a file is sent as %22, as browsers do, and it stays."""
    (tmp_path / "a.bin").write_bytes(PHOTO)
    words = ["-F", "photo=@a.bin;filename=x\"y.png;type=image/png", "-F", "other=@a.bin"]
    words += ["--form-string", "title=a\"b\\c;d"]
    url = f"http://127.0.0.1:{ask.server.port}/svc"
    for target in ("/show", "/pieces"):
        done = subprocess.run(["curl", "-sS", *words, url + target], cwd=tmp_path, capture_output=True, check=True)
        text = done.stdout.decode()
        assert row("photo", "x%22y.png", "image/png", PHOTO) in text, json.dumps(text)
        assert row("other", "a.bin", "application/octet-stream", PHOTO) in text, json.dumps(text)
        assert 'title=a"b\\c;d(7)' in text
