// SPDX-License-Identifier: Apache-2.0
/* Output of WebSockets: frames in one write, queues, back-pressure, and limits. */
#include "fixture.h"

static void answer_thrice(struct peer *p)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "abc", 3), 0);
}

TEST(frames_of_a_turn_are_one_write)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    p->then = answer_thrice;
    feed_text(p, "1");
    feed_text(p, "2");
    run(p, MK_TUNNEL_READ);
    assert_sent_text(p, "\x81\x03"
                        "abc\x81\x03"
                        "abc\x81\x03"
                        "abc\x81\x03"
                        "abc\x81\x03"
                        "abc\x81\x03"
                        "abc");
    assert_int_equal(p->writes, 1);
    disconnect(p);
    f.log[0] = '\0';
    fixture_close(&f);
}

TEST(every_length)
{
    static const size_t lengths[] = {0, 1, 125, 126, 127, 4096, 4097, 65535, 65536, 65537, 200000};
    static char data[200000];
    struct fixture f;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7);
    fixture_open(&f);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct peer *p = connect_plain(&f);
        struct mk__ws_head head;
        const char *reason;
        assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, lengths[i]), 0);
        int size =
            mk__ws_head_parse(p->out, p->out_len, &(struct mk__ws_rules){.frame_max = UINT64_MAX}, &head, &reason);
        assert_true(size > 0);
        assert_int_equal(head.len, lengths[i]);
        assert_int_equal(head.opcode, MK_WS_BINARY);
        assert_int_equal(p->out_len, (size_t)size + lengths[i]);
        assert_memory_equal(p->out + size, data, lengths[i]);
        disconnect(p);
        f.log[0] = '\0';
    }
    fixture_close(&f);
}

/* A peer that takes a few bytes at a time gets everything, in order. */
TEST(a_slow_peer)
{
    struct fixture f;
    char expected[4096];
    size_t n = 0;
    for (size_t room = 1; room < 30; room++) {
        fixture_open(&f);
        struct peer *p = connect_plain(&f);
        p->room = room;
        n = 0;
        for (int i = 0; i < 20; i++) {
            char text[16];
            int len = snprintf(text, sizeof(text), "message %d", i);
            assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, text, (size_t)len), 0);
            n += (size_t)snprintf(expected + n, sizeof(expected) - n, "\x81%c%s", len, text);
        }
        assert_int_equal(mk_ws_queued_bytes(p->ws), n - room);
        for (int i = 0; i < 1000 && mk_ws_queued_bytes(p->ws); i++) {
            p->room = room;
            run(p, MK_TUNNEL_WRITE);
        }
        assert_sent(p, expected, n);
        assert_null(p->ws->queue);
        disconnect(p);
        f.log[0] = '\0';
        fixture_close(&f);
    }
}

TEST(back_pressure)
{
    static char data[40000];
    struct fixture f;
    fixture_open(&f);
    f.settings.queue_bytes_max = 100000;
    f.settings.overflow = MK_WS_OVERFLOW_DROP;
    struct peer *p = connect_plain(&f);
    p->room = 10;
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, sizeof(data)), 0);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, sizeof(data)), MK_AGAIN);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, sizeof(data)), -ENOBUFS);
    p->room = 50000;
    run(p, MK_TUNNEL_WRITE);
    assert_logged(&f, "");
    p->room = 50000;
    run(p, MK_TUNNEL_WRITE);
    assert_logged(&f, "writable\n");
    run(p, MK_TUNNEL_WRITE);
    assert_logged(&f, ""); /* once */
    assert_int_equal(p->out_len, 2 * (sizeof(data) + 4));
    f.settings.overflow = MK_WS_OVERFLOW_CLOSE;
    p->room = 0;
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, sizeof(data)), 0);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, sizeof(data)), MK_AGAIN);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, sizeof(data)), -ENOBUFS);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, "", 0), -EPIPE);
    disconnect(p);
    f.log[0] = '\0';
    fixture_close(&f);
}

/* A message that is larger than the queue may become is sent, if nothing waits. */
TEST(one_large_message)
{
    static char data[200000];
    struct fixture f;
    fixture_open(&f);
    f.settings.queue_bytes_max = 1000;
    struct peer *p = connect_plain(&f);
    p->room = 10;
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, sizeof(data)), MK_AGAIN);
    p->room = SIZE_MAX / 2;
    run(p, MK_TUNNEL_WRITE);
    assert_int_equal(p->out_len, sizeof(data) + 10);
    disconnect(p);
    f.log[0] = '\0';
    fixture_close(&f);
}

TEST(arguments)
{
    static char data[126];
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    assert_int_equal(mk_ws_send(p->ws, (enum mk_ws_opcode)0, "", 0), -EINVAL);
    assert_int_equal(mk_ws_send(p->ws, (enum mk_ws_opcode)8, "", 0), -EINVAL);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_PING, data, 126), -EMSGSIZE);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, 64 * 1024 * 1024 + 1), -EMSGSIZE);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_PING, "x", 1), 0);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_PONG, "", 0), 0);
    assert_sent_text(p, "\x89\x01x\x8a\x00");
    disconnect(p);
    f.log[0] = '\0';
    fixture_close(&f);
}

TEST(clients_mask)
{
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_as(&f, &(struct mk_ws_negotiated){.is_client = true}, 1);
    uint32_t keys[2];
    for (int i = 0; i < 2; i++) {
        struct mk__ws_head head;
        const char *reason;
        char text[5];
        assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "hello", 5), 0);
        assert_int_equal(mk__ws_head_parse(p->out + p->out_at, p->out_len - p->out_at,
                                           &(struct mk__ws_rules){.masked = true, .frame_max = 100}, &head, &reason),
                         6);
        mk__ws_mask(text, p->out + p->out_at + 6, 5, head.key, 0);
        assert_memory_equal(text, "hello", 5);
        keys[i] = head.key;
        p->out_at = p->out_len;
    }
    assert_int_not_equal(keys[0], keys[1]);
    feed(p, "\x81\x02hi\x81\x82\0\0\0\0no", 12); /* servers do not */
    run(p, MK_TUNNEL_READ);
    assert_non_null(strstr(f.log, "text \"hi\"\nclose 1002"));
    disconnect(p);
    f.log[0] = '\0';
    fixture_close(&f);
}

static struct fixture *failing;

static int send_queued(void *ctx)
{
    struct peer *p = ctx;
    p->room = 1;
    int err = mk_ws_send(p->ws, MK_WS_BINARY, "0123456789", 10);
    if (!err)
        err = mk_ws_send(p->ws, MK_WS_BINARY, "0123456789", 10);
    p->room = 1000;
    run(p, MK_TUNNEL_WRITE);
    if (!p->ws) { /* a frame was cut: the WebSocket cannot continue */
        p->ended = false;
        p->ws = mk_ws_open(failing->worker, &failing->settings, &(struct mk_ws_negotiated){0}, -1, p, &peer_ops, p);
        return p->ws ? -ENOMEM : -1;
    }
    return err;
}

TEST(without_memory)
{
    struct fixture f;
    fixture_open(&f);
    failing = &f;
    struct peer *p = connect_plain(&f);
    assert_true(mk_test_failing_allocs(send_queued, p) >= 3);
    disconnect(p);
    f.log[0] = '\0';
    fixture_close(&f);
}

/* What waits for a peer that does not read takes about as much memory as it has bytes, and few writes. */
TEST(small_frames_share_blocks)
{
    enum { PINGS = 9000 };
    struct fixture f;
    fixture_open(&f);
    f.settings.handlers.on_ping = NULL;
    f.settings.queue_bytes_max = 2 * PINGS;
    f.settings.overflow = MK_WS_OVERFLOW_DROP;
    struct peer *p = connect_plain(&f);
    size_t before = f.fixture.account.bytes;
    p->room = 0;
    assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "", 0), 0);
    for (int i = 0; i < PINGS; i++)
        feed_frame(p, 0x89, "", 0);
    run(p, MK_TUNNEL_READ);
    size_t queued = mk_ws_queued_bytes(p->ws);
    assert_true(queued > 2 * PINGS - 20 && queued <= 2 * PINGS);
    assert_true(f.fixture.account.bytes - before < 3 * PINGS);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, "more", 4), -ENOBUFS);
    unsigned writes = p->writes;
    p->room = SIZE_MAX / 2;
    run(p, MK_TUNNEL_WRITE);
    assert_int_equal(p->out_len, mk_ws_queued_bytes(p->ws) + queued);
    assert_true(p->writes - writes < 20);
    disconnect(p);
    fixture_close(&f);
}

/* Small and large messages, and broadcasts between them, arrive in order. */
TEST(the_order_of_what_waits)
{
    static char large[3000];
    struct fixture f;
    fixture_open(&f);
    struct peer *p = connect_plain(&f);
    p->room = 1;
    memset(large, 'l', sizeof(large));
    for (int i = 0; i < 50; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%04d", i);
        assert_int_equal(mk_ws_send(p->ws, MK_WS_TEXT, text, 4), 0);
        if (i % 10 == 4)
            assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, large, sizeof(large)), 0);
        if (i % 10 == 7) {
            assert_int_equal(mk_ws_broadcast(f.group, MK_WS_ALL_CHANNELS, MK_WS_TEXT, "all", 3, NULL), 0);
            mk__ws_deliver(&f.worker->event, 0);
        }
    }
    while (p->ws->queue) {
        p->room = 7;
        run(p, MK_TUNNEL_WRITE);
    }
    const char *at = p->out;
    for (int i = 0; i < 50; i++) {
        char text[16];
        snprintf(text, sizeof(text), "\x81\x04%04d", i);
        assert_memory_equal(at, text, 6);
        at += 6;
        if (i % 10 == 4) {
            assert_memory_equal(at, "\x82\x7e\x0b\xb8", 4);
            assert_memory_equal(at + 4, large, sizeof(large));
            at += 4 + sizeof(large);
        }
        if (i % 10 == 7) {
            assert_memory_equal(at,
                                "\x81\x03"
                                "all",
                                5);
            at += 5;
        }
    }
    assert_int_equal(at - p->out, p->out_len);
    disconnect(p);
    fixture_close(&f);
}
