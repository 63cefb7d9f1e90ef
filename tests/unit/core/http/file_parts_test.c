// SPDX-License-Identifier: Apache-2.0
/* Many ranges of a large file in one response: with a disk thread, slow clients, and clients that disconnect. */
#include "folder.h"
#include "harness.h"

#include "http/message/multipart.h"
#include "http/disk_fixture.h"

#include <monkey/base/buf.h>

#include <stdlib.h>

static struct mk_test_fixture w;
static struct mk_thread_pool jobs;

enum { LARGE_BYTES = 1 << 20 };

/* Returns the byte at an offset; it is never part of a boundary. */
static char byte_at(uint64_t n)
{
    return (char)('A' + n / 7 % 26);
}

static void send_large(struct mk_request *req, struct mk_test_fixture *fixture)
{
    int fd = open(mk_test_path("large"), O_RDONLY | O_CLOEXEC);
    (void)fixture;
    assert_true(fd >= 0);
    mk_response_file(req, &(struct mk_file){.fd = fd, .bytes = LARGE_BYTES, .type = MK_STR("text/x")});
}

static void open_large(void)
{
    open_disk_fixture(&w, &jobs, send_large);
}

static void close_large(void)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    mk_test_fixture_close(&w);
}

/* Sixteen ranges, the last of the file first: small ones are copied, large ones go by sendfile. */
static uint64_t first_of(unsigned i)
{
    return (uint64_t)(15 - i) * 65000;
}

static uint64_t bytes_of(unsigned i)
{
    return i % 3 ? 1000 + i : 40000 + i;
}

static const char *ask_for(unsigned n)
{
    static char text[1024];
    struct mk_buf b;
    mk_buf_init_fixed(&b, text, sizeof(text));
    mk_buf_adds(&b, MK_STR("GET / HTTP/1.1\r\nHost: h\r\nRange: bytes="));
    for (unsigned i = 0; i < n; i++)
        mk_buf_addf(&b, "%s%u-%u", i ? "," : "", (unsigned)first_of(i), (unsigned)(first_of(i) + bytes_of(i) - 1));
    mk_buf_adds(&b, MK_STR("\r\n\r\n"));
    return mk_buf_cstr(&b);
}

static const char *check_range(const char *at, const char *boundary, unsigned i)
{
    char head[256];
    int len =
        snprintf(head, sizeof(head), "\r\n--%s\r\nContent-Type: text/x\r\nContent-Range: bytes %u-%u/%u\r\n\r\n",
                 boundary, (unsigned)first_of(i), (unsigned)(first_of(i) + bytes_of(i) - 1), (unsigned)LARGE_BYTES);
    assert_memory_equal(at, head, (size_t)len);
    at += len;
    for (uint64_t n = 0; n < bytes_of(i); n++)
        if (at[n] != byte_at(first_of(i) + n))
            fail_msg("byte %llu of range %u is wrong", (unsigned long long)n, i);
    return at + bytes_of(i);
}

static void check_ranges(struct mk_test_client *c, unsigned n)
{
    char boundary[MK__BOUNDARY_BYTES + 1], end[64];
    struct mk_str answer = mk_test_received(c);
    assert_true(mk_str_starts(answer, MK_STR("HTTP/1.1 206 Partial Content\r\n")));
    snprintf(boundary, sizeof(boundary), "%s", strstr(answer.p, "boundary=") + 9);
    uint64_t announced = strtoull(strstr(answer.p, "Content-Length: ") + 16, NULL, 10);
    const char *body = strstr(answer.p, "\r\n\r\n") + 4, *at = body;
    for (unsigned i = 0; i < n; i++)
        at = check_range(at, boundary, i);
    snprintf(end, sizeof(end), "\r\n--%s--\r\n", boundary);
    assert_string_equal(at, end);
    assert_int_equal(announced, answer.p + answer.len - body);
}

TEST(many_ranges)
{
    unsigned before = mk_test_descriptors();
    for (unsigned n = 2; n <= 16; n++) {
        mk_test_make_cold();
        open_large();
        unsigned idle = mk_test_descriptors();
        struct mk_test_client *c = mk_test_connect(&w, mk_str_c(ask_for(n)));
        assert_in_range(mk_test_descriptors(), idle, idle + 3); /* one for all parts; a thread may have begun */
        settle_with_disk(c);
        assert_string_equal(mk_test_state(c), "idle");
        check_ranges(c, n);
        close_large();
    }
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(many_ranges_through_a_slow_client)
{
    unsigned before = mk_test_descriptors();
    mk_test_make_cold();
    open_large();
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = 1;
    mk_test_send(c, mk_str_c(ask_for(16)));
    settle_with_disk(c);
    for (int i = 0; i < 2000 && strcmp(mk_test_state(c), "idle") != 0; i++) {
        mk_test_take(c, 777);
        settle_with_disk(c);
    }
    check_ranges(c, 16);
    close_large();
    assert_int_equal(mk_test_descriptors(), before);
}

/* No descriptor stays open, whether it disconnects in a memory part, in a file part or while the disk reads. */
TEST(a_client_leaves_in_the_middle)
{
    unsigned before = mk_test_descriptors();
    for (unsigned room = 0; room < 240000; room = room * 3 / 2 + 100) {
        if (room % 2)
            mk_test_make_cold();
        open_large();
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
        c->room = room;
        mk_test_send(c, mk_str_c(ask_for(16)));
        if (room % 3)
            settle_with_disk(c);
        else
            mk_test_settle(&w);
        mk_test_reset(c);
        mk_test_settle(&w);
        assert_string_equal(mk_test_state(c), "closed");
        assert_int_equal(w.aborted, 1);
        close_large();
        assert_int_equal(mk_test_descriptors(), before);
    }
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    char *text = malloc(LARGE_BYTES);
    assert_non_null(text);
    for (unsigned i = 0; i < LARGE_BYTES; i++)
        text[i] = byte_at(i);
    mk_test_write("large", mk_str(text, LARGE_BYTES));
    free(text);
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
