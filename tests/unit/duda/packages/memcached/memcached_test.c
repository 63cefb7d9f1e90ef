// SPDX-License-Identifier: Apache-2.0
/* The package memcached: lines of replies, whole and cut anywhere; commands as bytes; the servers of keys. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "duda/packages/memcached/hash.h"
#include "duda/packages/memcached/protocol.h"

/* ── replies ── */

static const struct {
    const char *text;
    struct mc_reply reply;
} replies[] = {
    {"HD\r\n", {.code = MC_HD}},
    {"HD O7 c12\r\n", {.code = MC_HD, .opaque = 7, .has_opaque = true, .cas = 12}},
    {"VA 5 f4294967295 c18446744073709551615 t-1 O4294967295\r\n",
     {.code = MC_VA,
      .len = 5,
      .flags = UINT32_MAX,
      .cas = UINT64_MAX,
      .ttl_s = -1,
      .opaque = UINT32_MAX,
      .has_opaque = true}},
    {"VA 0 t30 W\r\n", {.code = MC_VA, .ttl_s = 30, .won = true}},
    {"VA 1073741824  X   Z \r\n", {.code = MC_VA, .len = 1 << 30, .stale = true, .busy = true}},
    {"EN\r\n", {.code = MC_EN}},
    {"EN O3 kYWJj b s12 h1 l5\r\n", {.code = MC_EN, .opaque = 3, .has_opaque = true}},
    {"NF O1\r\n", {.code = MC_NF, .opaque = 1, .has_opaque = true}},
    {"NS O1\r\n", {.code = MC_NS, .opaque = 1, .has_opaque = true}},
    {"EX O1\r\n", {.code = MC_EX, .opaque = 1, .has_opaque = true}},
    {"MN\r\n", {.code = MC_MN}},
    {"ME key exp=-1 la=0\r\n", {.code = MC_ME, .text = {"key exp=-1 la=0", 15}}},
    {"ERROR\r\n", {.code = MC_ERROR}},
    {"CLIENT_ERROR bad format\r\n", {.code = MC_CLIENT_ERROR, .text = {"bad format", 10}}},
    {"SERVER_ERROR out of memory\r\n", {.code = MC_SERVER_ERROR, .text = {"out of memory", 13}}},
};

static const char *const wrong[] = {
    "\r\n",
    "\n",
    " HD\r\n",
    "hd\r\n",
    "H\r\n",
    "HDX\r\n",
    "HD\n",
    "XX O1\r\n",
    "VA\r\n",
    "VA x\r\n",
    "VA -1\r\n",
    "VA 1073741825\r\n",
    "VA 5 fx\r\n",
    "VA 5 c\r\n",
    "VA 5 O1x\r\n",
    "VA 5 O\r\n",
    "VA 5 t-2\r\n",
    "VA 5 f4294967296\r\n",
    "VALUE a 0 1\r\n",
    "STORED\r\n",
    "END\r\n",
    "1\r\n",
    "HTTP/1.1 200\r\n",
    "VA 99999999999999999999\r\n",
};

static void assert_same(const struct mc_reply *got, const struct mc_reply *expected)
{
    assert_int_equal(got->code, expected->code);
    assert_int_equal(got->len, expected->len);
    assert_int_equal(got->flags, expected->flags);
    assert_int_equal(got->cas, expected->cas);
    assert_int_equal(got->ttl_s, expected->ttl_s);
    assert_int_equal(got->opaque, expected->opaque);
    assert_int_equal(got->has_opaque, expected->has_opaque);
    assert_int_equal(got->won, expected->won);
    assert_int_equal(got->stale, expected->stale);
    assert_int_equal(got->busy, expected->busy);
    if (expected->text.len)
        assert_true(mk_str_eq(got->text, expected->text));
}

/* Each prefix is incomplete, and nothing behind it is read. */
TEST(replies)
{
    for (size_t i = 0; i < COUNT(replies); i++) {
        size_t len = strlen(replies[i].text);
        for (size_t n = 0; n <= len; n++) {
            struct mc_reply got;
            const char *error;
            char *p = mk_test_guarded(replies[i].text, n);
            assert_int_equal(mc_reply_parse(p, n, &got, &error), n < len ? 0 : (int)len);
            assert_null(error);
            if (n == len)
                assert_same(&got, &replies[i].reply);
            mk_test_unguard(p, n);
        }
    }
}

TEST(wrong_replies)
{
    struct mc_reply got;
    const char *error;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        size_t len = strlen(wrong[i]);
        char *p = mk_test_guarded(wrong[i], len);
        assert_int_equal(mc_reply_parse(p, len, &got, &error), -EPROTO);
        assert_non_null(error);
        mk_test_unguard(p, len);
    }
}

TEST(long_lines)
{
    struct mc_reply got;
    const char *error;
    char line[MC_LINE_BYTES_MAX + 2];
    memset(line, ' ', sizeof(line));
    memcpy(line, "HD", 2);
    assert_int_equal(mc_reply_parse(line, MC_LINE_BYTES_MAX - 1, &got, &error), 0);
    assert_int_equal(mc_reply_parse(line, MC_LINE_BYTES_MAX, &got, &error), -EPROTO);
    memcpy(line + MC_LINE_BYTES_MAX - 2, "\r\n", 2);
    assert_int_equal(mc_reply_parse(line, sizeof(line), &got, &error), MC_LINE_BYTES_MAX);
}

/* ── commands ── */

#define BINARY "a key\0\r\n"

static const struct {
    struct duda_memcached_command command;
    const char *text;
} commands[] = {
    {{.op = DUDA_MEMCACHED_FETCH, .key = "a"}, "mg a v f c t O9\r\n"},
    {{.op = DUDA_MEMCACHED_FETCH, .key = "abc", .key_len = 2}, "mg ab v f c t O9\r\n"},
    {{.op = DUDA_MEMCACHED_FETCH, .key = BINARY, .key_len = sizeof(BINARY)}, "mg YSBrZXkADQoA v f c t b O9\r\n"},
    {{.op = DUDA_MEMCACHED_FETCH_TOUCH, .key = "a"}, "mg a v f c t T0 O9\r\n"},
    {{.op = DUDA_MEMCACHED_RECACHE, .key = "a", .ttl_s = 30}, "mg a v f c t N30 O9\r\n"},
    {{.op = DUDA_MEMCACHED_RECACHE, .key = "a", .ttl_s = 30, .recache_s = 5}, "mg a v f c t N30 R5 O9\r\n"},
    {{.op = DUDA_MEMCACHED_TOUCH, .key = "a", .ttl_s = 7}, "mg a c t T7 O9\r\n"},
    {{.op = DUDA_MEMCACHED_STORE, .key = "a"}, "ms a 0 c T0 O9\r\n\r\n"},
    {{.op = DUDA_MEMCACHED_STORE, .key = "a", .value = "x\r\n", .len = 3, .ttl_s = 2592000, .flags = 4, .cas = 5},
     "ms a 3 c T2592000 F4 C5 O9\r\nx\r\n\r\n"},
    {{.op = DUDA_MEMCACHED_ADD, .key = "a", .value = "x", .len = 1, .ttl_s = 2592001},
     "ms a 1 ME c T1002592001 O9\r\nx\r\n"},
    {{.op = DUDA_MEMCACHED_REPLACE, .key = "a", .value = "x", .len = 1, .ttl_s = UINT32_MAX},
     "ms a 1 MR c T2147483647 O9\r\nx\r\n"},
    {{.op = DUDA_MEMCACHED_APPEND, .key = "a", .value = "x", .len = 1, .cas = 1}, "ms a 1 MA c C1 O9\r\nx\r\n"},
    {{.op = DUDA_MEMCACHED_PREPEND, .key = "a", .value = "x", .len = 1}, "ms a 1 MP c O9\r\nx\r\n"},
    {{.op = DUDA_MEMCACHED_REMOVE, .key = "a"}, "md a O9\r\n"},
    {{.op = DUDA_MEMCACHED_REMOVE, .key = "a", .cas = 1}, "md a C1 O9\r\n"},
    {{.op = DUDA_MEMCACHED_INVALIDATE, .key = "a"}, "md a I O9\r\n"},
    {{.op = DUDA_MEMCACHED_INVALIDATE, .key = "a", .ttl_s = 9}, "md a I T9 O9\r\n"},
    {{.op = DUDA_MEMCACHED_INCREASE, .key = "a", .n = UINT64_MAX}, "ma a MI v c t D18446744073709551615 O9\r\n"},
    {{.op = DUDA_MEMCACHED_DECREASE, .key = "a", .n = 1, .creates = true, .initial = 3, .ttl_s = 4},
     "ma a MD v c t D1 N4 J3 O9\r\n"},
    {{.op = DUDA_MEMCACHED_DESCRIBE, .key = "a"}, "me a\r\n"},
    {{.op = DUDA_MEMCACHED_DESCRIBE, .key = " "}, "me IA== b\r\n"},
};

TEST(commands)
{
    for (size_t i = 0; i < COUNT(commands); i++) {
        struct mk_buf out;
        const char *error;
        mk_buf_init(&out, 4096);
        assert_int_equal(mc_command_check(&commands[i].command, 1000, &error), 0);
        mc_command_write(&out, &commands[i].command, 9, 1000000000);
        assert_int_equal(out.err, 0);
        assert_string_equal(mk_buf_cstr(&out), commands[i].text);
        mk_buf_release(&out);
    }
}

/* The room that is reserved for a command suffices for the longest. */
TEST(the_longest_command)
{
    char key[251];
    memset(key, 'k', 250);
    key[250] = '\0';
    for (int op = 0; op < MC_NOOP; op++) {
        struct duda_memcached_command c = {.op = (enum duda_memcached_op)op,
                                           .key = key,
                                           .ttl_s = UINT32_MAX,
                                           .flags = UINT32_MAX,
                                           .cas = UINT64_MAX,
                                           .n = UINT64_MAX,
                                           .initial = UINT64_MAX,
                                           .recache_s = UINT32_MAX,
                                           .creates = true};
        struct mk_buf out;
        mk_buf_init(&out, MC_HEAD_BYTES_MAX);
        mc_command_write(&out, &c, UINT32_MAX, INT32_MAX);
        assert_int_equal(out.err, 0);
        mk_buf_release(&out);
    }
}

static int check(struct duda_memcached_command c)
{
    const char *error = NULL;
    int err = mc_command_check(&c, 10, &error);
    assert_int_equal(err != 0, error != NULL);
    return err;
}

TEST(wrong_commands)
{
    char key[300];
    const char *error;
    memset(key, 'k', sizeof(key));
    assert_int_equal(mc_command_check(NULL, 10, &error), -EINVAL);
    assert_int_equal(check((struct duda_memcached_command){.key = NULL}), -EINVAL);
    assert_int_equal(check((struct duda_memcached_command){.key = NULL, .key_len = 3}), -EINVAL);
    assert_int_equal(check((struct duda_memcached_command){.key = ""}), -EINVAL);
    assert_int_equal(check((struct duda_memcached_command){.key = key, .key_len = 250}), 0);
    assert_int_equal(check((struct duda_memcached_command){.key = key, .key_len = 251}), -EINVAL);
    key[0] = ' ';
    assert_int_equal(check((struct duda_memcached_command){.key = key, .key_len = 186}), 0);
    assert_int_equal(check((struct duda_memcached_command){.key = key, .key_len = 187}), -EINVAL);
    assert_int_equal(check((struct duda_memcached_command){.op = (enum duda_memcached_op)MC_NOOP, .key = "a"}),
                     -EINVAL);
    assert_int_equal(check((struct duda_memcached_command){.op = (enum duda_memcached_op) - 1, .key = "a"}), -EINVAL);
    assert_int_equal(check((struct duda_memcached_command){.key = "a", .value = key, .len = 1}), -EINVAL);
    assert_int_equal(check((struct duda_memcached_command){.key = "a", .cas = 1}), -EINVAL);
    struct duda_memcached_command store = {.op = DUDA_MEMCACHED_STORE, .key = "a", .value = key, .len = 10};
    assert_int_equal(check(store), 0);
    store.len = 11;
    assert_int_equal(check(store), -EMSGSIZE);
    store.value = NULL;
    assert_int_equal(check(store), -EINVAL);
}

static const struct {
    unsigned op;
    enum mc_code code;
    int result;
} results[] = {
    {DUDA_MEMCACHED_FETCH, MC_VA, 0},
    {DUDA_MEMCACHED_FETCH, MC_EN, -ENOENT},
    {DUDA_MEMCACHED_FETCH, MC_HD, -EPROTO},
    {DUDA_MEMCACHED_FETCH, MC_SERVER_ERROR, -EREMOTEIO},
    {DUDA_MEMCACHED_STORE, MC_HD, 0},
    {DUDA_MEMCACHED_STORE, MC_EX, -EEXIST},
    {DUDA_MEMCACHED_STORE, MC_NF, -ENOENT},
    {DUDA_MEMCACHED_STORE, MC_VA, -EPROTO},
    {DUDA_MEMCACHED_ADD, MC_NS, -EEXIST},
    {DUDA_MEMCACHED_REPLACE, MC_NS, -ENOENT},
    {DUDA_MEMCACHED_APPEND, MC_NS, -ENOENT},
    {DUDA_MEMCACHED_REMOVE, MC_NF, -ENOENT},
    {DUDA_MEMCACHED_REMOVE, MC_EX, -EEXIST},
    {DUDA_MEMCACHED_INCREASE, MC_CLIENT_ERROR, -EREMOTEIO},
    {DUDA_MEMCACHED_DESCRIBE, MC_ME, 0},
    {DUDA_MEMCACHED_DESCRIBE, MC_MN, -EPROTO},
    {MC_NOOP, MC_MN, 0},
    {MC_NOOP, MC_EN, -EPROTO},
};

TEST(results)
{
    for (size_t i = 0; i < COUNT(results); i++)
        assert_int_equal(mc_command_result(results[i].op, &(struct mc_reply){.code = results[i].code}),
                         results[i].result);
}

/* ── servers ── */

enum { SERVERS = 10, KEYS = 20000 };

static unsigned find_best(const uint64_t *servers, unsigned n, uint64_t key)
{
    unsigned best = 0;
    for (unsigned i = 1; i < n; i++)
        if (mc_score(servers[i], key) > mc_score(servers[best], key))
            best = i;
    return best;
}

/* Each server has its share, and a further one takes keys from all others, and moves no others. */
TEST(shares)
{
    uint64_t servers[SERVERS];
    unsigned shares[SERVERS] = {0}, moved = 0;
    char text[32];
    for (unsigned i = 0; i < SERVERS; i++) {
        snprintf(text, sizeof(text), "10.0.0.%u:11211", i);
        servers[i] = mc_hash(mk_str_c(text));
    }
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(text, sizeof(text), "page:%u", i);
        uint64_t key = mc_hash(mk_str_c(text));
        unsigned before = find_best(servers, SERVERS - 1, key), after = find_best(servers, SERVERS, key);
        shares[after]++;
        moved += before != after;
        assert_true(before == after || after == SERVERS - 1);
    }
    assert_int_equal(moved, shares[SERVERS - 1]);
    for (unsigned i = 0; i < SERVERS; i++)
        assert_in_range(shares[i], KEYS / SERVERS * 9 / 10, KEYS / SERVERS * 11 / 10);
}
