# SPDX-License-Identifier: Apache-2.0
"""The object `tunnel` of web services, over HTTP/1.1 and HTTP/2, in the clear and by TLS."""

import re
import select
import shutil
import signal
import ssl

import pytest

from harness import frames as f
from harness.client import ProtocolError
from harness.content import cycle
from harness.h2 import StreamReset
from harness.messages import request
from harness.server import await_true
from harness.services import HEAD, build_service, needs_duda, patched, reload, web_service
from harness.ways import WAYS

pytestmark = [needs_duda, pytest.mark.single_protocol]

LAST = patched("old\n")

# Echoes. Logs the end of each tunnel. When the service was replaced it writes LAST.
SERVICE = (
    "#include <errno.h>\n#include <stdio.h>\n#include <strings.h>\n"
    + HEAD
    + r"""
struct echo {
    char kept[4096];
    size_t at, len;
    bool left, over;
};
static void *gc_alloc(duda_request_t *dr, size_t size)
{
    void *p = calloc(1, size);
    if (!p || gc->add(dr, p) < 0)
        abort();
    return p;
}

static _Atomic int open_n, end_n, leave_n, done_n, seen;

static void on_ready(duda_request_t *dr, unsigned events, void *data)
{
    struct echo *e = data;
    if (events & DUDA_TUNNEL_RETIRED) {
        tunnel->write(dr, @LAST@, strlen(@LAST@));
        return;
    }
    if (events & DUDA_TUNNEL_DRAINING) {
        tunnel->write(dr, "bye\n", 4);
        tunnel->end(dr);
        return;
    }
    for (;;) {
        while (e->at < e->len) {
            ssize_t n = tunnel->write(dr, e->kept + e->at, e->len - e->at);
            if (n == -EAGAIN)
                return;
            if (n <= 0) {
                response->abort(dr);
                return;
            }
            e->at += (size_t)n;
        }
        ssize_t n = tunnel->read(dr, e->kept, sizeof(e->kept));
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            tunnel->end(dr);
            tunnel->end(dr);
            return;
        }
        e->at = 0;
        e->len = (size_t)n;
    }
}

static void on_end(duda_request_t *dr, void *data)
{
    struct echo *e = data;
    char byte;
    if (e->over || tunnel->read(dr, &byte, 1) != -EPIPE || tunnel->write(dr, "x", 1) != -EPIPE)
        abort();
    e->over = true;
    end_n++;
    msg->info("tunnel %s ends, %s", request->path(dr), worker->index() >= 0 ? "in a worker" : "elsewhere");
}

static void on_leave(duda_request_t *dr, void *data)
{
    struct echo *e = data;
    (void)dr;
    if (!e->over)
        abort();
    leave_n++;
}

static void on_done(duda_request_t *dr)
{
    (void)dr;
    done_n++;
}

static void open_with(duda_request_t *dr, duda_tunnel_fn ready)
{
    struct echo *e = gc_alloc(dr, sizeof(*e));
    if (tunnel->open(dr, "echo", ready, e) < 0) {
        response->http_status(dr, 426);
        response->http_header(dr, "Upgrade: echo");
        response->end(dr, NULL);
        return;
    }
    open_n++;
    tunnel->on_end(dr, on_end, e);
    request->on_leave(dr, on_leave, e);
    response->on_done(dr, on_done);
}

static void echo(duda_request_t *dr)
{
    response->header(dr, "X-Kind", "%s", "echo");
    open_with(dr, on_ready);
}

static void open_later(duda_request_t *dr, void *data)
{
    (void)data;
    if (dr)
        echo(dr);
}

static void late(duda_request_t *dr)
{
    struct duda_ticket ticket;
    response->ticket(dr, &ticket);
    response->deliver(&ticket, open_later, NULL);
}

/* Ends its side first, then the tunnel with the client's. */
static void on_polite(duda_request_t *dr, unsigned events, void *data)
{
    struct echo *e = data;
    char bytes[64];
    (void)events;
    if (!e->left) {
        e->left = true;
        tunnel->write(dr, "last", 4);
        tunnel->shutdown(dr);
        if (tunnel->write(dr, "x", 1) >= 0)
            abort();
        tunnel->wake(dr);
    }
    for (;;) {
        ssize_t n = tunnel->read(dr, bytes, sizeof(bytes));
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            tunnel->end(dr);
            return;
        }
        seen += (int)n;
    }
}

static void polite(duda_request_t *dr)
{
    open_with(dr, on_polite);
}

static void on_flood(duda_request_t *dr, unsigned events, void *data)
{
    static const char zeros[4096];
    ssize_t n;
    (void)data;
    if (events & DUDA_TUNNEL_RETIRED)
        return;
    while ((n = tunnel->write(dr, zeros, sizeof(zeros))) > 0)
        seen += (int)n;
    if (n != -EAGAIN)
        tunnel->end(dr);
}

static void flood(duda_request_t *dr)
{
    open_with(dr, on_flood);
}

static void on_cut(duda_request_t *dr, unsigned events, void *data)
{
    (void)events;
    (void)data;
    response->abort(dr);
}

static void cut(duda_request_t *dr)
{
    open_with(dr, on_cut);
}

/* Ends it before its head was sent. */
static void brief(duda_request_t *dr)
{
    open_with(dr, on_ready);
    if (tunnel->write(dr, "x", 1) != -EAGAIN)
        abort();
    tunnel->end(dr);
}

static void dropped(duda_request_t *dr)
{
    open_with(dr, on_ready);
    response->abort(dr);
}

static struct duda_ticket pushed_to;

static void open_for_push(duda_request_t *dr)
{
    response->ticket(dr, &pushed_to);
    open_with(dr, on_ready);
}

static void push_bytes(duda_request_t *dr, void *data)
{
    (void)data;
    if (dr)
        tunnel->write(dr, "pushed", 6);
}

static void push(duda_request_t *dr)
{
    response->printf(dr, "%d", response->deliver(&pushed_to, push_bytes, NULL));
    response->end(dr, NULL);
}

static void on_misuse(duda_request_t *dr, unsigned events, void *data)
{
    (void)events;
    tunnel->write(dr, data, strlen(data));
    tunnel->end(dr);
}

static void on_nothing(duda_request_t *dr, void *data)
{
    (void)dr;
    (void)data;
}

static void misuse(duda_request_t *dr)
{
    char *text = gc_alloc(dr, 512), byte;
    int before[] = {
        tunnel->on_end(dr, on_nothing, NULL),  (int)tunnel->read(dr, &byte, 1),   tunnel->shutdown(dr),
        tunnel->open(dr, "echo", NULL, NULL),  tunnel->open(NULL, "echo", on_misuse, NULL),
        tunnel->open(dr, NULL, on_misuse, text), tunnel->open(dr, "a\r\nb", on_misuse, text),
    };
    response->http_header(dr, "Upgrade: other");
    int opened = tunnel->open(dr, "echo", on_misuse, text);
    int after[] = {
        tunnel->open(dr, "echo", on_misuse, text), response->print(dr, "x", 1), response->printf(dr, "x"),
        response->end(dr, NULL),                   response->http_status(dr, 500), response->redirect(dr, 301, "/"),
        response->error(dr, 500),                  response->flush(dr),         response->sse_begin(dr, 0),
        response->header(dr, "A", "b"),            response->wait(dr),          response->headers_off(dr),
    };
    int arguments[] = {(int)tunnel->read(dr, NULL, 1), (int)tunnel->write(dr, NULL, 1), (int)tunnel->write(dr, "", 0)};
    int n = 0;
    for (unsigned i = 0; i < sizeof(before) / sizeof(*before); i++)
        n += sprintf(text + n, "%s ", before[i] == -EINVAL ? "EINVAL" : "?");
    n += sprintf(text + n, "%d ", opened);
    for (unsigned i = 0; i < sizeof(after) / sizeof(*after); i++)
        n += sprintf(text + n, "%s ", after[i] == -EALREADY ? "EALREADY" : "?");
    for (unsigned i = 0; i < sizeof(arguments) / sizeof(*arguments); i++)
        n += sprintf(text + n, "%s ", arguments[i] == -EINVAL ? "EINVAL" : arguments[i] ? "?" : "0");
    sprintf(text + n, ".");
}

static void begun(duda_request_t *dr)
{
    response->printf(dr, "begun");
    response->printf(dr, " %d", tunnel->open(dr, "echo", on_ready, NULL) == -EALREADY);
    response->end(dr, NULL);
}

static int guard(duda_request_t *dr)
{
    open_with(dr, on_ready);
    return 0;
}

static void unreachable(duda_request_t *dr)
{
    (void)dr;
    abort();
}

static void add_header(duda_request_t *dr)
{
    response->header(dr, "X-After", "%d", response->http_status(dr, 500));
}

static void lines(duda_request_t *dr)
{
    const char *name, *value;
    for (unsigned n = 0; request->header_at(dr, n, &name, &value) == 0; n++)
        if (strncasecmp(name, "x-", 2) == 0)
            response->printf(dr, "%s|", value);
    response->printf(dr, "%s", request->header_get(dr, "x-one"));
    response->end(dr, NULL);
}

static void counts(duda_request_t *dr)
{
    response->printf(dr, "open %d end %d leave %d done %d seen %d", open_n, end_n, leave_n, done_n, seen);
    response->end(dr, NULL);
}

int duda_main(void)
{
    router->get("/echo", echo);
    router->get("/late", late);
    router->get("/polite", polite);
    router->get("/flood", flood);
    router->get("/cut", cut);
    router->get("/brief", brief);
    router->get("/dropped", dropped);
    router->get("/open_for_push", open_for_push);
    router->get("/push", push);
    router->get("/misuse", misuse);
    router->get("/begun", begun);
    router->before(router->get("/guarded", unreachable), guard);
    router->after(router->get("/after", echo), add_header);
    router->get("/lines", lines);
    router->get("/counts", counts);
    return 0;
}

void duda_exit(void)
{
    msg->info("exit: open %d end %d done %d", open_n, end_n, done_n);
}
"""
).replace("@LAST@", LAST)


def with_last_bytes(text):
    return SERVICE.replace(LAST, patched(f"{text}\n"))


class Tunnel:
    """A tunnel of a client: the whole connection, or a stream of HTTP/2."""

    def __init__(self, server, way, path="/web/echo", early=b"", **rest):
        self.h2, self.tls = way.h2, way.tls
        self.client = server.open(**rest)
        self.number = None
        if self.h2:
            self.client.ping()
            assert self.client.theirs[f.ENABLE_CONNECT_PROTOCOL] == 1
            self.number = self.client.begin(path, method="CONNECT", protocol="echo", end=False)
            self.head = self.client.head(self.number)
            assert self.head.status == 200 and self.head["Upgrade"] is None
            self.send(early)
            return
        self.client.send(request(path, "Connection: Upgrade", "Upgrade: echo") + early)
        self.text = self.client.until(b"\r\n\r\n")
        assert self.text.startswith(b"HTTP/1.1 101 ")
        assert self.text.count(b"\r\nUpgrade: echo") == 1 and b"\r\nConnection: Upgrade" in self.text
        assert b"Content-Length" not in self.text and b"Transfer-Encoding" not in self.text

    def header(self, name):
        if self.h2:
            return self.head[name]
        found = re.search(rf"^{name}: (.*)$".encode(), self.text, re.M)
        return found and found[1].decode().strip()

    def send(self, data):
        if self.h2:
            self.client.more(self.number, data)
        else:
            self.client.send(data)

    def exactly(self, count):
        return self.client.exactly(count, self.number) if self.h2 else self.client.exactly(count)

    def echo(self, data):
        """Sends it, and reads as much."""
        if self.tls and not self.h2:
            return echo_tls(self.client, data)
        if self.h2:
            self.send(data)
        else:
            self.client.send_in_background(data)
        return self.exactly(len(data))

    def shut(self):
        """Ends the client's side."""
        if self.h2:
            self.client.more(self.number, end=True)
        elif self.tls:
            self.client.sock.unwrap()
        else:
            self.client.shut()

    def rest(self):
        """What comes until the server ends its side in an orderly way."""
        if not self.h2:
            return self.client.rest()
        taken = self.client.streams[self.number].taken
        return self.client.response(self.number).body[taken:]

    def reset(self):
        if self.h2:
            self.client.cancel(self.number)
        else:
            self.client.reset()


def echo_tls(client, data, most=1 << 16):
    """One thread, because libssl wants it so."""
    sock, sent, got = client.sock, 0, bytearray(client.buffer)
    client.buffer = b""
    sock.setblocking(False)
    while sent < len(data) or len(got) < len(data):
        writes = [sock] if sent < len(data) else []
        assert sock.pending() or any(select.select([sock], writes, [], 30)[:2]), f"{sent} out and {len(got)} in"
        try:
            sent += sock.send(data[sent : sent + most]) if writes else 0
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        try:
            got += sock.recv(most)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
    sock.settimeout(30)
    return bytes(got)


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
def start(serve_services, tmp_path, way):
    """A server with the service `web`; start.open(path) opens a tunnel."""

    def begin(settings=None, source=SERVICE, **rest):
        server = way.start(serve_services, tmp_path, {"web": source}, {"Workers": 1, **(settings or {})}, **rest)
        server.tunnel = lambda *args, **more: Tunnel(server, way, *args, **more)
        return server

    return begin


@pytest.fixture
def plain(serve_services, tmp_path):
    def begin(settings=None, source=SERVICE, **rest):
        server = WAYS["h1"].start(serve_services, tmp_path, {"web": source}, settings, **rest)
        server.tunnel = lambda *args, **more: Tunnel(server, WAYS["h1"], *args, **more)
        return server

    return begin


def get_counts(server):
    client = server.open()
    text = client.ask("/web/counts").body.decode()
    client.close()
    return {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", text)}


def await_counts(server, **wanted):
    await_true(lambda: wanted.items() <= get_counts(server).items(), 30, f"{wanted}, after {get_counts(server)}")


# ── bytes ──


def test_echo(start):
    server = start()
    tunnel = server.tunnel(early=b"early ")
    assert tunnel.exactly(6) == b"early " and tunnel.header("X-Kind") == "echo"
    for data in (b"a", b"x" * 10_000, cycle(500_000)):
        assert tunnel.echo(data) == data
    tunnel.shut()
    if tunnel.h2 or not tunnel.tls:
        assert tunnel.rest() == b""
    server.wait_log("service web: tunnel /web/echo ends, in a worker")
    await_counts(server, open=1, end=1, leave=0, done=1)


@pytest.mark.parametrize("path", ["/web/late", "/web/guarded", "/web/after"])
def test_where_it_is_opened(start, path):
    """In a later callback, or by a callback before the handler; those after the handler may still add headers."""
    tunnel = start().tunnel(path)
    assert tunnel.echo(b"hello") == b"hello"
    assert tunnel.header("X-After") == ("-114" if path == "/web/after" else None)  # -EALREADY: the status stays


def test_the_service_ends_its_side_first(start, way):
    server = start()
    tunnel = server.tunnel("/web/polite")
    assert tunnel.exactly(4) == b"last"
    if way.tls and not way.h2:
        tunnel.client.close()
    else:
        tunnel.send(b"seen")
        await_counts(server, seen=4)
        tunnel.shut()
    await_counts(server, end=1, done=1)


@pytest.mark.parametrize("fields", [(), ("Upgrade: echo",), ("Connection: Upgrade",)])
def test_no_upgrade(plain, fields):
    client = plain().open()
    assert client.ask("/web/echo", *fields).status == 426
    assert client.ask("/web/counts").body == b"open 0 end 0 leave 0 done 0 seen 0"


def test_no_upgrade_over_http_2(start, way):
    if way.h2:
        assert start().open().ask("/web/echo").status == 426


def test_a_response_that_has_begun(plain):
    client = plain().open()
    assert client.ask("/web/begun", "Connection: Upgrade", "Upgrade: echo").body == b"begun 1"


def test_mistakes(plain):
    server = plain()
    tunnel = server.tunnel("/web/misuse")
    wanted = ["EINVAL"] * 7 + ["0"] + ["EALREADY"] * 12 + ["EINVAL", "EINVAL", "0", "."]
    assert tunnel.rest().decode().split(" ") == wanted
    server.wait_log(r"service web: tunnel->on_end\(\): the request is no tunnel: call tunnel->open\(\) before")


def test_a_response_function_is_refused_with_a_sentence(plain):
    source = SERVICE.replace("static void echo(duda_request_t *dr)\n{", "static void echo(duda_request_t *dr)\n{\n"
                             '    if (request->header_get(dr, "x-print")) {\n        open_with(dr, on_ready);\n'
                             '        response->print(dr, "x", 1);\n        return;\n    }')  # fmt: skip
    server = plain(source=source)
    client = server.open()
    client.send(request("/web/echo", "Connection: Upgrade", "Upgrade: echo", "X-Print: 1"))
    assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    server.wait_log(r"service web: response->print\(\): the request is a tunnel since tunnel->open\(\)")


def test_lines_of_the_same_name(start):
    """A service sees each line, and their values joined."""
    body = start().open().ask("/web/lines", "X-One: a", "X-Two: b", "X-One: c, d", "X-One: e").body
    assert body == b"a|b|c, d|e|a, c, d, e"


# ── the end ──


STATES = {
    "quiet": ("/web/echo", lambda t: None),
    "after bytes": ("/web/echo", lambda t: t.echo(b"x" * 5000)),
    "bytes wait for the client": ("/web/flood", lambda t: t.exactly(1)),
    "the service has ended its side": ("/web/polite", lambda t: t.exactly(4)),
    "opened late": ("/web/late", lambda t: None),
}


@pytest.mark.parametrize("state", STATES)
def test_the_client_resets(start, state):
    server = start()
    path, prepare = STATES[state]
    tunnel = server.tunnel(path)
    prepare(tunnel)
    tunnel.reset()
    await_counts(server, open=1, end=1, done=1)
    server.wait_log(f"tunnel {path} ends, in a worker")


def test_the_service_cuts(start, way):
    server = start()
    tunnel = server.tunnel("/web/cut")
    if way.h2:
        with pytest.raises(StreamReset):
            tunnel.rest()
    else:
        with pytest.raises((OSError, ProtocolError)):
            tunnel.exactly(1)
    await_counts(server, end=1, leave=0, done=1)


def test_it_ends_before_its_head_is_sent(start):
    server = start()
    tunnel = server.tunnel("/web/brief")
    if tunnel.h2 or not tunnel.tls:
        assert tunnel.rest() == b""
    await_counts(server, open=1, end=1, leave=0, done=1)


def test_it_is_cut_before_its_head_is_sent(start):
    server = start()
    with pytest.raises((OSError, ProtocolError)):
        server.tunnel("/web/dropped")
    await_counts(server, open=1, end=1, leave=0, done=1)


def test_a_ticket_of_a_tunnel(start):
    server = start()
    tunnel = server.tunnel("/web/open_for_push")
    for _ in range(3):
        assert server.open().ask("/web/push").body == b"0"
        assert tunnel.exactly(6) == b"pushed"
    tunnel.reset()
    await_counts(server, end=1)
    assert server.open().ask("/web/push").body == b"0"


def test_silence(start):
    server = start({"TunnelTimeout": "1s"})
    tunnel = server.tunnel(early=b"a")
    assert tunnel.exactly(1) == b"a"
    await_counts(server, end=1, leave=1, done=1)


def test_a_stop(start):
    server = start()
    tunnel = server.tunnel()
    assert tunnel.echo(b"a") == b"a"
    server.send_signal(signal.SIGTERM)
    assert tunnel.exactly(4) == b"bye\n"
    server.wait_log("service web: exit: open 1 end 1 done 1")
    assert server.wait() == 0


def test_a_reload_that_changes_nothing(start):
    server = start({"ShutdownTimeout": "100ms"})
    tunnel = server.tunnel()
    for _ in range(3):
        reload(server)
        assert tunnel.echo(b"still here") == b"still here"
    tunnel.reset()
    await_counts(server, open=1, end=1)


def replace(server, text):
    """Deploys another version, and has it served."""
    build_service(server.services, "web", with_last_bytes(text))
    return reload(server)


@pytest.mark.parametrize("path", ["/web/echo", "/web/late"])
def test_a_new_version(start, path):
    """The tunnels of the old one end after ShutdownTimeout, with what it still writes."""
    server = start({"ShutdownTimeout": "300ms"})
    tunnel = server.tunnel(path)
    assert tunnel.echo(b"a") == b"a"
    replace(server, "v2")
    newer = server.tunnel()
    assert tunnel.exactly(4) == b"old\n"
    if tunnel.h2 or not tunnel.tls:
        assert tunnel.rest() == b""
    server.wait_log("service web: exit: open 1 end 1 done 1")
    assert newer.echo(b"b") == b"b"


def test_a_new_version_whose_client_does_not_read(start, way):
    """It cannot keep the old version: the tunnel is cut."""
    rest = {"window": 1000, "credit": False} if way.h2 else {"rcvbuf": 4096}
    server = start({"ShutdownTimeout": "300ms"})
    server.tunnel("/web/flood", **rest)
    await_true(lambda: get_counts(server)["seen"] > 1000, 30, "bytes that wait")
    replace(server, "v2")
    server.wait_log("service web: exit: open 1 end 1 done 1")


def test_a_service_that_is_removed(plain):
    server = plain({"ShutdownTimeout": "200ms"})
    tunnel = server.tunnel()
    site = server.conf / "sites" / "default"
    site.write_text(site.read_text().replace(web_service("web"), ""))
    reload(server)
    assert tunnel.rest() == b"old\n"
    server.wait_log("service web: exit: open 1 end 1 done 1")


@pytest.mark.parametrize("turns", [pytest.param(14, marks=pytest.mark.load), pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", ["h1", "h2-tls"], indirect=True)
def test_many_tunnels_over_reloads(start, tmp_path, turns):
    """Each instance has ended all of its tunnels when it ends."""
    server = start({"ShutdownTimeout": "100ms", "Workers": 2})
    versions = [build_service(tmp_path, name, with_last_bytes(name)) for name in ("odd", "even")]
    for turn in range(turns):
        tunnels = [server.tunnel() for _ in range(20)]
        for tunnel in tunnels[:10]:
            assert tunnel.echo(b"abc") == b"abc"
        for tunnel in tunnels[::4]:
            tunnel.reset()
        if turn % 2:
            shutil.copy(versions[turn // 2 % 2], tmp_path / "new")
            (tmp_path / "new").rename(server.services / "web.duda")
        reload(server)
        for tunnel in tunnels[1::4]:
            tunnel.client.close()
    replace(server, "last")
    ends = server.wait_log(r"service web: exit: (open \d+ end \d+ done \d+)", turns // 2 + 1)
    numbers = [list(map(int, re.findall(r"\d+", end[1]))) for end in ends]
    assert all(n[0] == n[1] == n[2] for n in numbers) and sum(n[0] for n in numbers) == turns * 20, numbers
