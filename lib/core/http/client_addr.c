// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the address of the client (http/client_addr.h), once for all plugins.
 */
#include "http/client_addr.h"

#include "base/log.h"
#include "http/count.h"
#include "http/message/forwarded.h"
#include "http/message/proxy_protocol.h"
#include "http/request.h"
#include "net/addr.h"

#include <errno.h>

struct mk_address mk__client_addr_ask(const struct mk_io *io)
{
    struct mk_address found = {0};
    struct mk__addr addr;
    addr.len = sizeof(addr.un);
    if (getpeername(io->fd, &addr.sa, &addr.len) == 0)
        mk__addr_to_address(&addr, &found);
    return found;
}

struct mk_address mk__client_addr_get_peer(const struct mk__peer *peer, const struct mk_io *io)
{
    return peer->from_proxy_header ? mk__client_addr_ask(io) : peer->address;
}

struct mk_address mk_request_peer(struct mk_request *req)
{
    return mk__client_addr_get_peer(&req->ops->conn(req)->peer, req->ops->io(req));
}

int mk__client_addr_notify(struct mk_connection *conn, struct mk__context *http)
{
    return http->settings->notify_client && http->app->on_client(conn, http->app_ctx) < 0 ? -EACCES : 0;
}

int mk__client_addr_read_proxy_header(struct mk_connection *conn, struct mk__context *http, const struct mk_io *io,
                                      struct mk_str *in)
{
    struct mk__peer *peer = &conn->peer;
    struct mk__proxy_protocol header;
    int r = mk__proxy_protocol_read(*in, &header);
    if (r < 0)
        mk__count_one(http, MK__COUNT_REFUSED_PROXY_HEADER);
    if (r < 0 && mk__log_is_due(&http->warned_ms, mk_loop_now_ms(http->loop)))
        mk_io_log(io, &peer->address, MK_LOG_WARN, "closing a connection without a PROXY header");
    if (r != 0)
        return r;
    if (header.source.family) {
        peer->address = header.source;
        peer->from_proxy_header = true;
    }
    peer->expects_proxy_header = false;
    *in = mk_str(in->p + header.bytes, in->len - header.bytes);
    return mk__client_addr_notify(conn, http);
}

int mk__client_addr_recv_proxy_header(struct mk_connection *conn, struct mk__context *http, const struct mk_io *io)
{
    struct mk__scratch *in = &http->in;
    ssize_t n = recv(io->fd, in->data, in->size < MK__PROXY_PROTOCOL_MAX ? in->size : MK__PROXY_PROTOCOL_MAX, MSG_PEEK);
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    struct mk_str left = mk_str(in->data, (size_t)n);
    int r = mk__client_addr_read_proxy_header(conn, http, io, &left);
    if (r != 0)
        return r == MK_AGAIN ? -EAGAIN : r;
    size_t header = (size_t)n - left.len;
    n = recv(io->fd, in->data, header, 0);
    return n == (ssize_t)header ? 0 : -EIO;
}

/* ── the client of a request ── */

typedef void (*read_line_fn)(struct mk__forwarded *f, struct mk_str line);

/* Calls `read` for each line of a field, from the last to the first. */
static void read_field_lines(const struct mk_request *req, struct mk_str name, struct mk__forwarded *f,
                             read_line_fn read)
{
    for (unsigned i = req->parse.n_fields; i-- > 0;)
        if (mk_str_ieq(mk_span_str(req->base, req->fields[i].name), name))
            read(f, mk_span_str(req->base, req->fields[i].value));
}

/*
 * Without X-Forwarded-Proto the scheme of Forwarded counts, if that leads to the same client: a proxy that sends both
 * headers has written it. `other` is as before any field was read.
 */
static void read_scheme_of_forwarded(const struct mk_request *req, struct mk__forwarded other, struct mk__forwarded *f)
{
    read_field_lines(req, MK_STR("Forwarded"), &other, mk__forwarded_read);
    if (other.hops && mk_address_equal(&other.client, &f->client))
        f->is_https = other.is_https;
}

static void read_forwarded_fields(const struct mk_request *req, const struct mk__trusted_proxies *trust,
                                  struct mk__forwarded *f)
{
    const struct mk__forwarded before = *f;
    if (trust->use_forwarded) {
        read_field_lines(req, MK_STR("Forwarded"), f, mk__forwarded_read);
        return;
    }
    read_field_lines(req, MK_STR("X-Forwarded-For"), f, mk__forwarded_read_x_for);
    read_field_lines(req, MK_STR("X-Forwarded-Proto"), f, mk__forwarded_read_x_proto);
    if (f->hops && !f->schemes)
        read_scheme_of_forwarded(req, before, f);
}

/* A Unix socket in a PROXY header is on the machine of the proxy: trust in local Unix sockets does not apply to it. */
bool mk__client_addr_is_proxy(const struct mk__trusted_proxies *trust, const struct mk__peer *peer,
                              const struct mk_address *address)
{
    if (peer->from_proxy_header && address->family == AF_UNIX)
        return false;
    return mk_networks_contain(&trust->networks, address);
}

/* Finds the client and its scheme on the first call; the head does not change after that. */
static void find_client(struct mk_request *req)
{
    if (req->client_known)
        return;
    const struct mk__trusted_proxies *trust = req->http->app->trusted_proxies(req);
    const struct mk__peer *peer = &req->ops->conn(req)->peer;
    struct mk__forwarded f = {.trusted = &trust->networks};
    struct mk_tls_info tls_info;
    f.is_https = mk_request_tls_info(req, &tls_info) == 0;
    f.client = peer->address;
    if (mk__client_addr_is_proxy(trust, peer, &f.client))
        read_forwarded_fields(req, trust, &f);
    req->client = f.client;
    req->is_https = f.is_https;
    req->client_known = true;
}

struct mk_address mk_request_client(struct mk_request *req)
{
    find_client(req);
    return req->client;
}

const struct mk_io *mk_request_io(const struct mk_request *req)
{
    return req->ops->io(req);
}

int mk_request_tls_info(const struct mk_request *req, struct mk_tls_info *ret)
{
    const struct mk_io *io = req->ops->io(req);
    *ret = (struct mk_tls_info){0};
    return io->transport->tls_info ? io->transport->tls_info(io, ret) : -ENOENT;
}

struct mk_str mk_request_scheme(struct mk_request *req)
{
    find_client(req);
    return req->is_https ? MK_STR("https") : MK_STR("http");
}
