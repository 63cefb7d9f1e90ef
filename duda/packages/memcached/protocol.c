// SPDX-License-Identifier: Apache-2.0
/*
 * The meta protocol (protocol.h).
 */
#include "protocol.h"

#include <monkey/base/base64.h>

#include <assert.h>
#include <errno.h>

/* ── replies ── */

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
    assert(p || !n);
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

/* ── commands ── */

enum { RELATIVE_MAX_S = 30 * 24 * 3600 }; /* larger numbers are times since 1970 to memcached */

enum takes {
    TAKES_VALUE = 1,
    TAKES_TTL = 2,     /* T */
    TAKES_FLAGS = 4,   /* F */
    TAKES_CAS = 8,     /* C */
    TAKES_NUMBER = 16, /* D, N and J */
    TAKES_RECACHE = 32 /* N and R */
};

/* A bit of what may come back. */
enum {
    HD = 1 << MC_HD,
    VA = 1 << MC_VA,
    EN = 1 << MC_EN,
    NF = 1 << MC_NF,
    NS = 1 << MC_NS,
    EX = 1 << MC_EX,
    MN = 1 << MC_MN,
    ME = 1 << MC_ME,
};

static const struct {
    const char *name, *flags; /* flags with a space before each */
    unsigned takes, replies;
    int not_stored; /* what NS means */
} ops[MC_OPS] = {
    [DUDA_MEMCACHED_FETCH] = {"mg", " v f c t", 0, VA | EN, 0},
    [DUDA_MEMCACHED_FETCH_TOUCH] = {"mg", " v f c t", TAKES_TTL, VA | EN, 0},
    [DUDA_MEMCACHED_RECACHE] = {"mg", " v f c t", TAKES_RECACHE, VA | EN, 0},
    [DUDA_MEMCACHED_TOUCH] = {"mg", " c t", TAKES_TTL, HD | EN, 0},
    [DUDA_MEMCACHED_STORE] = {"ms", " c", TAKES_VALUE | TAKES_TTL | TAKES_FLAGS | TAKES_CAS, HD | NS | EX | NF,
                              -EREMOTEIO},
    [DUDA_MEMCACHED_ADD] = {"ms", " ME c", TAKES_VALUE | TAKES_TTL | TAKES_FLAGS, HD | NS | EX | NF, -EEXIST},
    [DUDA_MEMCACHED_REPLACE] = {"ms", " MR c", TAKES_VALUE | TAKES_TTL | TAKES_FLAGS | TAKES_CAS, HD | NS | EX | NF,
                                -ENOENT},
    [DUDA_MEMCACHED_APPEND] = {"ms", " MA c", TAKES_VALUE | TAKES_CAS, HD | NS | EX | NF, -ENOENT},
    [DUDA_MEMCACHED_PREPEND] = {"ms", " MP c", TAKES_VALUE | TAKES_CAS, HD | NS | EX | NF, -ENOENT},
    [DUDA_MEMCACHED_REMOVE] = {"md", "", TAKES_CAS, HD | NF | EX, 0},
    [DUDA_MEMCACHED_INVALIDATE] = {"md", " I", TAKES_CAS, HD | NF | EX, 0},
    [DUDA_MEMCACHED_INCREASE] = {"ma", " MI v c t", TAKES_NUMBER | TAKES_CAS, VA | NF | NS | EX, -EREMOTEIO},
    [DUDA_MEMCACHED_DECREASE] = {"ma", " MD v c t", TAKES_NUMBER | TAKES_CAS, VA | NF | NS | EX, -EREMOTEIO},
    [DUDA_MEMCACHED_DESCRIBE] = {"me", "", 0, ME | EN, 0},
    [MC_NOOP] = {"mn", "", 0, MN, 0},
};

/* ── keys ── */

struct mk_str mc_command_key(const struct duda_memcached_command *c)
{
    return c->key_len ? mk_str(c->key, c->key_len) : mk_str_c(c->key);
}

/* Returns whether the key has bytes that end a word or a line. */
static bool is_binary(struct mk_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.p[i] <= ' ' || key.p[i] == 0x7f)
            return true;
    return false;
}

static const char *check_key(struct mk_str key)
{
    if (!key.len)
        return "the key is empty";
    if (key.len > DUDA_MEMCACHED_KEY_BYTES)
        return "the key has more than 250 bytes";
    if (key.len > DUDA_MEMCACHED_BINARY_KEY_BYTES && is_binary(key))
        return "the key has spaces or control characters, and more than 186 bytes";
    return NULL;
}

int mc_command_check(const struct duda_memcached_command *c, size_t value_bytes_max, const char **ret_error)
{
    *ret_error = c ? NULL : "the command is NULL";
    if (c && (unsigned)c->op >= MC_NOOP)
        *ret_error = "op is none of DUDA_MEMCACHED_...";
    if (!*ret_error && !c->key)
        *ret_error = "the key is NULL";
    if (!*ret_error)
        *ret_error = check_key(mc_command_key(c));
    if (!*ret_error && c->len && (!c->value || !(ops[c->op].takes & TAKES_VALUE)))
        *ret_error = c->value ? "this command takes no value" : "the value is NULL";
    if (!*ret_error && c->cas && !(ops[c->op].takes & TAKES_CAS))
        *ret_error = "this command takes no cas";
    if (*ret_error)
        return -EINVAL;
    if (c->len <= value_bytes_max)
        return 0;
    *ret_error = "the value is longer than value_bytes_max";
    return -EMSGSIZE;
}

/* ── writing ── */

/* Appends " F123". */
static void add_flag(struct mk_buf *out, char flag, uint64_t value)
{
    mk_buf_addf(out, " %c%llu", flag, (unsigned long long)value);
}

static void add_ttl(struct mk_buf *out, char flag, uint32_t ttl_s, int64_t now_s)
{
    uint64_t value = ttl_s;
    if (ttl_s > RELATIVE_MAX_S)
        value += (uint64_t)now_s;
    add_flag(out, flag, value < INT32_MAX ? value : INT32_MAX);
}

static void add_number(struct mk_buf *out, const struct duda_memcached_command *c, int64_t now_s)
{
    add_flag(out, 'D', c->n);
    if (!c->creates)
        return;
    add_ttl(out, 'N', c->ttl_s, now_s);
    add_flag(out, 'J', c->initial);
}

static void add_arguments(struct mk_buf *out, const struct duda_memcached_command *c, int64_t now_s)
{
    unsigned takes = ops[c->op].takes;
    bool is_stale = c->op == DUDA_MEMCACHED_INVALIDATE && c->ttl_s;
    if (takes & TAKES_TTL || is_stale)
        add_ttl(out, 'T', c->ttl_s, now_s);
    if (takes & TAKES_FLAGS && c->flags)
        add_flag(out, 'F', c->flags);
    if (takes & TAKES_CAS && c->cas)
        add_flag(out, 'C', c->cas);
    if (takes & TAKES_NUMBER)
        add_number(out, c, now_s);
    if (takes & TAKES_RECACHE)
        add_ttl(out, 'N', c->ttl_s, now_s);
    if (takes & TAKES_RECACHE && c->recache_s)
        add_ttl(out, 'R', c->recache_s, now_s);
}

void mc_command_write(struct mk_buf *out, const struct duda_memcached_command *c, uint32_t opaque, int64_t now_s)
{
    assert(c->key && (unsigned)c->op < MC_NOOP);
    struct mk_str key = mc_command_key(c);
    bool binary = is_binary(key), has_value = ops[c->op].takes & TAKES_VALUE;
    mk_buf_addf(out, "%s ", ops[c->op].name);
    if (binary)
        mk_base64_encode(out, key.p, key.len, MK_BASE64);
    else
        mk_buf_adds(out, key);
    if (has_value)
        mk_buf_addf(out, " %zu", c->len);
    mk_buf_adds(out, mk_str_c(ops[c->op].flags));
    if (binary)
        mk_buf_adds(out, MK_STR(" b"));
    add_arguments(out, c, now_s);
    if (c->op != DUDA_MEMCACHED_DESCRIBE)
        add_flag(out, 'O', opaque);
    mk_buf_adds(out, MK_STR("\r\n"));
    if (!has_value)
        return;
    mk_buf_add(out, c->value, c->len);
    mk_buf_adds(out, MK_STR("\r\n"));
}

void mc_command_write_noop(struct mk_buf *out)
{
    mk_buf_adds(out, MK_STR("mn\r\n"));
}

/* ── what replies mean ── */

int mc_command_result(unsigned op, const struct mc_reply *reply)
{
    assert(op < MC_OPS);
    if (reply->code >= MC_ERROR)
        return -EREMOTEIO;
    if (!(ops[op].replies & 1U << reply->code))
        return -EPROTO;
    switch (reply->code) {
    case MC_NS:
        return ops[op].not_stored;
    case MC_EN:
    case MC_NF:
        return -ENOENT;
    case MC_EX:
        return -EEXIST;
    default:
        return 0;
    }
}
