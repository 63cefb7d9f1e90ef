// SPDX-License-Identifier: Apache-2.0
/*
 * A host with one plugin, whose requests arrive by HTTP/1: the plugin's directives and hooks without a process. The
 * content is a test's.
 */
#ifndef MK_UNIT_PLUGIN_HOST_H
#define MK_UNIT_PLUGIN_HOST_H

#include "folder.h"
#include "http/h1_fixture.h"

#include "server/generation/generation_load.h"
#include "server/worker/thread.h"

static struct {
    struct mk_generation generation;
    struct mk__limits limits;
    struct mk__thread thread;
    mk__cell *cells; /* there is no memory of counters */
    const struct mk_plugin *loaded[MK__PLUGINS_MAX];
} plugin_host;
static struct mk_worker plugin_host_worker;

/* For cmocka's group set-up: the folder and a configuration without sites. */
static inline int make_plugin_host(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("conf");
    mk_test_mkdir("conf/sites");
    mk_test_write("conf/monkey.conf", MK_STR("[SERVER]\n    Listen 127.0.0.1:0\n"));
    return chdir(mk_test_folder);
}

static inline const char *plugin_host_problems(void)
{
    static char text[8192];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk__generation_diagnostics(&plugin_host.generation, &out);
    return mk_buf_cstr(&out);
}

/* Writes sites/default from lines that are indented where they are no section's, and reads the configuration. */
static inline int load_plugin_host(const char *lines)
{
    char dir[512], text[8192];
    struct mk__generation_source source = {.dir = dir};
    struct mk_str rest = mk_str_c(lines), line;
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk_buf_adds(&out, MK_STR("[HOST]\n    DocumentRoot .\n"));
    while (rest.len) {
        line = mk_str_split(&rest, '\n');
        mk_buf_addf(&out, "%s%.*s\n", mk_str_starts(line, MK_STR("[")) ? "" : "    ", MK_STR_ARG(line));
    }
    assert_int_equal(out.err, 0);
    mk_test_write("conf/sites/default", mk_buf_str(&out));
    snprintf(dir, sizeof(dir), "%s", mk_test_path("conf"));
    return mk__generation_load(&plugin_host.generation, &source);
}

/* What is no matter of `plugin` is done by `content`. */
static inline void open_plugin_host(const char *lines, const struct mk_plugin *plugin, const struct mk_plugin *content,
                                    struct mk_thread_pool *jobs)
{
    struct mk_generation *g = &plugin_host.generation;
    if (load_plugin_host(lines) != 0)
        fail_msg("%s", plugin_host_problems());
    memcpy(plugin_host.loaded, g->plugins, sizeof(plugin_host.loaded));
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i] != plugin)
            g->plugins[i] = content;
    mk__generation_find_hooks(g);
    plugin_host.limits = (struct mk__limits){.open = 1000}; /* no test has more connections */
    plugin_host_worker = (struct mk_worker){.generation = g, .cells = &plugin_host.cells};
    plugin_host.thread =
        (struct mk__thread){.limits = &plugin_host.limits, .receiver.assigned = 1000, .worker = &plugin_host_worker};
    assert_int_equal(mk_test_fixture_open(&w, jobs), 0);
    assert_int_equal(mk_test_http_open(&w), 0);
    w.http.app = &mk__request_hooks_app;
    w.http.app_ctx = &plugin_host.thread;
}

static inline void close_plugin_host(void)
{
    struct mk_generation *g = &plugin_host.generation;
    mk__conn_abort_all(&w.http);
    mk_test_fixture_close(&w);
    memcpy(g->plugins, plugin_host.loaded, sizeof(plugin_host.loaded));
    mk__generation_release(g);
}

/* Checks that the lines are refused with this sentence. */
static inline void expect_refusal(const char *lines, const char *sentence)
{
    int err = load_plugin_host(lines);
    if (err != -EINVAL || !strstr(plugin_host_problems(), sentence))
        fail_msg("%s: %d, %s", lines, err, plugin_host_problems());
    mk__generation_release(&plugin_host.generation);
}

/* Returns what is sent for one request, which lives until the next one. */
static inline const char *ask_plugin_host(const char *request)
{
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(request));
    mk_test_settle(&w);
    return mk_test_received(c).p;
}

#endif
