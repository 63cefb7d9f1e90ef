// SPDX-License-Identifier: Apache-2.0
/*
 * The object `form`: the pairs of a body.
 */
#include "objects.h"
#include "request/request.h"
#include "request/uploads.h"
#include "route/dispatch.h"

static const struct mk_str form_type = MK_STR_INIT("application/x-www-form-urlencoded");

static const struct pairs *read_form(duda_request_t *dr)
{
    struct pairs *p = &dr->dispatch->form;
    if (p->is_read || !dr->has_body) /* a callback before the handler may ask before there is a body */
        return p;
    uploads_read(dr);
    if (!p->is_read)
        pairs_read(p, mk_request_arena(dr->req), request_has_type(dr, form_type) ? dr->body : MK_STR_NONE, true);
    return p;
}

PAIRS_OBJECT(object_form, "form", read_form);
