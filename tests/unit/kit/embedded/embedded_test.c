// SPDX-License-Identifier: Apache-2.0
/* Files of a page: how they are found and sent, and which paths a page may have. */
#include "http/h1_fixture.h"

#include <monkey/kit/embedded.h>

#include <errno.h>
#include <stdio.h>

static const char page[] = "<p>page", script[] = "run()";

static const struct mk_embedded_file files[] = {
    {MK_STR_INIT(""), MK_STR_INIT("text/html"), MK_STR_INIT("\"a1\""), page, page + sizeof(page) - 1},
    {MK_STR_INIT("x.js"), MK_STR_INIT("text/javascript"), MK_STR_INIT("\"b2\""), script, script + sizeof(script) - 1},
    {.begin = NULL},
};

TEST(found_by_name)
{
    assert_ptr_equal(mk_embedded_find(files, MK_STR("")), &files[0]);
    assert_ptr_equal(mk_embedded_find(files, MK_STR("x.js")), &files[1]);
    assert_null(mk_embedded_find(files, MK_STR("x")));
    assert_null(mk_embedded_find(files, MK_STR("x.js/")));
}

static void answer(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_embedded_send(req, &files[1]);
}

static const char *ask(const char *fields)
{
    char text[256];
    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n", fields);
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(text));
    mk_test_settle(&w);
    return c ? mk_test_received(c).p : "";
}

TEST(sent)
{
    open_fixture(answer);
    const char *text = ask("");
    assert_non_null(strstr(text, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(text, "Content-Type: text/javascript\r\n"));
    assert_non_null(strstr(text, "ETag: \"b2\"\r\n"));
    assert_non_null(strstr(text, "Content-Security-Policy: default-src 'none'; script-src 'self';"));
    assert_null(strstr(text, "unsafe"));
    assert_non_null(strstr(text, "\r\n\r\nrun()"));
    text = ask("If-None-Match: \"b2\"\r\n");
    assert_non_null(strstr(text, "HTTP/1.1 304 "));
    assert_null(strstr(text, "run()"));
    close_fixture();
}

TEST(no_memory)
{
    bool happened = true;
    for (long n = 0; happened; n++) {
        open_fixture(answer);
        mk__alloc_countdown = n;
        ask("");
        happened = mk__alloc_countdown < 0;
        mk__alloc_countdown = -1;
        close_fixture();
    }
}

static int parse(const char *text, struct mk_str *ret)
{
    struct mk_arena arena;
    struct mk_buf error;
    struct mk_str word = mk_str_c(text);
    struct mk_conf_value value = {.text = word, .words = &word, .n = 1};
    static char copy[64];
    mk_arena_init(&arena, NULL, 4096, NULL, 0);
    mk_buf_init(&error, 4096);
    int err = mk_embedded_parse_path(&value, ret, &arena, &error);
    assert_int_equal(err<0, error.len> 0);
    if (err == 0) {
        memcpy(copy, ret->p, ret->len);
        *ret = mk_str(copy, ret->len);
    }
    mk_buf_release(&error);
    mk_arena_release(&arena);
    return err;
}

TEST(paths)
{
    static const char *const wrong[] = {"",     "/",    "x",     "/x/",   "//x",  "/x//y", "/.x",      "/x/../y",
                                        "/x?y", "/x#y", "/x%20", "/x\\y", "/x y", "/\x7f", "/\xc3\xa9"};
    struct mk_str path;
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(parse(wrong[i], &path), -EINVAL);
    assert_int_equal(parse("/a-b/c.d_e", &path), 0);
    assert_true(mk_str_eq(path, MK_STR("/a-b/c.d_e")));
}
