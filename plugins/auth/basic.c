// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the credentials of Basic authentication (basic.h).
 */
#include "basic.h"

#include <monkey/base64.h>

/* Cuts the scheme off. Returns false if it is not Basic. */
static bool skip_scheme(struct mk_str *value)
{
    static const struct mk_str name = MK_STR_INIT("Basic");
    if (value->len < name.len || !mk_str_ieq(mk_str(value->p, name.len), name))
        return false;
    *value = mk_str(value->p + name.len, value->len - name.len);
    if (value->len && value->p[0] != ' ')
        return false; /* another scheme, whose name is longer */
    *value = mk_str_trim(*value);
    return true;
}

enum basic_result basic_read(struct mk_str value, struct basic_credentials *ret)
{
    struct mk_buf bytes;
    size_t at;
    ret->user = ret->password = MK_STR_NONE;
    if (!value.p || !skip_scheme(&value))
        return BASIC_NONE;
    mk_buf_init_fixed(&bytes, ret->bytes, sizeof(ret->bytes));
    if (mk_base64_decode(&bytes, value, MK_BASE64) < 0 || !htpasswd_is_text(mk_buf_str(&bytes), &at))
        return BASIC_MALFORMED;
    const char *colon = bytes.len ? memchr(ret->bytes, ':', bytes.len) : NULL;
    if (!colon)
        return BASIC_MALFORMED;
    ret->user = mk_str(ret->bytes, (size_t)(colon - ret->bytes));
    ret->password = mk_str(colon + 1, bytes.len - ret->user.len - 1);
    if (ret->user.len > HTPASSWD_NAME_MAX || ret->password.len > HASH_PASSWORD_MAX)
        return BASIC_MALFORMED;
    return BASIC_OK;
}
