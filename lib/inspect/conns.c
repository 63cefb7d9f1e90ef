// SPDX-License-Identifier: Apache-2.0
/*
 * Lists the connections of a thread in pieces (<monkey/inspect.h>). A cursor is registered, so that it can move on when
 * its connection is freed.
 */
#include "inspect/conns.h"

#include "http/h2/h2.h"
#include "server/listen/listeners.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <sys/socket.h>

/* ── what looks at a thread's connections ── */

static void move_cursors(struct mk__inspector *i, struct mk__conn *c)
{
    struct mk__inspect_conns *all = MK_CONTAINER_OF(i, struct mk__inspect_conns, base);
    MK_LIST_EACH_ITEM(&all->cursors, struct mk_inspect_cursor, node, cursor) {
        if (cursor->at == &c->link)
            cursor->at = c->link.next;
    }
}

struct mk__inspect_conns *mk__inspect_conns_get(struct mk__context *http)
{
    if (http->inspector)
        return MK_CONTAINER_OF(http->inspector, struct mk__inspect_conns, base);
    struct mk__inspect_conns *all = mk_account_alloc(NULL, sizeof(*all));
    if (!all)
        return NULL;
    *all = (struct mk__inspect_conns){.base = {mk__inspect_trace_open, mk__inspect_trace_state, move_cursors},
                                      .http = http};
    mk_list_init(&all->cursors);
    mk_list_init(&all->traces);
    http->inspector = &all->base;
    return all;
}

void mk__inspect_conns_put(struct mk__inspect_conns *all)
{
    if (!mk_list_empty(&all->cursors) || !mk_list_empty(&all->traces))
        return;
    all->http->inspector = NULL;
    mk_account_free(NULL, all, sizeof(*all));
}

/* ── cursors ── */

int mk__inspect_conns_open(struct mk_inspect_cursor *cursor, struct mk__context *http)
{
    struct mk__inspect_conns *all = mk__inspect_conns_get(http);
    if (!all)
        return -ENOMEM;
    mk_list_init(&cursor->node);
    mk_list_add(&all->cursors, &cursor->node);
    cursor->inspector = all;
    cursor->at = all->http->conns.next;
    return 0;
}

int mk_inspect_open(struct mk_inspect_cursor *cursor, const struct mk_worker *worker)
{
    return mk__inspect_conns_open(cursor, &mk__inspect_core_thread(worker)->http);
}

void mk_inspect_close(struct mk_inspect_cursor *cursor)
{
    mk_list_del(&cursor->node);
    mk__inspect_conns_put(cursor->inspector);
    cursor->inspector = NULL;
}

uint64_t mk__inspect_conns_id(struct mk__conn *c)
{
    return mk_connection_id(&c->handle);
}

static bool is_h2(const struct mk__conn *c)
{
    return c->proto == c->http->protos[MK__PROTO_H2].proto;
}

/* Asks the system how much the connection has carried; only TCP is counted. */
static void count_bytes(const struct mk__conn *c, struct mk_inspect_conn *out)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    out->counts_bytes = getsockopt(c->sock.io.fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
                        len >= offsetof(struct tcp_info, tcpi_segs_out);
    out->received = info.tcpi_bytes_received;
    out->sent = info.tcpi_bytes_acked;
}

static void describe_request(const struct mk_request *req, struct mk_inspect_conn *out)
{
    if (!req)
        return;
    out->has_request = true;
    out->method = mk_request_method_name(req);
    out->host = mk_request_host(req);
    out->path = mk_request_original_path(req);
}

/* Counts the streams, and describes the oldest request. */
static void describe_streams(const struct mk__conn *c, struct mk_inspect_conn *out)
{
    const struct mk__h2 *h2 = c->proto_data;
    const struct mk_request *oldest = NULL;
    MK_LIST_EACH_ITEM(&h2->streams, const struct mk__h2_stream, link, s) {
        out->streams += s->state != MK__H2_STREAM_CLOSED;
        oldest = oldest ? oldest : s->req;
    }
    describe_request(oldest, out);
}

static void describe_conn(struct mk__conn *c, struct mk_inspect_conn *out)
{
    const struct mk__listener *listener = c->sock.io.listener;
    *out = (struct mk_inspect_conn){
        .id = mk__inspect_conns_id(c),
        .peer = c->handle.peer.address,
        .listener = listener->name.text,
        .transport = mk_str_c(c->sock.io.transport->name),
        .protocol = is_h2(c) ? "h2" : "http/1",
        .state = mk_inspect_core.conn_states[c->state].name,
        .age_s = ((uint32_t)(mk_loop_now_ms(c->http->loop) / 100) - c->opened_tenths) / 10,
        .requests = c->requests,
    };
    count_bytes(c, out);
    if (is_h2(c) && c->proto_data)
        describe_streams(c, out);
    else
        describe_request(c->req, out);
}

bool mk_inspect_next(struct mk_inspect_cursor *cursor, unsigned n, mk_inspect_conn_fn fn, void *ctx)
{
    const struct mk__inspect_conns *all = cursor->inspector;
    const struct mk_list *end = &all->http->conns;
    while (cursor->at != end && n--) {
        struct mk__conn *c = MK_CONTAINER_OF((struct mk_list *)cursor->at, struct mk__conn, link);
        struct mk_inspect_conn conn;
        cursor->at = c->link.next;
        describe_conn(c, &conn);
        enum mk_inspect_action action = fn(&conn, ctx);
        if (action == MK_INSPECT_TRACE)
            c->traced = true;
        if (action == MK_INSPECT_ABORT)
            mk_inspect_core.abort_conn(c);
        if (action == MK_INSPECT_STOP)
            break;
    }
    return cursor->at != end;
}
