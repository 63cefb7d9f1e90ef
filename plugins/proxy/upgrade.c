// SPDX-License-Identifier: Apache-2.0
/*
 * Asks a backend for an upgrade, and checks what it responds (upgrade.h).
 */
#include "upgrade.h"

#include <monkey/base/random.h>

static int make_key(struct upgrade *u)
{
    uint8_t nonce[MK_WS_NONCE_BYTES];
    int err = mk_random(nonce, sizeof(nonce));
    if (err == 0)
        mk_ws_key_make(u->key, nonce);
    return err;
}

/* HTTP/1.0 knows no upgrade, and an extended CONNECT has no body before its tunnel. */
static bool can_upgrade(struct mk_request *req)
{
    uint64_t bytes;
    return mk_request_major(req) == 1 ? mk_request_minor(req) > 0 : mk_request_body_length(req, &bytes) && bytes == 0;
}

int upgrade_init(struct upgrade *u, struct mk_request *req, const struct mk_conf_list *allowed)
{
    struct mk_str offered = mk_request_header(req, MK_HEADER_UPGRADE);
    *u = (struct upgrade){0};
    u->is_extended_connect = offered.p && mk_request_major(req) > 1; /* HTTP/2 has no such header */
    if (can_upgrade(req) && mk_str_list_has(mk_request_header(req, MK_HEADER_CONNECTION), MK_STR("upgrade")))
        u->token = upgrade_choose(allowed, offered);
    if (u->is_extended_connect && !u->token.len)
        return 501;
    if (u->is_extended_connect && mk_str_ieq(u->token, MK_STR("websocket")) && make_key(u) < 0)
        return 503;
    return 0;
}

struct mk_str upgrade_choose(const struct mk_conf_list *allowed, struct mk_str offered)
{
    struct mk_str token;
    while (mk_str_next(&offered, &token))
        for (uint32_t i = 0; i < allowed->n; i++)
            if (mk_str_ieq(allowed->items[i], token))
                return allowed->items[i];
    return MK_STR_NONE;
}

bool upgrade_replaces(const struct upgrade *u, struct mk_str name)
{
    return u->key[0] && mk_str_ieq(name, MK_STR("Sec-WebSocket-Key"));
}

void upgrade_write(const struct upgrade *u, struct mk_buf *out)
{
    mk_buf_addf(out, "Connection: Upgrade\r\nUpgrade: %.*s\r\n", MK_STR_ARG(u->token));
    if (u->key[0])
        mk_buf_addf(out, "Sec-WebSocket-Key: %s\r\n", u->key);
}

bool upgrade_is_agreed(const struct upgrade *u, struct mk_str token, struct mk_str accept)
{
    char wanted[MK_WS_ACCEPT_BYTES + 1];
    if (!u->token.len || !mk_str_ieq(token, u->token))
        return false;
    if (!u->key[0])
        return true; /* the client checks the rest */
    mk_ws_accept_key(wanted, mk_str_c(u->key));
    return mk_str_eq(accept, mk_str_c(wanted));
}
