// SPDX-License-Identifier: Apache-2.0
/*
 * The environment of harness.h: a poller that moves the clock, a transport over memory, an application that
 * counts. It checks what must hold in every test: no read without room, nothing written after the end, and no
 * wait while the last bytes are held back by a promise of more.
 */
#include "harness.h"

#include "base/asan.h"
#include "http/h1/h1.h"
#include "http/h2/h2.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_FD = 1 << 20, EPOCH_MS = 1000, EPOCH_SECONDS = 784111777 };

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

/* ── bytes ── */

static void append(struct mk_test_bytes *b, const void *data, size_t len)
{
    if (b->len + len + 1 > b->size) {
        b->size = (b->len + len + 1) * 2;
        b->p = realloc(b->p, b->size);
        EXPECT(b->p);
    }
    if (len)
        memcpy(b->p + b->len, data, len);
    b->len += len;
    b->p[b->len] = '\0';
}

/* ── the page cache ── */

enum { PAGE_BYTES = 4096, PAGES_MAX = 1024 };

static bool is_cold;
static pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t disk_released = PTHREAD_COND_INITIALIZER;
static bool disk_held;
static _Atomic bool is_resident[PAGES_MAX]; /* by the number of a page in its file: tests read one file at a time */

void mk_test_make_cold(void)
{
    for (unsigned i = 0; i < PAGES_MAX; i++)
        is_resident[i] = false;
    is_cold = true;
}

void mk_test_hold_disk(bool held)
{
    pthread_mutex_lock(&disk_lock);
    disk_held = held;
    pthread_cond_broadcast(&disk_released);
    pthread_mutex_unlock(&disk_lock);
}

static void wait_for_disk(void)
{
    pthread_mutex_lock(&disk_lock);
    while (disk_held)
        pthread_cond_wait(&disk_released, &disk_lock);
    pthread_mutex_unlock(&disk_lock);
}

static bool is_range_resident(off_t at, size_t size)
{
    for (uint64_t i = (uint64_t)at / PAGE_BYTES; i * PAGE_BYTES < (uint64_t)at + size; i++)
        if (i < PAGES_MAX && !is_resident[i])
            return false;
    return true;
}

/* The two calls of the C library by which files are read, in their place. */
ssize_t preadv2(int fd, const struct iovec *to, int pieces, off_t at, int flags)
{
    size_t size = 0;
    for (int i = 0; i < pieces; i++)
        size += to[i].iov_len;
    if (!is_cold || !(flags & RWF_NOWAIT) || is_range_resident(at, size))
        return preadv(fd, to, pieces, at);
    errno = EAGAIN;
    return -1;
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
    struct iovec piece = {.iov_base = to, .iov_len = size};
    wait_for_disk();
    ssize_t n = preadv(fd, &piece, 1, at);
    for (uint64_t i = (uint64_t)at / PAGE_BYTES; n > 0 && i * PAGE_BYTES < (uint64_t)(at + n) && i < PAGES_MAX; i++)
        is_resident[i] = true;
    return n;
}

/* ── the clock and the poller ── */

static struct mk_test_fixture *fixture_of(struct mk_loop *loop)
{
    return MK_CONTAINER_OF(loop, struct mk_test_fixture, loop);
}

static uint64_t now_ms(void *ctx)
{
    const struct mk_test_fixture *w = ctx;
    return w->now_ms;
}

static uint64_t now_us(void *ctx)
{
    return now_ms(ctx) * 1000;
}

static int64_t wall_seconds(void *ctx)
{
    const struct mk_test_fixture *w = ctx;
    return EPOCH_SECONDS + (int64_t)((w->now_ms - EPOCH_MS) / 1000);
}

static int open_nothing(struct mk_loop *loop)
{
    loop->poll_fd = -1;
    return 0;
}

static void close_nothing(struct mk_loop *loop)
{
    (void)loop;
}

static struct mk_test_client *client_of(struct mk_test_fixture *w, int fd)
{
    unsigned n = (unsigned)(fd - FIRST_FD);
    return fd >= FIRST_FD && n < w->n_clients ? w->clients[n] : NULL;
}

/* All that is true of a connection now. */
static uint32_t readiness(const struct mk_test_client *c)
{
    uint32_t events = 0;
    if (c->read_at < c->to_server.len || c->fin || c->error)
        events |= EPOLLIN;
    if (c->fin || c->error)
        events |= EPOLLRDHUP;
    if (c->room || c->error)
        events |= EPOLLOUT;
    if (c->error)
        events |= EPOLLHUP | EPOLLERR;
    if (c->fin && c->shut)
        events |= EPOLLHUP;
    return events;
}

/* Has the poller report an edge. */
static void add_edge(struct mk_test_client *c)
{
    struct mk_test_fixture *w = c->fixture;
    c->pending |= readiness(c);
    if (c->is_queued)
        return;
    c->is_queued = true;
    c->next_edge = NULL;
    *(w->first_edge ? w->last_edge : &w->first_edge) = c;
    w->last_edge = &c->next_edge;
}

static int control(struct mk_loop *loop, int op, struct mk_event *event, uint32_t events)
{
    struct mk_test_fixture *w = fixture_of(loop);
    struct mk_test_client *c = client_of(w, event->fd);
    (void)events;
    if (!c)
        return 0;
    if (op == EPOLL_CTL_ADD && w->refuses_events)
        return -ENOSPC;
    c->event = op == EPOLL_CTL_DEL ? NULL : event;
    c->pending = 0;
    if (c->event)
        add_edge(c);
    return 0;
}

static bool has_wakeup(struct mk_loop *loop, int timeout_ms)
{
    struct pollfd wakeup = {.fd = loop->wakeup_event.fd, .events = POLLIN};
    return poll(&wakeup, 1, timeout_ms) > 0;
}

static int add_event(struct mk_loop *loop, int n, struct mk_event *event, uint32_t events)
{
    loop->batch[n] = (struct epoll_event){.events = events, .data.ptr = event};
    return n + 1;
}

/* Before the loop sleeps: are the last bytes of a connection stuck behind a promise? */
static void check_corks(const struct mk_test_fixture *w)
{
    for (unsigned i = 0; i < w->n_clients; i++) {
        struct mk_test_client *c = w->clients[i];
        const struct mk__conn *h1 = mk_test_connection(c);
        EXPECT(!c->corked || !h1 || h1->state == MK__CONN_DISK || h1->state == MK__CONN_WRITE);
    }
}

static int wait_in_memory(struct mk_loop *loop, int timeout_ms)
{
    struct mk_test_fixture *w = fixture_of(loop);
    int n = 0;
    while (w->first_edge && n < MK__LOOP_BATCH) {
        struct mk_test_client *c = w->first_edge;
        w->first_edge = c->next_edge;
        c->is_queued = false;
        if (c->pending && c->event)
            n = add_event(loop, n, c->event, c->pending);
        c->pending = 0;
    }
    if (n < MK__LOOP_BATCH && has_wakeup(loop, 0))
        n = add_event(loop, n, &loop->wakeup_event, EPOLLIN);
    if (n || timeout_ms == 0)
        return n;
    check_corks(w);
    w->is_idle = timeout_ms < 0 || w->now_ms + (uint64_t)timeout_ms > w->limit_ms;
    w->now_ms = w->is_idle ? w->limit_ms : w->now_ms + (uint64_t)timeout_ms;
    return 0;
}

void mk_test_pass(struct mk_test_fixture *w, uint64_t ms)
{
    w->limit_ms = w->now_ms + ms;
    w->is_idle = false;
    for (unsigned turns = 0; !w->is_idle; turns++) {
        EXPECT(turns < 1000000); /* an endless loop */
        EXPECT(mk__loop_turn(&w->loop) == 0);
    }
}

void mk_test_settle(struct mk_test_fixture *w)
{
    mk_test_pass(w, 0);
}

bool mk_test_wait_wakeup(struct mk_test_fixture *w)
{
    bool rang = has_wakeup(&w->loop, 60000);
    mk_test_settle(w);
    return rang;
}

int mk_test_fixture_open(struct mk_test_fixture *w, struct mk_thread_pool *jobs)
{
    *w = (struct mk_test_fixture){
        .clock = {.now_ms = now_ms, .now_us = now_us, .wall_seconds = wall_seconds, .ctx = w},
        .poller = {.open = open_nothing, .close = close_nothing, .control = control, .wait = wait_in_memory},
        .now_ms = EPOCH_MS,
        .jobs = jobs,
    };
    mk_test_settings(&w->settings);
    return mk__loop_open(&w->loop, &w->poller, &w->clock, jobs);
}

void mk_test_fixture_close(struct mk_test_fixture *w)
{
    if (w->http.loop)
        mk__conn_abort_all(&w->http);
    mk__loop_close(&w->loop);
    if (w->http.loop)
        mk__http_release(&w->http);
    EXPECT(w->account.bytes == 0);
    for (unsigned i = 0; i < w->n_clients; i++) {
        EXPECT(w->clients[i]->closed);
        free(w->clients[i]->to_server.p);
        free(w->clients[i]->from_server.p);
        free(w->clients[i]);
    }
    free(w->clients);
    w->clients = NULL;
    w->n_clients = w->clients_size = 0;
    w->first_edge = NULL;
    is_cold = false;
}

/* ── the transport ── */

static int open_memory(struct mk_io *io, struct mk_worker *worker)
{
    (void)worker;
    struct mk_test_client *c = io->state;
    int err = c->fixture->open_error;
    c->fixture->open_error = 0;
    return err;
}

static ssize_t read_memory(struct mk_io *io, void *to, size_t size)
{
    struct mk_test_client *c = io->state;
    size_t n = c->to_server.len - c->read_at;
    EXPECT(size > 0 && !c->closed);
    if (c->error)
        return -c->error;
    if (n == 0)
        return c->fin ? 0 : -EAGAIN;
    if (n > size)
        n = size;
    if (n > c->read_max)
        n = c->read_max;
    memcpy(to, c->to_server.p + c->read_at, n);
    c->read_at += n;
    c->read_bytes += n;
    c->reads++;
    if (n == c->read_max && c->read_at < c->to_server.len)
        add_edge(c); /* the next bytes arrive separately */
    return (ssize_t)n;
}

/* How much of `size` may go out now, or -errno. */
static ssize_t find_room(struct mk_test_client *c, size_t size)
{
    EXPECT(size > 0 && !c->closed && !c->shut);
    c->corked = false;
    if (c->error)
        return -EPIPE;
    if (c->room == 0)
        return -EAGAIN;
    return (ssize_t)(size < c->room ? size : c->room);
}

static ssize_t write_memory(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    struct mk_test_client *c = io->state;
    size_t size = 0, left;
    for (int i = 0; i < n; i++)
        size += vec[i].iov_len;
    ssize_t room = find_room(c, size);
    if (room < 0)
        return room;
    left = (size_t)room;
    for (int i = 0; i < n && left; i++) {
        size_t part = vec[i].iov_len < left ? vec[i].iov_len : left;
        append(&c->from_server, vec[i].iov_base, part);
        left -= part;
    }
    c->room -= (size_t)room;
    c->writes++;
    c->corked = flags & MK_IO_MORE;
    return room;
}

static ssize_t send_file(struct mk_io *io, int file_fd, uint64_t offset, size_t size)
{
    struct mk_test_client *c = io->state;
    ssize_t room = find_room(c, size);
    if (room < 0)
        return room;
    char *bytes = malloc((size_t)room);
    EXPECT(bytes);
    ssize_t n = pread(file_fd, bytes, (size_t)room, (off_t)offset);
    if (n > 0) {
        append(&c->from_server, bytes, (size_t)n);
        c->room -= (size_t)n;
        c->files++;
    }
    free(bytes);
    return n < 0 ? -errno : n;
}

static int shut_memory(struct mk_io *io)
{
    struct mk_test_client *c = io->state;
    EXPECT(!c->shut && !c->closed);
    c->shut = true;
    c->corked = false;
    return 0;
}

static void close_memory(struct mk_io *io)
{
    struct mk_test_client *c = io->state;
    EXPECT(!c->closed && !c->event);
    c->closed = true;
    c->corked = false;
}

const struct mk_transport mk_test_memory = {
    .name = "memory",
    .open = open_memory,
    .read = read_memory,
    .write = write_memory,
    .sendfile = send_file,
    .shutdown = shut_memory,
    .close = close_memory,
};

/* ── clients ── */

static struct mk_test_client *add_client(struct mk_test_fixture *w, int *ret_fd)
{
    struct mk_test_client *c = calloc(1, sizeof(*c));
    EXPECT(c);
    c->fixture = w;
    c->room = c->read_max = SIZE_MAX;
    if (w->n_clients == w->clients_size) {
        w->clients_size = w->clients_size ? 2 * w->clients_size : 8;
        w->clients = realloc(w->clients, w->clients_size * sizeof(*w->clients));
        EXPECT(w->clients);
    }
    *ret_fd = FIRST_FD + (int)w->n_clients;
    w->clients[w->n_clients++] = c;
    append(&c->from_server, "", 0);
    return c;
}

struct mk_test_client *mk_test_connect(struct mk_test_fixture *w, struct mk_str first)
{
    struct mk_io io = {.transport = w->transport ? w->transport : &mk_test_memory, .listener = w->listener};
    struct mk_test_client *c = add_client(w, &io.fd);
    append(&c->to_server, first.p, first.len);
    io.state = c;
    return mk__conn_open(&w->http, &io, &(struct mk_address){0}, NULL) == 0 ? c : NULL;
}

void mk_test_send(struct mk_test_client *c, struct mk_str bytes)
{
    if (c->read_at == c->to_server.len)
        c->read_at = c->to_server.len = 0;
    append(&c->to_server, bytes.p, bytes.len);
    add_edge(c);
}

void mk_test_fin(struct mk_test_client *c)
{
    c->fin = true;
    add_edge(c);
}

void mk_test_reset(struct mk_test_client *c)
{
    c->error = ECONNRESET;
    add_edge(c);
}

void mk_test_take(struct mk_test_client *c, size_t bytes)
{
    c->room = bytes > SIZE_MAX - c->room ? SIZE_MAX : c->room + bytes;
    add_edge(c);
}

struct mk_str mk_test_received(struct mk_test_client *c)
{
    static char *last;
    struct mk_str s = mk_str(c->from_server.p, c->from_server.len);
    free(last);
    last = c->from_server.p;
    c->from_server = (struct mk_test_bytes){0};
    append(&c->from_server, "", 0);
    return s;
}

struct mk__conn *mk_test_connection(struct mk_test_client *c)
{
    return c->event ? MK_CONTAINER_OF(c->event, struct mk__conn, event) : NULL;
}

const char *mk_test_state(struct mk_test_client *c)
{
    const struct mk__conn *h1 = mk_test_connection(c);
    return mk__conn_states[h1 ? h1->state : MK__CONN_CLOSED].name;
}

/* ── the application ── */

void mk_test_fill_arena(struct mk_request *req)
{
    struct mk_arena *a = mk_request_arena(req);
    EXPECT(a->end == a->at || mk_arena_alloc(a, (size_t)(a->end - a->at)));
}

static void on_request(struct mk_request *req, void *ctx)
{
    struct mk_test_fixture *w = ctx;
    w->requests++;
    if (w->handler) {
        w->handler(req, w);
        return;
    }
    if (mk_response_write_ref(req, MK_STR("hello")) < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

static void on_response(struct mk_request *req, void *ctx)
{
    struct mk_test_fixture *w = ctx;
    if (w->on_response)
        w->on_response(req, w);
}

static void on_done(struct mk_request *req, void *ctx)
{
    struct mk_test_fixture *w = ctx;
    w->done++;
    w->aborted += req->output_state != MK__OUTPUT_COMPLETE;
    if (w->on_done)
        w->on_done(req, w);
}

static struct mk_str find_mime(const struct mk_request *req, struct mk_str path, void *ctx)
{
    (void)req;
    (void)path;
    (void)ctx;
    return MK_STR("text/plain");
}

static uint64_t find_mime_id(const struct mk_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
    return 1;
}

static void on_closed(void *ctx)
{
    struct mk_test_fixture *w = ctx;
    w->closed++;
}

static void on_arrived(struct mk_request *req, void *ctx)
{
    struct mk_test_fixture *w = ctx;
    if (w->limits)
        req->limits = w->limits;
}

static void on_opened(struct mk_request *req, void *ctx)
{
    struct mk_test_fixture *w = ctx;
    req->worker = w;
    w->worker_refs++;
}

static void on_held(void *pin)
{
    struct mk_test_fixture *w = pin;
    w->worker_refs++;
}

static void on_released(void *pin)
{
    struct mk_test_fixture *w = pin;
    w->worker_refs--;
}

static bool is_h2_enabled(const struct mk__http_settings *settings)
{
    return settings->h2;
}

/* None, unless the settings of the test have some. */
static const struct mk__trusted_proxies *find_trusted(const struct mk_request *req)
{
    return &req->http->settings->trusted_proxies;
}

static const struct mk__http_app app = {
    .protos = {[MK__PROTO_H1] = {.proto = &mk__h1_proto},
               [MK__PROTO_H2] = {.alpn = {"h2", 2},
                                 .find = mk__h2_find,
                                 .is_enabled = is_h2_enabled,
                                 .recognize = mk__preface_check}},
    .trusted_proxies = find_trusted,
    .on_init = on_opened,
    .on_free = on_released,
    .hold_worker = on_held,
    .on_head = on_arrived,
    .on_request = on_request,
    .on_response = on_response,
    .on_done = on_done,
    .mime = find_mime,
    .mime_id = find_mime_id,
    .on_conn_freed = on_closed,
};

void mk_test_settings(struct mk__http_settings *s)
{
    static const struct mk__h2_settings h2 = {.on = true,
                                              .streams_max = 100,
                                              .continuations_max = 8,
                                              .rates_max = {[0 ... MK__H2_FLOOD_RATES - 1] = 100}};
    *s = (struct mk__http_settings){
        .head = {.line_bytes_max = 1024, .head_bytes_max = 4096, .fields_max = 16},
        .limits = {.timeout_ms = {[MK__TIMEOUT_HEAD] = 15000,
                                  [MK__TIMEOUT_BODY] = 30000,
                                  [MK__TIMEOUT_HANDLER] = 60000,
                                  [MK__TIMEOUT_SEND] = 20000,
                                  [MK__TIMEOUT_IDLE] = 5000,
                                  [MK__TIMEOUT_LINGER] = 2000,
                                  [MK__TIMEOUT_TUNNEL] = 3600000,
                                  [MK__TIMEOUT_HANDSHAKE] = 10000},
                   .body_bytes_max = 1 << 20,
                   .collect_bytes_max = 4096,
                   .discard_bytes_max = 8192},
        .keep_alive = true,
        .h2 = &h2,
        .server_line = MK_STR("Server: x\r\n"),
    };
}

int mk_test_http_open(struct mk_test_fixture *w)
{
    int err = mk__http_init(&w->http, &w->loop, &w->settings, &app, w, &w->account);
    if (err < 0)
        w->http.loop = NULL;
    return err;
}
