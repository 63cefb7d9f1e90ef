// SPDX-License-Identifier: Apache-2.0
/* Transports that plugins need: which are loaded for which configuration, and where; and which ones plugins get. */
#include "folder.h"

#include <errno.h>

#include "server/plugins/transports.h"

#include <monkey/hooks.h>

static const struct mk_conf_section sections[] = {{.name = "PROXY"}, {.name = "UPSTREAM"}, {0}};
static const struct mk_plugin_need needs[] = {{"liana", "To", "http://"}, {"ghost", "To", "ghost://"}, {0}};
static const struct mk_plugin_interfaces needy_interfaces = {.needs = needs};
static const struct mk_plugin needy = {.name = "needy", .sections = sections, .interfaces = &needy_interfaces},
                              modest = {.name = "modest"};
static const struct mk_transport plain_transport = {.name = "other"};
static const struct mk_plugin_interfaces other_interfaces = {.transport = &plain_transport};
static const struct mk_plugin other = {.name = "other", .interfaces = &other_interfaces};

static struct mk_generation g;

/* Loads what the plugins `other`, `modest` and `needy` need for this source. */
static void load(const struct mk__generation_source *source)
{
    g = (struct mk_generation){.plugins = {&other, &modest, &needy}, .n_plugins = 3};
    assert_int_equal(mk__transports_load_needed(&g, source), 0);
}

static bool needs_liana(struct mk_str text)
{
    const struct mk__program program = {.text = text};
    load(&(struct mk__generation_source){.program = &program});
    return g.n_plugins > 3;
}

TEST(texts)
{
    static const struct {
        struct mk_str text;
        bool needed;
    } cases[] = {
        {MK_STR(""), false},
        {MK_STR("[PROXY]\n    To http://a\n"), true},
        {MK_STR("[proxy]\n    to HTTP://a\n"), true},
        {MK_STR("[UPSTREAM]\n    To unix:/a http://a\n"), true},
        {MK_STR("[PROXY]\n    To unix:/http://a\n"), false},
        {MK_STR("[PROXY]\n    To http:/\n"), false},
        {MK_STR("[PROXY]\n    From http://a\n"), false},
        {MK_STR("[REDIRECT]\n    To http://a\n"), false},
        {MK_STR("[PROXY]\n    Match /\n[REDIRECT]\n    To http://a\n"), false},
        {MK_STR("[PROXY]\n    To ${NO_SUCH_VARIABLE:-http://a}\n"), true},
        {MK_STR("[PROXY]\n    To ghost://a\n"), false}, /* it is not installed */
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (needs_liana(cases[i].text) != cases[i].needed)
            fail_msg("case %zu", i);
}

TEST(place)
{
    assert_true(needs_liana(MK_STR("[PROXY]\n    To http://a\n[PROXY]\n    To http://b\n")));
    assert_int_equal(g.n_plugins, 4); /* once */
    assert_ptr_equal(g.plugins[0], &other);
    assert_string_equal(g.plugins[1]->name, "liana");
    assert_ptr_equal(g.plugins[2], &modest);
    assert_ptr_equal(g.plugins[3], &needy);
}

TEST(files)
{
    char dir[512];
    snprintf(dir, sizeof(dir), "%s", mk_test_folder);
    mk_test_mkdir("sites");
    mk_test_write("monkey.conf", MK_STR("[SERVER]\n"));
    mk_test_write("sites/default", MK_STR("[PROXY]\n@INCLUDE ../more\n    To http://a\n"));
    mk_test_write("more", MK_STR("[REDIRECT]\n    To /\n"));
    load(&(struct mk__generation_source){.dir = dir});
    assert_int_equal(g.n_plugins, 4);
    mk_test_write("sites/default", MK_STR("[PROXY]\n    To https://a\n"));
    load(&(struct mk__generation_source){.dir = dir});
    assert_int_equal(g.n_plugins, 3);
}

TEST(overrides)
{
    struct mk__generation_source source = {.overrides = {{"PROXY", "To", " http://a", "option", true}},
                                           .n_overrides = 1};
    load(&source);
    assert_int_equal(g.n_plugins, 4);
}

static int load_without_memory(void *ctx)
{
    const struct mk__program program = {.text = MK_STR("[PROXY]\n    To http://a\n")};
    (void)ctx;
    g = (struct mk_generation){.plugins = {&needy}, .n_plugins = 1};
    return mk__transports_load_needed(&g, &(struct mk__generation_source){.program = &program});
}

TEST(allocations_that_fail)
{
    assert_true(mk_test_failing_allocs(load_without_memory, NULL) > 0);
}

/* ── for plugins ── */

static int refuse(struct mk_io *io, struct mk_worker *worker)
{
    (void)io, (void)worker;
    return -EPERM;
}

TEST(transports_for_plugins)
{
    const struct mk_transport server_only = {.name = "deaf", .open = refuse};
    const struct mk_plugin_interfaces interfaces = {.transport = &server_only};
    const struct mk_plugin deaf = {.name = "deaf", .interfaces = &interfaces};
    struct mk_buf error;
    char text[512];
    g = (struct mk_generation){.plugins = {&other, &modest, &deaf}, .n_plugins = 3};
    mk_buf_init_fixed(&error, text, sizeof(text));
    assert_ptr_equal(mk_generation_transport(&g, "Other", &error), &plain_transport);
    assert_int_equal(error.len, 0);
    assert_null(mk_generation_transport(&g, "deaf", &error));
    assert_string_equal(mk_buf_cstr(&error), "the plugin deaf opens no connections");
    mk_buf_init_fixed(&error, text, sizeof(text));
    assert_null(mk_generation_transport(&g, "modest", &error)); /* no transport */
    assert_memory_equal(text, "the plugin modest is missing", 28);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)
