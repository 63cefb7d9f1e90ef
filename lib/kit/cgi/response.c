// SPDX-License-Identifier: Apache-2.0
/*
 * Reads CGI heads where HTTP heads are expected: mk_cgi_parse_response().
 */
#include <monkey/cgi.h>

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

int mk_cgi_parse_response(struct mk_cgi_response *r, struct mk_response_parser *p, struct mk_field *fields,
                          struct mk_str head)
{
    r->limits = (struct mk_cgi_head_limits){p->limits->head_bytes_max, p->limits->fields_max};
    if (!r->head.limits)
        mk_cgi_head_init(&r->head, &r->limits);
    r->head.limits = &r->limits; /* `r` may have moved */
    int result = mk_cgi_head_parse(&r->head, fields, head);
    if (result < 0)
        r->fault = mk_cgi_head_error(result);
    if (result != 0)
        return result == -EPROTO || result == -EBADMSG ? -EINVAL : result;
    p->status = r->head.status;
    p->head_bytes = r->head.head_bytes;
    p->n_fields = r->head.n_fields;
    set_body(p, &r->head);
    return 0;
}
