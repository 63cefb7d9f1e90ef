// SPDX-License-Identifier: Apache-2.0
/*
 * Logins of connections (<monkey/kit/http_client.h>).
 */
#include <monkey/kit/http_client.h>

bool mk_http_login_binds_connection(struct mk_str value)
{
    static const struct mk_str schemes[] = {MK_STR_INIT("NTLM"), MK_STR_INIT("Negotiate")};
    struct mk_str element;
    while (mk_str_next(&value, &element)) {
        if (mk_str_is_any(mk_str_split(&element, ' '), schemes, MK_COUNT_OF(schemes)))
            return true;
    }
    return false;
}

bool mk_http_response_binds_connection(const struct mk_response_parser *p, const struct mk_field *fields,
                                       const char *head)
{
    bool binds = false;
    for (unsigned i = 0; i < p->n_fields && p->status == 401; i++)
        if (mk_str_ieq(mk_span_str(head, fields[i].name), MK_STR("WWW-Authenticate")))
            binds |= mk_http_login_binds_connection(mk_span_str(head, fields[i].value));
    return binds;
}
