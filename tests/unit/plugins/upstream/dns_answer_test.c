// SPDX-License-Identifier: Apache-2.0
/* Answers of name servers, whole, cut at each byte, and malformed ones. */
#include "testing.h"

#include "plugins/upstream/dns_answer.h"

#include <errno.h>

enum { RECORDS_MAX = 8 };

#define HEAD(answers) "\x12\x34\x81\x80\0\1\0" answers "\0\0\0\0"
#define APP "\3app\4test\0" /* at 12, "test" at 16; records begin at 26 */
#define QUESTION(type) APP "\0" type "\0\1"
#define TO_APP "\xc0\x0c"
#define MESSAGE(text) MK_STR(text)

struct seen {
    int n;
    struct dns_record records[RECORDS_MAX];
    char targets[RECORDS_MAX][DNS_NAME_BYTES_MAX + 1];
    uint8_t last_bytes[RECORDS_MAX]; /* of the address */
    uint16_t type;
};

static void take_record(const struct dns_record *record, void *ctx)
{
    struct seen *seen = ctx;
    assert_true(seen->n < RECORDS_MAX);
    seen->records[seen->n] = *record;
    if (record->target.len)
        memcpy(seen->targets[seen->n], record->target.p, record->target.len);
    if (seen->type != DNS_SRV)
        seen->last_bytes[seen->n] = record->address[seen->type == DNS_A ? 3 : 15];
    seen->n++;
}

static int parse(struct mk_str message, uint16_t type, struct seen *seen)
{
    char *p = mk_test_guarded(message.p, message.len);
    *seen = (struct seen){.type = type};
    int n = dns_answer_each(mk_str(p, message.len), type, take_record, seen);
    assert_true(n == -EBADMSG || n == seen->n);
    mk_test_unguard(p, message.len);
    return n;
}

static const struct mk_str addresses = MK_STR_INIT(
    HEAD("\2") QUESTION("\1") TO_APP "\0\1\0\1\0\0\0\x1e\0\4\x7f\0\0\1" TO_APP "\0\1\0\1\0\0\0\7\0\4\x7f\0\0\2");

TEST(records_of_addresses)
{
    struct seen seen;
    assert_int_equal(parse(addresses, DNS_A, &seen), 2);
    assert_int_equal(seen.last_bytes[0], 1);
    assert_int_equal(seen.last_bytes[1], 2);
    assert_int_equal(seen.records[0].ttl_s, 30);
    assert_int_equal(seen.records[1].ttl_s, 7);
    assert_int_equal(parse(addresses, DNS_AAAA, &seen), 0);
    assert_int_equal(parse(MESSAGE(HEAD("\1") QUESTION("\x1c") TO_APP
                                   "\0\x1c\0\1\0\0\0\1\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"),
                           DNS_AAAA, &seen),
                     1);
    assert_int_equal(seen.last_bytes[0], 9);
}

TEST(each_cut_is_malformed)
{
    struct seen seen;
    for (size_t len = 0; len < addresses.len; len++)
        assert_int_equal(parse(mk_str(addresses.p, len), DNS_A, &seen), -EBADMSG);
}

/* The order of the records does not matter, and the smallest TTL counts. */
TEST(aliases)
{
    struct seen seen;
    assert_int_equal(parse(MESSAGE(HEAD("\2") QUESTION("\1") "\4REAL\xc0\x10\0\1\0\1\0\0\0\x1e\0\4\x7f\0\0\3" TO_APP
                                                             "\0\5\0\1\0\0\0\5\0\7\4real\xc0\x10"),
                           DNS_A, &seen),
                     1);
    assert_int_equal(seen.last_bytes[0], 3);
    assert_int_equal(seen.records[0].ttl_s, 5);
}

TEST(services)
{
    struct seen seen;
    assert_int_equal(parse(MESSAGE(HEAD("\3") QUESTION("\x21") TO_APP
                                   "\0\x21\0\1\0\0\0\x9\0\x0c\0\1\0\2\x1f\x90\3One\xc0\x10" TO_APP
                                   "\0\x21\0\1\xff\xff\xff\xff\0\x0f\0\0\0\0\0\x50\2_t\4a--9\0" TO_APP
                                   "\0\x21\0\1\0\0\0\0\0\7\0\0\0\0\0\0\0"),
                           DNS_SRV, &seen),
                     3);
    assert_string_equal(seen.targets[0], "one.test");
    assert_int_equal(seen.records[0].priority, 1);
    assert_int_equal(seen.records[0].weight, 2);
    assert_int_equal(seen.records[0].port, 8080);
    assert_string_equal(seen.targets[1], "_t.a--9");
    assert_int_equal(seen.records[1].ttl_s, 0); /* not a negative number */
    assert_int_equal(seen.records[2].target.len, 0);
}

TEST(records_that_do_not_count)
{
    struct seen seen;
    assert_int_equal(parse(MESSAGE(HEAD("\3") QUESTION("\1") "\5other\0\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1" TO_APP
                                                             "\0\1\0\3\0\0\0\1\0\4\x7f\0\0\1" TO_APP
                                                             "\0\x10\0\1\0\0\0\1\0\2\1x"),
                           DNS_A, &seen),
                     0);
}

#define ONE(owner, data) HEAD("\1") QUESTION("\1") owner "\0\1\0\1\0\0\0\1" data

TEST(malformed_messages)
{
    static const struct mk_str rows[] = {
        MK_STR_INIT("\x12\x34\1\0\0\1\0\1\0\0\0\0" QUESTION("\1")), /* a question */
        MK_STR_INIT("\x12\x34\x81\x80\0\2\0\0\0\0\0\0" QUESTION("\1") QUESTION("\1")),
        MK_STR_INIT(ONE(TO_APP, "\0\5\x7f\0\0\1\0")),      /* an address of 5 bytes */
        MK_STR_INIT(ONE(TO_APP, "\0\x10\x7f\0\0\1")),      /* more data than there is */
        MK_STR_INIT(ONE("\xc0\x1a", "\0\4\x7f\0\0\1")),    /* a pointer to itself */
        MK_STR_INIT(ONE("\xc0\x20", "\0\4\x7f\0\0\1")),    /* one that leads forward */
        MK_STR_INIT(ONE("\1x\xc0\x1a", "\0\4\x7f\0\0\1")), /* a loop */
        MK_STR_INIT(ONE("\x40x", "\0\4\x7f\0\0\1")),       /* a reserved kind of label */
        MK_STR_INIT(ONE("\3a.b\0", "\0\4\x7f\0\0\1")),     /* a dot in a label */
        MK_STR_INIT(ONE("\3a\0b\0", "\0\4\x7f\0\0\1")),
        MK_STR_INIT(HEAD("\1") QUESTION("\1") TO_APP "\0\5\0\1\0\0\0\1\0\2\xc0\x0c"), /* an alias of itself */
        MK_STR_INIT(HEAD("\1") QUESTION("\1") TO_APP "\0\5\0\1\0\0\0\1\0\2\1a"),
    };
    struct seen seen;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(parse(rows[i], DNS_A, &seen), -EBADMSG);
    assert_int_equal(parse(MESSAGE(HEAD("\1") QUESTION("\x21") TO_APP "\0\x21\0\1\0\0\0\1\0\6\0\0\0\0\0\0"), DNS_SRV,
                           &seen),
                     -EBADMSG); /* without a target */
    assert_int_equal(parse(MESSAGE(HEAD("\1") QUESTION("\x21") TO_APP "\0\x21\0\1\0\0\0\1\0\x08\0\0\0\0\0\0\0\0"),
                           DNS_SRV, &seen),
                     -EBADMSG); /* with a byte behind it */
}

TEST(names_have_at_most_255_bytes)
{
    static char text[600];
    struct seen seen;
    size_t at = 0;
    memcpy(text, "\x12\x34\x81\x80\0\1\0\0\0\0\0\0", 12);
    for (unsigned i = 0; i < 4; i++) {
        text[12 + at++] = 63;
        memset(&text[12 + at], 'x', 63);
        at += 63;
    }
    memcpy(&text[12 + at], "\0\0\1\0\1", 5);
    assert_int_equal(parse(mk_str(text, 12 + at + 5), DNS_A, &seen), 0); /* 4 labels with 3 dots */
    memcpy(&text[12 + at], "\1x\0\0\1\0\1", 7);
    assert_int_equal(parse(mk_str(text, 12 + at + 7), DNS_A, &seen), -EBADMSG);
}
