// SPDX-License-Identifier: Apache-2.0
/* permessage-deflate of WebSockets: which connection has which compressor, what refers to what, and memory. */
#include "fixture.h"

#include <zlib.h>

static const struct mk_ws_negotiated no_context = {.deflate = true, .send_bits = 15, .receive_bits = 15};
static const struct mk_ws_negotiated with_context = {
    .deflate = true, .send_context = true, .receive_context = true, .send_bits = 15, .receive_bits = 15};

/* The decompressor of a peer. */
struct reader {
    z_stream z;
    bool keeps; /* its context */
    char text[20000];
    size_t n, sent; /* bytes of the last message, and of its payload */
    bool compressed;
};

static void reader_init(struct reader *r, unsigned bits, bool keeps)
{
    memset(r, 0, sizeof(*r));
    r->keeps = keeps;
    assert_int_equal(inflateInit2(&r->z, -(int)bits), Z_OK);
}

static void inflate_payload(struct reader *r, const void *payload, size_t n)
{
    unsigned char in[20000];
    memcpy(in, payload, n);
    memcpy(in + n, "\x00\x00\xff\xff", 4);
    if (!r->keeps)
        inflateReset(&r->z);
    r->z.next_in = in;
    r->z.avail_in = (unsigned)n + 4;
    r->z.next_out = (unsigned char *)r->text;
    r->z.avail_out = sizeof(r->text);
    assert_int_equal(inflate(&r->z, Z_SYNC_FLUSH), Z_OK);
    assert_int_equal(r->z.avail_in, 0);
    r->n = sizeof(r->text) - r->z.avail_out;
}

/* Reads the next message that was sent to a peer. */
static void read_message(struct reader *r, struct peer *p)
{
    const struct mk__ws_rules rules = {.rsv1 = true, .frame_max = FIXTURE_BYTES};
    struct mk__ws_head head;
    const char *reason;
    int size = mk__ws_head_parse(p->out + p->out_at, p->out_len - p->out_at, &rules, &head, &reason);
    assert_true(size > 0 && p->out_len - p->out_at >= (size_t)size + head.len && head.fin);
    const char *payload = p->out + p->out_at + size;
    r->compressed = head.rsv1;
    r->sent = head.len;
    if (head.rsv1) {
        inflate_payload(r, payload, head.len);
    } else {
        memcpy(r->text, payload, head.len);
        r->n = head.len;
    }
    p->out_at += (size_t)size + head.len;
}

#define assert_read(r, p, bytes, len) \
    do { \
        read_message(r, p); \
        assert_int_equal((r)->n, len); \
        assert_memory_equal((r)->text, bytes, len); \
    } while (0)

static char noise[8000], text[8000]; /* what cannot, and what can be compressed */

static int fill_texts(void **state)
{
    uint32_t x = 12345;
    (void)state;
    for (size_t i = 0; i < sizeof(noise); i++) {
        x = x * 1664525 + 1013904223;
        noise[i] = (char)(x >> 24);
        text[i] = (char)('a' + i % 23);
    }
    return 0;
}

static struct peer *join(struct fixture *f, const struct mk_ws_negotiated *negotiated)
{
    struct peer *p = connect_as(f, negotiated, MK_WS_ALL_CHANNELS);
    assert_logged(f, "open\n");
    return p;
}

TEST(what_is_compressed)
{
    struct fixture f;
    struct reader r;
    fixture_open(&f);
    reader_init(&r, 15, false);
    struct peer *p = join(&f, &no_context);
    static const struct {
        bool is_noise;
        size_t n;
        bool compressed;
    } rows[] = {{false, 0, false},   {false, 63, false},  {false, 64, true},
                {false, 8000, true}, {true, 8000, false}, {false, 8000, true}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *data = rows[i].is_noise ? noise : text;
        assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, data, rows[i].n), 0);
        assert_read(&r, p, data, rows[i].n);
        assert_int_equal(r.compressed, rows[i].compressed);
    }
    inflateEnd(&r.z);
    disconnect(p);
    fixture_close(&f);
}

/* Those without context share one compressor of the worker; its memory is freed with the worker. */
TEST(compressors_are_shared)
{
    enum { N = 20 };
    struct peer *peers[N];
    struct fixture f;
    struct reader r;
    fixture_open(&f);
    reader_init(&r, 15, false);
    for (int i = 0; i < N; i++)
        peers[i] = join(&f, &no_context);
    size_t one = 0, before = f.fixture.account.bytes;
    for (int i = 0; i < N; i++) {
        assert_int_equal(mk_ws_send(peers[i]->ws, MK_WS_TEXT, text, 5000), 0);
        assert_read(&r, peers[i], text, 5000);
        one = i ? one : f.fixture.account.bytes - before;
    }
    assert_true(one > 0);
    assert_int_equal(f.fixture.account.bytes, before + one);
    for (int i = 0; i < N; i++)
        disconnect(peers[i]);
    inflateEnd(&r.z);
    fixture_close(&f);
}

TEST(references_to_earlier_messages)
{
    struct fixture f;
    struct reader r;
    fixture_open(&f);
    f.settings.context_takeover = true;
    f.settings.window_bits = 15;
    reader_init(&r, 15, true);
    struct peer *p = join(&f, &with_context);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, noise, sizeof(noise)), 0);
        assert_read(&r, p, noise, sizeof(noise));
        assert_true(i ? r.sent < 500 : r.sent > 7000);
    }
    /* broadcasts are not in the context of the compressor, but in the peer's */
    assert_int_equal(mk_ws_broadcast(f.group, MK_WS_ALL_CHANNELS, MK_WS_TEXT, text, 3000, NULL), 0);
    mk__ws_deliver(&f.worker->event, 0);
    assert_read(&r, p, text, 3000);
    assert_true(r.compressed);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, noise, sizeof(noise)), 0);
    assert_read(&r, p, noise, sizeof(noise));
    inflateEnd(&r.z);
    disconnect(p);
    fixture_close(&f);
}

TEST(small_windows)
{
    for (unsigned bits = 9; bits <= 15; bits++) {
        const struct mk_ws_negotiated negotiated = {.deflate = true,
                                                    .send_context = true,
                                                    .send_bits = (uint8_t)bits,
                                                    .receive_bits = 15};
        struct fixture f;
        struct reader r;
        fixture_open(&f);
        f.settings.window_bits = 15;
        reader_init(&r, bits, true);
        struct peer *p = join(&f, &negotiated);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, noise, 3000), 0);
            assert_read(&r, p, noise, 3000);
            assert_int_equal(mk_ws_broadcast(f.group, MK_WS_ALL_CHANNELS, MK_WS_TEXT, text, 3000, NULL), 0);
            mk__ws_deliver(&f.worker->event, 0);
            assert_read(&r, p, text, 3000);
            assert_int_equal(r.compressed, bits >= MK__WS_SHARED_BITS);
        }
        inflateEnd(&r.z);
        disconnect(p);
        fixture_close(&f);
    }
}

/* A message that was dropped is not in the peer's context. */
TEST(a_message_that_is_dropped)
{
    struct fixture f;
    struct reader r;
    fixture_open(&f);
    f.settings.overflow = MK_WS_OVERFLOW_DROP;
    f.settings.queue_bytes_max = 9000;
    f.settings.window_bits = 15;
    reader_init(&r, 15, true);
    struct peer *p = join(&f, &with_context);
    p->room = 0;
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, noise, 8000), 0);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, noise + 1, 7999), 0); /* short, by references */
    for (size_t i = 0; i < 2000; i++)
        noise[i] ^= 0x55;
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, noise, 2000), -ENOBUFS);
    p->room = SIZE_MAX / 2;
    run(p, MK_TUNNEL_WRITE);
    assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, noise, 2000), 0);
    for (size_t i = 0; i < 2000; i++)
        noise[i] ^= 0x55;
    assert_read(&r, p, noise, 8000);
    assert_read(&r, p, noise + 1, 7999);
    read_message(&r, p);
    assert_int_equal(r.n, 2000);
    inflateEnd(&r.z);
    disconnect(p);
    fixture_close(&f);
}

/* ── receiving ── */

/* Feeds a compressed message, in frames of `piece` bytes. */
static void feed_deflated(struct peer *p, z_stream *z, const void *data, size_t n, size_t piece)
{
    char packed[20000];
    z->next_in = (unsigned char *)(uintptr_t)data;
    z->avail_in = (unsigned)n;
    z->next_out = (unsigned char *)packed;
    z->avail_out = sizeof(packed);
    assert_int_equal(deflate(z, Z_SYNC_FLUSH), Z_OK);
    size_t len = sizeof(packed) - z->avail_out - 4;
    for (size_t at = 0; at < len; at += piece) {
        bool last = len - at <= piece;
        feed_frame(p, (uint8_t)((last ? 0x80 : 0) | (at ? 0 : 0x42)), packed + at, last ? len - at : piece);
    }
}

TEST(inflaters_are_lent)
{
    z_stream z = {0};
    struct fixture f;
    fixture_open(&f);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    struct peer *a = join(&f, &no_context), *b = join(&f, &no_context);
    feed_deflated(a, &z, text, 5000, 10);
    deflateReset(&z);
    feed_deflated(b, &z, text, 6000, 10);
    for (bool more = true; more;) { /* both messages come at the same time */
        a->read_max = b->read_max = 7;
        more = a->in_at < a->in_len || b->in_at < b->in_len;
        run(a, MK_TUNNEL_READ);
        run(b, MK_TUNNEL_READ);
    }
    assert_logged(&f, "binary of 5000\nbinary of 6000\n");
    assert_null(a->ws->inflater);
    assert_null(b->ws->inflater);
    assert_non_null(f.worker->codecs.spare);
    deflateEnd(&z);
    disconnect(a);
    disconnect(b);
    fixture_close(&f);
}

/* What is not used for a while gives up memory; messages may still refer to those before. */
TEST(contexts_shrink_while_idle)
{
    z_stream z = {0};
    struct fixture f;
    struct reader r;
    fixture_open(&f);
    f.settings.ping_ms = UINT32_MAX;
    f.settings.window_bits = 15;
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    reader_init(&r, 15, true);
    struct peer *p = join(&f, &with_context);
    size_t idle = f.fixture.account.bytes;
    for (int i = 0; i < 3; i++) {
        feed_deflated(p, &z, noise, sizeof(noise), 1000);
        run(p, MK_TUNNEL_READ);
        assert_logged(&f, "binary of 8000\n");
        assert_int_equal(mk_ws_send(p->ws, MK_WS_BINARY, text, 8000), 0);
        assert_read(&r, p, text, 8000);
        assert_true(f.fixture.account.bytes > idle + 200 * 1024);
        mk_test_pass(&f.fixture, 2 * MK__WS_PING_MS);
        assert_true(f.fixture.account.bytes < idle + 70 * 1024);
    }
    deflateEnd(&z);
    inflateEnd(&r.z);
    disconnect(p);
    fixture_close(&f);
}

/* Whichever allocation fails: the message is sent as it is, or not at all, and one that arrives is refused with 1011.
 */
TEST(without_memory)
{
    for (long n = 0;; n++) {
        z_stream z = {0};
        struct fixture f;
        struct reader r;
        fixture_open(&f);
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        reader_init(&r, 15, true);
        struct peer *p = join(&f, &with_context);
        feed_deflated(p, &z, noise, 6000, 1000);
        mk__alloc_countdown = n;
        int err = mk_ws_send(p->ws, MK_WS_BINARY, text, 8000);
        if (p->ws)
            run(p, MK_TUNNEL_READ);
        bool all_fine = mk__alloc_countdown >= 0;
        mk__alloc_countdown = -1;
        if (err == 0)
            assert_read(&r, p, text, 8000);
        if (all_fine)
            assert_logged(&f, "binary of 6000\n");
        else
            assert_true(!strcmp(f.log, "binary of 6000\n") || !strcmp(f.log, "") || !strncmp(f.log, "close 1011", 10) ||
                        !strncmp(f.log, "close 1006", 10));
        deflateEnd(&z);
        inflateEnd(&r.z);
        disconnect(p);
        fixture_close(&f);
        if (all_fine)
            return;
    }
}

TEST_FILE(fill_texts)
