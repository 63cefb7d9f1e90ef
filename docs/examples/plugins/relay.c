// SPDX-License-Identifier: Apache-2.0
/*
 * relay: asks a backend for each GET below /relay/ and passes its answer on, a line of text without HTTP around it.
 * The backend gets the rest of the path as a line, answers, and closes the connection.
 *
 *     [RELAY]                          in the file of a host
 *         Backend localhost:7000
 *
 *     client ── GET /relay/time ──► relay ── "time\n" ──► backend
 *            ◄── 200, "12:00" ─────       ◄── "12:00" ────
 *
 * An exchange ends when its client leaves, also while the backend is being looked up, connected to or asked. Then
 * nothing may call back: the dial is cancelled and the descriptor leaves the loop.
 */
#include <monkey/base/dial.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_relay;

enum { PREFIX_BYTES = 7 /* "/relay/" */, PIECE_BYTES = 4096 };

/* ── the directive: an address that is checked when the configuration is read ── */

struct relay {
    const struct mk_dial_target *backend;
};

static int parse_backend(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    const struct mk_dial_target **target = field;
    const char *reason = NULL;
    int err = mk_dial_target_parse(arena, value->text, MK_DIAL_PORT_REQUIRED, target, &reason);
    if (err < 0)
        mk_buf_addf(error, "%s", reason);
    return err;
}

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_CUSTOM(struct relay, backend, "Backend", NULL, "Who is asked: `name:port`, an address or `unix:/path`.",
                       .parse = parse_backend, .unit = "address"),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "RELAY",
     .scope = MK_CONF_SCOPE_HOST,
     .size = sizeof(struct relay),
     .keys = keys,
     .doc = MK_CONF_DOC("Passes requests on to a backend.")},
    {0},
};

/* ── one exchange with the backend, in the memory of the request ── */

struct ask {
    struct mk_dial dial;
    struct mk_event event; /* fd -1: not connected */
    bool watched;          /* the event is in the loop */
    struct mk_request *req;
    struct mk_str line; /* what of the question is left to send */
};

/* Stops watching, because the end of a connection is reported again and again. */
static void unwatch(struct ask *ask)
{
    if (ask->watched)
        mk_event_del(mk_request_loop(ask->req), &ask->event);
    ask->watched = false;
}

static void close_backend(struct ask *ask)
{
    unwatch(ask);
    if (ask->event.fd >= 0)
        close(ask->event.fd);
    ask->event.fd = -1;
}

/* The exchange is over, answered or not: nothing of `ask` may be called any more. */
static void end_ask(void *ctx)
{
    struct ask *ask = ctx;
    mk_dial_cancel(&ask->dial);
    close_backend(ask);
}

/* Without an answer yet it is a 502; a part of one is cut off, so that it does not look like a whole one. */
static void fail(struct ask *ask, const char *what, const char *reason)
{
    mk_log_warn("relay: cannot %s the backend: %s", what, reason);
    close_backend(ask);
    mk_response_error(ask->req, 502);
}

static void watch(struct ask *ask, uint32_t events)
{
    unwatch(ask);
    int err = mk_event_add(mk_request_loop(ask->req), &ask->event, events);
    ask->watched = err == 0;
    if (err < 0)
        fail(ask, "watch", strerror(-err));
}

static void receive(struct ask *ask)
{
    char piece[PIECE_BYTES];
    for (;;) {
        ssize_t n = recv(ask->event.fd, piece, sizeof(piece), MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            fail(ask, "read from", strerror(errno));
            return;
        }
        if (n == 0) {
            close_backend(ask);
            mk_response_end(ask->req);
            return;
        }
        int r = mk_response_write(ask->req, mk_str(piece, (size_t)n));
        if (r == MK_AGAIN) /* enough is queued: the backend waits until the client has read */
            unwatch(ask);
        if (r < 0) {
            close_backend(ask);
            mk_response_abort(ask->req);
        }
        if (r != 0)
            return;
    }
}

static void go_on(struct mk_request *req, void *ctx)
{
    struct ask *ask = ctx;
    (void)req;
    if (ask->event.fd >= 0)
        watch(ask, EPOLLIN);
}

static void talk(struct mk_event *event, uint32_t events)
{
    struct ask *ask = MK_CONTAINER_OF(event, struct ask, event);
    while (ask->line.len) {
        ssize_t n = send(event->fd, ask->line.p, ask->line.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            fail(ask, "write to", strerror(errno));
            return;
        }
        ask->line = mk_str(ask->line.p + n, ask->line.len - (size_t)n);
        if (!ask->line.len)
            watch(ask, EPOLLIN);
    }
    if (ask->watched && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(ask);
}

static void on_connected(struct mk_dial *dial, int fd)
{
    struct ask *ask = MK_CONTAINER_OF(dial, struct ask, dial);
    if (fd < 0) {
        fail(ask, "connect to", mk_dial_error(fd));
        return;
    }
    ask->event = (struct mk_event){.ready = talk, .fd = fd};
    watch(ask, EPOLLOUT);
}

/* ── requests ── */

/* Returns the rest of the path with the end of a line. */
static struct mk_str make_line(struct mk_request *req)
{
    struct mk_str path = mk_request_path(req);
    char *line = mk_arena_alloc(mk_request_arena(req), path.len);
    if (!line)
        return MK_STR_NONE;
    memcpy(line, path.p + PREFIX_BYTES, path.len - PREFIX_BYTES);
    line[path.len - PREFIX_BYTES] = '\n';
    return mk_str(line, path.len - PREFIX_BYTES + 1);
}

static int ask_backend(struct mk_request *req)
{
    const struct relay *relay = mk_host_conf(mk_request_host_conf(req), sections);
    if (!relay->backend || !mk_str_starts(mk_request_path(req), MK_STR("/relay/")))
        return MK_DECLINED;
    if (mk_request_method(req) != MK_GET) {
        mk_response_method_not_allowed(req, MK_STR("GET"));
        return 0;
    }
    struct ask *ask = mk_arena_zalloc(mk_request_arena(req), sizeof(*ask));
    struct mk_str line = make_line(req);
    if (!ask || !line.p)
        return -ENOMEM;
    *ask = (struct ask){.req = req, .line = line, .event.fd = -1};
    if (mk_arena_defer(mk_request_arena(req), end_ask, ask) < 0)
        return -ENOMEM;
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_on_writable(req, go_on, ask);
    mk_dial_start(&ask->dial, mk_request_loop(req), relay->backend, NULL, on_connected);
    return 0;
}

MK_PLUGIN(relay) = {
    MK_PLUGIN_HEAD("relay", "1.0", "passes on what a backend answers"),
    .sections = sections,
    .on_content = ask_backend,
};
