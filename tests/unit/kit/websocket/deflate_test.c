// SPDX-License-Identifier: Apache-2.0
/* permessage-deflate: the examples of RFC 7692, round trips in pieces, limits, invalid data, failing allocations. */
#include "testing.h"

#include <errno.h>
#include <zlib.h>

#include "websocket/ws.h"

enum { TEXT_BYTES = 100000, MESSAGE_MAX = 1 << 20 };

static struct mk_account account;
static const char blank[MESSAGE_MAX];
static char text[TEXT_BYTES]; /* that compresses to about a third */

static int make_text(void **state)
{
    static const char *const words[] = {"the ", "quick ", "brown ", "fox ", "jumps ", "over ", "lazy ", "dog. "};
    uint32_t random = 1;
    (void)state;
    for (size_t n = 0; n < TEXT_BYTES; n++) {
        random = random * 1664525 + 1013904223;
        const char *word = words[random >> 29];
        text[n] = random & 1 << 20 ? word[random >> 24 & 3] : (char)('a' + (random >> 16) % 26);
    }
    return 0;
}

/* Decompresses in pieces of `piece` bytes, with room for `room` bytes a call. Returns 0 or the error. */
static int inflate_with(struct mk__ws_inflater *i, struct mk_str payload, size_t piece, size_t room, struct mk_buf *out)
{
    const char *reason = NULL;
    size_t at = 0;
    int result;
    do {
        size_t n = payload.len - at < piece ? payload.len - at : piece;
        char *in = mk_test_guarded(payload.p + at, n);
        struct mk__ws_inflate_data d = {.in = (const uint8_t *)in, .in_len = n};
        at += n;
        do {
            char *to = mk_test_guarded(blank, room); /* the room touches a page that cannot be written */
            d.out = (uint8_t *)to;
            d.out_len = room;
            result = mk__ws_inflater_feed(i, &d, at == payload.len, &reason);
            mk_buf_add(out, to, room - d.out_len);
            mk_test_unguard(to, room);
        } while (result == MK_AGAIN);
        assert_true(result < 0 || d.in_len == 0);
        mk_test_unguard(in, n);
    } while (result == 0 && at < payload.len);
    assert_int_equal(reason != NULL, result < 0);
    return result;
}

static void check_payload(struct mk__ws_inflater *i, struct mk_str payload, size_t piece, size_t room,
                          struct mk_str expected)
{
    struct mk_buf out;
    mk_buf_init(&out, MESSAGE_MAX);
    assert_int_equal(inflate_with(i, payload, piece, room, &out), 0);
    assert_false(i->begun);
    assert_int_equal(out.err, 0);
    assert_true(mk_str_eq(mk_buf_str(&out), expected));
    mk_buf_release(&out);
}

/* ── the examples of RFC 7692 section 7.2.3, and payloads that are like them ── */

static const struct example {
    struct mk_str payloads[2]; /* messages of one connection */
    struct mk_str message;     /* of each */
} examples[] = {
    {{MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00"), MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00")}, MK_STR("Hello")},
    {{MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00"), MK_STR("\xf2\x00\x11\x00\x00")},
     MK_STR("Hello")}, /* refers to the first */
    {{MK_STR("\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"), MK_STR("\xf2\x00\x11\x00\x00")}, MK_STR("Hello")},
    {{MK_STR("\xf3\x48\xcd\xc9\xc9\x07\x00\x00"), MK_STR("\xf2\x00\x11\x00\x00")}, MK_STR("Hello")}, /* a last block */
    {{MK_STR("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"), MK_STR("\xf2\x00\x11\x00\x00")}, MK_STR("Hello")},
    {{MK_STR("\x00"), MK_STR("\x00")}, MK_STR("")},
    /* not as the RFC has it, but clear: nothing at all, nothing behind a last block, a last block that the tail ends */
    {{MK_STR(""), MK_STR("")}, MK_STR("")},
    {{MK_STR("\xf3\x48\xcd\xc9\xc9\x07\x00"), MK_STR("\xf2\x00\x11\x00\x00")}, MK_STR("Hello")},
    {{MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00\x00\x00\xff\xff\x01"), MK_STR("\xf2\x00\x11\x00\x00")}, MK_STR("Hello")},
    /* the tail is the data of a block */
    {{MK_STR("\x00\x04\x00\xfb\xff"), MK_STR("\x00\x04\x00\xfb\xff")}, MK_STR("\0\0\xff\xff")},
};

TEST(decompresses_the_examples_of_the_rfc)
{
    for (size_t e = 0; e < COUNT(examples); e++) {
        for (size_t piece = 1; piece < 15; piece++) {
            for (size_t room = 1; room < 8; room++) {
                struct mk__ws_inflater i;
                mk__ws_inflater_init(&i, &account, 15, false, 5); /* exactly the limit */
                for (size_t m = 0; m < 2; m++)
                    check_payload(&i, examples[e].payloads[m], piece, room, examples[e].message);
                mk__ws_inflater_release(&i);
            }
        }
    }
    assert_int_equal(account.bytes, 0);
}

TEST(continues_behind_last_blocks)
{
    uint8_t payload[64];
    struct mk__ws_inflater i;
    size_t n = 0;
    for (const char *part = "ab"; *part; part++) { /* each in a block that is marked as the last one */
        z_stream z = {.next_in = (Bytef *)(uintptr_t)part, .avail_in = 1, .next_out = payload + n, .avail_out = 30};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        n += 30 - z.avail_out;
        deflateEnd(&z);
    }
    payload[n++] = 0;
    for (size_t piece = 1; piece <= n; piece++) {
        mk__ws_inflater_init(&i, &account, 15, false, MESSAGE_MAX);
        check_payload(&i, mk_str((char *)payload, n), piece, 10, MK_STR("ab"));
        check_payload(&i, mk_str((char *)payload, n), piece, 10, MK_STR("ab"));
        mk__ws_inflater_release(&i);
    }
}

TEST(compresses_the_examples_of_the_rfc)
{
    struct mk__ws_deflater d;
    struct mk_buf out;
    mk__ws_deflater_init(&d, &account, 15, false);
    d.level = 6;
    mk_buf_init(&out, 100);
    assert_int_equal(mk__ws_deflater_compress(&d, "Hello", 5, &out), 0);
    assert_int_equal(mk__ws_deflater_compress(&d, "Hello", 5, &out), 0);
    assert_int_equal(mk__ws_deflater_compress(&d, "", 0, &out), 0);
    assert_true(mk_str_eq(mk_buf_str(&out), MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00\xf2\x00\x11\x00\x00\x00")));
    mk__ws_deflater_release(&d);
    assert_int_equal(account.bytes, 0);

    mk__ws_deflater_init(&d, &account, 15, true);
    out.len = 0;
    assert_int_equal(mk__ws_deflater_compress(&d, "Hello", 5, &out), 0);
    assert_int_equal(mk__ws_deflater_compress(&d, "Hello", 5, &out), 0);
    assert_true(mk_str_eq(mk_buf_str(&out), MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00\xf2\x48\xcd\xc9\xc9\x07\x00")));
    mk__ws_deflater_release(&d);
    mk_buf_release(&out);
}

/* ── round trips ── */

struct pair {
    struct mk__ws_deflater d;
    struct mk__ws_inflater i;
};

static void open_pair(struct pair *p, unsigned bits, bool no_context)
{
    mk__ws_deflater_init(&p->d, &account, bits, no_context);
    mk__ws_inflater_init(&p->i, &account, bits, no_context, MESSAGE_MAX);
}

static void close_pair(struct pair *p)
{
    mk__ws_deflater_release(&p->d);
    mk__ws_inflater_release(&p->i);
    assert_int_equal(account.bytes, 0);
}

static size_t send_message(struct pair *p, struct mk_str message, size_t piece, size_t room)
{
    struct mk_buf payload;
    mk_buf_init(&payload, MESSAGE_MAX);
    assert_int_equal(mk__ws_deflater_compress(&p->d, message.p, message.len, &payload), 0);
    check_payload(&p->i, mk_buf_str(&payload), piece, room, message);
    size_t n = payload.len;
    mk_buf_release(&payload);
    return n;
}

TEST(round_trips)
{
    static const size_t lens[] = {1, 0, 5, 300, 0, 70, TEXT_BYTES, 1, 40000, 1000};
    for (unsigned bits = 9; bits <= 15; bits++) {
        for (unsigned no_context = 0; no_context < 2; no_context++) {
            struct pair p;
            open_pair(&p, bits, no_context);
            p.d.level = (uint8_t)(bits - 6);
            p.d.memory_level = (uint8_t)(16 - bits);
            for (size_t m = 0; m < COUNT(lens); m++)
                send_message(&p, mk_str(text + m, lens[m] - (lens[m] == TEXT_BYTES ? m : 0)), 1000, 3000);
            close_pair(&p);
        }
    }
}

TEST(round_trips_in_pieces)
{
    for (size_t piece = 1; piece < 400; piece = piece * 3 + 1) {
        for (size_t room = 1; room < 1000; room = room * 3 + 1) {
            struct pair p;
            open_pair(&p, 15, false);
            for (size_t m = 0; m < 4; m++)
                send_message(&p, mk_str(text, 700 + m), piece, room);
            close_pair(&p);
        }
    }
}

/* A message that was seen before is short, also after the receiver's memory was freed; not without a context. */
TEST(keeps_the_context)
{
    struct pair p;
    open_pair(&p, 15, false);
    size_t first = send_message(&p, mk_str(text, 5000), 500, 500);
    assert_true(send_message(&p, mk_str(text, 5000), 500, 500) < first / 10);
    mk__ws_inflater_shrink(&p.i);
    assert_null(p.i.z);
    assert_int_equal(p.i.window_len, 10000);
    mk__ws_inflater_shrink(&p.i); /* again: nothing to do */
    assert_true(send_message(&p, mk_str(text, 5000), 500, 500) < first / 10);
    mk__ws_deflater_release(&p.d); /* the sender may forget at any time */
    assert_int_equal(send_message(&p, mk_str(text, 5000), 500, 500), first);
    close_pair(&p);

    open_pair(&p, 15, true);
    assert_int_equal(send_message(&p, mk_str(text, 5000), 500, 500), first);
    mk__ws_inflater_shrink(&p.i);
    assert_null(p.i.window);
    assert_int_equal(send_message(&p, mk_str(text, 5000), 500, 500), first);
    close_pair(&p);
}

TEST(shrinks_between_messages_only)
{
    struct mk__ws_inflater i;
    uint8_t to[10];
    struct mk__ws_inflate_data d = {(const uint8_t *)"\xf2\x48\xcd", 3, to, sizeof(to)};
    const char *reason;
    mk__ws_inflater_init(&i, &account, 15, false, MESSAGE_MAX);
    mk__ws_inflater_shrink(&i);
    assert_int_equal(mk__ws_inflater_feed(&i, &d, false, &reason), 0);
    mk__ws_inflater_shrink(&i);
    d.in = (const uint8_t *)"\xc9\xc9\x07";
    d.in_len = 4;
    assert_int_equal(mk__ws_inflater_feed(&i, &d, true, &reason), 0);
    assert_memory_equal(to, "Hello", 5);
    assert_int_equal(d.out_len, 5);
    mk__ws_inflater_release(&i);
    assert_int_equal(account.bytes, 0);
}

/* ── errors ── */

static int inflate_all(struct mk_str payload, unsigned bits, uint64_t message_max, size_t piece, size_t room, size_t *n)
{
    struct mk__ws_inflater i;
    struct mk_buf out;
    mk__ws_inflater_init(&i, &account, bits, false, message_max);
    mk_buf_init(&out, MESSAGE_MAX);
    int result = inflate_with(&i, payload, piece, room, &out);
    *n = out.len;
    mk_buf_release(&out);
    mk__ws_inflater_release(&i);
    assert_int_equal(account.bytes, 0);
    return result;
}

TEST(stops_at_the_limit)
{
    static const size_t lens[] = {1, 2, 100, 4096, 65535, 65536, 500000};
    struct mk__ws_deflater d;
    for (size_t m = 0; m < COUNT(lens); m++) {
        struct mk_buf payload;
        size_t n, len = lens[m];
        mk__ws_deflater_init(&d, &account, 15, true);
        mk_buf_init(&payload, MESSAGE_MAX);
        assert_int_equal(mk__ws_deflater_compress(&d, blank, len, &payload), 0);
        mk__ws_deflater_release(&d);
        for (size_t room = 4096; room <= MESSAGE_MAX; room *= 16) {
            struct mk_str bytes = mk_buf_str(&payload);
            assert_int_equal(inflate_all(bytes, 15, len, 1000, room, &n), 0);
            assert_int_equal(n, len);
            assert_int_equal(inflate_all(bytes, 15, len - 1, 1000, room, &n), -1009);
            assert_int_equal(n, len - 1);
            assert_int_equal(inflate_all(bytes, 15, len / 2, 10, room, &n), -1009);
            assert_int_equal(n, len / 2);
        }
        mk_buf_release(&payload);
    }
}

/* The limit is of each message alone. */
TEST(counts_each_message)
{
    struct mk__ws_inflater i;
    mk__ws_inflater_init(&i, &account, 15, false, 5);
    for (unsigned m = 0; m < 10; m++)
        check_payload(&i, MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00"), 100, 100, MK_STR("Hello"));
    mk__ws_inflater_release(&i);
}

TEST(rejects_invalid_payloads)
{
    static const struct mk_str bad[] = {
        MK_STR("\x06"), /* a reserved type of block */
        MK_STR("\xff\xff\xff"),
        MK_STR("\xf2\x48\xcd"), /* cut */
        MK_STR("\xf2\x48\xcd\xc9\xc9"),
        MK_STR("\xf2\x00\x11\x00\x00"),         /* refers to what was never sent */
        MK_STR("\x00\x05\x00\xfa\xff\x48\x65"), /* a stored block that is longer than the tail */
        MK_STR("\x00\x05\x00\xfa\xfe\x48\x65\x6c\x6c\x6f\x00"),
        MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00\x00\x00\xff\xff"), /* the tail was not cut */
        MK_STR("\xf3\x48\xcd\xc9\xc9\x07\x00garbage"),
        /* literals of 1 bit and an end of 15: the tail ends the block, but within a byte */
        MK_STR("\x04\xe0\x01\x92\x24\x49\x92\x24\xcb\x22\xb1\xa8\x79\x64\xf5\xec\xfb\xf7\x3f\xee\x07"),
    };
    for (size_t m = 0; m < COUNT(bad); m++) {
        for (size_t piece = 1; piece <= bad[m].len; piece++) {
            size_t n;
            if (inflate_all(bad[m], 15, MESSAGE_MAX, piece, 100, &n) != -1007)
                fail_msg("payload %zu in pieces of %zu", m, piece);
        }
    }
}

/* Without a context, a message must not refer to those before. */
TEST(rejects_references_without_a_context)
{
    for (unsigned shrink = 0; shrink < 2; shrink++) {
        struct mk__ws_inflater i;
        struct mk_buf out;
        mk__ws_inflater_init(&i, &account, 15, true, MESSAGE_MAX);
        mk_buf_init(&out, MESSAGE_MAX);
        check_payload(&i, MK_STR("\xf2\x48\xcd\xc9\xc9\x07\x00"), 100, 100, MK_STR("Hello"));
        if (shrink)
            mk__ws_inflater_shrink(&i);
        assert_int_equal(inflate_with(&i, MK_STR("\xf2\x00\x11\x00\x00"), 100, 100, &out), -1007);
        mk__ws_inflater_release(&i);
        mk_buf_release(&out);
    }
}

/* 0 means that there is no output any more of the pieces so far. */
TEST(holds_no_output_back)
{
    struct mk__ws_deflater d;
    struct mk__ws_inflater i;
    struct mk_buf payload;
    const char *reason;
    mk__ws_deflater_init(&d, &account, 15, true);
    mk__ws_inflater_init(&i, &account, 15, true, MESSAGE_MAX);
    mk_buf_init(&payload, MESSAGE_MAX);
    assert_int_equal(mk__ws_deflater_compress(&d, blank, 1000, &payload), 0);
    struct mk__ws_inflate_data data = {.in = (const uint8_t *)payload.data, .in_len = payload.len};
    uint8_t to[10];
    size_t n = 0;
    do {
        data.out = to;
        data.out_len = sizeof(to);
        int result = mk__ws_inflater_feed(&i, &data, false, &reason);
        n += sizeof(to) - data.out_len;
        assert_int_equal(result, n < 1000 || !data.out_len ? MK_AGAIN : 0);
    } while (!data.out_len);
    assert_int_equal(n, 1000);
    mk__ws_deflater_release(&d);
    mk__ws_inflater_release(&i);
    mk_buf_release(&payload);
}

TEST(rejects_a_larger_window)
{
    struct mk__ws_deflater d;
    struct mk_buf payload;
    char twice[6000];
    size_t n;
    mk__ws_deflater_init(&d, &account, 15, true);
    mk_buf_init(&payload, MESSAGE_MAX);
    memcpy(twice, text, 3000);
    memcpy(twice + 3000, text, 3000);
    assert_int_equal(mk__ws_deflater_compress(&d, twice, sizeof(twice), &payload), 0);
    mk__ws_deflater_release(&d);
    assert_int_equal(inflate_all(mk_buf_str(&payload), 15, MESSAGE_MAX, 100, 7000, &n), 0);
    /* of one call zlib sees the output too, so it is less strict there */
    assert_int_equal(inflate_all(mk_buf_str(&payload), 9, MESSAGE_MAX, 100, 100, &n), -1007);
    mk_buf_release(&payload);
}

TEST(respects_the_maximum_of_the_output)
{
    struct pair p;
    struct mk_buf out, free;
    open_pair(&p, 15, false);
    mk_buf_init(&free, MESSAGE_MAX);
    assert_int_equal(mk__ws_deflater_compress(&p.d, text, 5000, &free), 0);
    for (size_t max = 3; max < free.len + 20; max += max < 50 || max + 50 > free.len ? 1 : 37) {
        struct mk__ws_deflater d;
        mk__ws_deflater_init(&d, &account, 15, false);
        mk_buf_init(&out, max);
        mk_buf_addc(&out, 'x');
        int result = mk__ws_deflater_compress(&d, text, 5000, &out);
        assert_int_equal(out.err, 0);
        if (max < 1 + free.len)
            assert_int_equal(result, -ENOBUFS);
        if (max >= 1 + free.len + 12)
            assert_int_equal(result, 0);
        assert_int_equal(out.len, 1 + (result ? 0 : free.len));
        mk_buf_release(&out);
        mk__ws_deflater_release(&d);
    }
    mk_buf_release(&free);
    close_pair(&p);
}

/* What was not sent is not referred to later. */
TEST(forgets_what_was_not_sent)
{
    struct pair p;
    struct mk_buf out;
    char storage[100];
    open_pair(&p, 15, false);
    send_message(&p, mk_str(text, 3000), 1000, 1000);
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    assert_int_equal(mk__ws_deflater_compress(&p.d, text + 50000, 5000, &out), -ENOBUFS);
    assert_int_equal(out.len, 0);
    send_message(&p, mk_str(text + 50000, 5000), 1000, 1000);
    send_message(&p, mk_str(text, 5000), 1000, 1000);
    close_pair(&p);
}

static int exchange(void *ctx)
{
    struct pair p;
    struct mk_buf payload;
    uint8_t to[3000];
    const char *reason;
    int result = 0;
    (void)ctx;
    open_pair(&p, 10, false);
    for (unsigned m = 0; m < 2 && result == 0; m++) {
        struct mk__ws_inflate_data d = {.out = to, .out_len = sizeof(to)};
        mk_buf_init(&payload, MESSAGE_MAX);
        result = mk__ws_deflater_compress(&p.d, text, 2000, &payload);
        d.in = (const uint8_t *)payload.data;
        d.in_len = payload.len;
        if (result == 0)
            result = mk__ws_inflater_feed(&p.i, &d, true, &reason);
        mk_buf_release(&payload);
        mk__ws_inflater_shrink(&p.i);
        result = result == 0 && p.i.z ? -ENOMEM : result;
        assert_true(result < 0 || (d.out_len == 1000 && memcmp(to, text, 2000) == 0));
    }
    mk__ws_deflater_release(&p.d);
    mk__ws_inflater_release(&p.i);
    assert_int_equal(account.bytes, 0);
    return result;
}

TEST(survives_missing_memory)
{
    assert_true(mk_test_failing_allocs(exchange, NULL) > 10);
}

/* The figures of ws.h. */
TEST(needs_the_memory_that_is_documented)
{
    for (unsigned bits = 9; bits <= 15; bits++) {
        for (unsigned level = 1; level <= 9; level++) {
            struct pair p;
            struct mk_buf payload;
            uint8_t to[1000];
            const char *reason;
            open_pair(&p, bits, false);
            p.d.memory_level = (uint8_t)level;
            mk_buf_init(&payload, MESSAGE_MAX);
            assert_int_equal(mk__ws_deflater_compress(&p.d, text, 1000, &payload), 0);
            assert_in_range(account.bytes, 1, (1u << (bits + 2)) + (1u << (level + 9)) + 7 * 1024);
            mk__ws_deflater_release(&p.d);
            struct mk__ws_inflate_data d = {(const uint8_t *)payload.data, payload.len, to, sizeof(to)};
            assert_int_equal(mk__ws_inflater_feed(&p.i, &d, true, &reason) & ~MK_AGAIN, 0);
            assert_in_range(account.bytes, 1, (1u << bits) + 10 * 1024);
            mk_buf_release(&payload);
            close_pair(&p);
        }
    }
}

TEST_FILE(make_text)
