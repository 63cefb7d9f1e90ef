// SPDX-License-Identifier: Apache-2.0
/*
 * The object `tunnel`: checks each call, and passes it on (<monkey/tunnel.h>).
 */
#include "request/tunnel.h"

#include "common/api_error.h"
#include "common/current.h"
#include "request/output.h"
#include "request/request.h"

#include <monkey/tunnel.h>

#include <errno.h>

/* In the arena of the exchange. */
struct tunnel {
    duda_tunnel_fn ready;
    void *data;
    struct request_event on_end;
    bool ended;   /* by the service, or with the exchange */
    bool retired; /* ready() has had DUDA_TUNNEL_RETIRED */
};

static_assert((int)DUDA_TUNNEL_READ == (int)MK_TUNNEL_READ && (int)DUDA_TUNNEL_WRITE == (int)MK_TUNNEL_WRITE &&
                  (int)DUDA_TUNNEL_DRAINING == (int)MK_TUNNEL_DRAINING,
              "events of the server are passed on as they are");

/* ── checks ── */

/* Checks that a request is a tunnel. Returns 0, -EINVAL or as request_check(). */
static int check_call(duda_request_t *dr, const char *call)
{
    int err = request_check(dr, call);
    if (err == 0 && MK_UNLIKELY(!dr->tunnel))
        err = request_refuse(dr, call, -EINVAL, "the request is no tunnel: call tunnel->open() before");
    return err;
}

/* ── the begin ── */

static void call_ready(struct duda_request *dr, unsigned events)
{
    struct tunnel *t = dr->tunnel;
    assert(t && t->ready);
    struct current outer = request_enter(dr);
    atomic_store_explicit(&dr->worker->watch.function, (uintptr_t)t->ready, memory_order_relaxed);
    t->ready(dr, events, t->data);
    current_leave(outer);
}

static void on_ready(struct mk_request *req, unsigned events, void *ctx)
{
    (void)req;
    call_ready(ctx, events);
}

static int check_open(duda_request_t *dr, duda_tunnel_fn ready)
{
    static const char call[] = "tunnel->open()";
    int err = request_check(dr, call);
    if (err < 0)
        return err;
    if (!ready)
        return request_refuse(dr, call, -EINVAL, "`ready` is NULL");
    if (dr->tunnel)
        return request_refuse(dr, call, -EALREADY, "the request is a tunnel already");
    if (dr->output.state != OUTPUT_HELD || dr->output.has_parts || dr->raw || mk_response_head_sent(dr->req))
        return request_refuse(dr, call, -EALREADY, "the response has begun or has ended");
    return 0;
}

/* Sets the header Upgrade, which HTTP/2 leaves out. Returns 0, -EINVAL or -ENOMEM. */
static int set_protocol(struct mk_request *req, const char *protocol)
{
    mk_response_header_remove(req, MK_STR("Upgrade"));
    if (protocol)
        return *protocol ? mk_response_header(req, MK_STR("Upgrade"), mk_str_c(protocol)) : -EINVAL;
    return mk_request_method(req) == MK_CONNECT ? 0 : -EINVAL;
}

static int open_tunnel(duda_request_t *dr, const char *protocol, duda_tunnel_fn ready, void *data)
{
    int err = check_open(dr, ready);
    if (err < 0)
        return err;
    struct tunnel *t = mk_arena_alloc(mk_request_arena(dr->req), sizeof(*t));
    err = t ? set_protocol(dr->req, protocol) : -ENOMEM;
    if (err == 0)
        err = mk_request_take_over(dr->req, on_ready, dr);
    if (err < 0)
        mk_response_header_remove(dr->req, MK_STR("Upgrade"));
    if (err == -EINVAL)
        return request_refuse(dr, "tunnel->open()", err,
                              "the request is no upgrade or has a body, or `protocol` is no header value");
    if (err < 0)
        return err;
    *t = (struct tunnel){.ready = ready, .data = data};
    dr->tunnel = t;
    request_use(dr, FEATURE_TUNNEL);
    output_stop(dr);
    return 0;
}

static int set_on_end(duda_request_t *dr, duda_event_fn fn, void *data)
{
    int err = check_call(dr, "tunnel->on_end()");
    if (err == 0)
        dr->tunnel->on_end = (struct request_event){fn, data};
    return err;
}

/* ── bytes ── */

static ssize_t read_bytes(duda_request_t *dr, void *to, size_t size)
{
    int err = check_call(dr, "tunnel->read()");
    if (err < 0)
        return err;
    if (!to || !size)
        return request_refuse(dr, "tunnel->read()", -EINVAL, "there is no room to read to");
    return dr->tunnel->ended ? -EPIPE : mk_tunnel_read(dr->req, to, size);
}

static ssize_t write_bytes(duda_request_t *dr, const void *from, size_t size)
{
    int err = check_call(dr, "tunnel->write()");
    if (err < 0)
        return err;
    if (!from && size)
        return request_refuse(dr, "tunnel->write()", -EINVAL, "`from` is NULL");
    if (dr->tunnel->ended)
        return -EPIPE;
    return size ? mk_tunnel_write(dr->req, from, size) : 0;
}

REQUEST_CALL(int shut_down(duda_request_t *dr), check_call, "tunnel->shutdown()", err,
             dr->tunnel->ended ? -EPIPE : mk_tunnel_shutdown(dr->req))

static void wake_tunnel(duda_request_t *dr)
{
    if (check_call(dr, "tunnel->wake()") == 0 && !dr->tunnel->ended)
        mk_tunnel_wake(dr->req);
}

/* ── the end ── */

static void end_tunnel(struct duda_request *dr)
{
    assert(dr->tunnel && dr->output.state == OUTPUT_ENDED);
    if (dr->tunnel->ended)
        return;
    dr->tunnel->ended = true;
    dr->answered = true;
    mk_tunnel_end(dr->req);
}

static void end_by_service(duda_request_t *dr)
{
    if (check_call(dr, "tunnel->end()") == 0)
        end_tunnel(dr);
}

bool tunnel_retire(struct duda_request *dr)
{
    struct tunnel *t = dr->tunnel;
    if (!t || t->retired || !mk_response_head_sent(dr->req))
        return false;
    t->retired = true;
    if (!t->ended)
        call_ready(dr, DUDA_TUNNEL_RETIRED);
    end_tunnel(dr);
    return true;
}

void tunnel_finish(struct duda_request *dr)
{
    struct tunnel *t = dr->tunnel;
    t->ended = true;
    struct request_event event = t->on_end;
    t->on_end.fn = NULL;
    if (event.fn)
        request_call_event(dr, event);
}

const struct duda_api_tunnel object_tunnel = {
    .open = open_tunnel,
    .on_end = set_on_end,
    .read = read_bytes,
    .write = write_bytes,
    .shutdown = shut_down,
    .wake = wake_tunnel,
    .end = end_by_service,
};
