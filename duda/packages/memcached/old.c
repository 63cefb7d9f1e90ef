// SPDX-License-Identifier: Apache-2.0
/*
 * The package memcached: the calls of the original (memcached.h). Each connection is of its caller, and each call
 * waits, but not for long; so names are not looked up.
 */
#include "memcached.h"

#include "hash.h"

#include <duda/mem.h>
#include <duda/msg.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { CALL_MS = 250, VALUE_BYTES_MAX = 1 << 20, TEXT_BYTES = 128, SERVERS_MAX = 16 };

struct old_server {
    int fd;
    uint64_t hash;
};

struct memcached_conn {
    unsigned n;
    uint32_t opaque;
    struct old_server servers[SERVERS_MAX];
};

static uint64_t get_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for a descriptor. Returns 0, -ETIMEDOUT or -errno. */
static int await(int fd, short events, uint64_t deadline_ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        uint64_t now_ms = get_now_ms();
        int n = poll(&p, 1, deadline_ms > now_ms ? (int)(deadline_ms - now_ms) : 0);
        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

/* ── connecting ── */

static int finish_connect(int fd, uint64_t deadline_ms)
{
    int err = await(fd, POLLOUT, deadline_ms), on = 1;
    socklen_t len = sizeof(int);
    if (err < 0)
        return err;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return -err;
}

static int connect_to(const struct addrinfo *address, uint64_t deadline_ms)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int err = connect(fd, address->ai_addr, address->ai_addrlen) < 0 ? -errno : 0;
    if (err == -EINPROGRESS || err == 0)
        err = finish_connect(fd, deadline_ms);
    if (err == 0)
        return fd;
    close(fd);
    return err;
}

/* Splits "host", "host:port" or "[address]:port". */
static bool split_server(char *text, const char **ret_host, const char **ret_port)
{
    char *colon = strrchr(text, ':'), *bracket = strchr(text, ']');
    *ret_host = text[0] == '[' ? text + 1 : text;
    *ret_port = "11211";
    if (colon && (!bracket || colon > bracket)) {
        *colon = '\0';
        *ret_port = colon + 1;
    }
    if (bracket)
        *bracket = '\0';
    if (strcmp(*ret_host, "localhost") == 0)
        *ret_host = "127.0.0.1";
    return **ret_host;
}

/* Returns a descriptor or -errno. */
static int open_server(struct mk_str server, uint64_t deadline_ms)
{
    char text[TEXT_BYTES];
    const char *host, *port;
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (server.len >= sizeof(text))
        return -EINVAL;
    snprintf(text, sizeof(text), "%.*s", MK_STR_ARG(server));
    if (!split_server(text, &host, &port) || getaddrinfo(host, port, &hints, &found) != 0)
        return -EINVAL;
    int fd = connect_to(found, deadline_ms);
    freeaddrinfo(found);
    return fd;
}

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static int add_server(memcached_t *conn, struct mk_str word, uint64_t deadline_ms)
{
    const struct mk_str option = MK_STR("--SERVER=");
    if (!mk_str_starts(word, option) || conn->n == SERVERS_MAX)
        return -EINVAL;
    struct mk_str server = mk_str(word.p + option.len, word.len - option.len);
    int fd = open_server(server, deadline_ms);
    if (fd < 0)
        return fd;
    conn->servers[conn->n++] = (struct old_server){.fd = fd, .hash = mc_hash(server)};
    return 0;
}

static int add_servers(memcached_t *conn, struct mk_str rest)
{
    uint64_t deadline_ms = get_now_ms() + CALL_MS;
    int err = 0;
    while (rest.len && err == 0) {
        size_t n = 0;
        while (n < rest.len && !is_separator(rest.p[n]))
            n++;
        if (n)
            err = add_server(conn, mk_str(rest.p, n), deadline_ms);
        n += n < rest.len;
        rest = mk_str(rest.p + n, rest.len - n);
    }
    return err < 0 || conn->n ? err : -EINVAL;
}

void mc_old_disconnect(memcached_t *conn)
{
    for (unsigned i = 0; conn && i < conn->n; i++)
        if (conn->servers[i].fd >= 0)
            close(conn->servers[i].fd);
    mem->free(conn);
}

memcached_t *mc_old_connect(const char *conf, size_t len, duda_request_t *dr)
{
    memcached_t *conn = conf ? mem->alloc_z(sizeof(*conn)) : NULL;
    (void)dr;
    if (!conn)
        return NULL;
    int err = add_servers(conn, mk_str(conf, len));
    if (err == 0)
        return conn;
    msg->warn("memcached->connect(\"%.*s\"): %s", (int)(len < 100 ? len : 100), conf,
              err == -EINVAL ? "it is not --SERVER=ADDRESS:PORT" : strerror(-err));
    mc_old_disconnect(conn);
    return NULL;
}

/* ── a command ── */

static int send_all(int fd, const struct mk_buf *out, uint64_t deadline_ms)
{
    size_t sent = 0;
    while (sent < out->len) {
        ssize_t n = send(fd, out->data + sent, out->len - sent, MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            return -errno;
        int err = sent < out->len ? await(fd, POLLOUT, deadline_ms) : 0;
        if (err < 0)
            return err;
    }
    return 0;
}

/* Returns the bytes of the whole reply at the beginning of `in`; 0: more is to come; or -errno. */
static ssize_t read_reply(const struct mk_buf *in, struct mc_reply *ret, struct mk_str *ret_value)
{
    const char *error;
    int used = mc_reply_parse(in->data, in->len, ret, &error);
    *ret_value = MK_STR_NONE;
    if (used <= 0 || ret->code != MC_VA)
        return used;
    if (ret->len > VALUE_BYTES_MAX)
        return -EMSGSIZE;
    size_t all = (size_t)used + ret->len + 2;
    if (in->len < all)
        return 0;
    *ret_value = mk_str(in->data + used, ret->len);
    return memcmp(in->data + all - 2, "\r\n", 2) == 0 ? (ssize_t)all : -EPROTO;
}

static int receive_reply(int fd, struct mk_buf *in, struct mc_reply *ret, struct mk_str *ret_value,
                         uint64_t deadline_ms)
{
    for (;;) {
        ssize_t used = read_reply(in, ret, ret_value);
        if (used != 0)
            return used < 0 ? (int)used : (size_t)used == in->len ? 0 : -EPROTO;
        int err = mk_buf_reserve(in, 4096);
        if (err == 0)
            err = await(fd, POLLIN, deadline_ms);
        ssize_t n = err == 0 ? recv(fd, in->data + in->len, in->size - in->len, 0) : err;
        if (n <= 0)
            return err < 0 ? err : -EPIPE;
        in->len += (size_t)n;
    }
}

static struct old_server *choose_server(memcached_t *conn, struct mk_str key)
{
    struct old_server *best = &conn->servers[0];
    uint64_t hash = mc_hash(key);
    for (unsigned i = 1; i < conn->n; i++)
        if (mc_score(conn->servers[i].hash, hash) > mc_score(best->hash, hash))
            best = &conn->servers[i];
    return best;
}

/* Runs a command; `in` holds the value. Returns a result, or the error after which the connection is closed. */
static int run_command(memcached_t *conn, const struct duda_memcached_command *c, struct mk_buf *in,
                       struct mc_reply *reply, struct mk_str *ret_value)
{
    const char *error;
    uint64_t deadline_ms = get_now_ms() + CALL_MS;
    struct mk_buf out;
    int err = conn ? mc_command_check(c, VALUE_BYTES_MAX, &error) : -EINVAL;
    if (err < 0)
        return err;
    struct old_server *s = choose_server(conn, mc_command_key(c));
    if (s->fd < 0)
        return -EPIPE;
    mk_buf_init(&out, VALUE_BYTES_MAX + MC_HEAD_BYTES_MAX);
    mc_command_write(&out, c, ++conn->opaque, (int64_t)time(NULL));
    err = out.err ? out.err : send_all(s->fd, &out, deadline_ms);
    mk_buf_release(&out);
    if (err == 0)
        err = receive_reply(s->fd, in, reply, ret_value, deadline_ms);
    if (err == 0 && reply->has_opaque && reply->opaque != conn->opaque)
        err = -EPROTO;
    int result = err == 0 ? mc_command_result((unsigned)c->op, reply) : err;
    if (err == 0 && result != -EPROTO)
        return result;
    close(s->fd);
    s->fd = -1;
    return result;
}

static void init_in(struct mk_buf *in)
{
    mk_buf_init(in, VALUE_BYTES_MAX + MC_LINE_BYTES_MAX + 4096);
}

int mc_old_set(memcached_t *conn, const char *key, size_t key_len, const char *value, size_t len, int64_t expires,
               uint32_t flags)
{
    struct mc_reply reply;
    struct mk_str unused;
    struct mk_buf in;
    struct duda_memcached_command c = {
        .op = DUDA_MEMCACHED_STORE,
        .key = key_len ? key : "",
        .key_len = key_len,
        .value = value,
        .len = len,
        .ttl_s = expires > 0 ? (uint32_t)(expires < UINT32_MAX ? expires : UINT32_MAX) : 0,
        .flags = flags,
    };
    init_in(&in);
    int result = run_command(conn, &c, &in, &reply, &unused);
    mk_buf_release(&in);
    return result == 0 ? 0 : -1;
}

char *mc_old_get(memcached_t *conn, const char *key, size_t key_len, size_t *ret_len, uint32_t *ret_flags)
{
    struct mc_reply reply;
    struct mk_str value;
    struct mk_buf in;
    const struct duda_memcached_command c = {.op = DUDA_MEMCACHED_FETCH, .key = key_len ? key : "", .key_len = key_len};
    init_in(&in);
    int result = run_command(conn, &c, &in, &reply, &value);
    char *copy = result == 0 ? mem->alloc(value.len + 1) : NULL;
    if (copy) {
        memcpy(copy, value.p, value.len);
        copy[value.len] = '\0';
        if (ret_len)
            *ret_len = value.len;
        if (ret_flags)
            *ret_flags = reply.flags;
    }
    mk_buf_release(&in);
    return copy;
}
