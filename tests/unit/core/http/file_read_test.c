// SPDX-License-Identifier: Apache-2.0
/*
 * Sending files: small ones are copied, large ones go in slices by sendfile, a disk thread reads those that are not in
 * the page cache, and the connection is closed if a file shrinks.
 */
#include "folder.h"
#include "harness.h"

#include "http/disk_fixture.h"

#include <errno.h>

static struct mk_test_fixture w;
static struct mk_thread_pool jobs;
static const char *file_name;
static uint64_t file_at, file_length;
static bool chunked;

static ssize_t say_nothing(struct mk_request *req, char *to, size_t size, void *ctx)
{
    (void)req;
    (void)to;
    (void)size;
    (void)ctx;
    return 0;
}

static void send_the_file(struct mk_request *req, struct mk_test_fixture *fixture)
{
    int fd = open(mk_test_path(file_name), O_RDONLY | O_CLOEXEC);
    (void)fixture;
    assert_true(fd >= 0);
    if (!chunked)
        assert_int_equal(mk_response_set_length(req, file_length), 0);
    else
        assert_int_equal(mk_response_generate(req, say_nothing, NULL), 0); /* of unknown length */
    if (mk_response_write_file(req, fd, file_at, file_length) < 0)
        mk_response_abort(req);
    else if (!chunked)
        mk_response_end(req);
    if (chunked && mk_response_write(req, MK_STR("behind")) == 0)
        mk_response_end(req);
}

static void open_fixture(const char *name, uint64_t at, uint64_t length)
{
    file_name = name;
    file_at = at;
    file_length = length;
    chunked = false;
    open_disk_fixture(&w, &jobs, send_the_file);
}

static void close_fixture(void)
{
    if (w.http.loop)
        mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    mk_test_fixture_close(&w);
    assert_int_equal(w.requests <= w.done, true);
}

/* A file with a known byte at each offset. */
static char byte_at(uint64_t n)
{
    return (char)('a' + n / 7 % 26);
}

static void make_file(const char *name, size_t bytes)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    for (size_t i = 0; i < bytes; i++)
        text[i] = byte_at(i);
    mk_test_write(name, mk_str(text, bytes));
    free(text);
}

#define GET "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

static void check_body(struct mk_test_client *c)
{
    struct mk_str answer = mk_test_received(c);
    const char *body = strstr(answer.p, "\r\n\r\n");
    assert_non_null(body);
    body += 4;
    assert_int_equal(answer.len - (size_t)(body - answer.p), file_length);
    for (uint64_t i = 0; i < file_length; i++)
        if (body[i] != byte_at(file_at + i))
            fail_msg("byte %llu is wrong", (unsigned long long)i);
}

TEST(small_files_are_copied)
{
    unsigned before = mk_test_descriptors();
    open_fixture("small", 0, 1000);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    check_body(c);
    assert_int_equal(c->writes, 1); /* head and file in one */
    assert_int_equal(c->files, 0);
    file_at = 100;
    file_length = 50;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    check_body(c);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(large_files_are_sent)
{
    open_fixture("large", 0, 1 << 20);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(mk_test_state(c), "write"); /* yields after a slice */
    assert_in_range(c->from_server.len, 512 * 1024, 513 * 1024);
    mk_test_settle(&w);
    assert_int_equal(c->writes, 1);
    assert_int_equal(c->files, 2);
    check_body(c);
    assert_string_equal(mk_test_state(c), "idle");
    file_at = 123457;
    file_length = 500001;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    check_body(c);
    close_fixture();
}

TEST(files_through_a_slow_client)
{
    open_fixture("large", 1, 300000);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = 1;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    for (int i = 0; i < 1000 && strcmp(mk_test_state(c), "idle") != 0; i++) {
        assert_string_equal(mk_test_state(c), "write");
        mk_test_take(c, 777);
        mk_test_settle(&w);
    }
    check_body(c);
    close_fixture();
}

TEST(files_in_chunks)
{
    static const uint64_t sizes[] = {1, 1000, 16384, 16385, 300000};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char line[32];
        open_fixture("large", 0, sizes[i]);
        chunked = true;
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
        mk_test_settle(&w);
        struct mk_str answer = mk_test_received(c);
        snprintf(line, sizeof(line), "\r\n\r\n%llx\r\n", (unsigned long long)sizes[i]);
        const char *at = strstr(answer.p, line);
        assert_non_null(at);
        at += strlen(line);
        for (uint64_t n = 0; n < sizes[i]; n++)
            assert_int_equal(at[n], byte_at(n));
        assert_string_equal(at + sizes[i], "\r\n6\r\nbehind\r\n0\r\n\r\n");
        assert_string_equal(mk_test_state(c), "idle");
        close_fixture();
    }
}

TEST(cold_files_wait_for_the_disk)
{
    static const uint64_t sizes[] = {100, 16384, 1 << 20};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        mk_test_make_cold();
        open_fixture("large", 0, sizes[i]);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
        mk_test_send(c, MK_STR(GET GET));
        mk_test_settle(&w);
        assert_int_equal(jobs.threads, 1); /* the loop has not read it */
        settle_with_disk(c);
        mk_test_settle(&w);
        settle_with_disk(c);
        assert_string_equal(mk_test_state(c), "idle");
        struct mk_str answer = mk_test_received(c);
        const char *body = strstr(answer.p, "\r\n\r\n") + 4;
        for (uint64_t n = 0; n < sizes[i]; n++)
            assert_int_equal(body[n], byte_at(n));
        assert_true(mk_str_starts(mk_str_c(body + sizes[i]), MK_STR("HTTP/1.1 200 OK")));
        close_fixture();
    }
}

/* That one slice is in memory says nothing about the next. */
TEST(a_file_whose_end_is_cold)
{
    static char slice[512 * 1024];
    mk_test_make_cold();
    open_fixture("large", 0, 1 << 20);
    int fd = open(mk_test_path("large"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, slice, sizeof(slice), 0), sizeof(slice));
    close(fd);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_int_equal(jobs.threads, 1);
    settle_with_disk(c);
    check_body(c);
    close_fixture();
}

TEST(a_client_leaves_while_the_disk_works)
{
    unsigned before = mk_test_descriptors();
    mk_test_make_cold();
    open_fixture("large", 0, 1 << 20);
    mk_test_hold_disk(true);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(mk_test_state(c), "disk");
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.aborted, 1);
    mk_test_hold_disk(false);
    close_fixture(); /* the job ends without an exchange */
    assert_int_equal(mk_test_descriptors(), before);
}

/* ── a file that is shared ── */

static int shared_fd = -1, references;

static void get_shared(void *owned)
{
    assert_ptr_equal(owned, &shared_fd);
    references++;
}

/* The functions of the owner are those of a plugin, which is there as long as something holds its worker. */
static void put_shared(void *owned)
{
    assert_ptr_equal(owned, &shared_fd);
    assert_true(w.worker_refs > 0 && references > 0);
    references--;
}

static void send_shared(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static const struct mk_owner owner = {get_shared, put_shared};
    (void)fixture;
    shared_fd = open(mk_test_path(file_name), O_RDONLY | O_CLOEXEC);
    mk_response_file(req, &(struct mk_file){.fd = shared_fd,
                                            .bytes = file_length,
                                            .type = MK_STR("text/x"),
                                            .owner = &owner,
                                            .owned = &shared_fd});
}

/* A plugin whose files are read must not be stopped, although no exchange is left that holds it. */
TEST(the_owner_of_a_file_stays_while_the_disk_works)
{
    mk_test_make_cold();
    open_fixture("large", 0, 1 << 20);
    w.handler = send_shared;
    mk_test_hold_disk(true);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(mk_test_state(c), "disk");
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.worker_refs, 1);
    assert_int_equal(references, 1);
    mk_test_hold_disk(false);
    assert_true(mk_test_wait_wakeup(&w));
    assert_int_equal(w.worker_refs, 0);
    assert_int_equal(references, 0);
    assert_int_equal(close(shared_fd), 0);
    close_fixture();
}

TEST(no_thread_for_a_cold_file)
{
    mk_test_make_cold();
    open_fixture("large", 0, 1000);
    w.loop.thread_pool = NULL;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_string_not_equal(mk_test_state(c), "idle");
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

/* ── shrinking ── */

TEST(files_that_are_shorter_than_announced)
{
    static const struct {
        const char *name;
        uint64_t at, length;
        size_t body_max;
    } cases[] = {
        {"small", 0, 1001, 1001},      {"small", 1000, 1, 0}, {"empty", 0, 10, 0}, {"large", 0, (1 << 20) + 1, 1 << 20},
        {"large", 1 << 20, 100000, 0},
    };
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_fixture(cases[i].name, cases[i].at, cases[i].length);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET GET));
        settle_with_disk(c);
        mk_test_settle(&w);
        struct mk_str answer = mk_test_received(c);
        const char *body = strstr(answer.p, "\r\n\r\n");
        assert_non_null(body); /* the head was sent before */
        size_t len = answer.len - (size_t)(body + 4 - answer.p);
        assert_true(len <= cases[i].body_max && len < cases[i].length);
        assert_string_not_equal(mk_test_state(c), "idle");
        assert_int_equal(w.requests, 1); /* no second response in place of the missing bytes */
        assert_int_equal(w.aborted, 1);
        close_fixture();
    }
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(a_file_shrinks_while_it_is_sent)
{
    make_file("shrinking", 1 << 20);
    open_fixture("shrinking", 0, 1 << 20);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = 300000;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "write");
    assert_int_equal(truncate(mk_test_path("shrinking"), 10), 0);
    mk_test_take(c, SIZE_MAX);
    mk_test_settle(&w);
    settle_with_disk(c);
    mk_test_settle(&w);
    assert_true(mk_test_received(c).len <= 300000);
    assert_string_not_equal(mk_test_state(c), "idle");
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

/* ── memory ── */

TEST(every_allocation_may_fail)
{
    static const struct {
        const char *name;
        uint64_t length;
        bool cold;
    } cases[] = {{"small", 1000, false}, {"large", 300000, false}, {"large", 1000, true}, {"large", 300000, true}};
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool all_fine = false;
        for (long n = 0; !all_fine && n < 100; n++) {
            if (cases[i].cold)
                mk_test_make_cold();
            open_fixture(cases[i].name, 0, cases[i].length);
            mk__alloc_countdown = n;
            struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
            if (c) {
                c->room = 10;
                mk_test_send(c, MK_STR(GET));
                settle_with_disk(c);
                mk_test_take(c, SIZE_MAX);
                settle_with_disk(c);
                mk_test_settle(&w);
                settle_with_disk(c);
            }
            all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            if (all_fine)
                check_body(c);
            close_fixture();
        }
    }
    assert_int_equal(mk_test_descriptors(), before);
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    make_file("small", 1000);
    make_file("large", 1 << 20);
    make_file("empty", 0);
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
