// SPDX-License-Identifier: Apache-2.0
/* Requests to a backend: frames around pieces, long pieces, and what a connection does not take at once. */
#include "gateway/exchange.h"
#include "testing.h"

#include <errno.h>
#include <stdio.h>

/* A connection that takes `room` bytes. */
static char sent[1024];
static size_t sent_len, room;
static int write_err;

static ssize_t write_bytes(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    size_t before = sent_len;
    (void)io;
    (void)flags;
    for (int i = 0; i < n && room; i++) {
        size_t len = vec[i].iov_len < room ? vec[i].iov_len : room;
        memcpy(sent + sent_len, vec[i].iov_base, len);
        sent_len += len;
        room -= len;
    }
    return write_err ? write_err : sent_len > before ? (ssize_t)(sent_len - before) : -EAGAIN;
}

static int flush(struct mk_io *io)
{
    (void)io;
    return 0;
}

static const struct mk_transport transport = {.write = write_bytes, .flush = flush};
static struct mk_io io = {.transport = &transport};

static size_t begin_frame(char to[MK_GATEWAY_FRAME_BYTES], size_t len)
{
    return (size_t)snprintf(to, MK_GATEWAY_FRAME_BYTES, "<%zu>", len);
}

static const struct mk_gateway_frames frames = {.piece_max = 4,
                                                .begin = begin_frame,
                                                .piece_end = MK_STR_INIT(";"),
                                                .body_end = MK_STR_INIT("end")};

static struct mk__gw_upload begin(const struct mk_gateway_frames *of, size_t takes)
{
    struct mk__gw_upload u = {0};
    mk__gw_upload_begin(&u, MK_STR("head "), true, of);
    sent_len = 0;
    room = takes;
    write_err = 0;
    return u;
}

static void assert_sent(const char *wanted)
{
    assert_str_equal(mk_str(sent, sent_len), wanted);
}

TEST(plain_pieces)
{
    struct mk__gw_upload u = begin(NULL, sizeof(sent));
    assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("one"), false), 0);
    assert_false(mk__gw_upload_is_done(&u));
    assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("two"), true), 0);
    assert_sent("head onetwo");
    assert_true(mk__gw_upload_is_done(&u));
    assert_int_equal(u.sent_bytes, 11);
    mk__gw_upload_release(&u);
}

TEST(framed_pieces)
{
    struct mk__gw_upload u = begin(&frames, sizeof(sent));
    assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("ab"), false), 0);
    assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("0123456789"), false), 0); /* more than a frame may have */
    assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR(""), true), 0);
    assert_sent("head <2>ab;<4>0123;<4>4567;<2>89;end");
    mk__gw_upload_release(&u);
    u = begin(&frames, sizeof(sent));
    u.body_end = MK_STR("trailers");
    assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("0123"), true), 0);
    assert_sent("head <4>0123;trailers");
    mk__gw_upload_release(&u);
}

TEST(slow_connection)
{
    for (size_t step = 1; step < 8; step++) {
        struct mk__gw_upload u = begin(&frames, step);
        assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("0123456789"), false), 0);
        assert_true(mk__gw_upload_is_blocked(&u));
        assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("x"), true), 0);
        while (mk__gw_upload_is_blocked(&u)) {
            room = step;
            assert_int_equal(mk__gw_upload_flush(&u, &io), 0);
        }
        assert_sent("head <4>0123;<4>4567;<2>89;<1>x;end");
        assert_true(mk__gw_upload_is_done(&u));
        mk__gw_upload_release(&u);
    }
}

TEST(refused)
{
    struct mk__gw_upload u = begin(&frames, sizeof(sent));
    write_err = -EPIPE;
    assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("ab"), true), 0); /* a response may have come before */
    assert_true(u.is_refused && !mk__gw_upload_is_done(&u) && !mk__gw_upload_is_blocked(&u));
    mk__gw_upload_release(&u);
}

TEST(without_memory)
{
    struct mk__gw_upload u = begin(&frames, 1);
    mk__alloc_countdown = 0;
    assert_int_equal(mk__gw_upload_piece(&u, &io, MK_STR("ab"), true), -ENOMEM);
    mk__alloc_countdown = -1;
    mk__gw_upload_release(&u);
}
