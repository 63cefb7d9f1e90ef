// SPDX-License-Identifier: Apache-2.0
/*
 * The head of a response, as the client gets it (response.h).
 */
#include "response.h"

#include "headers.h"
#include "rewrite.h"
#include "upgrade.h"

#include <monkey/kit/http_client.h>

#include <errno.h>

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
    return functions[rule](&m, value, mk_request_arena(c->req));
}

int response_pass_header(const struct mk_gateway_call *c, struct mk_str name, struct mk_str value)
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
int response_pass_more(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    if (head->parser->status != 426 || mk_request_major(c->req) != 1)
        return 0;
    struct mk_str token = upgrade_choose(&proxy_conf_of(c)->upgrade, mk_gateway_head_find(head, MK_STR("Upgrade")));
    return token.len ? mk_response_header_ref(c->req, MK_STR("Upgrade"), token) : 0;
}

/* ── upgrades ── */

int response_pass_upgrade(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
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

int response_check_head(const struct mk_gateway_call *c, const struct mk_gateway_head *head, bool *ret_binds)
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

void response_pass_interim(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
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

void response_add_trailers(const struct mk_gateway_call *c, struct mk_str lines)
{
    struct mk_str name, value;
    while (mk_chunked_next_trailer(&lines, &name, &value))
        if (header_may_be_trailer(name))
            mk_response_trailer(c->req, mk_arena_dup(mk_request_arena(c->req), name), value);
}
