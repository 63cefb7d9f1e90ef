// SPDX-License-Identifier: Apache-2.0
/*
 * fanout: one page of several sources, which are asked at the same time. GET /fanout/ asks four of them by UDP, each in
 * a dthread, and waits for all, 200 ms at most.
 *
 *     make_page ─┬─► ask "rain" ─┐
 *                ├─► ask "sun"  ─┼─► join ─► response       meanwhile the worker serves others
 *                └─► ...        ─┘
 *
 * The sources are a thread of the service here; "moon" never answers.
 */
#include <duda/duda.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

DUDA_REGISTER("Duda I/O examples", "sources that are asked at the same time");

enum { TIMEOUT_MS = 2000, TEXT_BYTES = 64 };

static const char *const names[] = {"rain", "sun", "wind", "moon"};
enum { SOURCES = sizeof(names) / sizeof(names[0]) };

static struct sockaddr_in source_address;
static int source_fd = -1;

struct question {
    const char *name;
    char text[TEXT_BYTES];
    int err;
};

/* Returns 0 or -errno. Between its calls the worker serves others: nothing here blocks. */
static int ask(int fd, struct question *q)
{
    if (connect(fd, (const struct sockaddr *)&source_address, sizeof(source_address)) < 0 ||
        send(fd, q->name, strlen(q->name), 0) < 0)
        return -errno;
    int ready = dthread->poll(fd, DUDA_EVENT_READ, TIMEOUT_MS);
    if (ready < 0)
        return ready; /* -ETIMEDOUT, or the client has left */
    ssize_t n = recv(fd, q->text, sizeof(q->text) - 1, 0);
    return n < 0 ? -errno : 0;
}

static void ask_source(duda_request_t *dr, void *data)
{
    struct question *q = data;
    (void)dr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    q->err = fd < 0 ? -errno : ask(fd, q);
    if (fd >= 0)
        close(fd);
}

static void make_page(duda_request_t *dr)
{
    struct question questions[SOURCES];
    duda_dthread_t asking[SOURCES];
    int err = 0, result;
    for (int i = 0; i < SOURCES; i++) {
        questions[i] = (struct question){.name = names[i], .err = -ENOMEM};
        asking[i] = dthread->handle(dr, ask_source, &questions[i]);
    }
    for (int i = 0; i < SOURCES; i++) {
        while ((result = dthread->join(asking[i], DUDA_FOREVER)) < 0)
            err = result; /* they are told, too, and end soon: until then they write to `questions` */
    }
    if (err)
        return;
    for (int i = 0; i < SOURCES; i++) {
        const struct question *q = &questions[i];
        response->printf(dr, "%s: %s\n", q->name, q->err == 0 ? q->text : strerror(-q->err));
    }
    response->end(dr, NULL);
}

/* ── the sources ── */

static void answer_one(void)
{
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    char name[16], text[TEXT_BYTES];
    ssize_t n = recvfrom(source_fd, name, sizeof(name) - 1, 0, (struct sockaddr *)&from, &len);
    if (n <= 0)
        return;
    name[n] = '\0';
    if (strcmp(name, "moon") == 0)
        return;
    int written = snprintf(text, sizeof(text), "%s is fine today", name);
    sendto(source_fd, text, (size_t)written, 0, (const struct sockaddr *)&from, len);
}

static void *serve(void *arg)
{
    while (!worker->stopping())
        answer_one();
    close(source_fd);
    return arg;
}

static int open_sources(void)
{
    struct timeval timeout = {.tv_usec = 100000};
    socklen_t len = sizeof(source_address);
    source_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    source_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (source_fd < 0 || setsockopt(source_fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
        bind(source_fd, (const struct sockaddr *)&source_address, len) < 0)
        return -1;
    return getsockname(source_fd, (struct sockaddr *)&source_address, &len);
}

int duda_main(void)
{
    if (open_sources() < 0 || worker->spawn(serve, NULL) < 0)
        return -1;
    return router->in_dthread(router->get("/", make_page));
}
