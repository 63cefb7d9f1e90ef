// SPDX-License-Identifier: Apache-2.0
/*
 * The client's side of the handshake (client_head.h).
 */
#include "client_head.h"

#include "handshake.h"
#include "ws.h"

#include <monkey/base/response_parser.h>

#include <errno.h>
#include <strings.h>

/* ── the URL ── */

int mk__ws_url_parse(struct mk_str url, struct mk__ws_url *ret, const char **ret_error)
{
    static const char scheme[] = "ws://";
    *ret_error = "the URL does not begin with ws://";
    if (url.len >= 6 && strncasecmp(url.p, "wss://", 6) == 0)
        *ret_error = "wss:// is not supported";
    if (url.len < sizeof(scheme) - 1 || strncasecmp(url.p, scheme, sizeof(scheme) - 1) != 0)
        return -EINVAL;
    struct mk_str rest = mk_str(url.p + sizeof(scheme) - 1, url.len - (sizeof(scheme) - 1));
    struct mk_str authority = mk_str_until(rest, "/?");
    *ret = (struct mk__ws_url){authority, mk_str_after(rest, authority.len)};
    *ret_error = "the URL has characters that must be percent-encoded";
    if (!mk_str_is_visible(rest, "#"))
        return -EINVAL;
    *ret_error = "the URL has no host";
    return authority.len ? 0 : -EINVAL;
}

/* ── the request ── */

static void make_key(char key[MK_WS_KEY_BYTES + 1])
{
    uint8_t nonce[MK_WS_NONCE_BYTES] = {0};
    mk__ws_fill_random(nonce, sizeof(nonce));
    mk_ws_key_make(key, nonce);
}

int mk__ws_client_request(struct mk_arena *arena, const struct mk__ws_url *url, const struct mk_ws_settings *settings,
                          char key[MK_WS_KEY_BYTES + 1], struct mk_str *ret_request)
{
    const struct mk__ws_deflate_params ours = mk__ws_deflate_params_of(settings);
    const char *protocols = settings->protocols ? settings->protocols : "";
    size_t size = 512 + url->target.len + url->authority.len + strlen(protocols);
    char *storage = mk_arena_alloc(arena, size);
    struct mk_buf out;
    if (!storage)
        return -ENOMEM;
    make_key(key);
    mk_buf_init_fixed(&out, storage, size);
    mk_buf_addf(&out, "GET %s%.*s HTTP/1.1\r\nHost: %.*s\r\n", url->target.len && url->target.p[0] == '/' ? "" : "/",
                MK_STR_ARG(url->target), MK_STR_ARG(url->authority));
    mk_buf_addf(&out, "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
    mk_buf_addf(&out, "Sec-WebSocket-Key: %s\r\n", key);
    if (*protocols)
        mk_buf_addf(&out, "Sec-WebSocket-Protocol: %s\r\n", protocols);
    if (ours.on) {
        mk_buf_addf(&out, "Sec-WebSocket-Extensions: ");
        mk__ws_deflate_write_offer(&out, &ours);
        mk_buf_addf(&out, "\r\n");
    }
    mk_buf_addf(&out, "\r\n");
    assert(!out.err); /* `size` is enough */
    *ret_request = mk_buf_str(&out);
    return 0;
}

/* ── the response ── */

enum { FIELDS_MAX = 64 };

static const struct mk_response_limits limits = {.head_bytes_max = MK__WS_CLIENT_HEAD_MAX, .fields_max = FIELDS_MAX};

/* What a response says. */
struct answer {
    struct mk_str upgrade, connection, accept, protocol;
    struct mk__ws_deflate_params deflate;
};

static int take_field(struct answer *a, struct mk_str name, struct mk_str value,
                      const struct mk__ws_deflate_params *ours, const char **ret_reason)
{
    if (mk_str_ieq(name, MK_STR("Sec-WebSocket-Extensions")))
        return mk__ws_deflate_check(value, ours, &a->deflate, ret_reason) < 0 ? -EPROTO : 0;
    struct {
        const char *name;
        struct mk_str *value;
    } rows[] = {{"Upgrade", &a->upgrade},
                {"Connection", &a->connection},
                {"Sec-WebSocket-Accept", &a->accept},
                {"Sec-WebSocket-Protocol", &a->protocol}};
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        if (!mk_str_ieq(name, mk_str_c(rows[i].name)))
            continue;
        *ret_reason = "the server's response has a field twice";
        if (rows[i].value->p)
            return -EPROTO;
        *rows[i].value = value;
    }
    return 0;
}

/* Parses the head. Returns 0, MK_AGAIN or -EPROTO. */
static int read_head(struct mk_str in, struct answer *ret, const struct mk__ws_deflate_params *ours, size_t *ret_size,
                     const char **ret_reason)
{
    struct mk_response_parser p;
    struct mk_field fields[FIELDS_MAX];
    mk_response_parser_init(&p, &limits, MK_RESPONSE_TO_OTHER);
    int r = mk_response_parser_head(&p, fields, in);
    if (r != 0) {
        *ret_reason = r == -EMSGSIZE ? "the server's response head is too long" : "the server's response is malformed";
        return r < 0 ? -EPROTO : r;
    }
    *ret_reason = "the server does not accept the WebSocket";
    if (p.status != 101 || p.minor == 0)
        return -EPROTO;
    for (unsigned i = 0; i < p.n_fields && r == 0; i++)
        r = take_field(ret, mk_span_str(in.p, fields[i].name), mk_span_str(in.p, fields[i].value), ours, ret_reason);
    *ret_size = p.head_bytes;
    return r;
}

/* Checks the fields of RFC 6455 section 4.1. Returns NULL, or what is wrong. */
static const char *check_answer(const struct answer *a, const char *key, struct mk_str offered,
                                struct mk_str *ret_protocol)
{
    char accept[MK_WS_ACCEPT_BYTES + 1];
    mk_ws_accept_key(accept, mk_str_c(key));
    if (!mk_str_list_has(a->upgrade, MK_STR("websocket")) || !mk_str_list_has(a->connection, MK_STR("upgrade")))
        return "the server does not speak WebSocket";
    if (!mk_str_eq(a->accept, mk_str_c(accept)))
        return "the server's Sec-WebSocket-Accept is wrong";
    *ret_protocol = mk__ws_find_protocol(offered, a->protocol);
    if (a->protocol.p && !ret_protocol->len)
        return "the server has chosen a subprotocol that was not offered";
    return NULL;
}

int mk__ws_client_check(struct mk_str in, const char *key, const struct mk_ws_settings *settings,
                        struct mk_ws_negotiated *ret, size_t *ret_size, const char **ret_reason)
{
    const struct mk__ws_deflate_params ours = mk__ws_deflate_params_of(settings);
    struct mk_str offered = settings->protocols ? mk_str_c(settings->protocols) : MK_STR_NONE;
    struct answer answer = {0};
    int r = read_head(in, &answer, &ours, ret_size, ret_reason);
    if (r != 0)
        return r;
    *ret = (struct mk_ws_negotiated){.is_client = true};
    const char *wrong = check_answer(&answer, key, offered, &ret->protocol);
    if (wrong) {
        *ret_reason = wrong;
        return -EPROTO;
    }
    ret->deflate = answer.deflate.on;
    ret->send_context = !answer.deflate.client_no_context;
    ret->receive_context = !answer.deflate.server_no_context;
    ret->send_bits = answer.deflate.client_bits;
    ret->receive_bits = answer.deflate.server_bits;
    return 0;
}
