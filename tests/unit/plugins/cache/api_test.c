// SPDX-License-Identifier: Apache-2.0
/* Requests to the API: which of them it takes, and what becomes of those that end early. */
#include "fixture.h"

#include "plugins/cache/calls.h"

#define ADMIN "[CACHE]\n    Admin /cache\n"

static const struct cache_rule rule = {.admin = MK_STR_INIT("/cache")};

TEST(paths)
{
    static const char *const taken[] = {"/cache",         "/cache/",       "/cache/page.js",
                                        "/cache/stats",   "/cache/reset",  "/cache/add",
                                        "/cache/add/a/b", "/cache/reset/", "/cache/entries"};
    static const char *const left[] = {"/",           "/cac",          "/caches",
                                       "/cache/none", "/cache/stats/", "/cache/entries/x",
                                       "/cache/adds", "/x/cache/"};
    for (size_t i = 0; i < COUNT(taken); i++)
        assert_true(api_has_path(mk_str_c(taken[i]), &rule));
    for (size_t i = 0; i < COUNT(left); i++)
        assert_false(api_has_path(mk_str_c(left[i]), &rule));
}

/* Sends a request that takes a disk thread, and returns the response. */
static const char *call(const char *method, const char *target)
{
    char text[512];
    snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", method,
             target);
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(text));
    assert_non_null(c);
    mk_test_settle(&w);
    for (int i = 0; i < 60 && site.cache->calls; i++)
        mk_test_wait_wakeup(&w);
    mk_test_fin(c);
    mk_test_settle(&w);
    return mk_test_received(c).p;
}

static void expect_answer(const char *method, const char *target, int status, const char *part)
{
    char line[32];
    const char *text = call(method, target);
    snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
    if (!mk_str_starts(mk_str_c(text), mk_str_c(line)) || !strstr(text, part))
        fail_msg("%s %s: %s", method, target, text);
}

TEST(calls)
{
    open_with_limits(ADMIN);
    disk.is_fast = true;
    expect_answer("POST", "/cache/add?path=/a.txt&path=/none", 200,
                  "{\"asked\":2,\"kept\":1,\"present\":0,\"failed\":1,");
    expect_answer("GET", "/cache/entries?sort=name", 200, "\"path\":\"/a.txt\",\"kind\":\"body\"");
    expect_answer("POST", "/cache/reset/a.txt", 200, "{\"removed\":1}");
    expect_answer("POST", "/cache/add?directory=/", 200, "\"kept\":1,");
    expect_answer("POST", "/cache/reset?all=1", 200, "{\"removed\":2}"); /* and the missing name */
    expect_answer("GET", "/cache/reset?all=1", 405, "Allow: POST");
    expect_answer("POST", "/cache/reset", 400, "{\"error\":");
    close_cache();
}

/* Calls that wait for a disk: as many as are allowed, then 503; a client that leaves ends its own. */
TEST(floods)
{
    struct mk_test_client *clients[5];
    open_with_limits(ADMIN);
    for (size_t i = 0; i < COUNT(clients); i++) {
        clients[i] = mk_test_connect(&w, MK_STR("POST /cache/add?path=/a.txt HTTP/1.1\r\nHost: h\r\nContent-Length: "
                                                "0\r\n\r\n"));
        mk_test_settle(&w);
    }
    assert_int_equal(site.cache->calls, 4);
    assert_non_null(strstr(mk_test_received(clients[4]).p, "HTTP/1.1 503 "));
    for (size_t i = 0; i < 4; i++)
        mk_test_reset(clients[i]);
    mk_test_settle(&w);
    disk.is_fast = true;
    for (size_t i = 0; i < 4; i++)
        sem_post(&disk.allowed);
    for (int i = 0; i < 60 && site.cache->calls; i++)
        mk_test_wait_wakeup(&w);
    assert_int_equal(site.cache->calls, 0);
    expect_answer("POST", "/cache/add?path=/a.txt", 200, "\"kept\":1");
    close_cache();
}

TEST(no_threads)
{
    open_with_limits(ADMIN);
    w.loop.thread_pool = NULL;
    expect_answer("GET", "/cache/entries", 503, "Retry-After: 1");
    assert_int_equal(site.cache->calls, 0);
    assert_int_equal(site.worker->refs, 0);
    close_cache();
}

TEST_FILE(make_cache_folder_with_file, mk_test_folder_remove)
