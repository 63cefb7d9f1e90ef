// SPDX-License-Identifier: Apache-2.0
/*
 * Sets: the instances of sections, their defaults, iterating over them, and where each value was set. bind_test.c tests
 * which of several values wins; diagnostics_test.c tests the checks.
 */
#include "testing.h"

#include "conf/sample.h"

struct fixture {
    struct mk__conf *conf;
    struct mk__conf_set *set;
};

/* Reads `text`, which must have no errors, into a new set. */
static struct fixture open_set(enum mk_conf_scope scope, const char *text)
{
    struct fixture f = {.conf = sample_new()};
    f.set = mk__conf_set_new(f.conf, scope);
    assert_int_equal(mk__conf_read_text(f.conf, f.set, "t", mk_str_c(text)), 0);
    return f;
}

static void assert_origin(struct mk__conf_origin origin, const char *name, unsigned line, unsigned col)
{
    char text[64];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk__conf_origin_print((struct mk__conf_origin){origin.source, 0, 0}, &out);
    assert_string_equal(mk_buf_cstr(&out), name);
    assert_int_equal(origin.line, line);
    assert_int_equal(origin.col, col);
}

static void test_defaults(void **state)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, "");
    const struct sample_server *core = mk__conf_get(f.set, &sample_server);
    const struct sample_server *plugin = mk__conf_get(f.set, &sample_static);
    (void)state;

    assert_int_equal(core->workers, 0);
    assert_true(core->keep_alive);
    assert_int_equal(core->timeout_ms, 15000);
    assert_int_equal(core->request_bytes_max, 32768);
    assert_null(core->title.p);
    assert_str_equal(core->pid_file, "");
    assert_int_equal(core->index.n, 2);
    assert_str_equal(core->index.items[1], "index.htm");
    assert_int_equal(core->deny.n, 0);
    assert_int_equal(core->ports.n, 1);
    assert_int_equal(core->ports.items[0].port, 2001);
    assert_ptr_not_equal(core, plugin);
    assert_int_equal(plugin->symlink, 0);
    assert_origin(mk__conf_origin(f.set, core, offsetof(struct sample_server, workers), 0), "default", 0, 0);
    assert_origin(mk__conf_origin(f.set, core, MK__CONF_SECTION, 0), "default", 0, 0);
    assert_null(mk__conf_get(f.set, &sample_host));    /* of the other scope */
    assert_null(mk__conf_get(f.set, &sample_cheetah)); /* not loaded */
    assert_int_equal(mk__conf_check(f.conf, f.set), 0);
    mk__conf_free(f.conf);
}

/* The keys of two owners, in any case and order, reach the struct of each. */
static void test_owners_share_a_section(void **state)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, "[Server]\n SYMLINK inside\n workers 3\n[SERVER]\n nice -2\n");
    const struct sample_server *core = mk__conf_get(f.set, &sample_server);
    const struct sample_server *plugin = mk__conf_get(f.set, &sample_static);
    (void)state;
    assert_int_equal(core->workers, 3);
    assert_int_equal(core->nice, -2);
    assert_int_equal(core->symlink, 0);
    assert_int_equal(plugin->symlink, 1);
    assert_int_equal(plugin->workers, 0);
    assert_origin(mk__conf_origin(f.set, plugin, MK__CONF_SECTION, 0), "t", 1, 1);
    assert_null(mk__conf_next(f.set, &sample_server, core));
    mk__conf_free(f.conf);
}

static void test_repeated_section(void **state)
{
    struct fixture f = open_set(MK_CONF_SCOPE_HOST, "[AUTH]\n Location /a\n Title A\n"
                                                    "[HOST]\n DocumentRoot /srv\n[AUTH]\n Location /b\n");
    const struct sample_auth *a = mk__conf_get(f.set, &sample_auth), *b;
    (void)state;
    b = mk__conf_next(f.set, &sample_auth, a);
    assert_str_equal(a->location, "/a");
    assert_str_equal(a->title, "A");
    assert_str_equal(b->location, "/b");
    assert_str_equal(b->title, "Members only");
    assert_null(mk__conf_next(f.set, &sample_auth, b));
    assert_ptr_equal(mk__conf_next(f.set, &sample_auth, NULL), a);
    assert_origin(mk__conf_origin(f.set, a, MK__CONF_SECTION, 0), "t", 1, 1);
    assert_origin(mk__conf_origin(f.set, b, MK__CONF_SECTION, 0), "t", 6, 1);
    assert_origin(mk__conf_origin(f.set, b, offsetof(struct sample_auth, location), 0), "t", 7, 11);
    assert_int_equal(mk__conf_check(f.conf, f.set), 0);
    mk__conf_free(f.conf);
}

static void test_pairs(void **state)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, "[MIMETYPES]\n html  text/html\n js \"a b\"\n html x y\n");
    const struct mk_conf_pairs *pairs = mk__conf_get(f.set, &sample_mime);
    (void)state;
    assert_int_equal(pairs->n, 3);
    assert_str_equal(pairs->items[0].key, "html");
    assert_str_equal(pairs->items[0].value, "text/html");
    assert_str_equal(pairs->items[1].value, "a b");
    assert_str_equal(pairs->items[2].value, "x y");
    assert_origin(mk__conf_origin(f.set, pairs, 0, 2), "t", 4, 2);
    assert_origin(mk__conf_origin(f.set, pairs, 0, 3), "default", 0, 0);
    mk__conf_free(f.conf);
}

static void test_origins_of_items(void **state)
{
    struct fixture f =
        open_set(MK_CONF_SCOPE_SERVER, "[SERVER]\n Deny a \"b c\"\n Listen 80\n Deny d\n Listen 443 tls\n");
    const struct sample_server *core = mk__conf_get(f.set, &sample_server);
    size_t deny = offsetof(struct sample_server, deny), ports = offsetof(struct sample_server, ports);
    (void)state;
    assert_int_equal(core->deny.n, 3);
    assert_origin(mk__conf_origin(f.set, core, deny, 0), "t", 2, 7);
    assert_origin(mk__conf_origin(f.set, core, deny, 1), "t", 2, 9);
    assert_origin(mk__conf_origin(f.set, core, deny, 2), "t", 4, 7);
    assert_origin(mk__conf_origin(f.set, core, deny, 3), "default", 0, 0);
    assert_int_equal(core->ports.n, 2);
    assert_true(core->ports.items[1].tls);
    assert_origin(mk__conf_origin(f.set, core, ports, 1), "t", 5, 9);
    assert_origin(mk__conf_origin(f.set, NULL, deny, 0), "default", 0, 0);
    mk__conf_free(f.conf);
}

/* A value in one set is neither in another set of the configuration nor in another configuration. */
static void test_sets_are_independent(void **state)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, "[SERVER]\n Workers 1\n");
    struct fixture g = open_set(MK_CONF_SCOPE_SERVER, "[SERVER]\n Workers 2\n");
    struct mk__conf_set *second = mk__conf_set_new(f.conf, MK_CONF_SCOPE_SERVER);
    (void)state;
    assert_int_equal(((const struct sample_server *)mk__conf_get(f.set, &sample_server))->workers, 1);
    assert_int_equal(((const struct sample_server *)mk__conf_get(second, &sample_server))->workers, 0);
    mk__conf_free(f.conf);
    assert_int_equal(((const struct sample_server *)mk__conf_get(g.set, &sample_server))->workers, 2);
    mk__conf_free(g.conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),         cmocka_unit_test(test_owners_share_a_section),
        cmocka_unit_test(test_repeated_section), cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_origins_of_items), cmocka_unit_test(test_sets_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
