// SPDX-License-Identifier: Apache-2.0
/*
 * Logins of connections (<monkey/http_client.h>).
 */
#include <monkey/http_client.h>

bool mk_http_login_binds_connection(struct mk_str value)
{
    static const struct mk_str schemes[] = {MK_STR_INIT("NTLM"), MK_STR_INIT("Negotiate")};
    struct mk_str element;
    while (mk_str_next(&value, &element)) {
        const char *blank = memchr(element.p, ' ', element.len);
        struct mk_str scheme = mk_str(element.p, blank ? (size_t)(blank - element.p) : element.len);
        for (size_t i = 0; i < MK_COUNT_OF(schemes); i++)
            if (mk_str_ieq(scheme, schemes[i]))
                return true;
    }
    return false;
}
