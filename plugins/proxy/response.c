// SPDX-License-Identifier: Apache-2.0
/*
 * The head of a response, as the client gets it (response.h). The strings are those of one copy of the head in the
 * arena of the exchange.
 */
#include "response.h"

#include "bound.h"
#include "headers.h"
#include "request.h"
#include "rewrite.h"

#include <errno.h>

enum { RESPONSE_HEADERS_MAX = 128 }; /* of mk_response_header(), with those that the server adds */

/* ── headers ── */

static int pass_header(struct mk_request *req, const struct proxy_conf *conf, struct mk_str name, struct mk_str value)
{
    switch (header_of_response(name)) {
    case HEADER_DROP:
    case HEADER_LENGTH: /* of the parser */
        return 0;
    case HEADER_DATE: /* a malformed one is ours */
        return mk_response_set_date(req, value) == -ENOMEM ? -ENOMEM : 0;
    case HEADER_LOCATION:
        if (conf->rewrite_location)
            value = rewrite_location(conf, request_authority(req), value, mk_request_arena(req));
        return mk_response_header_ref(req, name, value);
    case HEADER_COOKIE:
        if (conf->rewrite_location)
            value = rewrite_cookie(conf, mk_request_host(req), value, mk_request_arena(req));
        return mk_response_header_ref(req, name, value);
    default:
        return mk_response_header_ref(req, name, value);
    }
}

/* The connection between proxy and backend has headers of its own. */
static struct mk_str join_connection(struct mk_request *req, const struct mk_response_parser *p,
                                     const struct mk_field *fields, struct mk_str head)
{
    struct mk_str all = MK_STR_NONE;
    for (unsigned i = 0; i < p->n_fields; i++) {
        if (fields[i].id != MK_HEADER_CONNECTION)
            continue;
        struct mk_str value = mk_span_str(head.p, fields[i].value);
        size_t len = all.len + value.len + 1;
        char *to = all.len ? mk_arena_alloc(mk_request_arena(req), len) : NULL;
        if (!to) {
            all = value;
            continue;
        }
        memcpy(to, all.p, all.len);
        to[all.len] = ',';
        memcpy(to + all.len + 1, value.p, value.len);
        all = mk_str(to, len);
    }
    return all;
}

static bool is_listed(const struct mk_str *names, struct mk_str name)
{
    while (names->p && !mk_str_ieq(*names, name))
        names++;
    return names->p;
}

/* Passes the headers on, or those with a name in `only`, unless that is NULL. Returns 0 or -errno. */
static int pass_headers(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                        const struct mk_field *fields, struct mk_str head, const struct mk_str *only)
{
    int err = 0;
    head = mk_arena_dup(mk_request_arena(req), head);
    if (!head.p)
        return -ENOMEM;
    struct mk_str connection = join_connection(req, p, fields, head);
    for (unsigned i = 0; i < p->n_fields && err >= 0; i++) {
        struct mk_str name = mk_span_str(head.p, fields[i].name);
        if ((!connection.len || !mk_str_list_has(connection, name)) && (!only || is_listed(only, name)))
            err = pass_header(req, conf, name, mk_span_str(head.p, fields[i].value));
    }
    return err == -ENOMEM && p->n_fields >= RESPONSE_HEADERS_MAX ? -ENOBUFS : err;
}

struct mk_str response_find(const struct mk_response_parser *p, const struct mk_field *fields, struct mk_str head,
                            struct mk_str name)
{
    struct mk_str value = MK_STR_NONE;
    for (unsigned i = 0; i < p->n_fields; i++) {
        if (!mk_str_ieq(mk_span_str(head.p, fields[i].name), name))
            continue;
        if (value.p)
            return MK_STR_NONE;
        value = mk_span_str(head.p, fields[i].value);
    }
    return value;
}

/* A 426 names the protocol that is required (RFC 9110 section 15.5.22): one that could be passed on. */
static int pass_required_protocol(struct mk_request *req, const struct proxy_conf *conf,
                                  const struct mk_response_parser *p, const struct mk_field *fields, struct mk_str head)
{
    struct mk_str token = upgrade_choose(&conf->upgrade, response_find(p, fields, head, MK_STR("Upgrade")));
    return token.len && mk_request_major(req) == 1 ? mk_response_header_ref(req, MK_STR("Upgrade"), token) : 0;
}

int response_pass_head(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                       const struct mk_field *fields, struct mk_str head)
{
    int err = mk_response_set_status(req, p->status);
    if (err >= 0)
        err = pass_headers(req, conf, p, fields, head, NULL);
    if (err >= 0 && p->status == 426)
        err = pass_required_protocol(req, conf, p, fields, head);
    if (err >= 0 && p->has_length && p->status != 204 && p->status != 304)
        err = mk_response_set_length(req, p->length);
    return err;
}

/* ── upgrades ── */

int response_pass_upgrade(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                          const struct mk_field *fields, struct mk_str head, struct mk_str token)
{
    int err = pass_headers(req, conf, p, fields, head, NULL);
    if (err >= 0 && mk_request_major(req) > 1)
        mk_response_header_remove(req, MK_STR("Sec-WebSocket-Accept"));
    else if (err >= 0)
        err = mk_response_header_ref(req, MK_STR("Upgrade"), token);
    return err;
}

/* ── logins of a connection ── */

bool response_binds_conn(struct mk_request *req, const struct mk_response_parser *p, const struct mk_field *fields,
                         struct mk_str head)
{
    bool binds = bound_is_scheme(mk_request_header(req, MK_HEADER_AUTHORIZATION));
    for (unsigned i = 0; i < p->n_fields && p->status == 401; i++)
        if (mk_str_ieq(mk_span_str(head.p, fields[i].name), MK_STR("WWW-Authenticate")))
            binds |= bound_is_scheme(mk_span_str(head.p, fields[i].value));
    return binds;
}

/* ── responses that the server replaces ── */

int response_find_file(struct mk_request *req, const struct mk_response_parser *p, const struct mk_field *fields,
                       struct mk_str head, struct named_file *ret)
{
    struct mk_str uri = response_find(p, fields, head, MK_STR("X-Accel-Redirect"));
    struct mk_str path = response_find(p, fields, head, MK_STR("X-Sendfile"));
    struct mk_str ranges = response_find(p, fields, head, MK_STR("Accept-Ranges"));
    struct mk_str type = response_find(p, fields, head, MK_STR("Content-Type"));
    if (!uri.len && !path.len)
        return 0;
    *ret = (struct named_file){.value = mk_arena_dup(mk_request_arena(req), uri.len ? uri : path),
                               .is_uri = uri.len > 0,
                               .type = mk_arena_dup(mk_request_arena(req), type),
                               .no_ranges = mk_str_ieq(ranges, MK_STR("none"))};
    return ret->value.p && ret->type.p ? 1 : -ENOMEM;
}

/* The headers that nginx keeps for X-Accel-Redirect; Content-Type and Accept-Ranges are those of the file. */
int response_keep_for_file(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                           const struct mk_field *fields, struct mk_str head)
{
    static const struct mk_str names[] = {MK_STR_INIT("Content-Disposition"),
                                          MK_STR_INIT("Set-Cookie"),
                                          MK_STR_INIT("Cache-Control"),
                                          MK_STR_INIT("Expires"),
                                          {0}};
    return pass_headers(req, conf, p, fields, head, names);
}

/* The headers without which the client could not use the status (RFC 9110 section 15). */
int response_keep_for_error(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                            const struct mk_field *fields, struct mk_str head)
{
    static const struct mk_str names[] = {MK_STR_INIT("WWW-Authenticate"),
                                          MK_STR_INIT("Allow"),
                                          MK_STR_INIT("Retry-After"),
                                          MK_STR_INIT("Content-Range"),
                                          {0}};
    int err = pass_headers(req, conf, p, fields, head, names);
    return err >= 0 && p->status == 426 ? pass_required_protocol(req, conf, p, fields, head) : err;
}

/* ── interim responses ── */

static bool takes_hints(const struct mk_request *req, const struct proxy_conf *conf)
{
    return conf->early_hints == PROXY_EARLY_HINTS_ALL ||
           (conf->early_hints == PROXY_EARLY_HINTS_HTTP2 && mk_request_major(req) > 1);
}

void response_pass_interim(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                           const struct mk_field *fields, struct mk_str head)
{
    struct mk_header_field passed[MK_INTERIM_FIELDS_MAX];
    unsigned n = 0;
    if (p->status != 100 && !takes_hints(req, conf))
        return;
    struct mk_str connection = join_connection(req, p, fields, head);
    for (unsigned i = 0; i < p->n_fields && n < MK_INTERIM_FIELDS_MAX && p->status != 100; i++) {
        struct mk_str name = mk_span_str(head.p, fields[i].name);
        if (header_of_response(name) == HEADER_PASS && !(connection.len && mk_str_list_has(connection, name)))
            passed[n++] = (struct mk_header_field){name, mk_span_str(head.p, fields[i].value)};
    }
    mk_response_interim(req, p->status, passed, n); /* the client can do without one that is not sent */
}

/* ── trailers ── */

void response_add_trailers(struct mk_request *req, const struct mk_buf *trailers)
{
    struct mk_str lines = trailers->err ? MK_STR_NONE : mk_buf_str(trailers), name, value;
    while (mk_chunked_next_trailer(&lines, &name, &value))
        if (header_may_be_trailer(name))
            mk_response_trailer(req, mk_arena_dup(mk_request_arena(req), name), value);
}
