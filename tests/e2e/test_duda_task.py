# SPDX-License-Identifier: Apache-2.0
"""Tasks of services: results, lines, limits, clients that leave, the end of a service, and what the log says."""

import json
import re
import signal
import threading

import pytest

from harness import build
from harness.messages import request
from harness.server import await_true, section
from harness.services import HEAD, build_service, function_of, needs_duda, patched, reload

pytestmark = needs_duda

# Those of ASan come first. It cannot be loaded with -fsanitize=undefined in a service that shall crash.
NO_HANDLERS = {"ASAN_OPTIONS": "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:detect_leaks=0"}

COMMON = (
    HEAD
    + """
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void answer(duda_request_t *dr, const char *text)
{
    response->printf(dr, "%s", text);
    response->end(dr, NULL);
}

static const char *name_of(int err)
{
    static const struct { int err; const char *name; } rows[] = {
        {0, "0"}, {-ETIMEDOUT, "time"}, {-EAGAIN, "again"}, {-EBUSY, "busy"}, {-ECONNABORTED, "reset"},
        {-ECANCELED, "canceled"}, {-ESRCH, "gone"}, {-EPERM, "perm"}, {-EINVAL, "invalid"}, {-EALREADY, "already"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].err == err)
            return rows[i].name;
    }
    return "other";
}
"""
)

RESULTS = COMMON + """
struct job {
    long n, result, thread;
};

static struct job *new_job(long n)
{
    struct job *job = calloc(1, sizeof(*job));
    if (!job)
        abort();
    job->n = n;
    return job;
}

static void add(void *data)
{
    struct job *job = data;
    for (long i = 1; i <= job->n; i++)
        job->result += i;
    job->thread = syscall(SYS_gettid);
}

static bool is_fine(const struct job *job)
{
    return job->result == job->n * (job->n + 1) / 2 && job->thread != syscall(SYS_gettid);
}

/* ── a callback ── */

static void finish(duda_request_t *dr, int result, void *data)
{
    answer(dr, result == 0 && is_fine(data) && worker->index() >= 0 ? "fine" : "wrong");
    free(data);
}

static void handle_callback(duda_request_t *dr)
{
    static const struct duda_task_kind kind = {.fn = add, .done = finish, .drop = free};
    if (!task->start(dr, &kind, new_job(1000)))
        abort();
}

/* ── straight code ── */

static void run(duda_request_t *dr, void *data)
{
    struct job job = {.n = 500};
    (void)data;
    int err = task->run(NULL, add, &job, 10000);
    answer(dr, err == 0 && is_fine(&job) ? "fine" : "wrong");
}

static void handle_run(duda_request_t *dr)
{
    dthread->handle(dr, run, NULL);
}

static void await(duda_request_t *dr, void *data)
{
    static const struct duda_task_kind kind = {.fn = add, .drop = free};
    struct job *job = new_job(100);
    (void)data;
    int err = task->await(&kind, job, 10000);
    answer(dr, err == 0 && is_fine(job) ? "fine" : "wrong");
    if (err == 0)
        free(job);
}

static void handle_await(duda_request_t *dr)
{
    dthread->handle(dr, await, NULL);
}

/* ── many ── */

enum { MANY = 1000 };

static _Thread_local long left;
static _Thread_local bool all_fine;

static void finish_one(duda_request_t *dr, int result, void *data)
{
    all_fine &= result == 0 && is_fine(data);
    free(data);
    if (--left == 0)
        answer(dr, all_fine ? "fine" : "wrong");
}

static void handle_many(duda_request_t *dr)
{
    static const struct duda_task_kind kind = {.fn = add, .done = finish_one, .drop = free};
    left = MANY;
    all_fine = true;
    for (int i = 0; i < MANY; i++) {
        if (!task->start(dr, &kind, new_job(i)))
            abort();
    }
}

/* ── lines ── */

static struct duda_serial_queue *serial;
static _Atomic int n_running; /* tasks of the serial queue that run */
static long order[200];
static _Atomic long n_order;

static void append(void *data)
{
    if (atomic_fetch_add(&n_running, 1) != 0)
        abort();
    order[n_order++] = (long)(intptr_t)data;
    usleep(10);
    atomic_fetch_sub(&n_running, 1);
}

static void check_order(duda_request_t *dr, int result, void *data)
{
    bool fine = result == 0;
    (void)data;
    for (long i = 0; i < n_order; i++)
        fine &= order[i] == i;
    answer(dr, fine && n_order == 200 ? "fine" : "wrong");
    n_order = 0;
}

/* The last one of the serial queue answers. */
static void handle_serial(duda_request_t *dr)
{
    struct duda_task_kind kind = {.fn = append, .serial = serial};
    for (intptr_t i = 0; i < 200; i++) {
        kind.done = i == 199 ? check_order : NULL;
        if (!task->start(i == 199 ? dr : NULL, &kind, (void *)i))
            abort();
    }
}

/* A serial queue for one request, which is freed before its tasks have run. */
static void free_serial(duda_request_t *dr, void *data)
{
    struct duda_serial_queue *own = task->serial_queue();
    struct job *job = new_job(10), last = {.n = 20};
    struct duda_task_kind kind = {.fn = add, .drop = free, .serial = own};
    (void)data;
    if (!own || !task->start(NULL, &kind, job))
        abort();
    int err = task->run(own, add, &last, DUDA_FOREVER);
    task->serial_queue_free(own);
    answer(dr, err == 0 && is_fine(&last) ? "fine" : "wrong");
}

static void handle_free(duda_request_t *dr)
{
    dthread->handle(dr, free_serial, NULL);
}

/* ── mistakes ── */

static void no_task(duda_request_t *dr)
{
    struct duda_task_kind none = {0};
    char text[100];
    int run_err = task->run(NULL, add, NULL, 1), await_err = task->await(NULL, NULL, 1);
    duda_task_t number = task->start(dr, &none, NULL);
    snprintf(text, sizeof(text), "%s %s %d %s %s %s", name_of(run_err), name_of(await_err), number == 0,
             name_of(-errno), name_of(task->cancel(4711)), name_of(task->init(NULL)));
    task->serial_queue_free(NULL);
    answer(dr, text);
}

static void try_nothing(duda_request_t *dr, void *data)
{
    char text[100];
    (void)data;
    snprintf(text, sizeof(text), "%s %s %d", name_of(task->run(NULL, NULL, NULL, 1)),
             name_of(task->run(NULL, add, NULL, 0)), task->stopping());
    answer(dr, text);
}

static void handle_nothing(duda_request_t *dr)
{
    dthread->handle(dr, try_nothing, NULL);
}

DUDA_REGISTER("tests", "results");
int duda_main(void)
{
    struct duda_task_conf large = {.threads = DUDA_TASK_THREADS_MAX + 1}, conf = {.threads = 4, .idle_ms = 100};
    if (task->init(&large) != -EINVAL || task->init(&conf) != 0 || task->init(&conf) != -EALREADY)
        return -1;
    serial = task->serial_queue();
    router->get("/callback", handle_callback);
    router->get("/run", handle_run);
    router->get("/await", handle_await);
    router->get("/many", handle_many);
    router->get("/serial", handle_serial);
    router->get("/free", handle_free);
    router->get("/none", no_task);
    return serial && router->get("/nothing", handle_nothing) ? 0 : -1;
}
"""


def ask(server, path):
    with server.connect() as client:
        response = client.ask(path)
        assert response.status == 200, (path, response)
        return response.body.decode()


def test_results(serve_services):
    server = serve_services({"t": RESULTS}, {"Workers": 1})
    for path in ("callback", "run", "await", "many", "serial", "free"):
        assert ask(server, f"/t/{path}") == "fine", path
    assert ask(server, "/t/none") == "perm invalid 1 invalid gone perm"
    assert ask(server, "/t/nothing") == "invalid again 0"


LATE = HEAD + """
#include <errno.h>

int duda_main(void)
{
    struct duda_task_conf conf = {.threads = 4};
    return task->serial_queue() && task->init(&conf) == -EALREADY ? 0 : -1;
}
"""


def test_limits_that_come_late(serve_services):
    """The first serial queue makes the pool."""
    server = serve_services({"t": LATE}, {"Workers": 1})
    server.wait_log(r"error service t: task->init\(\): it comes after another call, or after the first serial queue")
    with server.connect() as client:
        assert client.ask("/t/").status == 404  # duda_main() has got its result


def test_threads_end_when_they_are_idle(serve_services):
    """There is none before the first task, at most 4 for 1,000 tasks, and none again later."""
    server = serve_services({"t": RESULTS}, {"Workers": 1})
    assert server.threads_named("duda: t") == 0
    for _ in range(3):
        assert ask(server, "/t/many") == "fine"
        assert server.threads_named("duda: t") <= 4
        await_true(lambda: server.threads_named("duda: t") == 0, what="the threads have ended")


ENDS = COMMON + """
static void work(void *data)
{
    (void)data;
}

static void run(duda_request_t *dr, void *data)
{
    int err = 0;
    (void)data;
    for (useconds_t us = 900; us < 1500 && err == 0; us++) {
        usleep(us);
        err = task->run(NULL, work, NULL, 5000);
    }
    answer(dr, name_of(err));
}

static void handle(duda_request_t *dr)
{
    dthread->handle(dr, run, NULL);
}

int duda_main(void)
{
    struct duda_task_conf conf = {.threads = 1, .idle_ms = 1};
    return task->init(&conf) == 0 && router->get("/", handle) ? 0 : -1;
}
"""


def test_tasks_that_come_when_the_thread_ends(serve_services):
    assert ask(serve_services({"t": ENDS}, {"Workers": 1}), "/t/") == "0"


@pytest.mark.concurrent
def test_many_clients(serve_services):
    server = serve_services({"t": RESULTS}, {"Workers": 4})
    wrong = []

    def run():
        with server.connect() as client:
            for _ in range(8):
                for path in ("callback", "run", "await", "free"):
                    got = client.ask(f"/t/{path}").body
                    if got != b"fine":
                        wrong.append((path, got))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ── tasks that block ──

# A task waits for the file FILE; with FILE.stop it also heeds task->stopping().
BLOCKS = COMMON + """
static int version;
static _Atomic long waiting, running, ended, dropped;

struct block {
    int version;
    bool heeds;
};

void wait_for_file(void *data)
{
    struct block *b = data;
    running++;
    while (access(GATE, F_OK) < 0 && !(b->heeds && task->stopping()))
        usleep(1000);
    b->version = version;
    running--;
    ended++;
}

static void drop(void *data)
{
    dropped++;
    free(data);
}

static struct block *new_block(duda_request_t *dr)
{
    struct block *b = calloc(1, sizeof(*b));
    if (!b)
        abort();
    b->heeds = qs->get(dr, "heeds");
    return b;
}

static uint32_t read_timeout(duda_request_t *dr)
{
    const char *late = qs->get(dr, "late");
    return late ? (uint32_t)atoi(late) : DUDA_FOREVER;
}

static void note(const char *what, int result, int number)
{
    msg->info("version %d: %s %s %d", version, what, name_of(result), number);
}

/* ── a callback ── */

static void finish(duda_request_t *dr, int result, void *data)
{
    struct block *b = data;
    note(dr ? "answer" : "no request", result, b->version);
    if (dr)
        answer(dr, name_of(result));
    free(b);
}

static duda_task_t last;

static void handle_callback(duda_request_t *dr)
{
    struct duda_task_kind kind = {.fn = wait_for_file, .done = finish, .drop = drop};
    struct block *b = new_block(dr);
    kind.queue_ms = qs->get(dr, "late") ? read_timeout(dr) : 0;
    last = task->start(dr, &kind, b);
    if (last)
        return;
    free(b);
    answer(dr, name_of(-errno));
}

static void cancel_last(duda_request_t *dr)
{
    const char *n = qs->get(dr, "n"); /* of a first use of a place, as numbers are made */
    answer(dr, name_of(task->cancel(n ? (duda_task_t)1 << 32 | (duda_task_t)atoi(n) : last)));
}

/* ── dthreads ── */

static duda_dthread_t last_dthread;

static void run(duda_request_t *dr, void *data)
{
    struct block b = {0}; /* on the stack */
    uint32_t ms = read_timeout(dr);
    (void)data;
    b.heeds = qs->get(dr, "heeds");
    last_dthread = dthread->running();
    waiting++;
    int err = task->run(NULL, wait_for_file, &b, ms);
    waiting--;
    note("run", err, b.version);
    if (err != -ECONNABORTED && err != -ECANCELED)
        answer(dr, name_of(err));
    else if (err == -ECANCELED && request->validate_request(dr))
        answer(dr, name_of(err));
}

static void handle_run(duda_request_t *dr)
{
    dthread->handle(dr, run, NULL);
}

static void await(duda_request_t *dr, void *data)
{
    static const struct duda_task_kind kind = {.fn = wait_for_file, .drop = drop};
    struct block *b = new_block(dr);
    uint32_t ms = read_timeout(dr);
    (void)data;
    waiting++;
    int err = task->await(&kind, b, ms);
    waiting--;
    note("await", err, err == 0 ? b->version : 0);
    if (err != -ECONNABORTED && err != -ECANCELED)
        answer(dr, name_of(err));
    if (err == 0)
        free(b);
}

static void handle_await(duda_request_t *dr)
{
    dthread->handle(dr, await, NULL);
}

/* Without a request: the service may end meanwhile. */
static void run_alone(void *data)
{
    struct block b = {0};
    (void)data;
    waiting++;
    int err = task->run(NULL, wait_for_file, &b, DUDA_FOREVER);
    waiting--;
    note("alone", err, b.version);
    note("again", task->run(NULL, wait_for_file, &b, DUDA_FOREVER), 0);
}

static void handle_alone(duda_request_t *dr)
{
    dthread->create(run_alone, NULL);
    answer(dr, "begun");
}

static void cancel_dthread(duda_request_t *dr)
{
    answer(dr, name_of(dthread->cancel(last_dthread)));
}

static void count(duda_request_t *dr)
{
    response->printf(dr, "%d: %ld wait, %ld run, %ld ended, %ld dropped", version, waiting, running, ended, dropped);
    response->end(dr, NULL);
}

void crash(void *data)
{
    *(volatile int *)data = 1;
}

static void leave(void *data)
{
    pthread_exit(data);
}

static void handle_crash(duda_request_t *dr)
{
    static const struct duda_task_kind crashes = {.fn = crash}, leaves = {.fn = leave};
    task->start(dr, qs->get(dr, "leaves") ? &leaves : &crashes, (void *)16);
}

DUDA_REGISTER("tests", "blocks");
int duda_main(void)
{
    version = VERSION;
    struct duda_task_conf conf = {.threads = 2, .queue = 3, .slow_ms = 500};
    task->init(&conf);
    router->get("/callback", handle_callback);
    router->get("/cancel", cancel_last);
    router->get("/run", handle_run);
    router->get("/await", handle_await);
    router->get("/alone", handle_alone);
    router->get("/cancel_dthread", cancel_dthread);
    router->get("/crash", handle_crash);
    return router->get("/count", count) ? 0 : -1;
}
"""


@pytest.fixture
def gate(tmp_path):
    """The file for which tasks wait."""
    return tmp_path / "gate"


def blocks(gate, version=1):
    text = BLOCKS.replace("VERSION", f"atoi({patched(version)})").replace("GATE", patched(gate))
    return text.replace("#include <errno.h>", "#include <errno.h>\n#include <pthread.h>")


def serve_blocks(serve_services, gate, **rest):
    return serve_services({"t": blocks(gate)}, {"Workers": 1, "ShutdownTimeout": 1}, **rest)


def begin(server, *paths):
    clients = []
    for path in paths:
        clients.append(server.connect())
        clients[-1].send(request(path))
    return clients


def counts(server):
    version, *numbers = re.findall(r"\d+", ask(server, "/t/count"))
    return int(version), dict(zip(("wait", "run", "ended", "dropped"), map(int, numbers), strict=True))


def await_counts(server, version=1, **expected):
    def has():
        got, numbers = counts(server)
        return got == version and all(numbers[key] == n for key, n in expected.items())

    await_true(has, what=f"{version}: {expected}")


def test_others_are_served_meanwhile(serve_services, gate):
    """Both threads block; the only worker continues with files, and with what needs no thread."""
    sources = {"t": blocks(gate), "r": RESULTS}
    server = serve_services(sources, {"Workers": 1}, keys={"t": {"Console": "/console"}})
    clients = begin(server, "/t/callback", "/t/run", "/t/await")
    await_counts(server, wait=2, run=2)
    assert ask(server, "/r/callback") == "fine"  # another service has threads of its own
    with server.connect() as other:
        assert other.ask("/").status == 200
        assert json.loads(other.ask("/t/console/", "Accept: application/json").body)["tasks"] == {
            "queued": 1,
            "running": 2,
            "done": 0,
            "refused": 0,
        }
        assert "wait for a thread<dd>1<" in other.ask("/t/console/").body.decode()
    gate.touch()
    assert [client.response().body for client in clients] == [b"0"] * 3
    await_counts(server, wait=0, run=0, ended=3, dropped=0)
    for client in clients:
        client.close()


def test_the_queue_is_full(serve_services, gate):
    server = serve_blocks(serve_services, gate, keys={"t": {"Console": "/console"}})
    clients = begin(server, "/t/callback", "/t/callback")
    await_counts(server, run=2)
    clients += begin(server, "/t/callback", "/t/run", "/t/callback")
    await_counts(server, wait=1)

    def tasks():
        return json.loads(server.connect().ask("/t/console/", "Accept: application/json").body)["tasks"]

    await_true(lambda: tasks()["queued"] == 3, what="three wait")
    for path in ("callback", "run", "await"):
        assert ask(server, f"/t/{path}") == "busy", path
    await_counts(server, dropped=1)
    gate.touch()
    assert [client.response().body for client in clients] == [b"0"] * 5
    assert tasks() == {"queued": 0, "running": 0, "done": 5, "refused": 3}


def test_times_in_the_queue(serve_services, gate):
    """What has not begun in time is not called; await() does not wait for what runs either."""
    server = serve_blocks(serve_services, gate)
    clients = begin(server, "/t/callback", "/t/callback")
    await_counts(server, run=2)
    for path in ("callback", "run", "await"):
        assert ask(server, f"/t/{path}?late=100") == "time", path
    await_counts(server, wait=0, run=2, dropped=1)
    gate.touch()
    assert [client.response().body for client in clients] == [b"0"] * 2
    await_counts(server, run=0, ended=2, dropped=1)


def test_times_of_tasks_that_run(serve_services, gate):
    """run() waits for the end, because `data` is on the stack; await() leaves it to the task. Both begin in time."""
    server = serve_blocks(serve_services, gate)
    client, other = begin(server, "/t/run?late=6000", "/t/await?late=6000&heeds")
    assert other.response().body == b"time"  # stopping() ends it
    await_counts(server, wait=1, run=1, ended=1, dropped=1)
    gate.touch()
    assert client.response().body == b"0"
    await_counts(server, ended=2, dropped=1)


def test_cancelling(serve_services, gate):
    server = serve_blocks(serve_services, gate)
    running = begin(server, "/t/callback", "/t/run?heeds")
    await_counts(server, run=2)
    (queued,) = begin(server, "/t/callback")
    assert ask(server, "/t/count") and ask(server, "/t/cancel") == "0"
    assert ask(server, "/t/cancel") == "gone"
    await_counts(server, run=2, dropped=1)
    queued.reset()
    assert ask(server, "/t/cancel_dthread") == "0"  # stopping() ends it, and run() tells
    assert running[1].response().body == b"canceled"
    server.wait_log("version 1: run canceled 1$")
    gate.touch()
    assert running[0].response().body == b"0"


def test_waits_cannot_be_cancelled_by_a_number(serve_services, gate):
    """run() and await() tell no number: one that is guessed means nothing, whether the task runs or waits."""
    server = serve_blocks(serve_services, gate)
    clients = begin(server, "/t/run", "/t/await", "/t/run")
    await_counts(server, wait=3, run=2)
    assert [ask(server, f"/t/cancel?n={n}") for n in (1, 2, 3)] == ["gone"] * 3
    gate.touch()
    assert [client.response().body for client in clients] == [b"0"] * 3


def test_clients_that_leave(serve_services, gate):
    """done() is called; run() waits for the end, await() does not."""
    server = serve_blocks(serve_services, gate)
    first = begin(server, "/t/callback", "/t/run")
    await_counts(server, run=2)
    second = begin(server, "/t/run", "/t/await", "/t/callback")
    await_counts(server, wait=3)
    for client in first + second:
        client.reset()
    server.wait_log("version 1: run reset 0$")  # it had not begun
    server.wait_log("version 1: await reset 0$")
    await_counts(server, wait=1, run=2, dropped=1)
    gate.touch()
    server.wait_log("version 1: no request 0 1$", 2)
    server.wait_log("version 1: run reset 1$")  # it had begun: its data is whole
    await_counts(server, wait=0, run=0, ended=3)


# ── the end of a service ──


def test_a_service_that_is_replaced(serve_services, gate):
    """What runs is waited for, while the new version serves; what has not begun is dropped."""
    server = serve_blocks(serve_services, gate)
    begin(server, "/t/alone", "/t/callback")
    await_counts(server, wait=1, run=2)
    begin(server, "/t/callback", "/t/alone", "/t/await")
    await_counts(server, wait=3)
    build_service(server.services, "t", blocks(gate, 2))
    reload(server)
    server.wait_log("version 1: await reset 0$")  # ShutdownTimeout has cut the requests
    server.wait_log("version 1: alone canceled 0$")  # it had not begun
    server.wait_log("version 1: again canceled 0$")
    await_counts(server, 2, wait=0, run=0)
    with server.connect() as client:
        assert client.ask("/").status == 200
    server.wait_log("service t: it stays in memory: it has ended, but tasks of it run")
    gate.touch()
    server.wait_log("version 1: alone 0 1$")
    server.wait_log("version 1: again canceled 0$", 2)
    await_true(lambda: server.threads_named("duda: t") == 0, what="the threads have ended")

    def is_removed():  # at the first reload after its worker has taken the last result
        return any("service t: its threads have returned" in line for line in reload(server))

    await_true(is_removed, what="the service is not in memory")
    assert ask(server, "/t/callback") == "0"


def test_a_service_that_heeds_its_end(serve_services, gate):
    server = serve_blocks(serve_services, gate)
    clients = begin(server, "/t/callback?heeds", "/t/run?heeds")
    await_counts(server, run=2)
    build_service(server.services, "t", blocks(gate, 2))
    reload(server)
    for client in clients:
        assert client.rest() == b""
    server.wait_log("version 1: run reset 1$")
    await_counts(server, 2, run=0)


@pytest.mark.concurrent
def test_a_service_that_is_replaced_often(serve_services, tmp_path):
    """Tasks run and wait at each reload."""
    gates = [tmp_path / f"gate{number}" for number in range(5)]
    server = serve_services({"t": blocks(gates[0], 0)}, {"Workers": 3, "ShutdownTimeout": 1})
    for number in range(1, 5):
        clients = begin(server, "/t/alone", "/t/callback", "/t/run", "/t/alone")
        await_true(lambda: counts(server)[1]["run"] == 2, what="two run")
        build_service(server.services, "t", blocks(gates[number], number))
        reload(server)
        gates[number - 1].touch()
        server.wait_log(f"version {number - 1}: again", 2)
        for client in clients:
            client.close()
    assert counts(server)[0] == 4


def test_a_stop(serve_services, gate):
    """What ends within a second is waited for."""
    server = serve_blocks(serve_services, gate)
    clients = begin(server, "/t/alone", "/t/callback?heeds", "/t/alone")
    await_counts(server, wait=2, run=2)
    gate.touch()
    server.stop()
    assert len(clients) == 3 and server.log.count("version 1: again ") == 2


def test_a_stop_while_tasks_run_on(serve_services, gate):
    """The server ends, and leaves stacks and data to the threads."""
    server = serve_blocks(serve_services, gate, env={"ASAN_OPTIONS": "detect_leaks=0"})
    begin(server, "/t/alone", "/t/callback", "/t/alone", "/t/callback")
    await_counts(server, wait=2, run=2)
    server.stop()
    assert "service t: it stays in memory: it has ended, but tasks of it run" in server.log
    assert "alone 0 1" not in server.log


def test_a_stop_after_a_reload(serve_services, gate):
    """The old version, which has ended before, holds its worker until the thread ends."""
    server = serve_blocks(serve_services, gate, env={"ASAN_OPTIONS": "detect_leaks=0"})
    begin(server, "/t/alone", "/t/callback")
    await_counts(server, wait=1, run=2)
    build_service(server.services, "t", blocks(gate, 2))
    reload(server)
    server.wait_log("service t: it stays in memory: it has ended, but tasks of it run")
    server.stop()
    assert "alone 0 1" not in server.log


# ── packages ──

SLOW_HEADER = """
#include <duda/package.h>
struct api_slow {
    int (*answer)(duda_request_t *dr);
};
DUDA_PACKAGE(struct api_slow, slow)
"""

# A package with a serial queue for each service, as one for a database has.
SLOW = COMMON + """
#include "slow.h"

static struct duda_package package;
static _Atomic int running;

static void wait_for_file(void *data)
{
    running++;
    msg->info("the task begins in a thread of the package: %d", data == package_state());
    while (access(GATE, F_OK) < 0)
        usleep(1000);
    running--;
}

static void finish(duda_request_t *dr, int result, void *data)
{
    (void)data;
    if (dr)
        answer(dr, name_of(result));
}

static int answer_late(duda_request_t *dr)
{
    struct duda_task_kind kind = {.fn = wait_for_file, .done = finish};
    kind.serial = duda_package_loader->service_state(&package);
    return task->start(dr, &kind, kind.serial) ? 0 : -1;
}

static void *begin(void)
{
    return task->serial_queue();
}

static void end(void *serial)
{
    msg->info("the package ends in the service: %d", running);
    task->serial_queue_free(serial);
}

static void end_worker(struct duda_package_worker *w)
{
    msg->info("the package ends in worker %u: %d", w->index, running);
}

static const struct api_slow table = {answer_late};
static struct duda_package package = {.name = "slow", .version = "1", .api = &table, .abi = DUDA_PACKAGE_ABI,
    .service_start = begin, .service_stop = end, .worker_stop = end_worker};

struct duda_package *duda_package_main(void)
{
    return &package;
}
"""

USER = HEAD + """
#include "slow.h"
int version = VERSION;

static void handle(duda_request_t *dr)
{
    if (slow->answer(dr) < 0)
        abort();
}

static void show(duda_request_t *dr)
{
    response->printf(dr, "%d", version);
    response->end(dr, NULL);
}

int duda_main(void)
{
    duda_load_package(slow, "slow");
    router->get("/", handle);
    return router->get("/version", show) ? 0 : -1;
}
"""


@pytest.mark.single_protocol  # asks how a connection ends
def test_a_package(serve_services, tmp_path, gate):
    """Its tasks belong to the service; worker_stop() comes when they have ended."""
    source = SLOW.replace("GATE", f'"{gate}"')
    source = source.replace("package_state()", "duda_package_loader->service_state(&package)")
    built = build_service(tmp_path / "packages", "slow", source, files={"slow.h": SLOW_HEADER})
    built.rename(tmp_path / "packages" / "slow.dpkg")

    def user(number):
        folder = tmp_path / "services" / "u.src"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "slow.h").write_text(SLOW_HEADER)
        return USER.replace("VERSION", str(number))

    files = {
        "plugins/duda/duda.conf": section(
            "DUDA", {"ServicesRoot": tmp_path / "services", "PackagesRoot": tmp_path / "packages"}
        )
    }
    server = serve_services({"u": user(1)}, {"Workers": 1, "ShutdownTimeout": 1}, files=files)
    (client,) = begin(server, "/u/")
    server.wait_log("the task begins in a thread of the package: 1$")
    build_service(server.services, "u", user(2))
    reload(server)
    assert client.rest() == b""  # ShutdownTimeout has cut the request
    await_true(lambda: ask(server, "/u/version") == "2", what="the new version serves")
    assert "the package ends" not in server.log
    gate.touch()
    server.wait_log("the package ends in worker 0: 0$")
    await_true(lambda: not server.threads_named("duda: u"), what="the thread of the first version has ended")
    reload(server)
    server.wait_log("the package ends in the service: 0$")
    assert ask(server, "/u/") == "0"


# ── the log ──


def test_a_task_that_runs_for_long(serve_services, gate):
    server = serve_blocks(serve_services, gate)
    (client,) = begin(server, "/t/callback")
    place = function_of("t", "wait_for_file")
    pattern = rf'the service "t" has a task that runs for more than 0\.5 s: {place}$'
    server.wait_log(pattern)
    gate.touch()
    assert client.response().body == b"0"
    server.wait_log(r'the task of the service "t" has ended after \d+\.\d s')
    assert len(re.findall(pattern, server.log, re.M)) == 1


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
def test_a_crash(serve_services, gate):
    server = serve_blocks(serve_services, gate, env=NO_HANDLERS)
    server.stopping = True
    begin(server, "/t/crash")
    assert server.wait() == -signal.SIGSEGV
    line = 'error the service "t" has crashed: SIGSEGV at address 0x10 in the task ' + function_of("t", "crash") + "$"
    assert re.search(line, server.log, re.M), server.log


@pytest.mark.skipif(build.SANITIZED, reason="sanitizers have handlers of their own")
def test_a_task_that_ends_its_thread(serve_services, gate):
    server = serve_blocks(serve_services, gate, env=NO_HANDLERS)
    server.stopping = True
    begin(server, "/t/crash?leaves")
    assert server.wait() == -signal.SIGABRT
    assert 'the service "t" has called pthread_exit() in a thread of the server' in server.log
