// SPDX-License-Identifier: Apache-2.0
/*
 * Reads CGI heads where HTTP heads are expected: mk_cgi_parse_response().
 */
#include <monkey/kit/cgi.h>

#include <errno.h>

/* Sets what the head says of the body (RFC 3875 section 6.3). */
static void set_body(struct mk_response_parser *p, const struct mk_cgi_head *head)
{
    bool has_none = p->to == MK_RESPONSE_TO_HEAD || head->status == 204 || head->status == 304;
    p->has_length = head->has_length;
    p->length = p->left = head->length;
    p->body = has_none           ? MK_RESPONSE_BODY_NONE
              : head->has_length ? MK_RESPONSE_BODY_LENGTH
                                 : MK_RESPONSE_BODY_UNTIL_END;
    p->is_done = has_none || (head->has_length && !head->length);
}

int mk_cgi_parse_response(struct mk_cgi_head *h, struct mk_response_parser *p, struct mk_field *fields,
                          struct mk_str head)
{
    if (!h->limits)
        mk_cgi_head_init(h, p->limits);
    int result = mk_cgi_head_parse(h, fields, head);
    p->fault = h->fault;
    if (result != 0)
        return result;
    p->status = h->status;
    p->head_bytes = h->head_bytes;
    p->n_fields = h->n_fields;
    set_body(p, h);
    return 0;
}
