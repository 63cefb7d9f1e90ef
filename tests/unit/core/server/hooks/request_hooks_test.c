// SPDX-License-Identifier: Apache-2.0
/* The way of a request past the plugins: in which order they are asked, and what their words mean. */
#include "arena.h"
#include "http/h1_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/generation/path_limits.h"
#include "server/worker/thread.h"

/* The calls: a character for the hook, a digit for the plugin. */
static char trail[128];
static int words[2][2]; /* of on_request and on_content, by plugin */
static const struct mk_plugin plugins[2];
static int states[2];

static void note(char hook, char plugin)
{
    size_t n = strlen(trail);
    assert_true(n + 2 < sizeof(trail));
    memcpy(trail + n, (char[]){hook, plugin, '\0'}, 3);
}

static int ask(struct mk_request *req, int hook, int plugin)
{
    note("ra"[hook], (char)('0' + plugin));
    assert_ptr_equal(mk_request_host_state(req, &plugins[plugin]), &states[plugin]);
    if (words[hook][plugin] == 0) {
        mk_response_write_ref(req, MK_STR("mine"));
        mk_response_end(req);
    }
    return words[hook][plugin];
}

static int request_0(struct mk_request *req)
{
    return ask(req, 0, 0);
}

static int request_1(struct mk_request *req)
{
    return ask(req, 0, 1);
}

static int content_0(struct mk_request *req)
{
    return ask(req, 1, 0);
}

static int content_1(struct mk_request *req)
{
    return ask(req, 1, 1);
}

static void response_0(struct mk_request *req)
{
    note('h', '0');
    assert_int_equal(mk_response_header_ref(req, MK_STR("X-Seen"), MK_STR("yes")), 0);
}

static void done_0(struct mk_request *req)
{
    note(mk_request_aborted(req) ? 'x' : 'd', '0');
    assert_true(mk_request_bytes_sent(req) == 4 || mk_response_get_status(req) != 200 || mk_request_aborted(req));
}

static void done_1(struct mk_request *req)
{
    note(mk_request_aborted(req) ? 'x' : 'd', '1');
}

static const struct mk_plugin plugins[2] = {
    {.name = "zero", .on_request = request_0, .on_content = content_0, .on_response = response_0, .on_done = done_0},
    {.name = "one", .on_request = request_1, .on_content = content_1, .on_done = done_1},
};
static const struct mk_plugin silent = {.name = "silent"};

static struct mk_generation generation;
static struct mk_host host;
static struct mk__limits limits = {.open = 1000}; /* no test has more connections */
static struct mk__thread thread = {.limits = &limits};
static struct mk_worker worker;

static void set_plugin(unsigned n, const struct mk_plugin *plugin)
{
    generation.plugins[n] = plugin;
    mk__generation_find_hooks(&generation);
    mk__generation_find_first_hook(&generation, &host);
}

static void open_hooks(void)
{
    generation = (struct mk_generation){.plugins = {&plugins[0], &silent, &plugins[1]},
                                        .n_plugins = 3,
                                        .hosts = &host,
                                        .default_host = &host};
    mk__generation_find_hooks(&generation);
    host = (struct mk_host){.generation = &generation, .states = {&states[0], NULL, &states[1]}, .started = 7};
    mk__generation_find_first_hook(&generation, &host);
    worker = (struct mk_worker){.generation = &generation};
    thread.worker = &worker;
    thread.receiver = (struct mk__receiver){.assigned = 1000};
    open_fixture(NULL);
    host.limits = w.settings.limits;
    w.http.app = &mk__request_hooks_app;
    w.http.app_ctx = &thread;
    trail[0] = '\0';
}

#define BREW "BREW / HTTP/1.1\r\nHost: h\r\n\r\n"
#define ALL "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"

static const struct {
    const char *request;
    int words[2][2];
    const char *line, *trail;
} ways[] = {
    {GET, {{MK_DECLINED, MK_DECLINED}, {MK_DECLINED, MK_DECLINED}}, "HTTP/1.1 404 ", "r0r1a0a1h0d0d1"},
    {GET, {{MK_DECLINED, MK_DECLINED}, {0, 0}}, "HTTP/1.1 200 ", "r0r1a0h0d0d1"},
    {GET, {{MK_DECLINED, MK_DECLINED}, {MK_DECLINED, 0}}, "HTTP/1.1 200 ", "r0r1a0a1h0d0d1"},
    {GET, {{0, 0}, {0, 0}}, "HTTP/1.1 200 ", "r0h0d0d1"},
    {GET, {{MK_DECLINED, 0}, {0, 0}}, "HTTP/1.1 200 ", "r0r1h0d0d1"},
    {GET, {{-EIO, 0}, {0, 0}}, "HTTP/1.1 500 ", "r0h0d0d1"},
    {GET, {{MK_DECLINED, MK_DECLINED}, {-EIO, 0}}, "HTTP/1.1 500 ", "r0r1a0h0d0d1"},
    {BREW, {{MK_DECLINED, MK_DECLINED}, {MK_DECLINED, MK_DECLINED}}, "HTTP/1.1 501 ", "r0r1a0a1h0d0d1"},
    {BREW, {{MK_DECLINED, MK_DECLINED}, {MK_DECLINED, 0}}, "HTTP/1.1 200 ", "r0r1a0a1h0d0d1"},
    {ALL, {{MK_DECLINED, MK_DECLINED}, {MK_DECLINED, MK_DECLINED}}, "HTTP/1.1 204 ", "r0r1a0a1h0d0d1"},
    {ALL, {{0, 0}, {0, 0}}, "HTTP/1.1 200 ", "r0h0d0d1"},
    {"nonsense\r\n", {{0, 0}, {0, 0}}, "HTTP/1.1 400 ", "h0d0d1"},
};

TEST(ways)
{
    for (size_t i = 0; i < COUNT(ways); i++) {
        open_hooks();
        memcpy(words, ways[i].words, sizeof(words));
        struct mk_test_client *c = mk_test_connect(&w, mk_str_c(ways[i].request));
        mk_test_settle(&w);
        struct mk_str answer = mk_test_received(c);
        assert_true(mk_str_starts(answer, mk_str_c(ways[i].line)));
        assert_non_null(strstr(answer.p, "\r\nX-Seen: yes\r\n"));
        assert_string_equal(trail, ways[i].trail);
        mk_test_fixture_close(&w);
    }
}

/* Of the content hooks only one is called; on_request is called in all plugins. */
TEST(a_handler_of_a_path)
{
    static const struct {
        const char *text;
        unsigned index;
        int words[2];
        const char *trail;
    } cases[] = {
        {"/", 2, {0, 0}, "r0r1a1h0d0d1"},           {"/", 2, {0, MK_DECLINED}, "r0r1a1h0d0d1"},
        {"/", 0, {MK_DECLINED, 0}, "r0r1a0h0d0d1"}, {"/", 1, {0, 0}, "r0r1h0d0d1"},
        {"/elsewhere", 2, {0, 0}, "r0r1a0h0d0d1"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_hooks();
        struct mk__handler line = {{.kind = MK_PATTERN_PREFIX, .text = mk_str_c(cases[i].text)},
                                   MK_STR("x"),
                                   cases[i].index};
        struct mk__handlers lines = {&line, 1};
        host.handlers = lines;
        words[0][0] = words[0][1] = MK_DECLINED;
        memcpy(words[1], cases[i].words, sizeof(words[1]));
        mk_test_connect(&w, MK_STR(GET));
        mk_test_settle(&w);
        assert_string_equal(trail, cases[i].trail);
        mk_test_fixture_close(&w);
    }
}

/* Hosts that a plugin has no state for, and requests without a host, do without the hooks of a plugin that needs one.
 */
TEST(a_plugin_that_needs_a_state)
{
    static const struct {
        const char *request;
        uint32_t skipped;
        const char *trail;
    } cases[] = {
        {GET, 1, "r1a1d1"}, {GET, 4, "r0a0h0d0"}, {GET, 5, ""}, {GET, 0, "r0r1a0a1h0d0d1"}, {"nonsense\r\n", 0, "d1"},
    };
    struct mk_plugin needy = plugins[0];
    needy.flags = MK_PLUGIN_STATE_NEEDED;
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_hooks();
        host.skipped = cases[i].skipped;
        mk__generation_find_first_hook(&generation, &host);
        if (i == COUNT(cases) - 1)
            set_plugin(0, &needy);
        words[0][0] = words[0][1] = words[1][0] = words[1][1] = MK_DECLINED;
        struct mk_test_client *c = mk_test_connect(&w, mk_str_c(cases[i].request));
        mk_test_settle(&w);
        assert_true(mk_test_received(c).len > 0);
        assert_string_equal(trail, cases[i].trail);
        mk_test_fixture_close(&w);
    }
}

/* Requests of a host begin at the first hook that a plugin of it has, or at that after which limits are looked up. */
TEST(first_hooks)
{
    static const struct mk_plugin none = {.name = "none"}, head = {.name = "head", .on_head = request_0},
                                  request = {.name = "request", .on_request = request_0},
                                  content = {.name = "content", .on_content = content_0};
    static const struct mk__path_limits some_limits;
    static const struct {
        const struct mk_plugin *first, *second;
        uint32_t skipped;
        const struct mk__path_limits *limits;
        unsigned hook;
    } cases[] = {
        {&head, &request, 0, NULL, MK__HOOK_HEAD},
        {&request, &head, 0, NULL, MK__HOOK_HEAD},
        {&head, &request, 1, NULL, MK__HOOK_REQUEST},
        {&head, &request, 3, NULL, MK__HOOK_CONTENT},
        {&head, &content, 1, NULL, MK__HOOK_CONTENT},
        {&content, &none, 0, NULL, MK__HOOK_CONTENT},
        {&content, &none, 0, &some_limits, MK__HOOK_REQUEST},
        {&head, &none, 0, &some_limits, MK__HOOK_HEAD},
        {&head, &none, 1, &some_limits, MK__HOOK_REQUEST},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_generation g = {.plugins = {cases[i].first, cases[i].second}, .n_plugins = 2};
        struct mk_host h = {.skipped = cases[i].skipped, .path_limits = cases[i].limits};
        mk__generation_find_hooks(&g);
        mk__generation_find_first_hook(&g, &h);
        if (h.first_hook != cases[i].hook)
            fail_msg("case %zu: %u instead of %u", i, h.first_hook, cases[i].hook);
    }
}

/* ── limits by path ── */

static struct mk_str new_path; /* that on_head sets; `.p` NULL: none */

static int change_path(struct mk_request *req)
{
    if (new_path.p)
        req->path = new_path;
    return MK_DECLINED;
}

static const struct mk_pattern big = {.kind = MK_PATTERN_PREFIX, .text = {"/big", 4}};

static const struct mk_pattern *get_big(const void *ctx, uint32_t number)
{
    (void)ctx;
    (void)number;
    return &big;
}

/* The limits are those of the path that on_head leaves. */
TEST(limits_of_the_final_path)
{
    static const struct mk_plugin changing = {.name = "changing", .on_head = change_path};
    static const struct {
        const char *path, *new_path;
        unsigned length;
        const char *line;
    } cases[] = {
        {"/", NULL, 10, "HTTP/1.1 200 "},     {"/", NULL, 11, "HTTP/1.1 413 "},    {"/big", NULL, 100, "HTTP/1.1 200 "},
        {"/big", NULL, 101, "HTTP/1.1 413 "}, {"/", "/big", 100, "HTTP/1.1 200 "}, {"/big", "/", 11, "HTTP/1.1 413 "},
        {"/big", "/", 10, "HTTP/1.1 200 "},   {"/", "/big", 101, "HTTP/1.1 413 "},
    };
    struct mk__path_limits *all = calloc(1, sizeof(*all) + sizeof(all->rows[0]));
    mk_test_arena_open(NULL);
    all->index = mk_pattern_index_new(get_big, NULL, 1, &arena);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        open_hooks();
        set_plugin(1, &changing);
        words[0][0] = words[0][1] = MK_DECLINED;
        words[1][0] = 0;
        host.limits.body_bytes_max = 10;
        all->preliminary = all->rows[0].limits = host.limits;
        all->preliminary.body_bytes_max = all->rows[0].limits.body_bytes_max = 100;
        all->rows[0].match = &big;
        all->n = 1;
        host.path_limits = all;
        mk__generation_find_first_hook(&generation, &host);
        new_path = cases[i].new_path ? mk_str_c(cases[i].new_path) : MK_STR_NONE;
        snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n\r\n", cases[i].path,
                 cases[i].length);
        struct mk_test_client *c = mk_test_connect(&w, mk_str_c(text));
        mk_test_settle(&w);
        assert_true(mk_str_starts(mk_test_received(c), mk_str_c(cases[i].line)));
        mk_test_fixture_close(&w);
    }
    mk_test_arena_close(NULL);
    free(all);
}

static int note_head(struct mk_request *req, char plugin)
{
    note('p', plugin);
    note('=', mk_request_path(req).p[1]);
    return MK_DECLINED;
}

static int head_0(struct mk_request *req)
{
    return note_head(req, '0');
}

static int head_and_rewrite(struct mk_request *req)
{
    assert_int_equal(mk_request_rewrite(req, MK_STR("/m"), MK_STR_NONE), 0);
    assert_int_equal(mk_request_rewrite(req, MK_STR("/new"), MK_STR_NONE), 0);
    return note_head(req, '1');
}

static int request_of_path(struct mk_request *req)
{
    note('r', mk_request_path(req).p[1]);
    return MK_DECLINED;
}

static int head_2(struct mk_request *req)
{
    return note_head(req, '2');
}

/* A rewrite does not call on_head again: the plugins before have seen the old path, and those behind see the new one.
 */
TEST(each_on_head_once)
{
    static const struct mk_plugin heads[] = {
        {.name = "before", .on_head = head_0, .on_request = request_of_path},
        {.name = "rewrites", .on_head = head_and_rewrite},
        {.name = "behind", .on_head = head_2},
    };
    open_hooks();
    for (unsigned i = 0; i < COUNT(heads); i++)
        set_plugin(i, &heads[i]);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET /old HTTP/1.1\r\nHost: h\r\n\r\n"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 404 ")));
    assert_string_equal(trail, "p0=op1=np2=nrn");
    mk_test_fixture_close(&w);
}

static int take_and_wait(struct mk_request *req)
{
    (void)req;
    return 0;
}

TEST(a_client_that_leaves)
{
    static const struct mk_plugin waiting = {.name = "waiting", .on_content = take_and_wait};
    open_hooks();
    set_plugin(1, &waiting);
    words[0][0] = words[0][1] = words[1][0] = MK_DECLINED;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "handler");
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_string_equal(trail, "r0r1a0x0x1"); /* no head has left, but all hear of the end */
    mk_test_fixture_close(&w);
}

static char output[64];

static int describe(struct mk_request *req)
{
    struct mk_str text = mk_request_listener(req);
    snprintf(output, sizeof(output), "%.*s %d", MK_STR_ARG(text), mk_request_draining(req));
    mk_response_error(req, 404);
    return 0;
}

TEST(where_it_came_by)
{
    static const struct mk_plugin teller = {.name = "teller", .on_request = describe};
    struct mk__listener listening[] = {{.name = {MK_STR("80")}}, {.name = {MK_STR("unix:/run/x")}}};
    struct mk__listen_conf own = {.text = MK_STR("*:80"), .listener = &listening[0]}; /* the same, written anew */
    const struct mk__settings settings = {.listen = {&own, 1}};
    open_hooks();
    generation.settings = &settings;
    set_plugin(0, &teller);
    w.listener = &listening[0];
    mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(output, "*:80 0");
    w.listener = &listening[1];
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(output, "unix:/run/x 0");
    w.http.shutdown = MK__SHUTDOWN_ANNOUNCED;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    assert_string_equal(output, "unix:/run/x 1");
    w.http.shutdown = MK__SHUTDOWN_DRAINING;
    mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(output, "unix:/run/x 1");
    w.http.shutdown = MK__SHUTDOWN_NONE;
    mk_test_fixture_close(&w);
}

TEST(no_host_no_state)
{
    static const struct mk__request_ops no_ops;
    open_hooks();
    struct mk_request *req = mk__request_new(&w.http, &no_ops, NULL);
    assert_null(mk_request_host_state(req, &plugins[0])); /* its head was not readable */
    req->app_data = &host;
    assert_ptr_equal(mk_request_host_state(req, &plugins[1]), &states[1]);
    static const struct mk_plugin stranger = {.name = "stranger"};
    assert_null(mk_request_host_state(req, &stranger));
    mk__request_free(req);
    mk_test_fixture_close(&w);
}

/* ── states of an exchange ── */

static int kept; /* what the plugin keeps */
static unsigned found;
static const struct mk_plugin keeper;

static int keep_state(struct mk_request *req)
{
    static const struct mk_plugin stranger = {.name = "stranger"};
    assert_null(mk_request_state(req, &keeper)); /* of the exchange before, too */
    assert_int_equal(mk_request_set_state(req, &stranger, &kept), -ENOENT);
    assert_int_equal(mk_request_set_state(req, &keeper, &kept), 0);
    assert_null(mk_request_state(req, &plugins[1]));
    assert_null(mk_request_state(req, &stranger));
    return MK_DECLINED;
}

static void find_state(struct mk_request *req)
{
    assert_ptr_equal(mk_request_state(req, &keeper), &kept);
    found++;
}

static const struct mk_plugin keeper = {.name = "keeper",
                                        .on_request = keep_state,
                                        .on_response = find_state,
                                        .on_done = find_state};

TEST(a_state_of_an_exchange)
{
    open_hooks();
    set_plugin(1, &keeper);
    words[0][0] = words[0][1] = words[1][0] = MK_DECLINED;
    words[1][1] = 0;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_int_equal(found, 2);
    mk_test_send(c, MK_STR(GET)); /* the next exchange may have the same memory */
    mk_test_settle(&w);
    assert_int_equal(found, 4);
    mk_test_fixture_close(&w);
}

TEST(a_state_without_memory)
{
    static const struct mk__request_ops no_ops;
    open_hooks();
    set_plugin(1, &keeper);
    struct mk_request *req = mk__request_new(&w.http, &no_ops, NULL);
    while (mk_arena_alloc(&req->arena, 16))
        ;
    assert_int_equal(mk_request_set_state(req, &keeper, &kept), -ENOMEM);
    assert_null(mk_request_state(req, &keeper));
    mk__request_free(req);
    mk_test_fixture_close(&w);
}

/* ── declining later ── */

static struct mk_request *declined;
static unsigned cleaned;

static void count_clean(void *ctx)
{
    (void)ctx;
    cleaned++;
}

static int keep_request(struct mk_request *req)
{
    declined = req;
    return 0;
}

/*
 * mk_request_decline() lets the next plugin answer, even completely; the request and its arena stay until the callback
 * returns, and its clean-ups run once, with the end of the exchange.
 */
TEST(a_declined_request_stays_valid)
{
    static const struct mk_plugin waiting = {.name = "waiting", .on_request = keep_request};
    open_hooks();
    set_plugin(0, &waiting);
    words[0][1] = 0;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "handler");
    char *copy = mk_arena_alloc(mk_request_arena(declined), 64);
    assert_int_equal(mk_arena_defer(mk_request_arena(declined), count_clean, NULL), 0);
    mk_request_decline(declined);
    assert_string_equal(trail, "r1"); /* answered, and not over */
    memset(copy, 'a', 64);
    assert_string_equal(mk_request_path(declined).p, "/");
    assert_non_null(mk_arena_alloc(mk_request_arena(declined), 64));
    assert_int_equal(cleaned, 0);
    mk_request_decline(declined); /* the response has ended: no effect */
    mk_test_settle(&w);
    assert_string_equal(trail, "r1d1");
    assert_int_equal(cleaned, 1);
    mk_test_fixture_close(&w);
}
