// SPDX-License-Identifier: Apache-2.0
/* Connections that end for what their clients do: what a frame or a head may have, and what the log says. */
#include "http/h2_fixture.h"
#include "log_pipe.h"

#include "base/log.h"
#include "http/h2/h2.h"

static struct mk__h2_settings own;

/* A client from 192.0.2.7. */
static struct mk_test_h2 come(void)
{
    struct mk_test_h2 t = h2_connect();
    struct mk__peer *peer = &mk_test_connection(t.end)->handle.peer;
    assert_int_equal(mk_address_parse(MK_STR("192.0.2.7"), &peer->address), 0);
    return t;
}

static struct mk_test_h2 begin(void)
{
    open_fixture(NULL);
    own = *w.settings.h2;
    w.settings.h2 = &own;
    w.settings.limits.timeout_ms[MK__TIMEOUT_HEAD] = w.settings.limits.timeout_ms[MK__TIMEOUT_SEND] = 1000000;
    return come();
}

/* ── what one head or frame may have ── */

/* A head in so many frames. */
static void send_head(struct mk_test_h2 *t, int32_t id, unsigned frames)
{
    struct mk_test_bytes block = h2_encode(HEAD("GET", "/"));
    for (unsigned i = 0; i < frames; i++) {
        bool last = i + 1 == frames;
        h2_frame(t, i ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
                 (uint8_t)((i ? 0 : END_STREAM) | (last ? END_HEADERS : 0)), id,
                 mk_str(block.p + i, last ? block.len - i : 1));
    }
    free(block.p);
}

TEST(continuations)
{
    static const int64_t limits[] = {0, 1, 8, 20};
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct mk_test_h2 t = begin();
        own.continuations_max = limits[i];
        for (int32_t id = 1; id < 7; id += 2) { /* they are counted for each head */
            send_head(&t, id, 1 + (unsigned)limits[i]);
            h2_expect(&t, "?:200,content-length=5 ?:\"hello\"!");
        }
        send_head(&t, 7, 2 + (unsigned)limits[i]);
        h2_expect(&t, "*GOAWAY(*,11)");
        h2_close(&t);
    }
}

/* Also for connections that were open before. */
TEST(continuations_after_a_reload)
{
    static struct mk__h2_settings other;
    for (int64_t before = 2; before <= 200; before += 198) {
        struct mk_test_h2 t = begin();
        own.continuations_max = before;
        send_head(&t, 1, 3);
        h2_expect(&t, HELLO_OF(1));
        other = own;
        other.continuations_max = 10;
        w.settings.h2 = &other;
        send_head(&t, 3, 11);
        h2_expect(&t, HELLO_OF(3));
        send_head(&t, 5, 12);
        h2_expect(&t, "*GOAWAY(*,11)");
        h2_close(&t);
    }
}

TEST(rows_of_settings)
{
    static const size_t counts[] = {MK__H2_SETTINGS_ENTRIES_MAX, MK__H2_SETTINGS_ENTRIES_MAX + 1, 2700};
    static char rows[6 * 2700];
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct mk_test_h2 t = begin();
        h2_frame(&t, NGHTTP2_SETTINGS, 0, 0, mk_str(rows, 6 * counts[i]));
        h2_expect(&t, counts[i] == MK__H2_SETTINGS_ENTRIES_MAX ? "ACK" : "*GOAWAY(*,11)");
        h2_close(&t);
    }
}

/* Fields of so many bytes in all, as RFC 7541 does not count them: without their 32. */
static void send_fields(struct mk_test_h2 *t, size_t bytes)
{
    static char fields[300000];
    size_t n = (size_t)snprintf(fields, sizeof(fields), "%s", HEAD("GET", "/"));
    size_t spent = strlen(":methodGET:schemehttp:path/:authorityh");
    while (spent < bytes) {
        size_t len = bytes - spent < 8000 ? bytes - spent : 8000;
        n += (size_t)snprintf(fields + n, sizeof(fields) - n, "|x %0*u", (int)len - 1, 0);
        spent += len;
    }
    struct mk_test_bytes block = h2_encode(fields);
    for (size_t at = 0; at < block.len; at += 16384) {
        size_t left = block.len - at, len = left < 16384 ? left : 16384;
        h2_frame(t, at ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
                 (uint8_t)((at ? 0 : END_STREAM) | (left == len ? END_HEADERS : 0)), 1, mk_str(block.p + at, len));
    }
    free(block.p);
}

/* Four times MaxHeadSize, and 64K. */
TEST(bombs)
{
    static const uint32_t sizes[] = {1000, 4096, 30000};
    for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
        struct mk_test_h2 t = begin();
        own.continuations_max = 100;
        w.settings.head.head_bytes_max = sizes[i / 2];
        send_fields(&t, 4 * sizes[i / 2] + 65536 + i % 2);
        h2_expect(&t, i % 2 ? "*GOAWAY(*,11)" : "1:431*!");
        h2_close(&t);
    }
}

/* ── resets that are provoked: CVE-2025-8671 ── */

TEST(made_you_reset)
{
    static const struct {
        uint8_t type, flags;
        struct mk_str payload;
        unsigned error;
    } cases[] = {
        {NGHTTP2_WINDOW_UPDATE, 0, MK_STR("\0\0\0\0"), 1},
        {NGHTTP2_WINDOW_UPDATE, 0, MK_STR("\x7f\xff\xff\xff"), 3},
        {NGHTTP2_DATA, 0, MK_STR("x"), 5},                                  /* behind END_STREAM */
        {NGHTTP2_HEADERS, END_HEADERS | END_STREAM, MK_STR("\0\1x\1y"), 5}, /* the same */
        {NGHTTP2_PRIORITY, 0, MK_STR("\0\0\0\0\20"), 1},                    /* of itself */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = begin();
        own.rates_max[MK__H2_FLOOD_STREAM_ERROR] = 20;
        w.handler = remember;
        for (int32_t n = 0; n <= 20; n++) {
            char payload[8], heard[32];
            memcpy(payload, cases[i].payload.p, cases[i].payload.len);
            if (cases[i].type == NGHTTP2_PRIORITY)
                h2_put32((uint8_t *)payload, (uint32_t)(2 * n + 1));
            h2_get_path(&t, 2 * n + 1, "/");
            h2_frame(&t, cases[i].type, cases[i].flags, 2 * n + 1, mk_str(payload, cases[i].payload.len));
            if (n < 20)
                snprintf(heard, sizeof(heard), "%d:RST(%u)", 2 * n + 1, cases[i].error);
            else
                snprintf(heard, sizeof(heard), "*GOAWAY(%d,11)", 2 * n + 1);
            h2_expect(&t, heard);
            assert_int_equal(w.requests, n + 1);
            assert_int_equal(w.aborted, n + 1);
        }
        h2_close(&t);
    }
}

/* ── frames without content: CVE-2019-9518 ── */

TEST(empty_data)
{
    static handler_fn *const readers[] = {remember, read_all, pause_body, collect};
    static const struct mk_str payloads[] = {MK_STR(""), MK_STR("\0"), MK_STR("\x0a\0\0\0\0\0\0\0\0\0\0")};
    for (size_t i = 0; i < COUNT(readers) * COUNT(payloads); i++) {
        struct mk_str payload = payloads[i % COUNT(payloads)];
        struct mk_test_h2 t = begin();
        own.rates_max[MK__H2_FLOOD_EMPTY] = 20;
        w.handler = readers[i / COUNT(payloads)];
        h2_post(&t, 1);
        for (unsigned n = 0; n < 20; n++)
            h2_frame(&t, NGHTTP2_DATA, payload.len ? NGHTTP2_FLAG_PADDED : 0, 1, payload);
        h2_expect(&t, "");
        h2_frame(&t, NGHTTP2_DATA, payload.len ? NGHTTP2_FLAG_PADDED : 0, 1, payload);
        h2_expect(&t, "GOAWAY(1,11)");
        h2_close(&t);
    }
}

/* ── frames for streams that have ended ── */

/* One for each may have been on its way. */
TEST(frames_for_closed_streams)
{
    for (int resets = 0; resets < 2; resets++) {
        struct mk_test_h2 t = begin();
        own.rates_max[MK__H2_FLOOD_WINDOW_UPDATE] = 5;
        for (int32_t id = 1; id < 200; id += 2) {
            h2_get_path(&t, id, "/");
            h2_expect(&t, "?*:200*!");
            resets ? h2_rst(&t, id) : h2_window(&t, id, 1000);
            h2_expect(&t, "");
        }
        unsigned earned = resets ? 0 : 100 * 5 / (MK__H2_WINDOW_UPDATE_MIN / 2); /* by the bytes of the answers */
        for (unsigned i = 0; i < 5 + earned; i++)
            resets ? h2_rst(&t, 1) : h2_window(&t, 1, 1000);
        h2_expect(&t, "");
        resets ? h2_rst(&t, 1) : h2_window(&t, 1, 1000);
        h2_expect(&t, "GOAWAY(199,11)");
        h2_close(&t);
    }
}

/* ── high limits ── */

TEST(limits_may_be_high)
{
    struct mk_test_h2 t = begin();
    h2_free(&t);
    own.rates_max[MK__H2_FLOOD_PING] = own.rates_max[MK__H2_FLOOD_RESET] = own.rates_max[MK__H2_FLOOD_WINDOW_UPDATE] =
        5000;
    t = come();
    for (int32_t i = 0; i < 3000; i++)
        h2_ping(&t, false);
    mk_test_settle(&w);
    size_t before = w.account.bytes;
    w.handler = remember;
    for (int32_t i = 0; i < 3000; i++) {
        h2_get_path(&t, 2 * i + 1, "/");
        h2_rst(&t, 2 * i + 1);
    }
    mk_test_settle(&w);
    assert_true(w.account.bytes < before + 32 * 1024);
    assert_string_equal(mk_test_state(t.end), "idle");
    w.handler = NULL;
    h2_get_path(&t, 9999, "/");
    h2_expect(&t, "*" HELLO_OF(9999));
    h2_close(&t);
}

/* ── whose fault it is ── */

static void end_with_trailers(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_trailer(req, MK_STR("x-a"), MK_STR("b"));
    mk_response_write(req, MK_STR("hello"));
    mk_response_end(req);
}

/* Memory that fails at any place of an exchange: a stream may end for that, but the client has done nothing wrong. */
TEST(our_own_failures)
{
    unsigned refused = 0, broken = 0;
    bool fails = true;
    for (long n = 0; fails; n++) {
        struct mk_test_h2 t = begin();
        own.rates_max[MK__H2_FLOOD_STREAM_ERROR] = 0;
        w.handler = end_with_trailers;
        mk__alloc_countdown = n;
        h2_get_path(&t, 1, "/");
        mk_test_settle(&w);
        fails = mk__alloc_countdown < 0;
        mk__alloc_countdown = -1;
        h2_listen(&t);
        h2_log_run(&t, false);
        assert_null(strstr(t.log.p, "GOAWAY(1,11)"));
        refused += strcmp(t.log.p, " 1:RST(2)") == 0;
        broken += strncmp(t.log.p, " 1:200", 6) == 0 && strstr(t.log.p, " 1:RST(2)");
        h2_close(&t);
    }
    assert_true(refused > 0);
    assert_int_equal(broken, 0); /* a response that has begun needs no more memory */
}

/* ── what the log says ── */

/* All that the log has since the last time, without the time. */
#define expect_logged(pattern) \
    do { \
        char logged_[4096]; \
        ssize_t n_ = read(mk_test_log_ends[0], logged_, sizeof(logged_) - 1); \
        logged_[n_ > 0 ? n_ : 0] = '\0'; \
        const char *line_ = n_ > 25 ? logged_ + 25 : logged_; \
        if (fnmatch(pattern, line_, 0) != 0) \
            fail_msg("logged \"%s\", not \"%s\"", line_, pattern); \
    } while (0)

/* A client connects, sends one PING too many, and is disconnected. */
static void ping_too_often(void)
{
    struct mk_test_h2 t = come();
    for (int64_t i = 0; i <= own.rates_max[MK__H2_FLOOD_PING]; i++)
        h2_ping(&t, false);
    h2_expect(&t, "*GOAWAY(*,11)");
    h2_free(&t);
}

TEST(the_first_is_logged, mk_test_log_open, mk_test_log_close)
{
    struct mk_test_h2 t = begin();
    own.rates_max[MK__H2_FLOOD_PING] = 5;
    ping_too_often();
    expect_logged("warn  HTTP/2 connection closed: more than 5 PING frames within 10 s (MaxPings of "
                  "\\[HTTP2\\]: raise it if this is an honest client), peer: 192.0.2.7\n");
    send_head(&t, 1, 10); /* other counters are independent of it */
    mk_test_settle(&w);
    expect_logged(
        "warn  * more than 8 CONTINUATION frames of one head (MaxContinuations of \\[HTTP2\\]: *), peer: 192.0.2.7\n");
    own.continuations_max = 100;
    struct mk_test_h2 other = come();
    send_fields(&other, 200000);
    mk_test_settle(&w);
    expect_logged(
        "* more than 81920 bytes of decompressed header fields in one head (MaxHeadSize of \\[SERVER\\]: *)*\n");
    h2_free(&other);
    h2_close(&t);
    expect_logged("info  HTTP/2 connections closed by this worker: 1 for MaxPings, 1 for MaxContinuations, "
                  "1 for MaxHeadSize\n");
}

TEST(one_line_in_ten_seconds, mk_test_log_open, mk_test_log_close)
{
    struct mk_test_h2 t = begin();
    ping_too_often();
    expect_logged("*MaxPings*client), peer: 192.0.2.7\n");
    for (unsigned i = 0; i < 3; i++)
        ping_too_often();
    expect_logged("");
    mk_test_pass(&w, MK__LOG_REPEAT_MS);
    ping_too_often();
    expect_logged("*MaxPings*client); 3 more since the last such line, 5 in total in this worker, peer: *\n");
    mk_test_pass(&w, MK__LOG_REPEAT_MS);
    ping_too_often();
    expect_logged("*MaxPings*client); 0 more since the last such line, 6 in total in this worker, peer: *\n");
    ping_too_often();
    struct mk__context_buffers none = {0};
    mk__http_apply_settings(&w.http, w.http.settings, &none); /* a reload */
    expect_logged("info  *: 7 for MaxPings\n");
    h2_close(&t);
    expect_logged("info  *: 7 for MaxPings\n");
}

/* For these there is nothing to raise. */
TEST(unneeded_frames, mk_test_log_open, mk_test_log_close)
{
    static char rows[6 * (MK__H2_SETTINGS_ENTRIES_MAX + 1)];
    struct mk_test_h2 t = begin();
    h2_frame(&t, NGHTTP2_SETTINGS, 0, 0, mk_str(rows, sizeof(rows)));
    mk_test_settle(&w);
    expect_logged("*more than 32 entries in one SETTINGS frame, peer: 192.0.2.7\n");
    h2_close(&t);
    expect_logged("*1 for entries in one SETTINGS frame\n");
}

/* Never too many within ten seconds, but no answer is ever taken. */
TEST(answers_that_are_not_taken, mk_test_log_open, mk_test_log_close)
{
    struct mk_test_h2 t = begin();
    own.rates_max[MK__H2_FLOOD_PING] = 50;
    own.rates_max[MK__H2_FLOOD_SETTINGS] = 10;
    struct mk_test_h2 deaf = come();
    deaf.end->room = 0;
    for (unsigned round = 0; !mk__h2_is_terminated(mk__h2_of(mk_test_connection(deaf.end))); round++) {
        assert_true(round < 10);
        for (unsigned i = 0; i < 50; i++)
            h2_ping(&deaf, false);
        mk_test_pass(&w, MK__H2_FLOOD_INTERVAL_MS);
    }
    expect_logged("*more than 61 unread acknowledgements of PING and SETTINGS frames, peer: *\n");
    h2_free(&deaf);
    h2_close(&t);
    expect_logged("*");
}

/* The limits of PING and SETTINGS may allow more than there is room for: the queue with its GOAWAY is sent at once. */
TEST(a_full_queue, mk_test_log_open, mk_test_log_close)
{
    struct mk_test_h2 t = begin();
    own.rates_max[MK__H2_FLOOD_PING] = MK__H2_OUT_BYTES;
    struct mk_test_h2 deaf = come();
    deaf.end->room = 0;
    for (unsigned i = 0; i < 2 * MK__H2_OUT_BYTES / 17; i++)
        h2_ping(&deaf, false);
    mk_test_settle(&w);
    expect_logged("*unread acknowledgements of PING and SETTINGS frames, peer: *\n");
    mk_test_take(deaf.end, 2 * MK__H2_OUT_BYTES);
    h2_expect(&deaf, "PONG*PONG GOAWAY(0,11)");
    h2_free(&deaf);
    h2_close(&t);
    expect_logged("*");
}

/* ── streams ── */

/* Asks for so much more than its windows allow. */
static void ask_for(struct mk_test_h2 *t, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++)
        h2_get_path(t, (int32_t)(2 * i + 1), "/1000000");
    h2_expect(t, "*");
}

TEST(streams_that_are_not_read, mk_test_log_open, mk_test_log_close)
{
    for (int deaf = 0; deaf < 2; deaf++) {
        struct mk_test_h2 t = begin();
        w.handler = h2_give;
        w.settings.limits.timeout_ms[MK__TIMEOUT_SEND] = 5000;
        if (deaf)
            t.end->room = 0;
        ask_for(&t, 0, 90);
        mk_test_pass(&w, 4999);
        expect_logged("");
        mk_test_pass(&w, 1);
        expect_logged("warn  HTTP/2 response aborted: more than 5000 ms without progress (SendTimeout "
                      "of \\[SERVER\\]: raise it if this is an honest client), peer: 192.0.2.7\n");
        assert_int_equal(w.aborted, 90);
        assert_string_equal(mk_test_state(t.end), deaf ? "closed" : "idle");
        h2_close(&t);
        expect_logged("info  HTTP/2 requests refused or aborted by this worker: 90 for SendTimeout\n");
    }
}

/* A client that may not know how many it may have, and one that does. */
TEST(more_streams_than_there_may_be, mk_test_log_open, mk_test_log_close)
{
    struct mk_test_h2 t = begin();
    own.streams_max = 5;
    w.handler = h2_give;
    struct mk_test_h2 hasty = h2_begin(mk_test_connect(&w, MK_STR("")));
    ask_for(&hasty, 0, 5);
    expect_logged("");
    for (int32_t id = 11; id < 17; id += 2)
        h2_get_path(&hasty, id, "/1000000");
    h2_expect(&hasty, "11:RST(7) 13:RST(7) 15:RST(7)");
    h2_post(&hasty, 17);
    h2_data(&hasty, 17, END_STREAM, MK_STR("was on its way"));
    h2_expect(&hasty, "17:RST(7)");
    expect_logged(
        "*HTTP/2 request refused: more than 5 concurrent requests (MaxConcurrentStreams of \\[HTTP2\\]: *)*\n");
    h2_frame(&hasty, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, MK_STR(""));
    h2_get_path(&hasty, 19, "/1000000");
    h2_expect(&hasty, "GOAWAY(*,1)");
    expect_logged("*HTTP/2 connection closed: more than 5 concurrent requests (MaxConcurrentStreams of *)*\n");
    h2_free(&hasty);
    h2_head(&t, 1, END_STREAM | END_HEADERS, ":method GET"); /* is not for their number */
    h2_expect(&t, "1:RST(1)");
    h2_close(&t);
    expect_logged("info  HTTP/2 connections closed by this worker: 1 for MaxConcurrentStreams\n*: 4 for "
                  "MaxConcurrentStreams\n");
}

TEST(stalled_streams, mk_test_log_open, mk_test_log_close)
{
    struct mk_test_h2 t = begin();
    w.handler = h2_give;
    ask_for(&t, 0, 10);
    mk_test_pass(&w, 1000);
    assert_int_equal(mk__conn_close_idle(&w.http, 5), 1);
    expect_logged("*HTTP/2 connection closed: more than 8 stalled requests while there is no room for new "
                  "connections, peer: *\n");
    assert_string_equal(mk_test_state(t.end), "closed");
    h2_close(&t);
    expect_logged("*1 for stalled requests while there is no room for new connections\n");
}

/* No connection was closed: nothing is logged. */
TEST(no_totals, mk_test_log_open, mk_test_log_close)
{
    struct mk_test_h2 t = begin();
    h2_get_path(&t, 1, "/");
    h2_expect(&t, HELLO_OF(1));
    h2_close(&t);
    expect_logged("");
}
