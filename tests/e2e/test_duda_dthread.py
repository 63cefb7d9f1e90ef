# SPDX-License-Identifier: Apache-2.0
"""Dthreads of services: waits, channels, clients that leave, the end of a service, overflows, and their memory."""

import re
import signal
import threading

import pytest

from harness import build
from harness.messages import request
from harness.server import await_true
from harness.services import NUMBERS_HEAD, build_service, function_of, needs_duda, reload

pytestmark = needs_duda

# Those of ASan come first. It cannot be loaded with -fsanitize=undefined in a service that shall crash.
NO_HANDLERS = {"ASAN_OPTIONS": "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:detect_leaks=0"}

WAITS = NUMBERS_HEAD + """
static _Atomic long waiting, left, ended;

static void sleep_and_answer(duda_request_t *dr, void *data)
{
    waiting++;
    int err = dthread->sleep((uint32_t)(intptr_t)data);
    waiting--;
    if (err == -ECONNABORTED)
        left++;
    else
        answer(dr, err);
    ended++;
}

static void handle_sleep(duda_request_t *dr)
{
    dthread->handle(dr, sleep_and_answer, (void *)(intptr_t)20);
}

/* Longer than any test takes. */
static void handle_long(duda_request_t *dr)
{
    dthread->handle(dr, sleep_and_answer, (void *)(intptr_t)3600000);
}

static void write_late(void *data)
{
    dthread->sleep(10);
    if (write(*(int *)data, "x", 1) != 1)
        abort();
}

/* Reads what another dthread writes to a socket. */
static void read_socket(duda_request_t *dr, void *data)
{
    int fds[2];
    char byte = 0;
    (void)data;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
        abort();
    int early = dthread->poll(fds[0], DUDA_EVENT_READ, 5);
    int room = dthread->poll(fds[0], DUDA_EVENT_RW, 1000);
    duda_dthread_t writer = dthread->create(write_late, &fds[1]);
    int ready = dthread->poll(fds[0], DUDA_EVENT_READ, 10000);
    ssize_t n = read(fds[0], &byte, 1);
    int joined = dthread->join(writer, DUDA_FOREVER);
    close(fds[1]);
    int closed = dthread->poll(fds[0], DUDA_EVENT_READ, 10000);
    response->printf(dr, "%d %d %d %zd %c %d %d", early == -ETIMEDOUT, room, ready, n, byte, joined, closed);
    response->end(dr, NULL);
    close(fds[0]);
}

static void handle_socket(duda_request_t *dr)
{
    dthread->handle(dr, read_socket, NULL);
}

/* Two wait for one descriptor: the second gets an error. */
static void watch_twice(void *data)
{
    int *fd = data;
    *fd = dthread->poll(*fd, DUDA_EVENT_READ, 100);
}

static void share_descriptor(duda_request_t *dr, void *data)
{
    int fds[2];
    (void)data;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
        abort();
    int results[2] = {fds[0], fds[0]};
    duda_dthread_t first = dthread->create(watch_twice, &results[0]);
    duda_dthread_t second = dthread->create(watch_twice, &results[1]);
    dthread->join(first, DUDA_FOREVER);
    dthread->join(second, DUDA_FOREVER);
    response->printf(dr, "%d %d", results[0] == -ETIMEDOUT, results[1] == -EEXIST);
    response->end(dr, NULL);
    close(fds[0]);
    close(fds[1]);
}

static void handle_share(duda_request_t *dr)
{
    dthread->handle(dr, share_descriptor, NULL);
}

struct part {
    struct duda_channel *results;
    long value;
};

static void square(void *data)
{
    struct part *part = data;
    dthread->sleep((uint32_t)(part->value % 5));
    part->value *= part->value;
    dthread->send(part->results, part, DUDA_FOREVER);
}

/* Many dthreads, whose results come in any order through a channel without a buffer. */
static void add_squares(duda_request_t *dr, void *data)
{
    struct part parts[50];
    struct duda_channel *results = dthread->channel(0);
    long sum = 0;
    void *part;
    (void)data;
    for (long i = 0; i < 50; i++) {
        parts[i] = (struct part){results, i};
        dthread->create(square, &parts[i]);
    }
    for (int i = 0; i < 50; i++) {
        if (dthread->receive(results, &part, 10000) == 0)
            sum += ((struct part *)part)->value;
    }
    dthread->channel_free(results);
    answer(dr, sum);
}

static void handle_squares(duda_request_t *dr)
{
    dthread->handle(dr, add_squares, NULL);
}

struct racer {
    struct duda_channel *channel;
    uint32_t ms;
    int err;
};

static void race(void *data)
{
    struct racer *racer = data;
    racer->err = dthread->sleep(racer->ms);
    if (racer->err == 0)
        racer->err = dthread->send(racer->channel, racer, 1000);
}

/* Takes the first of two, and cancels the other. */
static void take_first(duda_request_t *dr, void *data)
{
    struct racer racers[2] = {{dthread->channel(0), 3600000, 1}, {dthread->channel(0), 5, 1}};
    struct duda_channel *channels[2] = {racers[0].channel, racers[1].channel};
    duda_dthread_t ids[2];
    void *value;
    (void)data;
    for (int i = 0; i < 2; i++)
        ids[i] = dthread->create(race, &racers[i]);
    int first = dthread->select(channels, 2, &value, 10000);
    dthread->cancel(ids[0]);
    for (int i = 0; i < 2; i++) {
        dthread->join(ids[i], DUDA_FOREVER);
        dthread->channel_free(channels[i]);
    }
    response->printf(dr, "%d %d %d %d", first, value == &racers[1], racers[0].err == -ECANCELED, racers[1].err);
    response->end(dr, NULL);
}

static void handle_first(duda_request_t *dr)
{
    dthread->handle(dr, take_first, NULL);
}

/* The framework calls it when the response was sent; it cannot wait, although a dthread has sent it. */
static void wait_too_late(duda_request_t *dr)
{
    (void)dr;
    dthread->sleep(1);
}

static void send_with_callback(duda_request_t *dr, void *data)
{
    (void)data;
    response->printf(dr, "sent");
    response->end(dr, wait_too_late);
    dthread->sleep(1);
    ended++;
}

static void handle_late(duda_request_t *dr)
{
    dthread->handle(dr, send_with_callback, NULL);
}

/* A body of any size, from below many frames: the stack has room for what the API needs. */
static void send_much(duda_request_t *dr, void *data)
{
    (void)data;
    for (int i = 0; i < 200; i++) {
        if (response->printf(dr, "%0*d\\n", 999, i) == DUDA_AGAIN)
            response->flush(dr);
        if (i % 20 == 0)
            dthread->yield();
    }
    response->end(dr, NULL);
}

static void handle_much(duda_request_t *dr)
{
    dthread->handle(dr, send_much, NULL);
}

static void abort_response(duda_request_t *dr, void *data)
{
    (void)data;
    response->abort(dr);
    left += dthread->sleep(3600000) == -ECONNABORTED;
    ended++;
}

static void handle_abort(duda_request_t *dr)
{
    dthread->handle(dr, abort_response, NULL);
}

static void count(duda_request_t *dr)
{
    response->printf(dr, "%ld %ld %ld", waiting, left, ended);
    response->end(dr, NULL);
}

DUDA_REGISTER("tests", "waits");
int duda_main(void)
{
    router->get("/sleep", handle_sleep);
    router->get("/long", handle_long);
    router->get("/socket", handle_socket);
    router->get("/share", handle_share);
    router->get("/squares", handle_squares);
    router->get("/first", handle_first);
    router->get("/late", handle_late);
    router->get("/much", handle_much);
    router->get("/abort", handle_abort);
    return router->get("/count", count) ? 0 : -1;
}
"""


def ask(server, path):
    with server.connect() as client:
        response = client.ask(path)
        assert response.status == 200, (path, response)
        return response.body.decode()


def test_waits(serve_services):
    server = serve_services({"t": WAITS}, {"Workers": 1})
    assert ask(server, "/t/sleep") == "0"
    assert ask(server, "/t/socket") == "1 2 1 1 x 0 1"
    assert ask(server, "/t/share") == "1 1"
    assert ask(server, "/t/squares") == str(sum(i * i for i in range(50)))
    assert ask(server, "/t/first") == "1 1 1 0"
    assert ask(server, "/t/much") == "".join(f"{i:0999d}\n" for i in range(200))
    assert ask(server, "/t/count") == "0 0 1"


def test_a_callback_that_waits(serve_services):
    server = serve_services({"t": WAITS}, {"Workers": 1})
    assert ask(server, "/t/late") == "sent"
    server.wait_log(r"service t: dthread->sleep\(\): (only a dthread can wait|a function that the framework calls)")
    await_true(lambda: ask(server, "/t/count") == "0 0 1", what="the dthread has ended")


def test_clients_that_leave(serve_services):
    """The wait fails, and the request is over."""
    server = serve_services({"t": WAITS}, {"Workers": 1})
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        client.send(request("/t/long"))
    await_true(lambda: ask(server, "/t/count") == "20 0 0", what="all wait")
    for client in clients:
        client.reset()
    await_true(lambda: ask(server, "/t/count") == "0 20 20", what="all have left")


def test_streams_that_are_reset(serve_services):
    server = serve_services({"t": WAITS}, {"Workers": 1})
    with server.connect_h2() as client:
        streams = [client.begin("/t/long") for _ in range(10)]
        client.flush()
        await_true(lambda: ask(server, "/t/count") == "10 0 0", what="all wait")
        for stream in streams:
            client.cancel(stream)
        await_true(lambda: ask(server, "/t/count") == "0 10 10", what="all have left")


def test_a_response_that_is_aborted(serve_services):
    server = serve_services({"t": WAITS}, {"Workers": 1})
    with server.connect() as client:
        client.send(request("/t/abort"))
        assert client.rest() == b""
    await_true(lambda: ask(server, "/t/count") == "0 1 1", what="the dthread has ended")


def test_a_handler_that_is_late(serve_services):
    """HandlerTimeout responds, and the dthread is notified."""
    server = serve_services({"t": WAITS}, {"Workers": 1}, host={"HandlerTimeout": "1"})
    with server.connect() as client:
        assert client.ask("/t/long").status == 503
    await_true(lambda: ask(server, "/t/count") == "0 1 1", what="the dthread has ended")


@pytest.mark.concurrent
def test_many_clients(serve_services):
    server = serve_services({"t": WAITS}, {"Workers": 4})
    failures = []

    def run():
        with server.connect() as client:
            for _ in range(8):
                for path, body in ("sleep", "0"), ("squares", "40425"), ("socket", "1 2 1 1 x 0 1"):
                    got = client.ask(f"/t/{path}").body.decode()
                    if got != body:
                        failures.append((path, got))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ── the end of a service ──

ENDS = NUMBERS_HEAD + """
static int number = NUMBER;
static _Atomic long waiting;

static void note(const char *what, int result)
{
    msg->info("version %d: %s %d", number, what, result);
}

static void sleep_long(void *data)
{
    (void)data;
    char *memory = malloc(1000); /* a leak, if it does not end */
    waiting++;
    int err = dthread->sleep(3600000);
    free(memory);
    note("sleep", err);
}

static void receive_long(void *data)
{
    waiting++;
    note("receive", dthread->receive(data, NULL, DUDA_FOREVER));
}

static void poll_long(void *data)
{
    intptr_t fds = (intptr_t)data;
    waiting++;
    note("poll", dthread->poll(fds & 0xffff, DUDA_EVENT_READ, DUDA_FOREVER));
    close(fds & 0xffff);
    close((int)(fds >> 16));
}

static void join_long(void *data)
{
    duda_dthread_t child = dthread->create(sleep_long, data);
    waiting++;
    while (dthread->join(child, DUDA_FOREVER) < 0)
        ;
    note("joined", dthread->alive(child));
}

static void ignore(void *data)
{
    (void)data;
    waiting++;
    for (;;)
        dthread->sleep(1000);
}

static void begin(void *data)
{
    int fds[2];
    (void)data;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        abort();
    dthread->create(sleep_long, NULL);
    dthread->create(receive_long, dthread->channel(0));
    dthread->create(poll_long, (void *)((intptr_t)fds[0] | (intptr_t)fds[1] << 16));
    dthread->create(join_long, NULL);
    if (IGNORES)
        dthread->create(ignore, NULL);
}

static void count(duda_request_t *dr)
{
    answer(dr, waiting * 10 + number);
}

static void answer_late(duda_request_t *dr, void *data)
{
    (void)data;
    waiting++;
    if (dthread->wait(DUDA_FOREVER) == 0)
        answer(dr, 1);
    else
        note("request", 0);
}

static void hold(duda_request_t *dr)
{
    dthread->handle(dr, answer_late, NULL);
}

DUDA_REGISTER("tests", "ends");
int duda_main(void)
{
    worker->pre_loop(begin, NULL);
    router->get("/hold", hold);
    return router->get("/", count) ? 0 : -1;
}
"""


def version(number, ignores=False):
    return ENDS.replace("NUMBER", str(number)).replace("IGNORES", str(int(ignores)))


def assert_ended(server, number):
    for what in (f"version {number}: {text}$" for text in ("sleep -125", "receive -125", "poll -125", "joined 0")):
        server.wait_log(what, 2 if "sleep" in what else 1)


def test_a_service_that_is_replaced(serve_services):
    """Its dthreads get an error and end; those of the new version wait."""
    server = serve_services({"t": version(1)}, {"Workers": 1})
    await_true(lambda: ask(server, "/t/") == "51", what="all wait")
    for number in (2, 3):
        build_service(server.services, "t", version(number))
        reload(server)
        assert_ended(server, number - 1)
        await_true(lambda n=number: ask(server, "/t/") == f"5{n}", what="all wait")
    reload(server)  # the same file: they wait on
    assert ask(server, "/t/") == "53" and "version 3" not in server.log


@pytest.mark.concurrent
def test_a_service_that_is_replaced_often(serve_services):
    server = serve_services({"t": version(0)}, {"Workers": 3})
    for number in range(1, 6):
        build_service(server.services, "t", version(number))
        reload(server)
        ask(server, "/t/")
    await_true(lambda: server.log.count(": joined 0") == 15, what="the dthreads of all workers have ended")


def test_requests_of_a_service_that_is_replaced(serve_services):
    """They are cut after ShutdownTimeout, and their dthreads are notified."""
    server = serve_services({"t": version(1)}, {"Workers": 1, "ShutdownTimeout": 1})
    with server.connect() as client:
        client.send(request("/t/hold"))
        await_true(lambda: ask(server, "/t/") == "61", what="it waits")
        build_service(server.services, "t", version(2))
        reload(server)
        assert client.rest() == b""
    server.wait_log("version 1: request 0$")
    assert_ended(server, 1)


def test_a_stop(serve_services):
    server = serve_services({"t": version(1)}, {"Workers": 2})
    await_true(lambda: ask(server, "/t/") == "101", what="all wait, in both workers")
    server.stop()
    assert server.log.count("version 1: sleep -125") == 4 and server.log.count("joined 0") == 2


def test_a_dthread_that_ignores_the_end(serve_services):
    """It is abandoned, so that the worker continues."""
    server = serve_services({"t": version(1, ignores=True)}, {"Workers": 1})
    await_true(lambda: ask(server, "/t/") == "61", what="all wait")
    build_service(server.services, "t", version(2))
    reload(server)
    server.wait_log("service t: 1 dthreads had not ended although the service has: what they hold is lost")
    assert_ended(server, 1)
    await_true(lambda: ask(server, "/t/") == "52", what="the new version serves")


# ── dthreads that go wrong ──

WRONG = "#include <pthread.h>\n" + NUMBERS_HEAD + """
__attribute__((no_sanitize("undefined", "address", "thread"))) void *overflow(void *from);
__attribute__((no_sanitize("undefined", "address", "thread"))) void *overflow(void *from)
{
    volatile char data[4096];
    data[0] = 1;
    return data[0] ? overflow((void *)&data[1]) : from;
}

void run_over(duda_request_t *dr, void *data);
void run_over(duda_request_t *dr, void *data)
{
    (void)dr;
    overflow(data);
}

void fail(duda_request_t *dr, void *data);
void fail(duda_request_t *dr, void *data)
{
    (void)dr, (void)data;
    *(volatile int *)16 = 1;
}

void wait_for_file(duda_request_t *dr, void *data);
void wait_for_file(duda_request_t *dr, void *data)
{
    (void)data;
    dthread->yield();
    while (access("FILE", F_OK) != 0)
        usleep(1000);
    answer(dr, 1);
}

static void leave_thread(duda_request_t *dr, void *data)
{
    (void)dr;
    pthread_exit(data);
}

static void handle_exit(duda_request_t *dr)
{
    dthread->handle(dr, leave_thread, NULL);
}

static void handle_overflow(duda_request_t *dr)
{
    dthread->handle(dr, run_over, NULL);
}

static void handle_failure(duda_request_t *dr)
{
    dthread->handle(dr, fail, NULL);
}

static void handle_block(duda_request_t *dr)
{
    dthread->handle(dr, wait_for_file, NULL);
}

DUDA_REGISTER("tests", "wrong");
int duda_main(void)
{
    router->get("/exit", handle_exit);
    router->get("/overflow", handle_overflow);
    router->get("/fail", handle_failure);
    return router->get("/block", handle_block) ? 0 : -1;
}
"""


def crash(serve_services, path, number=signal.SIGSEGV):
    server = serve_services({"t": WRONG}, {"Workers": 1}, env=NO_HANDLERS)
    server.stopping = True
    with server.connect() as client:
        client.send(request(path))
        assert server.wait() == -number
    return server.log


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
def test_a_stack_that_overflows(serve_services):
    log = crash(serve_services, "/t/overflow")
    line = (
        r'error the service "t" has crashed: SIGSEGV at address 0x[0-9a-f]+ in worker 0, in the dthread '
        + function_of("t", "run_over") + ", whose stack of (64|256) KB has overflowed$"
    )
    assert re.search(line, log, re.M), log
    assert re.search(r"#\d+ " + function_of("t", "overflow") + "$", log, re.M), log


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
def test_a_crash(serve_services):
    log = crash(serve_services, "/t/fail")
    assert re.search("SIGSEGV at address 0x10 in worker 0, in the dthread " + function_of("t", "fail") + "$", log, re.M)
    assert re.search("#0 " + function_of("t", "fail") + "$", log, re.M), log


@pytest.mark.skipif(build.SANITIZED, reason="sanitizers know nothing of the jump to the stack of the thread")
def test_a_dthread_that_ends_its_thread(serve_services):
    log = crash(serve_services, "/t/exit", signal.SIGABRT)
    assert 'the service "t" has called pthread_exit() in a thread of the server: a callback must return' in log


def test_a_dthread_that_blocks(serve_services, tmp_path):
    server = serve_services({"t": WRONG.replace("FILE", str(tmp_path / "go"))}, {"Workers": 1})
    with server.connect() as client:
        client.send(request("/t/block"))
        pattern = 'the service "t" blocks worker 0 for more than 1 s in the dthread '
        server.wait_log(pattern + function_of("t", "wait_for_file") + ":")
        (tmp_path / "go").touch()
        assert client.response().body == b"1"
    server.wait_log(r'the service "t" has blocked worker 0 for \d+\.\d s, and it continues now')


# ── many ──

MANY = NUMBERS_HEAD + """
static long waiting, failed;

static void wait_long(void *data)
{
    (void)data;
    waiting++;
    int err = dthread->wait(3600000);
    waiting--;
    failed += err != 0 && err != -ECANCELED;
}

static void create_many(duda_request_t *dr)
{
    long most = 0, made = 0;
    param->get_number(dr, "n", &most);
    while (made < most && dthread->create(wait_long, NULL))
        made++;
    answer(dr, made);
}

static void count(duda_request_t *dr)
{
    answer(dr, waiting);
}

DUDA_REGISTER("tests", "many");
int duda_main(void)
{
    router->get("/create/:n", create_many);
    return router->get("/", count) ? 0 : -1;
}
"""


@pytest.mark.budget
@pytest.mark.skipif(build.SANITIZED, reason="stacks are larger")
def test_the_memory_of_10000_that_wait(serve_services):
    """At most 12 KB are resident for each, with all that the server has for it."""
    server = serve_services({"t": MANY}, {"Workers": 1})
    assert ask(server, "/t/create/100") == "100"
    await_true(lambda: ask(server, "/t/") == "100", what="all wait")
    before = server.memory_kb()
    assert ask(server, "/t/create/10000") == "10000"
    await_true(lambda: ask(server, "/t/") == "10100", 30, what="all wait")
    each = (server.memory_kb() - before) / 10000
    print(f"{each:.2f} KB each")
    assert each <= 12


@pytest.mark.slow
def test_the_limit(serve_services):
    """It is met before that of the kernel, and the log says what it is."""
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
        most = int(file.read()) // 4
    if most > 20000 or build.PRESET == "tsan":
        pytest.skip("too many for a test")
    server = serve_services({"t": MANY}, {"Workers": 1})
    assert ask(server, f"/t/create/{most + 1}") == str(most)
    sentence = rf"service t: dthread->create\(\): the process has {most} dthreads, a quarter of vm\.max_map_count"
    server.wait_log(sentence)
    await_true(lambda: ask(server, "/t/") == str(most), 60, what="all wait")
