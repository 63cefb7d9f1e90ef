// SPDX-License-Identifier: Apache-2.0
/* HTTP/2 frames: greetings, heads in pieces, what clients must not do, and what too often. */
#include "http/h2/h2.h"
#include "http/h2_fixture.h"

#include <errno.h>

/* ── beginnings ── */

TEST(greetings)
{
    struct mk_test_h2 t = h2_open(NULL);
    assert_string_equal(mk_test_state(t.end), "new");
    h2_get_path(&t, 1, "/");
    h2_expect(&t, HELLO_OF(1));
    assert_string_equal(mk_test_state(t.end), "idle");
    assert_int_equal(w.requests, 1);
    h2_close(&t);
}

/* In pieces of any size. */
TEST(byte_by_byte)
{
    for (size_t piece = 1; piece < 100; piece = piece * 3 / 2 + 1) {
        open_fixture(read_all);
        struct mk_test_client *end = mk_test_connect(&w, MK_STR(""));
        end->read_max = piece;
        struct mk_test_h2 t = h2_begin(end);
        h2_post(&t, 1);
        h2_data(&t, 1, 0, MK_STR("abc"));
        h2_data(&t, 1, END_STREAM, MK_STR("def"));
        h2_get_path(&t, 3, "/");
        h2_expect(&t, "SETTINGS*1:\"hello\"!*3:\"hello\"!");
        h2_close(&t);
    }
}

TEST(what_does_not_begin_so)
{
    open_fixture(NULL);
    struct mk_test_client *end = mk_test_connect(&w, MK_STR(PREFACE "GET / HTTP/1.1\r\n\r\n"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(end), "linger");
    w.settings.h2 = NULL;
    end = mk_test_connect(&w, MK_STR(PREFACE));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(end), MK_STR("HTTP/1.1 505 ")));
    close_fixture();
}

/* ── heads ── */

TEST(heads_in_pieces)
{
    struct mk_test_bytes block = h2_encode(HEAD("GET", "/"));
    for (size_t pieces = 1; pieces <= 9; pieces++) {
        struct mk_test_h2 t = h2_open(NULL);
        size_t n = block.len / pieces, at = 0;
        for (size_t i = 0; i < pieces; i++, at += n) {
            bool last = i + 1 == pieces;
            h2_frame(&t, i ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
                     (uint8_t)((i ? 0 : END_STREAM) | (last ? END_HEADERS : 0)), 1,
                     mk_str(block.p + at, last ? block.len - at : n));
            mk_test_settle(&w);
        }
        h2_expect(&t, HELLO_OF(1));
        h2_close(&t);
    }
    free(block.p);
}

/* Two connections that read heads do not share a buffer. */
TEST(two_heads_at_once)
{
    struct mk_test_bytes block = h2_encode(HEAD("GET", "/"));
    struct mk_test_h2 t = h2_open(NULL), other = h2_connect();
    h2_frame(&t, NGHTTP2_HEADERS, END_STREAM, 1, mk_str(block.p, 20));
    mk_test_settle(&w);
    h2_frame(&other, NGHTTP2_HEADERS, END_STREAM, 1, mk_str(block.p, 30));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(t.end), "read_head");
    assert_string_equal(mk_test_state(other.end), "read_head");
    h2_frame(&t, NGHTTP2_CONTINUATION, END_HEADERS, 1, mk_str(block.p + 20, block.len - 20));
    h2_frame(&other, NGHTTP2_CONTINUATION, END_HEADERS, 1, mk_str(block.p + 30, block.len - 30));
    h2_expect(&t, HELLO_OF(1));
    h2_expect(&other, HELLO_OF(1));
    free(block.p);
    h2_free(&other);
    h2_close(&t);
}

/* So many fields of 100 bytes, after which the connection continues, or not. */
TEST(large_heads)
{
    static const struct {
        unsigned fields, bytes;
        const char *path, *heard;
        bool continues;
    } cases[] = {
        {15, 100, "/", HELLO_OF(1), true},
        {16, 10, "/", "1:431*!", true},           /* fields_max, with Host */
        {10, 800, "/", "1:431*!", true},          /* head_bytes_max */
        {100, 1000, "/", "*GOAWAY(*,11)", false}, /* far too large: what is that? */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static char fields[200000];
        struct mk_test_h2 t = h2_open(NULL);
        int n = snprintf(fields, sizeof(fields), ":method GET|:scheme http|:path %s|:authority h", cases[i].path);
        for (unsigned f = 0; f < cases[i].fields; f++)
            n += snprintf(fields + n, sizeof(fields) - (size_t)n, "|x%u %0*u", f, (int)cases[i].bytes, f);
        struct mk_test_bytes block = h2_encode(fields);
        for (size_t at = 0; at < block.len; at += 16384) {
            size_t left = block.len - at, len = left < 16384 ? left : 16384;
            h2_frame(&t, at ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
                     (uint8_t)((at ? 0 : END_STREAM) | (left == len ? END_HEADERS : 0)), 1, mk_str(block.p + at, len));
        }
        h2_expect(&t, cases[i].heard);
        if (cases[i].continues) {
            h2_get_path(&t, 3, "/");
            h2_expect(&t, HELLO_OF(3));
        }
        free(block.p);
        h2_close(&t);
    }
}

TEST(long_paths)
{
    static const struct {
        const char *method, *heard;
    } cases[] = {{"GET", "1:414,*content-length=* 1:*!"}, {"HEAD", "1:414,*content-length=[0-9][0-9][0-9]!"}};
    static char path[5000];
    memset(path, 'x', sizeof(path));
    path[0] = '/';
    for (size_t i = 0; i < 18; i++) {
        char fields[6000];
        size_t bytes = 900 + i / 2 * 500;
        struct mk_test_h2 t = h2_open(NULL);
        snprintf(fields, sizeof(fields), ":method %s|:scheme http|:path %.*s|:authority h", cases[i % 2].method,
                 (int)bytes, path);
        h2_head(&t, 1, END_HEADERS | END_STREAM, fields);
        h2_expect(&t, bytes >= 1000 ? cases[i % 2].heard : i % 2 ? "1:200,content-length=5!" : HELLO_OF(1));
        h2_close(&t);
    }
}

/* ── what clients must not do: RFC 9113 sections 5 and 6 ── */

enum { HEADERS_OF_A_GET = 255 }; /* instead of a type */

TEST(faults)
{
    static const struct {
        uint8_t type, flags;
        int32_t id;
        const char *payload;
        size_t len;
        const char *heard;
    } cases[] = {
        {HEADERS_OF_A_GET, 0, 2, "", 0, "GOAWAY(*,1)"},               /* our numbers */
        {HEADERS_OF_A_GET, 0, 3, "", 0, "GOAWAY(*,1)"},               /* left out before */
        {HEADERS_OF_A_GET, 0, 5, "", 0, "GOAWAY(*,5)"},               /* closed */
        {NGHTTP2_DATA, 0, 0, "x", 1, "GOAWAY(*,1)"},                  /* no stream */
        {NGHTTP2_DATA, 0, 7, "x", 1, "GOAWAY(*,1)"},                  /* idle */
        {NGHTTP2_DATA, 0, 4, "x", 1, "GOAWAY(*,1)"},                  /* one of ours, and idle */
        {NGHTTP2_DATA, 8, 5, "\5x", 2, "GOAWAY(*,[15])"},             /* more padding than there is */
        {NGHTTP2_SETTINGS, 0, 0, "x", 1, "GOAWAY(*,6)"},              /* not by six */
        {NGHTTP2_SETTINGS, 0, 1, "", 0, "GOAWAY(*,1)"},               /* of a stream */
        {NGHTTP2_SETTINGS, 0, 0, "\0\2\0\0\0\2", 6, "GOAWAY(*,1)"},   /* ENABLE_PUSH 2 */
        {NGHTTP2_SETTINGS, 0, 0, "\0\4\x80\0\0\0", 6, "GOAWAY(*,3)"}, /* a window beyond 2^31 - 1 */
        {NGHTTP2_SETTINGS, 0, 0, "\0\5\0\0\0\1", 6, "GOAWAY(*,1)"},   /* frames of one byte */
        {NGHTTP2_SETTINGS, 1, 0, "", 0, "GOAWAY(*,1)"},               /* a second acknowledgement */
        {NGHTTP2_PING, 0, 0, "x", 1, "GOAWAY(*,6)"},
        {NGHTTP2_PING, 0, 1, "12345678", 8, "GOAWAY(*,1)"},
        {NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4, "GOAWAY(*,1)"}, /* by nothing */
        {NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4, "GOAWAY(*,3)"},
        {NGHTTP2_RST_STREAM, 0, 0, "\0\0\0\0", 4, "GOAWAY(*,1)"},
        {NGHTTP2_RST_STREAM, 0, 7, "\0\0\0\0", 4, "GOAWAY(*,1)"}, /* idle */
        {NGHTTP2_RST_STREAM, 0, 5, "\0\0", 2, "GOAWAY(*,6)"},
        {NGHTTP2_PRIORITY, 0, 5, "\0\0\0", 3, "GOAWAY(*,6)"},
        {NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2", 4, "GOAWAY(*,1)"},
        {NGHTTP2_CONTINUATION, 4, 1, "", 0, "GOAWAY(*,1)"},                    /* of nothing */
        {NGHTTP2_HEADERS, 5, 7, "\xff\xff\xff\xff\xff\xff", 6, "GOAWAY(*,9)"}, /* garbled */
        {0x10, 0, 0, "\0\0\0", 3, "GOAWAY(*,6)"},                              /* PRIORITY_UPDATE */
        {0x10, 0, 1, "\0\0\0\1u=1", 7, "GOAWAY(*,1)"},
        {0x10, 0, 0, "\0\0\0\0u=1", 7, "GOAWAY(*,1)"},
        {0x10, 0, 0, "\0\0\0\2u=1", 7, "GOAWAY(*,1)"},
        {0x10, 0, 0, "\0\0\0\1u=1", 7, ""}, /* and what is none */
        {0xfa, 0xff, 77, "whatever", 8, ""},
        {NGHTTP2_PRIORITY, 0, 5, "\0\0\0\1\20", 5, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(NULL);
        h2_get_path(&t, 5, "/");
        h2_expect(&t, HELLO_OF(5));
        if (cases[i].type == HEADERS_OF_A_GET)
            h2_get_path(&t, cases[i].id, "/");
        else
            h2_frame(&t, cases[i].type, cases[i].flags, cases[i].id, mk_str(cases[i].payload, cases[i].len));
        mk_test_settle(&w);
        h2_listen(&t);
        if (fnmatch(cases[i].heard, t.log.len ? t.log.p + 1 : "", 0) != 0)
            fail_msg("case %zu: heard \"%s\"", i, t.log.p);
        assert_string_equal(mk_test_state(t.end), cases[i].heard[0] ? "linger" : "idle");
        h2_close(&t);
    }
}

/* ── what they must not do too often ── */

static void reset_again(struct mk_test_h2 *t, int32_t id)
{
    h2_get_path(t, id, "/");
    h2_rst(t, id);
}

static void provoke_again(struct mk_test_h2 *t, int32_t id) /* CVE-2025-8671 */
{
    h2_get_path(t, id, "/");
    h2_window(t, id, INT32_MAX);
}

static void settle_again(struct mk_test_h2 *t, int32_t id)
{
    (void)id;
    h2_frame(t, NGHTTP2_SETTINGS, 0, 0, MK_STR(""));
}

static void change_windows(struct mk_test_h2 *t, int32_t id)
{
    if (id == 1)
        h2_get_path(t, 1, "/");
    h2_settings(t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)id);
}

static void change_the_table(struct mk_test_h2 *t, int32_t id)
{
    (void)id;
    h2_settings(t, NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0);
}

static void ping_again(struct mk_test_h2 *t, int32_t id)
{
    (void)id;
    h2_ping(t, false);
}

static void send_nothing(struct mk_test_h2 *t, int32_t id)
{
    if (id == 1)
        h2_post(t, 1);
    h2_data(t, 1, 0, MK_STR(""));
}

static void send_nothing_where_nobody_reads(struct mk_test_h2 *t, int32_t id)
{
    if (id == 1) {
        h2_post(t, 1);
        mk_test_settle(&w);
        mk_response_end(held_req);
    }
    h2_data(t, 1, 0, MK_STR(""));
}

static void begin_with_nothing(struct mk_test_h2 *t, int32_t id)
{
    struct mk_test_bytes block = h2_encode(HEAD("POST", "/"));
    h2_frame(t, NGHTTP2_HEADERS, 0, id, MK_STR(""));
    h2_frame(t, NGHTTP2_CONTINUATION, END_HEADERS, id, mk_str(block.p, block.len));
    free(block.p);
}

static void end_with_nothing(struct mk_test_h2 *t, int32_t id)
{
    h2_head(t, id, END_STREAM, HEAD("GET", "/"));
    h2_frame(t, NGHTTP2_CONTINUATION, END_HEADERS, id, MK_STR(""));
}

static void have_no_head(struct mk_test_h2 *t, int32_t id)
{
    h2_frame(t, NGHTTP2_HEADERS, END_STREAM, id, MK_STR(""));
    h2_frame(t, NGHTTP2_CONTINUATION, END_HEADERS, id, MK_STR(""));
}

static void prioritise_again(struct mk_test_h2 *t, int32_t id)
{
    (void)id;
    h2_frame(t, NGHTTP2_PRIORITY, 0, 1, MK_STR("\0\0\0\3\20"));
}

static void update_again(struct mk_test_h2 *t, int32_t id)
{
    (void)id;
    h2_frame(t, 0x10, 0, 0, MK_STR("\0\0\0\1u=1"));
}

static void update_the_next(struct mk_test_h2 *t, int32_t id)
{
    char payload[] = "....u=0";
    h2_put32((uint8_t *)payload, (uint32_t)id);
    h2_frame(t, 0x10, 0, 0, mk_str(payload, 7));
}

static void open_a_bit(struct mk_test_h2 *t, int32_t id)
{
    (void)id;
    h2_window(t, 0, MK__H2_WINDOW_UPDATE_MIN - 1);
}

/* Each stream has one of its own; no more of them are counted as needless than are small. */
static void open_each_a_bit(struct mk_test_h2 *t, int32_t id)
{
    h2_get_path(t, id, "/");
    h2_window(t, id, 1);
}

TEST(floods)
{
    static const struct {
        void (*once)(struct mk_test_h2 *t, int32_t id);
        enum mk__h2_flood flood;
    } cases[] = {
        {reset_again, MK__H2_FLOOD_RESET},         {provoke_again, MK__H2_FLOOD_STREAM_ERROR},
        {settle_again, MK__H2_FLOOD_SETTINGS},     {change_windows, MK__H2_FLOOD_SETTINGS},
        {change_the_table, MK__H2_FLOOD_SETTINGS}, {ping_again, MK__H2_FLOOD_PING},
        {send_nothing, MK__H2_FLOOD_EMPTY},        {send_nothing_where_nobody_reads, MK__H2_FLOOD_EMPTY},
        {begin_with_nothing, MK__H2_FLOOD_EMPTY},  {end_with_nothing, MK__H2_FLOOD_EMPTY},
        {have_no_head, MK__H2_FLOOD_EMPTY},        {prioritise_again, MK__H2_FLOOD_PRIORITY},
        {update_again, MK__H2_FLOOD_PRIORITY},     {update_the_next, MK__H2_FLOOD_PRIORITY},
        {open_a_bit, MK__H2_FLOOD_WINDOW_UPDATE},  {open_each_a_bit, MK__H2_FLOOD_WINDOW_UPDATE},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk__h2_settings own = {.on = true, .streams_max = 100, .continuations_max = 8};
        for (unsigned n = 0; n < MK__H2_FLOOD_RATES; n++)
            own.rates_max[n] = n == cases[i].flood ? 20 : 1000;
        open_fixture(remember);
        w.settings.h2 = &own;
        w.settings.limits.timeout_ms[MK__TIMEOUT_IDLE] = w.settings.limits.timeout_ms[MK__TIMEOUT_HEAD] = 1000000;
        struct mk_test_h2 t = h2_connect();
        mk_test_pass(&w, MK__H2_FLOOD_INTERVAL_MS); /* the greeting does not count */
        for (int32_t round = 0; round < 2; round++) {
            for (int32_t n = 0; n < 20; n++) {
                cases[i].once(&t, 40 * round + 2 * n + 1);
                mk_test_settle(&w);
            }
            mk_test_pass(&w, round ? 0 : MK__H2_FLOOD_INTERVAL_MS);
        }
        h2_listen(&t);
        if (strstr(t.log.p, "GOAWAY"))
            fail_msg("case %zu: heard \"%s\"", i, t.log.p);
        cases[i].once(&t, 81);
        h2_expect(&t, "*GOAWAY(*,11)");
        assert_string_equal(mk_test_state(t.end), "linger");
        h2_close(&t);
    }
}

/* ── what does no harm ── */

/* Frames of unknown types (RFC 9113 section 5.5), where nothing else may come twice. */
TEST(unknown_frames)
{
    static struct mk__h2_settings own = {.on = true, .streams_max = 100};
    struct mk_test_h2 t = h2_open(NULL);
    static char payload[100];
    for (unsigned n = 0; n < MK__H2_FLOOD_RATES; n++)
        own.rates_max[n] = 1;
    w.settings.h2 = &own;
    size_t before = w.account.bytes;
    for (unsigned i = 0; i < 5000; i++)
        h2_frame(&t, 0xfa, 0xff, 1, mk_str(payload, sizeof(payload)));
    h2_expect(&t, "");
    assert_int_equal(w.account.bytes, before);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, HELLO_OF(1));
    h2_close(&t);
}

/* A head may begin with two updates of the table's size (RFC 7541 section 4.2); more of them cost no memory. */
TEST(many_table_sizes)
{
    static const struct {
        unsigned pairs;
        const char *heard;
    } heads[] = {{1, HELLO_OF(1)}, {4000, HELLO_OF(3)}, {4000, HELLO_OF(5)}};
    struct mk_test_h2 t = h2_open(NULL);
    size_t before = 0;
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct mk_test_bytes head = h2_encode(HEAD("GET", "/")), block = {0};
        for (unsigned n = 0; n < heads[i].pairs; n++)
            h2_append(&block, "\x20\x3f\xe1\x1f", 4);
        h2_append(&block, head.p, head.len);
        h2_frame(&t, NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 2 * (int32_t)i + 1, mk_str(block.p, block.len));
        free(head.p);
        free(block.p);
        h2_expect(&t, heads[i].heard);
        if (i > 0)
            assert_int_equal(w.account.bytes, before);
        before = w.account.bytes;
    }
    h2_close(&t);
}

/* ── memory ── */

/* What an idle connection keeps, after one request. */
TEST(an_idle_connection_is_small)
{
    enum { MANY = 20 };
    struct mk_test_h2 t[MANY];
    struct mk_test_h2 first = h2_open(NULL);
    h2_get_path(&first, 1, "/");
    h2_expect(&first, HELLO_OF(1));
    size_t before = w.account.bytes;
    for (int i = 0; i < MANY; i++) {
        t[i] = h2_connect();
        h2_get_path(&t[i], 1, "/");
        h2_expect(&t[i], HELLO_OF(1));
    }
    assert_true((w.account.bytes - before) / MANY <= 4 * 1024);
    for (int i = 0; i < MANY; i++)
        h2_free(&t[i]);
    mk__conn_abort_all(&w.http);
    h2_close(&first);
}

/* A field in several frames waits until it is complete, and not longer. */
TEST(a_long_field_is_forgotten)
{
    enum { VALUE_BYTES = 60000, FRAME_BYTES = 16384 };
    static const char *const expected[] = {"1:431*", "3:431*", "5:431*"};
    static char fields[VALUE_BYTES + 100];
    struct mk_test_h2 t = h2_open(NULL);
    size_t before = 0;
    snprintf(fields, sizeof(fields), HEAD("GET", "/") "|x %0*d", VALUE_BYTES, 0);
    for (int32_t id = 1; id / 2 < (int32_t)COUNT(expected); id += 2) {
        struct mk_test_bytes block = h2_encode(fields);
        for (size_t at = 0; at < block.len; at += FRAME_BYTES) {
            size_t left = block.len - at, len = left < FRAME_BYTES ? left : FRAME_BYTES;
            h2_frame(&t, at ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
                     (uint8_t)((at ? 0 : END_STREAM) | (left == len ? END_HEADERS : 0)), id, mk_str(block.p + at, len));
        }
        free(block.p);
        h2_expect(&t, expected[id / 2]);
        if (id > 1)
            assert_int_equal(w.account.bytes, before); /* the first one makes what later ones use again */
        before = w.account.bytes;
    }
    h2_close(&t);
}

/* HPACK's table does not grow with the client's wishes. */
TEST(the_table_is_limited)
{
    struct mk_test_h2 t = h2_open(NULL);
    h2_settings(&t, NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 1 << 30);
    h2_expect(&t, "ACK");
    size_t before = w.account.bytes;
    for (int32_t id = 1; id < 400; id += 2) {
        char fields[128];
        snprintf(fields, sizeof(fields), HEAD("GET", "/") "|x-%d 1", id);
        struct mk_test_bytes block = h2_encode(fields);
        for (size_t at = 0; at < block.len;
             at += 3u + (size_t)block.p[at + 1] + (size_t)block.p[at + 2 + block.p[at + 1]])
            block.p[at] = 0x40; /* to be remembered */
        h2_frame(&t, NGHTTP2_HEADERS, END_HEADERS | END_STREAM, id, mk_str(block.p, block.len));
        free(block.p);
        mk_test_settle(&w);
    }
    assert_int_equal(w.done, 200);
    assert_true(w.account.bytes < before + 32 * 1024);
    h2_listen(&t);
    h2_close(&t);
}
