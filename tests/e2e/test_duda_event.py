# SPDX-License-Identifier: Apache-2.0
"""Objects of services without a request: events, workers, global variables, memory, files and logs."""

import signal

import pytest

from harness.server import await_true
from harness.services import NUMBERS_HEAD, build_service, needs_duda, patched, version_line

pytestmark = needs_duda

IN_USE = "the new configuration is in use"

# Functions that most services here need.
COMMON = (
    NUMBERS_HEAD
    + """
#include <sys/eventfd.h>

static inline void answer_later(void *data)
{
    answer(data, 1);
}

static inline int fail(const char *what)
{
    fprintf(stderr, "check failed: %s\\n", what);
    return -1;
}
#define CHECK(fact) \\
    do { \\
        if (!(fact)) \\
            fail(#fact); \\
    } while (0)
"""
)


def ask(server, path):
    with server.connect() as client:
        response = client.ask(path)
        assert response.status == 200, (path, response)
        return response.body.decode()


def ask_each_worker(server, path, count):
    """The answers of all workers: connections are kept open until every worker has one."""
    return {client.ask(path).body.decode() for client in [server.connect() for _ in range(count * 8)]}


def reload(server, count=1):
    server.send_signal(signal.SIGHUP)
    server.wait_log(IN_USE, count)
    server.baseline += 2 * (count == 1)  # the control thread has its own loop


def assert_checks(server):
    assert "check failed" not in server.log, server.log


# ── timers ──

TIMERS = COMMON + """
static duda_timer_t first, second, repeated;
static int fired, ticks;

static void on_never(void *data)
{
    (void)data;
    fail("a cancelled timer was called");
}

static void on_first(void *data)
{
    fired++;
    CHECK(event->cancel(first) == -1); /* it is over */
    CHECK(event->cancel(second) == 0);
    CHECK(event->cancel(second) == -1);
    answer(data, fired);
}

static void start(duda_request_t *dr)
{
    first = event->timer(20, on_first, dr);
    second = event->timer(21, on_never, NULL);
    CHECK(first && second && first != second);
}

static void on_tick(void *data)
{
    (void)data;
    if (++ticks == 3)
        CHECK(event->cancel(repeated) == 0);
}

static void start_interval(duda_request_t *dr)
{
    ticks = 0;
    repeated = event->interval(2, on_tick, NULL);
    CHECK(event->interval(0, on_tick, NULL) == 0);
    CHECK(event->timer(1, NULL, NULL) == 0);
    event->timer(50, answer_later, dr);
}

static void count(duda_request_t *dr)
{
    answer(dr, ticks);
}

static void on_endless_tick(void *data)
{
    (void)data;
    ticks++;
}

static void tick_forever(void *data)
{
    (void)data;
    event->interval(1, on_endless_tick, NULL);
}

int duda_main(void)
{
    CHECK(event->timer(1, on_tick, NULL) == 0);
    return router->get("/start", start) && router->get("/interval", start_interval) && router->get("/ticks", count) &&
           worker->pre_loop(tick_forever, NULL) == 0 ? 0 : -1;
}
"""


def test_timers_fire_once_or_again_until_they_are_cancelled(serve_services):
    quiet = TIMERS.replace("event->interval(1, on_endless_tick, NULL);", "(void)on_endless_tick;")
    server = serve_services({"timers": quiet})
    assert ask(server, "/timers/start") == "1"
    assert ask(server, "/timers/interval") == "1"
    assert ask(server, "/timers/ticks") == "3"
    assert ask(server, "/timers/start") == "2"
    server.wait_log(r"service timers: event->timer\(\): it works only in callbacks of workers")
    server.wait_log(r"service timers: event->interval\(\): Invalid argument")
    assert_checks(server)


def test_timers_continue_through_a_reload_that_leaves_the_service_alone(serve_services):
    server = serve_services({"timers": TIMERS})
    await_true(lambda: int(ask(server, "/timers/ticks")) > 20)
    reload(server)
    before = int(ask(server, "/timers/ticks"))
    assert before > 20
    await_true(lambda: int(ask(server, "/timers/ticks")) > before + 20)
    assert_checks(server)


def test_timers_of_a_replaced_service_end(serve_services):
    server = serve_services({"timers": TIMERS})
    await_true(lambda: int(ask(server, "/timers/ticks")) > 20)
    for count in range(1, 6):
        build_service(server.services, "timers", TIMERS + version_line(count))
        reload(server, count)
        await_true(lambda: int(ask(server, "/timers/ticks")) > 20)
    assert_checks(server)


# ── descriptors ──

DESCRIPTORS = COMMON + """
enum { READ = DUDA_EVENT_READ, LEVEL = DUDA_EVENT_LEVEL_TRIGGERED };
static int ends[2], closes, timeouts;

static int on_close(int fd, void *data)
{
    (void)data;
    CHECK(!event->lookup(fd));
    closes++;
    return DUDA_EVENT_CLOSE;
}

static int on_read(int fd, void *data)
{
    char byte;
    ssize_t n = read(fd, &byte, 1);
    if (n <= 0)
        return DUDA_EVENT_CLOSE;
    answer(data, byte);
    return DUDA_EVENT_OWNED;
}

static int on_timeout(int fd, void *data)
{
    (void)data;
    CHECK(event->lookup(fd));
    if (++timeouts < 3)
        return DUDA_EVENT_CONTINUE;
    return DUDA_EVENT_CLOSE;
}

static void echo(duda_request_t *dr)
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(event->add(ends[0], READ, LEVEL, on_read, NULL, NULL, on_close, NULL, dr) == 0);
    CHECK(event->add(ends[0], READ, LEVEL, on_read, NULL, NULL, NULL, NULL, dr) == -1);
    CHECK(event->lookup(ends[0])->data == dr && event->lookup(ends[0])->mode == DUDA_EVENT_READ);
    CHECK(write(ends[1], "7", 1) == 1);
}

/* The answer comes when the descriptor has been closed. */
static void on_closed(void *data)
{
    if (event->lookup(ends[0]))
        event->timer(1, on_closed, data);
    else
        answer(data, closes);
}

static void hang_up(duda_request_t *dr)
{
    close(ends[1]);
    on_closed(dr);
}

static int on_write(int fd, void *data)
{
    CHECK(event->mode(fd, DUDA_EVENT_SLEEP, LEVEL) == 0);
    CHECK(event->lookup(fd)->mode == DUDA_EVENT_SLEEP);
    CHECK(event->mode(fd, DUDA_EVENT_WAKEUP, DUDA_EVENT_EDGE_TRIGGERED) == 0);
    CHECK(event->lookup(fd)->mode == DUDA_EVENT_RW);
    CHECK(event->delete(fd) == 0 && event->delete(fd) == -1 && !event->lookup(fd));
    close(fd);
    answer(data, 2);
    return DUDA_EVENT_CLOSE;
}

static void modes(duda_request_t *dr)
{
    int fd = eventfd(0, EFD_NONBLOCK);
    CHECK(event->add(fd, DUDA_EVENT_SLEEP, LEVEL, on_read, on_write, NULL, NULL, NULL, dr) == 0);
    CHECK(event->mode(fd, DUDA_EVENT_RW, LEVEL) == 0);
    CHECK(event->mode(fd, 99, LEVEL) == -1);
    CHECK(event->mode(9999, READ, LEVEL) == -1);
}

/* Both are readable in the same turn: the first callback removes and closes both. */
static int pair[2], called;

static int remove_both(int fd, void *data)
{
    (void)fd;
    called++;
    for (int i = 0; i < 2; i++) {
        CHECK(event->delete(pair[i]) == 0);
        close(pair[i]);
    }
    event->timer(5, answer_later, data);
    return DUDA_EVENT_OWNED;
}

static void same_turn(duda_request_t *dr)
{
    for (int i = 0; i < 2; i++) {
        pair[i] = eventfd(1, 0);
        CHECK(event->add(pair[i], READ, LEVEL, remove_both, NULL, NULL, NULL, NULL, dr) == 0);
    }
}

static void calls(duda_request_t *dr)
{
    answer(dr, called);
}

/* A service that closes descriptors without removing them. */
static void careless(duda_request_t *dr)
{
    int fd[2];
    for (int round = 0; round < 3; round++) {
        CHECK(pipe(fd) == 0);
        CHECK(event->add(fd[0], READ, LEVEL, on_read, NULL, NULL, NULL, NULL, dr) == 0);
        close(fd[0]);
        close(fd[1]);
    }
    answer(dr, 3);
}

static void wait_for_timeout(duda_request_t *dr)
{
    ends[0] = eventfd(0, 0);
    closes = timeouts = 0;
    CHECK(event->add(ends[0], READ, LEVEL, on_read, NULL, NULL, on_close, on_timeout, NULL) == 0);
    CHECK(event->timeout(ends[0], 3) == 0 && event->timeout(9999, 3) == -1);
    on_closed(dr);
}

static void count_timeouts(duda_request_t *dr)
{
    answer(dr, timeouts);
}

/* Nothing is there to call. */
static void deaf(duda_request_t *dr)
{
    ends[0] = eventfd(1, 0);
    CHECK(event->add(ends[0], READ, LEVEL, NULL, NULL, NULL, NULL, NULL, NULL) == 0);
    on_closed(dr);
}

static void close_deaf(duda_request_t *dr)
{
    answer(dr, close(ends[0]));
}

/* The service ends with it. */
static void leave(duda_request_t *dr)
{
    static int left;
    if (!left) {
        left = eventfd(0, 0);
        CHECK(event->add(left, READ, LEVEL, on_read, NULL, NULL, NULL, NULL, NULL) == 0);
    }
    answer(dr, 0);
}

static void wrong(duda_request_t *dr)
{
    CHECK(event->add(-1, READ, LEVEL, on_read, NULL, NULL, NULL, NULL, NULL) == -1);
    CHECK(event->add(0, DUDA_EVENT_WAKEUP, LEVEL, on_read, NULL, NULL, NULL, NULL, NULL) == -1);
    CHECK(event->add(0, DUDA_EVENT_READ, 7, on_read, NULL, NULL, NULL, NULL, NULL) == -1);
    answer(dr, 0);
}

int duda_main(void)
{
    CHECK(event->add(0, READ, LEVEL, on_read, NULL, NULL, NULL, NULL, NULL) == -1);
    router->get("/echo", echo);
    router->get("/hangup", hang_up);
    router->get("/modes", modes);
    router->get("/same", same_turn);
    router->get("/calls", calls);
    router->get("/careless", careless);
    router->get("/timeout", wait_for_timeout);
    router->get("/timeouts", count_timeouts);
    router->get("/deaf", deaf);
    router->get("/close-deaf", close_deaf);
    router->get("/leave", leave);
    router->get("/wrong", wrong);
    return 0;
}
"""


@pytest.fixture
def descriptors(serve_services):
    server = serve_services({"fds": DESCRIPTORS})
    yield lambda path: ask(server, f"/fds/{path}"), server
    assert_checks(server)


def test_a_descriptor_is_read_and_closed_when_the_other_side_has_closed(descriptors):
    get, _ = descriptors
    assert get("echo") == "55"
    assert get("hangup") == "1"


def test_a_descriptor_changes_its_mode_and_removes_itself(descriptors):
    assert descriptors[0]("modes") == "2"


def test_a_callback_removes_another_descriptor_of_the_same_turn(descriptors):
    get, _ = descriptors
    assert get("same") == "1"
    assert get("calls") == "1"


def test_a_number_that_was_closed_without_delete_is_taken_again(descriptors):
    get, server = descriptors
    assert get("careless") == "3"
    build_service(server.services, "fds", DESCRIPTORS + version_line(2))
    with server.connect() as client:  # it may have the number that the service has left in its table
        assert client.ask("/fds/calls").status == 200
        reload(server)
        assert client.ask("/fds/calls").status == 200


def test_a_descriptor_times_out(descriptors):
    get, _ = descriptors
    assert get("timeout") == "1"
    assert get("timeouts") == "3"


def test_an_event_without_a_callback_removes_its_descriptor(descriptors):
    get, server = descriptors
    assert get("deaf") == "0"
    server.wait_log("service fds: descriptor [0-9]+ is not watched any more")
    assert get("close-deaf") == "0"


def test_descriptors_that_a_service_leaves_are_removed(descriptors):
    get, server = descriptors
    assert get("leave") == "0"
    server.baseline += 1  # it was never closed
    build_service(server.services, "fds", DESCRIPTORS + version_line(2))
    reload(server)
    assert get("calls") == "0"


def test_wrong_arguments_are_refused(descriptors):
    get, server = descriptors
    assert get("wrong") == "0"
    server.wait_log(r"event->add\(\): Invalid argument", 3)
    server.wait_log(r"event->add\(\): it works only in callbacks of workers")


# ── calls between workers, and threads ──

WORKERS = COMMON + """
static duda_global_t number, destroyed_key, without;
static atomic_int made, destroyed, pre_loops, signals, posts, thread_signals, thread_values, ended;

static void *make(void *data)
{
    return (char *)data + atomic_fetch_add(&made, 1) + 1;
}

static void destroy(void *value)
{
    (void)value;
    atomic_fetch_add(&destroyed, 1);
}

static void on_pre_loop(void *data)
{
    CHECK(data == &pre_loops && global->get(number) && !global->get(without));
    atomic_fetch_add(&pre_loops, 1);
}

static void on_signal(int fd, uint64_t value)
{
    CHECK(fd >= 0 && worker->index() >= 0);
    atomic_fetch_add(&signals, (int)value);
}

static void *listen_to_signals(void *arg)
{
    int fd = event->create_signal_fd();
    uint64_t value;
    CHECK(arg == &thread_signals && worker->index() == -1 && global->get(number));
    CHECK(global->set(without, &value) == 0 && global->get(without) == &value);
    atomic_fetch_add(&thread_values, 1);
    while (read(fd, &value, sizeof(value)) == sizeof(value))
        atomic_fetch_add(&thread_signals, (int)value);
    CHECK(worker->stopping());
    close(fd);
    global->set(without, NULL);
    return NULL;
}

/* Counts what a channel carries, and ends as services of the old API do. */
static atomic_int channel = -1, channel_bytes, loop_seconds;

static void *run_loop(void *arg)
{
    struct duda_event_loop *loop = event->loop_create(8);
    int from, to, rounds = 0;
    (void)arg;
    CHECK(loop && event->loop_channel_create(loop, &from, &to) == 0);
    CHECK(event->loop_add(loop, -1, DUDA_EVENT_READ, NULL) == -1 && event->loop_delete(loop, 9999) == -1);
    CHECK(strcmp(event->loop_backend(), "epoll") == 0);
    int seconds = event->loop_timeout_create(loop, 1);
    CHECK(seconds >= 0 && event->loop_timeout_create(loop, 0) == -1);
    atomic_store(&channel, to);
    for (;;) {
        int n = event->loop_wait(loop);
        for (int i = 0; i < n; i++) {
            char bytes[16];
            CHECK(loop->events[i].mask == DUDA_EVENT_READ && !loop->events[i].data);
            ssize_t got = read(loop->events[i].fd, bytes, sizeof(bytes));
            atomic_fetch_add(loop->events[i].fd == from ? &channel_bytes : &loop_seconds, (int)got);
        }
        if (n >= 0)
            continue;
        CHECK(worker->stopping() && ++rounds == 1); /* the second call does not return */
        close(seconds);
        close(from);
        close(to);
        event->loop_free(loop);
        loop = event->loop_create(1);
        atomic_store(&ended, 1);
        event->loop_free(loop);
        loop = NULL;
        return NULL;
    }
}

static void on_post(void *data)
{
    CHECK(data == &posts && worker->index() >= 0);
    atomic_fetch_add(&posts, 1);
}

static void send_all(duda_request_t *dr)
{
    CHECK(event->signal(5) == 0);
    CHECK(event->post(DUDA_EVENT_ALL_WORKERS, on_post, &posts) == 0);
    CHECK(event->post(0, on_post, &posts) == 0);
    CHECK(event->post(99, on_post, &posts) == -1);
    CHECK(event->post(0, NULL, NULL) == -1);
    char byte = 1;
    CHECK(write(atomic_load(&channel), &byte, 1) == 1);
    answer(dr, 0);
}

static void state(duda_request_t *dr)
{
    response->printf(dr, "made %d pre %d signals %d posts %d thread %d values %d bytes %d count %d", atomic_load(&made),
                     atomic_load(&pre_loops), atomic_load(&signals), atomic_load(&posts), atomic_load(&thread_signals),
                     atomic_load(&thread_values), atomic_load(&channel_bytes), worker->count());
    response->end(dr, NULL);
}

static void seconds(duda_request_t *dr)
{
    answer(dr, atomic_load(&loop_seconds));
}

static void value(duda_request_t *dr)
{
    answer(dr, (long)((char *)global->get(number) - (char *)NULL));
}

static void index_of(duda_request_t *dr)
{
    answer(dr, worker->index());
}

static void wrong(duda_request_t *dr)
{
    duda_global_t none = {0};
    CHECK(!global->get(none) && global->set(none, dr) == -1);
    CHECK(global->init(&none, NULL, NULL) == -1 && worker->spawn(run_loop, NULL) == -1);
    CHECK(worker->pre_loop(on_post, NULL) == -1 && event->set_signal_callback(NULL) == -1);
    CHECK(!worker->stopping());
    answer(dr, 0);
}

int duda_main(void)
{
    CHECK(!global->get(number) && worker->index() == -1 && event->signal(1) == -1);
    CHECK(worker->spawn(NULL, NULL) == -1);
    router->get("/send", send_all);
    router->get("/state", state);
    router->get("/seconds", seconds);
    router->get("/value", value);
    router->get("/index", index_of);
    router->get("/wrong", wrong);
    return global->init(&number, make, NULL) || global->init_destroy(&destroyed_key, make, NULL, destroy) ||
           global->init(&without, NULL, NULL) || worker->pre_loop(on_pre_loop, &pre_loops) ||
           worker->spawn(listen_to_signals, &thread_signals) || worker->spawn(run_loop, NULL) ||
           event->set_signal_callback(on_signal);
}

void duda_exit(void)
{
    fprintf(stderr, "exit: made %d destroyed %d ended %d\\n", made, destroyed, ended);
}
"""


def start_workers(serve_services, **rest):
    server = serve_services({"team": WORKERS}, {"Workers": 3}, **rest)
    await_true(lambda: "values 1 " in ask(server, "/team/state"))
    await_true(lambda: "made 10 pre 3" in ask(server, "/team/state"))  # of two keys, in three workers and two threads
    await_true(lambda: int(ask(server, "/team/seconds")) > 0)  # the private loop is there
    server.drop_clients()
    server.baseline = server.descriptors()  # with those of the threads, which may start late
    return server


def test_signals_and_calls_reach_all_workers_and_threads(serve_services):
    server = start_workers(serve_services)
    ask(server, "/team/send")
    expected = "made 10 pre 3 signals 15 posts 4 thread 5 values 1 bytes 1 count 3"
    await_true(lambda: ask(server, "/team/state") == expected, what=expected)
    assert ask_each_worker(server, "/team/index", 3) == {"0", "1", "2"}
    assert len(ask_each_worker(server, "/team/value", 3)) == 3
    assert_checks(server)


def test_threads_and_values_end_with_the_service(serve_services):
    server = start_workers(serve_services)
    build_service(server.services, "team", WORKERS + version_line(2))
    reload(server)
    server.drop_clients()
    server.wait_log("exit: made 10 destroyed 5 ended 1")
    await_true(lambda: "made 10 pre 3" in ask(server, "/team/state"))
    server.send_signal(signal.SIGTERM)
    server.wait_log("exit: made 10 destroyed 5 ended 1", 2)
    assert_checks(server)


def test_an_unchanged_service_keeps_its_threads_values_and_signals(serve_services):
    server = start_workers(serve_services)
    values = ask_each_worker(server, "/team/value", 3)
    reload(server)
    ask(server, "/team/send")
    expected = "made 10 pre 3 signals 15 posts 4 thread 5 values 1 bytes 1 count 3"
    await_true(lambda: ask(server, "/team/state") == expected, what=expected)
    assert ask_each_worker(server, "/team/value", 3) == values
    assert_checks(server)


def test_calls_at_the_wrong_time_are_refused(serve_services):
    server = start_workers(serve_services)
    assert ask(server, "/team/wrong") == "0"
    server.wait_log(r"team: global->init\(\): it works only in duda_main\(\); the call did nothing, in team.duda")
    server.wait_log(r"team: worker->pre_loop\(\): it works only in duda_main\(\); the call did nothing, in team.duda")
    server.wait_log(r"service team: event->signal\(\): it works only in callbacks of workers and threads")
    server.wait_log(r"service team: global->get\(\): the key was not made by global->init\(\)")
    assert_checks(server)


STUBBORN = COMMON + """
static void *sleep_on(void *arg)
{
    sleep(3600);
    return arg;
}

static void hello(duda_request_t *dr)
{
    answer(dr, 1);
}

int duda_main(void)
{
    router->get("/", hello);
    return worker->spawn(sleep_on, NULL);
}
"""


def test_a_service_stays_in_memory_while_a_thread_of_it_runs(serve_services):
    server = serve_services({"stubborn": STUBBORN})
    assert ask(server, "/stubborn/") == "1"
    build_service(server.services, "stubborn", STUBBORN + version_line(2))
    reload(server)
    server.drop_clients()
    server.wait_log("service stubborn: it stays in memory: it has ended, but 1 of its threads")
    assert ask(server, "/stubborn/") == "1"
    server.baseline = server.descriptors()
    server.stop()


# It does not look at what loop_wait() returns; the loop was made in duda_main().
OLD_THREAD = COMMON + """
static struct duda_event_loop *loop;

static void *run_loop(void *arg)
{
    for (;;) {
        int n = event->loop_wait(loop);
        for (int i = 0; i < n; i++)
            arg = loop->events[i].data;
    }
    return arg;
}

static void hello(duda_request_t *dr)
{
    answer(dr, 1);
}

int duda_main(void)
{
    loop = event->loop_create(4);
    router->get("/", hello);
    return worker->spawn(run_loop, NULL);
}
"""


def test_a_thread_that_waits_on_and_on_is_ended(serve_services):
    server = serve_services({"old": OLD_THREAD})
    server.baseline += 2  # its loop, and what wakes it
    assert ask(server, "/old/") == "1"
    for count in range(1, 4):
        build_service(server.services, "old", OLD_THREAD + version_line(count))
        reload(server, count)
        assert ask(server, "/old/") == "1"
    server.stop()
    assert "it stays in memory" not in server.log


# More calls than an inbox has room for, signals that are not read, and more descriptors than there may be.
LIMITS = COMMON + """
static int calls;

static void on_call(void *data)
{
    if (data)
        answer(data, calls);
    else
        calls++;
}

static void fill(duda_request_t *dr)
{
    int failed = 0;
    for (int i = 0; i < 65536; i++)
        failed += event->post(0, on_call, i == 65535 ? dr : NULL) < 0;
    CHECK(failed == 0 && event->post(0, on_call, NULL) == -1);
    CHECK(event->post(DUDA_EVENT_ALL_WORKERS, on_call, NULL) == -1);
}

static void make_fds(duda_request_t *dr)
{
    int fds[256], n = 0;
    while (n < 256 && (fds[n] = event->create_signal_fd()) >= 0)
        n++;
    CHECK(n == 256 && event->create_signal_fd() == -1);
    for (int i = 0; i < 5000; i++)
        CHECK(event->signal(1) == 0);
    while (n)
        close(fds[--n]);
    CHECK(event->signal(1) == 0); /* finds that they were closed */
    int fd = event->create_signal_fd();
    CHECK(fd >= 0);
    close(fd);
    CHECK(event->signal(1) == 0);
    answer(dr, 256);
}

int duda_main(void)
{
    return router->get("/fill", fill) && router->get("/fds", make_fds) ? 0 : -1;
}
"""


def test_calls_and_signal_descriptors_have_limits(serve_services):
    server = serve_services({"limits": LIMITS})
    assert ask(server, "/limits/fill") == "65535"
    assert ask(server, "/limits/fds") == "256"
    server.wait_log("service limits: a value of event->signal.. is lost")
    assert len([line for line in server.log.splitlines() if "is lost" in line]) == 1
    assert_checks(server)


ENDS_EXCHANGE = COMMON + """
static void ignore(void *data)
{
    (void)data;
}

/* Waits for a file: then the reload is over. */
static void finish(void *data)
{
    static bool finished;
    if (finished || access(SIGNAL, F_OK) < 0)
        return;
    finished = true;
    answer(data, VERSION);
    event->timer(0, ignore, NULL); /* refused if the service has ended here */
    volatile unsigned more = 0; /* the code must still be there: the exchange was the last of its generation */
    for (unsigned i = 0; i < 1000000; i++)
        more += i;
}

static void later(duda_request_t *dr)
{
    event->interval(2, finish, dr);
}

static void now(duda_request_t *dr)
{
    answer(dr, VERSION);
}

int duda_main(void)
{
    return router->get("/later", later) && router->get("/now", now) ? 0 : -1;
}
"""


def test_a_callback_may_end_the_last_exchange_of_its_generation(serve_services, tmp_path):
    def source(version):
        name = patched(f"{tmp_path}/go{version}")
        return f"#define VERSION atoi({patched(version)})\n#define SIGNAL {name}\n" + ENDS_EXCHANGE

    server = serve_services({"slow": source(0)})
    for version in range(1, 8):
        build_service(server.services, "slow", source(version))
        with server.connect() as client:
            client.send(b"GET /slow/later HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert ask(server, "/slow/now") == str(version - 1)  # the first request has begun, too
            reload(server, version)
            (tmp_path / f"go{version - 1}").touch()
            assert client.response().body == str(version - 1).encode()
        server.wait_log("the configuration before the last reload is not in use any more", version)
        assert ask(server, "/slow/now") == str(version)


# ── memory ──

MEMORY = COMMON + """
static int order[4], n, ended;
static int zero, one, two;

static void note(void *ptr)
{
    order[n++] = *(int *)ptr;
}

static void at_end(duda_request_t *dr)
{
    (void)dr;
    CHECK(n == 0); /* memory of the request is still there */
    ended++;
}

static void collect(duda_request_t *dr)
{
    char *text = mem->alloc(16);
    n = 0;
    one = 1;
    two = 2;
    strcpy(text, "collected");
    CHECK(gc->add(dr, text) == 0 && gc->add(dr, NULL) == 0);
    CHECK(gc->add_destroy(dr, &one, note) == 0 && gc->add_destroy(dr, &two, note) == 0);
    char *more = mem->alloc_z(8);
    CHECK(more[7] == 0 && zero == 0);
    more = mem->realloc(more, 4096);
    free(more);
    mem->free(strdup("x"));
    response->print(dr, text, 9);
    response->end(dr, at_end);
}

static void state(duda_request_t *dr)
{
    response->printf(dr, "%d %d%d", ended, order[0], order[1]);
    response->end(dr, NULL);
}

static void collect_many(duda_request_t *dr)
{
    for (int i = 0; i < 20000; i++) {
        char *text = mem->alloc(16);
        CHECK(gc->add(dr, text) == 0);
        response->print(dr, text, sprintf(text, "row %d\\n", i));
    }
    response->end(dr, NULL);
}

static void times(duda_request_t *dr)
{
    char http[DUDA_HTTP_DATE_BYTES], iso[DUDA_ISO_DATE_BYTES];
    int64_t now = xtime->now();
    CHECK(xtime->tomorrow() - now >= 86400 && xtime->tomorrow() - now < 86460);
    CHECK(xtime->next_hours(-2) - now <= -7199 && xtime->ticks_ms() > 0);
    CHECK(!xtime->http_date(0, http, 29) && !xtime->iso_date(0, iso, 20) && !xtime->http_date(INT64_MAX, http, 30));
    response->printf(dr, "%s, %s", xtime->http_date(784111777, http, sizeof(http)),
                     xtime->iso_date(784111777, iso, sizeof(iso)));
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", collect) && router->get("/state", state) && router->get("/times", times) &&
           router->get("/many", collect_many) ? 0 : -1;
}
"""


def test_memory_of_a_request_is_freed_after_its_last_callback(serve_services):
    server = serve_services({"memory": MEMORY})
    assert ask(server, "/memory/") == "collected"
    await_true(lambda: ask(server, "/memory/state") == "1 21")
    assert_checks(server)


def test_memory_of_a_request_has_any_number_of_parts(serve_services):
    server = serve_services({"memory": MEMORY})
    assert ask(server, "/memory/many") == "".join(f"row {n}\n" for n in range(20000))
    assert_checks(server)


def test_times_are_written_as_standards_have_them(serve_services):
    server = serve_services({"memory": MEMORY})
    assert ask(server, "/memory/times") == "Sun, 06 Nov 1994 08:49:37 GMT, 1994-11-06T08:49:37Z"
    assert_checks(server)


# ── files ──

FILES = COMMON + """
static void paths(duda_request_t *dr)
{
    CHECK(!data->locate(dr, "../x") && !data->locate(dr, "a/../../x") && !data->locate(dr, "/etc/passwd"));
    CHECK(!data->locate(dr, "") && !data->locate(dr, "a/.."));
    CHECK(data->set_path("/") == -1 && fconf->set_path("/") == -1); /* too late */
    response->printf(dr, "%s|%s|%s", data->get_path(), data->locate(dr, "a/..b"), fconf->get_path());
    response->end(dr, NULL);
}

static void conf_values(duda_request_t *dr)
{
    struct duda_config *c = fconf->read_conf("shop.conf");
    struct duda_config_section *s = fconf->section_get(c, "shop");
    CHECK(c && s && !fconf->section_get(c, "other") && fconf->section_get(c, "EMPTY"));
    char *name = fconf->section_key(s, "name", DUDA_CONFIG_STR);
    CHECK(!fconf->section_key(s, "missing", DUDA_CONFIG_STR) && !fconf->section_key(s, "name", 9));
    CHECK((long)fconf->section_key(s, "PRICE", DUDA_CONFIG_NUM) == -12);
    CHECK((long)fconf->section_key(s, "open", DUDA_CONFIG_BOOL) == 1);
    CHECK(fconf->section_key(s, "Colours", DUDA_CONFIG_LIST) != NULL);
    CHECK(fconf->get_number(s, "price", 7) == -12 && fconf->get_number(s, "missing", 7) == 7);
    CHECK(fconf->get_number(s, "name", 7) == 7 && fconf->get_bool(s, "price", true));
    CHECK(fconf->get_bool(s, "open", false) && !fconf->get_list(s, "missing"));
    CHECK(strcmp(fconf->get_string(s, "missing", "none"), "none") == 0);
    const char *const *words = fconf->get_list(s, "colours");
    response->printf(dr, "%s|%s|%s|%s", name, words[0], words[1], words[2] ? "more" : "end");
    free(name);
    fconf->free_conf(c);
    fconf->free_conf(NULL);
    response->end(dr, NULL);
}

static void broken(duda_request_t *dr)
{
    CHECK(!fconf->read_conf("broken.conf") && !fconf->read_conf("absent.conf") && !fconf->read_conf("../shop.conf"));
    CHECK(!fconf->read_file("/") && !fconf->read_file("/no/such/file") && !fconf->read_file("/dev/null"));
    answer(dr, 0);
}

static void contents(duda_request_t *dr)
{
    char *text = fconf->read_file(data->locate(dr, "file.txt"));
    CHECK(text && gc->add(dr, text) == 0);
    response->print(dr, text, (int)strlen(text));
    response->end(dr, NULL);
}

int duda_main(void)
{
    CHECK(data->set_path("/no/such/folder") == -1 && fconf->set_path("/dev/null") == -1);
    CHECK(fconf->get_path() && data->get_path());
    router->get("/paths", paths);
    router->get("/values", conf_values);
    router->get("/broken", broken);
    router->get("/contents", contents);
    return 0;
}
"""

SHOP = """# the shop
[SHOP]
    Name    The corner   shop
    Price   -12
\tOpen yes
    Colours red\tblue

[Empty]
"""


@pytest.fixture
def folders(tmp_path):
    """Folders of a service as keys of its section, which end without a slash."""
    keys = {}
    for key, name in {"ConfDir": "conf", "DataDir": "data", "LogDir": "logs"}.items():
        (tmp_path / "own" / name).mkdir(parents=True)
        keys[key] = tmp_path / "own" / name
    return keys


def test_files_of_a_service(serve_services, folders):
    (folders["ConfDir"] / "shop.conf").write_text(SHOP)
    (folders["ConfDir"] / "broken.conf").write_text("[SHOP]\n    Name x\nPrice 1\n")
    (folders["DataDir"] / "file.txt").write_text("x" * 40000)
    server = serve_services({"files": FILES}, keys={"files": folders})
    data, conf = f"{folders['DataDir']}/", f"{folders['ConfDir']}/"
    assert ask(server, "/files/paths") == f"{data}|{data}a/..b|{conf}"
    assert ask(server, "/files/values") == "The corner   shop|red|blue|end"
    assert ask(server, "/files/broken") == "0"
    assert ask(server, "/files/contents") == "x" * 40000
    server.wait_log(rf"service files: {conf}broken.conf:3: a key must be indented")
    server.wait_log(rf"service files: {conf}absent.conf: No such file or directory")
    server.wait_log(r"service files: fconf->read_conf\(\): ../shop.conf: the path leads out of the folder")
    server.wait_log(r"service files: data->set_path\(\): /no/such/folder: No such file or directory")
    server.wait_log(r"service files: fconf->set_path\(\): /dev/null: Not a directory")
    server.wait_log(r'the value "The corner   shop" of the key Name is not a number')
    assert_checks(server)


# ── logs and messages ──

LOGS = COMMON + """
static duda_logger_t visits, never;

static void visit(duda_request_t *dr)
{
    CHECK(logger->print(&visits, "visit %d\\033\\303\\244\\302\\233\\377\\n", 1) == 0); /* ESC, U+E4, CSI, no UTF-8 */
    CHECK(logger->print(&never, "x") == -1);
    answer(dr, 0);
}

static void silent(duda_request_t *dr)
{
    visits.enabled = 0;
    CHECK(logger->print(&visits, "silent") == 0);
    visits.enabled = 1;
    CHECK(logger->create(&never, "late.log") == -1);
    answer(dr, 0);
}

static int lost;

static void count_lost(duda_request_t *dr)
{
    answer(dr, lost);
}

static void messages(duda_request_t *dr)
{
    msg->info("for your %s", "information");
    msg->warn("take care\\n");
    msg->err("it failed");
    msg->bug("this cannot be");
    console->debug(dr, "x is %d", 5);
    console->debug(NULL, "without a request");
    answer(dr, 0);
}

int duda_main(void)
{
    CHECK(logger->create(&never, "../x") == -1 && logger->create(&never, "") == -1 && !never.enabled);
    msg->info("duda_main is here");
    router->get("/visit", visit);
    router->get("/silent", silent);
    router->get("/lost", count_lost);
    router->get("/messages", messages);
#ifdef BIND
    CHECK(conf->bind_messages() == 0);
#endif
    if (logger->create(&visits, "visits.log") < 0)
        return -1;
    logger->print(&visits, "started");
#ifdef FLOOD
    for (int i = 0; i < 1000; i++) /* nothing is written before the first worker runs */
        lost += logger->print(&visits, "%01000d", i) < 0;
#endif
    return 0;
}
"""


def texts(path):
    """The lines of a log without their times."""
    return [line.split(" ", 1)[1] for line in path.read_text().splitlines()] if path.exists() else []


def test_a_log_has_the_lines_of_its_service(serve_services, folders):
    server = serve_services({"logs": LOGS}, keys={"logs": folders})
    log = folders["LogDir"] / "visits.log"
    ask(server, "/logs/visit")
    server.baseline += 1  # the log
    ask(server, "/logs/silent")
    await_true(lambda: texts(log) == ["started", "visit 1\\x1b\u00e4\\xc2\\x9b\\xff"], what="the lines")
    log.rename(folders["LogDir"] / "old.log")
    server.send_signal(signal.SIGUSR1)
    await_true(log.exists, what="the new file")
    ask(server, "/logs/visit")
    await_true(lambda: texts(log) == ["visit 1\\x1b\u00e4\\xc2\\x9b\\xff"], what="the line in the new file")
    server.stop()
    assert not (folders["LogDir"].parent / "x").exists()
    assert_checks(server)


def test_lines_that_are_lost_are_counted(serve_services, folders):
    server = serve_services({"logs": "#define FLOOD\n" + LOGS}, keys={"logs": folders})
    log = folders["LogDir"] / "visits.log"
    lost = int(ask(server, "/logs/lost"))
    assert 700 < lost < 800  # 256 KB of 1,000 lines
    server.baseline += 1
    await_true(lambda: texts(log)[-1:] == [f"{lost} lines were lost"], what="the count")
    assert len(texts(log)) == 1 + 1000 - lost + 1
    ask(server, "/logs/visit")
    await_true(lambda: texts(log)[-1:] == ["visit 1\\x1b\u00e4\\xc2\\x9b\\xff"], what="a line behind it")
    assert_checks(server)


def test_lines_that_wait_are_written_at_the_end(serve_services, folders):
    server = serve_services({"logs": LOGS}, keys={"logs": folders})
    for _ in range(3):
        ask(server, "/logs/visit")
    server.stop()
    assert len(texts(folders["LogDir"] / "visits.log")) == 4


def test_a_log_that_cannot_be_opened_is_an_error_of_the_service(serve_services, folders):
    (folders["LogDir"] / "visits.log").mkdir()
    server = serve_services({"logs": LOGS}, keys={"logs": folders})
    server.wait_log(r"error service logs: logger->create\(\): .*/visits.log: Is a directory")
    server.wait_log(r"duda_main\(\) has returned -1")


def test_logs_survive_swaps(serve_services, folders):
    server = serve_services({"logs": LOGS}, keys={"logs": folders})
    server.baseline += 1
    for count in range(1, 6):
        ask(server, "/logs/visit")
        build_service(server.services, "logs", LOGS + version_line(count))
        reload(server, count)
    server.stop()
    lines = texts(folders["LogDir"] / "visits.log")
    assert lines.count("started") == 6 and lines.count("visit 1\\x1b\u00e4\\xc2\\x9b\\xff") == 5


def test_messages_are_in_the_servers_log(serve_services, folders):
    server = serve_services({"logs": LOGS}, keys={"logs": folders})
    ask(server, "/logs/messages")
    server.wait_log("info  service logs: duda_main is here$")
    server.wait_log("info  service logs: for your information$")
    server.wait_log("warn  service logs: take care$")
    server.wait_log("error service logs: it failed$")
    server.wait_log("error service logs: bug: this cannot be$")
    server.wait_log(r"info  service logs: \[GET /logs/messages\] \[logs.c:\d+\] x is 5$")
    server.wait_log(r"info  service logs: \[logs.c:\d+\] without a request$")
    server.wait_log(r"service logs: logger->create\(\): : the name of a file in LogDir is needed, without a slash")
    assert_checks(server)


def test_messages_are_in_the_services_own_file(serve_services, folders):
    server = serve_services({"logs": "#define BIND\n" + LOGS}, keys={"logs": folders})
    ask(server, "/logs/messages")
    server.stop()
    lines = texts(folders["LogDir"] / "logs.messages")
    assert lines[:4] == ["info: for your information", "warn: take care", "error: it failed", "bug: this cannot be"]
    assert lines[4].startswith("[GET /logs/messages] [logs.c:") and lines[4].endswith("x is 5")
    assert "x is 5" not in server.log and "service logs: it failed" in server.log
    assert_checks(server)


# ── names ──

NAMED = COMMON + """
static void hello(duda_request_t *dr)
{
    response->printf(dr, "%s at \\"%s\\"", self->name.data, self->url.data);
    response->end(dr, NULL);
}

int duda_main(void)
{
    CHECK(conf->service_name("a/b") == -1 && conf->service_name("") == -1 && conf->service_name("..") == -1);
    CHECK(conf->force_redirect() == 0);
    CONFIGURE;
    return router->get("/hello", hello) ? 0 : -1;
}
"""


def test_a_service_chooses_its_name(serve_services):
    server = serve_services({"one": '#define CONFIGURE conf->service_name("other")\n' + NAMED})
    assert ask(server, "/other/hello") == 'other at "/other"'
    with server.connect() as client:
        assert client.ask("/one/hello").status == 404
    server.wait_log(r'service one: conf->service_name\(\): "a/b" cannot be part of a URL')
    assert_checks(server)


def test_a_service_becomes_the_root_of_its_host(serve_services):
    root = '#define CONFIGURE conf->service_root(); conf->service_name("main")\n' + NAMED
    server = serve_services({"first": root, "second": "#define CONFIGURE\n" + NAMED})
    assert ask(server, "/hello") == 'main at ""'
    assert ask(server, "/second/hello") == 'second at "/second"'
    assert_checks(server)
