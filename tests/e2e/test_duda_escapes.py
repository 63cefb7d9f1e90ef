# SPDX-License-Identifier: Apache-2.0
"""Web services whose code does not return to the framework: it ends the server, runs on, or waits for ever."""

import re
import signal
import subprocess

import pytest

from harness import build
from harness.handler_service import ask, handler, service
from harness.messages import request
from harness.server import Server, run, write_config
from harness.services import CONTROL_THREAD, INCLUDE, build_service, needs_duda, reload, service_config, web_service

pytestmark = needs_duda

# ── callbacks that do not return ──


def end_of(serve_services, code, number, main="", settings=None):
    """Starts a server with the service x, asks for /x/handle, and returns its log after it has ended by that signal."""
    server = serve_services({"x": service(code, main)}, settings, env=NO_HANDLERS)
    server.stopping = True
    assert ask(server, "/x/") == (200, "fine")
    with server.connect() as client:
        client.send(request("/x/handle"))
        assert server.wait() == -number, server.log
    return server.log


# AddressSanitizer would report first.
NO_HANDLERS = {"ASAN_OPTIONS": "handle_abort=0:handle_segv=0:handle_sigbus=0:detect_leaks=0"}
needs_signals = pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")

ENDS = {
    "exit": ("(void)dr; exit(0);", r'the service "x" has called exit\(0\), which would end the server'),
    "pthread_exit": ("(void)dr; pthread_exit(NULL);", r'the service "x" has called pthread_exit\(\) in a thread of'),
}


@needs_signals
@pytest.mark.parametrize("what", ENDS)
def test_a_callback_that_ends_the_server(serve_services, what):
    """It is a crash: with the status 0 of exit() a supervisor would take it for a stop that was asked for."""
    body, sentence = ENDS[what]
    log = end_of(serve_services, handler(body), signal.SIGABRT)
    assert re.search(f"error {sentence}", log), log
    assert 'error the service "x" has crashed: SIGABRT in worker 0' in log, log


@needs_signals
def test_exit_in_a_thread_that_the_framework_does_not_know(serve_services):
    code = "static void *leave(void *arg) { (void)arg; exit(3); }\n"
    code += handler("pthread_t t; pthread_create(&t, NULL, leave, dr); pthread_join(t, NULL);")
    log = end_of(serve_services, code, signal.SIGABRT)
    assert re.search(r'error the service "x" has called exit\(3\)', log), log


@needs_signals
@pytest.mark.parametrize("what", ENDS)
def test_a_main_that_ends_the_server(tmp_path, site_root, what):
    """At the start there is no log yet: stderr has it."""
    body, sentence = ENDS[what]
    build_service(tmp_path / "services", "x", service(handler("answer(dr);"), body.replace("(void)dr;", "")))
    config = service_config(tmp_path / "services", ["x"], site_root)
    environment = {**build.environment(), **NO_HANDLERS}
    result = run("-c", write_config(tmp_path / "conf", site_root, files=config), env=environment)
    assert result.returncode == -signal.SIGABRT, result.stderr
    assert re.search(f"^{sentence}", result.stderr, re.M), result.stderr


LOADING = 'static void __attribute__((constructor)) begin(void) { %s }\n'


@needs_signals
@pytest.mark.parametrize("option", [(), ("-t",)], ids=["start", "check"])
def test_a_constructor_that_ends_the_server(tmp_path, site_root, option):
    """A check must not succeed because of it."""
    build_service(tmp_path / "services", "x", service(LOADING % "exit(0);" + handler("answer(dr);")))
    config = service_config(tmp_path / "services", ["x"], site_root)
    environment = {**build.environment(), **NO_HANDLERS}
    result = run("-c", write_config(tmp_path / "conf", site_root, files=config), *option, env=environment)
    assert result.returncode == -signal.SIGABRT, result.stderr
    assert re.search(r'^the service "x" has called exit\(0\)', result.stderr, re.M), result.stderr


@needs_signals
@pytest.mark.skipif(build.SANITIZED, reason="sanitizers report it themselves")
@pytest.mark.parametrize("option", [(), ("-t",)], ids=["start", "check"])
def test_a_constructor_that_crashes(tmp_path, site_root, option):
    """It runs before the pointers to the objects are set."""
    build_service(tmp_path / "services", "x", service(LOADING % "msg->info(NULL);" + handler("answer(dr);")))
    config = service_config(tmp_path / "services", ["x"], site_root)
    result = run("-c", write_config(tmp_path / "conf", site_root, files=config), *option)
    assert result.returncode == -signal.SIGSEGV, result.stderr
    assert re.search(r'^the service "x" has crashed: SIGSEGV', result.stderr, re.M), result.stderr


@needs_signals
@pytest.mark.skipif(build.SANITIZED, reason="UndefinedBehaviorSanitizer reports it itself")
def test_a_call_of_a_null_pointer(serve_services):
    """Where it has come from is on the stack, although the address is none of code."""
    log = end_of(serve_services, handler("void (*volatile none)(duda_request_t *) = NULL; none(dr);"), signal.SIGSEGV)
    assert re.search(r"error     #0 \S*0x0$", log, re.M), log
    assert re.search(r"error     #1 x\.duda\+0x[0-9a-f]+", log), log


FORK = """
static void handle(duda_request_t *dr)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (request->query(dr))
            _exit(7);
        return;
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    response->printf(dr, "%d %d %d", WEXITSTATUS(status), system("exit 5") >> 8, wrong);
    response->end(dr, NULL);
}
"""


def test_a_child_that_returns(serve_services):
    """It ends; it serves no client. A child that calls _exit(), and system(), work."""
    server = serve_services({"x": service(FORK)})
    assert ask(server, "/x/handle?well") == (200, "7 5 0")
    assert "fork" not in server.log
    assert ask(server, "/x/handle") == (200, "1 5 0")
    server.wait_log(r'error the service "x" has returned in a process of fork\(\), which ends: the child must call')
    assert ask(server, "/x/") == (200, "fine")


THROW = """
#include <duda/duda.h>
#include <stdexcept>

static void handle(duda_request_t *)
{
    throw std::runtime_error("nobody catches this");
}

static void fine(duda_request_t *dr)
{
    response->print(dr, "fine", 4);
    response->end(dr, nullptr);
}

int duda_main(void)
{
    return router->get("/", fine) && router->get("/handle", handle) ? 0 : -1;
}
"""


@needs_signals
@pytest.mark.skipif(build.SANITIZED, reason="a service of another compiler, without the sanitizer")
def test_an_exception_that_leaves_a_callback(serve_services, tmp_path):
    source = tmp_path / "services" / "x.cc"
    source.parent.mkdir()
    source.write_text(THROW)
    command = ["c++", "-std=c++17", "-shared", "-fPIC", "-g", f"-I{INCLUDE}", source, "-o", source.with_suffix(".duda")]
    subprocess.run(list(map(str, command)), check=True)
    server = serve_services({}, text=web_service("x"))
    server.stopping = True
    assert ask(server, "/x/") == (200, "fine")
    with server.connect() as client:
        client.send(request("/x/handle"))
        assert server.wait() == -signal.SIGABRT, server.log
    assert 'error the service "x" has crashed: SIGABRT in worker 0' in server.log
    assert re.search(r"#\d+ x\.duda\+0x[0-9a-f]+ \(handle, \S*x\.cc:\d+\)$", server.log, re.M), server.log


# ── after the end ──

OUTLIVES = """
static void *run_on(void *arg)
{
    for (;;)
        usleep(1000);
    return arg;
}
"""


@needs_signals
@pytest.mark.skipif(build.SANITIZED, reason="sanitizers keep code mapped or report it themselves")
def test_a_thread_that_runs_on_without_its_code(serve_services):
    """The framework does not know threads of pthread_create(), and cannot wait for them. It logs the service."""
    code = OUTLIVES + handler("answer(dr);")
    server = serve_services({"x": service(code, "pthread_t t; pthread_create(&t, NULL, run_on, NULL);")})
    server.stopping = True
    build_service(server.services, "x", service(handler("answer(dr);")))
    server.send_signal(signal.SIGHUP)
    assert server.wait() == -signal.SIGSEGV, server.log
    assert re.search('error the service "x" has ended, but a thread of it ran on and has crashed: SIGSEGV', server.log)
    assert "its functions have no names: the service has ended, while a thread of it ran on" in server.log, server.log


STAYS = """
#include <duda/duda.h>
#include <string>
inline std::string &shared_by_name()
{
    static std::string text = "a text that is longer than a short string";
    return text;
}
struct Holder { std::string text = "another text that is longer than a short string"; ~Holder() { text.clear(); } };
thread_local Holder held;

static void fine(duda_request_t *dr)
{
    held.text += "x";
    shared_by_name() += "y";
    response->print(dr, "fine", 4);
    response->end(dr, nullptr);
}

int duda_main(void)
{
    return router->get("/", fine) ? 0 : -1;
}
"""


@pytest.mark.skipif(build.SANITIZED, reason="a service of another compiler, without the sanitizer")
def test_code_that_cannot_be_unloaded(serve_services, tmp_path):
    source = tmp_path / "services" / "x.cc"
    source.parent.mkdir()
    command = ["c++", "-std=c++17", "-shared", "-fPIC", f"-I{INCLUDE}", source, "-o", source.with_suffix(".duda")]
    source.write_text(STAYS)
    subprocess.run(list(map(str, command)), check=True)
    server = serve_services({}, text=web_service("x"))
    assert ask(server, "/x/") == (200, "fine")
    source.write_text(STAYS + "int version = 2;\n")
    subprocess.run(list(map(str, command)), check=True)
    reload(server)
    server.wait_log("warn  service x: its code stays in memory: it has thread_local variables with destructors, or was")
    assert ask(server, "/x/") == (200, "fine")
    server.stop()


# ── calls that block ──


def test_a_main_that_does_not_return(tmp_path, serve_services):
    """Is logged at a reload, with the name of the service, and again when it continues."""
    server = serve_services({"x": service(handler("answer(dr);"))})
    wait = f'while (access("{tmp_path}/go", F_OK) != 0) usleep(1000);'
    build_service(server.services, "x", service(handler("answer(dr);"), wait, wait))
    server.send_signal(signal.SIGHUP)
    server.wait_log(r'warn  the service "x" has not returned from duda_main\(\) for more than 1 s: the server waits')
    assert ask(server, "/x/") == (200, "fine")  # of the version that runs
    (tmp_path / "go").touch()
    server.wait_log(r'warn  the service "x" has returned from duda_main\(\) after \d+\.\d s')
    server.wait_log("the new configuration is in use")
    server.baseline += CONTROL_THREAD
    (tmp_path / "go").unlink()
    server.send_signal(signal.SIGTERM)
    server.wait_log(r'the service "x" has not returned from duda_exit\(\) for more than 1 s')
    (tmp_path / "go").touch()
    assert server.wait() == 0


@pytest.mark.parametrize("place", ["callback", "duda_exit"])
def test_the_second_signal_ends_a_server_that_cannot_stop(serve_services, place):
    wait = "for (;;) pause();"
    server = serve_services({"x": service(handler(f"if (request->query(dr)) {{ {wait} }} answer(dr);"), end=wait)})
    if place == "callback":
        client = server.connect()
        client.send(request("/x/handle?wait"))
        server.wait_log(r'the service "x" blocks worker 0')
    server.send_signal(signal.SIGTERM)
    server.wait_log("signal 15: stopping")
    if place != "callback":
        server.wait_log(r'the service "x" has not returned from duda_exit\(\) for more than 1 s')
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 3
    assert "error a plugin or a web service does not return: the process ends without it" in server.log


def test_a_start_that_does_not_end_can_be_stopped(tmp_path, site_root):
    main = r'fputs("begins\n", stderr); for (;;) pause();'
    build_service(tmp_path / "services", "x", service(handler("answer(dr);"), main))
    config = service_config(tmp_path / "services", ["x"], site_root)
    server = Server("-c", write_config(tmp_path / "conf", site_root, files=config), wait=False)
    server.wait_log("begins")
    server.send_signal(signal.SIGTERM)
    assert server.wait() == -signal.SIGTERM
    assert 'the service "x" has not returned from duda_main() for more than 1 s: the server waits for it' in server.log
