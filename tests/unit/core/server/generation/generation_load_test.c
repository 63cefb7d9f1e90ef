// SPDX-License-Identifier: Apache-2.0
/* Loading a configuration from a directory: what comes of it, what is said of its errors, and no memory at all. */
#include "folder.h"

#include <errno.h>

#include "server/generation/generation_load.h"

static struct mk_generation g;

static void write_good(void)
{
    mk_test_write("conf/monkey.conf",
                  MK_STR("[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n    Indexfile a.html\n"));
    mk_test_write("conf/sites/default", MK_STR("[HOST]\n    DocumentRoot ../../htdocs\n"));
}

static void write_more(void)
{
    write_good();
    mk_test_write("conf/plugins.load", MK_STR("[PLUGINS]\n    Load liana\n    Load Static\n"));
    mk_test_write("conf/monkey.mime", MK_STR("[MIMETYPES]\n    html text/special\n    x application/x-x\n"));
    mk_test_write("conf/plugins/static/static.conf", MK_STR("[SERVER]\n    SymLink Inside\n"));
    mk_test_write("conf/sites/second",
                  MK_STR("[HOST]\n    ServerName two.example *.x\n    DocumentRoot ../../htdocs\n"));
    mk_test_write("conf/sites/.hidden", MK_STR("nonsense"));
    mk_test_write("conf/sites/old~", MK_STR("nonsense"));
}

static void clear(void)
{
    static const char *const names[] = {"conf/monkey.conf",   "conf/plugins.load",
                                        "conf/monkey.mime",   "conf/plugins/static/static.conf",
                                        "conf/sites/default", "conf/sites/second",
                                        "conf/sites/.hidden", "conf/sites/old~"};
    for (size_t i = 0; i < COUNT(names); i++)
        unlink(mk_test_path(names[i]));
}

static struct mk__generation_source source_of_folder(void)
{
    static char dir[512];
    snprintf(dir, sizeof(dir), "%s", mk_test_path("conf"));
    return (struct mk__generation_source){.dir = dir};
}

static const char *problems(void)
{
    static char text[65536];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text) - 1);
    mk__generation_diagnostics(&g, &out);
    return mk_buf_cstr(&out);
}

TEST(loads)
{
    struct mk__generation_source source = source_of_folder();
    write_good();
    if (mk__generation_load(&g, &source) != 0)
        fail_msg("%s", problems());
    assert_int_equal(g.settings->workers, 1);
    assert_true(g.n_plugins >= 2); /* all of the build */
    assert_non_null(g.transport);
    assert_string_equal(g.transport->name, "liana");
    assert_non_null(g.default_host);
    assert_ptr_equal(mk__generation_find_host(&g, NULL, MK_STR("any")), g.default_host);
    assert_str_equal(mk__mime_find(&g.mime, MK_STR("/a.css")), "text/css; charset=utf-8");
    assert_string_equal(problems(), "");
    mk__generation_release(&g);
    clear();
}

TEST(loads_everything)
{
    struct mk__generation_source source = source_of_folder();
    unsigned before = mk_test_descriptors();
    write_more();
    source.overrides[source.n_overrides++] = (struct mk__override){"SERVER", "Workers", "7", "option --workers", false};
    if (mk__generation_load(&g, &source) != 0)
        fail_msg("%s", problems());
    assert_int_equal(g.n_plugins, 2);
    assert_string_equal(g.plugins[0]->name, "liana");
    assert_string_equal(g.plugins[1]->name, "static");
    assert_int_equal(g.settings->workers, 7);
    assert_str_equal(mk__mime_find(&g.mime, MK_STR("/a.html")), "text/special");
    assert_str_equal(mk__mime_find(&g.mime, MK_STR("/a.x")), "application/x-x");
    struct mk_host *two = mk__generation_find_host(&g, NULL, MK_STR("TWO.example"));
    assert_non_null(two);
    assert_ptr_not_equal(two, g.default_host);
    assert_ptr_equal(mk__generation_find_host(&g, NULL, MK_STR("")), g.default_host);
    assert_int_equal(two->started, 3);
    mk__generation_release(&g);
    assert_int_equal(mk_test_descriptors(), before);
    clear();
}

TEST(one_shot)
{
    char root[512];
    struct mk__generation_source source = {.root = root, .root_origin = "option --one-shot"};
    snprintf(root, sizeof(root), "%s", mk_test_path("htdocs"));
    if (mk__generation_load(&g, &source) != 0)
        fail_msg("%s", problems());
    assert_non_null(g.default_host);
    assert_int_equal(g.default_host->started, (1u << g.n_plugins) - 1);
    mk__generation_release(&g);
    snprintf(root, sizeof(root), "%s", mk_test_path("htdocs/nowhere"));
    assert_int_equal(mk__generation_load(&g, &source), -EINVAL);
    assert_non_null(strstr(problems(), "option --one-shot: error: cannot open the document root"));
    mk__generation_release(&g);
}

/* Each writes one file over the good ones. */
static const struct {
    const char *name, *text, *problem;
} wrong[] = {
    {"conf/monkey.conf", NULL, "monkey.conf"},
    {"conf/monkey.conf", "[SERVER]\n    Wrokers 1\n", "monkey.conf:2:5: error: "},
    {"conf/monkey.conf", "[SERVER]\n    TransportLayer static\n",
     "monkey.conf:2:20: error: no loaded plugin \"static\" can carry connections\n"},
    {"conf/plugins.load", "[PLUGINS]\n    Load liana ghost\n",
     "plugins.load:2:16: error: there is no plugin \"ghost\", neither in this build nor as "},
    {"conf/plugins.load", "[PLUGINS]\n    Load liana liana static\n",
     "plugins.load:2:16: error: the plugin \"liana\" is loaded already\n"},
    {"conf/plugins.load", "[PLUGINS]\n    Load static\n",
     "error: no loaded plugin \"liana\" can carry connections: it takes \"Load liana\" in plugins.load\n"},
    {"conf/monkey.conf", "[SERVER]\n    Listen 0 ghost\n",
     "monkey.conf:2:12: error: there is no option but proxy, and no loaded plugin \"ghost\" can carry connections: it "
     "takes the file "},
    {"conf/plugins.load", "[PLUGINS]\n    Load liana\n", "static"}, /* whose keys are in use */
    {"conf/sites/default", NULL,
     "sites/default is missing: it answers for every name that no other host has; a section [HOST] in monkey.conf "
     "does that, too\n"},
    {"conf/sites/default", "[HOST]\n", "DocumentRoot"},
    {"conf/sites/default", "", "HOST"},
    {"conf/sites/default", "[HOST]\n    DocumentRoot nowhere\n", "default:2:18: error: cannot open the document root"},
    {"conf/sites/default", "[HOST]\n    DocumentRoot default\n", "Not a directory\n"},
    {"conf/sites/second", "[HOST]\n    Nonsense x\n", "second:2:5: error: "},
    {"conf/monkey.mime", "[MIMETYPES]\n    html\n", "monkey.mime:2"},
};

TEST(what_is_wrong_is_said)
{
    struct mk__generation_source source = source_of_folder();
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        write_good();
        if (wrong[i].text)
            mk_test_write(wrong[i].name, mk_str_c(wrong[i].text));
        else
            unlink(mk_test_path(wrong[i].name));
        assert_int_equal(mk__generation_load(&g, &source), -EINVAL);
        if (!strstr(problems(), wrong[i].problem))
            fail_msg("case %zu: %s", i, problems());
        mk__generation_release(&g);
        clear();
    }
    assert_int_equal(mk_test_descriptors(), before);
}

/* Each host finds it. */
TEST(what_is_wrong_with_the_server_is_said_once)
{
    struct mk__generation_source source = source_of_folder();
    write_more();
    unlink(mk_test_path("conf/plugins.load"));
    mk_test_write("conf/monkey.conf", MK_STR("[SERVER]\n    Listen 127.0.0.1:0\n    Listen 127.0.0.2:0\n"
                                             "[HEALTH]\n    Listener 127.0.0.2:0 127.0.0.3:0\n"));
    assert_int_equal(mk__generation_load(&g, &source), -EINVAL);
    assert_true(mk_host_has_listener(g.hosts, MK_STR("127.0.0.1:0")));
    assert_true(mk_host_has_listener(g.hosts, MK_STR("127.0.0.2:0")));
    assert_false(mk_host_has_listener(g.hosts, MK_STR("127.0.0.2")));
    const char *first = strstr(problems(), "monkey.conf:5:26: error: there is no line \"Listen 127.0.0.3:0\"\n");
    assert_non_null(first);
    assert_null(strstr(first + 1, "monkey.conf"));
    assert_null(strstr(problems(), "cannot start"));
    mk__generation_release(&g);
    clear();
}

static int load(void *ctx)
{
    int err = mk__generation_load(&g, ctx);
    struct mk_buf out;
    mk_buf_init(&out, 65536);
    mk__generation_diagnostics(&g, &out); /* whatever there is can be printed; a correct configuration has a warning */
    err = err < 0 ? err : out.err;
    mk_buf_release(&out);
    mk__generation_release(&g);
    return err;
}

TEST(every_allocation_may_fail)
{
    struct mk__generation_source source = source_of_folder();
    unsigned before = mk_test_descriptors();
    write_more();
    assert_true(mk_test_failing_allocs(load, &source) > 10);
    clear();
    assert_int_equal(mk_test_descriptors(), before);
}

static int set_up(void **state)
{
    static const char *const dirs[] = {"conf", "conf/sites", "conf/plugins", "conf/plugins/static", "htdocs"};
    if (mk_test_folder_make(state) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(dirs); i++)
        mk_test_mkdir(dirs[i]);
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
