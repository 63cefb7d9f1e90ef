# SPDX-License-Identifier: Apache-2.0
"""
The mistakes that authors of web services make most often: what the client gets, and the line of the log, which says
where it was made. Those that end the server are in test_duda_crashes.py and test_duda_escapes.py.
"""

import ast
import re

import pytest

from harness import build
from harness.handler_service import ask, handler, service
from harness.server import await_true
from harness.services import build_service, function_of, needs_duda, web_service

pytestmark = needs_duda

# ── callbacks ──

# Each is a service of the same file, which has the name of the row.
# A row: code of the handler, the line behind "service NAME: ", the status. The place of the call follows the line.
ENDED = r"the response has ended already: end\(\), error\(\) or redirect\(\) comes once, and last"
SENT = r"the head was sent: status and headers come before flush\(\), send_headers\(\) and sse_begin\(\)"
ROWS = {
    "end_twice": ("response->end(dr, NULL); response->end(dr, NULL);", rf"response->end\(\): {ENDED}", 200),
    "print_after_end": ("response->end(dr, NULL); response->printf(dr, \"late\");",
                        rf"response->printf\(\): {ENDED}", 200),
    "end_after_error": ("response->error(dr, 404); response->end(dr, NULL);", rf"response->end\(\): {ENDED}", 404),
    "header_after_body": ("response->printf(dr, \"a\"); response->flush(dr); response->header(dr, \"A\", \"b\");"
                          "response->end(dr, NULL);", rf"response->header\(\): {SENT}", 200),
    "status_after_head": ("response->send_headers(dr); response->http_status(dr, 404); response->end(dr, NULL);",
                          rf"response->http_status\(\): {SENT}", 200),
    "head_after_body": ("response->printf(dr, \"a\"); response->send_headers(dr); response->end(dr, NULL);",
                        r"response->send_headers\(\): the body has begun: call this before print\(\), printf\(\) "
                        r"and others", 200),
    "status": ("response->http_status(dr, 99); response->end(dr, NULL);",
               r"response->http_status\(\): the status must be 200 to 599", 200),
    "header_row": ("response->http_header(dr, \"X-Name value\"); response->end(dr, NULL);",
                   r'response->http_header\(\): its name or value is wrong \(a row is "Name: value"', 200),
    "wrong_length": ("response->http_content_length(dr, 9); response->printf(dr, \"a\"); response->end(dr, NULL);",
                     r"response->http_content_length\(\): the body has another length, which is sent instead", 200),
    "null_text": ("response->print(dr, getenv(\"NO_SUCH\"), 4); response->end(dr, NULL);",
                  r"response->print\(\): the text is NULL, or its length is negative", 200),
    "no_request": ("response->printf(NULL, \"a\"); response->end(dr, NULL);",
                   r"response->printf\(\): there is no request: its pointer is NULL", 200),
    "no_file": ("response->sendfile(dr, \"/no/such/file\"); response->end(dr, NULL);",
                r"response->sendfile\(\): /no/such/file: No such file or directory: the response is empty; check", 200),
    "no_data_dir": ("response->sendfile(dr, \"file\"); response->end(dr, NULL);",
                    r"response->sendfile\(\): file: no regular file, or a relative path without DataDir: the", 200),
    "cookie_text": ("cookie->set(dr, &(struct duda_cookie){.name = \"a\", .value = \"\\n\"}); response->end(dr, NULL);",
               r"cookie->set\(\): a field is wrong: the name is a token, and the value has no spaces, control", 200),
    "sse_twice": ("response->sse_begin(dr, 0); response->sse_begin(dr, 0); response->end(dr, NULL);",
                  rf"response->sse_begin\(\): {SENT}", 200),
    "sse_not_begun": ("response->sse_send(dr, NULL, NULL, \"a\"); response->end(dr, NULL);",
                      r"response->sse_send\(\): response->sse_begin\(\) must be called before", 200),
    "subscribe_not_begun": ("sse->subscribe(dr, \"a\"); response->end(dr, NULL);",
                            r"sse->subscribe\(\): response->sse_begin\(\) must be called before", 200),
    "no_session": ("if (session->open(dr, on_session, NULL) < 0) response->error(dr, 500);",
                r"session->open\(\): duda_main\(\) has not called session->init\(\)", 500),
    "sleep_in_callback": ("dthread->sleep(1); response->end(dr, NULL);",
                          r"dthread->sleep\(\): only a dthread can wait", 200),
    "gc_twice": ("void *p = malloc(9); gc->add(dr, p); gc->add(dr, p); response->end(dr, NULL);",
                 r"gc->add\(\): the pointer was added before; it is freed once", 200),
    "gc_of_object": ("gc->add(dr, (void *)response); response->end(dr, NULL);",
                     r"gc->add\(\): the pointer is an object of the API; it is not freed", 200),
    "route_in_handler": ("for (int i = 0; i < 9; i++) { router->get(\"/late\", handle); } response->end(dr, NULL);",
                         r"router->get\(\): it works only in duda_main\(\); the call did nothing", 200),
    "no_channel": ("dthread->send(NULL, dr, 0); response->end(dr, NULL);",
                   r"dthread->send\(\): there is no channel", 200),
}
# The same without the place of a call.
FAR_ROWS = {
    "no_response": ("(void)dr;", r"HandlerTimeout: there was no response: the handler must call response->end\(\), now "
                    r"or later; 503 was sent, in no_response\.duda\+0x[0-9a-f]+ \(no_response, \S*:\d+\)", 503),
    "late": ("(void)dr;", r"router->timeout\(\): there was no response: .* in late\.duda\+0x[0-9a-f]+ "
             r"\(late, \S*:\d+\)", 503),
}


def test_mistakes_of_callbacks(serve_services, tmp_path):
    rows = {**ROWS, **FAR_ROWS}
    codes = {name: row[0] for name, row in rows.items()}
    functions = "".join(f"static void {name}(duda_request_t *dr)\n{{\n{code}\n}}\n" for name, code in codes.items())
    code = "static void on_session(duda_request_t *dr, int result, void *p) { (void)dr, (void)result, (void)p; }\n"
    code += "static void handle(duda_request_t *dr);\n" + functions + handler("answer(dr);")
    main = "".join(f'router->timeout(router->get("/{name}", {name}), {50 * (name == "late")});' for name in rows)
    file = build_service(tmp_path / "services", "mistakes", service(code, main))
    sections = "".join(web_service(name, File=file) for name in rows)
    server = serve_services({}, {"Workers": 1, "HandlerTimeout": "200ms"}, text=sections)
    for name, (_, line, status) in rows.items():
        assert ask(server, f"/{name}/{name}")[0] == status, name
        place = "" if name in FAR_ROWS else rf".*, in {name}\.duda\+0x[0-9a-f]+ \({name}, \S*mistakes\.c:\d+\)$"
        server.wait_log(f"service {name}: {line}{place}")
    assert server.log.count("service route_in_handler: ") == 1


def test_one_mistake_does_not_hide_another(serve_services):
    code = handler("response->end(dr, NULL); response->end(dr, NULL); response->end(dr, NULL);"
                   "response->printf(dr, \"late\");")
    code += "static void silent(duda_request_t *dr)\n{\n(void)dr;\n}\n"
    server = serve_services({"x": service(code, 'router->get("/silent", silent);')},
                            {"Workers": 1, "HandlerTimeout": "200ms"})
    assert ask(server, "/x/handle")[0] == 200
    assert ask(server, "/x/silent")[0] == 503
    server.wait_log(rf"service x: response->printf\(\): {ENDED}")
    server.wait_log("service x: HandlerTimeout: there was no response: ")
    assert server.log.count("response->end(): the response has ended") == 1


@pytest.mark.parametrize("path", ["stop", "nowhere"])
def test_callbacks_before_the_handler_without_a_response(serve_services, path):
    """And functions of errors."""
    code = "static int stop(duda_request_t *dr)\n{\n(void)dr;\nreturn 1;\n}\n"
    code += "static void nowhere(duda_request_t *dr)\n{\n(void)dr;\n}\n" + handler("answer(dr);")
    main = 'router->before(router->get("/stop", handle), stop); router->not_found(nowhere);'
    server = serve_services({"x": service(code, main)}, {"Workers": 1, "HandlerTimeout": "200ms"})
    assert ask(server, f"/x/{path}")[0] == 503
    server.wait_log(rf"service x: HandlerTimeout: there was no response: .* in x\.duda\+0x[0-9a-f]+ \({path}, \S*x\.c:")


CHANNELS = """
static _Atomic(struct duda_channel *) channels[2];
static void make_channel(void *data)
{
    (void)data;
    channels[worker->index()] = dthread->channel(1);
}
""" + handler("""
    struct duda_channel *other = channels[1 - worker->index()];
    if (other)
        dthread->send(other, dr, 0);
    response->printf(dr, "%d", other != NULL);
    response->end(dr, NULL);
""")


def test_a_channel_of_another_worker(serve_services):
    server = serve_services({"x": service(CHANNELS, "worker->pre_loop(make_channel, NULL);")}, {"Workers": 2})
    await_true(lambda: ask(server, "/x/handle") == (200, "1"), what="the other worker has a channel")
    server.wait_log(r"service x: dthread->send\(\): the channel belongs to another worker, in "
                    + function_of("x", "handle"))


# ── duda_main() ──

SQLITE = "#include <duda/packages/sqlite/sqlite.h>\n"
LOAD = 'duda_load_package(sqlite, "sqlite");'
OPEN = LOAD + 'duda_sqlite_t *db = sqlite->open(&(struct duda_sqlite_conf){.path = "a.db"});'
MIGRATE = LOAD + '''static const char *const steps[] = {"CREATE TABLE notes(id)", "ALTER notes ADD text", NULL};
    if (!sqlite->open(&(struct duda_sqlite_conf){.path = "b.db", .migrations = steps})) return -1;'''
FAILING = {
    "package": ('duda_load_package(sqlite, "sqlit");',
                r'the package "sqlit" cannot be loaded: \S*/sqlit.dpkg: No such file or directory'),
    "sql": (OPEN + 'if (sqlite->exec(db, NULL, "DELETE FROM notes", NULL, 0) < 0) return -1;',
            r'service sql: sqlite->exec\(\): a.db: no such table: notes \(DELETE FROM notes\)'),
    "migration": (MIGRATE, r'service migration: sqlite->open\(\): b.db: migration 2 \(ALTER notes ADD text\): '
                  r'near "notes": syntax error'),
    "twice": ('if (!router->get("/", answer)) return -1;',
              r'service twice: router->get\("/"\) adds no route: there is a route for its method and pattern already'),
}


def test_mistakes_of_main(serve_services, tmp_path):
    """The reason is in the log, and not only the result."""
    sources = {name: service(SQLITE + handler("answer(dr);"), main) for name, (main, _) in FAILING.items()}
    server = serve_services(sources, keys=dict.fromkeys(sources, {"DataDir": tmp_path}))
    for name, (_, line) in FAILING.items():
        server.wait_log(line)
        server.wait_log(f'the service "{name}" cannot be used')
        assert ask(server, f"/{name}/")[0] == 503


# ── the guide ──


def texts_of(path):
    """The strings of a file of tests, whose parts are joined, without the backslashes of patterns."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "..." for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_each_mistake_of_the_guide_has_a_test():
    """A sentence of the table in docs/guide/write-services.md is in the text of a test; placeholders are any text."""
    table = re.search(r"^\| mistake \| the log says \|\n\|[-|]+\n(.*?)\n\n",
                      (build.TOP / "docs/guide/write-services.md").read_text(), re.M | re.S)[1]
    sentences = [said for row in table.splitlines() for said in re.findall("`([^`]+)`", row.split(" | ")[1])]
    files = [path for folder in ("e2e", "dudac") for path in (build.TOP / "tests" / folder).glob("test_*.py")]
    tests = "\n".join(text.replace("\\", "") for path in files for text in texts_of(path))
    placeholder = r"\b(?:NAME|PATH|FILE|FUNCTION|ADDRESS|SIZE)\b|\.\.\."
    patterns = {said: ".{1,60}".join(map(re.escape, re.split(placeholder, said))) for said in sentences}
    assert len(sentences) >= 30 and [said for said, pattern in patterns.items() if not re.search(pattern, tests)] == []
