// SPDX-License-Identifier: Apache-2.0
/*
 * Commands as bytes (format.h).
 */
#include "format.h"

#include "printf.h"

#include <assert.h>
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
    assert(redis_format_measure(args, n) && redis_format_measure(args, n) <= REDIS_COMMAND_BYTES_MAX);
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
    {MK_STR_INIT("asking"), CHANGES},
    {MK_STR_INIT("auth"), "the password belongs to redis->open()"},
    {MK_STR_INIT("blmove"), BLOCKS},
    {MK_STR_INIT("blmpop"), BLOCKS},
    {MK_STR_INIT("blpop"), BLOCKS},
    {MK_STR_INIT("brpop"), BLOCKS},
    {MK_STR_INIT("brpoplpush"), BLOCKS},
    {MK_STR_INIT("bzmpop"), BLOCKS},
    {MK_STR_INIT("bzpopmax"), BLOCKS},
    {MK_STR_INIT("bzpopmin"), BLOCKS},
    {MK_STR_INIT("discard"), "transactions belong to redis->ask_all()"},
    {MK_STR_INIT("exec"), "transactions belong to redis->ask_all()"},
    {MK_STR_INIT("hello"), CHANGES},
    {MK_STR_INIT("monitor"), CHANGES},
    {MK_STR_INIT("multi"), "transactions belong to redis->ask_all()"},
    {MK_STR_INIT("psubscribe"), "subscriptions belong to redis->subscribe()"},
    {MK_STR_INIT("psync"), CHANGES},
    {MK_STR_INIT("punsubscribe"), "subscriptions belong to redis->subscribe()"},
    {MK_STR_INIT("quit"), CHANGES},
    {MK_STR_INIT("readonly"), CHANGES},
    {MK_STR_INIT("readwrite"), CHANGES},
    {MK_STR_INIT("reset"), CHANGES},
    {MK_STR_INIT("select"), "the database belongs to redis->open()"},
    {MK_STR_INIT("ssubscribe"), "subscriptions belong to redis->subscribe()"},
    {MK_STR_INIT("subscribe"), "subscriptions belong to redis->subscribe()"},
    {MK_STR_INIT("sunsubscribe"), "subscriptions belong to redis->subscribe()"},
    {MK_STR_INIT("sync"), CHANGES},
    {MK_STR_INIT("unsubscribe"), "subscriptions belong to redis->subscribe()"},
    {MK_STR_INIT("unwatch"), CHANGES},
    {MK_STR_INIT("wait"), BLOCKS},
    {MK_STR_INIT("waitaof"), BLOCKS},
    {MK_STR_INIT("watch"), "it concerns all requests of the worker: use a script (EVAL) instead"},
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
