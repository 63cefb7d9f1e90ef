// SPDX-License-Identifier: Apache-2.0
/* Host names: which are valid, which host a request's name finds, and that ten thousand cost no more than ten. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>

#include <monkey/base/arena.h>

#include "server/generation/vhost.h"

static struct mk_arena arena;
static struct mk__vhosts table;

/* Hosts are only pointers to the table: the n-th one here is the n-th of these bytes. */
static char hosts[10000];

static struct mk_host *host_at(size_t n)
{
    return (struct mk_host *)&hosts[n];
}

static int add(const char *name, size_t n)
{
    const char *reason;
    const struct mk__vhost *first;
    return mk__vhost_add(&table, mk_str_c(name), host_at(n), 0, &reason, &first);
}

static void open_table(size_t n)
{
    mk_arena_init(&arena, NULL, 1 << 22, NULL, 0);
    assert_int_equal(mk__vhost_init(&table, &arena, n), 0);
}

static void fill_table(const char *const *list, size_t n)
{
    open_table(n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(add(list[i], i), 0);
}

/* Returns the number of the host that answers, or -1. The name ends at a page that cannot be read. */
static int find(const char *name, size_t len)
{
    char *p = mk_test_guarded(name, len);
    struct mk_host *host = mk__vhost_find(&table, mk_str(p, len));
    mk_test_unguard(p, len);
    return host ? (int)((char *)host - hosts) : -1;
}

/* ── finding ── */

static const char *const names[] = {
    "example.org",
    "*.example.org",
    "www.Example.org",
    "*.deep.example.org",
    "*.b.deep.example.org",
    "127.0.0.1",
    "[0:0::1]",
    "localhost.",
    "*.net",
    "x.y.z.b.deep.example.org",
    "[::FFFF:192.0.2.1]",
    "under_score.xn--bcher-kva.example",
};

static const struct {
    const char *name;
    int host;
} found[] = {
    {"example.org", 0},
    {"EXAMPLE.ORG", 0},
    {"example.org.", 0},
    {"example.org..", -1},
    {"a.example.org", 1},
    {"A.Example.Org.", 1},
    {"a.b.c.d.example.org", 1},
    {"www.example.org", 2},
    {"WWW.EXAMPLE.ORG.", 2},
    {"www.www.example.org", 1},
    {"deep.example.org", 1},
    {"a.deep.example.org", 3},
    {"b.deep.example.org", 3},
    {"a.b.deep.example.org", 4},
    {"c.a.b.deep.example.org", 4},
    {"x.y.z.b.deep.example.org", 9},
    {"w.x.y.z.b.deep.example.org", 4},
    {"ample.org", -1},
    {"anexample.org", -1},
    {".example.org", -1},
    {"*.example.org", 1}, /* a star is one label like another */
    {"org", -1},
    {"net", -1},
    {"a.net", 8},
    {"127.0.0.1", 5},
    {"127.0.0.1.", 5},
    {"127.1", -1},
    {"27.0.0.1", -1},
    {"[::1]", 6},
    {"[0:0:0:0:0:0:0:1]", 6},
    {"[0000::0.0.0.1]", 6},
    {"[::2]", -1},
    {"[::ffff:c000:201]", 10},
    {"[::1", -1},
    {"[::1].", -1},
    {"[]", -1},
    {"[", -1},
    {"[::1%lo]", -1},
    {"[1111:1111:1111:1111:1111:1111:255.255.255.2555555555]", -1},
    {"localhost", 7},
    {"LOCALHOST.", 7},
    {"under_score.XN--BCHER-KVA.example", 11},
    {"", -1},
    {".", -1},
    {"..", -1},
};

TEST(finds)
{
    fill_table(names, COUNT(names));
    for (size_t i = 0; i < COUNT(found); i++)
        if (find(found[i].name, strlen(found[i].name)) != found[i].host)
            fail_msg("\"%s\" finds %d", found[i].name, find(found[i].name, strlen(found[i].name)));
    assert_int_equal(find("[::1\0]", 6), -1);
    assert_int_equal(find("\0example.org", 12), -1);
    mk_arena_release(&arena);
}

TEST(without_names)
{
    open_table(0);
    assert_int_equal(find("example.org", 11), -1);
    assert_int_equal(find("[::1]", 5), -1);
    mk_arena_release(&arena);
}

/* At most 253 bytes, however many labels those are; what is longer has no host. */
TEST(longest)
{
    const char *const wild[] = {"*.a.a", "*.a"};
    char text[600];
    fill_table(wild, COUNT(wild));
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 2 ? '.' : 'a';
    assert_int_equal(find(text, 253), 0);
    assert_int_equal(find(text, 254), 0); /* its last dot is the root */
    assert_int_equal(find(text, 255), -1);
    assert_int_equal(find(text, sizeof(text)), -1);
    memset(text, 'a', sizeof(text));
    text[251] = '.';
    assert_int_equal(find(text, 253), 1);
    mk_arena_release(&arena);
}

/* ── adding ── */

static const struct {
    const char *name, *reason; /* part of it */
} refused[] = {
    {"", "starts with"},
    {".", "starts with"},
    {".example.org", "*.example.org"},
    {"~^www", "no expression"},
    {"example..org", "two dots"},
    {"example.org..", "two dots"},
    {"*..org", "two dots"},
    {"*", "first label"},
    {"*.", "first label"},
    {"**.example.org", "first label"},
    {"w*.example.org", "first label"},
    {"*w.example.org", "first label"},
    {"www.*.org", "first label"},
    {"*.*.org", "first label"},
    {"example.*", "first label"},
    {"example.org:80", "no port"},
    {"example.org:", "no port"},
    {"::1", "no port"},
    {"[::1]:80", "without a port"},
    {"[::1]x", "without a port"},
    {"[::1", "without a port"},
    {"[::g]", "without a port"},
    {"[fe80::1%eth0]", "without a port"},
    {"*.[::1]", "no such character"},
    {"exa mple.org", "no such character"},
    {"example.org/x", "a name has no slash"},
    {"a.example,", "a blank separates names"},
    {"http://example.org", "a name is not a URL"},
    {"ex%61mple.org", "no such character"},
    {"b\xc3\xbc"
     "cher.example",
     "xn--"},
};

TEST(refuses)
{
    char longest[256];
    const char *reason;
    const struct mk__vhost *first;
    open_table(4);
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct mk_str name = mk_str_c(refused[i].name);
        assert_int_equal(mk__vhost_add(&table, name, host_at(0), 0, &reason, &first), -EINVAL);
        if (!strstr(reason, refused[i].reason))
            fail_msg("\"%s\": %s", refused[i].name, reason);
    }
    memset(longest, 'a', sizeof(longest));
    assert_int_equal(mk__vhost_add(&table, mk_str(longest, 254), host_at(0), 0, &reason, &first), -EINVAL);
    assert_non_null(strstr(reason, "253 bytes"));
    assert_int_equal(mk__vhost_add(&table, mk_str(longest, 253), host_at(0), 0, &reason, &first), 0);
    mk_arena_release(&arena);
}

/* Names that look different and are the same; the first keeps it. */
TEST(refuses_doubles)
{
    static const char *const twice[][2] = {{"example.org", "EXAMPLE.org."},
                                           {"*.example.org", "*.Example.Org."},
                                           {"[::1]", "[0:0:0:0:0:0:0:1]"},
                                           {"192.0.2.1", "192.0.2.1"}};
    const char *reason;
    const struct mk__vhost *first;
    open_table(8);
    for (size_t i = 0; i < COUNT(twice); i++) {
        assert_int_equal(mk__vhost_add(&table, mk_str_c(twice[i][0]), host_at(i), 3, &reason, &first), 0);
        assert_int_equal(mk__vhost_add(&table, mk_str_c(twice[i][1]), host_at(9), 4, &reason, &first), -EEXIST);
        assert_ptr_equal(first->host, host_at(i));
        assert_int_equal(first->nth, 3);
    }
    mk_arena_release(&arena);
}

/* ── many ── */

/* No look-up, whether it finds or not, takes more probes than the longest row of slots in use, and one. */
static unsigned longest_row(void)
{
    unsigned row = 0, most = 0;
    for (uint32_t i = 0; i <= 2 * table.mask + 1; i++) { /* twice around: a row may cross the end */
        row = table.slots[i & table.mask].host ? row + 1 : 0;
        most = row > most ? row : most;
    }
    return most;
}

/* Names as people number their hosts, and as one prefix or suffix makes them alike. */
static const char *const patterns[] = {"host-%05zu.example.org", "%zu.example.org", "*.%zu.customers.example",
                                       "www.example%zu", "10.0.%zu.1"};

TEST(ten_thousand)
{
    char name[64];
    for (size_t k = 0; k < COUNT(patterns); k++) {
        open_table(COUNT(hosts));
        for (size_t i = 0; i < COUNT(hosts); i++) {
            snprintf(name, sizeof(name), patterns[k], i);
            assert_int_equal(add(name, i), 0);
        }
        for (size_t i = 0; i < COUNT(hosts); i++) {
            snprintf(name, sizeof(name), patterns[k], i);
            assert_ptr_equal(mk__vhost_find(&table, mk_str_c(name)), host_at(i));
        }
        assert_true(table.mask + 1 >= 2 * COUNT(hosts) && table.mask < 4 * COUNT(hosts));
        if (longest_row() > 100)
            fail_msg("%s: %u slots in a row", patterns[k], longest_row());
        mk_arena_release(&arena);
    }
}

TEST(seeds_differ)
{
    struct mk__vhosts other;
    fill_table(names, COUNT(names));
    assert_int_equal(mk__vhost_init(&other, &arena, 1), 0);
    assert_true(other.seed != table.seed || other.point != table.point);
    mk_arena_release(&arena);
}

static int build(void *ctx)
{
    int err;
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    err = mk__vhost_init(&table, &arena, COUNT(names));
    for (size_t i = 0; i < COUNT(names) && err == 0; i++)
        err = add(names[i], i);
    mk_arena_release(&arena);
    return err;
}

TEST(every_allocation_may_fail)
{
    assert_true(mk_test_failing_allocs(build, NULL) > 0);
    assert_int_equal(mk__vhost_init(&table, &arena, SIZE_MAX), -ENOMEM);
}
