// SPDX-License-Identifier: Apache-2.0
/* Heads of frames, fragments and Close: each head whole, byte by byte, and flush against a guard page. */
#include "testing.h"

#include "websocket/frame.h"

enum { TEXT = MK__WS_OP_TEXT, CLOSE = MK__WS_OP_CLOSE, MORE = 0 };

static const struct mk__ws_rules server = {.masked = true, .frame_max = INT64_MAX};
static const struct mk__ws_rules client = {.frame_max = INT64_MAX};
static const struct mk__ws_rules deflate = {.rsv1 = true, .frame_max = INT64_MAX};
static const struct mk__ws_rules small = {.frame_max = 1000};
static const struct mk__ws_rules tiny = {.frame_max = 10};

struct row {
    struct mk_str bytes;
    const struct mk__ws_rules *rules;
    int result; /* the size, MORE, or the error, which the last byte shows */
    uint64_t len;
    uint8_t opcode;
};

#define ROW(text, ...) \
    { \
        {text, sizeof(text) - 1}, __VA_ARGS__ \
    }
#define BAD(text, rules) ROW(text, rules, -1002, 0, 0)
#define BIG(text, rules) ROW(text, rules, -1009, 0, 0)

static const struct row rows[] = {
    ROW("", &server, MORE, 0, 0), ROW("\x81", &server, MORE, 0, 0), ROW("\x81\x80\x01\x02\x03", &server, MORE, 0, 0),
    ROW("\x81\x80\x01\x02\x03\x04", &server, 6, 0, TEXT),
    ROW("\x81\x85\x37\xfa\x21\x3d", &server, 6, 5, TEXT), /* RFC 6455 section 5.7 */
    ROW("\x81\x05", &client, 2, 5, TEXT), ROW("\x01\x03", &client, 2, 3, TEXT),
    ROW("\x80\x02", &client, 2, 2, MK__WS_OP_CONTINUATION), ROW("\x00\x02", &client, 2, 2, MK__WS_OP_CONTINUATION),
    ROW("\x89\x05", &client, 2, 5, MK__WS_OP_PING), ROW("\x8a\x85\x37\xfa\x21\x3d", &server, 6, 5, MK__WS_OP_PONG),
    ROW("\x88\x7d", &client, 2, 125, CLOSE), ROW("\x82\x7d", &client, 2, 125, MK__WS_OP_BINARY),
    ROW("\x82\x7e\x00\x7e", &client, 4, 126, MK__WS_OP_BINARY),
    ROW("\x82\x7e\x01\x00", &client, 4, 256, MK__WS_OP_BINARY),
    ROW("\x82\x7e\xff\xff", &client, 4, 65535, MK__WS_OP_BINARY),
    ROW("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", &client, 10, 65536, MK__WS_OP_BINARY),
    ROW("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", &client, 10, INT64_MAX, MK__WS_OP_BINARY),
    ROW("\x82\xff\x00\x00\x00\x01\x02\x03\x04\x05\xa\xb\xc\xd", &server, 14, 0x102030405, MK__WS_OP_BINARY),
    ROW("\x82\xff\x00\x00\x00\x01\x02\x03\x04\x05\xa\xb\xc", &server, MORE, 0, 0),

    /* the first byte */
    BAD("\x83", &client), BAD("\x84", &client), BAD("\x87", &client), BAD("\x8b", &client), BAD("\x8f", &client),
    BAD("\xa1", &deflate), BAD("\x91", &deflate), BAD("\xb0", &deflate), BAD("\xa8", &client), BAD("\x08", &client),
    BAD("\x09", &client), BAD("\x0a", &client), /* fragmented */
    BAD("\xc1", &client), BAD("\x41", &server), /* RSV1 without compression, */
    BAD("\xc0", &deflate), BAD("\x40", &deflate), BAD("\xc9", &deflate),
    BAD("\xc8", &deflate), /* or at a wrong place */
    ROW("\xc1\x05", &deflate, 2, 5, TEXT), ROW("\x42\x00", &deflate, 2, 0, MK__WS_OP_BINARY),

    /* the second */
    BAD("\x81\x05", &server), BAD("\x81\x85", &client), BAD("\x88\x00", &server), BAD("\x88\x80", &client),
    BAD("\x88\x7e", &client), BAD("\x89\xff", &server),

    /* the length */
    BAD("\x82\x7e\x00\x7d", &client), BAD("\x82\x7e\x00\x00", &client), BAD("\x82\xfe\x00\x01", &server),
    BAD("\x82\x7f\x00\x00\x00\x00\x00\x00", &client), BAD("\x82\x7f\x80", &client), BAD("\x82\xff\xff", &server),
    ROW("\x82\x7e\x03\xe8", &small, 4, 1000, MK__WS_OP_BINARY), BIG("\x82\x7e\x03\xe9", &small),
    BIG("\x82\x7e\x04", &small), BIG("\x82\x7f", &small), ROW("\x82\x0a", &tiny, 2, 10, MK__WS_OP_BINARY),
    BIG("\x82\x0b", &tiny), BIG("\x80\x7e", &tiny), BIG("\x80\x7f", &tiny),
    ROW("\x89\x7d", &tiny, 2, 125, MK__WS_OP_PING), /* the limit is of data */
};

static int parse(const struct row *r, size_t n, struct mk__ws_head *ret)
{
    const char *reason = NULL;
    char *bytes = mk_test_guarded(r->bytes.p, n);
    int result = mk__ws_head_parse(bytes, n, r->rules, ret, &reason);
    assert_int_equal(reason != NULL, result < 0);
    mk_test_unguard(bytes, n);
    return result;
}

TEST(parses_heads)
{
    for (const struct row *r = rows; r < rows + COUNT(rows); r++) {
        struct mk__ws_head head;
        for (size_t n = 0; n < r->bytes.len; n++)
            if (parse(r, n, &head) != 0)
                fail_msg("row %td: %zu bytes are enough", r - rows, n);
        int result = parse(r, r->bytes.len, &head);
        if (result != r->result)
            fail_msg("row %td: %d", r - rows, result);
        if (result <= 0)
            continue;
        assert_int_equal(head.size, r->bytes.len);
        assert_int_equal(head.len, r->len);
        assert_int_equal(head.opcode, r->opcode);
        assert_int_equal(head.fin, (uint8_t)r->bytes.p[0] >> 7);
        assert_int_equal(head.rsv1, (uint8_t)r->bytes.p[0] >> 6 & 1);
        assert_int_equal(head.masked, r->rules->masked);
        if (head.masked)
            assert_memory_equal(&head.key, r->bytes.p + r->bytes.len - 4, 4);
    }
}

/* An error stays the same, whatever follows the byte that shows it. */
TEST(errors_do_not_depend_on_what_follows)
{
    for (const struct row *r = rows; r < rows + COUNT(rows); r++) {
        char bytes[32];
        if (r->result >= 0)
            continue;
        for (unsigned fill = 0; fill < 256; fill += 51) {
            struct mk__ws_head head;
            const char *reason;
            memset(bytes, (int)fill, sizeof(bytes));
            memcpy(bytes, r->bytes.p, r->bytes.len);
            assert_int_equal(mk__ws_head_parse(bytes, sizeof(bytes), r->rules, &head, &reason), r->result);
        }
    }
}

TEST(ignores_the_payload)
{
    struct mk__ws_head head;
    const char *reason;
    assert_int_equal(mk__ws_head_parse("\x81\x05Hello\xff\xff", 9, &client, &head, &reason), 2);
    assert_int_equal(head.len, 5);
}

TEST(writes_what_it_parses)
{
    static const uint64_t lens[] = {0, 1, 125, 126, 127, 255, 256, 65535, 65536, 1ull << 32, INT64_MAX};
    static const uint8_t opcodes[] = {MK__WS_OP_CONTINUATION, TEXT,          MK__WS_OP_BINARY, CLOSE,
                                      MK__WS_OP_PING,         MK__WS_OP_PONG};
    for (size_t i = 0; i < COUNT(lens) * COUNT(opcodes) * 8; i++) {
        struct mk__ws_head in = {.len = lens[i % COUNT(lens)], .opcode = opcodes[i / COUNT(lens) % COUNT(opcodes)]},
                           out;
        size_t flags = i / COUNT(lens) / COUNT(opcodes);
        bool control = mk__ws_opcode_is_control(in.opcode);
        const char *reason;
        uint8_t to[MK__WS_HEAD_BYTES_MAX];
        if (control && in.len > MK__WS_CONTROL_BYTES_MAX)
            continue;
        in.fin = control || (flags & 1);
        in.masked = flags & 2;
        in.rsv1 = (flags & 4) && !control && in.opcode != MK__WS_OP_CONTINUATION;
        in.key = in.masked ? 0x12345678 : 0;
        size_t n = mk__ws_head_write(to, &in);
        const struct mk__ws_rules rules = {.masked = in.masked, .rsv1 = true, .frame_max = INT64_MAX};
        assert_int_equal(mk__ws_head_parse(to, n, &rules, &out, &reason), n);
        assert_int_equal(out.size, n);
        assert_true(in.fin == out.fin && in.rsv1 == out.rsv1 && in.masked == out.masked && in.opcode == out.opcode);
        assert_true(in.len == out.len && in.key == out.key);
    }
}

/* ── fragments ── */

/* T, B: a message begins; c: continues; capital C: ends; t, b: a message of one frame; p: a ping; z: one with RSV1. */
static int step(struct mk__ws_sequence *s, char what)
{
    static const struct {
        char what;
        struct mk__ws_head head;
    } frames[] = {
        {'T', {.opcode = MK__WS_OP_TEXT}},
        {'t', {.fin = true, .opcode = MK__WS_OP_TEXT}},
        {'B', {.opcode = MK__WS_OP_BINARY}},
        {'b', {.fin = true, .opcode = MK__WS_OP_BINARY}},
        {'c', {.opcode = MK__WS_OP_CONTINUATION}},
        {'C', {.fin = true, .opcode = MK__WS_OP_CONTINUATION}},
        {'p', {.fin = true, .opcode = MK__WS_OP_PING}},
        {'x', {.fin = true, .opcode = MK__WS_OP_CLOSE}},
        {'z', {.rsv1 = true, .opcode = MK__WS_OP_TEXT}},
    };
    const char *reason = NULL;
    size_t i = 0;
    while (frames[i].what != what)
        i++;
    int result = mk__ws_sequence_step(s, &frames[i].head, &reason);
    assert_int_equal(reason != NULL, result < 0);
    return result;
}

TEST(orders_fragments)
{
    static const struct {
        const char *frames;
        bool fine, open;
        uint8_t opcode;
        bool compressed;
    } sequences[] = {
        {"", true, false, 0, false},
        {"p", true, false, 0, false},
        {"t", true, false, TEXT, false},
        {"tbt", true, false, TEXT, false},
        {"TC", true, false, TEXT, false},
        {"TpcpcxC", true, false, TEXT, false},
        {"Bcc", true, true, MK__WS_OP_BINARY, false},
        {"tBCT", true, true, TEXT, false},
        {"z", true, true, TEXT, true},
        {"zpcC", true, false, TEXT, true},
        {"zCb", true, false, MK__WS_OP_BINARY, false},
        {"c", false, false, 0, false},
        {"C", false, false, 0, false},
        {"tC", false, false, TEXT, false},
        {"TCC", false, false, TEXT, false},
        {"Tt", false, true, TEXT, false},
        {"TB", false, true, TEXT, false},
        {"Tpcz", false, true, TEXT, false},
    };
    for (size_t i = 0; i < COUNT(sequences); i++) {
        struct mk__ws_sequence s = {};
        const char *frames = sequences[i].frames;
        for (; frames[0] && frames[1]; frames++)
            assert_int_equal(step(&s, *frames), 0);
        if (*frames)
            assert_int_equal(step(&s, *frames), sequences[i].fine ? 0 : -1002);
        assert_int_equal(s.open, sequences[i].open);
        assert_int_equal(s.opcode, sequences[i].opcode);
        assert_int_equal(s.compressed, sequences[i].compressed);
    }
}

/* ── Close ── */

TEST(knows_the_codes_that_may_be_sent)
{
    for (unsigned code = 0; code <= 70000; code++) {
        bool valid = (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code < 5000);
        assert_int_equal(mk__ws_code_is_valid(code), valid);
    }
}

TEST(parses_close)
{
    static const struct {
        struct mk_str bytes;
        int result;
        uint16_t code;
        const char *text;
    } closes[] = {
        ROW("", 0, 1005, ""),
        ROW("\x03\xe8", 0, 1000, ""),
        ROW("\x03\xe9going", 0, 1001, "going"),
        ROW("\x0f\xa0\xc3\xbc", 0, 4000, "\xc3\xbc"),
        ROW("\x03", -1002, 1005, ""),
        ROW("\x03\xed", -1002, 1005, ""), /* 1005 */
        ROW("\x00\x00", -1002, 1005, ""),
        ROW("\x03\xf7", -1002, 1005, ""),    /* 1015 */
        ROW("\x07\xd0xyz", -1002, 1005, ""), /* 2000 */
        ROW("\xff\xff", -1002, 1005, ""),
        ROW("\x03\xe8"
            "a\xff",
            -1007, 1005, ""),
        ROW("\x03\xe8"
            "a\xc3",
            -1007, 1005, ""),                         /* cut */
        ROW("\x03\xe8\xed\xa0\x80", -1007, 1005, ""), /* a surrogate */
    };
    for (size_t i = 0; i < COUNT(closes); i++) {
        uint16_t code;
        struct mk_str text;
        const char *reason = NULL;
        size_t n = closes[i].bytes.len;
        char *bytes = mk_test_guarded(closes[i].bytes.p, n);
        assert_int_equal(mk__ws_close_parse(bytes, n, &code, &text, &reason), closes[i].result);
        assert_int_equal(reason != NULL, closes[i].result < 0);
        assert_int_equal(code, closes[i].code);
        assert_str_equal(text, closes[i].text);
        mk_test_unguard(bytes, n);
    }
}

TEST(writes_close)
{
    uint8_t to[MK__WS_CONTROL_BYTES_MAX];
    char text[200];
    assert_int_equal(mk__ws_close_write(to, MK_WS_NO_STATUS, MK_STR("x")), 0);
    assert_int_equal(mk__ws_close_write(to, MK_WS_NORMAL, MK_STR_NONE), 2);
    assert_memory_equal(to, "\x03\xe8", 2);
    assert_int_equal(mk__ws_close_write(to, 4999, MK_STR("bye")), 5);
    assert_memory_equal(to,
                        "\x13\x87"
                        "bye",
                        5);
    assert_int_equal(mk__ws_close_write(to, MK_WS_NORMAL,
                                        MK_STR("ab\xff"
                                               "cd")),
                     4);

    memset(text, 'x', sizeof(text));
    assert_int_equal(mk__ws_close_write(to, MK_WS_NORMAL, mk_str(text, 123)), 125);
    assert_int_equal(mk__ws_close_write(to, MK_WS_NORMAL, mk_str(text, 200)), 125);
    memcpy(text + 121, "\xe4\xb8\xad", 3); /* its last byte is beyond the room */
    assert_int_equal(mk__ws_close_write(to, MK_WS_NORMAL, mk_str(text, 200)), 2 + 121);
    memcpy(text + 120, "\xe4\xb8\xad", 3);
    assert_int_equal(mk__ws_close_write(to, MK_WS_NORMAL, mk_str(text, 200)), 2 + 123);
}
