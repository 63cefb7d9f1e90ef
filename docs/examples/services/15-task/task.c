// SPDX-License-Identifier: Apache-2.0
/*
 * task: calls that block, on threads of the service.
 *
 *     curl -d secret http://localhost:2001/task/hash       PBKDF2 of a password, which computes for long
 *     curl http://localhost:2001/task/resolve/localhost    its address, by getaddrinfo(), which waits for servers
 *
 * The first one is a callback, the second one straight code in a dthread.
 *
 *     worker: hash_password ─► start()     thread: run_hash     worker: send_hash ─► response
 *     worker: resolve ─► dthread: await() ─► thread: run_lookup ─► the dthread continues ─► response
 */
#include <duda/duda.h>
#include <duda/packages/sha256/sha256.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

DUDA_REGISTER("Duda I/O examples", "calls that block");

/* ── a callback ── */

enum { PASSWORD_BYTES = 128, SALT_BYTES = 16, ROUNDS = 20000 };

struct hash {
    unsigned char password[PASSWORD_BYTES], salt[SALT_BYTES + 4], key[SHA256_DIGEST_LENGTH];
    size_t len;
    int err;
};

/* The first block of PBKDF2 with HMAC-SHA-256 (RFC 8018, 5.2). On a thread. */
static void run_hash(void *data)
{
    struct hash *h = data;
    unsigned char u[SHA256_DIGEST_LENGTH];
    h->salt[SALT_BYTES + 3] = 1; /* the number of the block */
    h->err = sha256->hmac(h->password, h->len, h->salt, sizeof(h->salt), u);
    memcpy(h->key, u, sizeof(u));
    for (int round = 1; round < ROUNDS && h->err == 0 && !task->stopping(); round++) {
        h->err = sha256->hmac(h->password, h->len, u, sizeof(u), u);
        for (size_t i = 0; i < sizeof(u); i++)
            h->key[i] ^= u[i];
    }
}

static void print_hex(duda_request_t *dr, const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        response->printf(dr, "%02x", bytes[i]);
}

/* In the worker of the request. `dr` is NULL if the client has left meanwhile. */
static void send_hash(duda_request_t *dr, int result, void *data)
{
    struct hash *h = data;
    if (dr && (result < 0 || h->err < 0)) {
        response->error(dr, result == -ETIMEDOUT ? 503 : 500);
    } else if (dr) {
        print_hex(dr, h->salt, SALT_BYTES);
        response->printf(dr, "$");
        print_hex(dr, h->key, sizeof(h->key));
        response->printf(dr, "\n");
        response->end(dr, NULL);
    }
    free(h);
}

static void hash_password(duda_request_t *dr)
{
    static const struct duda_task_kind hashing = {.fn = run_hash, .done = send_hash, .drop = free, .queue_ms = 20000};
    size_t len;
    const char *password = request->body(dr, &len);
    struct hash *h = calloc(1, sizeof(*h));
    if (!password || !h || len > sizeof(h->password) || getrandom(h->salt, SALT_BYTES, 0) != SALT_BYTES) {
        free(h);
        response->error(dr, h ? 400 : 503);
        return;
    }
    memcpy(h->password, password, len);
    h->len = len;
    if (!task->start(dr, &hashing, h)) {
        free(h); /* the queue is full */
        response->error(dr, 503);
    }
}

/* ── straight code ── */

enum { NAME_BYTES = 256 };

struct lookup {
    char name[NAME_BYTES], address[INET_ADDRSTRLEN];
    int err;
};

static void run_lookup(void *data)
{
    struct lookup *l = data;
    struct addrinfo *found, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    l->err = getaddrinfo(l->name, NULL, &hints, &found);
    if (l->err)
        return;
    struct sockaddr_in in;
    memcpy(&in, found->ai_addr, sizeof(in));
    inet_ntop(AF_INET, &in.sin_addr, l->address, sizeof(l->address));
    freeaddrinfo(found);
}

/* getaddrinfo() cannot be ended: after five seconds it is left to the thread, which frees what it uses. */
static void answer(duda_request_t *dr, void *data)
{
    static const struct duda_task_kind looking = {.fn = run_lookup, .drop = free};
    struct lookup *l = data;
    int err = task->await(&looking, l, 5000);
    if (err == -ECONNABORTED || err == -ECANCELED)
        return; /* the client has left, or the service ends */
    if (err < 0) {
        response->error(dr, err == -ETIMEDOUT ? 504 : 503);
        return;
    }
    if (l->err) {
        response->error(dr, 404);
    } else {
        response->printf(dr, "%s\n", l->address);
        response->end(dr, NULL);
    }
    free(l);
}

static void resolve(duda_request_t *dr)
{
    const char *name = param->get(dr, "name");
    struct lookup *l = calloc(1, sizeof(*l));
    if (!name || strlen(name) >= NAME_BYTES || !l) {
        free(l);
        response->error(dr, 400);
        return;
    }
    memcpy(l->name, name, strlen(name) + 1);
    if (!dthread->handle(dr, answer, l)) {
        free(l);
        response->error(dr, 503);
    }
}

int duda_main(void)
{
    struct duda_task_conf conf = {.threads = 4, .queue = 1000};
    duda_load_package(sha256, "sha256");
    task->init(&conf);
    router->post("/hash", hash_password);
    return router->get("/resolve/:name", resolve) ? 0 : -1;
}
