// SPDX-License-Identifier: Apache-2.0
/* Paths with an encoded slash: which are offered to a handler, and what it sees of them. */
#include "http/h1_fixture.h"

#include <stdio.h>

static char asked[128], seen[128];
static struct mk__http_app app;

/* Keeps the slashes of paths that begin with "/a", and decodes those of "/d". */
static int accept_a_and_d(const struct mk_request *req, struct mk_str path, void *ctx)
{
    assert_ptr_equal(ctx, &w);
    assert_str_equal(mk_request_path(req), "");
    snprintf(asked, sizeof(asked), "%.*s", MK_STR_ARG(path));
    if (mk_str_starts(path, MK_STR("/d")))
        return MK_ENCODED_SLASH_DECODE;
    return mk_str_starts(path, MK_STR("/a")) ? MK_ENCODED_SLASH_KEEP : MK_ENCODED_SLASH_REFUSE;
}

static void look(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_str path = mk_request_path(req), raw = mk_request_raw_path(req);
    (void)fixture;
    assert_int_equal(path.p[path.len], '\0');
    snprintf(seen, sizeof(seen), "%.*s %.*s%s", MK_STR_ARG(path), MK_STR_ARG(raw),
             mk_request_has_encoded_slash(req) ? " encoded" : "");
    mk_response_end(req);
}

static void open_accepting(void)
{
    open_fixture(look);
    app = *w.http.app;
    app.accepts_encoded_slash = accept_a_and_d;
    w.http.app = &app;
}

/* Returns the status. */
static int get_path(const char *path)
{
    char text[256];
    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", path);
    asked[0] = seen[0] = '\0';
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(text));
    mk_test_settle(&w);
    int status = 0;
    sscanf(mk_test_received(c).p, "HTTP/1.1 %d", &status);
    return status;
}

TEST(paths)
{
    static const struct {
        const char *path, *asked, *seen; /* NULL: not asked; 404 */
    } cases[] = {
        {"/a%2Fb", "/a%2Fb", "/a%2Fb /a%2Fb encoded"},
        {"/a%2fb%2Fc/d?e%2Ff", "/a%2Fb%2Fc/d", "/a%2Fb%2Fc/d /a%2fb%2Fc/d encoded"},
        {"http://h/%61%2fb//./%20c", "/a%2Fb/ c", "/a%2Fb/ c /%61%2fb//./%20c encoded"},
        {"/a/x/../y%2F", "/a/y%2F", "/a/y%2F /a/x/../y%2F encoded"},
        {"/a%2F%2Fb", "/a%2F%2Fb", "/a%2F%2Fb /a%2F%2Fb encoded"},
        {"/a%2F...", "/a%2F...", "/a%2F... /a%2F... encoded"},
        {"/a%25%2Fb", "/a%%2Fb", "/a%%2Fb /a%25%2Fb encoded"},
        {"/b%2Fa", "/b%2Fa", "/b%2Fa /b%2Fa encoded"}, /* not accepted: no content is asked for */
        {"/d%2Fb", "/d%2Fb", "/d/b /d%2Fb"},
        {"/d%2fb%2F%2Fc/e?f%2Fg", "/d%2Fb%2F%2Fc/e", "/d/b/c/e /d%2fb%2F%2Fc/e"},
        {"/d/x/../y%2F", "/d/y%2F", "/d/y/ /d/x/../y%2F"},
        {"/d%2F%2e%2E/b", NULL, NULL},
        {"/d/..%2Fb", NULL, NULL},
        {"/d%2Fb%252Fc", NULL, NULL},
        /* none that a ".." could leave, or that has the text "%2F" as well */
        {"/a/..%2Fb", NULL, NULL},
        {"/a%2F..", NULL, NULL},
        {"/a%2F%2e%2E/b", NULL, NULL},
        {"/a%2F./b", NULL, NULL},
        {"/a/.%2Fb", NULL, NULL},
        {"/a%2Fb%252Fc", NULL, NULL},
        {"/a%2Fb%252fc", NULL, NULL},
        {"/a%2Fb%25%32%46c", NULL, NULL},
        {"/a%2Fb/../c", NULL, NULL},
        /* nor malformed ones */
        {"/a%2Fb%", NULL, NULL},
        {"/a%2Fb%00", NULL, NULL},
        {"/a%2Fb%2", NULL, NULL},
        /* text, as in any path */
        {"/b%252Fa", NULL, "/b%2Fa /b%252Fa"},
        {"/b", NULL, "/b /b"},
    };
    open_accepting();
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(get_path(cases[i].path), cases[i].seen ? 200 : 404);
        assert_string_equal(asked, cases[i].asked ? cases[i].asked : "");
        assert_string_equal(seen, cases[i].seen ? cases[i].seen : "");
    }
    close_fixture();
}

TEST(without_a_handler)
{
    open_fixture(look);
    assert_int_equal(get_path("/a%2Fb"), 404);
    assert_string_equal(seen, "");
    close_fixture();
}

static void look_at_raw(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    snprintf(seen, sizeof(seen), "%.*s", MK_STR_ARG(mk_request_raw_path(req)));
    mk_response_end(req);
}

TEST(raw_path)
{
    static const char *const cases[][2] = {
        {"GET /%61?b", "/%61"}, {"GET http://h", "/"}, {"GET http://h?q", "/"}, {"OPTIONS *", ""}, {"CONNECT h:1", ""},
    };
    open_fixture(look_at_raw);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: h\r\n\r\n", cases[i][0]);
        mk_test_connect(&w, mk_str_c(text));
        mk_test_settle(&w);
        assert_string_equal(seen, cases[i][1]);
    }
    close_fixture();
}

static void look_without_memory(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_test_fill_arena(req);
    mk__alloc_countdown = 0;
    req->http->app = &app;
    assert_int_equal(mk__encoded_slash_decode(req), 503);
    mk__alloc_countdown = -1;
    mk_response_end(req);
}

TEST(without_memory)
{
    open_accepting();
    w.handler = look_without_memory;
    assert_int_equal(get_path("/a"), 200);
    close_fixture();
}
