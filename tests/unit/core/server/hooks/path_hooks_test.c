// SPDX-License-Identifier: Apache-2.0
/* What plugins and [HANDLERS] say about paths other than that of the request. */
#include "http/h1_fixture.h"

#include <errno.h>

#include "server/worker/thread.h"

#include <monkey/hooks.h>

static int allowed[2]; /* what the hooks return */
static int asked[2];
static int opened[2];
static int decision; /* of the first plugin about access: 0, 1 (allowed) or a status */
static int seen;     /* of it by the second one */
static bool has_login;

static int allow_0(struct mk_request *req, struct mk_str path)
{
    assert_true(req && path.p[path.len] == '\0');
    asked[0]++;
    assert_int_equal(mk_request_access(req), 0);
    if (decision == 1)
        mk_request_allow(req);
    if (decision >= 400)
        assert_int_equal(mk_request_deny(req, decision), MK_DECLINED);
    return allowed[0];
}

static int allow_1(struct mk_request *req, struct mk_str path)
{
    assert_true(req && mk_str_starts(path, MK_STR("/other")));
    asked[1]++;
    seen = mk_request_access(req);
    if (has_login)
        mk_request_allow(req);
    return allowed[1];
}

static int open_0(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    assert_true(host && path.len && flags == MK_OPEN_FOLDER);
    return opened[0];
}

static int open_1(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    assert_true(host && path.len && flags == MK_OPEN_FOLDER);
    return opened[1];
}

/* ── the request of a listing ── */

static int found; /* by mk_request_allows_path(), within the hook */
static const struct mk_plugin *responder;
static int content_allows = 1;
static bool content_decides; /* about access, too */

static int show_other(struct mk_request *req)
{
    mk_request_allow(req); /* the path of the request */
    found = mk_request_allows_path(req, MK_STR("/other/x"));
    assert_int_equal(mk_request_access(req), 1);
    req->access = 0;
    content_decides = true;
    responder = mk_request_find_responder(req, MK_STR("/other/x"));
    content_decides = false;
    assert_int_equal(mk_request_access(req), 0);
    mk_request_allow(req);
    assert_true(req->response_state == MK__RESPONSE_OPEN && !req->defers_denial);
    mk_response_end(req);
    return 0;
}

static int decline(struct mk_request *req)
{
    (void)req;
    return MK_DECLINED;
}

static int allow_content(struct mk_request *req, struct mk_str path)
{
    assert_true(req && path.len);
    if (content_decides)
        mk_request_allow(req);
    return content_allows;
}

static const char *source; /* a path, NULL: none */

static bool is_source(const struct mk_host *of, enum mk_source_name kind, struct mk_str name)
{
    assert_true(of && kind == MK_SOURCE_PATH);
    return source && mk_str_eq(name, mk_str_c(source));
}

static const struct mk_path_hooks files_paths = {.open_path = open_0},
                                  more_paths = {.allows_path = allow_0, .open_path = open_1},
                                  content_paths = {.allows_path = allow_content},
                                  access_paths = {.allows_path = allow_1};
static const struct mk_source_hooks access_sources = {.is_source = is_source};
static const struct mk_plugin files = {.name = "files", .on_content = decline, .paths = &files_paths},
                              more_files = {.name = "more", .paths = &more_paths},
                              content = {.name = "content", .on_content = decline, .paths = &content_paths},
                              access_rules = {.name = "access", .paths = &access_paths, .sources = &access_sources},
                              shows = {.name = "shows", .on_content = show_other};

enum { FILES, MORE_FILES, CONTENT, ACCESS, SHOWS, PLUGINS };

static struct mk_generation generation;
static struct mk_host host;
static struct mk__limits limits = {.open = 1000};
static struct mk__thread thread = {.limits = &limits};
static struct mk_worker worker;

static int ask_with_handler(const char *pattern, unsigned index)
{
    struct mk__handler line = {{.kind = MK_PATTERN_PREFIX, .text = mk_str_c(pattern)}, MK_STR("x"), index};
    generation = (struct mk_generation){.plugins = {&files, &more_files, &content, &access_rules, &shows},
                                        .n_plugins = PLUGINS,
                                        .hosts = &host,
                                        .default_host = &host};
    mk__generation_find_hooks(&generation);
    host = (struct mk_host){.generation = &generation, .started = (1u << PLUGINS) - 1};
    host.states[ACCESS] = &limits;
    host.handlers = (struct mk__handlers){&line, pattern[0] != '\0'};
    worker = (struct mk_worker){.generation = &generation};
    thread.worker = &worker;
    thread.receiver = (struct mk__receiver){.assigned = 1000};
    open_fixture(NULL);
    host.limits = w.settings.limits;
    w.http.app = &mk__request_hooks_app;
    w.http.app_ctx = &thread;
    found = INT32_MAX;
    asked[0] = asked[1] = 0;
    mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    mk_test_fixture_close(&w);
    return found;
}

TEST(all_plugins_are_asked)
{
    static const struct {
        int allowed[2], expected, asked[2];
    } cases[] = {
        {{1, 1}, 1, {1, 1}},       {{0, 1}, 0, {1, 0}},       {{1, 0}, 0, {1, 1}},
        {{1, -EIO}, -EIO, {1, 1}}, {{-EIO, 0}, -EIO, {1, 0}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        memcpy(allowed, cases[i].allowed, sizeof(allowed));
        assert_int_equal(ask_with_handler("", 0), cases[i].expected);
        assert_memory_equal(asked, cases[i].asked, sizeof(asked));
    }
}

/* A denial is for the plugins behind to replace; otherwise it stands. */
TEST(decisions_about_access)
{
    static const struct {
        int decision;
        bool has_login;
        int expected;
    } cases[] = {{0, false, 1}, {1, false, 1}, {403, false, 0}, {403, true, 1}, {599, false, 0}};
    allowed[0] = allowed[1] = 1;
    for (size_t i = 0; i < COUNT(cases); i++) {
        decision = cases[i].decision;
        has_login = cases[i].has_login;
        assert_int_equal(ask_with_handler("", 0), cases[i].expected);
        assert_int_equal(seen, decision);
    }
    decision = 0;
    has_login = false;
}

/* Content of another plugin is no file; the plugin that shows the path, and those that serve files, do not count. */
TEST(handlers)
{
    allowed[0] = allowed[1] = 1;
    assert_int_equal(ask_with_handler("/other", CONTENT), 0);
    assert_int_equal(ask_with_handler("/other", FILES), 1);
    assert_int_equal(ask_with_handler("/others", CONTENT), 1);
    assert_int_equal(ask_with_handler("/", SHOWS), 1);
}

/* A plugin of rules, or of files, is none; the one that handles the request is not meant. */
TEST(responders)
{
    allowed[0] = allowed[1] = 0;
    ask_with_handler("", 0);
    assert_null(responder);
    ask_with_handler("/other", FILES);
    assert_null(responder);
    ask_with_handler("/other", SHOWS);
    assert_null(responder);
    ask_with_handler("/other", CONTENT);
    assert_ptr_equal(responder, &content);
    content_allows = 0;
    ask_with_handler("", 0);
    assert_ptr_equal(responder, &content);
    content_allows = -EIO; /* it is not known */
    ask_with_handler("", 0);
    assert_null(responder);
    content_allows = 1;
}

TEST(the_first_that_has_it_opens_it)
{
    static const struct {
        int opened[2], expected;
    } cases[] = {
        {{7, 8}, 7},
        {{-ENOENT, 8}, 8},
        {{-ENOENT, -ENOENT}, -ENOENT},
        {{-EACCES, 8}, -EACCES},
        {{-ENOENT, -EISDIR}, -EISDIR},
    };
    ask_with_handler("", 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        memcpy(opened, cases[i].opened, sizeof(opened));
        assert_int_equal(mk_host_open_path(&host, MK_STR("/x/"), MK_OPEN_FOLDER), cases[i].expected);
    }
}

/* A program of a plugin is allowed to no client, and opened only for that plugin. */
TEST(sources)
{
    allowed[0] = allowed[1] = 1;
    source = "/other/x";
    assert_int_equal(ask_with_handler("", 0), 0);
    assert_int_equal(asked[0], 0);
    source = "/x/";
    assert_int_equal(ask_with_handler("", 0), 1);
    opened[0] = 7;
    assert_int_equal(mk_host_open_path(&host, MK_STR("/x/"), MK_OPEN_FOLDER), -ENOENT);
    assert_int_equal(mk_host_open_path(&host, MK_STR("/x/y/"), MK_OPEN_FOLDER), 7);
    source = NULL;
}
