# SPDX-License-Identifier: Apache-2.0
"""The package sqlite in workers: dthreads, callbacks, locks of other processes, clients that leave, reloads."""

import contextlib
import re
import resource
import shutil
import sqlite3
import threading
import time

import pytest

from harness import build
from harness.messages import request
from harness.server import await_true
from harness.services import (
    CPP,
    HEAD,
    build_cpp,
    build_old_service,
    build_service,
    function_of,
    needs_duda,
    patched,
    reload,
    web_service,
)

pytestmark = needs_duda

SERVICE = """
#include <errno.h>
#include <duda/packages/sqlite/sqlite.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#ifndef READ_ONLY
#define READ_ONLY false
#endif

static const char *const migrations[] = {
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL)",
#ifdef SECOND
    "ALTER TABLE notes ADD COLUMN stars INTEGER NOT NULL DEFAULT 5",
#endif
    NULL,
};

static const char forever[] = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";

static duda_sqlite_t *db;
static _Atomic int adding, left, inside;

/* The result, and why. */
static void answer(duda_request_t *dr, int err)
{
    const char *error = sqlite->error();
    response->printf(dr, "%d %s", err, error ? error : "");
    response->end(dr, NULL);
}

static void list_notes(duda_request_t *dr, duda_sqlite_rows_t *rows)
{
    while (sqlite->next(rows))
        response->printf(dr, "%lld=%s ", (long long)sqlite->get_int(rows, 0), sqlite->get_text(rows, 1));
    response->end(dr, NULL);
}

static void list(duda_request_t *dr, void *given)
{
    duda_sqlite_rows_t *rows;
    (void)given;
    int err = sqlite->query(db, &rows, "SELECT id, text FROM notes ORDER BY id", DUDA_SQLITE_NO_ARGS);
    if (err < 0)
        answer(dr, err);
    else
        list_notes(dr, rows);
    free(rows);
}

static const char adding_note[] = "INSERT INTO notes(text) VALUES(?) RETURNING id, upper(text)";

static void add_returning(duda_request_t *dr, void *given)
{
    duda_sqlite_rows_t *rows;
    (void)given;
    int err = sqlite->query(db, &rows, adding_note, DUDA_SQLITE_ARGS(duda_sqlite_text(qs->get(dr, "text"))));
    if (err < 0)
        answer(dr, err);
    else
        list_notes(dr, rows);
    free(rows);
}

static void add(duda_request_t *dr, void *given)
{
    (void)given;
    adding++;
    int err = sqlite->exec(db, NULL, "INSERT INTO notes(text) VALUES(?)",
                           DUDA_SQLITE_ARGS(duda_sqlite_text(qs->get(dr, "text"))));
    adding--;
    if (err == -ECONNABORTED)
        left++;
    else
        answer(dr, err);
}

/* The text of the last note goes to a new one, with one more letter. */
static int copy_last(duda_sqlite_t *of, void *given)
{
    duda_sqlite_rows_t *rows;
    struct duda_sqlite_change change;
    char text[100] = "";
    int err = sqlite->query(of, &rows, "SELECT text FROM notes ORDER BY id DESC LIMIT 1", DUDA_SQLITE_NO_ARGS);
    if (err < 0)
        return err;
    if (sqlite->next(rows))
        snprintf(text, sizeof(text), "%s", sqlite->get_text(rows, 0));
    free(rows);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", (const char *)given);
    err = sqlite->exec(of, &change, "INSERT INTO notes(text) VALUES(?)", DUDA_SQLITE_ARGS(duda_sqlite_text(text)));
    return err < 0 ? err : (int)change.last_id;
}

static void copy(duda_request_t *dr, void *given)
{
    char letter[2] = "x"; /* on the stack: the transaction has ended when the call returns */
    (void)given;
    answer(dr, sqlite->transaction(db, copy_last, letter));
}

static int wait_inside(duda_sqlite_t *of, void *given)
{
    (void)given;
    sqlite->exec(of, NULL, "INSERT INTO notes(text) VALUES('inside')", DUDA_SQLITE_NO_ARGS);
    inside++;
    while (!task->stopping())
        usleep(1000);
    return 0;
}

static void wait_in_transaction(duda_request_t *dr, void *given)
{
    (void)given;
    int err = sqlite->transaction(db, wait_inside, NULL);
    if (err == -ECONNABORTED)
        left++;
    else
        answer(dr, err);
}

static void run_forever(duda_request_t *dr, void *given)
{
    duda_sqlite_rows_t *rows;
    (void)given;
    adding++;
    int err = sqlite->query(db, &rows, forever, DUDA_SQLITE_NO_ARGS);
    adding--;
    if (err == -ECONNABORTED)
        left++;
    else
        answer(dr, err);
}

#define DEFINE_HANDLER(name) \\
    static void handle_##name(duda_request_t *dr) \\
    { \\
        if (!dthread->handle(dr, name, NULL)) \\
            response->error(dr, 503); \\
    }

DEFINE_HANDLER(list)
DEFINE_HANDLER(add)
DEFINE_HANDLER(add_returning)
DEFINE_HANDLER(copy)
DEFINE_HANDLER(wait_in_transaction)
DEFINE_HANDLER(run_forever)

/* ── callbacks ── */

static void end_then(duda_request_t *dr, struct duda_sqlite_result *result, void *given)
{
    (void)given;
    if (!dr) {
        left++;
    } else if (result->rows) {
        list_notes(dr, result->rows);
    } else {
        response->printf(dr, "%d %lld %s", result->err, (long long)result->change.last_id,
                         result->error ? result->error : "");
        response->end(dr, NULL);
    }
}

static void refuse_then(duda_request_t *dr, int err)
{
    if (err < 0)
        answer(dr, err);
}

static void list_then(duda_request_t *dr)
{
    const char *like = qs->get(dr, "like");
    refuse_then(dr, sqlite->query_then(dr, db, "SELECT id, text FROM notes WHERE text LIKE ? ORDER BY id",
                                       DUDA_SQLITE_ARGS(duda_sqlite_text(like ? like : "%")), end_then, NULL));
}

/* Takes the rows, whose text is sent without a copy. */
static void keep_rows(duda_request_t *dr, struct duda_sqlite_result *result, void *given)
{
    duda_sqlite_rows_t *rows = result->rows;
    (void)given;
    result->rows = NULL;
    gc->add(dr, rows);
    while (sqlite->next(rows))
        response->print_ref(dr, sqlite->get_text(rows, 1), strlen(sqlite->get_text(rows, 1)));
    response->end(dr, NULL);
}

static void keep_then(duda_request_t *dr)
{
    refuse_then(dr, sqlite->query_then(dr, db, "SELECT id, text FROM notes ORDER BY id", DUDA_SQLITE_NO_ARGS, keep_rows,
                                       NULL));
}

static void returning_then(duda_request_t *dr)
{
    refuse_then(dr, sqlite->query_then(dr, db, adding_note, DUDA_SQLITE_ARGS(duda_sqlite_text(qs->get(dr, "text"))),
                                       end_then, NULL));
}

static void add_then(duda_request_t *dr)
{
    refuse_then(dr, sqlite->exec_then(dr, db, "INSERT INTO notes(text) VALUES(?)",
                                      DUDA_SQLITE_ARGS(duda_sqlite_text(qs->get(dr, "text"))), end_then, NULL));
}

static void copy_then(duda_request_t *dr)
{
    static char letter[] = "y";
    refuse_then(dr, sqlite->transaction_then(dr, db, copy_last, end_then, letter));
}

static void run_then(duda_request_t *dr)
{
    inside++;
    refuse_then(dr, sqlite->query_then(dr, db, forever, DUDA_SQLITE_NO_ARGS, end_then, NULL));
}

/* Without a callback. */
static void note_then(duda_request_t *dr)
{
    answer(dr, sqlite->exec_then(NULL, db, "INSERT INTO notes(text) VALUES('noted')", DUDA_SQLITE_NO_ARGS, NULL, NULL));
}

/* ── others ── */

static void call_in_callback(duda_request_t *dr)
{
    duda_sqlite_rows_t *rows;
    answer(dr, sqlite->query(db, &rows, "SELECT 1", DUDA_SQLITE_NO_ARGS));
}

static void open_late(duda_request_t *dr)
{
    duda_sqlite_t *late = sqlite->open(&(struct duda_sqlite_conf){.path = "late.db"});
    answer(dr, late ? 0 : -errno);
}

static void count(duda_request_t *dr)
{
    response->printf(dr, "%d %d %d", adding, left, inside);
    response->end(dr, NULL);
}

static void *add_in_thread(void *given)
{
    char text[32];
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof(text), "thread %d", i);
        int err = sqlite->exec(db, NULL, "INSERT INTO notes(text) VALUES(?)", DUDA_SQLITE_ARGS(duda_sqlite_text(text)));
        if (err < 0 && err != -EEXIST)
            msg->err("%s", sqlite->error());
    }
    return given;
}

int duda_main(void)
{
    duda_load_package(sqlite, "sqlite");
#ifdef THREADS
    task->init(&(struct duda_task_conf){.threads = THREADS, .queue = QUEUE});
#endif
    db = sqlite->open(&(struct duda_sqlite_conf){.path = "notes.db",
                                                 .migrations = migrations,
                                                 .busy_ms = BUSY_MS,
                                                 .query_ms = QUERY_MS,
                                                 .waiting_max = WAITING_MAX,
                                                 .read_only = READ_ONLY});
    if (!db)
        return -1;
#ifdef THREAD
    worker->spawn(add_in_thread, NULL);
#else
    (void)add_in_thread;
#endif
    router->get("/list", handle_list);
    router->get("/add", handle_add);
    router->get("/add-returning", handle_add_returning);
    router->get("/then/add-returning", returning_then);
    router->get("/then/keep", keep_then);
    router->get("/copy", handle_copy);
    router->get("/inside", handle_wait_in_transaction);
    router->get("/forever", handle_run_forever);
    router->get("/then/list", list_then);
    router->get("/then/add", add_then);
    router->get("/then/copy", copy_then);
    router->get("/then/forever", run_then);
    router->get("/then/note", note_then);
    router->get("/callback", call_in_callback);
    router->get("/late", open_late);
    router->get("/count", count);
    return 0;
}
"""


LIMITS = {"BUSY_MS": 100, "QUERY_MS": 60000, "WAITING_MAX": 1000}


def service_with(**defines):
    limits = {name: f"(unsigned)atoi({patched(defines.pop(name, value))})" for name, value in LIMITS.items()}
    lines = "".join(f"#define {name} {value}\n" for name, value in {**limits, **defines}.items())
    return HEAD + lines + SERVICE


@pytest.fixture
def serve_notes(serve_services, tmp_path):
    """Starts a server with the service above; server.data is its DataDir."""
    data = tmp_path / "data"
    data.mkdir()

    def start(workers=1, **defines):
        keys, settings = {"notes": {"DataDir": data}}, {"Workers": workers, "ShutdownTimeout": "300ms"}
        server = serve_services({"notes": service_with(**defines)}, settings, keys=keys)
        server.data = data
        return server

    start.data = data
    return start


def ask(server, target, client=None):
    """The body of an answer. Texts are those of answer(): a number and a sentence."""
    with contextlib.ExitStack() as stack:
        client = client or stack.enter_context(server.connect())
        return client.ask(f"/notes{target}", host="localhost").body.decode()


def counts(server):
    """How many calls of dthreads are under way, how many calls were notified that their clients have left, and the
    transactions and callbacks that have begun."""
    adding, left, inside = ask(server, "/count").split()
    return {"adding": int(adding), "left": int(left), "inside": int(inside)}


@contextlib.contextmanager
def writing(path):
    """Holds the lock of the database, as another process that writes."""
    other = sqlite3.connect(path, isolation_level=None, timeout=30)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.execute("ROLLBACK")
        other.close()


def send(server, target):
    """Sends a request, and returns its client without waiting for the response."""
    client = server.connect()
    client.send(request(f"/notes{target}"))
    return client


# ── dthreads and callbacks ──


def test_dthreads(serve_notes):
    server = serve_notes()
    assert ask(server, "/list") == ""
    assert ask(server, "/add?text=it's+%3Cb%3E") == "0 "
    assert ask(server, "/add?text=it's+%3Cb%3E") == "-17 notes.db: UNIQUE constraint failed: notes.text"
    assert ask(server, "/add") == "-34 notes.db: NOT NULL constraint failed: notes.text"
    assert ask(server, "/copy") == "2 "
    assert ask(server, "/list") == "1=it's <b> 2=it's <b>x "
    assert "sqlite" not in server.log  # the fault of clients
    assert not ask(server, "/forever-not-there").startswith("0")


def test_callbacks(serve_notes):
    server = serve_notes()
    assert ask(server, "/then/add?text=a") == "0 1 "
    assert ask(server, "/then/add?text=a") == "-17 1 notes.db: UNIQUE constraint failed: notes.text"
    assert ask(server, "/then/copy") == "2 0 "
    assert ask(server, "/then/list") == "1=a 2=ay "
    assert ask(server, "/then/list?like=_y") == "2=ay "
    assert ask(server, "/then/keep") == "aay"
    assert ask(server, "/then/note") == "0 "
    await_true(lambda: "noted" in ask(server, "/then/list"), 60, what="the note without a callback")


@pytest.mark.parametrize("path", ["/add-returning", "/then/add-returning"])
def test_queries_that_write(serve_notes, path):
    """They run where the database is written, in the order of the calls."""
    server = serve_notes()
    assert ask(server, f"{path}?text=a") == "1=A "
    assert ask(server, f"{path}?text=b") == "2=B "
    assert "UNIQUE constraint failed: notes.text" in ask(server, f"{path}?text=a")
    with writing(server.data / "notes.db"):
        assert "the database is locked" in ask(server, f"{path}?text=c")
        assert ask(server, "/list") == "1=a 2=b "
    assert ask(server, f"{path}?text=c") == "3=C "
    assert ask(server, "/list") == "1=a 2=b 3=c "


def test_calls_that_would_block_a_worker(serve_notes):
    server = serve_notes()
    assert ask(server, "/callback") == (
        "-1 notes.db: a callback of a worker must not wait: call it in a dthread, or one of the _then functions"
    )
    server.wait_log(r"warn  service notes: sqlite->query\(\): notes.db: a callback of a worker must not wait")
    assert ask(server, "/late") == "-1 it works only in duda_main()"
    assert not (server.data / "late.db").exists()


FAILING = """
#include <duda/packages/sqlite/sqlite.h>

static duda_sqlite_t *a, *b, *c;

static void end_query(duda_request_t *dr, struct duda_sqlite_result *result, void *given)
{
    (void)given;
    response->printf(dr, "%d", result->err);
    response->end(dr, NULL);
}

static void query_later(duda_request_t *dr)
{
    sqlite->query_then(dr, b, "SELECT b", DUDA_SQLITE_NO_ARGS, end_query, NULL);
}

static void query_now(duda_request_t *dr)
{
    duda_sqlite_rows_t *rows;
    response->printf(dr, "%d", sqlite->query(a, &rows, "SELECT a", DUDA_SQLITE_NO_ARGS));
    response->end(dr, NULL);
}

static int change(duda_sqlite_t *db, void *given)
{
    (void)given;
    return sqlite->exec(db, NULL, "DELETE FROM c", DUDA_SQLITE_NO_ARGS);
}

static void change_later(duda_request_t *dr)
{
    sqlite->transaction_then(dr, c, change, end_query, NULL);
}

int duda_main(void)
{
    duda_load_package(sqlite, "sqlite");
    a = sqlite->open(&(struct duda_sqlite_conf){.path = "a.db"});
    b = sqlite->open(&(struct duda_sqlite_conf){.path = "b.db"});
    c = sqlite->open(&(struct duda_sqlite_conf){.path = "c.db"});
    router->in_dthread(router->get("/now", query_now));
    router->get("/later", query_later);
    router->get("/change", change_later);
    sqlite->open(&(struct duda_sqlite_conf){.path = ":"});
    return 0;
}
"""


def test_where_a_call_has_failed(serve_services, tmp_path):
    """The log has the SQL and the place of the service's call: in a dthread, before a callback, in a transaction."""
    server = serve_services({"failing": HEAD + FAILING}, keys={"failing": {"DataDir": tmp_path}})
    for path in ("now", "later", "change"):
        assert server.connect().ask(f"/failing/{path}").body == b"-22"
    rows = {
        r"open\(\): the path is that of no file": "duda_main",
        r"query\(\): a.db: no such column: a \(SELECT a\)": "query_now",
        r"query\(\): b.db: no such column: b \(SELECT b\)": "query_later",
        r"exec\(\): c.db: no such table: c \(DELETE FROM c\)": "change",
    }
    for line, function in rows.items():
        server.wait_log(rf"warn  service failing: sqlite->{line}, in {function_of('failing', function)}$")


@pytest.mark.concurrent
def test_workers_write_at_the_same_time(serve_notes):
    server = serve_notes(workers=3, THREAD=1, BUSY_MS=60000)
    failures = []

    def write(number):
        try:
            with server.connect() as client:
                for i in range(20):
                    path = "/then/add" if i % 2 else "/add"
                    assert ask(server, f"{path}?text={number}-{i}", client).startswith("0 ")
                    assert f"={number}-{i} " in ask(server, "/list", client)
        except BaseException as error:  # reported by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=write, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    await_true(lambda: len(ask(server, "/list").split("thread ")) == 21, 30, what="the notes of the thread")
    server.stop()
    with contextlib.closing(sqlite3.connect(server.data / "notes.db")) as db:
        assert db.execute("SELECT count(*) FROM notes").fetchone() == (100,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not (server.data / "notes.db-wal").exists()  # all is in the file


# ── locks ──


@pytest.mark.concurrent
@pytest.mark.single_protocol  # uses the socket of the client
def test_a_blocked_writer_delays_no_other_request(serve_notes):
    """Order of events: while another process holds the lock, and a request waits for it, others are answered."""
    server = serve_notes(BUSY_MS=600000, QUERY_MS=600000)
    assert ask(server, "/add?text=first") == "0 "
    with writing(server.data / "notes.db"):
        writers = [send(server, path) for path in ("/add?text=a", "/then/add?text=b", "/copy", "/add?text=c")]
        await_true(lambda: counts(server)["adding"] == 2, 60, what="two writers in dthreads")
        with server.connect() as client:
            for _ in range(200):
                assert client.ask("/hello.txt").status == 200
        for _ in range(20):
            assert ask(server, "/list") == ask(server, "/then/list") == "1=first "
        for writer in writers:
            writer.sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                writer.sock.recv(1)
            writer.sock.setblocking(True)
            writer.sock.settimeout(60)
    answers = [writer.response().body.decode() for writer in writers]
    assert [answer.split()[0] for answer in (answers[0], answers[1], answers[3])] == ["0", "0", "0"]
    assert answers[2].split()[0] in ("2", "3", "4", "5")  # the id of the copy
    assert len(ask(server, "/list").split()) == 5


# Both are for the connection that writes: the second one may not have begun in time.
LATE_TURN = "-110 0 notes.db: the call has waited too long for its turn, or the disk does not answer"
LOCKED = "-16 notes.db: the database is locked: another connection or process has held the lock for 100 ms"


def test_a_locked_database(serve_notes):
    """Each call ends `busy_ms` after it was made, also behind others in the queue."""
    server = serve_notes()
    with writing(server.data / "notes.db"):
        writers = [send(server, "/add?text=a") for _ in range(5)]
        assert {writer.response().body.decode() for writer in writers} == {LOCKED}
        assert ask(server, "/copy") == LOCKED
        assert ask(server, "/then/copy") == LOCKED.replace("-16", "-16 0")
        assert ask(server, "/list") == ""
    server.wait_log(r"warn  service notes: sqlite->(exec|transaction)\(\): notes.db: the database is locked: another")
    assert ask(server, "/add?text=a") == "0 "


@pytest.mark.single_protocol  # uses the socket of the client
def test_a_lock_for_longer_than_a_call(serve_notes):
    """With busy_ms above query_ms, query_ms is what ends the call."""
    server = serve_notes(BUSY_MS=600000, QUERY_MS=2000)
    late = "notes.db: the call has taken 2000 ms (query_ms), and was ended"
    with writing(server.data / "notes.db"):
        writers = [send(server, path) for path in ("/copy", "/then/add?text=a")]
        for writer in writers:
            writer.sock.settimeout(60)
        assert writers[0].response().body.decode() in (f"-110 {late}", LATE_TURN.replace("0 ", "", 1))
        assert writers[1].response().body.decode() in (f"-110 0 {late}", LATE_TURN)


def test_a_database_of_another_process_alone(serve_notes):
    """Its lock stops readers, too, which get an error in time, while files are served."""
    server = serve_notes(BUSY_MS=600000, QUERY_MS=600000)
    assert ask(server, "/add?text=a") == "0 "
    server.stop()
    with contextlib.closing(sqlite3.connect(server.data / "notes.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("INSERT INTO notes(text) VALUES('b')")
        late = serve_notes()
        late.wait_log(r"sqlite->open\(\): notes.db: the database is locked: another connection or process has held")
        with late.connect() as client:
            assert client.ask("/notes/list", host="localhost").status == 503
            assert client.ask("/hello.txt").status == 200
    assert late.alive


def test_too_many_wait(serve_notes):
    server = serve_notes(BUSY_MS=600000, QUERY_MS=600000, WAITING_MAX=2)
    with writing(server.data / "notes.db"):
        writers = [send(server, f"/add?text={n}") for n in range(2)]
        await_true(lambda: counts(server)["adding"] == 2, 60, what="two writers")
        many = "notes.db: as many calls as waiting_max allows wait already"
        assert ask(server, "/add?text=c") == f"-11 {many}"
        assert ask(server, "/copy") == f"-11 {many}"
        assert ask(server, "/then/add?text=c") == f"-11 {many}"
        assert ask(server, "/list") == ""
    for writer in writers:
        writer.sock.settimeout(60)
        assert writer.response().body == b"0 "


def test_too_many_tasks(serve_notes):
    """The only thread waits for the lock, and one further task of the service for the thread."""
    server = serve_notes(BUSY_MS=600000, QUERY_MS=600000, THREADS=1, QUEUE=1)
    with writing(server.data / "notes.db"):
        writers = [send(server, f"/add?text={n}") for n in range(2)]
        await_true(lambda: counts(server)["adding"] == 2, 60, what="two writers")
        many = "notes.db: too many tasks of the service wait for a thread"
        for path in ("/add?text=c", "/copy", "/then/add?text=c", "/list"):
            assert ask(server, path) == f"-11 {many}", path
    for writer in writers:
        writer.sock.settimeout(60)
        assert writer.response().body == b"0 "
    server.wait_log(f"warn  service notes: sqlite->exec\\(\\): {many}")


# ── time ──


@pytest.mark.slow
def test_a_query_that_does_not_end(serve_notes):
    server = serve_notes(QUERY_MS=5000)
    late = "notes.db: the call has taken 5000 ms (query_ms), and was ended"
    clients = [send(server, path) for path in ("/forever", "/then/forever")]
    for client, number in zip(clients, ("-110", "-110 0"), strict=True):
        client.sock.settimeout(60)
        assert client.response().body.decode() == f"{number} {late}"
    await_true(lambda: ask(server, "/list") == "", 60, what="a reply in time")


@pytest.mark.parametrize("path, key", [("/forever", "adding"), ("/inside", "inside")])
def test_a_client_that_leaves(serve_notes, path, key):
    """What runs for it is ended, and a transaction undone."""
    server = serve_notes(QUERY_MS=600000)
    client = send(server, path)
    await_true(lambda: counts(server)[key] == 1, 60, what="the call")
    client.reset()
    await_true(lambda: counts(server)["left"] == 1, 60, what="the dthread is notified")
    assert ask(server, "/add?text=next") == "0 "
    assert ask(server, "/list") == "1=next "


def test_a_client_that_leaves_a_callback(serve_notes):
    """It is called without a request, and frees what it has."""
    server = serve_notes(QUERY_MS=6000)
    client = send(server, "/then/forever")
    await_true(lambda: counts(server)["inside"] == 1, 60, what="the call")
    client.reset()
    await_true(lambda: counts(server)["left"] == 1, 60, what="the callback without a request")
    assert ask(server, "/add?text=next") == "0 "


# ── reloads ──

DESCRIPTORS = 2 * 3 + 1  # of a version: the file and the WAL for each connection, and the index of the WAL


@pytest.mark.concurrent
def test_a_new_version_of_the_service(serve_notes):
    """It may open the file, and change the schema, while the old one still writes."""
    server = serve_notes(workers=2, BUSY_MS=60000)
    server.baseline += DESCRIPTORS  # see the next test
    assert ask(server, "/add?text=a") == "0 "
    build_service(server.services, "notes", service_with(SECOND=1, BUSY_MS=60000))
    reload(server)
    await_true(lambda: ask(server, "/add?text=b") in ("0 ", "-17 notes.db: UNIQUE constraint failed: notes.text"), 60)
    assert ask(server, "/list") == "1=a 2=b "
    with contextlib.closing(sqlite3.connect(server.data / "notes.db")) as db:
        assert db.execute("SELECT stars FROM notes").fetchall() == [(5,), (5,)]
        assert db.execute("PRAGMA user_version").fetchone() == (2,)

    build_service(server.services, "notes", service_with(BUSY_MS=60000, THREAD=1))  # the first version again
    lines = "\n".join(reload(server))
    assert "notes.db: the database has the version 2, and this service knows 1: it was changed by a newer" in lines
    assert ask(server, "/list") == "1=a 2=b "  # the version that runs stays in use


def remove_service(server):
    """Takes the service out of the configuration."""
    config = server.conf / "sites/default"
    text = config.read_text()
    config.write_text(text[: text.index("[WEB_SERVICE]")])
    reload(server)


@pytest.mark.concurrent
def test_reloads_leave_no_descriptors(serve_notes):
    """
    While the new version has the file open, SQLite keeps the descriptors of the old one, since closing them would end
    the locks of the process; later connections take them over.
    """
    server = serve_notes(workers=2)
    assert ask(server, "/add?text=a") == "0 "

    def opened():
        return [name for name in server.open_files() if "notes.db" in name]

    assert opened()
    for n in range(4):
        build_service(server.services, "notes", service_with(WAITING_MAX=100 + n))
        reload(server)
        assert ask(server, "/list") == "1=a "
        await_true(lambda: len(opened()) <= 2 * DESCRIPTORS, 30, what="the descriptors of two versions at most")
    remove_service(server)
    await_true(lambda: not opened(), 30, what="the end of all descriptors")


def test_a_stop_while_a_query_runs(serve_notes):
    server = serve_notes(QUERY_MS=600000)
    client = send(server, "/forever")
    other = send(server, "/then/forever")
    await_true(lambda: counts(server)["adding"] == 1, 60, what="the query")
    server.stop()
    client.close()
    other.close()


# ── files that cannot be used ──


def test_a_missing_file(serve_notes):
    server = serve_notes(READ_ONLY="true")
    server.wait_log(
        r"warn  service notes: sqlite->open\(\): notes.db: unable to open database file: No such file or directory"
    )
    with server.connect() as client:
        assert client.ask("/notes/list", host="localhost").status == 503
        assert client.ask("/hello.txt").status == 200


def test_no_database(serve_notes):
    (serve_notes.data / "notes.db").write_bytes(b"a text, and no database\n" * 1000)
    server = serve_notes()
    server.wait_log(r"sqlite->open\(\): notes.db: file is not a database")
    assert server.connect().ask("/notes/list", host="localhost").status == 503


def test_a_database_that_is_damaged_later(serve_notes):
    server = serve_notes()
    for n in range(100):
        ask(server, f"/then/add?text={str(n) * 100}")
    server.stop()
    with open(server.data / "notes.db", "r+b") as file:
        file.seek(4096)
        file.write(b"x" * 8192)
    server = serve_notes()
    damaged = "-117 notes.db: database disk image is malformed"
    assert ask(server, "/list") == ask(server, "/add?text=a") == damaged
    assert ask(server, "/then/add?text=a") == damaged.replace("-117", "-117 0")
    with server.connect() as client:
        assert client.ask("/hello.txt").status == 200


def test_a_newer_version(serve_notes):
    with contextlib.closing(sqlite3.connect(serve_notes.data / "notes.db")) as db:
        db.execute("PRAGMA user_version = 7")
    server = serve_notes()
    server.wait_log(
        r"sqlite->open\(\): notes.db: the database has the version 7, and this service knows 1: it was changed by a "
        r"newer version of the service"
    )


def test_a_disk_with_an_error(serve_notes):
    """Files of the server may not grow for a while, of which the kernel tells write()."""
    server = serve_notes()
    assert ask(server, "/add?text=a") == "0 "
    own = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    size = (server.data / "notes.db-wal").stat().st_size
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, own[1]))
    assert ask(server, "/add?text=b").startswith("-5 notes.db: disk I/O error")
    assert ask(server, "/list") == "1=a "
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, own)
    assert ask(server, "/add?text=b") == "0 "


# ── old services ──

OLD = """
#include "webservice.h"
#include "packages/sqlite/sqlite.h"

DUDA_REGISTER("tests", "sqlite");

static sqlite_db_t *db;

int on_row(void *data, int n, char **values, char **names)
{
    struct sqlite_cb_data *cb = data;
    response->printf(cb->dr, "%d %s=%s %s;", n, names[1], values[1], (char *)cb->data);
    return 0;
}

void cb_exec(duda_request_t *dr)
{
    int added = sqlite->exec(dr, db, "INSERT INTO t VALUES(1, 'ada'); INSERT INTO t VALUES(2.5, 'eve')", NULL, NULL);
    response->http_status(dr, 200);
    response->printf(dr, "%d ", added);
    int listed = sqlite->exec(dr, db, "SELECT * FROM t", on_row, "x");
    int wrong = sqlite->exec(dr, db, "SELECT * FROM u", on_row, NULL);
    response->printf(dr, " %d %d", listed, wrong);
    response->end(dr, NULL);
}

void cb_dump(duda_request_t *dr)
{
    sqlite_handle_t *handle;
    int wrong = sqlite->dump(db, "SELECT", &handle);
    int right = sqlite->dump(db, "SELECT n, name FROM t ORDER BY n", &handle);
    response->http_status(dr, 200);
    response->printf(dr, "%d %d ", wrong, right);
    sqlite_foreach(handle)
    {
        response->printf(dr, "%d %.1f %s;", sqlite->get_int(handle, 0), sqlite->get_double(handle, 0),
                         (const char *)sqlite->get_text(handle, 1));
    }
    sqlite->done(handle);
    sqlite->dump(db, "SELECT 1", &handle); /* is freed with the service */
    response->end(dr, NULL);
}

void cb_insert(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%d", sqlite->exec(dr, db, "INSERT INTO t VALUES(3, 'x')", NULL, NULL));
    response->end(dr, NULL);
}

int duda_main()
{
    duda_load_package(sqlite, "sqlite");
    map->static_add("/exec", "cb_exec");
    map->static_add("/dump", "cb_dump");
    map->static_add("/insert", "cb_insert");
    sqlite_db_t *other = sqlite->open("other.db");
    sqlite->close(other);
    if (sqlite->open("/none/old.db"))
        return -1;
    db = sqlite->open("old.db");
    return db ? sqlite->exec(NULL, db, "CREATE TABLE IF NOT EXISTS t(n, name)", NULL, NULL) : -1;
}
"""


@pytest.mark.parametrize("number", [None, 0, 1, 2])
def test_the_calls_of_the_original(serve_services, tmp_path, number):
    source = re.sub(r'map->static_add\((".*?"), "(\w+)"\)', r"router->map(\1, \2)", OLD) if number == 2 else OLD
    build_old_service(tmp_path / "services", "old", source, any_level=number is None, number=number)
    (tmp_path / "data").mkdir()
    server = serve_services({}, {"Workers": 2}, text=web_service("old", DataDir=tmp_path / "data"))

    def get(path):
        with server.connect() as client:
            return client.ask(f"/old{path}", host="localhost").body.decode()

    assert get("/exec") == "0 2 name=ada x;2 name=eve x; 0 -1"
    assert get("/dump") == "-1 0 1 1.0 ada;2 2.5 eve;"
    server.wait_log(r"warn  service old: sqlite->open\(\): /none/old.db: unable to open database file")
    server.wait_log(r"warn  service old: sqlite->exec\(\): no such table: u")
    server.wait_log(r"warn  service old: sqlite->dump\(\): incomplete input")
    with writing(tmp_path / "data/old.db"):
        assert get("/insert") == "-1"
    server.wait_log(r"warn  service old: sqlite->exec\(\): database is locked")
    assert get("/insert") == "0"


CPP_SERVICE = """
#include <duda/duda.h>
#include <duda/packages/sqlite/sqlite.h>
#include <cstdlib>

static duda_sqlite_t *db;

static void sum(duda_request_t *dr, void *)
{
    duda_sqlite_rows_t *rows;
    const struct duda_sqlite_value args[] = {duda_sqlite_int(40), duda_sqlite_text("2")};
    if (sqlite->query(db, &rows, "SELECT ? + ?", args, 2) == 0 && sqlite->next(rows))
        response->printf(dr, "%d", (int)sqlite->get_int(rows, 0));
    std::free(rows);
    response->end(dr, NULL);
}

static void handle(duda_request_t *dr)
{
    dthread->handle(dr, sum, NULL);
}

int duda_main(void)
{
    duda_load_package(sqlite, "sqlite");
    struct duda_sqlite_conf conf = {};
    conf.path = "cpp.db";
    db = sqlite->open(&conf);
    return db && router->get("/sum", handle) ? 0 : -1;
}
"""


@pytest.mark.parametrize("compiler", CPP)
def test_cpp(serve_services, tmp_path, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "services").mkdir()
    build_cpp(tmp_path / "services", "cpp", CPP_SERVICE, compiler)
    (tmp_path / "data").mkdir()
    server = serve_services({}, text=web_service("cpp", DataDir=tmp_path / "data"))
    assert server.connect().ask("/cpp/sum", host="localhost").body == b"42"


# ── the page ──

HEADER = build.TOP / "include/duda/packages/sqlite/sqlite.h"
PAGE = (build.TOP / "docs/reference/duda/sqlite.md").read_text()


def test_the_page_names_all_functions():
    table = re.search(r"^struct duda_api_sqlite {\n(.*?)^};", HEADER.read_text(), re.M | re.S)[1]
    functions = re.findall(r"\(\*(?:DUDA_SQLITE_\w+\()?(\w+)\)?\)\(", re.sub(r"/\*.*?\*/", "", table, flags=re.S))
    quoted = " ".join(re.findall(r"`([^`\n]+)`", PAGE))
    assert len(functions) > 20 and "transaction_then" in functions
    assert [name for name in functions if name != "fn" and not re.search(rf"\b{name}\b", quoted)] == []


def test_the_examples_of_the_page(serve_services, tmp_path):
    source = "\n".join(re.findall(r"^```c\n(.*?)^```$", PAGE, re.S | re.M))
    priced = 'sqlite->transaction(db, double_price, (void *)"pen") == 6'
    more = f'db && router->get("/sell/:name", sell) && {priced} ? router->in_dthread('
    assert source.count("db ? router->in_dthread(") == 1
    source = HEAD + "#include <errno.h>\n" + source.replace("db ? router->in_dthread(", more)
    parts = source.partition("int duda_main(void)")  # behind the other functions
    main, end, rest = parts[2].partition("\n}\n")
    source = parts[0] + rest + parts[1] + main + end
    (tmp_path / "data").mkdir()
    server = serve_services({"shop": source}, keys={"shop": {"DataDir": tmp_path / "data"}})
    with server.connect() as client:
        assert client.ask("/shop/", host="localhost").body == b"pen: 6\n"
        assert client.ask("/shop/sell/pen", host="localhost").body == b"sold\n"
        assert client.ask("/shop/", host="localhost").body == b""


# ── figures ──


def measure_p99(server, n=3000):
    """The 99th percentile of the time of a static file, in microseconds."""
    times = []
    for _ in range(n // 100):
        with server.connect() as client:
            for _ in range(100):
                begin = time.perf_counter_ns()
                assert client.ask("/hello.txt").status == 200
                times.append(time.perf_counter_ns() - begin)
    return sorted(times)[n * 99 // 100] / 1000


@pytest.mark.budget
def test_the_p99_of_a_static_file(serve_notes):
    """Prints it, without and with 20 writers that a lock blocks, in turns; that they delay nothing is shown above."""
    server = serve_notes(BUSY_MS=600000, QUERY_MS=600000)
    assert ask(server, "/add?text=first") == "0 "
    measure_p99(server)
    for number in range(3):
        free = measure_p99(server)
        with writing(server.data / "notes.db"):
            writers = [send(server, f"/add?text={number}-{n}") for n in range(20)]
            await_true(lambda: counts(server)["adding"] == 20, 60, what="the writers")
            blocked = measure_p99(server)
        for writer in writers:
            writer.sock.settimeout(60)
            assert writer.response().body == b"0 "
        print(f"p99 of a static file: {free:.0f} us without a blocked writer, {blocked:.0f} us with 20 of them")
