// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP/1.1 between this server and a backend, as <monkey/kit/gateway.h> uses it. The state of an exchange is a struct
 * upgrade.
 */
#include "proxy.h"

#include <monkey/kit/http_client.h>
#include <monkey/kit/via.h>

#include <errno.h>
#include <stdio.h>

/* ── the PROXY protocol, as its specification of HAProxy has it ── */

enum { TCP4 = 0x11, TCP6 = 0x21, VERSION_2_PROXY = 0x21 };

static bool is_ip(const struct mk_address *a)
{
    return a->family == AF_INET || a->family == AF_INET6;
}

static void map_to_ipv6(struct mk_address *a)
{
    struct mk_address v6 = {.family = AF_INET6, .port = a->port, .bytes = {[10] = 0xff, 0xff}};
    if (a->family != AF_INET)
        return;
    memcpy(v6.bytes + 12, a->bytes, 4);
    *a = v6;
}

static void write_v1(struct mk_buf *out, const struct mk_address *client, const struct mk_address *server)
{
    if (!is_ip(client)) {
        mk_buf_adds(out, MK_STR("PROXY UNKNOWN\r\n"));
        return;
    }
    mk_buf_addf(out, "PROXY TCP%c ", client->family == AF_INET ? '4' : '6');
    mk_address_print(client, out);
    mk_buf_addc(out, ' ');
    mk_address_print(server, out);
    mk_buf_addf(out, " %u %u\r\n", client->port, server->port);
}

static void add_u16(struct mk_buf *out, unsigned value)
{
    mk_buf_addc(out, (char)(value >> 8));
    mk_buf_addc(out, (char)value);
}

static void write_v2(struct mk_buf *out, const struct mk_address *client, const struct mk_address *server)
{
    static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
    size_t n = client->family == AF_INET ? 4 : 16;
    mk_buf_add(out, signature, sizeof(signature) - 1);
    mk_buf_addc(out, VERSION_2_PROXY);
    if (!is_ip(client)) {
        mk_buf_addc(out, 0);
        add_u16(out, 0);
        return;
    }
    mk_buf_addc(out, n == 4 ? TCP4 : TCP6);
    add_u16(out, (unsigned)(2 * n + 4));
    mk_buf_add(out, client->bytes, n);
    mk_buf_add(out, server->bytes, n);
    add_u16(out, client->port);
    add_u16(out, server->port);
}

void proxy_header_write(struct mk_buf *out, enum proxy_send_proxy version, struct mk_address client,
                        struct mk_address server)
{
    if (!is_ip(&server))
        server = (struct mk_address){.family = client.family};
    if (client.family != server.family) {
        map_to_ipv6(&client);
        map_to_ipv6(&server);
    }
    if (version == PROXY_SEND_PROXY_V1)
        write_v1(out, &client, &server);
    else
        write_v2(out, &client, &server);
}

/* ── the head of a response, as the client gets it ── */

/* ── headers ── */

/* Returns the value of a header with a rule, as the client gets it: URLs of the backend become those of the client. */
static struct mk_str rewrite_value(const struct mk_gateway_call *c, enum header_rule rule, struct mk_str value)
{
    static const rewrite_fn functions[] = {
        [HEADER_LOCATION] = rewrite_location,
        [HEADER_REFRESH] = rewrite_refresh,
        [HEADER_LINK] = rewrite_link,
        [HEADER_COOKIE] = rewrite_cookie,
    };
    const struct proxy_conf *conf = proxy_conf_of(c);
    struct mapping m;
    if (!conf->rewrite_location || mapping_init(&m, c->req, conf) < 0)
        return value;
    m.backend.authorities[2] = c->server;
    return functions[rule](&m, value, mk_request_arena(c->req));
}

static int pass_header(const struct mk_gateway_call *c, struct mk_str name, struct mk_str value)
{
    struct mk_request *req = c->req;
    enum header_rule rule = header_of_response(name);
    switch (rule) {
    case HEADER_DROP:
    case HEADER_LENGTH: /* of the parser */
        return 0;
    case HEADER_DATE: /* a malformed one is ours */
        return mk_response_set_date(req, value) == -ENOMEM ? -ENOMEM : 0;
    case HEADER_LOCATION:
    case HEADER_REFRESH:
    case HEADER_LINK:
    case HEADER_COOKIE:
        return mk_response_header_ref(req, name, rewrite_value(c, rule, value));
    default:
        return mk_response_header_parsed(req, name, value);
    }
}

/* A 426 names the protocol that is required (RFC 9110 section 15.5.22): one that could be passed on. */
static int pass_more(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    if (head->parser->status != 426 || mk_request_major(c->req) != 1)
        return 0;
    struct mk_str token = upgrade_choose(&proxy_conf_of(c)->upgrade, mk_gateway_head_find(head, MK_STR("Upgrade")));
    return token.len ? mk_response_header_ref(c->req, MK_STR("Upgrade"), token) : 0;
}

/* ── upgrades ── */

/*
 * Sets the headers of a response of 101, and Upgrade. On HTTP/2 it is a 200 without those that belong to HTTP/1.1 (RFC
 * 8441 section 5). Returns 0, -EPROTO (that is not what was asked for) or another -errno.
 */
static int pass_upgrade(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    const struct upgrade *upgrade = c->state;
    if (!upgrade_is_agreed(upgrade, mk_gateway_head_find(head, MK_STR("Upgrade")),
                           mk_gateway_head_find(head, MK_STR("Sec-WebSocket-Accept"))))
        return -EPROTO;
    int err = mk_gateway_pass_headers(c, head, NULL);
    if (err >= 0 && mk_request_major(c->req) > 1)
        mk_response_header_remove(c->req, MK_STR("Sec-WebSocket-Accept"));
    else if (err >= 0)
        err = mk_response_header_ref(c->req, MK_STR("Upgrade"), upgrade->token);
    return err;
}

/* ── logins of a connection ── */

static int check_head(const struct mk_gateway_call *c, const struct mk_gateway_head *head, bool *ret_binds)
{
    const struct upgrade *upgrade = c->state;
    if (upgrade->is_extended_connect && head->parser->status / 100 == 2)
        return -EPROTO; /* the client would take it for an open tunnel */
    *ret_binds = mk_http_login_binds_connection(mk_request_header(c->req, MK_HEADER_AUTHORIZATION)) ||
                 mk_http_response_binds_connection(head->parser, head->fields, head->bytes.p);
    return 0;
}

/* ── interim responses ── */

static bool takes_hints(const struct mk_request *req, const struct proxy_conf *conf)
{
    return conf->early_hints == PROXY_EARLY_HINTS_ALL ||
           (conf->early_hints == PROXY_EARLY_HINTS_HTTP2 && mk_request_major(req) > 1);
}

/* Sends an interim response, if the client is to get it. */
static void pass_interim(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    struct mk_header_field passed[MK_INTERIM_FIELDS_MAX];
    const struct mk_response_parser *p = head->parser;
    unsigned n = 0;
    if (p->status != 100 && !takes_hints(c->req, proxy_conf_of(c)))
        return;
    for (unsigned i = 0; i < p->n_fields && n < MK_INTERIM_FIELDS_MAX && p->status != 100; i++) {
        struct mk_str name = mk_span_str(head->bytes.p, head->fields[i].name),
                      value = mk_span_str(head->bytes.p, head->fields[i].value);
        enum header_rule rule = header_of_response(name);
        if ((rule != HEADER_PASS && rule != HEADER_LINK) || mk_gateway_head_connection_has(head, name))
            continue;
        passed[n++] = (struct mk_header_field){name, rule == HEADER_LINK ? rewrite_value(c, rule, value) : value};
    }
    mk_response_interim(c->req, p->status, passed, n); /* the client can do without one that is not sent */
}

/* ── trailers ── */

/* Adds the trailers of the backend that may be trailers. */
static void add_trailers(const struct mk_gateway_call *c, struct mk_str lines)
{
    struct mk_str name, value;
    while (mk_chunked_next_trailer(&lines, &name, &value))
        if (header_may_be_trailer(name))
            mk_response_trailer(c->req, mk_arena_dup(mk_request_arena(c->req), name), value);
}

/* ── the table of the protocol, and its framing of bodies ── */

static int begin_call(struct mk_gateway_call *c)
{
    struct upgrade *upgrade = c->state;
    uint64_t bytes;
    struct mk_str via = mk_request_header_by_name(c->req, MK_STR("Via"));
    if (via.len && mk_via_is_loop(via, mk_via_mark(proxy_conf_of(c)->via_seed, c->req)))
        return MK_GATEWAY_LOOP; /* the request has passed this section before */
    bool is_chunked = !mk_request_body_length(c->req, &bytes);
    c->has_trailers = is_chunked && trailers_are_announced(c->req) && mk_request_keep_trailers(c->req) == 0;
    int status = upgrade_init(upgrade, c->req, &proxy_conf_of(c)->upgrade);
    c->is_upgrade = upgrade->token.len > 0;
    return status;
}

/* Connections that begin with the addresses of a client serve no other one. */
static void write_preamble(const struct mk_gateway_call *c, struct mk_buf *out)
{
    const struct proxy_conf *conf = proxy_conf_of(c);
    if (conf->send_proxy)
        proxy_header_write(out, conf->send_proxy, mk_request_client(c->req),
                           mk_connection_local(mk_request_connection(c->req)));
}

static struct mk_str write_trailers(const struct mk_gateway_call *c)
{
    return trailers_make_chunk(c->req, &proxy_conf_of(c)->request);
}

static size_t begin_chunk(char to[MK_GATEWAY_FRAME_BYTES], size_t len)
{
    return (size_t)snprintf(to, MK_GATEWAY_FRAME_BYTES, "%zx\r\n", len);
}

static const struct mk_gateway_frames chunks = {
    .piece_max = SIZE_MAX,
    .begin = begin_chunk,
    .piece_end = MK_STR_INIT("\r\n"),
    .body_end = MK_STR_INIT("0\r\n\r\n"),
};

const struct mk_gateway_protocol proxy_protocol = {
    .name = "proxy",
    .state_bytes = sizeof(struct upgrade),
    .chunked_frames = &chunks,
    .begin = begin_call,
    .write_preamble = write_preamble,
    .write_head = request_write_head,
    .write_trailers = write_trailers,
    .check_head = check_head,
    .pass_header = pass_header,
    .pass_more = pass_more,
    .pass_interim = pass_interim,
    .pass_upgrade = pass_upgrade,
    .add_trailers = add_trailers,
};
