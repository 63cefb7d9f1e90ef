// SPDX-License-Identifier: Apache-2.0
/* Addresses and networks as people write them, and back. */
#include "testing.h"

#include <errno.h>

#include <monkey/base/address.h>

static int parse(const char *text, struct mk_address *ret)
{
    size_t len = strlen(text);
    char *copy = mk_test_guarded(text, len);
    int err = mk_address_parse(mk_str(copy, len), ret);
    mk_test_unguard(copy, len);
    return err;
}

static void assert_prints(const struct mk_address *address, const char *text)
{
    char storage[64];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk_address_print(address, &out);
    assert_int_equal(out.err, 0);
    assert_str_equal(mk_buf_str(&out), text);
}

static const struct {
    const char *text;
    int family;
    uint16_t port;
    const char *printed;
} good[] = {
    {"192.0.2.1", AF_INET, 0, "192.0.2.1"},
    {"0.0.0.0", AF_INET, 0, "0.0.0.0"},
    {"255.255.255.255:65535", AF_INET, 65535, "255.255.255.255"},
    {"10.20.30.40:80", AF_INET, 80, "10.20.30.40"},
    {"::", AF_INET6, 0, "::"},
    {"::1", AF_INET6, 0, "::1"},
    {"1::", AF_INET6, 0, "1::"},
    {"[::1]", AF_INET6, 0, "::1"},
    {"[2001:DB8::1]:443", AF_INET6, 443, "2001:db8::1"},
    {"2001:0db8:0000:0000:0000:0000:0000:0001", AF_INET6, 0, "2001:db8::1"},
    {"2001:db8:0:1:1:1:1:1", AF_INET6, 0, "2001:db8:0:1:1:1:1:1"}, /* one group of zeros stays (RFC 5952 4.2.2) */
    {"2001:0:0:1:0:0:0:1", AF_INET6, 0, "2001:0:0:1::1"},          /* the longest run (4.2.3) */
    {"2001:db8:0:0:1:0:0:1", AF_INET6, 0, "2001:db8::1:0:0:1"},    /* the first of equals */
    {"0:0:1::", AF_INET6, 0, "0:0:1::"},
    {"0:0:0:1:0:0:0:1", AF_INET6, 0, "::1:0:0:0:1"},
    {"1:2:3:4:5:6:7:8", AF_INET6, 0, "1:2:3:4:5:6:7:8"},
    {"1:2:3:4:5:6::", AF_INET6, 0, "1:2:3:4:5:6::"},
    {"fedc:ba98:7654:3210:fedc:ba98:7654:3210", AF_INET6, 0, "fedc:ba98:7654:3210:fedc:ba98:7654:3210"},
    {"::0.1.0.2", AF_INET6, 0, "::1:2"},
    {"::ffff:192.0.2.1", AF_INET, 0, "192.0.2.1"},
    {"[::ffff:c000:201]:8", AF_INET, 8, "192.0.2.1"},
    {"::fffe:c000:201", AF_INET6, 0, "::fffe:c000:201"},
};

TEST(reads_and_prints)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        struct mk_address address;
        if (parse(good[i].text, &address) < 0)
            fail_msg("%s", good[i].text);
        assert_int_equal(address.family, good[i].family);
        assert_int_equal(address.port, good[i].port);
        assert_prints(&address, good[i].printed);
    }
}

static const char *const bad[] = {
    "",
    "unix",
    "unknown",
    "localhost",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.4:",
    "1.2.3.4:65536",
    "1.2.3.4:-1",
    "1.2.3.4:80:80",
    ":80",
    ":",
    "[",
    "]",
    "[]",
    "[::1",
    "[::1]80",
    "[::1]:",
    "[::1]:x",
    "[1.2.3.4]",
    "[1.2.3.4]:80",
    "::1]",
    ":::",
    "1::2::3",
    "12345::",
    "fe80::1%eth0",
    " 1.2.3.4",
    "1.2.3.4 ",
    "1.2.3.4/8",
    "_x",
    "::ffff:1.2.3.4:80",
    "1:2:3:4:5:6:7:8:9",
    "11111:22222:33333:44444:55555:66666:77777:88888:99999",
};

TEST(refuses)
{
    struct mk_address address;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (parse(bad[i], &address) != -EINVAL)
            fail_msg("%s", bad[i]);
    assert_int_equal(mk_address_parse(mk_str("1.2.3.4\0", 8), &address), -EINVAL);
    assert_int_equal(mk_address_parse(MK_STR_NONE, &address), -EINVAL);
}

TEST(other_families)
{
    struct mk_address address;
    mk_address_set(&address, AF_UNIX, NULL, 0);
    assert_prints(&address, "unix");
    assert_true(mk_address_equal(&address, &address));
    mk_address_set(&address, AF_UNSPEC, NULL, 0);
    assert_prints(&address, "unknown");
    assert_false(mk_address_equal(&address, &address));
    assert_int_equal(sizeof(address), 20);
}

TEST(equality)
{
    struct mk_address a, b, c, d;
    assert_int_equal(parse("192.0.2.1:1", &a) | parse("::ffff:192.0.2.1", &b) | parse("192.0.2.2:1", &c), 0);
    assert_int_equal(parse("c000:201::", &d), 0); /* the same bytes, another family */
    assert_true(mk_address_equal(&a, &b));
    assert_false(mk_address_equal(&a, &c));
    assert_false(mk_address_equal(&a, &d));
}

/* ── networks ── */

static int parse_network(const char *text, struct mk_network *ret, struct mk_buf *error)
{
    size_t len = strlen(text);
    char *copy = mk_test_guarded(text, len);
    int err = mk_network_parse(mk_str(copy, len), ret, error);
    mk_test_unguard(copy, len);
    return err;
}

static const struct {
    const char *network, *inside, *outside; /* words */
} networks[] = {
    {"10.0.0.0/8", "10.0.0.0 10.255.255.255 ::ffff:10.1.2.3", "9.255.255.255 11.0.0.0 ::10.0.0.1 a00::"},
    {"192.0.2.1", "192.0.2.1", "192.0.2.0 192.0.2.2 ::1"},
    {"192.0.2.128/25", "192.0.2.128 192.0.2.255", "192.0.2.127 192.0.3.128"},
    {"192.0.2.4/31", "192.0.2.4 192.0.2.5", "192.0.2.3 192.0.2.6"},
    {"0.0.0.0/0", "0.0.0.0 255.1.2.3", "::1 ::"},
    {"::/0", "::1 ffff::", "1.2.3.4 ::ffff:1.2.3.4"},
    {"2001:db8::/32", "2001:db8:: 2001:db8:ffff::1", "2001:db9:: 2001:db7:ffff:: 32.1.13.184"},
    {"2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"},
    {"2001:db8::1/128", "2001:db8::1", "2001:db8::2 2001:db8::"},
    {"::1", "::1", "::2 127.0.0.1"},
    {"::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0"},
    {"::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"},
};

static void check_all(const struct mk_network *network, const char *words, bool inside)
{
    char copy[128], *save, *word;
    struct mk_networks list = {(struct mk_network *)(uintptr_t)network, 1};
    strncpy(copy, words, sizeof(copy));
    for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        struct mk_address address;
        assert_int_equal(parse(word, &address), 0);
        if (mk_network_contains(network, &address) != inside || mk_networks_contain(&list, &address) != inside)
            fail_msg("%s", word);
    }
}

TEST(networks)
{
    struct mk_address unknown = {0}, local = {.family = AF_UNIX};
    struct mk_network network;
    for (size_t i = 0; i < COUNT(networks); i++) {
        if (parse_network(networks[i].network, &network, NULL) < 0)
            fail_msg("%s", networks[i].network);
        check_all(&network, networks[i].inside, true);
        check_all(&network, networks[i].outside, false);
        assert_false(mk_network_contains(&network, &unknown));
        assert_false(mk_network_contains(&network, &local));
    }
    assert_int_equal(parse_network("unix", &network, NULL), 0);
    assert_true(mk_network_contains(&network, &local));
    assert_false(mk_network_contains(&network, &unknown));
    assert_false(mk_networks_contain(&(struct mk_networks){0}, &local));
}

#define NONE "is not a network, such as 192.0.2.1, 10.0.0.0/8"
#define BITS "the number of bits is from "

static const struct {
    const char *text, *error;
} wrong[] = {
    {"", NONE},
    {"localhost", NONE},
    {"10.0.0.0:80", NONE},
    {"[::1]", NONE},
    {"/8", NONE},
    {"10.0.0/8", NONE},
    {"10.0.0.0/", BITS "0 to 32"},
    {"10.0.0.0/33", BITS "0 to 32"},
    {"10.0.0.0/-1", BITS "0 to 32"},
    {"10.0.0.0/255.0.0.0", BITS "0 to 32"},
    {"::/129", BITS "0 to 128"},
    {"::ffff:10.0.0.0/95", BITS "96 to 128"},
    {"10.0.0.1/8", "\"10.0.0.1/8\" names more than 8 bits; did you mean \"10.0.0.0/8\"?"},
    {"192.0.2.129/25", "did you mean \"192.0.2.128/25\"?"},
    {"2001:db8::1/32", "did you mean \"2001:db8::/32\"?"},
};

TEST(wrong_networks)
{
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct mk_network network;
        struct mk_buf error;
        mk_buf_init(&error, 1024);
        assert_int_equal(parse_network(wrong[i].text, &network, &error), -EINVAL);
        if (!strstr(mk_buf_cstr(&error), wrong[i].error))
            fail_msg("%s: %s", wrong[i].text, mk_buf_cstr(&error));
        mk_buf_release(&error);
    }
}
