// SPDX-License-Identifier: Apache-2.0
/*
 * Parses Sec-WebSocket-Extensions, and negotiates permessage-deflate.
 *
 *     extension *( "," extension ),  extension = token *( ";" token [ "=" ( token / quoted-string ) ] )
 */
#include "ws.h"

#include <errno.h>

static const struct mk_str deflate_name = MK_STR_INIT("permessage-deflate");

/* ── the syntax ── */

struct param {
    struct mk_str name;
    char value[3]; /* as much as is stored: valid ones have two digits at most */
    uint8_t value_len;
    bool has_value;
};

/* Skips one byte, with the spaces around it. Returns false, and skips spaces only, if it is another one. */
static bool skip_byte(struct mk_str *rest, char c)
{
    mk_str_skip_blanks(rest);
    if (!rest->len || *rest->p != c)
        return false;
    rest->p++;
    rest->len--;
    mk_str_skip_blanks(rest);
    return true;
}

/* Cuts a token off, which may be empty: that is malformed everywhere. */
static struct mk_str read_token(struct mk_str *rest)
{
    size_t n = mk_str_token_len(*rest);
    struct mk_str token = mk_str(rest->p, n);
    rest->p += n;
    rest->len -= n;
    return token;
}

static void add_to_value(struct param *p, char c)
{
    if (p->value_len < sizeof(p->value))
        p->value[p->value_len++] = c;
}

/* Reads a quoted string after its first quote; unescaped it must be a token. Returns false if it is malformed. */
static bool read_quoted(struct mk_str *rest, struct param *p)
{
    for (; rest->len; rest->p++, rest->len--) {
        if (*rest->p == '"') {
            rest->p++;
            rest->len--;
            return p->value_len > 0;
        }
        if (*rest->p == '\\' && rest->len > 1) {
            rest->p++;
            rest->len--;
        }
        if (!mk_is_token_byte(*rest->p))
            return false;
        add_to_value(p, *rest->p);
    }
    return false;
}

static bool read_value(struct mk_str *rest, struct param *p)
{
    p->has_value = true;
    if (rest->len && *rest->p == '"') {
        rest->p++;
        rest->len--;
        return read_quoted(rest, p);
    }
    struct mk_str token = read_token(rest);
    for (size_t i = 0; i < token.len; i++)
        add_to_value(p, token.p[i]);
    return token.len > 0;
}

/* Reads the next parameter of an extension. Returns 1, 0 (there is none any more) or -EINVAL. */
static int read_param(struct mk_str *rest, struct param *p)
{
    *p = (struct param){};
    if (!skip_byte(rest, ';'))
        return !rest->len || *rest->p == ',' ? 0 : -EINVAL;
    p->name = read_token(rest);
    if (!p->name.len || (skip_byte(rest, '=') && !read_value(rest, p)))
        return -EINVAL;
    return 1;
}

/* Reads the name of the next extension. Returns 1, 0 (there is none any more) or -EINVAL. */
static int read_name(struct mk_str *rest, struct mk_str *ret_name)
{
    while (skip_byte(rest, ','))
        ;
    if (!rest->len)
        return 0;
    *ret_name = read_token(rest);
    return ret_name->len ? 1 : -EINVAL;
}

/* ── the parameters of permessage-deflate ── */

enum { SERVER_NO_CONTEXT = 1, CLIENT_NO_CONTEXT = 2, SERVER_BITS = 4, CLIENT_BITS = 8, CLIENT_BITS_VALUE = 16 };

/* What one extension in the list says. */
struct offer {
    const char *wrong;                /* why it cannot be accepted; NULL if it can */
    unsigned has;                     /* the bits above */
    uint8_t server_bits, client_bits; /* 15 without a value */
};

static const struct rule {
    struct mk_str name;
    unsigned bit;
    bool may_have_value, needs_value;
} rules[] = {
    {MK_STR_INIT("server_no_context_takeover"), SERVER_NO_CONTEXT, false, false},
    {MK_STR_INIT("client_no_context_takeover"), CLIENT_NO_CONTEXT, false, false},
    {MK_STR_INIT("server_max_window_bits"), SERVER_BITS, true, true},
    {MK_STR_INIT("client_max_window_bits"), CLIENT_BITS, true, false},
};

static const struct rule *find_rule(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(rules); i++)
        if (mk_str_ieq(rules[i].name, name))
            return &rules[i];
    return NULL;
}

/* Returns 8 to 15, or 0: a number has no leading zero (RFC 7692 section 7.1.2). */
static uint8_t read_bits(const struct param *p)
{
    uint64_t bits = 0;
    if (p->value[0] == '0' || !mk_str_u64(mk_str(p->value, p->value_len), 15, &bits))
        return 0;
    return bits >= 8 ? (uint8_t)bits : 0;
}

/* Adds a parameter to the offer. Returns what is wrong with it, or NULL. */
static const char *add_param(struct offer *t, const struct param *p)
{
    const struct rule *rule = find_rule(p->name);
    uint8_t bits = p->has_value ? read_bits(p) : MK__WS_BITS_MAX;
    if (!rule)
        return "permessage-deflate has an unknown parameter";
    if (t->has & rule->bit)
        return "permessage-deflate has a parameter twice";
    if (p->has_value ? !rule->may_have_value || !bits : rule->needs_value)
        return "a parameter of permessage-deflate has an invalid value";
    t->has |= rule->bit;
    if (rule->bit == SERVER_BITS)
        t->server_bits = bits;
    if (rule->bit == CLIENT_BITS)
        t->client_bits = bits;
    if (rule->bit == CLIENT_BITS && p->has_value)
        t->has |= CLIENT_BITS_VALUE;
    return NULL;
}

/* Reads the parameters of an extension of any name to their end. Returns 0 or -EINVAL (malformed). */
static int parse_offer(struct mk_str *rest, struct offer *t)
{
    struct param p;
    int result;
    *t = (struct offer){.server_bits = MK__WS_BITS_MAX, .client_bits = MK__WS_BITS_MAX};
    while ((result = read_param(rest, &p)) > 0)
        if (!t->wrong)
            t->wrong = add_param(t, &p);
    return result;
}

static uint8_t get_smaller(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* ── the server ── */

static bool accept_offer(const struct offer *t, const struct mk__ws_deflate_params *ours,
                         struct mk__ws_deflate_params *params)
{
    if (t->wrong || t->server_bits < MK__WS_BITS_MIN)
        return false;
    if (ours->client_bits < MK__WS_BITS_MAX && !(t->has & CLIENT_BITS))
        return false; /* the response must not have client_max_window_bits */
    *params = (struct mk__ws_deflate_params){
        .on = true,
        .server_no_context = ours->server_no_context || (t->has & SERVER_NO_CONTEXT),
        .client_no_context = ours->client_no_context || (t->has & CLIENT_NO_CONTEXT),
        .server_bits = get_smaller(ours->server_bits, t->server_bits),
        .client_bits = get_smaller(ours->client_bits, t->client_bits),
        .write_server_bits = t->has & SERVER_BITS,
    };
    return true;
}

int mk__ws_deflate_choose(struct mk_str line, const struct mk__ws_deflate_params *ours,
                          struct mk__ws_deflate_params *params)
{
    for (unsigned offers = 0; offers < MK__WS_OFFERS_MAX; offers++) {
        struct mk_str name;
        struct offer t;
        int result = read_name(&line, &name);
        if (result <= 0)
            return result;
        if (parse_offer(&line, &t) < 0)
            return -EINVAL;
        if (ours->on && !params->on && mk_str_ieq(name, deflate_name))
            accept_offer(&t, ours, params);
    }
    return 0;
}

static void write_params(struct mk_buf *out, const struct mk__ws_deflate_params *p, bool server_bits)
{
    mk_buf_adds(out, deflate_name);
    if (p->server_no_context)
        mk_buf_adds(out, MK_STR("; server_no_context_takeover"));
    if (p->client_no_context)
        mk_buf_adds(out, MK_STR("; client_no_context_takeover"));
    if (server_bits || p->server_bits < MK__WS_BITS_MAX)
        mk_buf_addf(out, "; server_max_window_bits=%u", p->server_bits);
}

void mk__ws_deflate_write_response(struct mk_buf *out, const struct mk__ws_deflate_params *params)
{
    write_params(out, params, params->write_server_bits);
    if (params->client_bits < MK__WS_BITS_MAX)
        mk_buf_addf(out, "; client_max_window_bits=%u", params->client_bits);
}

/* ── the client ── */

void mk__ws_deflate_write_offer(struct mk_buf *out, const struct mk__ws_deflate_params *ours)
{
    write_params(out, ours, false);
    mk_buf_adds(out, MK_STR("; client_max_window_bits"));
    if (ours->client_bits < MK__WS_BITS_MAX)
        mk_buf_addf(out, "=%u", ours->client_bits);
}

/* Returns what is wrong with the offer of the server, or NULL. */
static const char *check_answer(const struct offer *t, const struct mk__ws_deflate_params *ours)
{
    if (t->wrong)
        return t->wrong;
    if (ours->server_no_context && !(t->has & SERVER_NO_CONTEXT))
        return "the server accepts permessage-deflate without the server_no_context_takeover that was asked for";
    if (t->server_bits > ours->server_bits)
        return "the server accepts permessage-deflate with a larger window than was asked for";
    if ((t->has & CLIENT_BITS) && !(t->has & CLIENT_BITS_VALUE))
        return "client_max_window_bits of the server has no value";
    if (t->client_bits < MK__WS_BITS_MIN)
        return "the server demands a window of 8 bits, with which zlib cannot compress";
    return NULL;
}

static int fail_parse(const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return -EINVAL;
}

int mk__ws_deflate_check(struct mk_str line, const struct mk__ws_deflate_params *ours,
                         struct mk__ws_deflate_params *params, const char **ret_reason)
{
    static const char malformed[] = "Sec-WebSocket-Extensions of the server is malformed";
    struct mk_str name;
    int result;
    while ((result = read_name(&line, &name)) > 0) {
        struct offer t;
        if (parse_offer(&line, &t) < 0)
            return fail_parse(malformed, ret_reason);
        if (!ours->on || !mk_str_ieq(name, deflate_name))
            return fail_parse("the server uses an extension that was not offered", ret_reason);
        if (params->on)
            return fail_parse("the server accepts permessage-deflate twice", ret_reason);
        const char *wrong = check_answer(&t, ours);
        if (wrong)
            return fail_parse(wrong, ret_reason);
        *params = (struct mk__ws_deflate_params){
            .on = true,
            .server_no_context = t.has & SERVER_NO_CONTEXT,
            .client_no_context = ours->client_no_context || (t.has & CLIENT_NO_CONTEXT),
            .server_bits = t.server_bits,
            .client_bits = get_smaller(ours->client_bits, t.client_bits),
        };
    }
    return result < 0 ? fail_parse(malformed, ret_reason) : 0;
}
