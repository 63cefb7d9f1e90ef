// SPDX-License-Identifier: Apache-2.0
/*
 * The headers that are not passed on (headers.h).
 */
#include "headers.h"

#include <monkey/request.h>

/* Of one connection (RFC 9110 section 7.6), in both directions. */
static const struct mk_str of_connection[] = {
    MK_STR_INIT("Connection"),       MK_STR_INIT("Keep-Alive"),
    MK_STR_INIT("Proxy-Connection"), MK_STR_INIT("TE"),
    MK_STR_INIT("Trailer"),          MK_STR_INIT("Transfer-Encoding"),
    MK_STR_INIT("HTTP2-Settings"),   MK_STR_INIT("Upgrade"),
};

/* Content-Length and Content-Type have variables of another name, Host comes from the target. */
static const struct mk_str not_for_scripts[] = {
    MK_STR_INIT("Content-Length"), MK_STR_INIT("Content-Type"),        MK_STR_INIT("Host"),
    MK_STR_INIT("Expect"),         MK_STR_INIT("Proxy-Authorization"), MK_STR_INIT("Proxy"),
};

static const struct mk_str not_for_clients[] = {
    MK_STR_INIT("Status"),
    MK_STR_INIT("X-Sendfile"),
    MK_STR_INIT("X-LIGHTTPD-send-file"),
    MK_STR_INIT("Proxy-Authenticate"),
};

static bool is_listed(struct mk_str name, const struct mk_str *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mk_str_ieq(names[i], name))
            return true;
    return false;
}

static bool is_of_connection(struct mk_str name, struct mk_str connection)
{
    return is_listed(name, of_connection, MK_COUNT_OF(of_connection)) ||
           (connection.len && mk_str_list_has(connection, name));
}

bool mk__headers_reach_script(struct mk_str name, struct mk_str connection, bool pass_authorization)
{
    /* a variable shows only these without being taken for another name */
    return mk_str_is_name(name, "-") && !is_of_connection(name, connection) &&
           !is_listed(name, not_for_scripts, MK_COUNT_OF(not_for_scripts)) &&
           (pass_authorization || !mk_str_ieq(name, MK_STR("Authorization")));
}

bool mk__headers_reach_client(struct mk_str name)
{
    struct mk_str accel = MK_STR("X-Accel-");
    return !mk_response_header_reserved(name) && !is_of_connection(name, MK_STR("")) &&
           !is_listed(name, not_for_clients, MK_COUNT_OF(not_for_clients)) &&
           (name.len < accel.len || !mk_str_ieq(mk_str(name.p, accel.len), accel));
}
