# SPDX-License-Identifier: Apache-2.0
"""The package password: straight code, callbacks, a full pool, clients that leave, calls where they must not wait."""

import signal

from harness.services import NUMBERS_HEAD, function_of, needs_duda

pytestmark = needs_duda

SERVICE = NUMBERS_HEAD + """
#include <duda/packages/password/password.h>

static char stored[DUDA_PASSWORD_HASH_BYTES];

/* ── straight code ── */

static void verify(duda_request_t *dr, void *data)
{
    const char *name = qs->get(dr, "name");
    (void)data;
    answer(dr, password->verify(qs->get(dr, "password"), name && strcmp(name, "ada") == 0 ? stored : NULL));
}

static void handle_verify(duda_request_t *dr)
{
    dthread->handle(dr, verify, NULL);
}

static void make(duda_request_t *dr, void *data)
{
    char hash[DUDA_PASSWORD_HASH_BYTES];
    (void)data;
    int err = password->hash("another", hash), wrong = password->hash("", hash);
    bool works = password->verify("another", hash) == 0 && password->verify("an other", hash) == -EACCES;
    bool tells = !password->is_outdated(hash) && password->is_outdated("$5$a$b");
    answer(dr, err == 0 && wrong == -EINVAL && works && tells);
}

static void handle_make(duda_request_t *dr)
{
    dthread->handle(dr, make, NULL);
}

/* ── callbacks ── */

static void on_verified(duda_request_t *dr, int result, const char *hash, void *data)
{
    if (dr)
        answer(dr, hash || data != stored ? 1 : result);
    fprintf(stderr, "verified for %s\\n", dr ? "a client" : "none");
}

static void on_hashed(duda_request_t *dr, int result, const char *hash, void *data)
{
    if (result < 0 || password->verify_then(dr, "third", hash, on_verified, data) < 0)
        answer(dr, 2);
}

static void handle_then(duda_request_t *dr)
{
    if (password->hash_then(dr, "third", on_hashed, stored) < 0)
        answer(dr, 3);
}

static void handle_leave(duda_request_t *dr)
{
    fprintf(stderr, "leave\\n");
    password->verify_then(dr, "x", NULL, on_verified, NULL);
}

/* ── limits ── */

static int left, busy;

static void on_one(duda_request_t *dr, int result, const char *hash, void *data)
{
    (void)hash, (void)data;
    if (result == -EACCES && --left == 0)
        answer(dr, busy);
}

static void handle_many(duda_request_t *dr)
{
    for (int i = 0; i < 5; i++) {
        int err = password->verify_then(dr, "x", NULL, on_one, NULL);
        left += err == 0;
        busy += err == -EBUSY;
    }
}

static void handle_hashes(duda_request_t *dr)
{
    int right = 0;
    for (int i = 0; i < 9; i++)
        right += password->verify_then(dr, "x", "plain", on_one, NULL) == -EINVAL;
    answer(dr, right);
}

static void handle_wrong(duda_request_t *dr)
{
    static char longest[DUDA_PASSWORD_BYTES + 2], hash[DUDA_PASSWORD_HASH_BYTES];
    memset(longest, 'p', DUDA_PASSWORD_BYTES + 1);
    int right = password->hash("x", hash) == -EPERM && password->verify("x", NULL) == -EPERM;
    right += password->hash_then(dr, "x", NULL, NULL) == -EINVAL;
    right += password->hash_then(dr, NULL, on_one, NULL) == -EINVAL;
    right += password->hash_then(dr, longest, on_one, NULL) == -EMSGSIZE;
    right += password->verify_then(dr, "x", "plain", on_one, NULL) == -EINVAL;
    answer(dr, right);
}

int duda_main(void)
{
    duda_load_package(password, "password");
    task->init(&(struct duda_task_conf){.threads = 1, .queue = 1});
    if (password->hash("secret", stored) < 0 || password->verify("secret", stored) < 0)
        return -1;
    return router->get("/verify", handle_verify) && router->get("/make", handle_make) &&
        router->get("/then", handle_then) && router->get("/leave", handle_leave) && router->get("/many", handle_many) &&
        router->get("/wrong", handle_wrong) && router->get("/hashes", handle_hashes) ? 0 : -1;
}
"""
EACCES, EINVAL = -13, -22


def ask(server, target):
    with server.connect() as client:
        answer = client.ask(f"/web/{target}")
        return int(answer.body) if answer.status == 200 else answer.status


def test_hash_and_verify(serve_services):
    server = serve_services({"web": SERVICE}, {"Workers": 2})
    assert ask(server, "verify?name=ada&password=secret") == 0
    assert ask(server, "verify?name=ada&password=Secret") == EACCES
    assert ask(server, "verify?name=eve&password=secret") == EACCES
    assert ask(server, "verify?name=ada") == EINVAL
    assert ask(server, "make") == 1 and ask(server, "then") == 0


def test_limits_and_mistakes(serve_services):
    server = serve_services({"web": SERVICE}, {"Workers": 1})
    assert ask(server, "many") == 3  # one runs, one waits
    assert ask(server, "wrong") == 5
    server.wait_log(r"password->hash\(\): a callback of a worker must not wait")


def test_hashes_that_are_none(serve_services):
    """One line, with the place of the call."""
    server = serve_services({"web": SERVICE}, {"Workers": 1})
    assert ask(server, "hashes") == 9
    place = function_of("web", "handle_hashes")
    server.wait_log(rf"warn  service web: password->verify_then\(\): an argument is NULL or empty, .*, in {place}$")
    assert server.log.count("password->verify_then()") == 1


def test_clients_and_services_that_end(serve_services):
    server = serve_services({"web": SERVICE}, {"Workers": 1})
    client = server.connect()
    client.send("GET /web/leave HTTP/1.1\r\nHost: localhost\r\n\r\n")
    server.wait_log("^leave$")
    client.reset()
    server.wait_log("verified for")
    client = server.connect()
    client.send("GET /web/leave HTTP/1.1\r\nHost: localhost\r\n\r\n")
    server.wait_log("^leave$", 2)
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0
