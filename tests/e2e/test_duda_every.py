# SPDX-License-Identifier: Apache-2.0
"""Functions that run at an interval in one worker of a service: runs that last, reloads, fewer workers, and the end."""

import re
import signal

from harness.server import await_true
from harness.services import NUMBERS_HEAD, build_service, needs_duda, patched, reload

pytestmark = needs_duda

COMMON = NUMBERS_HEAD + """
static atomic_int runs, workers_seen, active, most_active;

static void begin_run(void)
{
    int n = ++active;
    if (n > most_active)
        most_active = n;
    workers_seen |= 1 << worker->index();
}

static void end_run(void)
{
    active--;
    runs++;
}

static void show(duda_request_t *dr)
{
    response->printf(dr, "%d %d %d", runs, workers_seen, most_active);
    response->end(dr, NULL);
}
"""


def show(server, name="web"):
    """Runs, a bit for each worker that had one, and the most at the same time."""
    with server.connect() as client:
        return [int(number) for number in client.ask(f"/{name}/show").body.split()]


def await_runs(server, count):
    await_true(lambda: show(server)[0] >= count)
    return show(server)


SHORT = COMMON + """
static void run(void *data)
{
    begin_run();
    if (data != &runs || !dthread->running())
        abort();
    end_run();
}

static void late(duda_request_t *dr)
{
    answer(dr, event->every(1000, run, NULL));
}

int duda_main(void)
{
    if (event->every(0, run, NULL) != -1 || event->every(1, NULL, NULL) != -1)
        return -1;
    return event->every(5, run, &runs) == 0 && router->get("/show", show) && router->get("/late", late) ? 0 : -1;
}
"""


def test_it_runs_in_one_worker(serve_services):
    server = serve_services({"web": SHORT}, {"Workers": 4})
    _, seen, most = await_runs(server, 20)
    assert seen.bit_count() == 1 and most == 1
    with server.connect() as client:
        assert client.ask("/web/late").body == b"-1"
    server.wait_log(r"event->every\(\): it works only in duda_main\(\)")
    assert server.log.count("event->every(): Invalid argument") == 2


LONG = COMMON + """
static void run(void *data)
{
    begin_run();
    for (int i = 0; i < 10; i++)
        dthread->sleep(3);
    (void)data;
    end_run();
}

int duda_main(void)
{
    return event->every(1, run, NULL) == 0 && router->get("/show", show) ? 0 : -1;
}
"""


def test_runs_do_not_overlap(serve_services):
    """Also at a stop, which comes while one waits."""
    server = serve_services({"web": LONG}, {"Workers": 2})
    _, seen, most = await_runs(server, 5)
    assert seen.bit_count() == 1 and most == 1
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0


# The first worker cannot have it: after a reload it is busy until the first run.
OTHER_FIRST = SHORT.replace("int duda_main(void)\n{\n", """
static void wait_for_a_run(void *data)
{
    (void)data;
    for (int i = 0; !runs && i < 60000; i++)
        usleep(1000);
}

static void begin_worker(void *data)
{
    if (worker->index() == 0)
        event->post(0, wait_for_a_run, data);
}

int duda_main(void)
{
    if (worker->pre_loop(begin_worker, NULL) < 0)
        return -1;
""")


def test_another_worker_continues(serve_services):
    """A reload with fewer workers ends the one that has it."""
    server = serve_services({"web": SHORT}, {"Workers": 3})
    build_service(server.services, "web", OTHER_FIRST)
    reload(server)
    before, seen, _ = await_runs(server, 5)
    assert seen in (2, 4)
    conf = server.conf / "monkey.conf"
    text = conf.read_text()
    conf.write_text(re.sub(r"Workers 3\b", "Workers 1", text))
    assert conf.read_text() != text
    reload(server)
    await_true(lambda: show(server)[1] == seen | 1)
    assert await_runs(server, show(server)[0] + 20)[2] == 1 and show(server)[0] > before


# A task uses the stack of the run until it is released, for longer than the end of the worker waits.
HELD = OTHER_FIRST.replace("!runs", "!has_task").replace("static void run(void *data)\n{\n", """
static atomic_bool has_task, is_released;

static void block(void *data)
{
    has_task = true;
    fprintf(stderr, "task begins\\n");
    while (!is_released)
        usleep(1000);
    (void)data;
}

static void release(duda_request_t *dr)
{
    is_released = true;
    answer(dr, 0);
}

static void run(void *data)
{
    if (worker->index() != 0)
        task->run(NULL, block, NULL, DUDA_FOREVER);
""").replace('router->get("/late", late)', 'router->get("/late", late) && router->get("/release", release)')


def test_another_worker_continues_after_a_task_has_ended(serve_services):
    """The worker that has begun it has ended meanwhile, and the run does not continue."""
    server = serve_services({"web": SHORT}, {"Workers": 2})
    build_service(server.services, "web", HELD)
    reload(server)
    server.wait_log("task begins")
    conf = server.conf / "monkey.conf"
    conf.write_text(conf.read_text().replace("Workers 2", "Workers 1"))
    reload(server)
    await_true(lambda: server.count_workers() == 1)
    with server.connect() as client:
        assert client.ask("/web/release").body == b"0"
    assert await_runs(server, 5)[1] == 1


VERSION = NUMBERS_HEAD + """
static void run(void *data)
{
    fprintf(stderr, "run of %s\\n", (const char *)data);
}

static void hold(duda_request_t *dr)
{
    response->sse_begin(dr, 0);
}

int duda_main(void)
{
    return event->every(5, run, VERSION) == 0 && router->get("/hold", hold) ? 0 : -1;
}
"""


def version(number):
    return f"#define VERSION {patched(number)}\n" + VERSION


def test_a_new_version_begins_its_own(serve_services):
    """The old one, which has a request, begins no run any more; a reload that changes nothing ends nothing."""
    server = serve_services({"web": version("one")}, {"Workers": 2, "ShutdownTimeout": "20s"})
    client = server.connect()
    client.send("GET /web/hold HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.head().status == 200
    server.wait_log("run of one", 3)
    reload(server)
    server.wait_log("run of one", server.log.count("run of one") + 5)
    build_service(server.services, "web", version("two"))
    reload(server)
    server.wait_log("run of two", 200)
    old = server.log.count("run of one")
    server.wait_log("run of two", server.log.count("run of two") + 10)
    assert server.log.count("run of one") == old
    client.reset()
