// SPDX-License-Identifier: Apache-2.0
/* Statuses: reasons, bodies, pages. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "http/message/status.h"

TEST(reasons)
{
    static const struct {
        int status;
        const char *reason;
    } cases[] = {
        {100, "Continue"},
        {103, "Early Hints"},
        {200, "OK"},
        {206, "Partial Content"},
        {304, "Not Modified"},
        {404, "Not Found"},
        {413, "Content Too Large"},
        {431, "Request Header Fields Too Large"},
        {511, "Network Authentication Required"},
    };
    unsigned known = 0;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_str_equal(mk__status_reason(cases[i].status), cases[i].reason);
    for (int status = -1; status < 1000; status++) {
        struct mk_str reason = mk__status_reason(status);
        assert_int_equal(reason.p == NULL, reason.len == 0);
        known += reason.p != NULL;
    }
    assert_int_equal(known, 61);
}

TEST(unregistered)
{
    static const int codes[] = {-1, 0, 99, 104, 199, 209, 299, 306, 399, 418, 420, 499, 509, 512, 599, 1 << 30};
    for (size_t i = 0; i < COUNT(codes); i++) {
        assert_null(mk__status_reason(codes[i]).p);
    }
}

TEST(bodies)
{
    static const int without[] = {100, 101, 103, 199, 204, 304}, with[] = {200, 206, 301, 400, 404, 416, 500, 599};
    for (size_t i = 0; i < COUNT(without); i++)
        assert_false(mk__status_has_body(without[i]));
    for (size_t i = 0; i < COUNT(with); i++)
        assert_true(mk__status_has_body(with[i]));
}

TEST(pages)
{
    struct mk_buf b;
    mk_buf_init(&b, MK__STATUS_PAGE_BYTES);
    mk__status_write_page(&b, 404);
    assert_int_equal(b.err, 0);
    const char *page = mk_buf_cstr(&b);
    static const char *const parts[] = {
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">",
        "name=\"viewport\"",
        "light dark",
        "<title>404 Not Found</title>",
        "<h1>404 Not Found</h1><p>There is nothing at this address.</p>\n",
    };
    for (size_t i = 0; i < COUNT(parts); i++)
        assert_non_null(strstr(page, parts[i]));
    assert_null(strstr(page, "http")); /* no external resources */
    mk_buf_release(&b);

    mk__status_write_page(&b, 499);
    assert_non_null(strstr(mk_buf_cstr(&b), "<h1>499 Error</h1>\n"));
    mk_buf_release(&b);
}

/* Also those with the longest reason or sentence. */
TEST(sizes_of_pages)
{
    struct mk_buf b;
    for (int status = 100; status < 600; status++) {
        mk_buf_init(&b, MK__STATUS_PAGE_BYTES);
        mk__status_write_page(&b, status);
        assert_int_equal(b.err, 0);
        assert_true(b.len < MK__STATUS_PAGE_BYTES);
        mk_buf_release(&b);
    }
}

static int make_page(void *ctx)
{
    struct mk_buf b;
    (void)ctx;
    mk_buf_init(&b, 4096);
    mk__status_write_page(&b, 500);
    int err = b.err;
    mk_buf_release(&b);
    return err;
}

TEST(failing_allocations)
{
    struct mk_buf b;
    char storage[100];
    assert_true(mk_test_failing_allocs(make_page, NULL) >= 1);
    mk_buf_init_fixed(&b, storage, sizeof(storage));
    mk__status_write_page(&b, 500);
    assert_int_equal(b.err, -ENOBUFS);
}
