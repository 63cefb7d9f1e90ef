// SPDX-License-Identifier: Apache-2.0
/* X-Forwarded-For and Forwarded, and what clients forge in them. */
#include "testing.h"

#include <stdio.h>

#include "http/message/forwarded.h"

static struct mk_network items[3];
static const struct mk_networks trusted = {items, COUNT(items)};

static int set_up(void **state)
{
    (void)state;
    return mk_network_parse(MK_STR("10.0.0.0/8"), &items[0], NULL) |
           mk_network_parse(MK_STR("2001:db8::/32"), &items[1], NULL) |
           mk_network_parse(MK_STR("unix"), &items[2], NULL);
}

typedef void (*read_fn)(struct mk__forwarded *f, struct mk_str line);

static struct mk__forwarded begin(void)
{
    struct mk__forwarded f = {.trusted = &trusted};
    mk_address_parse(MK_STR("10.0.0.1"), &f.client);
    return f;
}

static void read_line(struct mk__forwarded *f, read_fn read, const char *line)
{
    size_t len = strlen(line);
    char *copy = mk_test_guarded(line, len);
    read(f, mk_str(copy, len));
    mk_test_unguard(copy, len);
}

static void assert_client(const struct mk__forwarded *f, const char *text, const char *line)
{
    char storage[64];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk_address_print(&f->client, &out);
    if (!mk_str_eq(mk_buf_str(&out), mk_str_c(text)))
        fail_msg("%s: %.*s", line, MK_STR_ARG(mk_buf_str(&out)));
}

static const struct {
    const char *line, *client;
} plain[] = {
    {"", "10.0.0.1"},
    {",", "10.0.0.1"},
    {" , ,, ", "10.0.0.1"},
    {"192.0.2.1", "192.0.2.1"},
    {"  192.0.2.1\t", "192.0.2.1"},
    {"192.0.2.1,", "192.0.2.1"},
    {"192.0.2.1, 10.0.0.2, 10.0.0.3", "192.0.2.1"},
    {"192.0.2.1,,10.0.0.2 , 2001:db8::5", "192.0.2.1"},
    {"10.0.0.9, 10.0.0.2", "10.0.0.9"}, /* a client within: all are trusted */
    {"203.0.113.9, 192.0.2.1", "192.0.2.1"},
    {"10.0.0.9, 192.0.2.1, 10.0.0.3",
     "192.0.2.1"}, /* a trusted address to the left of an untrusted one counts for nothing */
    {"192.0.2.1:8080", "192.0.2.1"},
    {"[2001:db9::1]:8080, [2001:db8::1]", "2001:db9::1"},
    {"2001:db9::1", "2001:db9::1"},
    {"::ffff:192.0.2.1", "192.0.2.1"},
    {"192.0.2.1, ::ffff:10.0.0.4", "192.0.2.1"},
    {"192.0.2.1:_web", "192.0.2.1"},
    {"unknown", "10.0.0.1"},
    {"192.0.2.1, unknown", "10.0.0.1"},
    {"192.0.2.1, _hidden, 10.0.0.2", "10.0.0.2"},
    {"192.0.2.1, unix", "10.0.0.1"}, /* no address, whatever may be trusted */
    {"192.0.2.1, 10.0.0.256", "10.0.0.1"},
    {"192.0.2.1 10.0.0.2", "10.0.0.1"},
    {"\"evil, 192.0.2.1", "192.0.2.1"}, /* there are no quotes in this field */
    {"192.0.2.1, \"10.0.0.2\"", "10.0.0.1"},
    {"192.0.2.1;10.0.0.2", "10.0.0.1"},
};

static const struct {
    const char *line, *client;
    bool is_https;
} forwarded[] = {
    {"", "10.0.0.1", false},
    {"for=192.0.2.1", "192.0.2.1", false},
    {"For=192.0.2.1;PROTO=HTTPS;by=10.0.0.1", "192.0.2.1", true},
    {"for=\"192.0.2.1:80\" ; proto=\"https\"", "192.0.2.1", true},
    {"for=\"[2001:db9::1]:4711\"", "2001:db9::1", false},
    {"for=\"[2001:db9::1]:_port\"", "2001:db9::1", false},
    {"for=192.0.2.1;proto=https, for=10.0.0.2;proto=http", "192.0.2.1", true},
    {"for=192.0.2.1;proto=http, for=10.0.0.2;proto=https", "192.0.2.1", false},
    {"for=192.0.2.1, for=10.0.0.2;proto=https", "192.0.2.1", true},
    {"for=203.0.113.9;proto=https, for=192.0.2.1;proto=http", "192.0.2.1", false},
    {"for=192.0.2.1;proto=wss", "192.0.2.1", true},
    {"for=192.0.2.1;Proto=\"WSS\"", "192.0.2.1", true},
    {"for=192.0.2.1;proto=ws, for=10.0.0.2;proto=https", "192.0.2.1", false},
    {"for=192.0.2.1;proto=wsss", "192.0.2.1", false},
    {"for=192.0.2.1;host=\"a,b;for=10.9.9.9\"", "192.0.2.1", false}, /* a comma in quotes is none */
    {"for=192.0.2.1;host=\"a\\\",for=10.9.9.9;\\\"\"", "192.0.2.1", false},
    {"for=192.0.2.1;host=\"a\\\",for=203.0.113.9;\\\"\"", "192.0.2.1", false},
    {"for=203.0.113.9, for=192.0.2.1;host=\"\\\\\"", "192.0.2.1", false},
    {"for=\"evil, for=192.0.2.1", "192.0.2.1", false}, /* an open quote of the client's hides nothing */
    {"for=\"evil, for=192.0.2.1;host=\"h\"", "192.0.2.1", false},
    {"for=\"\\\\\\, for=192.0.2.1", "192.0.2.1", false},
    {"for=unknown;proto=https", "10.0.0.1", true}, /* a trusted proxy says so */
    {"for=192.0.2.1, for=_hidden", "10.0.0.1", false},
    {"for=192.0.2.1, for=\"_hidden:80\", for=10.0.0.5", "10.0.0.5", false},
    {"for=192.0.2.1, proto=https", "10.0.0.1", true},
    {"for=192.0.2.1, nonsense", "10.0.0.1", false},
    {"for=192.0.2.1, for", "10.0.0.1", false},
    {"for=192.0.2.1, for=", "10.0.0.1", false},
    {"for=192.0.2.1, ,", "192.0.2.1", false},
    {"for=192.0.2.1, for=\"10.0.0.2", "10.0.0.1", false}, /* that one is the proxy's */
    {"192.0.2.1", "10.0.0.1", false},
};

TEST(x_forwarded_for)
{
    for (size_t i = 0; i < COUNT(plain); i++) {
        struct mk__forwarded f = begin();
        read_line(&f, mk__forwarded_read_x_for, plain[i].line);
        assert_client(&f, plain[i].client, plain[i].line);
    }
}

TEST(forwarded)
{
    for (size_t i = 0; i < COUNT(forwarded); i++) {
        struct mk__forwarded f = begin();
        read_line(&f, mk__forwarded_read, forwarded[i].line);
        assert_client(&f, forwarded[i].client, forwarded[i].line);
        if (f.is_https != forwarded[i].is_https)
            fail_msg("%s: https is %d", forwarded[i].line, f.is_https);
    }
}

TEST(lines_continue_where_the_last_one_ended)
{
    struct mk__forwarded f = begin();
    read_line(&f, mk__forwarded_read_x_for, "10.0.0.3, 10.0.0.2");
    read_line(&f, mk__forwarded_read_x_for, "203.0.113.9, 192.0.2.1");
    read_line(&f, mk__forwarded_read_x_for, "198.51.100.1");
    assert_client(&f, "192.0.2.1", "three lines");
    f = begin();
    read_line(&f, mk__forwarded_read_x_for, "unknown");
    read_line(&f, mk__forwarded_read_x_for, "192.0.2.1");
    assert_client(&f, "10.0.0.1", "an end");
}

TEST(the_port_is_kept)
{
    struct mk__forwarded f = begin();
    read_line(&f, mk__forwarded_read, "for=\"192.0.2.1:4711\"");
    assert_int_equal(f.client.port, 4711);
}

/* A long list is not read beyond the limit. */
TEST(the_walk_is_short)
{
    static char line[40000];
    size_t len = 0;
    len += (size_t)snprintf(line, sizeof(line), "192.0.2.1");
    for (int i = 0; i < MK__FORWARDED_HOPS_MAX - 1; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, ",10.0.1.%d", i);
    struct mk__forwarded f = begin();
    read_line(&f, mk__forwarded_read_x_for, line);
    assert_client(&f, "192.0.2.1", "as many as are looked at");
    snprintf(line + len, sizeof(line) - len, ",10.0.2.1");
    f = begin();
    read_line(&f, mk__forwarded_read_x_for, line);
    assert_client(&f, "10.0.1.0", "one more");
    memset(line, ',', 30000);
    f = begin();
    read_line(&f, mk__forwarded_read_x_for, line);
    assert_int_equal(f.hops, MK__FORWARDED_HOPS_MAX);
    assert_client(&f, "10.0.0.1", "commas");
}

static const struct {
    const char *addresses, *schemes;
    bool is_https;
} protos[] = {
    {"", "https", true},
    {"192.0.2.1", "https", true},
    {"192.0.2.1", "HTTPS", true},
    {"192.0.2.1", "http", false},
    {"192.0.2.1", "on", false},
    {"192.0.2.1", "wss", true},
    {"192.0.2.1", "WSS", true},
    {"192.0.2.1", "ws", false},
    {"192.0.2.1", "https,", true},
    {"192.0.2.1, 10.0.0.2", "wss, ws", true},
    {"192.0.2.1, 10.0.0.2", "ws , HTTPS", false},
    {"192.0.2.1, 10.0.0.2", "wss,, http", true},
    {"192.0.2.1", "", false},
    {"192.0.2.1, 10.0.0.2", "https", true},       /* of the first proxy alone */
    {"192.0.2.1, 10.0.0.2", "https, http", true}, /* one for each */
    {"192.0.2.1, 10.0.0.2", "http, https", false},
    {"203.0.113.9, 192.0.2.1", "https, http", false}, /* what the client says about itself does not count */
};

TEST(x_forwarded_proto)
{
    for (size_t i = 0; i < COUNT(protos); i++) {
        struct mk__forwarded f = begin();
        read_line(&f, mk__forwarded_read_x_for, protos[i].addresses);
        read_line(&f, mk__forwarded_read_x_proto, protos[i].schemes);
        if (f.is_https != protos[i].is_https)
            fail_msg("%s: %s", protos[i].addresses, protos[i].schemes);
    }
}

TEST_FILE(set_up)
