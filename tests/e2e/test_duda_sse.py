# SPDX-License-Identifier: Apache-2.0
"""Channels of server-sent events: subscribers in all workers, slow and leaving clients, mistakes, reloads."""

import re
import signal

import pytest

from harness.server import await_true
from harness.services import NUMBERS_HEAD, build_service, needs_duda, reload, version_line

pytestmark = needs_duda

CHANNELS = NUMBERS_HEAD + """
static const char *channel_of(duda_request_t *dr)
{
    return param->get(dr, "channel");
}

static void on_leave(duda_request_t *dr, void *data)
{
    (void)dr, (void)data;
    fprintf(stderr, "left\\n");
}

static void follow(duda_request_t *dr)
{
    request->on_leave(dr, on_leave, NULL);
    response->sse_begin(dr, 0);
    response->sse_send(dr, "begin", NULL, "%d", sse->subscribe(dr, channel_of(dr)));
}

static void follow_two(duda_request_t *dr)
{
    response->sse_begin(dr, 0);
    int first = sse->subscribe(dr, "one"), again = sse->subscribe(dr, "one"), second = sse->subscribe(dr, "two");
    int left = sse->unsubscribe(dr, "one"), gone = sse->unsubscribe(dr, "one");
    response->sse_send(dr, "begin", NULL, "%d %d %d %d %d", first, again, second, left, gone == -ENOENT);
}

static void publish(duda_request_t *dr)
{
    answer(dr, sse->publish(channel_of(dr), "news", "7", "%s\\nsecond", "first"));
}

static void publish_much(duda_request_t *dr)
{
    static char text[200001];
    memset(text, 'x', sizeof(text) - 1);
    answer(dr, sse->publish(channel_of(dr), NULL, NULL, "%s", text));
}

static void count(duda_request_t *dr)
{
    answer(dr, (long)sse->count(channel_of(dr)));
}

static void close_channel(duda_request_t *dr)
{
    answer(dr, sse->close_channel(channel_of(dr)));
}

int duda_main(void)
{
    return router->get("/follow/:channel", follow) && router->get("/two", follow_two) &&
        router->get("/publish/:channel", publish) && router->get("/much/:channel", publish_much) &&
        router->get("/count/:channel", count) && router->get("/close/:channel", close_channel) ? 0 : -1;
}
"""
NEWS = b"event: news\nid: 7\ndata: first\ndata: second"
MUCH = b"data: " + b"x" * 200000


class Stream:
    """The events of a response, without its chunks."""

    def __init__(self, server, target, **rest):
        self.client, self.data = server.connect(**rest), b""
        self.client.send(f"GET /web/{target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert self.client.head().status == 200
        self.begin = self.next().decode().removeprefix("event: begin\ndata: ")

    def next(self):
        """The next event, without the empty line."""
        while b"\n\n" not in self.data:
            size = int(self.client.until(b"\r\n"), 16)
            self.data += self.client.exactly(size)
            assert size and self.client.exactly(2) == b"\r\n"
        event, self.data = self.data.split(b"\n\n", 1)
        return event

    def read_end(self):
        """Nothing but the last chunk follows."""
        assert (self.data, self.client.until(b"\r\n\r\n")) == (b"", b"0")

    def close(self):
        self.client.reset()


def ask(server, target):
    with server.connect() as client:
        return client.ask(f"/web/{target}").body.decode()


def count_to(server, channel, number):
    await_true(lambda: ask(server, f"count/{channel}") == str(number))


def test_an_event_reaches_the_subscribers_in_all_workers(serve_services):
    server = serve_services({"web": CHANNELS}, {"Workers": 2})
    clients, others = [[Stream(server, f"follow/{name}") for _ in range(12)] for name in ("news", "others")]
    assert {client.begin for client in clients} == {"0"} and ask(server, "count/news") == "12"
    assert ask(server, "publish/news") == "0"
    assert [client.next() for client in clients] == [NEWS] * 12
    assert ask(server, "publish/nobody") == "0" and ask(server, "much/others") == "0"
    assert [client.next() for client in others] == [MUCH] * 12  # nothing of the other channel comes before
    for client in clients:
        client.close()
    count_to(server, "news", 0)
    assert ask(server, "count/others") == "12" and ask(server, "publish/news") == "0"
    for client in others:
        client.close()


def test_the_end_of_a_channel(serve_services):
    """In all workers, behind what was published; a client that does not read leaves its channel at once."""
    server = serve_services({"web": CHANNELS}, {"Workers": 2})
    clients = [Stream(server, "follow/news") for _ in range(12)]
    slow = Stream(server, "follow/news", rcvbuf=4096)
    other, two = Stream(server, "follow/others"), Stream(server, "two")
    targets = ("much/news", "publish/news", "close/news", "close/two")
    assert [ask(server, target) for target in targets] == ["0"] * 4
    for client in clients:
        assert (client.next(), client.next()) == (MUCH, NEWS)
        client.read_end()
    two.read_end()
    count_to(server, "news", 0)
    assert ask(server, "count/two") == "0" and ask(server, "count/others") == "1"
    assert (slow.next(), slow.next()) == (MUCH, NEWS)
    slow.read_end()
    again = Stream(server, "follow/news")
    assert ask(server, "publish/news") == ask(server, "publish/others") == ask(server, "close/nobody") == "0"
    assert again.next() == other.next() == NEWS
    again.close()
    other.close()


def test_channels_of_a_request(serve_services):
    server = serve_services({"web": CHANNELS}, {"Workers": 1})
    client = Stream(server, "two")
    assert client.begin == "0 0 0 0 1"
    assert [ask(server, f"count/{name}") for name in ("one", "two")] == ["0", "1"]
    assert ask(server, "much/one") == ask(server, "publish/two") == "0"
    assert client.next() == NEWS
    client.close()


def test_a_client_that_does_not_read_is_cut(serve_services):
    server = serve_services({"web": CHANNELS}, {"Workers": 1})
    slow, fast = Stream(server, "follow/news", rcvbuf=4096), Stream(server, "follow/news")
    sent = 0
    while ask(server, "count/news") == "2":
        assert sent < 60 and ask(server, "much/news") == "0" and fast.next() == MUCH
        sent += 1
    assert "left" not in server.log
    slow.close()
    server.wait_log("left")
    assert ask(server, "publish/news") == "0" and fast.next() == NEWS
    fast.close()


MISTAKES = NUMBERS_HEAD + """
static int in_main;

static void check(duda_request_t *dr)
{
    static char longest[DUDA_SSE_NAME_BYTES + 2], text[DUDA_SSE_EVENT_BYTES];
    int right = in_main == -EPERM;
    memset(longest, 'n', DUDA_SSE_NAME_BYTES + 1);
    memset(text, 't', sizeof(text) - 1);
    right += sse->subscribe(NULL, "a") == -EINVAL;
    right += sse->subscribe(dr, "a") == -EINVAL;
    response->sse_begin(dr, 0);
    right += sse->subscribe(dr, NULL) == -EINVAL && sse->subscribe(dr, "") == -EINVAL;
    right += sse->subscribe(dr, longest) == -EINVAL && sse->subscribe(dr, longest + 1) == 0;
    right += sse->unsubscribe(dr, "") == -EINVAL && sse->count(NULL) == 0 && sse->count("") == 0;
    right += sse->publish("", NULL, NULL, "x") == -EINVAL && sse->publish(NULL, NULL, NULL, "x") == -EINVAL;
    right += sse->publish("a", "x\\ny", NULL, "x") == -EINVAL && sse->publish("a", NULL, "x\\r", "x") == -EINVAL;
    right += sse->publish("a", NULL, NULL, "%s", text) == -EMSGSIZE;
    for (int i = 1; i < DUDA_SSE_CHANNELS_MAX; i++)
        right += sse->subscribe(dr, text + sizeof(text) - 1 - i) == 0;
    right += sse->subscribe(dr, "one more") == -ENOSPC;
    response->sse_send(dr, NULL, NULL, "%d", right);
    response->end(dr, NULL);
    if (sse->subscribe(dr, "late") != -EALREADY)
        abort();
}

int duda_main(void)
{
    in_main = sse->publish("a", NULL, NULL, "x");
    return router->get("/check", check) ? 0 : -1;
}
"""


def test_mistakes(serve_services):
    server = serve_services({"web": MISTAKES}, {"Workers": 1})
    assert ask(server, "check") == f"data: {9 + 15 + 1}\n\n"
    assert "sse->publish(): it works only in callbacks of workers and threads" in server.log
    server.wait_log(r"service web: sse->subscribe\(\):")


THREAD = NUMBERS_HEAD + """
static void *publish(void *arg)
{
    for (int i = 0; !worker->stopping(); i++) {
        if (sse->publish("all", NULL, NULL, "%d", i) == -EAGAIN)
            usleep(1000);
        usleep(sse->count("all") ? 100 : 10000);
    }
    return arg;
}

static void follow(duda_request_t *dr)
{
    response->sse_begin(dr, 0);
    response->sse_send(dr, "begin", NULL, "%d", sse->subscribe(dr, "all"));
}

int duda_main(void)
{
    return router->get("/follow", follow) && worker->spawn(publish, NULL) == 0 ? 0 : -1;
}
"""


def test_a_thread_publishes_until_the_service_ends(serve_services):
    """A new version cuts the streams of the old one; events that wait for its workers are freed."""
    server = serve_services({"web": THREAD}, {"Workers": 2, "ShutdownTimeout": "100ms"})
    old = [Stream(server, "follow") for _ in range(8)]
    assert all(client.next() for client in old)
    build_service(server.services, "web", THREAD + version_line(2))
    reload(server)
    for client in old:
        client.client.assert_gone()
    new = [Stream(server, "follow") for _ in range(8)]
    assert all(client.next() for client in new)
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0


COUNTS = THREAD.replace("""static void *publish(void *arg)
{
""", """static void *publish(void *arg)
{
    while (!worker->stopping())
        sse->count("all");
""")


@pytest.mark.concurrent
def test_a_thread_counts_while_workers_end(serve_services):
    """A worker that has ended has no channels any more."""
    server = serve_services({"web": COUNTS}, {"Workers": 3})
    conf = server.conf / "monkey.conf"
    for number in (1, 3, 1):
        client = Stream(server, "follow")
        client.close()
        conf.write_text(re.sub(r"Workers \d", f"Workers {number}", conf.read_text()))
        reload(server)
