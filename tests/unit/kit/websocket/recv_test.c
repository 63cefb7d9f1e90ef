// SPDX-License-Identifier: Apache-2.0
/* Input of WebSockets: messages in one piece and in many, control frames between them, limits and errors. */
#include "fixture.h"

TEST(messages_in_one_read)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    feed_text(p, "one");
    feed_text(p, "");
    feed_frame(p, 0x82, "\0\1", 2);
    feed_frame(p, 0x89, "hi", 2);
    feed_frame(p, 0x8a, "", 0);
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "text \"one\"\ntext \"\"\nbinary \"\"\nping \"hi\"\npong \"\"\n");
    assert_sent_text(p, "\x8a\x02hi");
    disconnect(p);
    assert_logged(&f, "close 1006 \"\"\n");
    fixture_close(&f);
}

/* The same input in reads of any size gives the same calls. */
TEST(messages_byte_by_byte)
{
    for (size_t size = 1; size < 40; size++) {
        struct fixture f;
        fixture_open(&f);
        struct peer *p = connect_plain(&f);
        p->read_max = size;
        feed_text(p, "gr\xc3\xbc\xc3\x9f dich");
        feed_frame(p, 0x01, "fra", 3);
        feed_frame(p, 0x89, "between", 7);
        feed_frame(p, 0x00, "gm", 2);
        feed_frame(p, 0x00, "", 0);
        feed_frame(p, 0x80, "ents", 4);
        feed_frame(p, 0x02, "", 0);
        feed_frame(p, 0x80, "", 0);
        feed_frame(p, 0x88, "\x0f\xa0gone", 6);
        run(p, MK_TUNNEL_READ);
        assert_logged(&f, "text \"gr\xc3\xbc\xc3\x9f dich\"\nping \"between\"\ntext \"fragments\"\nbinary \"\"\n"
                          "close 4000 \"gone\"\n");
        assert_sent_text(p, "\x8a\x07"
                            "between\x88\x02\x0f\xa0");
        disconnect(p);
        fixture_close(&f);
    }
}

TEST(long_messages)
{
    static char text[300000];
    struct fixture f;
    memset(text, 'x', sizeof(text));
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    feed_frame(p, 0x82, text, sizeof(text));
    feed_frame(p, 0x01, text, sizeof(text) / 2);
    feed_frame(p, 0x80, text, sizeof(text) / 2);
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "binary of 300000\ntext of 300000\n");
    disconnect(p);
    fixture_close(&f);
}

struct bad {
    const char *bytes;
    size_t n;
    unsigned code;
};

#define BAD(literal, code) \
    { \
        literal, sizeof(literal) - 1, code \
    }

/* Each is answered with a close frame that has the code, and nothing behind it is read. */
TEST(errors_of_the_peer)
{
    static const struct bad rows[] = {
        BAD("\x81\x02hi", 1002),                       /* not masked */
        BAD("\x83\x80\0\0\0\0", 1002),                 /* a reserved opcode */
        BAD("\xc1\x80\0\0\0\0", 1002),                 /* RSV1 without the extension */
        BAD("\x09\x80\0\0\0\0", 1002),                 /* a ping in fragments */
        BAD("\x80\x80\0\0\0\0", 1002),                 /* a continuation of nothing */
        BAD("\x01\x80\0\0\0\0\x81\x80\0\0\0\0", 1002), /* a message within another one */
        BAD("\x88\x81\0\0\0\0x", 1002),                /* half a status code */
        BAD("\x88\x82\0\0\0\0\x03\xed", 1002),         /* 1005 */
        BAD("\x88\x83\0\0\0\0\x03\xe8\xff", 1007),     /* the reason is not UTF-8 */
        BAD("\x81\x81\0\0\0\0\xff", 1007),
        BAD("\x01\x82\0\0\0\0\xc3(", 1007), /* before the message is complete */
        BAD("\x81\x81\0\0\0\0\xc3", 1007),  /* half a character */
        BAD("\x01\x81\0\0\0\0\xc3\x80\x80\0\0\0\0", 1007),
        BAD("\x82\xff\0\0\0\0\0\x10\0\1\0\0\0\0", 1009), /* 1 MB and one byte */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fixture f;
        fixture_open(&f);
        struct peer *p = connect_plain(&f);
        feed(p, rows[i].bytes, rows[i].n);
        feed_text(p, "more");
        run(p, MK_TUNNEL_READ);
        assert_true(p->ended);
        assert_int_equal((unsigned char)p->out[0], 0x88);
        assert_int_equal((unsigned char)p->out[2] << 8 | (unsigned char)p->out[3], rows[i].code);
        assert_null(strstr(f.log, "more"));
        char line[32];
        snprintf(line, sizeof(line), "close %u", rows[i].code);
        assert_non_null(strstr(f.log, line));
        disconnect(p);
        fixture_close(&f);
    }
}

TEST(limits)
{
    struct fixture f;
    fixture_open(&f);
    f.settings.message_bytes_max = 10;
    f.settings.frame_bytes_max = 8;
    struct peer *p = connect_plain(&f);
    feed_frame(p, 0x01, "12345", 5);
    feed_frame(p, 0x80, "67890", 5);
    feed_frame(p, 0x01, "12345", 5);
    feed_frame(p, 0x80, "678901", 6);
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "text \"1234567890\"\nclose 1009 \"the message is too long\"\n");
    disconnect(p);
    p = connect_plain(&f);
    feed_frame(p, 0x82, "123456789", 9);
    run(p, MK_TUNNEL_READ);
    assert_true(p->ended);
    assert_int_equal((unsigned char)p->out[3], 1009 & 0xff);
    disconnect(p);
    f.log[0] = '\0';
    fixture_close(&f);
}

static void pause_peer(struct peer *p)
{
    mk_ws_pause(p->ws);
}

TEST(pause_keeps_what_was_read)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    p->then = pause_peer;
    feed_text(p, "one");
    feed_text(p, "two");
    feed_frame(p, 0x01, "th", 2);
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "text \"one\"\n");
    mk_ws_resume(p->ws);
    run(p, 0);
    assert_logged(&f, "text \"two\"\n");
    feed_frame(p, 0x80, "ree", 3);
    mk_ws_resume(p->ws);
    run(p, 0);
    assert_logged(&f, "text \"three\"\n");
    disconnect(p);
    f.log[0] = '\0';
    fixture_close(&f);
}

static void close_peer(struct peer *p)
{
    mk_ws_close(p->ws, 4001, MK_STR("enough"));
}

static void abort_peer(struct peer *p)
{
    mk_ws_abort(p->ws);
}

TEST(handlers_that_end_it)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    p->then = close_peer;
    feed_text(p, "one");
    feed_text(p, "two");
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "text \"one\"\n");
    assert_sent_text(p, "\x88\x08\x0f\xa1"
                        "enough");
    assert_false(p->ended);
    feed_frame(p, 0x88, "\x0f\xa2", 2);
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "close 4001 \"enough\"\n");
    disconnect(p);
    p = connect_plain(&f);
    p->then = abort_peer;
    feed_text(p, "one");
    feed_text(p, "two");
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "text \"one\"\nclose 1006 \"\"\n");
    disconnect(p);
    fixture_close(&f);
}

TEST(the_end_of_the_stream)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    feed_frame(p, 0x01, "half", 4);
    p->fin = true;
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "close 1006 \"\"\n");
    disconnect(p);
    p = connect_plain(&f);
    p->error = -ECONNRESET;
    run(p, MK_TUNNEL_READ);
    assert_logged(&f, "close 1006 \"\"\n");
    disconnect(p);
    fixture_close(&f);
}

static void echo_peer(struct peer *p)
{
    mk_ws_send(p->ws, MK_WS_TEXT, "one", 3);
}

/* What waits is written before a stream whose peer has ended its side ends; and nothing is accepted any more. */
TEST(the_end_behind_a_message)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    p->then = echo_peer;
    p->room = 3; /* of the answer */
    feed_text(p, "one");
    p->fin = true;
    run(p, MK_TUNNEL_READ);
    assert_false(p->ended);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "more", 4), -EPIPE);
    p->room = SIZE_MAX / 2;
    run(p, MK_TUNNEL_WRITE);
    assert_true(p->ended);
    assert_logged(&f, "text \"one\"\nclose 1006 \"\"\n");
    assert_int_equal(p->out_len, 5);
    disconnect(p);
    fixture_close(&f);
}

static int talk(void *ctx)
{
    struct fixture *f = ctx;
    struct peer *p = test_calloc(1, sizeof(*p));
    p->fixture = f;
    p->room = SIZE_MAX / 2;
    p->read_max = 3;
    p->ws = mk_ws_open(f->worker, &f->settings, &(struct mk_ws_negotiated){0}, 7, p, &peer_ops, p);
    if (!p->ws) {
        test_free(p);
        return -ENOMEM;
    }
    feed_frame(p, 0x01, "frag", 4);
    feed_frame(p, 0x80, "ments", 5);
    feed_frame(p, 0x89, "?", 1);
    run(p, MK_TUNNEL_READ | MK_TUNNEL_WRITE);
    bool complete = strstr(f->log, "fragments") && strstr(f->log, "ping");
    disconnect(p);
    f->log[0] = '\0';
    return complete ? 0 : -ENOMEM;
}

TEST(without_memory)
{
    struct fixture f;
    fixture_open(&f);
    assert_true(mk_test_failing_allocs(talk, &f) > 5);
    fixture_close(&f);
}
