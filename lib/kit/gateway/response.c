// SPDX-License-Identifier: Apache-2.0
/*
 * The head of a response, as all protocols pass it on (response.h, <monkey/kit/gateway.h>). The strings are those of
 * one copy of the head in the arena of the exchange.
 */
#include "response.h"

#include <errno.h>

enum { RESPONSE_HEADERS_MAX = 128 }; /* of mk_response_header(), with those that the server adds */

/* ── headers ── */

struct mk_str mk_gateway_head_find(const struct mk_gateway_head *head, struct mk_str name)
{
    struct mk_str value = MK_STR_NONE;
    for (unsigned i = 0; i < head->parser->n_fields; i++) {
        if (!mk_str_ieq(mk_span_str(head->bytes.p, head->fields[i].name), name))
            continue;
        if (value.p)
            return MK_STR_NONE;
        value = mk_span_str(head->bytes.p, head->fields[i].value);
    }
    return value;
}

bool mk_gateway_head_connection_has(const struct mk_gateway_head *head, struct mk_str option)
{
    for (unsigned i = 0; i < head->parser->n_fields; i++)
        if (head->fields[i].id == MK_HEADER_CONNECTION &&
            mk_str_list_has(mk_span_str(head->bytes.p, head->fields[i].value), option))
            return true;
    return false;
}

static bool is_listed(const struct mk_str *names, struct mk_str name)
{
    while (names->p && !mk_str_ieq(*names, name))
        names++;
    return names->p;
}

int mk_gateway_pass_headers(const struct mk_gateway_call *c, const struct mk_gateway_head *head,
                            const struct mk_str *only)
{
    int err = 0;
    struct mk_gateway_head copy = *head;
    copy.bytes = mk_arena_dup(mk_request_arena(c->req), head->bytes);
    if (!copy.bytes.p)
        return -ENOMEM;
    unsigned n_fields = head->parser->n_fields;
    for (unsigned i = 0; i < n_fields && err >= 0; i++) {
        struct mk_str name = mk_span_str(copy.bytes.p, head->fields[i].name);
        if (!mk_gateway_head_connection_has(head, name) && (!only || is_listed(only, name)))
            err = c->protocol->pass_header(c, name, mk_span_str(copy.bytes.p, head->fields[i].value));
    }
    return err == -ENOMEM && n_fields >= RESPONSE_HEADERS_MAX ? -ENOBUFS : err;
}

int mk__gw_response_pass(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    const struct mk_response_parser *p = head->parser;
    int err = mk_response_set_status(c->req, p->status);
    if (err >= 0)
        err = mk_gateway_pass_headers(c, head, NULL);
    if (err >= 0 && c->protocol->pass_more)
        err = c->protocol->pass_more(c, head);
    if (err >= 0 && p->has_length && p->status != 204 && p->status != 304)
        err = mk_response_set_length(c->req, p->length);
    return err;
}

/* ── responses that the server replaces ── */

int mk__gw_response_find_file(const struct mk_gateway_call *c, const struct mk_gateway_head *head,
                              struct mk__gw_named_file *ret)
{
    struct mk_arena *arena = mk_request_arena(c->req);
    struct mk_str uri = mk_gateway_head_find(head, MK_STR("X-Accel-Redirect"));
    struct mk_str path = mk_gateway_head_find(head, MK_STR("X-Sendfile"));
    struct mk_str ranges = mk_gateway_head_find(head, MK_STR("Accept-Ranges"));
    struct mk_str type = mk_gateway_head_find(head, MK_STR("Content-Type"));
    if (!uri.len && !path.len)
        return 0;
    *ret = (struct mk__gw_named_file){.log_name = c->protocol->name,
                                      .value = mk_arena_dup(arena, uri.len ? uri : path),
                                      .is_uri = uri.len > 0,
                                      .type = mk_arena_dup(arena, type),
                                      .no_ranges = mk_str_ieq(ranges, MK_STR("none"))};
    return ret->value.p && ret->type.p ? 1 : -ENOMEM;
}

/* The headers that nginx keeps for X-Accel-Redirect; Content-Type and Accept-Ranges are those of the file. */
int mk__gw_response_keep_for_file(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    static const struct mk_str names[] = {MK_STR_INIT("Content-Disposition"),
                                          MK_STR_INIT("Set-Cookie"),
                                          MK_STR_INIT("Cache-Control"),
                                          MK_STR_INIT("Expires"),
                                          {0}};
    return mk_gateway_pass_headers(c, head, names);
}

/* The headers without which the client could not use the status (RFC 9110 section 15). */
int mk__gw_response_keep_for_error(const struct mk_gateway_call *c, const struct mk_gateway_head *head)
{
    static const struct mk_str names[] = {MK_STR_INIT("WWW-Authenticate"),
                                          MK_STR_INIT("Allow"),
                                          MK_STR_INIT("Retry-After"),
                                          MK_STR_INIT("Content-Range"),
                                          {0}};
    int err = mk_gateway_pass_headers(c, head, names);
    return err >= 0 && c->protocol->pass_more ? c->protocol->pass_more(c, head) : err;
}
