// SPDX-License-Identifier: Apache-2.0
/*
 * Takes exchanges over (<monkey/tunnel.h>), for handlers.
 */
#include "http/tunnel.h"

#include "http/request.h"

#include <assert.h>
#include <errno.h>

/*
 * An upgrade needs HTTP/1.1, Upgrade and "Connection: upgrade", and takes effect after the body (RFC 9110 section 7.8);
 * CONNECT needs no header.
 */
static bool can_take_over(struct mk_request *req)
{
    if (req->output_state >= MK__OUTPUT_HEAD || req->response_state != MK__RESPONSE_OPEN || req->first ||
        req->parse.minor == 0 || req->body_state != MK__BODY_STATE_DONE)
        return false;
    if (req->parse.method == MK_CONNECT)
        return true;
    return mk_request_header(req, MK_HEADER_UPGRADE).p &&
           mk_str_list_has(mk_request_header(req, MK_HEADER_CONNECTION), MK_STR("upgrade"));
}

int mk_request_take_over(struct mk_request *req, mk_tunnel_fn ready, void *ctx)
{
    assert(ready);
    if (!can_take_over(req))
        return -EINVAL;
    struct mk__tunnel *tunnel = mk_arena_alloc(&req->arena, sizeof(*tunnel));
    if (!tunnel)
        return -ENOMEM;
    *tunnel = (struct mk__tunnel){.ready = ready, .ctx = ctx};
    req->tunnel = tunnel;
    req->status = req->parse.method == MK_CONNECT ? 200 : 101;
    req->ops->wake(req);
    return 0;
}

void mk__tunnel_call_ready(struct mk_request *req, unsigned events)
{
    struct mk__tunnel *tunnel = req->tunnel;
    assert(tunnel && !(events & MK_TUNNEL_DRAINING));
    if (mk__context_ends_conns(req->http) && !tunnel->shutdown_notified) {
        tunnel->shutdown_notified = true;
        events |= MK_TUNNEL_DRAINING;
    }
    if (events && req->response_state == MK__RESPONSE_OPEN)
        tunnel->ready(req, events, tunnel->ctx);
}

ssize_t mk_tunnel_read(struct mk_request *req, void *to, size_t size)
{
    assert(req->tunnel);
    ssize_t n = req->ops->read(req, to, size);
    if (n > 0)
        req->body_bytes += (size_t)n;
    return n;
}

ssize_t mk_tunnel_write(struct mk_request *req, const void *from, size_t size)
{
    assert(req->tunnel);
    ssize_t n = req->ops->write(req, from, size);
    if (n > 0)
        req->sent_bytes += (size_t)n;
    return n;
}

int mk_tunnel_shutdown(struct mk_request *req)
{
    assert(req->tunnel);
    return req->ops->shutdown(req);
}

void mk_tunnel_wake(struct mk_request *req)
{
    req->ops->wake_tunnel(req);
}

void mk_tunnel_end(struct mk_request *req)
{
    assert(req->tunnel);
    if (req->response_state == MK__RESPONSE_OPEN)
        req->response_state = MK__RESPONSE_ENDED;
    mk_tunnel_wake(req);
}
