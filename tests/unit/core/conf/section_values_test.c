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

TEST(defaults)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, "");
    const struct sample_server *core = mk__conf_get(f.set, &sample_server);
    const struct sample_server *plugin = mk__conf_get(f.set, &sample_static);

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
TEST(owners_share_a_section)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, "[Server]\n SYMLINK inside\n workers 3\n[SERVER]\n nice -2\n");
    const struct sample_server *core = mk__conf_get(f.set, &sample_server);
    const struct sample_server *plugin = mk__conf_get(f.set, &sample_static);
    assert_int_equal(core->workers, 3);
    assert_int_equal(core->nice, -2);
    assert_int_equal(core->symlink, 0);
    assert_int_equal(plugin->symlink, 1);
    assert_int_equal(plugin->workers, 0);
    assert_origin(mk__conf_origin(f.set, plugin, MK__CONF_SECTION, 0), "t", 1, 1);
    assert_null(mk__conf_next(f.set, &sample_server, core));
    mk__conf_free(f.conf);
}

TEST(repeated_section)
{
    struct fixture f = open_set(MK_CONF_SCOPE_HOST, "[AUTH]\n Location /a\n Title A\n"
                                                    "[HOST]\n DocumentRoot /srv\n[AUTH]\n Location /b\n");
    const struct sample_auth *a = mk__conf_get(f.set, &sample_auth), *b;
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

TEST(pairs)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, "[MIMETYPES]\n html  text/html\n js \"a b\"\n html x y\n");
    const struct mk_conf_pairs *pairs = mk__conf_get(f.set, &sample_mime);
    assert_int_equal(pairs->n, 3);
    assert_str_equal(pairs->items[0].key, "html");
    assert_str_equal(pairs->items[0].value, "text/html");
    assert_str_equal(pairs->items[1].value, "a b");
    assert_str_equal(pairs->items[2].value, "x y");
    assert_origin(mk__conf_origin(f.set, pairs, 0, 2), "t", 4, 2);
    assert_origin(mk__conf_origin(f.set, pairs, 0, 3), "default", 0, 0);
    mk__conf_free(f.conf);
}

TEST(pairs_beside_a_key)
{
    struct fixture f = open_set(MK_CONF_SCOPE_HOST, "[HOST]\n DocumentRoot /\n[PAGES]\n 404 a\n match /x\n Match2 b\n"
                                                    "[PAGES]\n 500 c\n");
    const struct sample_pages *first = mk__conf_get(f.set, &sample_pages);
    const struct sample_pages *second = mk__conf_next(f.set, &sample_pages, first);
    size_t match = offsetof(struct sample_pages, match);
    assert_int_equal(first->pairs.n, 2);
    assert_str_equal(first->pairs.items[1].key, "Match2");
    assert_str_equal(first->match, "/x");
    assert_str_equal(second->pairs.items[0].value, "c");
    assert_str_equal(second->match, "/");
    assert_origin(mk__conf_origin(f.set, first, 0, 1), "t", 6, 2);
    assert_origin(mk__conf_origin(f.set, first, 0, 2), "default", 0, 0);
    assert_origin(mk__conf_origin(f.set, first, match, 0), "t", 5, 8);
    assert_origin(mk__conf_origin(f.set, second, match, 0), "default", 0, 0);
    assert_int_equal(mk__conf_check(f.conf, f.set), 0);
    mk__conf_free(f.conf);
}

/* ── sections of hosts in the server's files ── */

/* Reads a set of the server and one of a host, which gets the sections of the first. */
static struct fixture open_both(const char *server_text, const char *host_text, struct mk__conf_set **ret_server)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, server_text);
    *ret_server = f.set;
    f.set = mk__conf_set_new(f.conf, MK_CONF_SCOPE_HOST);
    assert_int_equal(mk__conf_read_text(f.conf, f.set, "host", mk_str_c(host_text)), 0);
    mk__conf_set_defaults(f.conf, f.set, *ret_server);
    assert_int_equal(mk__conf_check(f.conf, *ret_server), 0);
    assert_int_equal(mk__conf_check(f.conf, f.set), 0);
    return f;
}

/* Asserts the locations of a repeating section, in this order and with commas between them. */
static void assert_locations(const struct mk__conf_set *set, const struct mk_conf_section *section,
                             const char *expected)
{
    char text[64];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    for (const struct sample_auth *a = mk__conf_get(set, section); a; a = mk__conf_next(set, section, a))
        mk_buf_addf(&out, "%s%.*s", out.len ? "," : "", MK_STR_ARG(a->location));
    assert_string_equal(mk_buf_cstr(&out), expected);
}

#define ROOT "[HOST]\n DocumentRoot /\n"

TEST(server_sections_follow)
{
    struct mk__conf_set *server;
    struct fixture f = open_both("[AUTH]\n Location c\n[SERVER]\n[AUTH]\n Location d\n",
                                 ROOT "[AUTH]\n Location a\n[PAGES]\n[AUTH]\n Location b\n", &server);
    struct mk__conf_set *second = mk__conf_set_new(f.conf, MK_CONF_SCOPE_HOST);
    mk__conf_set_defaults(f.conf, second, server);
    assert_locations(f.set, &sample_auth, "a,b,c,d");
    assert_locations(second, &sample_auth, "c,d"); /* a host that has no sections itself */
    assert_locations(server, &sample_auth, "c,d");
    assert_locations(f.set, &sample_gate, "");
    const struct sample_auth *shared = mk__conf_get(server, &sample_auth);
    assert_ptr_equal(mk__conf_get(second, &sample_auth), shared);
    assert_origin(mk__conf_origin(server, shared, offsetof(struct sample_auth, location), 0), "t", 2, 11);
    assert_origin(mk__conf_origin(f.set, shared, MK__CONF_SECTION, 0), "default", 0, 0); /* it is the server's */
    mk__conf_free(f.conf);
}

/* Both kinds of keys stand in one section; only keys of hosts make one for all hosts. */
TEST(sections_of_one_name)
{
    struct mk__conf_set *server;
    struct fixture f = open_both("[GATE]\n Gates 2\n[GATE]\n Location a\n Title A\n[gate]\n location b\n",
                                 ROOT "[GATE]\n Location x\n", &server);
    assert_int_equal(((const struct sample_gate_server *)mk__conf_get(server, &sample_gate_server))->gates, 2);
    assert_locations(f.set, &sample_gate, "x,a,b");
    const struct sample_auth *a = mk__conf_get(server, &sample_gate);
    assert_str_equal(a->title, "A");
    assert_origin(mk__conf_origin(server, a, MK__CONF_SECTION, 0), "t", 3, 1);
    mk__conf_free(f.conf);
    f = open_both("[GATE]\n Gates 2\n", ROOT, &server);
    assert_locations(f.set, &sample_gate, "");
    mk__conf_free(f.conf);
}

/* An error in a section for all hosts is found in the server's set only. */
TEST(errors_of_server_sections)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *server = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    struct mk__conf_set *host = mk__conf_set_new(conf, MK_CONF_SCOPE_HOST);
    assert_int_equal(mk__conf_read_text(conf, server, "t", MK_STR("[GATE]\n Title \"x\n Location a\n")), -EINVAL);
    mk__conf_set_defaults(conf, host, server);
    assert_true(mk__conf_has_errors(server, &sample_gate_server)); /* it is not known whose the bad line is */
    assert_false(mk__conf_has_errors(server, &sample_auth));
    assert_false(mk__conf_has_errors(host, &sample_gate));
    mk__conf_free(conf);
}

TEST(origins_of_items)
{
    struct fixture f =
        open_set(MK_CONF_SCOPE_SERVER, "[SERVER]\n Deny a \"b c\"\n Listen 80\n Deny d\n Listen 443 tls\n");
    const struct sample_server *core = mk__conf_get(f.set, &sample_server);
    size_t deny = offsetof(struct sample_server, deny), ports = offsetof(struct sample_server, ports);
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
TEST(sets_are_independent)
{
    struct fixture f = open_set(MK_CONF_SCOPE_SERVER, "[SERVER]\n Workers 1\n");
    struct fixture g = open_set(MK_CONF_SCOPE_SERVER, "[SERVER]\n Workers 2\n");
    struct mk__conf_set *second = mk__conf_set_new(f.conf, MK_CONF_SCOPE_SERVER);
    assert_int_equal(((const struct sample_server *)mk__conf_get(f.set, &sample_server))->workers, 1);
    assert_int_equal(((const struct sample_server *)mk__conf_get(second, &sample_server))->workers, 0);
    mk__conf_free(f.conf);
    assert_int_equal(((const struct sample_server *)mk__conf_get(g.set, &sample_server))->workers, 2);
    mk__conf_free(g.conf);
}
