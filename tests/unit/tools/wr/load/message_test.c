// SPDX-License-Identifier: Apache-2.0
/*
 * What wr-load sends and reads on a WebSocket: each case whole, byte by byte, and in pieces.
 */
#include "testing.h"

#include "tools/wr/load/message.h"

#include <errno.h>

#define OPENED "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

static struct mk_arena arena;

static struct message prepare(size_t bytes, uint32_t key)
{
    struct message m;
    mk_arena_init(&arena, NULL, SIZE_MAX, NULL, 0);
    assert_int_equal(message_prepare(&m, &arena, MK_STR("h:1"), MK_STR("/echo"), MK_STR("A: b\r\n"), bytes, key), 0);
    return m;
}

/* ── what is sent ── */

TEST(handshake)
{
    struct message m = prepare(5, 0);
    assert_true(mk_str_starts(m.handshake, MK_STR("GET /echo HTTP/1.1\r\nHost: h:1\r\nUpgrade: websocket\r\n")));
    assert_memory_equal(m.handshake.p + m.handshake.len - 10, "\r\nA: b\r\n\r\n", 10);
    mk_arena_release(&arena);
}

TEST(frames)
{
    static const struct {
        size_t bytes, head;
        const char *first;
    } cases[] = {
        {1, 6, "\x81\x81"},
        {125, 6, "\x81\xfd"},
        {126, 8, "\x81\xfe\x00\x7e"},
        {65535, 8, "\x81\xfe\xff\xff"},
        {65536, 14, "\x81\xff\x00\x00\x00\x00\x00\x01\x00\x00"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t head = cases[i].head;
        struct message m = prepare(cases[i].bytes, 0x01020304);
        const unsigned char *frame = (const unsigned char *)m.frame.p, *key = frame + head - 4;
        assert_int_equal(m.text.len, cases[i].bytes);
        assert_int_equal(m.frame.len, head + cases[i].bytes);
        assert_memory_equal(frame, cases[i].first, head - 4);
        for (size_t n = 0; n < m.text.len; n++)
            assert_int_equal(frame[head + n] ^ key[n % 4], m.text.p[n]);
        mk_arena_release(&arena);
    }
}

/* ── what is received ── */

struct outcome {
    int last; /* event */
    unsigned opened, messages, wrong;
    uint64_t frame_bytes; /* of the last message */
};

static struct outcome read_all(const struct message *m, const char *in, size_t len, size_t piece)
{
    struct reader r = {0};
    struct outcome o = {0};
    for (size_t at = 0, used; at < len && o.last >= 0 && o.last != READER_CLOSED; at += used) {
        o.last = reader_read(&r, m, in + at, len - at < piece ? len - at : piece, &used);
        o.opened += o.last == READER_OPENED;
        o.messages += o.last == READER_MESSAGE;
        o.wrong += o.last == READER_MESSAGE && r.is_wrong;
        o.frame_bytes = r.frame_bytes;
        assert_true(used > 0);
    }
    return o;
}

#define CASE(text, ...) \
    { \
        text, sizeof(text) - 1, __VA_ARGS__ \
    }

/* The message has 5 bytes: the first five printable characters. */
TEST(answers)
{
    static const struct {
        const char *in;
        size_t len;
        int last;
        unsigned messages, wrong;
        uint64_t frame_bytes;
    } cases[] = {
        CASE(OPENED "\x81\x05 !\"#$", READER_MESSAGE, 1, 0, 7),
        CASE(OPENED "\x81\x05 !\"#$\x81\x05 !\"#$", READER_MESSAGE, 2, 0, 7),
        CASE(OPENED "\x01\x02 !\x00\x00\x80\x03\"#$", READER_MESSAGE, 1, 0, 11),
        CASE(OPENED "\x01\x02 !\x89\x01p\x80\x03\"#$", READER_MESSAGE, 1, 0, 9),
        CASE(OPENED "\x89\x00\x81\x05 !\"#$", READER_MESSAGE, 1, 0, 7),
        CASE(OPENED "\x81\x7e\x00\x05 !\"#$", READER_MESSAGE, 1, 0, 9),
        CASE(OPENED "\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x05 !\"#$", READER_MESSAGE, 1, 0, 15),
        CASE(OPENED "\x81\x05 !\"#x", READER_MESSAGE, 1, 1, 7),
        CASE(OPENED "\x81\x04 !\"#", READER_MESSAGE, 1, 1, 6),
        CASE(OPENED "\x81\x06 !\"#$%", READER_MESSAGE, 1, 1, 8),
        CASE(OPENED "\x81\x00", READER_MESSAGE, 1, 1, 2),
        CASE(OPENED "\x82\x05 !\"#$", READER_MESSAGE, 1, 1, 7), /* binary */
        CASE(OPENED "\x81\x05 !\"", READER_MORE, 0, 0, 7),
        CASE(OPENED "\x88\x00", READER_CLOSED, 0, 0, 0),
        CASE(OPENED "\x88\x02\x03\xe8", READER_CLOSED, 0, 0, 0),
        CASE(OPENED "\xc1\x05 !\"#$", -EINVAL, 0, 0, 0),            /* compressed */
        CASE(OPENED "\x81\x85\x00\x00\x00\x00 ", -EINVAL, 0, 0, 0), /* masked */
        CASE(OPENED "\x80\x05 !\"#$", -EINVAL, 0, 0, 0),            /* continues nothing */
        CASE(OPENED "\x01\x02 !\x81\x05 ", -EINVAL, 0, 0, 4),       /* begins before the end */
        CASE(OPENED "\x83\x05 ", -EINVAL, 0, 0, 0),
        CASE(OPENED "\x8b\x00 ", -EINVAL, 0, 0, 0),
        CASE(OPENED "\x09\x00 ", -EINVAL, 0, 0, 0),
    };
    struct message m = prepare(5, 7);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t piece = 1; piece <= cases[i].len; piece++) {
            struct outcome o = read_all(&m, cases[i].in, cases[i].len, piece);
            assert_int_equal(o.last, cases[i].last);
            assert_int_equal(o.opened, 1);
            assert_int_equal(o.messages, cases[i].messages);
            assert_int_equal(o.wrong, cases[i].wrong);
            assert_int_equal(o.frame_bytes, cases[i].frame_bytes);
        }
    mk_arena_release(&arena);
}

TEST(refused_handshakes)
{
    static const char *const cases[] = {
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "HTTP/1.0 101 Switching\r\n\r\n",
        "\x81\x05 !\"#$",
    };
    struct message m = prepare(5, 7);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(read_all(&m, cases[i], strlen(cases[i]), 3).last, -EINVAL);
    char head[MESSAGE_HANDSHAKE_MAX + 100] = "HTTP/1.1 101 ";
    memset(head + 13, 'x', sizeof(head) - 13);
    assert_int_equal(read_all(&m, head, sizeof(head), 100).last, -EINVAL);
    assert_int_equal(read_all(&m, head, MESSAGE_HANDSHAKE_MAX, 100).last, READER_MORE);
    mk_arena_release(&arena);
}
