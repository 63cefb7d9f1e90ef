// SPDX-License-Identifier: Apache-2.0
/*
 * The object `form`: the pairs of a body.
 */
#include "objects.h"
#include "request/request.h"
#include "route/dispatch.h"

static bool is_form(struct mk_request *req)
{
    struct mk_str type = mk_request_header(req, MK_HEADER_CONTENT_TYPE);
    const char *parameters = type.len ? memchr(type.p, ';', type.len) : NULL;
    if (parameters)
        type.len = (size_t)(parameters - type.p);
    return mk_str_ieq(mk_str_trim(type), MK_STR("application/x-www-form-urlencoded"));
}

static const struct pairs *read_form(duda_request_t *dr)
{
    struct pairs *p = &dr->dispatch->form;
    if (!p->is_read && dr->has_body) /* a callback before the handler may ask before there is a body */
        pairs_read(p, mk_request_arena(dr->req), is_form(dr->req) ? dr->body : MK_STR_NONE, true);
    return p;
}

PAIRS_OBJECT(object_form, "form", read_form);
