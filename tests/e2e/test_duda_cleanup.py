# SPDX-License-Identifier: Apache-2.0
"""What is left of services that have ended: threads, private loops, descriptors and memory."""

import pytest

from harness import build
from harness.messages import request
from harness.server import await_true, section
from harness.services import HEAD, build_service, needs_duda, reload, version_line, web_service

pytestmark = needs_duda

COMMON = f"""{HEAD}
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static void say(duda_request_t *dr)
{{
    response->print(dr, "fine", 4);
    response->end(dr, NULL);
}}
"""

# Loops and their descriptors that are never freed; one timer was closed by the service, which uses its number again.
LOOPS = COMMON + """
static struct duda_event_loop *loops[8];
static int again = -1;

static void *run_loop(void *arg)
{
    int from, to;
    loops[1] = event->loop_create(4);
    event->loop_channel_create(loops[1], &from, &to);
    for (;;)
        event->loop_wait(loops[0]);
    return arg;
}

int duda_main(void)
{
    int from, to;
    for (int i = 0; i < 8; i++)
        if (i != 1 && (!(loops[i] = event->loop_create(4)) || event->loop_timeout_create(loops[i], 60) < 0 ||
                       event->loop_channel_create(loops[i], &from, &to) < 0))
            return -1;
    int closed = event->loop_timeout_create(loops[0], 60);
    close(closed);
    again = dup2(STDERR_FILENO, closed);
    close(from);
    router->get("/", say);
    return worker->spawn(run_loop, NULL);
}

void duda_exit(void)
{
    if (again >= 0 && write(again, "still open\\n", 11) == 11)
        close(again);
}
"""


def fill(server, name):
    with server.connect() as client:
        answer = client.ask(f"/{name}/")
    assert (answer.status, answer.body) == (200, b"fine"), server.log


def test_private_loops_that_are_not_freed(serve_services):
    """The end of the service frees them, and closes what they have made, but not what has the number of it now."""
    server = serve_services({"loops": LOOPS})
    reload(server)
    fill(server, "loops")
    server.drop_clients()
    before = server.open_files()
    for n in range(1, 4):
        build_service(server.services, "loops", LOOPS + version_line(n))
        reload(server)
        fill(server, "loops")
        server.wait_log("^still open$", n)
    server.drop_clients()
    kinds = [[file.split(":")[0] for file in files] for files in (before, server.open_files())]
    await_true(lambda: len(server.open_files()) <= len(before), what=f"the end of the loops: {kinds}")
    server.baseline = len(before)


# A thread that ends when the file does not exist any more, later than the framework waits.
LATE = COMMON + """
static void *wait_for_file(void *arg)
{
    while (access(FILE_NAME, F_OK) == 0)
        usleep(1000);
    return arg;
}

int duda_main(void)
{
    router->get("/", say);
    return worker->spawn(wait_for_file, NULL);
}
"""


def count_copies(server, name):
    with open(f"/proc/{server.pid}/maps", encoding="ascii") as maps:
        return len({line.split()[4] for line in maps if f"/memfd:{name} " in line})


def test_a_service_is_freed_when_its_threads_have_ended(serve_services, tmp_path):
    """By the next reload, however late that is."""
    waits = tmp_path / "waits"
    waits.touch()
    source = f'#define FILE_NAME "{waits}"\n' + LATE
    server = serve_services({"late": source})
    build_service(server.services, "late", source + version_line(2))
    reload(server)
    server.wait_log("service late: it stays in memory: it has ended, but 1 of its threads")
    waits.unlink()
    await_true(lambda: server.threads_named("duda: late") == 0, what="the end of the threads")
    assert count_copies(server, "late") == 2
    reload(server)
    server.wait_log("service late: its threads have returned: it is not in memory any more")
    await_true(lambda: count_copies(server, "late") == 1)
    fill(server, "late")


def test_a_thread_that_ends_after_the_last_service(serve_services, tmp_path):
    """No generation is left whose end would free the service; the thread itself does it."""
    waits = tmp_path / "waits"
    waits.touch()
    server = serve_services({"late": f'#define FILE_NAME "{waits}"\n' + LATE})
    (server.conf / "plugins" / "duda" / "duda.conf").unlink()
    sites = server.conf / "sites" / "default"
    sites.write_text(sites.read_text().partition("[WEB_SERVICE]")[0])
    reload(server)
    server.wait_log("service late: it stays in memory")
    waits.unlink()
    await_true(lambda: server.threads_named("duda: late") == 0, what="the end of the thread")
    server.stop()


COUNTER = COMMON + """
static duda_global_t values;
static int version = VERSION;

static void *make(void *arg)
{
    (void)arg;
    return malloc(64);
}

static void tick(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, version);
}

static void begin(void *arg)
{
    event->interval(5, tick, arg);
}

static void *wait_for_end(void *arg)
{
    int fd = event->create_signal_fd();
    uint64_t value;
    while (read(fd, &value, sizeof(value)) > 0)
        ;
    close(fd);
    return arg;
}

int duda_main(void)
{
    static _Atomic int ticks;
    router->get("/", say);
    global->init_destroy(&values, make, NULL, free);
    worker->pre_loop(begin, &ticks);
    return worker->spawn(wait_for_end, NULL);
}
"""


def await_thread(server):
    """Until the thread of a service has made its pair of sockets, next to those that the server listens on."""
    await_true(lambda: sum(name.startswith("socket:") for name in server.open_files()) == 4)


@pytest.mark.concurrent
def test_five_hundred_reloads(serve_services, tmp_path):
    """Each with a new version, which has a thread, a timer and values of workers: memory and descriptors stay."""
    versions = [
        build_service(tmp_path / f"v{n}", "many", f"#define VERSION {n}\n" + COUNTER).read_bytes() for n in range(2)
    ]
    server = serve_services({"many": "#define VERSION 2\n" + COUNTER}, {"Workers": 2})
    count = 500 if build.OPTIMISED else 60
    for n in range(count):
        (server.services / "new").write_bytes(versions[n % 2])
        (server.services / "new").rename(server.services / "many.duda")
        reload(server)
        if n == count // 5:
            fill(server, "many")
            server.drop_clients()
            await_thread(server)
            memory, files = server.memory_kb(), len(server.open_files())
            server.baseline = files  # with those of the service's thread
    await_true(lambda: count_copies(server, "many") == 1)
    fill(server, "many")
    server.drop_clients()
    await_true(lambda: len(server.open_files()) <= files, what=f"{files} descriptors, not {server.open_files()}")
    assert build.SANITIZED or server.memory_kb() < memory + 1000, (memory, server.memory_kb())
    assert "it stays in memory" not in server.log


# ── services that move ──

STREAM = """
static void begin(duda_request_t *dr)
{
    response->sse_begin(dr, 0);
    response->sse_send(dr, NULL, NULL, "open");
}

static void note(const char *what)
{
    fprintf(stderr, "%s of %s\\n", what, self->name.data);
}

int duda_main(void)
{
    note("main");
    router->get("/stream", begin);
    return router->get("/", say) ? 0 : -1;
}

void duda_exit(void)
{
    note("exit");
}
"""


def host(name, root, *services):
    return section("HOST", {"ServerName": name, "DocumentRoot": root}) + "".join(services)


def test_a_service_that_is_renamed_or_moved(serve_services, site_root):
    """In one reload, with streams that are open: what was there ends after ShutdownTimeout, what is new begins."""
    settings = {"ShutdownTimeout": "300ms"}
    server = serve_services({"one": COMMON + STREAM}, settings)
    file, sites = server.services / "one.duda", server.conf / "sites"
    (sites / "other").write_text(host("other.example", site_root))
    reload(server)
    server.baseline += 1  # the folder of the second host
    server.wait_log("^main of one$")
    places = [
        (host("localhost", site_root, web_service("two", File=file)), host("other.example", site_root), "two"),
        (host("localhost", site_root), host("other.example", site_root, web_service("two", File=file)), "two"),
        (host("localhost", site_root, web_service("one")), host("other.example", site_root), "one"),
    ]
    name, domain = "one", "localhost"
    for here, there, new_name in places:
        client = server.connect()
        client.send(request(f"/{name}/stream", host=domain))
        client.fill()
        (sites / "default").write_text(here)
        (sites / "other").write_text(there)
        begun, ended = server.log.count(f"main of {new_name}"), server.log.count(f"exit of {name}")
        reload(server)
        server.wait_log(f"^main of {new_name}$", begun + 1)
        with server.connect() as other:
            assert other.ask(f"/{name}/", host=domain).status == 404
        client.rest()  # is cut
        server.wait_log(f"^exit of {name}$", ended + 1)
        name, domain = new_name, "other.example" if "WEB_SERVICE" in there else "localhost"
        with server.connect() as other:
            assert other.ask(f"/{name}/", host=domain).body == b"fine"
    await_true(lambda: count_copies(server, "one") == 1 and count_copies(server, "two") == 0)


def test_a_service_that_is_removed_and_added(serve_services):
    """In one reload nothing changes; in two, with no request left, a new instance begins."""
    server = serve_services({"one": COMMON + STREAM})
    sites = server.conf / "sites" / "default"
    text = sites.read_text()
    sites.write_text(text.replace(web_service("one"), ""))
    sites.write_text(text)
    reload(server)
    fill(server, "one")
    assert server.log.count("main of one") == 1 and "exit of one" not in server.log
    server.drop_clients()
    sites.write_text(text.replace(web_service("one"), ""))
    reload(server)
    server.wait_log("^exit of one$")
    sites.write_text(text)
    reload(server)
    fill(server, "one")
    assert server.log.count("main of one") == 2
