// SPDX-License-Identifier: Apache-2.0
/*
 * The client's side of the handshake (client_head.h).
 */
#include "client_head.h"

#include "handshake.h"
#include "ws.h"

#include <errno.h>
#include <strings.h>

/* ── the URL ── */

static bool is_visible(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || s.p[i] == '#')
            return false;
    return true;
}

int mk__ws_url_parse(struct mk_str url, struct mk__ws_url *ret, const char **ret_error)
{
    static const char scheme[] = "ws://";
    *ret_error = "the URL does not begin with ws://";
    if (url.len >= 6 && strncasecmp(url.p, "wss://", 6) == 0)
        *ret_error = "wss:// is not supported";
    if (url.len < sizeof(scheme) - 1 || strncasecmp(url.p, scheme, sizeof(scheme) - 1) != 0)
        return -EINVAL;
    struct mk_str rest = mk_str(url.p + sizeof(scheme) - 1, url.len - (sizeof(scheme) - 1));
    size_t n = 0;
    while (n < rest.len && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    *ret = (struct mk__ws_url){mk_str(rest.p, n), mk_str(rest.p + n, rest.len - n)};
    *ret_error = "the URL has characters that must be percent-encoded";
    if (!is_visible(rest))
        return -EINVAL;
    *ret_error = "the URL has no host";
    return n ? 0 : -EINVAL;
}

/* ── the request ── */

static void make_key(char key[MK__WS_KEY_BYTES + 1])
{
    uint8_t nonce[MK__WS_NONCE_BYTES] = {0};
    mk__ws_fill_random(nonce, sizeof(nonce));
    mk__ws_key_make(key, nonce);
}

int mk__ws_client_request(struct mk_arena *arena, const struct mk__ws_url *url, const struct mk_ws_settings *settings,
                          char key[MK__WS_KEY_BYTES + 1], struct mk_str *ret_request)
{
    const struct mk__ws_deflate_params wishes = mk__ws_deflate_wishes(settings);
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
    if (wishes.on) {
        mk_buf_addf(&out, "Sec-WebSocket-Extensions: ");
        mk__ws_deflate_write_offer(&out, &wishes);
        mk_buf_addf(&out, "\r\n");
    }
    mk_buf_addf(&out, "\r\n");
    assert(!out.err); /* `size` is enough */
    *ret_request = mk_buf_str(&out);
    return 0;
}

/* ── the response ── */

size_t mk__ws_client_find_end(struct mk_str in)
{
    const char *end = in.len ? memmem(in.p, in.len, "\r\n\r\n", 4) : NULL;
    return end ? (size_t)(end - in.p) + 4 : 0;
}

/* What a response says. */
struct answer {
    struct mk_str upgrade, connection, accept, protocol;
    struct mk__ws_deflate_params deflate;
};

struct field {
    struct mk_str name, value;
};

/* Cuts the next line, without its end. Returns false at the empty line. */
static bool cut_line(struct mk_str *head, struct mk_str *ret)
{
    const char *end = memmem(head->p, head->len, "\r\n", 2);
    *ret = mk_str(head->p, end ? (size_t)(end - head->p) : head->len);
    size_t taken = ret->len + (end ? 2 : 0);
    *head = mk_str(head->p + taken, head->len - taken);
    return ret->len != 0;
}

static bool split_field(struct mk_str line, struct field *ret)
{
    const char *colon = memchr(line.p, ':', line.len);
    if (!colon || colon == line.p)
        return false;
    ret->name = mk_str(line.p, (size_t)(colon - line.p));
    ret->value = mk_str_trim(mk_str(colon + 1, line.len - ret->name.len - 1));
    return true;
}

static int take_field(struct answer *a, const struct field *f, const struct mk__ws_deflate_params *wishes,
                      const char **ret_reason)
{
    if (mk_str_ieq(f->name, MK_STR("Sec-WebSocket-Extensions")))
        return mk__ws_deflate_check(f->value, wishes, &a->deflate, ret_reason) < 0 ? -EPROTO : 0;
    struct {
        const char *name;
        struct mk_str *value;
    } rows[] = {{"Upgrade", &a->upgrade},
                {"Connection", &a->connection},
                {"Sec-WebSocket-Accept", &a->accept},
                {"Sec-WebSocket-Protocol", &a->protocol}};
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        if (!mk_str_ieq(f->name, mk_str_c(rows[i].name)))
            continue;
        *ret_reason = "the server's response has a field twice";
        if (rows[i].value->p)
            return -EPROTO;
        *rows[i].value = f->value;
    }
    return 0;
}

static int read_fields(struct mk_str head, struct answer *ret, const struct mk__ws_deflate_params *wishes,
                       const char **ret_reason)
{
    struct mk_str line;
    struct field field;
    while (cut_line(&head, &line)) {
        *ret_reason = "the server's response is malformed";
        if (!split_field(line, &field))
            return -EPROTO;
        int err = take_field(ret, &field, wishes, ret_reason);
        if (err < 0)
            return err;
    }
    return 0;
}

/* Checks the fields of RFC 6455 section 4.1. Returns NULL, or what is wrong. */
static const char *check_answer(const struct answer *a, const char *key, struct mk_str offered,
                                struct mk_str *ret_protocol)
{
    char accept[MK__WS_ACCEPT_BYTES + 1];
    mk__ws_accept_key(accept, mk_str_c(key));
    if (!mk_str_list_has(a->upgrade, MK_STR("websocket")) || !mk_str_list_has(a->connection, MK_STR("upgrade")))
        return "the server does not speak WebSocket";
    if (!mk_str_eq(a->accept, mk_str_c(accept)))
        return "the server's Sec-WebSocket-Accept is wrong";
    *ret_protocol = mk__ws_find_protocol(offered, a->protocol);
    if (a->protocol.p && !ret_protocol->len)
        return "the server has chosen a subprotocol that was not offered";
    return NULL;
}

int mk__ws_client_check(struct mk_str head, const char *key, const struct mk_ws_settings *settings,
                        struct mk_ws_agreement *ret, const char **ret_reason)
{
    const struct mk__ws_deflate_params wishes = mk__ws_deflate_wishes(settings);
    struct mk_str offered = settings->protocols ? mk_str_c(settings->protocols) : MK_STR_NONE;
    struct answer answer = {0};
    struct mk_str line;
    cut_line(&head, &line);
    *ret_reason = "the server does not accept the WebSocket";
    if (!mk_str_starts(line, MK_STR("HTTP/1.1 101")) || (line.len > 12 && line.p[12] != ' '))
        return -EPROTO;
    if (read_fields(head, &answer, &wishes, ret_reason) < 0)
        return -EPROTO;
    *ret = (struct mk_ws_agreement){.is_client = true};
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
