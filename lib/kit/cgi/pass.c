// SPDX-License-Identifier: Apache-2.0
/*
 * Passes the head of a script's response to the client (<monkey/kit/cgi.h>). The strings are those of one copy of the
 * head in the arena of the request.
 */
#include <monkey/kit/cgi.h>

#include "headers.h"

#include <errno.h>

enum { RESPONSE_HEADERS_MAX = 128 }; /* of mk_response_header(), with those that the server adds */

struct mk_str mk_cgi_find_local_redirect(const struct mk_cgi_head *h, struct mk_str head)
{
    struct mk_str location = mk_span_str(head.p, h->location);
    bool is_path = location.len && location.p[0] == '/' && (location.len == 1 || location.p[1] != '/');
    return is_path && !h->has_status ? location : MK_STR_NONE;
}

/* Tells whether a field Connection names another one, which belongs to the connection then. */
static bool is_named(const struct mk_cgi_head *h, const struct mk_field *fields, struct mk_str head, struct mk_str name)
{
    for (unsigned i = 0; i < h->n_fields; i++)
        if (fields[i].id == MK_HEADER_CONNECTION && mk_str_list_has(mk_span_str(head.p, fields[i].value), name))
            return true;
    return false;
}

int mk_cgi_pass_header(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    if (mk_str_ieq(name, MK_STR("Date"))) /* a malformed one is replaced by the server's */
        return mk_response_set_date(req, value) == -ENOMEM ? -ENOMEM : 0;
    return mk__headers_reach_client(name) ? mk_response_header_ref(req, name, value) : 0;
}

int mk_cgi_pass_head(struct mk_request *req, const struct mk_cgi_head *h, const struct mk_field *fields,
                     struct mk_str head)
{
    head = mk_arena_dup(mk_request_arena(req), mk_str(head.p, h->head_bytes));
    if (!head.p)
        return -ENOMEM;
    int err = mk_response_set_status(req, h->status);
    for (unsigned i = 0; i < h->n_fields && err >= 0; i++) {
        struct mk_str name = mk_span_str(head.p, fields[i].name);
        if (!is_named(h, fields, head, name))
            err = mk_cgi_pass_header(req, name, mk_span_str(head.p, fields[i].value));
    }
    if (err == -ENOMEM && h->n_fields >= RESPONSE_HEADERS_MAX)
        return -ENOBUFS;
    if (err >= 0 && h->has_length && h->status != 204 && h->status != 304)
        err = mk_response_set_length(req, h->length);
    return err;
}
