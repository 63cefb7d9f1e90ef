// SPDX-License-Identifier: Apache-2.0
/*
 * Commands as bytes (format.h).
 */
#include "format.h"

#include "printf.h"

#include <errno.h>
#include <stdio.h>

enum { HEAD_BYTES = 24 }; /* of "*N\r\n" and "$N\r\n" at most */

/* ── arguments ── */

static struct mk_str get_text(const struct duda_redis_arg *arg)
{
    return arg->len < 0 ? mk_str_c(arg->data) : mk_str(arg->data, (size_t)arg->len);
}

static size_t count_digits(size_t n)
{
    size_t digits = 1;
    for (; n >= 10; n /= 10)
        digits++;
    return digits;
}

size_t redis_format_measure(const struct duda_redis_arg *args, unsigned n)
{
    if (!args || !n || n > REDIS_ARGS_MAX)
        return 0;
    size_t size = 3 + count_digits(n);
    for (unsigned i = 0; i < n; i++) {
        if (args[i].len < -1 || (!args[i].data && args[i].len))
            return 0;
        size_t len = get_text(&args[i]).len;
        if (len > REDIS_COMMAND_BYTES_MAX)
            return REDIS_COMMAND_BYTES_MAX + 1;
        size += 5 + count_digits(len) + len;
    }
    return size;
}

/* Writes "*12\r\n". */
static char *write_head(char *to, char kind, size_t n)
{
    size_t digits = count_digits(n);
    *to = kind;
    for (size_t i = digits; i > 0; i--, n /= 10)
        to[i] = (char)('0' + n % 10);
    to += 1 + digits;
    memcpy(to, "\r\n", 2);
    return to + 2;
}

char *redis_format_write(char *to, const struct duda_redis_arg *args, unsigned n)
{
    to = write_head(to, '*', n);
    for (unsigned i = 0; i < n; i++) {
        struct mk_str text = get_text(&args[i]);
        to = write_head(to, '$', text.len);
        if (text.len)
            memcpy(to, text.p, text.len);
        to += text.len;
        memcpy(to, "\r\n", 2);
        to += 2;
    }
    return to;
}

/* ── formats ── */

struct mk_str redis_format_text(const char *format, va_list args, int *ret_err)
{
    struct mk_str text = redis_printf(format, args, ret_err), rest = text, word;
    if (!text.p)
        return text;
    if (text.len > REDIS_COMMAND_BYTES_MAX)
        *ret_err = -EMSGSIZE;
    else if (!redis_format_next(&rest, &word))
        *ret_err = -EINVAL; /* no word */
    if (*ret_err == 0)
        return text;
    redis_format_free(text);
    return MK_STR_NONE;
}

void redis_format_free(struct mk_str command)
{
    redis_printf_free(command);
}

/* ── looking into commands ── */

/* Cuts "$12\r\n" off. */
static bool split_head(struct mk_str *rest, char kind, size_t *ret)
{
    const char *end = rest->len && *rest->p == kind ? memchr(rest->p, '\r', rest->len) : NULL;
    if (!end)
        return false;
    *ret = 0;
    for (const char *p = rest->p + 1; p < end; p++)
        *ret = *ret * 10 + (size_t)(*p - '0');
    size_t n = (size_t)(end - rest->p) + 2;
    *rest = mk_str_after(*rest, n);
    return true;
}

bool redis_format_next(struct mk_str *rest, struct mk_str *ret_word)
{
    size_t n;
    split_head(rest, '*', &n);
    if (!split_head(rest, '$', &n))
        return false;
    *ret_word = mk_str(rest->p, n);
    *rest = mk_str(rest->p + n + 2, rest->len - n - 2);
    return true;
}

#define CHANGES "it changes the connection, which all requests of the worker share"
#define BLOCKS "it blocks the connection, which all requests of the worker share"

static const struct refused {
    struct mk_str name;
    const char *reason;
} refused[] = {
    {{"asking", sizeof("asking") - 1}, CHANGES},
    {{"auth", sizeof("auth") - 1}, "the password belongs to redis->open()"},
    {{"blmove", sizeof("blmove") - 1}, BLOCKS},
    {{"blmpop", sizeof("blmpop") - 1}, BLOCKS},
    {{"blpop", sizeof("blpop") - 1}, BLOCKS},
    {{"brpop", sizeof("brpop") - 1}, BLOCKS},
    {{"brpoplpush", sizeof("brpoplpush") - 1}, BLOCKS},
    {{"bzmpop", sizeof("bzmpop") - 1}, BLOCKS},
    {{"bzpopmax", sizeof("bzpopmax") - 1}, BLOCKS},
    {{"bzpopmin", sizeof("bzpopmin") - 1}, BLOCKS},
    {{"discard", sizeof("discard") - 1}, "transactions belong to redis->ask_all()"},
    {{"exec", sizeof("exec") - 1}, "transactions belong to redis->ask_all()"},
    {{"hello", sizeof("hello") - 1}, CHANGES},
    {{"monitor", sizeof("monitor") - 1}, CHANGES},
    {{"multi", sizeof("multi") - 1}, "transactions belong to redis->ask_all()"},
    {{"psubscribe", sizeof("psubscribe") - 1}, "subscriptions belong to redis->subscribe()"},
    {{"psync", sizeof("psync") - 1}, CHANGES},
    {{"punsubscribe", sizeof("punsubscribe") - 1}, "subscriptions belong to redis->subscribe()"},
    {{"quit", sizeof("quit") - 1}, CHANGES},
    {{"readonly", sizeof("readonly") - 1}, CHANGES},
    {{"readwrite", sizeof("readwrite") - 1}, CHANGES},
    {{"reset", sizeof("reset") - 1}, CHANGES},
    {{"select", sizeof("select") - 1}, "the database belongs to redis->open()"},
    {{"ssubscribe", sizeof("ssubscribe") - 1}, "subscriptions belong to redis->subscribe()"},
    {{"subscribe", sizeof("subscribe") - 1}, "subscriptions belong to redis->subscribe()"},
    {{"sunsubscribe", sizeof("sunsubscribe") - 1}, "subscriptions belong to redis->subscribe()"},
    {{"sync", sizeof("sync") - 1}, CHANGES},
    {{"unsubscribe", sizeof("unsubscribe") - 1}, "subscriptions belong to redis->subscribe()"},
    {{"unwatch", sizeof("unwatch") - 1}, CHANGES},
    {{"wait", sizeof("wait") - 1}, BLOCKS},
    {{"waitaof", sizeof("waitaof") - 1}, BLOCKS},
    {{"watch", sizeof("watch") - 1}, "it concerns all requests of the worker: use a script (EVAL) instead"},
};

static bool has_word(struct mk_str rest, struct mk_str wanted)
{
    struct mk_str word;
    while (redis_format_next(&rest, &word))
        if (mk_str_ieq(word, wanted))
            return true;
    return false;
}

const char *redis_format_refuse(struct mk_str command)
{
    struct mk_str name;
    if (!redis_format_next(&command, &name))
        return "it has no word";
    for (size_t i = 0; i < MK_COUNT_OF(refused); i++)
        if (mk_str_ieq(name, refused[i].name))
            return refused[i].reason;
    bool may_block = mk_str_ieq(name, MK_STR("xread")) || mk_str_ieq(name, MK_STR("xreadgroup"));
    if (may_block && has_word(command, MK_STR("block")))
        return BLOCKS;
    if (mk_str_ieq(name, MK_STR("client")) && has_word(command, MK_STR("reply")))
        return CHANGES;
    return NULL;
}
