// SPDX-License-Identifier: Apache-2.0
/* Reads the queue of parts without a connection, in pieces of any size; the response is complete or fails. */
#include "folder.h"
#include "http/parts.h"
#include "http/h1_fixture.h"

#include <errno.h>

static unsigned wakes;

static void wake(struct mk_request *req)
{
    (void)req;
    wakes++;
}

static const struct mk__request_ops request_ops = {.major = 2, .wake = wake};

static struct mk_request *req;
static struct mk__parts_reader queue;

static void start(void)
{
    open_fixture(NULL);
    wakes = 0;
    req = mk__request_new(&w.http, &request_ops, NULL);
    assert_non_null(req);
    queue = (struct mk__parts_reader){.req = req};
}

static void stop(void)
{
    mk__request_free(req);
    mk_test_fixture_close(&w);
}

/* Reads all that there is, `size` bytes at a time. Returns the text; `*ret_end` is the last result. */
static const char *read_text(size_t size, ssize_t *ret_end)
{
    static char text[64];
    size_t len = 0;
    ssize_t n;
    while ((n = mk__parts_read(&queue, text + len, size)) > 0) {
        assert_true((size_t)n <= size && len + (size_t)n < sizeof(text));
        len += (size_t)n;
    }
    text[len] = '\0';
    *ret_end = n;
    return text;
}

static ssize_t once(struct mk_request *r, char *to, size_t size, void *ctx)
{
    unsigned *left = ctx;
    (void)r;
    if (!*left)
        return 0;
    --*left;
    assert_true(size > 0);
    *to = 'g';
    return 1;
}

static ssize_t wait_or_fail(struct mk_request *r, char *to, size_t size, void *ctx)
{
    (void)r, (void)to, (void)size;
    return *(int *)ctx;
}

static ssize_t fail_aside(struct mk_request *r, char *to, size_t size, void *ctx)
{
    (void)to, (void)size, (void)ctx;
    mk_response_abort(r);
    return 0;
}

static int open_file(void)
{
    int fd = open(mk_test_path("file"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

TEST(parts_in_their_order)
{
    for (size_t size = 1; size <= 16; size++) {
        ssize_t end;
        unsigned left = 3;
        start();
        assert_int_equal(mk_response_write_ref(req, MK_STR("abc")), 0);
        assert_int_equal(mk_response_generate(req, once, &left), 0);
        assert_int_equal(mk_response_write(req, MK_STR("def")), 0);
        assert_int_equal(mk_response_write_file(req, open_file(), 2, 5), 0);
        assert_int_equal(wakes, 4);
        mk_response_end(req);
        assert_string_equal(read_text(size, &end), "abcgggdef23456");
        assert_int_equal(end, 0);
        assert_null(req->first);
        assert_int_equal(queue.read, 14);
        assert_int_equal(mk__parts_read(&queue, (char[1]){0}, 1), 0); /* and it stays at its end */
        stop();
    }
}

TEST(not_ended_yet)
{
    ssize_t end;
    start();
    assert_string_equal(read_text(8, &end), "");
    assert_int_equal(end, -EAGAIN);
    mk_response_write_ref(req, MK_STR("abc"));
    assert_string_equal(read_text(8, &end), "abc");
    assert_int_equal(end, -EAGAIN);
    mk_response_end(req);
    assert_string_equal(read_text(8, &end), "");
    assert_int_equal(end, 0);
    stop();
}

TEST(lengths_are_kept)
{
    static const struct {
        uint64_t length;
        const char *text;
        ssize_t end;
    } cases[] = {{3, "abc", 0}, {4, "abc", -EPIPE}, {2, "", -EMSGSIZE}, {0, "", -EMSGSIZE}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        ssize_t end;
        start();
        queue.length_known = true;
        queue.length = cases[i].length;
        mk_response_write_ref(req, MK_STR("abc"));
        mk_response_end(req);
        assert_string_equal(read_text(8, &end), cases[i].text);
        assert_int_equal(end, cases[i].end);
        stop();
    }
}

TEST(generators)
{
    static int results[] = {-EAGAIN, -EIO, -EBUSY, -ENOMEM};
    for (size_t i = 0; i < COUNT(results); i++) {
        ssize_t end;
        start();
        mk_response_write_ref(req, MK_STR("abc"));
        mk_response_generate(req, wait_or_fail, &results[i]);
        mk_response_end(req);
        assert_string_equal(read_text(8, &end), "abc");
        assert_int_equal(end, results[i]);
        assert_string_equal(read_text(8, &end), ""); /* asked once more it says the same */
        assert_int_equal(end, results[i]);
        stop();
    }
    ssize_t end;
    start();
    mk_response_generate(req, fail_aside, NULL);
    assert_string_equal(read_text(8, &end), "");
    assert_int_equal(end, -EPIPE);
    stop();
}

TEST(given_up)
{
    ssize_t end;
    start();
    mk_response_write_ref(req, MK_STR("abc"));
    mk_response_abort(req);
    assert_string_equal(read_text(8, &end), "");
    assert_int_equal(end, -EPIPE);
    stop();
}

/* ── files ── */

TEST(a_file_that_has_shrunk)
{
    unsigned before = mk_test_descriptors();
    ssize_t end;
    start();
    assert_int_equal(mk_response_write_file(req, open_file(), 8, 5), 0); /* of which there are two */
    mk_response_end(req);
    assert_string_equal(read_text(8, &end), "89");
    assert_int_equal(end, -EIO);
    stop();
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(a_file_that_is_not_read)
{
    unsigned before = mk_test_descriptors();
    start();
    mk_response_write_file(req, open_file(), 0, 10);
    mk_response_write_file(req, open_file(), 0, 10);
    stop();
    assert_int_equal(mk_test_descriptors(), before);
}

/* ── back-pressure ── */

static unsigned refills;

static void refill(struct mk_request *r, void *ctx)
{
    assert_null(ctx);
    if (refills-- > 1)
        mk_response_write_ref(r, MK_STR("more"));
    else
        mk_response_end(r);
}

TEST(the_handler_hears_of_room)
{
    static char much[70000];
    static char to[sizeof(much)];
    start();
    refills = 2;
    mk_response_on_writable(req, refill, NULL);
    assert_int_equal(mk_response_write_ref(req, mk_str(much, sizeof(much))), MK_AGAIN);
    assert_int_equal(mk__parts_read(&queue, to, sizeof(to)), sizeof(much));
    assert_int_equal(refills, 2);
    assert_int_equal(mk__parts_read(&queue, to, sizeof(to)), 4); /* asked, and it had some */
    assert_int_equal(refills, 1);
    assert_int_equal(mk__parts_read(&queue, to, sizeof(to)),
                     -EAGAIN); /* no MK_AGAIN was returned, so it is not called */
    assert_int_equal(mk_response_write_ref(req, mk_str(much, sizeof(much))), MK_AGAIN);
    assert_int_equal(mk__parts_read(&queue, to, sizeof(to)), sizeof(much));
    assert_int_equal(mk__parts_read(&queue, to, sizeof(to)), 0);
    assert_int_equal(refills, 0);
    stop();
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_write("file", MK_STR("0123456789"));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
