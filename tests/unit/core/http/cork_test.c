// SPDX-License-Identifier: Apache-2.0
/* Which responses are sent corked, and that none ends so. What the kernel would do is what this program's calls say. */
#include "folder.h"
#include "harness.h"

#include "http/disk_fixture.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { FILE_BYTES = 3 << 19 };

static struct mk_test_fixture w;
static struct mk_thread_pool jobs;
static const char *control; /* of congestion; NULL: sockets are what they are */
static uint64_t length;
static struct {
    unsigned calls;
    bool on;
} cork;

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    if (!control || level != IPPROTO_TCP || name != TCP_CONGESTION)
        return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
    assert_true(*len > strlen(control));
    memcpy(value, control, strlen(control));
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    if (!control || level != IPPROTO_TCP || name != TCP_CORK)
        return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
    cork.on = *(const int *)value;
    cork.calls++;
    return 0;
}

static void send_the_file(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_file(req, &(struct mk_file){.fd = open(mk_test_path("file"), O_RDONLY | O_CLOEXEC),
                                            .bytes = length,
                                            .type = MK_STR("text/x")});
}

static void open_fixture(const char *congestion, uint64_t bytes)
{
    memset(&cork, 0, sizeof(cork));
    control = congestion;
    length = bytes;
    open_disk_fixture(&w, &jobs, send_the_file);
}

static void close_fixture(void)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    mk_test_fixture_close(&w);
    control = NULL;
}

#define GET "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

/* Sends a request and takes the response in pieces; `piece` 0: all at once. */
static void take_response(struct mk_test_client *c, size_t piece)
{
    c->room = piece ? 1 : SIZE_MAX;
    mk_test_send(c, MK_STR(GET));
    settle_with_disk(c);
    for (int i = 0; i < 10000 && strcmp(mk_test_state(c), "idle") != 0; i++) {
        mk_test_take(c, piece);
        settle_with_disk(c);
    }
    assert_string_equal(mk_test_state(c), "idle");
}

TEST(a_large_file)
{
    open_fixture("reno", FILE_BYTES);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(mk_test_state(c), "write");
    assert_true(cork.on && cork.calls == 1);
    assert_in_range(c->from_server.len, 1024 * 1024, 1025 * 1024); /* a longer slice */
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_true(!cork.on && cork.calls == 2);
    length = 20000;
    take_response(c, 0);
    assert_int_equal(cork.calls, 2);
    close_fixture();
}

/* The last bytes, which would be copied in a response of their size, are sent by the way that removes the cork. */
TEST(slow_clients)
{
    for (unsigned i = 0; i < 40; i++) {
        open_fixture("reno", 256 * 1024 + i * 999);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
        take_response(c, 10007);
        assert_true(!cork.on && cork.calls == 2);
        close_fixture();
    }
}

TEST(cold_files)
{
    mk_test_make_cold();
    open_fixture("cubic", FILE_BYTES);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    take_response(c, 0);
    assert_true(!cork.on && cork.calls == 2);
    close_fixture();
}

TEST(smaller_files)
{
    open_fixture("reno", 256 * 1024 - 1);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    take_response(c, 0);
    assert_int_equal(cork.calls, 0);
    close_fixture();
}

TEST(sockets_that_pace)
{
    open_fixture("bbr", FILE_BYTES);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_in_range(c->from_server.len, 512 * 1024, 513 * 1024);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(cork.calls, 0);
    close_fixture();
}

static int set_up(void **state)
{
    static char text[FILE_BYTES];
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_write("file", mk_str(text, sizeof(text)));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
