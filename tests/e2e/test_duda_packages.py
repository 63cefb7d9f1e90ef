# SPDX-License-Identifier: Apache-2.0
"""Packages of web services: shared objects of PackagesRoot that duda_main() loads."""

import re

import pytest

from harness import build
from harness.messages import request
from harness.server import section
from harness.services import HEAD, build_service, needs_duda, reload

pytestmark = needs_duda

DICE_HEADER = """
#include <duda/package.h>
struct api_dice {
    int (*roll)(void);
    int (*say)(duda_request_t *dr);
};
DUDA_PACKAGE(struct api_dice, dice)
"""

# It answers by itself: packages have the objects of the API.
DICE = """
#include <duda/duda.h>
#include "dice.h"
static int rolls;
static int roll_dice(void)
{
    return ++rolls;
}
static int say_roll(duda_request_t *dr)
{
    return response->printf(dr, "roll %d", roll_dice());
}
static const struct api_dice table = {roll_dice, say_roll};
DUDA_PACKAGE_MAIN(package, "dice", "1.0", &table)
"""

DICE_MAIN = DICE.splitlines()[-1]
OLDER_MAIN = """
static struct duda_package older = {.name = "dice", .version = "1.0", .api = &table, .abi = DUDA_PACKAGE_ABI + 1};
struct duda_package *duda_package_main(void)
{
    return &older;
}
"""

PLAYER = f"""{HEAD}
#include "dice.h"
static void play(duda_request_t *dr)
{{
    dice->say(dr);
    response->end(dr, NULL);
}}
int duda_main(void)
{{
    duda_load_package(dice, "dice");
    duda_load_package(dice, "dice");
    return router->get("/", play) ? 0 : -1;
}}
"""

# Uses the table at once, as services of the original did.
EAGER = f"""{HEAD}
#include "dice.h"
static void open_table(void)
{{
    duda_load_package(dice, "NAME");
    dice->roll();
}}
int duda_main(void)
{{
    open_table();
    return 0;
}}
"""

OTHER = f"""{HEAD}
static void say(duda_request_t *dr)
{{
    response->printf(dr, "other");
    response->end(dr, NULL);
}}
int duda_main(void)
{{
    return router->get("/", say) ? 0 : -1;
}}
"""


@pytest.fixture
def packages(tmp_path):
    folder = tmp_path / "packages"
    folder.mkdir()
    return folder


def build_package(folder, name, source):
    """Compiles folder/NAME.dpkg."""
    built = build_service(folder / "build", name, source, files={"dice.h": DICE_HEADER})
    return built.rename(folder / f"{name}.dpkg")


@pytest.fixture
def serve_players(serve_services, tmp_path, packages):
    """Starts a server with services that include dice.h: serve_players({"one": SOURCE})."""

    def start(sources, root=packages, settings=None):
        services = tmp_path / "services"
        for name in sources:
            (services / f"{name}.src").mkdir(parents=True, exist_ok=True)
            (services / f"{name}.src" / "dice.h").write_text(DICE_HEADER)
        keys = {"ServicesRoot": services, **({"PackagesRoot": root} if root else {})}
        return serve_services(sources, settings, files={"plugins/duda/duda.conf": section("DUDA", keys)})

    return start


def ask(server, target):
    with server.connect() as client:
        return client.ask(target, host="localhost")


def test_package(serve_players, packages):
    """A package is one object for all services, and stays as long as one uses it."""
    build_package(packages, "dice", DICE)
    server = serve_players({"one": PLAYER, "two": PLAYER.replace("play", "play2")}, settings={"Workers": 1})
    assert ask(server, "/one/").body == b"roll 1"
    assert ask(server, "/two/").body == b"roll 2"
    build_service(server.services, "one", PLAYER.replace("play", "play3"), files={"dice.h": DICE_HEADER})
    reload(server)
    assert ask(server, "/one/").body == b"roll 3"


@pytest.mark.parametrize(
    "name, reason",
    [
        ("dice", "{packages}/dice.dpkg: No such file or directory"),
        ("../dice", "this is no name of a package"),
        ("plain", "{packages}/plain.dpkg: it is no package of this version"),
        ("older", "{packages}/older.dpkg: it was compiled for another version: compile it again"),
        ("empty", "{packages}/empty.dpkg: duda_package_main() has returned NULL"),
    ],
)
def test_bad_package(serve_players, packages, name, reason):
    """A service whose package cannot be loaded is not started: one error that names both, and the others run."""
    build_package(packages, "plain", "int number = 1;")
    build_package(packages, "older", DICE.replace(DICE_MAIN, OLDER_MAIN))
    build_package(packages, "empty", DICE.replace(DICE_MAIN, OLDER_MAIN.replace("&older", "older.abi ? NULL : &older")))
    server = serve_players({"eager": EAGER.replace("NAME", name), "other": OTHER})
    assert ask(server, "/eager/").status == 503
    assert ask(server, "/other/").body == b"other"
    reason = f'the package "{name}" cannot be loaded: {reason.format(packages=packages)}'
    server.wait_log(rf'the service "eager" cannot be used.*{re.escape(reason)}')
    assert server.log.count('"eager"') == 1


def test_without_packages_root(serve_players):
    """Packages are then looked for next to the plugins."""
    server = serve_players({"eager": EAGER.replace("NAME", "dice")}, root=None)
    folder = build.binary().parent / "../lib/monkey/packages"
    server.wait_log(re.escape(f'the package "dice" cannot be loaded: {folder}/dice.dpkg: No such file or directory'))


def test_too_late(serve_players, packages):
    """Packages are loaded in duda_main() only; later the pointer is NULL."""
    late = PLAYER.replace("dice->say(dr);", 'duda_load_package(dice, "dice"); response->printf(dr, "%d", !dice);')
    late = late.replace('    duda_load_package(dice, "dice");\n', "")
    server = serve_players({"late": late})
    assert ask(server, "/late/").body == b"1"
    server.wait_log(r'service late: the package "dice" can only be loaded in duda_main\(\)')


# ── hooks ──

# Counts for each service and each worker, and ticks in the loop of the worker by its own timer.
COUNTER_HEADER = """
#include <duda/package.h>
struct api_counter {
    int (*count)(duda_request_t *dr);
    int (*say)(duda_request_t *dr, duda_call_fn fn);
    const char *(*check)(void);
};
DUDA_PACKAGE(struct api_counter, counter)
"""

COUNTER = """
#include <duda/duda.h>
#include <errno.h>
#include <monkey/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "counter.h"
static struct duda_package package;
struct part {
    struct mk_timer timer;
    struct duda_package_worker *worker;
    duda_call_fn fn;
    void *data;
    int n;
};
static void *start_service(void)
{
    _Atomic int *n = calloc(1, sizeof(*n));
    START;
    msg->info("counter starts");
    return n;
}
static void stop_service(void *state)
{
    msg->info("counter stops after %d", *(_Atomic int *)state);
    free(state);
}
static void call_twice(void *data)
{
    struct part *part = data;
    part->fn(part->data);
}
static void call_nested(void *data)
{
    struct part *part = data;
    if (duda_package_loader->worker(&package) != part->worker)
        abort();
    duda_package_loader->call(part->worker, call_twice, part);
}
static void on_time(struct mk_timer *timer)
{
    struct part *part = MK_CONTAINER_OF(timer, struct part, timer);
    if (duda_package_loader->worker(&package) || duda_package_loader->service_state(&package))
        abort();
    duda_package_loader->call(part->worker, call_nested, part);
}
static int start_worker(struct duda_package_worker *w)
{
    struct part *part = calloc(1, sizeof(*part));
    WORKER_START;
    if (!w->loop || !w->account || !w->service_state || w->state || w->index != (unsigned)worker->index())
        abort();
    mk_timer_init(&part->timer, on_time);
    part->worker = w;
    w->state = part;
    msg->info("counter starts in a worker");
    return 0;
}
static void say_nothing(void *data)
{
    (void)data;
}
static void stop_worker(struct duda_package_worker *w)
{
    struct part *part = w->state;
    if (w->loop)
        mk_timer_cancel(&part->timer);
    duda_package_loader->call(w, say_nothing, NULL);
    msg->info("counter stops in a worker after %d", part->n);
    free(part);
}
static int count(duda_request_t *dr)
{
    struct duda_package_worker *w = duda_package_loader->worker_of(&package, dr);
    if (w != duda_package_loader->worker(&package))
        abort();
    _Atomic int *all = duda_package_loader->service_state(&package);
    ((struct part *)w->state)->n++;
    if (w->service_state != all)
        abort();
    return ++*all;
}
static int say_later(duda_request_t *dr, duda_call_fn fn)
{
    struct duda_package_worker *w = duda_package_loader->worker_of(&package, dr);
    struct part *part = w->state;
    part->fn = fn;
    part->data = dr;
    mk_timer_arm(w->loop, &part->timer, 10);
    return 0;
}
static const char *check(void)
{
    return duda_package_loader->service_state(&package) ? "a state" : "no state";
}
static const struct api_counter table = {count, say_later, check};
static struct duda_package package = {
    .name = "counter", .version = "1.0", .api = &table, .abi = DUDA_PACKAGE_ABI,
    .service_start = start_service, .service_stop = stop_service,
    .worker_start = start_worker, .worker_stop = stop_worker,
};
struct duda_package *duda_package_main(void)
{
    return &package;
}
"""

COUNTING = f"""{HEAD}
#include "counter.h"
static void count(duda_request_t *dr)
{{
    response->printf(dr, "%d", counter->count(dr));
    response->end(dr, NULL);
}}
static void say(void *data)
{{
    response->printf(data, "worker %d", worker->index());
    response->end(data, NULL);
}}
static void later(duda_request_t *dr)
{{
    counter->say(dr, say);
}}
static void *run(void *arg)
{{
    msg->info("a thread has %s", counter->check());
    return arg;
}}
static void begin(void *data)
{{
    (void)data;
    msg->info("pre_loop");
}}
int duda_main(void)
{{
    duda_load_package(counter, "counter");
    duda_load_package(counter, "counter");
    worker->pre_loop(begin, NULL);
    worker->spawn(run, NULL);
    router->get("/count", count);
    router->get("/later", later);
    return RESULT;
}}
void duda_exit(void)
{{
    msg->info("exit");
}}
"""


@pytest.fixture
def serve_counting(serve_services, tmp_path, packages):
    """Starts a server with services that include counter.h; `start` and `worker_start` are statements of the hooks."""

    def begin(names, settings=None, start="", worker_start="", result="0"):
        source = COUNTER.replace("WORKER_START;", worker_start).replace("START;", start)
        built = build_service(packages / "build", "counter", source, files={"counter.h": COUNTER_HEADER})
        built.rename(packages / "counter.dpkg")
        for name in names:
            (tmp_path / "services" / f"{name}.src").mkdir(parents=True)
            (tmp_path / "services" / f"{name}.src" / "counter.h").write_text(COUNTER_HEADER)
        keys = {"ServicesRoot": tmp_path / "services", "PackagesRoot": packages}
        sources = {name: COUNTING.replace("RESULT", result) for name in names}
        return serve_services(sources, settings, files={"plugins/duda/duda.conf": section("DUDA", keys)})

    return begin


def deploy(server, version):
    source = COUNTING.replace("RESULT", "0").replace('pre_loop"', f'pre_loop {version}"')
    build_service(server.services, "one", source, files={"counter.h": COUNTER_HEADER})


def lines_of(server, name):
    """What the service has logged."""
    return [line.split(f"service {name}: ")[1] for line in server.lines if f"service {name}: " in line]


def test_hooks(serve_counting):
    """Each service and each of its workers has its own part, which begins before the service and ends after it."""
    server = serve_counting(["one", "two"], {"Workers": 1})
    assert [ask(server, f"/{name}/count").body for name in ("one", "one", "two")] == [b"1", b"2", b"1"]
    server.wait_log("service one: a thread has a state")
    reload(server)
    assert ask(server, "/one/count").body == b"3"
    server.stop()
    lines = [line for line in lines_of(server, "one") if "thread" not in line]
    assert lines == [
        "counter starts",
        "counter starts in a worker",
        "pre_loop",
        "counter stops in a worker after 3",
        "exit",
        "counter stops after 3",
    ]


def test_hooks_of_a_new_version(serve_counting):
    server = serve_counting(["one"], {"Workers": 2})
    assert ask(server, "/one/count").body == b"1"
    deploy(server, 1)
    reload(server)
    server.wait_log("service one: counter stops after 1")
    assert ask(server, "/one/count").body == b"1"
    assert len([line for line in lines_of(server, "one") if line.startswith("counter stops in a worker")]) == 2


def test_a_callback_of_a_package(serve_counting):
    """package->call() makes the functions of the API work in a timer of the package's own."""
    server = serve_counting(["one"], {"Workers": 1})
    assert ask(server, "/one/later").body == b"worker 0"


def test_a_callback_that_ends_the_last_request(serve_counting):
    """The old version ends within the call that has sent its last response."""
    server = serve_counting(["one"], {"Workers": 1, "ShutdownTimeout": "20s"})
    for n in range(5):
        deploy(server, n)
        with server.connect() as client:
            client.send(request("/one/later"))
            reload(server)
            assert client.response().body == b"worker 0"
        server.wait_log("service one: counter stops after 0", n + 1)


def test_a_package_that_cannot_start(serve_counting):
    server = serve_counting(["one"], start="free(n); errno = ENOSPC; return NULL;")
    assert ask(server, "/one/count").status == 503
    server.wait_log('the package "counter" cannot be loaded: .*/counter.dpkg: it cannot start: No space left on device')
    assert "stops" not in server.log


def test_a_service_that_cannot_start(serve_counting):
    """Its package has started, and is notified of the end."""
    server = serve_counting(["one"], result="-1")
    assert ask(server, "/one/count").status == 503
    assert lines_of(server, "one")[:2] == ["counter starts", "counter stops after 0"]


def test_a_package_that_cannot_start_in_a_worker(serve_counting, tmp_path):
    fails = f'if (access("{tmp_path}/fails", F_OK) == 0) {{ free(part); return -EMFILE; }}'
    server = serve_counting(["one"], {"Workers": 2}, worker_start=fails)
    assert ask(server, "/one/count").body == b"1"
    (tmp_path / "fails").touch()
    deploy(server, 1)
    reload(server, accepted=False)
    server.wait_log(r'service one: the package "counter" cannot start in worker \d: Too many open files')
    assert ask(server, "/one/count").body == b"2"
    (tmp_path / "fails").unlink()
    reload(server)
    assert ask(server, "/one/count").body == b"1"
