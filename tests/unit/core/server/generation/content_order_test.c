// SPDX-License-Identifier: Apache-2.0
/* Warnings of sections that no request gets to, by the order of plugins and their sections. */
#include "testing.h"

#include "server/generation/content_order.h"

#include <monkey/hooks.h>

struct rule {
    struct mk_pattern match;
    bool declines;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct rule, match, "Match", "/", "Paths."),
    MK_CONF_KEY_BOOL(struct rule, declines, "Declines", "Off", "Whether requests are declined."),
    {0},
};

#define SECTION(text, more) \
    { \
        .name = text, .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT | (more), .size = sizeof(struct rule), \
        .keys = keys, .doc = "A section." \
    }
static const struct mk_conf_section a_sections[] = {SECTION("A_ONE", MK_CONF_SERVES),
                                                    SECTION("A_TWO", MK_CONF_SERVES),
                                                    SECTION("A_OTHER", 0),
                                                    {0}};
static const struct mk_conf_section b_sections[] = {SECTION("B", MK_CONF_SERVES), {0}};
static const struct mk_conf_section c_sections[] = {SECTION("C", MK_CONF_SERVES), {0}};

static bool takes_section(const struct mk_host *host, const struct mk_conf_section *type, const void *section_struct)
{
    const struct rule *rule = section_struct;
    assert_true(host && type->flags & MK_CONF_SERVES);
    return !rule->declines;
}

static int respond(struct mk_request *req)
{
    (void)req;
    return 0;
}

static const struct mk_inspect_hooks takes_sections = {.takes_section = takes_section};
static const struct mk_plugin a = {.name = "a",
                                   .sections = a_sections,
                                   .on_content = respond,
                                   .inspection = &takes_sections};
static const struct mk_plugin b = {.name = "b",
                                   .sections = b_sections,
                                   .on_content = respond,
                                   .inspection = &takes_sections};
static const struct mk_plugin c = {.name = "c", .sections = c_sections, .on_content = respond}; /* declines */

static struct mk_generation g;
static struct mk_host hosts[2];
static struct mk_buf text;

static struct mk__conf_set *read_set(enum mk_conf_scope scope, const char *name, const char *lines)
{
    struct mk__conf_set *set = mk__conf_set_new(g.conf, scope);
    assert_non_null(set);
    assert_int_equal(mk__conf_read_text(g.conf, set, name, mk_str_c(lines)), 0);
    return set;
}

static void load(const char *server_text, const char *host_text)
{
    g = (struct mk_generation){.conf = mk__conf_new(), .hosts = hosts, .plugins = {&a, &c, &b}, .n_plugins = 3};
    assert_non_null(g.conf);
    mk_arena_init(&g.arena, NULL, 1 << 20, NULL, 0);
    for (unsigned i = 0; i < g.n_plugins; i++)
        for (const struct mk_conf_section *s = g.plugins[i]->sections; s->name; s++)
            assert_int_equal(mk__conf_declare(g.conf, s, g.plugins[i]->name), 0);
    g.set = read_set(MK_CONF_SCOPE_SERVER, "server", server_text);
    for (unsigned i = 0; i < COUNT(hosts); i++) {
        hosts[i] = (struct mk_host){.generation = &g, .set = read_set(MK_CONF_SCOPE_HOST, "host", host_text)};
        mk__conf_set_defaults(g.conf, hosts[i].set, g.set);
    }
    hosts[0].next = &hosts[1];
}

/* Returns what the check reports. */
static const char *check(void)
{
    mk__content_order_check(&g);
    assert_int_equal(mk__conf_errors(g.conf), 0);
    mk_buf_init(&text, 65536);
    mk__conf_diagnostics(g.conf, &text);
    return mk_buf_cstr(&text);
}

static void unload(void)
{
    mk_buf_release(&text);
    mk__conf_free(g.conf);
    mk_arena_release(&g.arena);
}

static unsigned count_warnings(const char *lines)
{
    unsigned n = 0;
    for (const char *at = lines; (at = strstr(at, "no request gets here")); at++)
        n++;
    return n;
}

/* Of two hosts with the same text. */
static const struct {
    const char *server, *host;
    unsigned warnings;
} rows[] = {
    {"", "[A_ONE]\n Match /x\n[B]\n Match /x/y\n", 2},
    {"", "[B]\n Match /x/y\n[A_ONE]\n Match /x\n", 2}, /* the order of the lines does not count */
    {"", "[A_ONE]\n[B]\n Match *.b\n", 2},             /* Match has a default */
    {"", "[A_ONE]\n Match /x/y\n[B]\n Match /x\n", 0},
    {"", "[A_ONE]\n Match /x\n[B]\n Match /y\n", 0},
    {"", "[A_ONE]\n Match /x\n Declines On\n[B]\n Match /x\n", 0},
    {"", "[A_ONE]\n Match /x\n Declines On\n[A_TWO]\n Match /x\n", 2}, /* of one plugin: the first section counts */
    {"", "[A_TWO]\n Match /x\n[A_ONE]\n Match /x\n", 2},
    {"", "[A_OTHER]\n Match /x\n[B]\n Match /x\n", 0}, /* answers no requests */
    {"", "[A_ONE]\n Match /x\n[A_OTHER]\n Match /x\n", 0},
    {"", "[C]\n Match /x\n[B]\n Match /x\n", 0},
    {"", "[A_ONE]\n Match /x\n[C]\n Match /x\n", 2},
    {"", "[A_ONE]\n Match /x\n[A_ONE]\n Match /y\n[B]\n Match /y\n[C]\n Match /y\n", 4},
    {"[A_ONE]\n Match /x\n[B]\n Match /x\n", "", 1}, /* once for all hosts */
    {"[A_ONE]\n Match /x\n", "[B]\n Match /x\n", 2},
    {"[B]\n Match /x\n", "[A_ONE]\n Match /x\n", 0}, /* a host may override what all have */
};

TEST(every_row)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        load(rows[i].server, rows[i].host);
        const char *found = check();
        if (count_warnings(found) != rows[i].warnings)
            fail_msg("row %zu: not %u but %s", i, rows[i].warnings, found);
        unload();
    }
}

TEST(the_sentence_of_two_plugins)
{
    load("", "[A_ONE]\n Match /x\n[B]\n Match =/x/y\n");
    assert_non_null(strstr(check(), "host:4:8: warning: no request gets here: host:2 has a section [A_ONE] with all of "
                                    "these paths, and the plugin a comes before b: give that one a narrower Match, or "
                                    "write \"Match =/x/y b\" in [HANDLERS]"));
    unload();
}

TEST(the_sentence_of_one_plugin)
{
    load("", "[A_TWO]\n Match /x\n[A_ONE]\n");
    assert_non_null(strstr(check(), "host:2:8: warning: no request gets here: host:3 has a section [A_ONE] with all of "
                                    "these paths, and sections [A_ONE] come before [A_TWO]: give that one a narrower "
                                    "Match"));
    unload();
}

/* A line of [HANDLERS] decides between plugins, but not between the sections of one. */
TEST(handlers)
{
    struct mk__handler one = {.index = 0};
    load("", "[A_ONE]\n Match /x\n[A_TWO]\n Match /x\n[B]\n Match /x\n");
    for (unsigned i = 0; i < COUNT(hosts); i++)
        hosts[i].handlers = (struct mk__handlers){&one, 1};
    assert_int_equal(count_warnings(check()), 4);
    unload();
    load("", "[A_ONE]\n Match /x\n[A_TWO]\n Match /x\n[B]\n Match /x\n");
    one.index = 2;
    for (unsigned i = 0; i < COUNT(hosts); i++)
        hosts[i].handlers = (struct mk__handlers){&one, 1};
    assert_int_equal(count_warnings(check()), 2);
    unload();
}

/* Plugins whose sections have errors are left out. */
TEST(failed_plugins)
{
    for (unsigned i = 0; i < 3; i += 2) {
        load("", "[A_ONE]\n Match /x\n[B]\n Match /x\n");
        g.failed = 1u << i;
        assert_int_equal(count_warnings(check()), 0);
        unload();
    }
}
