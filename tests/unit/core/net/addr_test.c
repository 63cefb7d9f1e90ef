// SPDX-License-Identifier: Apache-2.0
/* Socket addresses as people write them, and back. */
#include "testing.h"

#include <errno.h>

#include "net/addr.h"

static const struct {
    const char *text;
    int family;
    uint16_t port;
    bool any;
    const char *printed;
} good[] = {
    {"2001", AF_INET6, 2001, true, "*:2001"},
    {"0", AF_INET6, 0, true, "*:0"},
    {"65535", AF_INET6, 65535, true, "*:65535"},
    {"*:80", AF_INET6, 80, true, "*:80"},
    {"127.0.0.1:80", AF_INET, 80, false, "127.0.0.1:80"},
    {"0.0.0.0:1", AF_INET, 1, false, "0.0.0.0:1"},
    {"[::1]:8080", AF_INET6, 8080, false, "[::1]:8080"},
    {"[::]:8080", AF_INET6, 8080, false, "[::]:8080"},
    {"[2001:DB8::0:1]:443", AF_INET6, 443, false, "[2001:db8::1]:443"},
    {"[::ffff:10.0.0.1]:1", AF_INET6, 1, false, "[::ffff:10.0.0.1]:1"},
    {"[fe80::1%lo]:80", AF_INET6, 80, false, "[fe80::1%lo]:80"},
    {"[fe80::1%1]:80", AF_INET6, 80, false, "[fe80::1%lo]:80"}, /* the index of lo */
    {"[FE80::1%4000000]:80", AF_INET6, 80, false, "[fe80::1%4000000]:80"},
    {"unix:/run/x.sock", AF_UNIX, 0, false, "unix:/run/x.sock"},
    {"unix:/a:b", AF_UNIX, 0, false, "unix:/a:b"},
};

TEST(reads_and_prints)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        struct mk__addr addr;
        const char *error = NULL;
        char storage[256];
        struct mk_buf out;
        size_t len = strlen(good[i].text);
        char *text = mk_test_guarded(good[i].text, len);
        int err = mk__addr_parse(mk_str(text, len), &addr, &error);
        mk_test_unguard(text, len);
        if (err)
            fail_msg("%s: %s", good[i].text, error);
        assert_int_equal(addr.sa.sa_family, good[i].family);
        assert_int_equal(mk__addr_port(&addr), good[i].port);
        assert_int_equal(addr.any, good[i].any);
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        mk__addr_print(&addr, &out);
        assert_str_equal(mk_buf_str(&out), good[i].printed);
    }
}

#define PORT "the port must be a number from 0 to 65535"
#define BRACKETS "an IPv6 address needs brackets: [::1]:80"
#define HOST "the address must be numeric: 127.0.0.1:80, [::1]:80 or *:80"
#define INTERFACE "a link-local address needs its interface: [fe80::1%eth0]:80"
#define NO_INTERFACE "there is no interface of that name"
#define NOT_LOCAL "only a link-local address (fe80::) has an interface behind it"
#define PATH "a Unix socket needs an absolute path: unix:/run/monkey.sock"

static const struct {
    const char *text, *error;
} bad[] = {
    {"", PORT},
    {"::", BRACKETS},
    {"2001:db8::1", BRACKETS},
    {"/run/x.sock", "a socket's path begins with unix: unix:/run/monkey.sock"},
    {"tcp://127.0.0.1:80", "an address has no scheme: 127.0.0.1:80, [::1]:80 or *:80"},
    {"8000-8010", "a line has one port: write a line for each"},
    {"8000-", PORT},
    {"-8010", PORT},
    {"8000-x", PORT},
    {"x", PORT},
    {"65536", PORT},
    {"-1", PORT},
    {"+1", PORT},
    {" 80", PORT},
    {"80 ", PORT},
    {"127.0.0.1", PORT},
    {"127.0.0.1:", PORT},
    {"127.0.0.1:x", PORT},
    {"127.0.0.1:99999999999999999999", PORT},
    {"[::1]", PORT},
    {"::1:80", BRACKETS},
    {":80", HOST},
    {"localhost:80", HOST},
    {"1.2.3:80", HOST},
    {"1.2.3.256:80", HOST},
    {"[1.2.3.4]:80", HOST},
    {"[::1:80", HOST},
    {"::1]:80", BRACKETS},
    {"[]:80", HOST},
    {"[fe80::1]:80", INTERFACE},
    {"[fe80::1%]:80", NO_INTERFACE},
    {"[fe80::1%nowhere]:80", NO_INTERFACE},
    {"[fe80::1%0]:80", NO_INTERFACE},
    {"[fe80::1%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]:80", NO_INTERFACE},
    {"[::1%lo]:80", NOT_LOCAL},
    {"[2001:db8::1%lo]:80", NOT_LOCAL},
    {"127.0.0.1%lo:80", HOST},
    {"[127.0.0.1%lo]:80", HOST},
    {"fe80::1%lo:80", BRACKETS},
    {"[fe80::1%lo:80", HOST},
    {"[%lo]:80", HOST},
    {"%:80", HOST},
    {"[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb%lo]:80", HOST},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80", HOST},
    {"**:80", HOST},
    {"unix:", PATH},
    {"unix:run/x", PATH},
};

TEST(refuses)
{
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct mk__addr addr;
        const char *error = "";
        if (mk__addr_parse(mk_str_c(bad[i].text), &addr, &error) != -EINVAL)
            fail_msg("\"%s\" was accepted", bad[i].text);
        assert_string_equal(error, bad[i].error);
    }
}

TEST(length_of_a_path)
{
    char text[5 + 108 + 1] = "unix:/";
    struct mk__addr addr;
    const char *error = "";
    memset(text + 6, 'x', 106);
    assert_int_equal(mk__addr_parse(mk_str_c(text), &addr, &error), 0); /* 107 bytes and their NUL */
    assert_int_equal(strlen(addr.un.sun_path), 107);
    text[112] = 'x';
    assert_int_equal(mk__addr_parse(mk_str_c(text), &addr, &error), -EINVAL);
    assert_string_equal(error, "the path of a Unix socket has at most 107 bytes");
}

TEST(ports)
{
    struct mk__addr addr;
    const char *error;
    assert_int_equal(mk__addr_parse(MK_STR("[::1]:1"), &addr, &error), 0);
    mk__addr_set_port(&addr, 4711);
    assert_int_equal(mk__addr_port(&addr), 4711);
    assert_int_equal(mk__addr_parse(MK_STR("1.2.3.4:1"), &addr, &error), 0);
    mk__addr_set_port(&addr, 0x0102);
    assert_memory_equal(&addr.in.sin_port, "\1\2", 2); /* in the order of the network */
    assert_int_equal(mk__addr_parse(MK_STR("unix:/x"), &addr, &error), 0);
    mk__addr_set_port(&addr, 1);
    assert_int_equal(mk__addr_port(&addr), 0);
}

TEST(local_addresses)
{
    static const struct {
        const char *text;
        bool is_local;
    } rows[] = {
        {"127.0.0.1:80", true}, {"127.255.0.9:80", true}, {"[::1]:80", true},
        {"unix:/run/x", true},  {"126.0.0.1:80", false},  {"128.0.0.1:80", false},
        {"[::2]:80", false},    {"*:80", false},          {"0.0.0.0:80", false},
        {"80", false},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        struct mk__addr addr;
        const char *error;
        assert_int_equal(mk__addr_parse(mk_str_c(rows[i].text), &addr, &error), 0);
        assert_int_equal(mk__addr_is_local(&addr), rows[i].is_local);
    }
}

TEST(plain_addresses)
{
    static const struct {
        const char *text;
        int family;
        uint8_t first;
    } cases[] = {{"1.2.3.4:80", AF_INET, 1}, {"[2001::1]:80", AF_INET6, 0x20}, {"[::ffff:9.2.3.4]:80", AF_INET, 9}};
    struct mk_address plain;
    struct mk__addr addr;
    const char *error;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(mk__addr_parse(mk_str_c(cases[i].text), &addr, &error), 0);
        mk__addr_to_address(&addr, &plain);
        assert_int_equal(plain.family, cases[i].family);
        assert_int_equal(plain.port, 80);
        assert_int_equal(plain.bytes[0], cases[i].first);
    }
    assert_int_equal(mk__addr_parse(MK_STR("unix:/x"), &addr, &error), 0);
    mk__addr_to_address(&addr, &plain);
    assert_int_equal(plain.family, AF_UNIX);
    assert_int_equal(plain.bytes[0] | plain.port, 0);
}

TEST(addresses_that_conflict)
{
    static const struct {
        const char *a, *b;
        bool conflict;
    } rows[] = {
        {"127.0.0.1:80", "127.0.0.1:80", true},
        {"127.0.0.1:80", "127.0.0.1:81", false},
        {"127.0.0.1:80", "127.0.0.2:80", false},
        {"127.0.0.1:80", "0.0.0.0:80", true},
        {"127.0.0.1:80", "0.0.0.0:81", false},
        {"0.0.0.0:80", "0.0.0.0:80", true},
        {"127.0.0.1:80", "[::]:80", false}, /* which is IPv6 alone */
        {"127.0.0.1:80", "*:80", true},
        {"0.0.0.0:80", "80", true},
        {"[::]:80", "80", true},
        {"[::1]:80", "[::]:80", true},
        {"[::1]:80", "[::2]:80", false},
        {"0.0.0.0:80", "[::]:80", false},
        {"0.0.0.0:0", "127.0.0.1:0", false},
        {"[fe80::1%1]:80", "[fe80::1%1]:80", true},
        {"[fe80::1%1]:80", "[fe80::1%2]:80", false},
        {"[fe80::1%1]:80", "[::]:80", true},
        {"unix:/a", "unix:/a", true},
        {"unix:/a", "unix:/b", false},
        {"unix:/a", "80", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk__addr a, b;
        const char *error;
        assert_int_equal(mk__addr_parse(mk_str_c(rows[i].a), &a, &error), 0);
        assert_int_equal(mk__addr_parse(mk_str_c(rows[i].b), &b, &error), 0);
        if (mk__addr_conflicts(&a, &b) != rows[i].conflict || mk__addr_conflicts(&b, &a) != rows[i].conflict)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}
