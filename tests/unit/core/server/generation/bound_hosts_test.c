// SPDX-License-Identifier: Apache-2.0
/* Hosts that answer only at some listeners: which of them has a name, and a load without memory. */
#include "folder.h"

#include <errno.h>

#include "server/generation/bound_hosts.h"
#include "server/generation/generation_load.h"

static struct mk_generation g;

static const struct mk__listener sockets[3]; /* of the lines A and B; the third is of no line */

static const struct {
    const char *file, *text;
} files[] = {
    {"conf/monkey.conf", "[SERVER]\n    Listen 127.0.0.1:0\n    Listen 127.0.0.2:0\n    Workers 1\n"},
    {"conf/sites/default", "[HOST]\n    DocumentRoot ../..\n"},
    {"conf/sites/a", "[HOST]\n    ServerName x.test\n    Listener 127.0.0.1:0\n    DocumentRoot ../..\n"},
    {"conf/sites/b", "[HOST]\n    ServerName x.test *.b.test\n    Listener 127.0.0.2:0\n    DocumentRoot ../..\n"},
    {"conf/sites/c", "[HOST]\n    ServerName c.test\n    DocumentRoot ../..\n"},
};

static int load(void *ctx)
{
    static char dir[512];
    (void)ctx;
    snprintf(dir, sizeof(dir), "%s", mk_test_path("conf"));
    struct mk__generation_source source = {.dir = dir};
    int err = mk__generation_load(&g, &source);
    if (err < 0)
        mk__generation_release(&g);
    return err;
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("conf");
    mk_test_mkdir("conf/sites");
    for (size_t i = 0; i < COUNT(files); i++)
        mk_test_write(files[i].file, mk_str_c(files[i].text));
    return 0;
}

/* The file of the host at a listener. */
static const char *find(const char *name, unsigned listener)
{
    const struct mk_host *host = mk__generation_find_host(&g, &sockets[listener], mk_str_c(name));
    return host == g.default_host                       ? "default"
           : mk_host_has_name(host, MK_STR("c.test"))   ? "c"
           : mk_host_has_name(host, MK_STR("b.b.test")) ? "b"
                                                        : "a";
}

TEST(finds_by_listener)
{
    static const struct {
        const char *name, *found[3];
    } rows[] = {
        {"x.test", {"a", "b", "default"}},  {"b.b.test", {"a", "b", "default"}}, {"c.test", {"c", "c", "c"}},
        {"nowhere", {"a", "b", "default"}}, {"", {"a", "b", "default"}},
    };
    assert_int_equal(load(NULL), 0);
    g.settings->listen.items[0].listener = &sockets[0];
    g.settings->listen.items[1].listener = &sockets[1];
    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned k = 0; k < 3; k++)
            if (strcmp(find(rows[i].name, k), rows[i].found[k]) != 0)
                fail_msg("%s at %u: %s", rows[i].name, k, find(rows[i].name, k));
    assert_ptr_equal(mk_generation_host(&g, NULL, MK_STR("x.test")), g.default_host);
    assert_true(mk__bound_hosts_is_default(g.default_host));
    mk__generation_release(&g);
}

static const struct mk_host *host_named(const char *name)
{
    return mk_generation_host(&g, NULL, mk_str_c(name));
}

/* Which hosts clients on other machines may reach, by the lines at which they answer. */
TEST(public_hosts)
{
    static const struct {
        const char *listen;
        bool is_public; /* the host that answers at this line only, and those that answer at all */
    } rows[] = {{"127.0.0.2:0", false}, {"127.9.9.9:0", false}, {"[::1]:0", false},       {"192.0.2.1:0", true},
                {"0.0.0.0:0", true},    {"[::]:0", true},       {"[2001:db8::1]:0", true}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[256];
        snprintf(text, sizeof(text), "[SERVER]\n    Listen 127.0.0.1:0\n    Listen %s\n    Workers 1\n",
                 rows[i].listen);
        mk_test_write("conf/monkey.conf", mk_str_c(text));
        snprintf(text, sizeof(text), "[HOST]\n    ServerName b.test\n    Listener %s\n    DocumentRoot ../..\n",
                 rows[i].listen);
        mk_test_write("conf/sites/b", mk_str_c(text));
        assert_int_equal(load(NULL), 0);
        g.settings->listen.items[0].listener = &sockets[0];
        g.settings->listen.items[1].listener = &sockets[1];
        assert_int_equal(mk_host_is_public(mk__generation_find_host(&g, &sockets[1], MK_STR("b.test"))),
                         rows[i].is_public);
        assert_int_equal(mk_host_is_public(host_named("c.test")), rows[i].is_public);
        assert_false(mk_host_is_public(mk__generation_find_host(&g, &sockets[0], MK_STR("x.test"))));
        mk__generation_release(&g);
    }
    mk_test_write("conf/monkey.conf", mk_str_c(files[0].text));
    mk_test_write("conf/sites/b", mk_str_c(files[3].text));
}

TEST(no_memory)
{
    mk_test_failing_allocs(load, NULL);
    mk__generation_release(&g);
}

TEST_FILE(set_up, mk_test_folder_remove)
