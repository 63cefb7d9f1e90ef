// SPDX-License-Identifier: Apache-2.0
/* Which plugins are asked whether a file is a program, with which names. */
#include "folder.h"

#include "server/generation/generation.h"
#include "server/generation/handlers.h"

#include <monkey/file_cache.h>
#include <monkey/hooks.h>
#include <monkey/program.h>

static char asked[2][4200]; /* the last names */
static enum mk_source_name kinds[2];
static const char *wanted[2]; /* the name that each hook claims */

static bool ask(unsigned i, enum mk_source_name kind, struct mk_str name)
{
    snprintf(asked[i], sizeof(asked[i]), "%.*s", MK_STR_ARG(name));
    kinds[i] = kind;
    return wanted[i] && strcmp(asked[i], wanted[i]) == 0;
}

static bool is_source_0(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    assert_non_null(host);
    return ask(0, kind, name);
}

static bool is_source_1(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    assert_non_null(host);
    return ask(1, kind, name);
}

static const struct mk_source_hooks first_sources = {.is_source = is_source_0},
                                    second_sources = {.is_source = is_source_1};
static const struct mk_plugin other = {.name = "other"}, first = {.name = "first", .sources = &first_sources},
                              second = {.name = "second", .sources = &second_sources};
static struct mk_generation generation = {.plugins = {&other, &first, &second}, .n_plugins = 3};
static struct mk_host host = {.generation = &generation};
static int any;

static void set_states(bool has_first, bool has_second)
{
    host.states[0] = &any;
    host.states[1] = has_first ? &any : NULL;
    host.states[2] = has_second ? &any : NULL;
    for (unsigned i = 0; i < 2; i++)
        asked[i][0] = '\0';
    wanted[0] = wanted[1] = NULL;
}

TEST(only_plugins_with_a_state_are_asked)
{
    set_states(false, false);
    wanted[0] = wanted[1] = "/x";
    assert_false(mk_host_has_sources(&host));
    assert_false(mk_host_is_source(&host, MK_SOURCE_PATH, MK_STR("/x")));
    assert_string_equal(asked[0], "");
    set_states(false, true);
    wanted[0] = "/x";
    assert_true(mk_host_has_sources(&host));
    assert_false(mk_host_is_source(&host, MK_SOURCE_PATH, MK_STR("/x")));
    assert_string_equal(asked[0], "");
    assert_string_equal(asked[1], "/x");
}

TEST(one_claim_is_enough)
{
    set_states(true, true);
    wanted[0] = "/x";
    wanted[1] = "/y";
    assert_true(mk_host_is_source(&host, MK_SOURCE_FILE, MK_STR("/x")));
    assert_string_equal(asked[1], "");
    assert_true(mk_host_is_source(&host, MK_SOURCE_PATH, MK_STR("/y")));
    assert_false(mk_host_is_source(&host, MK_SOURCE_PATH, MK_STR("/z")));
    assert_int_equal(kinds[0], MK_SOURCE_PATH);
}

/* ── open files ── */

static int open_file(const char *name)
{
    int fd = open(mk_test_path(name), O_PATH | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

TEST(an_open_file_has_the_name_behind_links, mk_test_folder_make, mk_test_folder_remove)
{
    char real[4096];
    set_states(true, false);
    mk_test_write("x.php", MK_STR("x"));
    mk_test_link("x.php", "notes.txt");
    assert_non_null(realpath(mk_test_path("x.php"), real));
    wanted[0] = real;
    int fd = open_file("notes.txt");
    assert_true(mk_host_is_source_fd(&host, fd));
    assert_int_equal(kinds[0], MK_SOURCE_FILE);
    wanted[0] = "/none";
    assert_false(mk_host_is_source_fd(&host, fd));
    set_states(false, false);
    assert_false(mk_host_is_source_fd(&host, fd));
    close(fd);
}

TEST(a_deleted_file_keeps_its_name, mk_test_folder_make, mk_test_folder_remove)
{
    char real[4096];
    set_states(true, false);
    mk_test_write("x.php", MK_STR("x"));
    assert_non_null(realpath(mk_test_path("x.php"), real));
    wanted[0] = real;
    int fd = open_file("x.php");
    assert_int_equal(unlink(real), 0);
    assert_true(mk_host_is_source_fd(&host, fd));
    wanted[0] = "/none";
    assert_false(mk_host_is_source_fd(&host, fd));
    close(fd);
}

static bool is_source_below(const char *file, int folder, const char *prefix)
{
    int fd = open_file(file);
    bool is_source = mk_host_is_source_below(&host, fd, folder, mk_str_c(prefix));
    close(fd);
    return is_source;
}

TEST(the_path_of_a_file_below_a_folder, mk_test_folder_make, mk_test_folder_remove)
{
    set_states(true, false);
    mk_test_mkdir("a");
    mk_test_mkdir("ab");
    mk_test_write("a/x.cgi", MK_STR("x"));
    mk_test_write("ab/x.cgi", MK_STR("x"));
    mk_test_link("x.cgi", "a/notes.txt");
    int folder = open_file("a"), root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    wanted[0] = "/~bob/x.cgi";
    assert_true(is_source_below("a/notes.txt", folder, "/~bob"));
    assert_int_equal(kinds[0], MK_SOURCE_PATH);
    assert_false(is_source_below("a/notes.txt", folder, "/~eve"));
    asked[0][0] = '\0';
    assert_false(is_source_below("ab/x.cgi", folder, "/~bob"));
    assert_false(is_source_below("a", folder, "/~bob"));
    assert_string_equal(asked[0], ""); /* they are elsewhere */
    wanted[0] = "/none";
    assert_false(is_source_below("a/x.cgi", root, "/all"));
    assert_int_equal(strncmp(asked[0], "/all/", 5), 0);
    int fd = open_file("a/x.cgi");
    assert_int_equal(unlink(mk_test_path("a/x.cgi")), 0);
    wanted[0] = "/~bob/x.cgi";
    assert_true(mk_host_is_source_below(&host, fd, folder, MK_STR("/~bob")));
    assert_true(mk_host_is_source_below(&host, 1 << 20, folder, MK_STR("/~bob"))); /* it is not known */
    assert_true(mk_host_is_source_below(&host, fd, 1 << 20, MK_STR("/~bob")));
    set_states(false, false);
    assert_false(mk_host_is_source_below(&host, fd, folder, MK_STR("/~bob")));
    close(fd);
    close(folder);
    close(root);
}

/* A pipe has no name, and no descriptor has none either: nothing is known, and nothing is sent. */
TEST(an_unknown_name)
{
    int pipes[2];
    set_states(true, false);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_true(mk_host_is_source_fd(&host, pipes[0]));
    close(pipes[0]);
    close(pipes[1]);
    assert_true(mk_host_is_source_fd(&host, 1 << 20));
}

/* ── sections ── */

struct rule {
    struct mk_pattern match;
};
static const struct mk_conf_key keys[] = {MK_CONF_KEY_PATTERN(struct rule, match, "Match", "/", "Paths."), {0}};
static const struct mk_conf_section sections[] = {{.name = "GATEWAY",
                                                   .scope = MK_CONF_SCOPE_HOST,
                                                   .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
                                                   .size = sizeof(struct rule),
                                                   .keys = keys,
                                                   .doc = "A section."},
                                                  {0}};

static int respond(struct mk_request *req)
{
    (void)req;
    return 0;
}

static bool is_php(const struct mk_host *of, enum mk_source_name kind, struct mk_str name)
{
    (void)of;
    return kind == MK_SOURCE_PATH && mk_str_iends(name, MK_STR(".php"));
}

static bool takes_section(const struct mk_host *of, const struct mk_conf_section *type, const void *conf)
{
    return of && type && conf;
}

static struct mk_pattern alias = {.kind = MK_PATTERN_PREFIX, .text = MK_STR_INIT("/app/static")};

static const struct mk_pattern *find_alias(const struct mk_host *of, struct mk_str path)
{
    (void)of;
    return mk_pattern_match(&alias, path) > 0 ? &alias : NULL;
}

static const struct mk_file_server file_server = {.find_alias = find_alias};
static const struct mk_source_hooks gateway_sources = {.is_source = is_php};
static const struct mk_inspect_hooks gateway_inspection = {.takes_section = takes_section};
static const struct mk_plugin_interfaces files_interfaces = {.file_server = &file_server};
static const struct mk_plugin gateway = {.name = "gateway",
                                         .sections = sections,
                                         .on_content = respond,
                                         .sources = &gateway_sources,
                                         .inspection = &gateway_inspection},
                              files = {.name = "files", .on_content = respond, .interfaces = &files_interfaces};
static struct mk__handler lines[2];

/* A host with one section, and up to two lines of [HANDLERS]. */
static void load_section(const char *text)
{
    generation = (struct mk_generation){.conf = mk__conf_new(), .plugins = {&gateway, &files}, .n_plugins = 2};
    host = (struct mk_host){.generation = &generation, .states = {&any, &any}};
    assert_int_equal(mk__conf_declare(generation.conf, sections, "gateway"), 0);
    generation.set = mk__conf_set_new(generation.conf, MK_CONF_SCOPE_SERVER);
    host.set = mk__conf_set_new(generation.conf, MK_CONF_SCOPE_HOST);
    assert_int_equal(mk__conf_read_text(generation.conf, host.set, "host", mk_str_c(text)), 0);
    mk__conf_set_defaults(generation.conf, host.set, generation.set);
}

static void set_handler(unsigned n, const char *match, unsigned plugin)
{
    lines[n] = (struct mk__handler){.index = plugin};
    assert_int_equal(mk_pattern_parse(&lines[n].match, mk_str_c(match), NULL, NULL), 0);
    host.handlers = (struct mk__handlers){lines, n + 1};
}

static int close_section(void **state)
{
    (void)state;
    mk__conf_free(generation.conf);
    return 0;
}

TEST(sources_that_are_run, NULL, close_section)
{
    load_section("[GATEWAY]\n    Match /app\n");
    assert_true(mk_host_runs_source(&host, MK_STR("/app/x.php")));
    assert_false(mk_host_runs_source(&host, MK_STR("/app/x.txt")));
    assert_false(mk_host_runs_source(&host, MK_STR("/x.php"))); /* no section has it */
    set_handler(0, "/app/files", 1);
    assert_false(mk_host_runs_source(&host, MK_STR("/app/files/x.php")));
    assert_true(mk_host_runs_source(&host, MK_STR("/app/x.php")));
}

TEST(paths_of_files, NULL, close_section)
{
    static const struct {
        const char *path;
        bool asks_files, asks_files_with_lines;
    } rows[] = {
        {"/x", true, true},
        {"/app/x", false, false},
        {"/app/static/x", true, true},
        {"/app/statics", false, false},
        {"/app/files/x", false, true},
        {"/gate/x", true, false},
    };
    load_section("[GATEWAY]\n    Match /app\n");
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(mk_host_asks_files(&host, mk_str_c(rows[i].path)), rows[i].asks_files);
    set_handler(0, "/app/files", 1);
    set_handler(1, "/gate", 0);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(mk_host_asks_files(&host, mk_str_c(rows[i].path)), rows[i].asks_files_with_lines);
    assert_ptr_equal(mk_host_handler(&host, &gateway, 0), &lines[1].match);
    assert_null(mk_host_handler(&host, &gateway, 1));
}

/* An alias within the prefix of a section comes first, unless [HANDLERS] says otherwise. */
TEST(files_within_a_prefix, NULL, close_section)
{
    static const struct {
        const char *match, *path;
        bool prefers;
    } rows[] = {
        {"/app", "/app/static/a", true},
        {"/app", "/app/static", true},
        {"/app", "/app/a", false},
        {"/app/static", "/app/static/a", false},
        {"/app/static/deep", "/app/static/deep/a", false},
        {"*.css", "/app/static/a.css", false},
        {"/", "/app/static/a", true},
    };
    load_section("");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_pattern match;
        assert_int_equal(mk_pattern_parse(&match, mk_str_c(rows[i].match), NULL, NULL), 0);
        if (mk_host_prefers_files(&host, &match, mk_str_c(rows[i].path)) != rows[i].prefers)
            fail_msg("%s, %s", rows[i].match, rows[i].path);
    }
    struct mk_pattern match = {.kind = MK_PATTERN_PREFIX, .text = MK_STR("/app")};
    set_handler(0, "/app", 0); /* the gateway by name */
    assert_false(mk_host_prefers_files(&host, &match, MK_STR("/app/static/a")));
    set_handler(0, "/", 1); /* files for all */
    assert_false(mk_host_prefers_files(&host, &match, MK_STR("/app/static/a")));
}
