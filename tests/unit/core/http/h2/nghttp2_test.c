// SPDX-License-Identifier: Apache-2.0
/*
 * A client of nghttp2 against the server, in memory: its frames, its HPACK and its flow control must agree with ours,
 * in pieces of every size.
 */
#include "http/h2_fixture.h"

#include <nghttp2/nghttp2.h>

enum { STREAMS_MAX = 100, BODY_BYTES = 300000 };

/* What the client has of a stream. */
struct heard {
    int status;
    size_t bytes, sent;
    uint32_t sum; /* of the body */
    bool closed, trailers;
    uint32_t code;
};

struct peer {
    nghttp2_session *session;
    struct mk_test_client *end;
    struct heard heard[STREAMS_MAX];
    size_t padding;
};

static uint32_t add(uint32_t sum, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 16777619u;
    return sum;
}

static struct heard *get_heard(struct peer *p, int32_t id)
{
    assert_in_range(id / 2, 0, STREAMS_MAX - 1);
    return &p->heard[id / 2];
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
    struct heard *heard = get_heard(ctx, frame->hd.stream_id);
    struct mk_str text = mk_str((const char *)name, name_len);
    uint64_t number;
    (void)session, (void)flags;
    if (mk_str_eq(text, MK_STR(":status"))) {
        assert_true(mk_str_u64(mk_str((const char *)value, value_len), 999, &number));
        heard->status = (int)number;
    }
    heard->trailers |= mk_str_eq(text, MK_STR("x-sum"));
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *ctx)
{
    struct heard *heard = get_heard(ctx, id);
    (void)session, (void)flags;
    heard->sum = add(heard->sum, data, len);
    heard->bytes += len;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    struct heard *heard = get_heard(ctx, id);
    (void)session;
    heard->closed = true;
    heard->code = code;
    return 0;
}

static ssize_t select_padding(nghttp2_session *session, const nghttp2_frame *frame, size_t max, void *ctx)
{
    const struct peer *p = ctx;
    size_t padded = frame->hd.length + p->padding;
    (void)session;
    return (ssize_t)(padded < max ? padded : max);
}

/* The body of a request: BODY_BYTES, each of which tells its place. */
static ssize_t give_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size, uint32_t *flags,
                         nghttp2_data_source *source, void *ctx)
{
    struct heard *heard = get_heard(ctx, id);
    size_t n = BODY_BYTES - heard->sent < size ? BODY_BYTES - heard->sent : size;
    (void)session, (void)source;
    for (size_t i = 0; i < n; i++)
        buf[i] = (uint8_t)mk_test_byte(heard->sent + i);
    heard->sent += n;
    if (heard->sent == BODY_BYTES)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void begin_peer(struct peer *p, size_t read_max)
{
    nghttp2_session_callbacks *callbacks;
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 100},
                                                      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 70000}};
    *p = (struct peer){.end = mk_test_connect(&w, MK_STR(""))};
    p->end->read_max = read_max;
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_select_padding_callback(callbacks, select_padding);
    assert_int_equal(nghttp2_session_client_new(&p->session, callbacks, p), 0);
    nghttp2_session_callbacks_del(callbacks);
    assert_int_equal(nghttp2_submit_settings(p->session, 0, settings, 2), 0);
}

static void end_peer(struct peer *p)
{
    nghttp2_session_del(p->session);
    close_fixture();
}

/* Passes bytes in both directions until there are none. */
static void exchange(struct peer *p)
{
    for (bool moved = true; moved;) {
        const uint8_t *out;
        ssize_t n;
        moved = false;
        while ((n = nghttp2_session_mem_send(p->session, &out)) > 0) {
            mk_test_send(p->end, mk_str((const char *)out, (size_t)n));
            moved = true;
        }
        assert_int_equal(n, 0);
        mk_test_settle(&w);
        struct mk_str in = mk_test_received(p->end);
        moved |= in.len > 0;
        assert_int_equal(nghttp2_session_mem_recv(p->session, (const uint8_t *)in.p, in.len), in.len);
    }
}

#define NV(name, value) \
    { \
        (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), 0 \
    }

static int32_t ask(struct peer *p, const char *method, const char *path)
{
    const nghttp2_nv nv[] = {NV(":method", method),
                             NV(":scheme", "http"),
                             NV(":path", path),
                             NV(":authority", "h"),
                             NV("user-agent", "nghttp2"),
                             NV("accept", "*/*"),
                             NV("x-long",
                                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")};
    const nghttp2_data_provider upload = {.read_callback = give_body};
    const nghttp2_data_provider *provider = strcmp(method, "POST") == 0 ? &upload : NULL;
    int32_t id = nghttp2_submit_request(p->session, NULL, nv, COUNT(nv), provider, NULL);
    assert_true(id > 0);
    return id;
}

static uint32_t sum_pattern(size_t bytes)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes; i++) {
        char byte = mk_test_byte(i);
        sum = add(sum, &byte, 1);
    }
    return sum;
}

/* ── the server's side ── */

static uint32_t received_sum;
static size_t received_bytes;

static void on_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)ctx;
    received_sum = add(received_sum, piece.p, piece.len);
    received_bytes += piece.len;
    if (!end)
        return;
    mk_response_trailer(req, MK_STR("x-sum"), MK_STR("1"));
    mk_response_write(req, MK_STR("hello"));
    mk_response_end(req);
}

static void serve(struct mk_request *req, struct mk_test_fixture *fixture)
{
    if (mk_request_method(req) == MK_POST)
        mk_request_read(req, on_piece, NULL);
    else
        h2_give(req, fixture);
}

static void start(struct peer *p, size_t read_max)
{
    open_fixture(serve);
    w.settings.limits.body_bytes_max = 1 << 30;
    begin_peer(p, read_max);
    received_sum = 0;
    received_bytes = 0;
}

/* ── tests ── */

/* Many responses at once, each larger than the windows, several times, so that the tables come to be full. */
TEST(responses)
{
    static struct peer p;
    start(&p, SIZE_MAX);
    for (int round = 0; round < 3; round++) {
        int32_t ids[20];
        for (size_t i = 0; i < COUNT(ids); i++)
            ids[i] = ask(&p, "GET", i % 2 ? "/100000" : "/13");
        exchange(&p);
        for (size_t i = 0; i < COUNT(ids); i++) {
            const struct heard *heard = get_heard(&p, ids[i]);
            size_t bytes = i % 2 ? 100000 : 13;
            assert_int_equal(heard->status, 200);
            assert_int_equal(heard->bytes, bytes);
            assert_int_equal(heard->sum, sum_pattern(bytes));
            assert_true(heard->closed && heard->code == 0);
        }
    }
    end_peer(&p);
}

/* Bodies with padding, whose windows we have to open again and again; in pieces. */
TEST(bodies)
{
    static const struct {
        size_t padding, read_max;
    } cases[] = {{0, SIZE_MAX}, {1, 1000}, {200, SIZE_MAX}, {255, 4099}, {7, 17}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct peer p;
        start(&p, cases[i].read_max);
        p.padding = cases[i].padding;
        int32_t id = ask(&p, "POST", "/");
        exchange(&p);
        assert_int_equal(received_bytes, BODY_BYTES);
        assert_int_equal(received_sum, sum_pattern(BODY_BYTES));
        assert_int_equal(get_heard(&p, id)->status, 200);
        assert_true(get_heard(&p, id)->trailers && get_heard(&p, id)->closed);
        end_peer(&p);
    }
}

/* Windows, tables and resets that change in the middle. */
TEST(changes)
{
    static struct peer p;
    start(&p, SIZE_MAX);
    static const uint32_t windows[] = {0, 1000, 100000, 65535}, tables[] = {0, 4096, 60, 512};
    for (size_t i = 0; i < COUNT(windows); i++) {
        int32_t large = ask(&p, "GET", "/200000"), reset = ask(&p, "GET", "/900000"), small = ask(&p, "GET", "/13");
        const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, windows[i]},
                                                   {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, tables[i]}};
        assert_int_equal(nghttp2_submit_settings(p.session, 0, settings, 2), 0);
        assert_int_equal(nghttp2_submit_ping(p.session, 0, NULL), 0);
        exchange(&p);
        nghttp2_submit_rst_stream(p.session, 0, reset, NGHTTP2_CANCEL);
        const nghttp2_settings_entry open = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};
        assert_int_equal(nghttp2_submit_settings(p.session, 0, &open, 1), 0);
        exchange(&p);
        assert_int_equal(get_heard(&p, large)->sum, sum_pattern(200000));
        assert_int_equal(get_heard(&p, small)->sum, sum_pattern(13));
        assert_true(get_heard(&p, large)->closed && get_heard(&p, small)->closed && get_heard(&p, reset)->closed);
        assert_int_equal(get_heard(&p, large)->code, 0);
    }
    end_peer(&p);
}
