// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request: taken from the thread's schedule, sent, and its answer received, parsed, checked and counted. A
 * request that is answered in one piece costs one send(2) and one recv(2).
 */
#include "conn.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "tls.h"

enum {
    SKIP_BYTES_MIN = 8 * 1024, /* from here on a body is dropped in the kernel: the copy costs more than the call */
    SKIP_BYTES_MAX = 1 << 30,
    GATHERED_MAX = 64, /* requests in a call */
    PAUSE_MS = 10,     /* after the first failure; doubled with each one */
    PAUSE_DOUBLINGS = 4,
    CLOSE_WAIT_MS = 1000, /* for the FIN of a server that said it closes */
};

static void on_ready(struct mk_event *event, uint32_t events);
static void on_pause_end(struct mk_timer *timer);

void conn_init(struct conn *c, struct loader *loader, struct flight *flights)
{
    *c = (struct conn){.event = {.ready = on_ready, .fd = -1}, .loader = loader, .flights = flights};
    mk_timer_init(&c->pause, on_pause_end);
    answer_init(&c->answer, loader->plan->to_head);
}

static void close_socket(struct conn *c)
{
    if (c->tls)
        tls_free(c->tls);
    c->tls = NULL;
    if (c->event.fd < 0)
        return;
    if (c->loader->current != c) /* an event of this turn's batch may still follow */
        mk_event_del(&c->loader->loop, &c->event);
    close(c->event.fd);
    c->event.fd = -1;
    c->state = CONN_CLOSED;
}

void conn_release(struct conn *c)
{
    mk_timer_cancel(&c->pause);
    close_socket(c);
    EVP_MD_CTX_free(c->hash);
    answer_release(&c->answer);
}

static struct flight *get_flight(struct conn *c, uint32_t at)
{
    uint32_t pipeline = c->loader->plan->pipeline;
    at += c->first;
    return &c->flights[at >= pipeline ? at - pipeline : at];
}

/* Tells whether the connection has had all requests that it may have. */
static bool is_spent(const struct conn *c)
{
    const struct plan *plan = c->loader->plan;
    return plan->per_connection && c->answers + c->n >= plan->per_connection;
}

/* Tells whether another request may be in flight on the connection. */
static bool has_place(const struct conn *c)
{
    return c->n < c->loader->plan->pipeline && !is_spent(c);
}

static const struct path *get_path(const struct conn *c, const struct flight *flight)
{
    return &c->loader->plan->paths.list[flight->path];
}

/* Notes that the connection is to be filled at the end of the turn. */
static void add_ready(struct conn *c)
{
    struct loader *l = c->loader;
    if (c->ready)
        return;
    c->ready = true;
    l->ready[l->ready_n++] = c;
}

void conn_add_idle(struct conn *c)
{
    struct loader *l = c->loader;
    if (l->plan->rate <= 0 || c->idle)
        return;
    c->idle = true;
    l->idle[(l->idle_first + l->idle_n++) % l->conns_n] = c;
}

/* ── failures ── */

/* Ends the oldest request. */
static void drop_flight(struct conn *c)
{
    loader_finish(c->loader, get_flight(c, 0));
    if (++c->first == c->loader->plan->pipeline)
        c->first = 0;
    c->n--;
    if (c->unsent > c->n) {
        c->unsent = c->n;
        c->sent_bytes = 0;
    }
}

static void pause_conn(struct conn *c)
{
    c->state = CONN_PAUSED;
    mk_timer_arm(&c->loader->loop, &c->pause, PAUSE_MS << c->failures);
    if (c->failures < PAUSE_DOUBLINGS)
        c->failures++;
}

static void on_pause_end(struct mk_timer *timer)
{
    struct conn *c = MK_CONTAINER_OF(timer, struct conn, pause);
    c->state = CONN_CLOSED;
    conn_open(c, loader_now_ns());
}

/* Closes the connection, counts its requests as failed (or one, if it had none), and opens it again after a pause. */
static void fail_conn(struct conn *c, enum load_error error, const char *text)
{
    struct loader *l = c->loader;
    struct flight none = {.counted = l->count_from_ns != UINT64_MAX};
    close_socket(c);
    if (!c->n && (!l->has_quota || l->quota)) {
        loader_note_error(l, error, none.counted, "%s", text);
        if (none.counted && l->has_quota) {
            l->quota--;
            loader_finish(l, &none);
        }
    }
    l->stopped |= l->plan->broadcast && l->counts.opened; /* its messages have other receivers now */
    while (c->n) {
        loader_note_error(l, error, get_flight(c, 0)->counted, "%s", text);
        drop_flight(c);
    }
    pause_conn(c);
}

/* A server that was never reached at this address may be reached at the next one. */
static void fail_connect(struct conn *c, const char *text)
{
    struct loader *l = c->loader;
    if (c->address == l->address && !l->counts.opened && l->address + 1 < l->plan->target.addresses_n)
        l->address++;
    if (c->address == l->address) {
        fail_conn(c, ERROR_CONNECT, text);
        return;
    }
    close_socket(c);
    mk_timer_arm(&l->loop, &c->pause, 0);
    c->state = CONN_PAUSED;
}

void conn_check_timeout(struct conn *c, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns > c->since_ns ? now_ns - c->since_ns : 0;
    bool is_opening = c->state == CONN_CONNECTING || c->state == CONN_HANDSHAKE || c->state == CONN_UPGRADE;
    bool is_waiting = is_opening || (c->state == CONN_OPEN && c->n);
    if (is_waiting && (double)waited_ns > c->loader->plan->timeout * 1e9)
        fail_conn(c, ERROR_TIMEOUT, "there was no answer in time (--timeout)");
    if (c->state == CONN_CLOSING && waited_ns > CLOSE_WAIT_MS * 1000000ull) {
        close_socket(c);
        conn_open(c, now_ns);
    }
}

/* ── sending ── */

static ssize_t write_pieces(struct conn *c, struct iovec *pieces, unsigned n)
{
    if (c->tls)
        return tls_write(c->tls, pieces[0].iov_base, pieces[0].iov_len);
    ssize_t sent;
    if (n == 1) {
        sent = send(c->event.fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL);
    } else {
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = n};
        sent = sendmsg(c->event.fd, &message, MSG_NOSIGNAL);
    }
    return sent < 0 ? -errno : sent;
}

/* Copies requests into one piece, so that TLS makes one record of them. */
static unsigned join_pieces(struct conn *c, struct iovec *pieces, unsigned n)
{
    size_t len = 0;
    if (n == 1 || pieces[0].iov_len > LOAD_BUFFER_BYTES)
        return 1;
    for (unsigned i = 0; i < n && len + pieces[i].iov_len <= LOAD_BUFFER_BYTES; i++) {
        memcpy(c->loader->buffer + len, pieces[i].iov_base, pieces[i].iov_len);
        len += pieces[i].iov_len;
    }
    pieces[0] = (struct iovec){c->loader->buffer, len};
    return 1;
}

static unsigned gather_unsent(struct conn *c, struct iovec *pieces)
{
    unsigned n = c->unsent < GATHERED_MAX ? c->unsent : GATHERED_MAX;
    for (unsigned i = 0; i < n; i++) {
        struct mk_str request = get_path(c, get_flight(c, c->n - c->unsent + i))->request;
        size_t skip = i ? 0 : c->sent_bytes;
        pieces[i] = (struct iovec){(char *)(uintptr_t)request.p + skip, request.len - skip};
    }
    return c->tls ? join_pieces(c, pieces, n) : n;
}

static void count_sent(struct conn *c, size_t n)
{
    for (c->sent_bytes += n; c->unsent; c->unsent--) {
        size_t len = get_path(c, get_flight(c, c->n - c->unsent))->request.len;
        if (c->sent_bytes < len)
            return;
        c->sent_bytes -= len;
    }
}

static int send_gathered(struct conn *c)
{
    struct iovec pieces[GATHERED_MAX];
    while (c->unsent) {
        ssize_t n = write_pieces(c, pieces, gather_unsent(c, pieces));
        if (n < 0)
            return (int)n;
        count_sent(c, (size_t)n);
    }
    return 0;
}

/*
 * Sends what is unsent, as far as the socket takes it. Returns 0 or -errno; errors of an open connection need no care:
 * its next event tells them, and what the server had sent before is read first.
 */
static int send_requests(struct conn *c)
{
    if (c->unsent == 1 && !c->sent_bytes && !c->tls) {
        struct mk_str request = get_path(c, get_flight(c, c->n - 1))->request;
        ssize_t n = send(c->event.fd, request.p, request.len, MSG_NOSIGNAL);
        if (n == (ssize_t)request.len) {
            c->unsent = 0;
            return 0;
        }
        if (n < 0)
            return -errno;
        c->sent_bytes = (size_t)n;
    }
    return send_gathered(c);
}

/* Takes one request that is due. */
static bool take_request(struct conn *c, uint64_t now_ns)
{
    if (!loader_take(c->loader, now_ns, get_flight(c, c->n)))
        return false;
    if (!c->n)
        c->since_ns = now_ns;
    c->n++;
    c->unsent++;
    return true;
}

/* Takes and sends all requests that the connection has room for. */
static void fill_conn(struct conn *c, uint64_t now_ns)
{
    while (has_place(c) && take_request(c, now_ns))
        ;
    if (c->unsent)
        send_requests(c);
    if (has_place(c))
        conn_add_idle(c);
}

void conn_fill(struct conn *c)
{
    if (c->state == CONN_OPEN && loader_may_send(c->loader, c))
        fill_conn(c, loader_now_ns());
}

bool conn_has_room(const struct conn *c)
{
    const struct plan *plan = c->loader->plan;
    return has_place(c) && (c->state == CONN_OPEN || (c->state == CONN_CLOSED && plan->close));
}

bool conn_start(struct conn *c, uint64_t now_ns)
{
    if (c->state == CONN_CLOSED) {
        conn_open(c, now_ns);
        return false;
    }
    take_request(c, now_ns);
    send_requests(c);
    return has_place(c);
}

/* ── opening ── */

/* One more connection of a broadcast is open: the first one sends when all are. */
static void finish_opening_all(struct loader *l, uint64_t now_ns)
{
    if (l->counts.opened < l->conns_n)
        return;
    loader_begin(l, now_ns);
    add_ready(&l->conns[0]);
}

static void finish_opening(struct conn *c, uint64_t now_ns)
{
    struct loader *l = c->loader;
    l->counts.opened++;
    l->counts.resumed += c->tls && tls_is_resumed(c->tls);
    c->state = CONN_OPEN;
    c->since_ns = now_ns;
    if (l->plan->close)
        send_requests(c); /* its one request was taken before */
    else if (l->plan->broadcast)
        finish_opening_all(l, now_ns);
    else
        fill_conn(c, now_ns);
}

/* Sends the handshake of a WebSocket, which a new connection has room for. */
static void begin_upgrade(struct conn *c, uint64_t now_ns)
{
    struct mk_str handshake = c->loader->plan->message.handshake;
    struct iovec piece = {(char *)(uintptr_t)handshake.p, handshake.len};
    c->state = CONN_UPGRADE;
    c->since_ns = now_ns;
    if (write_pieces(c, &piece, 1) != (ssize_t)handshake.len)
        fail_connect(c, "the handshake of the WebSocket cannot be sent");
}

/* The connection can be written: by TCP, or by TLS. */
static void begin_requests(struct conn *c, uint64_t now_ns)
{
    if (c->loader->plan->target.websocket)
        begin_upgrade(c, now_ns);
    else
        finish_opening(c, now_ns);
}

static void do_handshake(struct conn *c, uint64_t now_ns)
{
    const char *error;
    int err = tls_do_handshake(c->tls, &error);
    if (err == 0)
        begin_requests(c, now_ns);
    else if (err != -EAGAIN)
        fail_connect(c, error);
}

/* The socket is connected, or has failed. */
static void end_connecting(struct conn *c, uint64_t now_ns)
{
    int err = 0;
    socklen_t len = sizeof(err);
    if (getsockopt(c->event.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    if (err)
        fail_connect(c, strerror(err));
    else
        begin_requests(c, now_ns);
}

/* Returns 0 or -errno; without waiting for the connection. */
static int open_socket(struct conn *c)
{
    struct loader *l = c->loader;
    const struct mk__addr *to = &l->plan->target.addresses[c->address = l->address];
    static const char congestion[] = "reno"; /* the cheapest one, and no request is large */
    int on = 1, fd = socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    c->event.fd = fd;
    if (!l->plan->close) /* one request in one segment waits for nothing */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (!l->plan->close && !l->plan->form.body.len)
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, sizeof(congestion) - 1);
    if (connect(fd, &to->sa, to->len) < 0 && errno != EINPROGRESS)
        return -errno;
    return 0;
}

/*
 * On the loopback device a socket is connected when connect(2) returns: a request that waits is sent at once, which
 * saves a turn for each connection of --close. Returns 0 or -errno.
 */
static int watch_socket(struct conn *c)
{
    uint32_t events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    bool is_early = c->unsent && !c->tls && !c->loader->plan->target.websocket;
    int err = is_early ? send_requests(c) : -EAGAIN;
    if (err == -EAGAIN)
        events |= EPOLLOUT;
    else if (err < 0)
        return err;
    return mk_event_add(&c->loader->loop, &c->event, events);
}

static int begin_tls(struct conn *c)
{
    struct loader *l = c->loader;
    struct ssl_session_st **session = l->plan->full_handshakes ? NULL : &l->session;
    c->state = CONN_HANDSHAKE;
    c->tls = tls_new(l->plan->tls, c->event.fd, l->plan->target.host, session);
    return c->tls ? 0 : -ENOMEM;
}

void conn_open(struct conn *c, uint64_t now_ns)
{
    struct loader *l = c->loader;
    if (l->stopped)
        return;
    answer_begin(&c->answer);
    c->reader = (struct reader){0};
    c->answers = c->sent_bytes = 0;
    c->unsent = c->n; /* to be repeated */
    c->since_ns = now_ns;
    if (l->plan->close && !c->n && !take_request(c, now_ns)) {
        conn_add_idle(c);
        return;
    }
    c->state = CONN_CONNECTING;
    int err = open_socket(c);
    if (err == 0 && l->plan->tls)
        err = begin_tls(c);
    if (err == 0)
        err = watch_socket(c);
    if (err < 0)
        fail_connect(c, strerror(-err));
    else if (c->tls)
        do_handshake(c, now_ns);
    else if (c->n && !c->unsent)
        finish_opening(c, now_ns);
}

/* ── answers ── */

static bool begin_hash(struct conn *c)
{
    if (!c->hash)
        c->hash = EVP_MD_CTX_new();
    return c->hash && EVP_DigestInit_ex(c->hash, EVP_sha256(), NULL);
}

/* The first bytes of an answer have come: decides whether it is a sample. */
static void begin_answer(struct conn *c)
{
    struct loader *l = c->loader;
    c->hashing = false;
    if (!l->plan->paths.has_hashes || l->plan->to_head || !get_path(c, get_flight(c, 0))->has_hash || --l->until_sample)
        return;
    l->until_sample = l->plan->sample;
    c->hashing = begin_hash(c);
}

static bool is_hash_right(struct conn *c, const struct path *path)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    c->loader->counts.hashed++;
    return EVP_DigestFinal_ex(c->hash, hash, &len) && len == PATH_HASH_BYTES && memcmp(hash, path->hash, len) == 0;
}

/* Compares an answer with its path. Counts the first thing that is wrong. */
static void check_answer(struct conn *c, const struct flight *flight)
{
    const struct answer *a = &c->answer;
    const struct path *path = get_path(c, flight);
    bool to_head = c->loader->plan->to_head;
    int64_t length = (int64_t)(to_head ? a->parser.length : a->body_bytes);
    bool knows_length = !to_head || a->parser.has_length;
    const char *target = path->request.p;
    int target_len = (int)strcspn(target, "\r");
    if (path->status ? a->parser.status != path->status : a->parser.status >= 400)
        loader_note_error(c->loader, ERROR_STATUS, true, "%.*s was answered with status %u", target_len, target,
                          a->parser.status);
    else if (path->length >= 0 && knows_length && length != path->length)
        loader_note_error(c->loader, ERROR_LENGTH, true, "the answer to %.*s has %lld bytes instead of %lld",
                          target_len, target, (long long)length, (long long)path->length);
    else if (c->hashing && !is_hash_right(c, path))
        loader_note_error(c->loader, ERROR_HASH, true, "the answer to %.*s has another SHA256", target_len, target);
}

static inline bool is_expected(const struct answer *a, const struct path *path)
{
    return (path->status ? a->parser.status == path->status : a->parser.status < 400) && path->length < 0;
}

/* Counts an answer to a request; a broadcast has many. */
static void count_answer(struct conn *c, const struct flight *flight, uint64_t now_ns)
{
    struct loader *l = c->loader;
    struct counts *counts = &l->counts;
    if (!flight->counted)
        return;
    counts->answers++;
    counts->bytes += c->answer.total_bytes;
    counts->head_bytes += c->answer.head_bytes;
    counts->statuses[c->answer.parser.status]++;
    histogram_record(&l->latencies, now_ns > flight->start_ns ? (now_ns - flight->start_ns) / 1000 : 0);
    if (c->hashing || !is_expected(&c->answer, get_path(c, flight)))
        check_answer(c, flight);
}

static void finish_answer(struct conn *c, uint64_t now_ns)
{
    count_answer(c, get_flight(c, 0), now_ns);
    drop_flight(c);
    c->answers++;
    c->failures = 0;
    c->hashing = false;
    c->since_ns = now_ns;
}

/*
 * Reads once: into the buffer, or only the number of bytes of a body that is not looked at.
 * Returns the number of bytes, 0 for the end, or -errno.
 */
static ssize_t read_socket(struct conn *c, bool *ret_skipped)
{
    uint64_t skip = c->hashing ? 0 : answer_skippable(&c->answer);
    *ret_skipped = false;
    if (c->tls) {
        ssize_t n = tls_read(c->tls, c->loader->buffer, LOAD_BUFFER_BYTES);
        c->drained = n <= 0 || tls_is_drained(c->tls);
        return n;
    }
    ssize_t n;
    size_t size = LOAD_BUFFER_BYTES;
    if (skip >= SKIP_BYTES_MIN) {
        size = skip < SKIP_BYTES_MAX ? (size_t)skip : SKIP_BYTES_MAX;
        n = syscall(SYS_recvfrom, c->event.fd, NULL, size, MSG_TRUNC, NULL, NULL); /* tcp(7): drops the bytes */
        *ret_skipped = n > 0;
    } else {
        n = recv(c->event.fd, c->loader->buffer, size, 0);
    }
    c->drained = n < (ssize_t)size;
    return n < 0 ? -errno : n;
}

/* Compares a message with what was sent, and keeps its sizes. */
static void check_message(struct conn *c, const struct flight *flight)
{
    struct loader *l = c->loader;
    const struct reader *r = &c->reader;
    c->answer.total_bytes = r->frame_bytes;
    c->answer.head_bytes = (uint32_t)(r->frame_bytes - r->len);
    c->answer.parser.status = 101;
    if (flight->counted && r->is_wrong)
        loader_note_error(l, r->len == l->plan->message.text.len ? ERROR_HASH : ERROR_LENGTH, true,
                          "a message is not the one that was sent");
}

/* The echo of the oldest message. Returns 0, or -EINVAL: nothing was sent. */
static int take_echo(struct conn *c, uint64_t now_ns)
{
    if (!c->n)
        return -EINVAL;
    check_message(c, get_flight(c, 0));
    finish_answer(c, now_ns);
    add_ready(c);
    return 0;
}

/* One receipt of the next message that this connection has not received. Returns as take_echo(). */
static int take_broadcast(struct conn *c, uint64_t now_ns)
{
    struct loader *l = c->loader;
    struct conn *sender = &l->conns[0];
    uint64_t at = c->received++ - l->broadcasts;
    if (at >= sender->n)
        return -EINVAL;
    struct flight *flight = get_flight(sender, (uint32_t)at);
    check_message(c, flight);
    count_answer(c, flight, now_ns);
    flight->receipts++;
    sender->since_ns = now_ns;
    while (sender->n && get_flight(sender, 0)->receipts == l->conns_n) {
        drop_flight(sender);
        l->broadcasts++;
        add_ready(sender);
    }
    return 0;
}

/* Reads the frames of a WebSocket. Returns 0, -EINVAL or -EPIPE: the server closes it. */
static int take_frames(struct conn *c, const char *in, size_t len, uint64_t now_ns)
{
    int err = 0;
    while (len && err == 0) {
        size_t used;
        int event = reader_read(&c->reader, &c->loader->plan->message, in, len, &used);
        in += used;
        len -= used;
        if (event < 0)
            return event;
        if (event == READER_OPENED)
            finish_opening(c, now_ns);
        else if (event == READER_MESSAGE)
            err = c->loader->plan->broadcast ? take_broadcast(c, now_ns) : take_echo(c, now_ns);
        else if (event == READER_CLOSED)
            err = -EPIPE;
    }
    return err;
}

/* Parses what was read, up to the last answer of this connection. Returns 0 or -EINVAL. */
static int take_bytes(struct conn *c, const char *in, size_t len, uint64_t now_ns)
{
    while (len && !(answer_is_done(&c->answer) && answer_closes(&c->answer))) {
        struct mk_str body;
        if (!c->n)
            return -EINVAL; /* an answer without a request */
        if (answer_is_done(&c->answer))
            answer_begin(&c->answer);
        if (!c->answer.is_begun)
            begin_answer(c);
        ssize_t used = answer_parse(&c->answer, in, len, &body);
        if (used < 0)
            return -EINVAL;
        if (c->hashing && body.len)
            EVP_DigestUpdate(c->hash, body.p, body.len);
        if (answer_is_done(&c->answer))
            finish_answer(c, now_ns);
        in += used;
        len -= (size_t)used;
    }
    return 0;
}

static int take_skipped(struct conn *c, size_t len, uint64_t now_ns)
{
    answer_skip(&c->answer, len);
    if (answer_is_done(&c->answer))
        finish_answer(c, now_ns);
    return 0;
}

/* The server has ended the connection, or it has failed with -errno. */
static void end_conn(struct conn *c, int err, uint64_t now_ns)
{
    const struct answer *a = &c->answer;
    bool between = answer_is_done(a) || !a->is_begun;
    if (err == 0 && c->n && !between && answer_end(&c->answer) == 0) {
        finish_answer(c, now_ns);
        between = true;
    }
    if (c->n && !(between && c->answers)) {
        fail_conn(c, ERROR_READ, err ? strerror(-err) : "the server closed the connection before its answer was whole");
        return;
    }
    close_socket(c);
    if (c->answers)
        conn_open(c, now_ns);
    else
        pause_conn(c);
}

/* This was the last answer of the connection: the server closes it, or we do. */
static void close_after_answer(struct conn *c, bool hung_up, uint64_t now_ns)
{
    if (answer_closes(&c->answer) && !hung_up) {
        c->state = CONN_CLOSING;
        c->since_ns = now_ns;
        return;
    }
    close_socket(c);
    conn_open(c, now_ns);
}

static void read_answers(struct conn *c, uint32_t events)
{
    struct loader *l = c->loader;
    uint64_t now_ns = loader_now_ns();
    bool hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR), skipped;
    do {
        ssize_t n = read_socket(c, &skipped);
        if (n == -EAGAIN)
            break;
        if (n <= 0) {
            end_conn(c, (int)n, now_ns);
            return;
        }
        if ((skipped ? take_skipped(c, (size_t)n, now_ns) : take_bytes(c, l->buffer, (size_t)n, now_ns)) < 0) {
            fail_conn(c, ERROR_MALFORMED, "an answer is malformed");
            return;
        }
    } while (!c->drained && c->n && !(answer_is_done(&c->answer) && answer_closes(&c->answer)));

    bool is_last = !c->n && (l->plan->close || is_spent(c));
    if (answer_is_done(&c->answer) && (answer_closes(&c->answer) || is_last))
        close_after_answer(c, hung_up, now_ns);
    else if (hung_up)
        end_conn(c, 0, now_ns);
    else
        add_ready(c);
}

/* Waits for the end of a connection that the server said it closes. */
static void wait_for_end(struct conn *c, uint32_t events)
{
    if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
        return;
    close_socket(c);
    conn_open(c, loader_now_ns());
}

/* Reads what there is of a WebSocket: the answer to its handshake, or messages. */
static void read_messages(struct conn *c)
{
    uint64_t now_ns = loader_now_ns();
    bool skipped;
    do {
        ssize_t n = read_socket(c, &skipped);
        if (n == -EAGAIN)
            break;
        if (n <= 0) {
            fail_conn(c, ERROR_READ, n ? strerror((int)-n) : "the server closed a WebSocket");
            return;
        }
        int err = take_frames(c, c->loader->buffer, (size_t)n, now_ns);
        if (err < 0) {
            fail_conn(c, err == -EPIPE ? ERROR_READ : ERROR_MALFORMED,
                      err == -EPIPE ? "the server closed a WebSocket" : "no WebSocket, or a frame is malformed");
            return;
        }
    } while (!c->drained);
}

/* The edge of the server's FIN is not repeated. */
static void read_end(struct conn *c, uint32_t events)
{
    if (c->loader->plan->target.websocket)
        return;
    if (c->state == CONN_OPEN && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        read_answers(c, events);
}

static void read_open(struct conn *c, uint32_t events)
{
    if (c->loader->plan->target.websocket)
        read_messages(c);
    else
        read_answers(c, events);
}

static void on_ready(struct mk_event *event, uint32_t events)
{
    struct conn *c = MK_CONTAINER_OF(event, struct conn, event);
    struct loader *l = c->loader;
    l->current = c;
    switch ((enum conn_state)c->state) {
    case CONN_CONNECTING:
        end_connecting(c, loader_now_ns());
        read_end(c, events);
        break;
    case CONN_HANDSHAKE:
        do_handshake(c, loader_now_ns());
        read_end(c, events);
        break;
    case CONN_OPEN:
        if (c->unsent && events & EPOLLOUT)
            send_requests(c);
        if (events & ~(uint32_t)EPOLLOUT)
            read_open(c, events);
        break;
    case CONN_UPGRADE:
        if (events & ~(uint32_t)EPOLLOUT)
            read_messages(c);
        break;
    case CONN_CLOSING:
        wait_for_end(c, events);
        break;
    case CONN_CLOSED:
    case CONN_PAUSED:
        break;
    }
    l->current = NULL;
}
