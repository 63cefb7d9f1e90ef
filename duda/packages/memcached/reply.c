// SPDX-License-Identifier: Apache-2.0
/*
 * Reads lines of replies of the meta protocol (reply.h).
 */
#include "reply.h"

#include <errno.h>

static const struct {
    struct mk_str name;
    enum mc_code code;
    bool has_text; /* what follows the code is text for people, not flags */
} codes[] = {
    {MK_STR("HD"), MC_HD, false},
    {MK_STR("VA"), MC_VA, false},
    {MK_STR("EN"), MC_EN, false},
    {MK_STR("NF"), MC_NF, false},
    {MK_STR("NS"), MC_NS, false},
    {MK_STR("EX"), MC_EX, false},
    {MK_STR("MN"), MC_MN, false},
    {MK_STR("ME"), MC_ME, true},
    {MK_STR("ERROR"), MC_ERROR, true},
    {MK_STR("CLIENT_ERROR"), MC_CLIENT_ERROR, true},
    {MK_STR("SERVER_ERROR"), MC_SERVER_ERROR, true},
};

static int fail_parse(const char **ret_error, const char *error)
{
    *ret_error = error;
    return -EPROTO;
}

/* Cuts the next word off `rest`; it is empty at the end. */
static struct mk_str take_word(struct mk_str *rest)
{
    while (rest->len && *rest->p == ' ') {
        rest->p++;
        rest->len--;
    }
    struct mk_str word = *rest;
    const char *space = rest->len ? memchr(rest->p, ' ', rest->len) : NULL;
    if (space)
        word.len = (size_t)(space - rest->p);
    rest->p = word.len ? rest->p + word.len : rest->p;
    rest->len -= word.len;
    return word;
}

/* Reads a number of seconds, or -1. */
static bool read_ttl(struct mk_str token, int64_t *ret)
{
    uint64_t value;
    if (mk_str_eq(token, MK_STR("-1"))) {
        *ret = -1;
        return true;
    }
    if (!mk_str_u64(token, INT64_MAX, &value))
        return false;
    *ret = (int64_t)value;
    return true;
}

static bool read_flag(char flag, struct mk_str token, struct mc_reply *ret)
{
    uint64_t value;
    switch (flag) {
    case 'O':
        ret->has_opaque = true;
        return mk_str_u64(token, UINT64_MAX, &ret->opaque);
    case 'c':
        return mk_str_u64(token, UINT64_MAX, &ret->cas);
    case 'f':
        if (!mk_str_u64(token, UINT32_MAX, &value))
            return false;
        ret->flags = (uint32_t)value;
        return true;
    case 't':
        return read_ttl(token, &ret->ttl_s);
    case 'W':
        ret->won = true;
        return true;
    case 'X':
        ret->stale = true;
        return true;
    case 'Z':
        ret->busy = true;
        return true;
    default:
        return true; /* one that was not asked for, of a newer server */
    }
}

static bool read_flags(struct mk_str rest, struct mc_reply *ret)
{
    for (struct mk_str word = take_word(&rest); word.len; word = take_word(&rest))
        if (!read_flag(word.p[0], mk_str_after(word, 1), ret))
            return false;
    return true;
}

static int read_line(struct mk_str line, struct mc_reply *ret, const char **ret_error)
{
    struct mk_str rest = line, name = take_word(&rest);
    size_t i = 0;
    while (i < MK_COUNT_OF(codes) && !mk_str_eq(codes[i].name, name))
        i++;
    if (i == MK_COUNT_OF(codes))
        return fail_parse(ret_error, "its reply is not of the meta protocol");
    ret->code = codes[i].code;
    ret->text = mk_str_trim(rest);
    if (codes[i].has_text)
        return 0;
    uint64_t len = 0;
    if (ret->code == MC_VA && !mk_str_u64(take_word(&rest), MC_VALUE_BYTES_MAX, &len))
        return fail_parse(ret_error, "the length of a value is no number, or above 1 GB");
    ret->len = (size_t)len;
    return read_flags(rest, ret) ? 0 : fail_parse(ret_error, "a flag of a reply is malformed");
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

int mc_reply_parse(const char *p, size_t n, struct mc_reply *ret, const char **ret_error)
{
    size_t most = n < MC_LINE_BYTES_MAX ? n : MC_LINE_BYTES_MAX;
    const char *end = most ? memchr(p, '\n', most) : NULL;
    *ret = (struct mc_reply){.code = MC_ERROR};
    *ret_error = NULL;
    if (n && (!is_capital(p[0]) || (n > 1 && !is_capital(p[1]))))
        return fail_parse(ret_error, "its reply is not of the meta protocol");
    if (!end)
        return n < MC_LINE_BYTES_MAX ? 0 : fail_parse(ret_error, "a line of a reply is too long");
    size_t len = (size_t)(end - p);
    if (!len || p[len - 1] != '\r')
        return fail_parse(ret_error, "a line of a reply has no end of a line");
    int err = read_line(mk_str(p, len - 1), ret, ret_error);
    return err < 0 ? err : (int)(len + 1);
}
