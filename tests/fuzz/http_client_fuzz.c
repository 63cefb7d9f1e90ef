// SPDX-License-Identifier: Apache-2.0
/*
 * The client for one request: the first byte picks the size of pieces, the second one how much of the body is wanted
 * and the method. A response that comes as a whole, and one in pieces, must have the same result, head and body.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop/loop.h"

#include <monkey/kit/http_client.h>

enum { HEAD_MAX = 1000, BODY_MAX = 128 };

/* What the callback got. */
struct outcome {
    bool is_over, is_whole;
    int err;
    unsigned status, n_fields;
    size_t head_len, body_len;
    char head[HEAD_MAX], body[BODY_MAX];
};

static struct mk_loop loop;
static struct mk_http_client client;
static struct mk_arena arena;
static const struct mk_dial_target *target;
static struct outcome *outcome;
static struct mk_str rest; /* of the response */
static size_t piece;
static int listener;

/* ── a transport whose connections read the input ── */

static int do_handshake(struct mk_io *io)
{
    (void)io;
    return 0;
}

static ssize_t read_input(struct mk_io *io, void *to, size_t size)
{
    size_t n = rest.len < piece ? rest.len : piece;
    (void)io;
    n = n < size ? n : size;
    if (n)
        memcpy(to, rest.p, n);
    rest = mk_str(rest.p + n, rest.len - n);
    return (ssize_t)n;
}

static ssize_t write_nowhere(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    (void)io, (void)n, (void)flags;
    return (ssize_t)vec[0].iov_len;
}

static void close_socket(struct mk_io *io)
{
    close(io->fd);
}

static const struct mk_transport transport = {
    .name = "input", .handshake = do_handshake, .read = read_input, .write = write_nowhere, .close = close_socket};

/* ── one exchange ── */

static void take_response(struct mk_http_client *c, const struct mk_http_response *r)
{
    if (c != &client || outcome->is_over)
        abort();
    *outcome = (struct outcome){.is_over = true, .is_whole = r->is_whole, .err = r->err, .status = r->status};
    if (r->err < 0)
        return;
    if (r->head.len > HEAD_MAX || r->body.len > BODY_MAX || r->status < 200)
        abort();
    outcome->n_fields = r->n_fields;
    outcome->head_len = r->head.len;
    outcome->body_len = r->body.len;
    memcpy(outcome->head, r->head.p, r->head.len);
    if (r->body.len)
        memcpy(outcome->body, r->body.p, r->body.len);
    for (unsigned i = 0; i < r->n_fields; i++)
        if ((size_t)r->fields[i].value.at + r->fields[i].value.len > r->head.len)
            abort();
}

static void ignore_task(struct mk_task *task)
{
    (void)task;
}

static void exchange(struct mk_str input, size_t size, uint8_t kind, struct outcome *ret)
{
    const struct mk_http_client_options options = {
        .target = target,
        .transport = &transport,
        .head = kind & 128 ? MK_STR("HEAD / HTTP/1.1\r\n\r\n") : MK_STR("GET / HTTP/1.1\r\n\r\n"),
        .head_bytes_max = HEAD_MAX,
        .fields_max = 16,
        .body_bytes_max = kind & 127,
    };
    struct mk_task task;
    rest = input;
    piece = size;
    outcome = ret;
    mk_task_init(&task, ignore_task);
    mk_http_client_start(&client, &loop, &options, take_response);
    for (int i = 0; i < 4 && !ret->is_over; i++) {
        mk_task_schedule(&loop, &task); /* a turn that does not wait */
        if (mk__loop_turn(&loop) < 0)
            abort();
    }
    if (!ret->is_over)
        abort();
    close(accept(listener, NULL, NULL));
}

/* ── */

int LLVMFuzzerInitialize(int *argc, char ***argv);

static char folder[] = "/tmp/mk-fuzz-XXXXXX";
static struct sockaddr_un addr = {.sun_family = AF_UNIX};

static void remove_folder(void)
{
    unlink(addr.sun_path);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char text[sizeof(addr.sun_path) + 8];
    const char *why;
    (void)argc, (void)argv;
    if (!mkdtemp(folder) || mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL) < 0)
        abort();
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", folder);
    snprintf(text, sizeof(text), "unix:%s", addr.sun_path);
    mk_arena_init(&arena, NULL, 4096, NULL, 0);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (const struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(listener, 4) < 0 ||
        mk_dial_target_parse(&arena, mk_str_c(text), 0, &target, &why) < 0)
        abort();
    return atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct mk_str input = mk_str((const char *)data + 2, size - 2);
    struct outcome whole = {0}, pieces = {0};
    exchange(input, SIZE_MAX, data[1], &whole);
    exchange(input, (size_t)data[0] % 32 + 1, data[1], &pieces);
    if (whole.err != pieces.err || whole.status != pieces.status || whole.is_whole != pieces.is_whole ||
        whole.n_fields != pieces.n_fields)
        abort();
    if (whole.head_len != pieces.head_len || memcmp(whole.head, pieces.head, whole.head_len) != 0 ||
        whole.body_len != pieces.body_len || memcmp(whole.body, pieces.body, whole.body_len) != 0)
        abort();
    return 0;
}
