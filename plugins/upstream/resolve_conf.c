// SPDX-License-Identifier: Apache-2.0
/*
 * Reads values about the names of servers (resolve_conf.h).
 */
#include "resolve_conf.h"

#include <errno.h>

enum { NAME_SERVER_PORT = 53, ANY_PORT = 1 };

int resolve_parse_name_server(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                              struct mk_buf *error)
{
    struct lookup_servers *servers = field;
    struct mk_address address;
    if (mk_address_parse(value->text, &address) < 0)
        return mk_conf_fail(error, "a name server is an address with or without a port: 192.0.2.53, 127.0.0.1:5353 or "
                                   "[2001:db8::53]:53");
    if (servers->n == LOOKUP_SERVERS_MAX) {
        mk_buf_addf(error, "a group has at most %d name servers", LOOKUP_SERVERS_MAX);
        return -EINVAL;
    }
    address.port = address.port ? address.port : NAME_SERVER_PORT;
    struct mk_address *items = mk_arena_grow(arena, servers->items, servers->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    items[servers->n++] = address;
    servers->items = items;
    return 0;
}

int resolve_parse_srv(struct mk_str text, const struct mk_dial_target **ret, struct mk_arena *arena,
                      struct mk_buf *error)
{
    const char *why;
    int err =
        text.len && memchr(text.p, ':', text.len) ? -EINVAL : mk_dial_target_parse(arena, text, ANY_PORT, ret, &why);
    if (err == -EINVAL || (err == 0 && (*ret)->addr))
        return mk_conf_fail(error, "behind srv: stands a name without a port, such as srv:_http._tcp.app.internal");
    return err;
}
