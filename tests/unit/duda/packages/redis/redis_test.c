// SPDX-License-Identifier: Apache-2.0
/* The package redis: replies in pieces, their limits, commands as bytes, error replies. */
#include "duda/packages/redis/format.h"
#include "duda/packages/redis/reader.h"

#include <duda/mem.h>

#include "testing.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

enum { LIMIT = 4096 };

static long countdown = -1;

static void *alloc(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static const struct duda_api_mem heap = {.alloc = alloc, .realloc = realloc, .free = free};

static int begin(void **state)
{
    (void)state;
    mem = &heap;
    return 0;
}

/* ── replies ── */

/* Feeds a text in pieces of `step` bytes, and returns the first result that is not 0. */
static int read_text(struct redis_reader *r, struct mk_str text, size_t step, redisReply **ret)
{
    assert_int_equal(redis_reader_init(r, LIMIT), 0);
    int result = 0;
    for (size_t at = 0; at < text.len && result == 0; at += step) {
        size_t n = text.len - at < step ? text.len - at : step;
        assert_int_equal(redis_reader_feed(r, text.p + at, n), 0);
        result = redis_reader_next(r, ret);
    }
    return result;
}

static void assert_error(struct mk_str text, int err, const char *sentence)
{
    for (size_t step = 1; step < 8192; step *= 7) {
        struct redis_reader r;
        redisReply *reply = NULL;
        assert_int_equal(read_text(&r, text, step, &reply), err);
        assert_non_null(strstr(r.error, sentence));
        redis_reader_release(&r);
        redis_reader_release(&r);
    }
}

TEST(replies)
{
    static const char text[] = "*5\r\n$3\r\na\0b\r\n:-7\r\n$-1\r\n*2\r\n+OK\r\n-ERR no\r\n*0\r\n";
    for (size_t step = 1; step < sizeof(text); step++) {
        struct redis_reader r;
        redisReply *reply = NULL;
        assert_int_equal(read_text(&r, mk_str(text, sizeof(text) - 1), step, &reply), 1);
        assert_int_equal(reply->elements, 5);
        assert_int_equal(reply->element[0]->type, REDIS_REPLY_STRING);
        assert_memory_equal(reply->element[0]->str, "a\0b", 4);
        assert_int_equal(reply->element[1]->integer, -7);
        assert_int_equal(reply->element[2]->type, REDIS_REPLY_NIL);
        assert_string_equal(reply->element[3]->element[0]->str, "OK");
        assert_int_equal(reply->element[3]->element[1]->type, REDIS_REPLY_ERROR);
        assert_int_equal(reply->element[4]->elements, 0);
        free(reply); /* one block */
        assert_int_equal(redis_reader_next(&r, &reply), 0);
        redis_reader_release(&r);
    }
}

TEST(pipelined_replies)
{
    struct redis_reader r;
    redisReply *reply = NULL;
    assert_int_equal(read_text(&r, MK_STR("+a\r\n+b\r\n:3\r\n"), 100, &reply), 1);
    assert_string_equal(reply->str, "a");
    free(reply);
    assert_int_equal(redis_reader_next(&r, &reply), 1);
    assert_string_equal(reply->str, "b");
    free(reply);
    assert_int_equal(redis_reader_next(&r, &reply), 1);
    assert_int_equal(reply->integer, 3);
    free(reply);
    assert_int_equal(redis_reader_next(&r, &reply), 0);
    redis_reader_release(&r);
}

TEST(garbage)
{
    assert_error(MK_STR("HTTP/1.1 400 Bad Request\r\n\r\n"), -EPROTO, "not the protocol of Redis");
    assert_error(MK_STR(":1x\r\n"), -EPROTO, "not the protocol");
    assert_error(MK_STR("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"), -EPROTO,
                 "protocol");
    assert_error(MK_STR(",1.5\r\n"), -EPROTO, "not the protocol"); /* RESP3 */
    assert_error(MK_STR("*1\r\n,inf\r\n"), -EPROTO, "not the protocol");
    assert_error(MK_STR("*2\r\n:1\r\n#t\r\n"), -EPROTO, "not the protocol");
    assert_error(MK_STR("%1\r\n+a\r\n+b\r\n"), -EPROTO, "not the protocol");
    assert_error(MK_STR(">2\r\n+a\r\n+b\r\n"), -EPROTO, "not the protocol");
    assert_error(MK_STR("$-2\r\n"), -EPROTO, "not the protocol");
    assert_error(MK_STR("*-2\r\n"), -EPROTO, "not the protocol");
}

/* hiredis 0.14 has this limit, too; later versions leave it to the reader. */
TEST(arrays_in_arrays)
{
    struct redis_reader r;
    redisReply *reply = NULL;
    assert_int_equal(read_text(&r, MK_STR("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"), 99, &reply), 1);
    free(reply);
    redis_reader_release(&r);
    assert_error(MK_STR("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"), -EPROTO, "not the protocol");
}

TEST(limits)
{
    static char text[LIMIT + 100];
    assert_error(MK_STR("*2147483647\r\n"), -EMSGSIZE, "4096 bytes of reply_bytes_max");
    assert_error(MK_STR("*400\r\n*400\r\n*400\r\n"), -EMSGSIZE, "reply_bytes_max");
    memset(text, 'x', sizeof(text));
    memcpy(text, "$5000\r\n", 7);
    assert_error(mk_str(text, sizeof(text)), -EMSGSIZE, "reply_bytes_max");
    memcpy(text, "+xxxxxx", 7);
    assert_error(mk_str(text, sizeof(text)), -EMSGSIZE, "reply_bytes_max");
}

TEST(a_line_without_end)
{
    static char text[2 * REDIS_LINE_BYTES_MAX];
    struct redis_reader r;
    redisReply *reply = NULL;
    memset(text, 'x', sizeof(text));
    *text = '+';
    assert_int_equal(redis_reader_init(&r, 1 << 20), 0);
    assert_int_equal(redis_reader_feed(&r, text, REDIS_LINE_BYTES_MAX), 0);
    assert_int_equal(redis_reader_next(&r, &reply), 0);
    assert_int_equal(redis_reader_feed(&r, text + 1, 100), 0);
    assert_int_equal(redis_reader_next(&r, &reply), -EPROTO);
    redis_reader_release(&r);
}

TEST(without_memory)
{
    for (long n = 0; n < 5; n++) {
        struct redis_reader r;
        redisReply *reply = NULL;
        countdown = n;
        assert_int_equal(read_text(&r, MK_STR("*3\r\n:1\r\n:2\r\n$1\r\nx\r\n"), 100, &reply), -ENOMEM);
        countdown = -1;
        redis_reader_release(&r);
    }
}

/* ── commands ── */

static void assert_command(const struct duda_redis_arg *args, unsigned n, const char *bytes, size_t len)
{
    char to[256];
    assert_int_equal(redis_format_measure(args, n), len);
    assert_ptr_equal(redis_format_write(to, args, n), to + len);
    assert_memory_equal(to, bytes, len);
}

TEST(commands)
{
    static const char bytes[] = "*3\r\n$3\r\nSET\r\n$10\r\n0123456789\r\n$3\r\na\0b\r\n";
    char long_text[101] = {0};
    assert_command(DUDA_REDIS_ARGS({"SET", -1}, {"0123456789", -1}, {"a\0b", 3}), bytes, sizeof(bytes) - 1);
    assert_command(DUDA_REDIS_ARGS({"PING", -1}), "*1\r\n$4\r\nPING\r\n", 14);
    assert_command(DUDA_REDIS_ARGS({"", -1}, {NULL, 0}), "*2\r\n$0\r\n\r\n$0\r\n\r\n", 16);
    memset(long_text, 'x', 100);
    assert_int_equal(redis_format_measure(DUDA_REDIS_ARGS({long_text, -1})), 4 + 6 + 102);
    assert_int_equal(redis_format_measure(DUDA_REDIS_ARGS({"x", -2})), 0);
    assert_int_equal(redis_format_measure(DUDA_REDIS_ARGS({NULL, 1})), 0);
    assert_int_equal(redis_format_measure(NULL, 1), 0);
    assert_true(redis_format_measure(DUDA_REDIS_ARGS({long_text, REDIS_COMMAND_BYTES_MAX + 1})) >
                REDIS_COMMAND_BYTES_MAX);
}

static struct mk_str format(int *ret_err, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    struct mk_str command = redis_format_text(text, args, ret_err);
    va_end(args);
    return command;
}

TEST(formats)
{
    struct mk_str word, rest;
    int err;
    struct mk_str command = format(&err, "SET  %s-%d %b %%", "a b", 7, "x\0y", (size_t)3);
    assert_int_equal(err, 0);
    rest = command;
    assert_true(redis_format_next(&rest, &word) && mk_str_eq(word, MK_STR("SET")));
    assert_true(redis_format_next(&rest, &word) && mk_str_eq(word, MK_STR("a b-7")));
    assert_true(redis_format_next(&rest, &word) && mk_str_eq(word, mk_str("x\0y", 3)));
    assert_true(redis_format_next(&rest, &word) && mk_str_eq(word, MK_STR("%")));
    assert_false(redis_format_next(&rest, &word));
    redis_format_free(command);
    assert_null(format(&err, " ").p);
    assert_int_equal(err, -EINVAL);
    assert_null(format(&err, "GET %y", 1).p);
    assert_int_equal(err, -EINVAL);
}

static bool is_refused(const struct duda_redis_arg *args, unsigned n)
{
    char to[256];
    size_t len = redis_format_measure(args, n);
    redis_format_write(to, args, n);
    return redis_format_refuse(mk_str(to, len));
}

TEST(refused_commands)
{
    assert_true(is_refused(DUDA_REDIS_ARGS({"SeLeCt", -1}, {"1", -1})));
    assert_true(is_refused(DUDA_REDIS_ARGS({"XREAD", -1}, {"block", -1}, {"0", -1})));
    assert_true(is_refused(DUDA_REDIS_ARGS({"CLIENT", -1}, {"REPLY", -1}, {"OFF", -1})));
    assert_false(is_refused(DUDA_REDIS_ARGS({"XREAD", -1}, {"COUNT", -1}, {"1", -1})));
    assert_false(is_refused(DUDA_REDIS_ARGS({"CLIENT", -1}, {"ID", -1})));
    assert_false(is_refused(DUDA_REDIS_ARGS({"SET", -1}, {"select", -1}, {"block", -1})));
    assert_false(is_refused(DUDA_REDIS_ARGS({"SELECTED", -1})));
}

TEST(errors)
{
    assert_int_equal(redis_status_of("NOAUTH Authentication required."), -EACCES);
    assert_int_equal(redis_status_of("LOADING Redis is loading the dataset in memory"), -EAGAIN);
    assert_int_equal(redis_status_of("OOM command not allowed when used memory > 'maxmemory'."), -ENOSPC);
    assert_int_equal(redis_status_of("BUSYKEY Target key name already exists."), -EREMOTEIO);
    assert_int_equal(redis_status_of("ERR unknown command"), -EREMOTEIO);
    assert_int_equal(redis_status_of(""), -EREMOTEIO);
}

TEST_FILE(begin)
