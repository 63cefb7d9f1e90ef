// SPDX-License-Identifier: Apache-2.0
/* mk_request_rewrite(): what it accepts, what the accessors return afterwards, and its limits. */
#include "testing.h"

#include <monkey/plugin.h>

#include "http/request.h"
#include "server/generation/generation.h"
#include "server/worker/worker.h"

#include <errno.h>

static struct mk_generation generation = {.n_plugins = 1};
static struct mk_worker worker = {.generation = &generation};
static struct mk_request req;
static const char line[] = "GET /old%20x?a=b HTTP/1.1";

static int open_request(void **state)
{
    (void)state;
    req = (struct mk_request){.worker = &worker, .base = line, .path = MK_STR("/old x")};
    req.parse.target = (struct mk_span){4, 12};
    req.head.has_query = true;
    req.head.query = (struct mk_span){13, 3};
    mk_arena_init(&req.arena, NULL, 1 << 20, NULL, 0);
    return 0;
}

static int close_request(void **state)
{
    (void)state;
    mk_arena_release(&req.arena);
    return 0;
}

TEST(new_path, open_request, close_request)
{
    assert_str_equal(mk_request_original_path(&req), "/old x");
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/n%65w//y/%2541"), MK_STR("q=%31")), 0);
    assert_str_equal(mk_request_path(&req), "/new/y/%41");
    assert_int_equal(mk_request_path(&req).p[mk_request_path(&req).len], '\0');
    assert_str_equal(mk_request_query(&req), "q=%31");
    assert_str_equal(mk_request_original_path(&req), "/old x");
    assert_str_equal(mk_request_target(&req), "/old%20x?a=b");
    assert_str_equal(mk_request_add_slash(&req), "/new/y/%2541/?q=%31");
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/z"), MK_STR_NONE), 0);
    assert_str_equal(mk_request_path(&req), "/z");
    assert_null(mk_request_query(&req).p);
    assert_str_equal(mk_request_original_path(&req), "/old x");
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/z"), MK_STR("")), 0);
    assert_str_equal(mk_request_query(&req), "");
}

TEST(refused_paths, open_request, close_request)
{
    static const struct {
        const char *path, *query;
        int err;
    } cases[] = {
        {"", NULL, -EINVAL},
        {"x", NULL, -EINVAL},
        {"*", NULL, -EINVAL},
        {"/a?b", NULL, -EINVAL},
        {"/a#b", NULL, -EINVAL},
        {"/a b", NULL, -EINVAL},
        {"/a\r\nX: y", NULL, -EINVAL},
        {"/\xc3\xa4", NULL, -EINVAL},
        {"/a\\b", NULL, -EINVAL},
        {"/..", NULL, -EINVAL},
        {"/a/../b", NULL, -EINVAL},
        {"/a/./b", NULL, -EINVAL},
        {"/a/%2e%2E/b", NULL, -EINVAL},
        {"/a/.%2e", NULL, -EINVAL},
        {"/a/%2e", NULL, -EINVAL},
        {"/a%2fb", NULL, -ENOENT},
        {"/a%00b", NULL, -EINVAL},
        {"/a%", NULL, -EINVAL},
        {"/a%4", NULL, -EINVAL},
        {"/a%zz", NULL, -EINVAL},
        {"/a", "b c", -EINVAL},
        {"/a", "b\n", -EINVAL},
        {"/a", "b#c", -EINVAL},
        {"/a", "b\x7f", -EINVAL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(mk_request_rewrite(&req, mk_str_c(cases[i].path), mk_str_c(cases[i].query)), cases[i].err);
        assert_str_equal(mk_request_path(&req), "/old x");
        assert_str_equal(mk_request_query(&req), "a=b");
    }
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/.../..a/b.."), MK_STR_NONE), 0);
    assert_str_equal(mk_request_path(&req), "/.../..a/b..");
}

TEST(requests_without_path, open_request, close_request)
{
    req.path = MK_STR("*");
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/a"), MK_STR_NONE), -EINVAL);
    req.path = MK_STR("");
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/a"), MK_STR_NONE), -EINVAL);
}

TEST(limits, open_request, close_request)
{
    static char path[MK_REWRITE_BYTES_MAX + 1];
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    assert_int_equal(mk_request_rewrite(&req, mk_str(path, sizeof(path)), MK_STR_NONE), -ENAMETOOLONG);
    assert_int_equal(mk_request_rewrite(&req, mk_str(path, sizeof(path) - 1), MK_STR("q")), -ENAMETOOLONG);
    assert_int_equal(mk_request_rewrite(&req, mk_str(path, sizeof(path) - 1), MK_STR("")), 0);
    for (int i = 1; i < MK_REWRITES_MAX; i++)
        assert_int_equal(mk_request_rewrite(&req, MK_STR("/a"), MK_STR_NONE), 0);
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/b"), MK_STR_NONE), -ELOOP);
    assert_str_equal(mk_request_path(&req), "/a");
}

TEST(too_late, open_request, close_request)
{
    req.hook = MK__HOOK_REQUEST * MK__PLUGINS_MAX; /* of the first plugin */
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/a"), MK_STR_NONE), -EALREADY);
    req.hook = 0;
    req.response_state = MK__RESPONSE_ENDED;
    assert_int_equal(mk_request_rewrite(&req, MK_STR("/a"), MK_STR_NONE), -EALREADY);
}

TEST(without_memory, open_request, close_request)
{
    for (size_t max = 0; max < 256; max += 16) {
        _Alignas(16) static char small[256];
        mk_arena_release(&req.arena);
        mk_arena_init(&req.arena, NULL, 0, small, max);
        int err = mk_request_rewrite(&req, MK_STR("/a"), MK_STR("b"));
        assert_true(err == 0 || err == -ENOMEM);
        assert_str_equal(mk_request_path(&req), err ? "/old x" : "/a");
        assert_str_equal(mk_request_query(&req), err ? "a=b" : "b");
        mk_arena_release(&req.arena);
        open_request(NULL);
    }
}
