// SPDX-License-Identifier: Apache-2.0
/*
 * dialer: sends a line over a connection that it opens through a transport, and responds with what comes back.
 *
 *     /dial     over a new connection, until the server ends it
 *     /keep     over a new connection, until a line has come: then the connection is kept
 *     /kept     the same over the connection that was kept
 */
#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/base/dial.h>
#include <monkey/hooks.h>
#include <monkey/loop.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_dialer;

enum { DATA_BYTES = 65536, TEXT_BYTES = 600 };

struct settings {
    struct mk_str to, name, ca_file, certificate, key;
    struct mk_conf_list protocols;
    uint32_t timeout_ms;
    bool verify;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_STRING(struct settings, to, "To", NULL, "Where to: https://host:port."),
    MK_CONF_KEY_STRING(struct settings, name, "Name", "localhost", "Of the server."),
    MK_CONF_KEY_PATH(struct settings, ca_file, "CA", NULL, "Whom to trust."),
    MK_CONF_KEY_PATH(struct settings, certificate, "Certificate", NULL, "The own one."),
    MK_CONF_KEY_PATH(struct settings, key, "Key", NULL, "Its key."),
    MK_CONF_KEY_LIST(struct settings, protocols, "Protocols", NULL, "To offer."),
    MK_CONF_KEY_DURATION(struct settings, timeout_ms, "Wait", "10s", "For all of it.", .min = 1, .max = 60000),
    MK_CONF_KEY_BOOL(struct settings, verify, "Verify", "On", "The certificate of the server."),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "DIALER",
     .scope = MK_CONF_SCOPE_HOST,
     .size = sizeof(struct settings),
     .keys = keys,
     .doc = MK_CONF_DOC("A server to talk to.")},
    {0},
};

/* ── hosts ── */

struct host {
    const struct settings *settings;
    const struct mk_transport *transport;
    struct mk_transport_client *client;
    const struct mk_dial_target *target;
    struct mk_arena arena;
};

/* Which field of the settings an offset of the client's means. */
static size_t find_field(size_t field)
{
    static const struct {
        size_t of_client, own;
    } fields[] = {
        {offsetof(struct mk_transport_client_conf, ca_file), offsetof(struct settings, ca_file)},
        {offsetof(struct mk_transport_client_conf, certificate), offsetof(struct settings, certificate)},
        {offsetof(struct mk_transport_client_conf, key), offsetof(struct settings, key)},
        {offsetof(struct mk_transport_client_conf, protocols), offsetof(struct settings, protocols)},
    };
    for (size_t i = 0; i < MK_COUNT_OF(fields); i++)
        if (fields[i].of_client == field)
            return fields[i].own;
    return offsetof(struct settings, name);
}

static int open_client(struct mk_host *host, struct host *own, struct mk_buf *error)
{
    const struct settings *s = own->settings;
    const struct mk_transport_client_conf conf = {.server_name = s->name,
                                                  .ca_file = s->ca_file,
                                                  .certificate = s->certificate,
                                                  .key = s->key,
                                                  .protocols = s->protocols.items,
                                                  .n_protocols = s->protocols.n,
                                                  .skip_verify = !s->verify};
    size_t field = 0;
    own->transport = mk_generation_transport(mk_host_generation(host), "tls", error);
    int err = own->transport ? own->transport->client_open(&conf, &own->client, &field, error) : -EINVAL;
    if (err == -EINVAL)
        mk_host_error(host, s, own->transport ? find_field(field) : offsetof(struct settings, to), 0, "%s",
                      mk_buf_cstr(error));
    return err;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    static const struct mk_str scheme = MK_STR("https://");
    const struct settings *s = mk_host_conf(host, sections);
    struct mk_buf error;
    char text[TEXT_BYTES];
    const char *reason = NULL;
    if (!s->to.len)
        return 0;
    struct host *own = calloc(1, sizeof(*own));
    if (!own)
        return -ENOMEM;
    own->settings = s;
    mk_arena_init(&own->arena, NULL, 65536, NULL, 0);
    mk_buf_init_fixed(&error, text, sizeof(text));
    struct mk_str address = s->to.len > scheme.len ? mk_str(s->to.p + scheme.len, s->to.len - scheme.len) : s->to;
    int err = mk_dial_target_parse(&own->arena, address, MK_DIAL_PORT_REQUIRED, &own->target, &reason);
    if (err == 0)
        err = open_client(host, own, &error);
    if (err == 0) {
        *ret_state = own;
        return 0;
    }
    mk_arena_release(&own->arena);
    free(own);
    return err;
}

static void stop_host(struct mk_host *host, void *state)
{
    struct host *own = state;
    (void)host;
    if (!own)
        return;
    own->transport->client_close(own->client);
    mk_arena_release(&own->arena);
    free(own);
}

/* ── the connection that is kept: of the first worker, over reloads ── */

struct kept {
    unsigned workers; /* that have it */
    bool is_open;
    struct mk_io io;
};

static int start(void **ret_state)
{
    *ret_state = calloc(1, sizeof(struct kept));
    return *ret_state ? 0 : -ENOMEM;
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct kept *kept = mk_generation_plugin_state(mk_worker_generation(worker), &mk_plugin_dialer);
    if (mk_worker_index(worker) != 0)
        return 0;
    kept->workers++;
    *ret_state = kept;
    return 0;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct kept *kept = state;
    (void)worker;
    if (!kept || --kept->workers || !kept->is_open)
        return;
    kept->io.transport->close(&kept->io);
    kept->is_open = false;
    mk_log_info("dialer: the connection that was kept is closed");
}

/* ── requests ── */

struct call {
    struct mk_request *req;
    const struct host *host;
    struct kept *kept;
    struct mk_dial dial;
    struct mk_io io;
    struct mk_event event;
    struct mk_timer timer;
    bool is_dialing, is_open, is_watched, is_ready, keeps;
    size_t len;
    char data[DATA_BYTES];
};

static void release_call(struct call *call)
{
    if (call->is_dialing)
        mk_dial_cancel(&call->dial);
    mk_timer_cancel(&call->timer);
    if (call->is_watched)
        mk_event_del(mk_request_loop(call->req), &call->event);
    if (call->is_open)
        call->io.transport->close(&call->io);
    call->is_dialing = call->is_watched = call->is_open = false;
}

static void respond(struct mk_request *req, struct mk_str text)
{
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_write(req, text);
    mk_response_end(req);
}

static void fail(struct call *call, int err)
{
    struct mk_buf error;
    char text[TEXT_BYTES];
    const char *type = "none";
    mk_buf_init_fixed(&error, text, sizeof(text));
    if (call->is_open)
        type = call->io.transport->describe_error(&call->io, err, &error);
    else
        mk_buf_addf(&error, "%s", mk_dial_error(err));
    release_call(call);
    mk_log_info("dialer: %s", mk_buf_cstr(&error));
    mk_response_set_status(call->req, 502);
    mk_response_header_ref(call->req, MK_STR("X-Error"), mk_str_c(type));
    respond(call->req, mk_buf_str(&error));
}

static void succeed(struct call *call, int end)
{
    struct mk_tls_info info = {0};
    const struct mk_transport *transport = call->io.transport;
    transport->tls_info(&call->io, &info);
    mk_response_header(call->req, MK_STR("X-Protocol"), transport->protocol(&call->io));
    mk_response_header(call->req, MK_STR("X-Version"), info.version);
    mk_response_header(call->req, MK_STR("X-Name"), info.server_name);
    mk_response_header(call->req, MK_STR("X-End"),
                       end == 0             ? MK_STR("whole")
                       : end == -ECONNRESET ? MK_STR("truncated")
                       : end == -EAGAIN     ? MK_STR("kept")
                                            : MK_STR("broken"));
    if (call->keeps && end == -EAGAIN && !call->kept->is_open) {
        call->kept->io = call->io;
        call->kept->is_open = true;
        call->is_open = false;
    } else {
        transport->close_notify(&call->io);
    }
    release_call(call);
    respond(call->req, mk_str(call->data, call->len));
}

static int send_line(struct call *call)
{
    static char line[] = "GET / HTTP/1.0\r\n\r\n";
    const struct iovec vec = {line, sizeof(line) - 1};
    ssize_t n = call->io.transport->write(&call->io, &vec, 1, 0);
    call->is_ready = true;
    return n < 0 ? (int)n : call->io.transport->flush(&call->io);
}

static void read_line(struct call *call)
{
    ssize_t n;
    do {
        n = call->io.transport->read(&call->io, call->data + call->len, sizeof(call->data) - call->len);
        call->len += n > 0 ? (size_t)n : 0;
    } while (n > 0 && call->len < sizeof(call->data));
    if (n == -EAGAIN && !(call->keeps && memchr(call->data, '\n', call->len)))
        return;
    if (n < 0 && n != -EAGAIN && !call->len)
        fail(call, (int)n);
    else
        succeed(call, (int)n);
}

static void on_ready(struct mk_event *event, uint32_t events)
{
    struct call *call = MK_CONTAINER_OF(event, struct call, event);
    int r = call->is_ready ? 0 : call->io.transport->handshake(&call->io);
    (void)events;
    if (r == 0)
        r = call->is_ready ? call->io.transport->flush(&call->io) : send_line(call);
    if (r == 0 || (r == -EAGAIN && call->is_ready))
        read_line(call);
    else if (r != -EAGAIN && r != -EINPROGRESS)
        fail(call, r);
}

static int watch(struct call *call)
{
    call->event = (struct mk_event){.ready = on_ready, .fd = call->io.fd};
    int err = mk_event_add(mk_request_loop(call->req), &call->event, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    call->is_watched = err == 0;
    return err;
}

static void on_dialed(struct mk_dial *dial, int fd)
{
    struct call *call = MK_CONTAINER_OF(dial, struct call, dial);
    call->is_dialing = false;
    if (fd < 0) {
        fail(call, fd);
        return;
    }
    call->io = (struct mk_io){.transport = call->host->transport, .fd = fd};
    call->is_open = true;
    int err = call->io.transport->connect(&call->io, mk_request_worker(call->req), call->host->client);
    if (err == 0)
        err = watch(call);
    if (err < 0)
        fail(call, err);
}

static void on_timeout(struct mk_timer *timer)
{
    fail(MK_CONTAINER_OF(timer, struct call, timer), -ETIMEDOUT);
}

/* Takes the connection that was kept. */
static int take_kept(struct call *call)
{
    int err = call->keeps && call->kept->is_open ? 0 : -ENOTCONN;
    if (err == 0) {
        call->io = call->kept->io;
        call->is_open = true;
        call->kept->is_open = false;
        err = send_line(call);
    }
    return err == 0 || err == -EAGAIN ? watch(call) : err;
}

static int answer(struct mk_request *req)
{
    const struct host *host = mk_request_host_state(req, &mk_plugin_dialer);
    struct mk_str path = mk_request_path(req);
    bool kept = mk_str_eq(path, MK_STR("/kept")), keep = mk_str_eq(path, MK_STR("/keep"));
    if (!host || (!kept && !keep && !mk_str_eq(path, MK_STR("/dial"))))
        return MK_DECLINED;
    struct call *call = calloc(1, sizeof(*call));
    if (!call)
        return -ENOMEM;
    call->req = req;
    call->host = host;
    call->kept = mk_worker_state(mk_request_worker(req), &mk_plugin_dialer);
    call->keeps = call->kept && (kept || keep);
    mk_request_set_state(req, &mk_plugin_dialer, call);
    mk_timer_init(&call->timer, on_timeout);
    mk_timer_arm(mk_request_loop(req), &call->timer, host->settings->timeout_ms);
    if (kept) {
        int err = take_kept(call);
        if (err < 0)
            fail(call, err);
        return 0;
    }
    call->is_dialing = true;
    mk_dial_start(&call->dial, mk_request_loop(req), host->target, NULL, on_dialed);
    return 0;
}

static void end(struct mk_request *req)
{
    struct call *call = mk_request_state(req, &mk_plugin_dialer);
    if (call)
        release_call(call);
    free(call);
}

static const struct mk_plugin_need needs[] = {{"tls", "To", "https://"}, {0}};

static const struct mk_plugin_interfaces interfaces = {.needs = needs};

MK_PLUGIN(dialer) = {
    MK_PLUGIN_HEAD("dialer", "1.0", "talks to a server"),
    .sections = sections,
    .start = start,
    .stop = free,
    .host_start = start_host,
    .host_stop = stop_host,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_content = answer,
    .on_done = end,
    .interfaces = &interfaces,
};
