// SPDX-License-Identifier: Apache-2.0
/*
 * Opens, keeps and closes connections. A server has nothing to say on one that is idle: bytes end it, as its end does
 * (RFC 9112 section 9.3).
 */
#include "connection.h"

#include <monkey/base/arena.h>
#include <monkey/kit/http_client.h>

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ── logins of connections ── */

bool mk_http_login_binds_connection(struct mk_str value)
{
    static const struct mk_str schemes[] = {MK_STR_INIT("NTLM"), MK_STR_INIT("Negotiate")};
    struct mk_str element;
    while (mk_str_next(&value, &element)) {
        if (mk_str_is_any(mk_str_split(&element, ' '), schemes, MK_COUNT_OF(schemes)))
            return true;
    }
    return false;
}

bool mk_http_response_binds_connection(const struct mk_response_parser *p, const struct mk_field *fields,
                                       const char *head)
{
    bool binds = false;
    for (unsigned i = 0; i < p->n_fields && p->status == 401; i++)
        if (mk_str_ieq(mk_span_str(head, fields[i].name), MK_STR("WWW-Authenticate")))
            binds |= mk_http_login_binds_connection(mk_span_str(head, fields[i].value));
    return binds;
}

/* ── bytes of connections without TLS: mk_transport_plain ── */

static int connect_plain(struct mk_io *io, struct mk_worker *worker, struct mk_transport_client *client)
{
    (void)io, (void)worker, (void)client;
    return 0;
}

static int return_done(struct mk_io *io)
{
    (void)io;
    return 0;
}

static ssize_t read_plain(struct mk_io *io, void *to, size_t size)
{
    ssize_t n = recv(io->fd, to, size, 0);
    return n < 0 ? -errno : n;
}

static ssize_t write_plain(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    int more = flags & MK_IO_MORE ? MSG_MORE : 0;
    /* sendmsg() costs more, and does not change the vector, although its type is not const */
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vec, .msg_iovlen = (size_t)n};
    ssize_t sent = n == 1 ? send(io->fd, vec->iov_base, vec->iov_len, MSG_NOSIGNAL | more)
                          : sendmsg(io->fd, &message, MSG_NOSIGNAL | more);
    return sent < 0 ? -errno : sent;
}

static int shutdown_plain(struct mk_io *io)
{
    return shutdown(io->fd, SHUT_WR) < 0 ? -errno : 0;
}

static void close_plain(struct mk_io *io)
{
    close(io->fd);
}

const struct mk_transport mk_transport_plain = {
    .name = "plain",
    .connect = connect_plain,
    .handshake = return_done,
    .read = read_plain,
    .write = write_plain,
    .flush = return_done,
    .shutdown = shutdown_plain,
    .close = close_plain,
};

/* ── connections ── */

static void close_idle(struct mk_http_conn *c)
{
    mk_list_del(&c->node);
    c->idle->n--;
    mk__http_conn_count(c, MK_BACKEND_IDLE, -1);
    mk__http_conn_count(c, MK_BACKEND_BUSY, 1); /* until it is closed, now */
    mk__http_conn_close(c);
}

/* Tells whether there is nothing to read; what is read is lost. */
static bool is_quiet(struct mk_http_conn *c)
{
    char byte;
    return c->io.transport->read(&c->io, &byte, 1) == -EAGAIN;
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct mk_http_conn *c = MK_CONTAINER_OF(event, struct mk_http_conn, event);
    if (c->fn)
        c->fn(c->user);
    else if (events & ~(uint32_t)EPOLLOUT && !is_quiet(c))
        close_idle(c);
}

static struct mk_http_conn *make_conn(const struct mk_http_client_options *o, struct mk_loop *loop, int fd)
{
    struct mk_str address = o->target->text;
    struct mk_http_conn *c = mk_account_alloc(NULL, sizeof(*c) + address.len);
    if (!c)
        return NULL;
    *c = (struct mk_http_conn){.event = {on_event, fd},
                               .io = {.transport = o->transport, .fd = fd},
                               .loop = loop,
                               .worker = o->worker,
                               .settings = o->settings,
                               .stats = o->stats,
                               .address_len = address.len};
    memcpy(c->address, address.p, address.len);
    return c;
}

int mk__http_conn_open(const struct mk_http_client_options *o, struct mk_loop *loop, int fd, void (*fn)(void *),
                       void *user, struct mk_http_conn **ret)
{
    struct mk_http_conn *c = *ret = make_conn(o, loop, fd);
    if (!c) {
        close(fd);
        return -ENOMEM;
    }
    c->fn = fn;
    c->user = user;
    mk__http_conn_count(c, MK_BACKEND_OPENED, 1);
    mk__http_conn_count(c, MK_BACKEND_BUSY, 1);
    int err = o->transport->connect ? o->transport->connect(&c->io, o->worker, o->settings) : 0;
    return err < 0 ? err : mk_event_add(loop, &c->event, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void mk__http_conn_close(struct mk_http_conn *c)
{
    mk__http_conn_count(c, MK_BACKEND_BUSY, -1);
    mk_event_del(c->loop, &c->event);
    if (c->is_ready && c->io.transport->close_notify)
        c->io.transport->close_notify(&c->io);
    c->io.transport->close(&c->io);
    mk_account_free(NULL, c, sizeof(*c) + c->address_len);
}

/* ── idle ones ── */

static bool matches_options(const struct mk_http_conn *c, const struct mk_http_client_options *o)
{
    return c->io.transport == o->transport && c->settings == o->settings &&
           mk_str_eq(mk_str(c->address, c->address_len), o->target->text);
}

/* Returns the newest one; the list has the oldest first. */
static struct mk_http_conn *find_idle(const struct mk_http_client_options *o)
{
    for (struct mk_list *n = o->idle->list.prev; n != &o->idle->list; n = n->prev) {
        struct mk_http_conn *c = MK_CONTAINER_OF(n, struct mk_http_conn, node);
        if (matches_options(c, o))
            return c;
    }
    return NULL;
}

struct mk_http_conn *mk__http_conn_take(const struct mk_http_client_options *o, void (*fn)(void *), void *user)
{
    struct mk_http_conn *c = find_idle(o);
    while (c && !is_quiet(c)) { /* its event may still be on the way */
        close_idle(c);
        c = find_idle(o);
    }
    if (!c)
        return NULL;
    mk_list_del(&c->node);
    c->idle->n--;
    mk__http_conn_count(c, MK_BACKEND_IDLE, -1);
    c->stats = o->stats;
    c->fn = fn;
    c->user = user;
    mk__http_conn_count(c, MK_BACKEND_BUSY, 1);
    return c;
}

static void arm_timer(struct mk_http_idle *idle, uint64_t now)
{
    if (!idle->n)
        return;
    const struct mk_http_conn *oldest = MK_LIST_FIRST(&idle->list, struct mk_http_conn, node);
    uint64_t end = oldest->idle_since_ms + MK_HTTP_IDLE_MS;
    mk_timer_arm(idle->loop, &idle->timer, end > now ? (uint32_t)(end - now) : 0);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk_http_idle *idle = MK_CONTAINER_OF(timer, struct mk_http_idle, timer);
    uint64_t now = mk_loop_now_ms(idle->loop);
    while (idle->n && MK_LIST_FIRST(&idle->list, struct mk_http_conn, node)->idle_since_ms + MK_HTTP_IDLE_MS <= now)
        close_idle(MK_LIST_FIRST(&idle->list, struct mk_http_conn, node));
    arm_timer(idle, now);
}

void mk__http_conn_keep(struct mk_http_conn *c, struct mk_http_idle *idle)
{
    if (idle->n == MK_HTTP_IDLE_MAX)
        close_idle(MK_LIST_FIRST(&idle->list, struct mk_http_conn, node));
    c->fn = NULL;
    c->idle = idle;
    c->idle_since_ms = mk_loop_now_ms(idle->loop);
    mk_list_add(&idle->list, &c->node);
    mk__http_conn_count(c, MK_BACKEND_BUSY, -1);
    mk__http_conn_count(c, MK_BACKEND_IDLE, 1);
    if (++idle->n == 1)
        arm_timer(idle, c->idle_since_ms);
}

void mk_http_idle_init(struct mk_http_idle *idle, struct mk_loop *loop)
{
    *idle = (struct mk_http_idle){.loop = loop};
    mk_list_init(&idle->list);
    mk_timer_init(&idle->timer, on_timer);
}

void mk_http_idle_close(struct mk_http_idle *idle)
{
    while (idle->n)
        close_idle(MK_LIST_FIRST(&idle->list, struct mk_http_conn, node));
    mk_timer_cancel(&idle->timer);
}
