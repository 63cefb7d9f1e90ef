// SPDX-License-Identifier: Apache-2.0
/*
 * Files of users and groups, and credentials: what is read lies in the text, and has the form and length that the
 * headers promise.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../../plugins/auth/passwords.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool is_within(struct mk_str part, struct mk_str text)
{
    return !part.len || (part.p >= text.p && part.p + part.len <= text.p + text.len);
}

static void read_users(struct mk_str text)
{
    struct htpasswd_reader r;
    struct htpasswd_user user;
    int more;
    htpasswd_begin(&r, text);
    while ((more = htpasswd_next_user(&r, &user)) != 0) {
        size_t at;
        check(more == 1 || (r.error && r.column >= 1 && r.line >= 1));
        if (more != 1)
            continue;
        check(is_within(user.name, text) && is_within(user.hash, text) && !htpasswd_check_name(user.name, &at));
        check(user.name.len <= HTPASSWD_NAME_MAX && user.hash.len <= SCHEME_HASH_MAX && user.scheme < SCHEME_COUNT);
        check(user.name.len + user.hash.len < HTPASSWD_LINE_MAX && !memchr(user.hash.p, ':', user.hash.len));
    }
    check(!r.rest.len);
}

static void read_groups(struct mk_str text)
{
    struct htpasswd_reader r;
    struct htpasswd_member m;
    int more;
    htpasswd_begin(&r, text);
    while ((more = htpasswd_next_member(&r, &m)) != 0) {
        check(more == 1 || (r.error && r.column >= 1 && r.line >= 1));
        if (more == 1)
            check(m.group.len && is_within(m.group, text) && is_within(m.user, text));
    }
    check(!r.rest.len);
}

static void read_credentials(struct mk_str text)
{
    struct basic_credentials c;
    if (basic_read(text, &c) != BASIC_OK)
        return;
    check(c.user.len <= HTPASSWD_NAME_MAX && c.password.len <= HASH_PASSWORD_MAX);
    check(!memchr(c.user.len ? c.user.p : "", ':', c.user.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_str text = mk_str((const char *)data, size);
    read_users(text);
    read_groups(text);
    read_credentials(text);
    return 0;
}
