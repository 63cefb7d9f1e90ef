// SPDX-License-Identifier: Apache-2.0
/* HPACK: the examples of RFC 7541 appendix C in pieces of every size, the encoder, limits, and memory that runs out. */
#include "testing.h"

#include "http/h2/hpack.h"

#include <errno.h>
#include <stdio.h>

#include <monkey/status.h>

enum { ROOM_BYTES = 8192 };

static struct mk_account account;
static char room[ROOM_BYTES];

/* Bytes of hexadecimal digits, with blanks between them. */
static struct mk_str from_hex(const char *hex, char *to)
{
    size_t n = 0;
    unsigned byte;
    for (; *hex; hex += *hex == ' ')
        for (; *hex && *hex != ' '; hex += 2) {
            assert_int_equal(sscanf(hex, "%2x", &byte), 1);
            to[n++] = (char)byte;
        }
    return mk_str(to, n);
}

static void append_field(char *log, const struct mk__hpack_field *f)
{
    size_t len = strlen(log);
    snprintf(log + len, 1024 - len, "%s%.*s: %.*s%s", len ? "|" : "", MK_STR_ARG(f->row.name), MK_STR_ARG(f->row.value),
             f->never_indexed ? " (never)" : "");
    assert_int_equal(f->bytes, f->row.name.len + f->row.value.len);
}

/* Decodes a block of which `step` more bytes arrive each time. Returns 0 or -errno. */
static int decode_block(struct mk__hpack_decoder *d, struct mk_str block, size_t step, char *log)
{
    struct mk__hpack_field field;
    size_t at = 0, len = 0;
    log[0] = '\0';
    mk__hpack_decode_begin(d);
    while (len < block.len) {
        len = block.len - len < step ? block.len : len + step;
        char *copy = mk_test_guarded(block.p + at, len - at);
        struct mk_str in = mk_str(copy, len - at);
        int r;
        while ((r = mk__hpack_decode(d, &in, room, sizeof(room), &field)) == 0)
            append_field(log, &field);
        mk_test_unguard(copy, len - at);
        at = len - in.len;
        if (r != MK_AGAIN)
            return r;
    }
    return at == block.len ? 0 : MK_AGAIN;
}

struct example {
    const char *hex, *fields;
    uint32_t size; /* of the table behind it */
};

#define DATE_21 "date: Mon, 21 Oct 2013 20:13:21 GMT|"
#define DATE_22 "date: Mon, 21 Oct 2013 20:13:22 GMT|"
#define WWW "location: https://www.example.com"
#define GET_WWW ":method: GET|:scheme: http|:path: /|:authority: www.example.com"
#define LAST_REQUEST \
    ":method: GET|:scheme: https|:path: /index.html|:authority: www.example.com|custom-key: custom-value"
#define LAST_RESPONSE \
    ":status: 200|cache-control: private|" DATE_22 WWW "|content-encoding: gzip|" \
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"

static const struct {
    uint32_t size_max;
    struct example blocks[3];
} examples[] = {
    {4096, {{"400a637573746f6d2d6b65790d637573746f6d2d686561646572", "custom-key: custom-header", 55}}},
    {4096, {{"040c2f73616d706c652f70617468", ":path: /sample/path", 0}}},
    {4096, {{"100870617373776f726406736563726574", "password: secret (never)", 0}}},
    {4096, {{"82", ":method: GET", 0}}},
    {4096,
     {{"828684410f7777772e6578616d706c652e636f6d", GET_WWW, 57},
      {"828684be58086e6f2d6361636865", GET_WWW "|cache-control: no-cache", 110},
      {"828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", LAST_REQUEST, 164}}},
    {4096,
     {{"828684418cf1e3c2e5f23a6ba0ab90f4ff", GET_WWW, 57},
      {"828684be5886a8eb10649cbf", GET_WWW "|cache-control: no-cache", 110},
      {"828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", LAST_REQUEST, 164}}},
    {256,
     {{"4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f"
       "7777772e6578616d706c652e636f6d",
       ":status: 302|cache-control: private|" DATE_21 WWW, 222},
      {"4803333037c1c0bf", ":status: 307|cache-control: private|" DATE_21 WWW, 222},
      {"88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b"
       "425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
       LAST_RESPONSE, 215}}},
    {256,
     {{"488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
       ":status: 302|cache-control: private|" DATE_21 WWW, 222},
      {"4883640effc1c0bf", ":status: 307|cache-control: private|" DATE_21 WWW, 222},
      {"88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af2708"
       "7f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
       LAST_RESPONSE, 215}}},
};

static void start_decoder(struct mk__hpack_decoder *d, uint32_t size_max)
{
    mk__hpack_decoder_init(d, &account);
    d->table.size_max = d->size_limit = size_max;
}

TEST(examples_of_the_rfc)
{
    for (size_t i = 0; i < COUNT(examples); i++)
        for (size_t step = 1; step < 200; step++) {
            struct mk__hpack_decoder d;
            start_decoder(&d, examples[i].size_max);
            for (size_t n = 0; n < 3 && examples[i].blocks[n].hex; n++) {
                char block[512], log[1024];
                struct mk_str in = from_hex(examples[i].blocks[n].hex, block);
                assert_int_equal(decode_block(&d, in, step, log), 0);
                assert_string_equal(log, examples[i].blocks[n].fields);
                assert_int_equal(d.table.size, examples[i].blocks[n].size);
            }
            mk__hpack_decoder_release(&d);
            assert_int_equal(account.bytes, 0);
        }
}

/* ── what is malformed, or above a limit ── */

TEST(malformed)
{
    static const struct {
        const char *hex;
        int result;
    } bad[] = {
        {"80", -EINVAL},                    /* index 0 */
        {"be", -EINVAL},                    /* of an empty table */
        {"ffff00", -EINVAL},                /* index 254 */
        {"ffffffffffff", -EINVAL},          /* an integer without an end */
        {"ff8080808001", -EINVAL},          /* one with zeros before its end */
        {"3fe21f", -EINVAL},                /* a table of 4,097 bytes */
        {"8220", -EINVAL},                  /* a table size behind a field */
        {"7f0001 61", -EINVAL},             /* the name has index 63 */
        {"0001 61 81 ff", -EINVAL},         /* Huffman: eight bits of padding */
        {"0081 ff 01 61", -EINVAL},         /* also of a name */
        {"0001 61 85 ffffffffff", -EINVAL}, /* the end-of-string symbol */
        {"0005 6162", MK_AGAIN},            /* a string that has not arrived */
        {"ff", MK_AGAIN},
        {"00", MK_AGAIN},
        {"40 0161", MK_AGAIN},
        {"3f", MK_AGAIN},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        for (size_t step = 1; step < 8; step++) {
            char block[64], log[1024];
            struct mk__hpack_decoder d;
            start_decoder(&d, 4096);
            if (decode_block(&d, from_hex(bad[i].hex, block), step, log) != bad[i].result)
                fail_msg("%s", bad[i].hex);
            mk__hpack_decoder_release(&d);
        }
}

TEST(table_sizes)
{
    char block[64], log[1024];
    struct mk__hpack_decoder d;
    start_decoder(&d, 4096);
    assert_int_equal(decode_block(&d, from_hex("400161 0162 400163 0164", block), 99, log), 0);
    assert_int_equal(d.table.n, 2);
    assert_int_equal(decode_block(&d, from_hex("3f04 be", block), 99, log), 0); /* 35 bytes: the last one stays */
    assert_string_equal(log, "c: d");
    assert_int_equal(d.table.n, 1);
    assert_int_equal(decode_block(&d, from_hex("20 3fe11f 400165 0166", block), 99, log), 0);
    assert_int_equal(d.table.n, 1);
    assert_int_equal(d.table.size_max, 4096);
    assert_int_equal(decode_block(&d, from_hex("20 400161 0162", block), 99, log), 0); /* larger than the table */
    assert_int_equal(d.table.n, 0);
    mk__hpack_decoder_release(&d);
    assert_int_equal(account.bytes, 0);
}

/* A note stays with its entry while others are added, and the table moves; a field that is added has none. */
TEST(notes)
{
    char block[64], log[1024];
    struct mk__hpack_decoder d;
    struct mk__hpack_row row;
    start_decoder(&d, 4096);
    assert_int_equal(decode_block(&d, from_hex("400161 0162", block), 99, log), 0);
    assert_true(mk__hpack_table_get(&d.table, MK__HPACK_STATIC_ENTRIES + 1, &row));
    assert_int_equal(*row.note, 0);
    *row.note = 77;
    for (uint32_t n = 1; n < 100; n++) {
        assert_int_equal(decode_block(&d, from_hex("400163 0164", block), 99, log), 0);
        assert_true(mk__hpack_table_get(&d.table, MK__HPACK_STATIC_ENTRIES + 1, &row));
        assert_int_equal(*row.note, 0);
        assert_true(mk__hpack_table_get(&d.table, MK__HPACK_STATIC_ENTRIES + 1 + n, &row));
        assert_int_equal(*row.note, 77);
    }
    mk__hpack_decoder_release(&d);
}

/* A field that is as large as the table is its only entry; a larger one leaves it empty: RFC 7541 section 4.4. */
TEST(fields_as_large_as_the_table)
{
    static const char *const blocks[] = {"401f", "4020"}; /* names of 31 and 32 bytes; the value has one */
    for (size_t i = 0; i < COUNT(blocks); i++) {
        char block[128], log[1024];
        struct mk__hpack_decoder d;
        start_decoder(&d, 64);
        assert_int_equal(decode_block(&d, from_hex("400161 0162", block), 99, log), 0);
        struct mk_str head = from_hex(blocks[i], block);
        memset(block + head.len, 'n', 32);
        memcpy(block + head.len + 31 + i, "\x01v", 2);
        assert_int_equal(decode_block(&d, mk_str(block, head.len + 31 + i + 2), 99, log), 0);
        assert_int_equal(d.table.n, 1 - i);
        assert_int_equal(d.table.size, i ? 0 : 64);
        mk__hpack_decoder_release(&d);
    }
}

/* The entry whose name a field takes is evicted by this field: RFC 7541 section 4.4. */
TEST(a_name_that_is_evicted)
{
    char block[128], log[1024];
    struct mk__hpack_decoder d;
    start_decoder(&d, 64);
    assert_int_equal(decode_block(&d, from_hex("40 0a 30313233343536373839 01 61", block), 99, log), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(decode_block(&d, from_hex("7e 02 6162 be", block), 99, log), 0);
        assert_string_equal(log, "0123456789: ab|0123456789: ab");
    }
    mk__hpack_decoder_release(&d);
}

/* A string that has no room is cut, but its length is counted. */
TEST(strings_without_room)
{
    static char block[8192];
    struct mk__hpack_decoder d;
    struct mk__hpack_field field;
    start_decoder(&d, 4096);
    memset(block, 0x7f & 0, sizeof(block));    /* Huffman: each byte of 0 and the next ones are '0' */
    memcpy(block, "\x40\x01x\xff\xc1\x2e", 6); /* 6,080 bytes of 9,728 zeros */
    struct mk_str in = mk_str(block, 6 + 6080);
    mk__hpack_decode_begin(&d);
    assert_int_equal(mk__hpack_decode(&d, &in, room, MK__HPACK_TABLE_BYTES, &field), 0);
    assert_true(field.cut);
    assert_int_equal(field.bytes, 1 + 9728);
    assert_int_equal(field.row.value.len, MK__HPACK_TABLE_BYTES);
    assert_int_equal(in.len, 0);
    assert_int_equal(d.table.n, 0);
    mk__hpack_decoder_release(&d);
}

/* ── the encoder ── */

static struct mk_str encode(struct mk__hpack_encoder *e, char *to, const char *name, const char *value)
{
    const struct mk__hpack_header header = {0, mk_str_c(name), mk_str_c(value)};
    return mk_str(to, (size_t)(mk__hpack_encode(e, to, &header, 1) - to));
}

#define assert_encoded(e, name, value, hex) \
    do { \
        char to_[256], expected_[256]; \
        struct mk_str is_ = encode(e, to_, name, value), must_ = from_hex(hex, expected_); \
        assert_int_equal(is_.len, must_.len); \
        assert_memory_equal(is_.p, must_.p, must_.len); \
    } while (0)

TEST(encoded_fields)
{
    struct mk__hpack_encoder e;
    mk__hpack_encoder_init(&e, &account);
    assert_encoded(&e, ":status", "200", "88");
    assert_encoded(&e, ":status", "404", "8d");
    assert_encoded(&e, ":status", "302", "08 03 333032");
    assert_encoded(&e, "Content-Length", "13", "0f0d 02 3133");
    assert_encoded(&e, "ETag", "", "a2");
    assert_encoded(&e, "X-A", "b", "00 03 782d61 01 62");
    assert_encoded(&e, "Set-Cookie", "a", "1f28 01 61");
    assert_int_equal(account.bytes, 0); /* nothing was added so far */
    assert_encoded(&e, "Cache-Control", "private", "58 85 aec3771a4b");
    assert_encoded(&e, "cache-control", "private", "be");
    assert_encoded(&e, "Vary", "~", "7b 01 7e"); /* Huffman would be longer */
    assert_encoded(&e, "Cache-Control", "private", "bf");
    assert_encoded(&e, "Vary", "~", "be");
    mk__hpack_encoder_release(&e);
    assert_int_equal(account.bytes, 0);
}

/* A name that is given by its index. */
TEST(known_names)
{
    static const struct {
        unsigned index;
        struct mk_str name;
    } known[] = {
        {MK__HPACK_STATUS, MK_STR(":status")},
        {MK__HPACK_ACCEPT_RANGES, MK_STR("accept-ranges")},
        {MK__HPACK_CONTENT_ENCODING, MK_STR("content-encoding")},
        {MK__HPACK_CONTENT_LENGTH, MK_STR("content-length")},
        {MK__HPACK_CONTENT_TYPE, MK_STR("content-type")},
        {MK__HPACK_DATE, MK_STR("date")},
        {MK__HPACK_ETAG, MK_STR("etag")},
        {MK__HPACK_LAST_MODIFIED, MK_STR("last-modified")},
        {MK__HPACK_SERVER, MK_STR("server")},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        char by_index[64], by_name[64];
        struct mk__hpack_encoder e[2];
        const struct mk__hpack_header headers[] = {{known[i].index, MK_STR_NONE, MK_STR("200")},
                                                   {0, known[i].name, MK_STR("200")}};
        mk__hpack_encoder_init(&e[0], &account);
        mk__hpack_encoder_init(&e[1], &account);
        char *end = mk__hpack_encode(&e[0], by_index, &headers[0], 1);
        size_t len = (size_t)(mk__hpack_encode(&e[1], by_name, &headers[1], 1) - by_name);
        assert_int_equal(end - by_index, len);
        assert_memory_equal(by_index, by_name, len);
        mk__hpack_encoder_release(&e[0]);
        mk__hpack_encoder_release(&e[1]);
    }
}

/* Without memory for the table the field is encoded without it. */
TEST(encoding_without_memory)
{
    struct mk__hpack_encoder e;
    mk__hpack_encoder_init(&e, &account);
    mk__alloc_countdown = 0;
    assert_encoded(&e, "Cache-Control", "private", "0f09 85 aec3771a4b");
    mk__alloc_countdown = -1;
    assert_encoded(&e, "Cache-Control", "private", "58 85 aec3771a4b");
    mk__hpack_encoder_release(&e);
}

TEST(decoding_without_memory)
{
    char block[64], log[1024];
    struct mk__hpack_decoder d;
    start_decoder(&d, 4096);
    mk__alloc_countdown = 0;
    assert_int_equal(decode_block(&d, from_hex("400161 0162", block), 99, log), -ENOMEM);
    mk__alloc_countdown = -1;
    mk__hpack_decoder_release(&d);
}

/* The peer gets the smallest and the last size, in the next block: RFC 7541 section 4.2. */
TEST(sizes_of_the_encoder)
{
    static const struct {
        uint32_t sizes[3];
        const char *hex;
    } cases[] = {
        {{4096}, ""},    {{65536, 512}, ""},      {{0}, "20"},
        {{100}, "3f45"}, {{50, 80}, "3f13 3f31"}, {{0, 512}, "20 3fe103"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk__hpack_encoder e;
        char to[64], expected[64];
        mk__hpack_encoder_init(&e, &account);
        assert_int_equal(mk__hpack_encode_begin(&e, to) - to, 3); /* down to MK__HPACK_ENCODER_BYTES */
        assert_int_equal(mk__hpack_encode_begin(&e, to) - to, 0);
        encode(&e, to, "vary", "x");
        for (size_t n = 0; n < 3 && (n == 0 || cases[i].sizes[n]); n++)
            mk__hpack_encode_resize(&e, cases[i].sizes[n]);
        struct mk_str must = from_hex(cases[i].hex, expected);
        assert_int_equal(mk__hpack_encode_begin(&e, to) - to, must.len);
        assert_memory_equal(to, must.p, must.len);
        assert_true(e.table.size <= e.table.size_max);
        mk__hpack_encoder_release(&e);
    }
}

/* What the encoder writes, the decoder reads, with tables that have many entries come and go. */
TEST(there_and_back)
{
    struct mk__hpack_encoder e;
    struct mk__hpack_decoder d;
    mk__hpack_encoder_init(&e, &account);
    start_decoder(&d, 4096);
    for (unsigned i = 0; i < 2000; i++) {
        static const char *const names[] = {"Vary", "X-Name", "content-type", "Cache-Control", "etag", "Date"};
        char value[400], to[1024], log[1024], expected[1024];
        int len = (int)(i * 7919 % 300);
        snprintf(value, sizeof(value), "%u%0*u", i % 13, len, i % 5);
        const char *name = names[i % COUNT(names)];
        char *end = mk__hpack_encode_begin(&e, to);
        end = mk__hpack_encode(&e, end, &(struct mk__hpack_header){0, mk_str_c(name), mk_str_c(value)}, 1);
        assert_true((size_t)(end - to) <=
                    MK__HPACK_RESIZE_BYTES_MAX + MK__HPACK_FIELD_OVERHEAD + strlen(name) + strlen(value));
        assert_int_equal(decode_block(&d, mk_str(to, (size_t)(end - to)), 7, log), 0);
        snprintf(expected, sizeof(expected), "%s: %s", name, value);
        for (char *c = expected; c < expected + strlen(name); c++)
            *c = mk_lower(*c);
        assert_string_equal(log, expected);
        assert_int_equal(d.table.n, e.table.n);
    }
    mk__hpack_encoder_release(&e);
    mk__hpack_decoder_release(&d);
    assert_int_equal(account.bytes, 0);
}

/* A table takes what its entries need, and no more than twice the limit. */
TEST(memory_of_a_table)
{
    struct mk__hpack_decoder d;
    start_decoder(&d, 4096);
    size_t most = 0;
    for (unsigned i = 0; i < 3000; i++) {
        char block[64], log[1024];
        int len = snprintf(block, sizeof(block), "\x40\x06n%05u\x01v", i);
        assert_int_equal(decode_block(&d, mk_str(block, (size_t)len), 99, log), 0);
        most = account.bytes > most ? account.bytes : most;
        if (i == 0)
            assert_in_range(account.bytes, 1, 512);
    }
    assert_in_range(most, 4096, 6 * 1024);
    mk__hpack_decoder_release(&d);
    assert_int_equal(account.bytes, 0);
}
