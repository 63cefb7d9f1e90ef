// SPDX-License-Identifier: Apache-2.0
/* Windows of the server that follow the bandwidth. The round trip is what this program's getsockopt(2) says. */
#include "http/h2_fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static uint32_t rtt_us;

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    if (level != IPPROTO_TCP || name != TCP_INFO)
        return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
    if (!rtt_us) {
        errno = EBADF;
        return -1;
    }
    memset(value, 0, *len);
    ((struct tcp_info *)value)->tcpi_rtt = rtt_us;
    return 0;
}

enum { FRAME_BYTES = 16 * 1024, STREAM_BYTES = 64 * 1024, WINDOW_BYTES_MAX = 1024 * 1024 };

static void drop(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)req, (void)piece, (void)end, (void)ctx;
}

static void read_and_drop(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_request_read(req, drop, NULL);
}

/* Adds what WINDOW_UPDATE frames have given to stream 1 and to the connection. */
static void hear_windows(struct mk_test_h2 *t, size_t windows[2])
{
    mk_test_settle(&w);
    h2_listen(t);
    for (char *at = t->log.p; (at = strstr(at, ":+"));) {
        size_t *window = &windows[at[-1] - '0'];
        *window += strtoul(at + 2, &at, 10);
    }
    t->log.p[t->log.len = 0] = '\0';
}

/* Uploads on stream 1, so many frames in a millisecond. Returns how large its window became. */
static size_t upload(struct mk_test_h2 *t, int frames, int frames_per_ms)
{
    static char frame[FRAME_BYTES];
    size_t windows[] = {4 * STREAM_BYTES, STREAM_BYTES}, most = 0;
    for (int n = 1; n <= frames; n++) {
        assert_true(windows[0] >= sizeof(frame) && windows[1] >= sizeof(frame));
        h2_data(t, 1, 0, mk_str(frame, sizeof(frame)));
        windows[0] -= sizeof(frame);
        windows[1] -= sizeof(frame);
        hear_windows(t, windows);
        most = windows[1] > most ? windows[1] : most;
        if (n % frames_per_ms == 0)
            mk_test_pass(&w, 1);
    }
    return most;
}

TEST(a_long_way_has_larger_windows)
{
    static const struct {
        uint32_t rtt_us;
        int frames_per_ms;
        size_t most;
    } cases[] = {
        {0, 4, STREAM_BYTES},           /* no TCP */
        {500, 4, STREAM_BYTES},         /* a near client */
        {100000, 4, WINDOW_BYTES_MAX},  /* half of the least window in a millisecond */
        {2000000, 4, WINDOW_BYTES_MAX}, /* a client may say what it wants */
        {1000, 1, STREAM_BYTES},        /* and in 2 ms, which are two round trips */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        rtt_us = cases[i].rtt_us;
        struct mk_test_h2 t = h2_open(read_and_drop);
        w.settings.limits.body_bytes_max = UINT32_MAX;
        h2_post(&t, 1);
        assert_int_equal(upload(&t, 400, cases[i].frames_per_ms), cases[i].most);
        h2_close(&t);
    }
}
