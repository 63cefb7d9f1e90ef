// SPDX-License-Identifier: Apache-2.0
/*
 * Clients that are hostile to servers which several threads of the program start and stop meanwhile: requests are cut,
 * large, pipelined, half closed or not sent at all. Compiled and run by tests/e2e/test_embed_attack.py:
 * attack ROUNDS threads|caller|plugins|closed|few
 *
 * `caller`: turns are rare. `plugins`: modules are loaded, and each server is reloaded. `closed`: the program has
 * closed stdin, stdout and stderr. `few`: descriptors run out. It checks that a friendly client is answered, that each
 * connection ends with its server, and that no descriptor or thread is left.
 */
#define _GNU_SOURCE
#include <monkey/embed.h>

#include "client.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

enum { THREADS = 3, LARGE = 1 << 20, LATE_MS = 3, SOCKETS = 40 };

static char large[LARGE];

/* ── handlers ── */

static int say_hello(struct mk_request *req, void *ctx)
{
    (void)ctx;
    return mk_response_send(req, 200, "text/plain", mk_request_param(req, "name"));
}

static int say_large(struct mk_request *req, void *ctx)
{
    (void)ctx;
    if (mk_response_write_ref(req, mk_str(large, sizeof(large))) < 0)
        return -ENOMEM;
    mk_response_end(req);
    return 0;
}

static void echo_body(struct mk_request *req, struct mk_str body, bool end, void *ctx)
{
    (void)end;
    (void)ctx;
    if (mk_response_write_ref(req, body) < 0)
        mk_response_abort(req);
    else
        mk_response_end(req);
}

static int echo(struct mk_request *req, void *ctx)
{
    mk_request_collect(req, 0, echo_body, ctx);
    return 0;
}

struct late {
    struct mk_timer timer;
    struct mk_request *req;
};

static void respond_late(struct mk_timer *timer)
{
    struct late *late = MK_CONTAINER_OF(timer, struct late, timer);
    if (mk_response_send(late->req, 200, NULL, MK_STR("late")) < 0)
        mk_response_abort(late->req);
}

static void cancel_late(void *ctx)
{
    mk_timer_cancel(&((struct late *)ctx)->timer);
}

/* Responds after `ctx` milliseconds, unless the exchange ends before. */
static int wait_late(struct mk_request *req, void *ctx)
{
    struct late *late = mk_arena_alloc(mk_request_arena(req), sizeof(*late));
    if (!late)
        return -ENOMEM;
    mk_timer_init(&late->timer, respond_late);
    late->req = req;
    if (mk_arena_defer(mk_request_arena(req), cancel_late, late) < 0)
        return -ENOMEM;
    mk_timer_arm(mk_request_loop(req), &late->timer, (uint32_t)(uintptr_t)ctx);
    return 0;
}

/* Any thread may tell a server to stop at once: this one is within a request of it. */
static int stop_now(struct mk_request *req, void *ctx)
{
    mk_server_stop_now(ctx);
    return mk_response_send(req, 200, NULL, MK_STR("stopping"));
}

/* ── hostile clients ── */

static void send_text(int fd, const char *text)
{
    send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_nothing(int fd)
{
    (void)fd;
}

static void send_half_a_head(int fd)
{
    send_text(fd, "GET /hello/you HTTP/1.1\r\nHost: h\r\nX-Ha");
}

static void send_large_head(int fd)
{
    send_text(fd, "GET /hello/you HTTP/1.1\r\nHost: h\r\nX-Large: ");
    send(fd, large, 100000, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_half_a_body(int fd)
{
    send_text(fd, "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\nhalf");
}

static void send_large_body(int fd)
{
    send_text(fd, "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n");
    send(fd, large, sizeof(large), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_wrong_chunks(int fd)
{
    send_text(fd,
              "PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nright\r\nFFFFFFFFFFFFFFFFF\r\n");
}

static void send_pipeline(int fd)
{
    for (int i = 0; i < 50; i++)
        send_text(fd, i % 3 ? "GET /hello/you HTTP/1.1\r\nHost: h\r\n\r\n" : "GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
}

static void send_and_half_close(int fd)
{
    send_text(fd, "GET /late HTTP/1.1\r\nHost: h\r\n\r\n");
    shutdown(fd, SHUT_WR);
}

static void send_and_reset(int fd)
{
    struct linger reset = {.l_onoff = 1};
    send_text(fd, "GET /large HTTP/1.1\r\nHost: h\r\n\r\nGET /late HTTP/1.1\r\nHost: h\r\n\r\n");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(dup(fd));
    shutdown(fd, SHUT_RDWR);
}

static void ask_for_never(int fd)
{
    send_text(fd, "GET /never HTTP/1.1\r\nHost: h\r\n\r\n");
}

static void send_http2(int fd)
{
    send_text(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    send(fd, "\0\0\0\4\0\0\0\0\0\0\0\4\1\5\0\0\0\1\x82\x86\x84\x41\xff\xff\xff", 26, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_noise(int fd)
{
    static const unsigned char noise[] = {0x16, 3, 1, 0, 0xff, '\r', '\n', 0, 0x7f, '\r', '\n', '\r', '\n', 0x80};
    send(fd, noise, sizeof(noise), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void (*const attacks[])(int fd) = {
    send_nothing,  send_half_a_head,    send_large_head, send_half_a_body, send_large_body, send_wrong_chunks,
    send_pipeline, send_and_half_close, send_and_reset,  ask_for_never,    send_http2,      send_noise,
};
enum { ATTACKS = sizeof(attacks) / sizeof(attacks[0]) };

/* The server has ended, and with it the connection; what it has sent before is still there. */
static void read_to_end(int fd)
{
    char text[65536];
    ssize_t got;
    while ((got = recv(fd, text, sizeof(text), 0)) > 0)
        ;
    CHECK(got == 0 || errno == ECONNRESET || errno == ENOTCONN || errno == EPIPE);
    close(fd);
}

/* ── servers ── */

/* With DeferAccept the kernel drops clients that have sent nothing, and does not tell them. */
#define CONFIG "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 2\n    ShutdownTimeout 20ms\n    DeferAccept 0\n"

static const char *config = CONFIG;
static bool reloads;

static struct mk_server *make(bool in_caller)
{
    struct mk_server *server = mk_server_new();
    CHECK(mk_server_text(server, config) == 0);
    CHECK(mk_server_handle(server, "GET", "/hello/:name", say_hello, NULL) == 0);
    CHECK(mk_server_handle(server, "GET", "/large", say_large, NULL) == 0);
    CHECK(mk_server_handle(server, "PUT", "/echo", echo, NULL) == 0);
    CHECK(mk_server_handle(server, "GET", "/late", wait_late, (void *)LATE_MS) == 0);
    CHECK(mk_server_handle(server, "GET", "/never", wait_late, (void *)3600000) == 0);
    CHECK(mk_server_handle(server, "GET", "/stop", stop_now, server) == 0);
    if (in_caller)
        CHECK(mk_server_in_caller(server) == 0);
    return server;
}

static void pause_ms(int ms)
{
    struct timespec delay = {.tv_nsec = ms * 1000000L};
    nanosleep(&delay, NULL);
}

/* Has the server do its work, once in a while. */
static void turn(struct mk_server *server, unsigned *seed)
{
    pause_ms(rand_r(seed) % 5);
    CHECK(mk_server_run_once(server, 0) == 0);
}

static void ask(struct mk_server *server, bool in_caller, unsigned *seed)
{
    char text[1024];
    size_t len = 0;
    int fd = connect_to(mk_server_port(server));
    send_text(fd, "GET /hello/friend HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    for (ssize_t got = 1; got != 0;) {
        if (in_caller)
            turn(server, seed);
        got = recv(fd, text + len, sizeof(text) - 1 - len, in_caller ? MSG_DONTWAIT : 0);
        CHECK(got >= 0 || errno == EAGAIN);
        len += got > 0 ? (size_t)got : 0;
    }
    text[len] = '\0';
    close(fd);
    CHECK(strncmp(text, "HTTP/1.1 200 OK\r\n", 17) == 0 && strcmp(text + len - 6, "friend") == 0);
}

/* ── attacks ── */

struct thread {
    pthread_t id;
    int rounds;
    bool in_caller;
    unsigned seed;
};

static void start(struct mk_server *server)
{
    if (mk_server_start(server) == 0)
        return;
    fprintf(stderr, "attack: %s\n", mk_server_error(server));
    abort();
}

/* The server is started, attacked and stopped, with or without an order from inside. */
static void attack(struct mk_server *server, struct thread *t)
{
    int fds[2 * ATTACKS], n = 0;
    start(server);
    for (; n < 2 * ATTACKS; n++) {
        fds[n] = connect_to(mk_server_port(server));
        attacks[rand_r(&t->seed) % ATTACKS](fds[n]);
        if (t->in_caller && n % 8 == 0)
            turn(server, &t->seed);
    }
    if (reloads)
        CHECK(mk_server_reload(server) == 0);
    ask(server, t->in_caller, &t->seed);
    int stopper = connect_to(mk_server_port(server));
    if (rand_r(&t->seed) % 2)
        send_text(stopper, "GET /stop HTTP/1.1\r\nHost: h\r\n\r\n");
    if (rand_r(&t->seed) % 2)
        pause_ms(1);
    CHECK(mk_server_stop(server) == 0);
    read_to_end(stopper);
    while (n > 0)
        read_to_end(fds[--n]);
}

/* Every other server is started again, with one more handler. */
static void *run_thread(void *ctx)
{
    struct thread *t = ctx;
    for (int i = 0; i < t->rounds; i++) {
        struct mk_server *server = make(t->in_caller);
        attack(server, t);
        if (i % 2) {
            CHECK(mk_server_handle(server, "GET", "/another/:name", say_hello, NULL) == 0);
            attack(server, t);
        }
        mk_server_free(server);
    }
    return NULL;
}

static void run_threads(int rounds, bool in_caller)
{
    struct thread threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.rounds = rounds, .in_caller = in_caller, .seed = (unsigned)i + 1};
        CHECK(pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i].id, NULL) == 0);
}

/* ── few descriptors ── */

static void limit_descriptors(rlim_t n)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = n;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* A start needs some descriptors: with fewer it fails, with a sentence, and leaves none open. */
static void start_with_few(rlim_t all)
{
    int started = 0;
    unsigned before = count_entries("/proc/self/fd");
    for (rlim_t n = 4; n < 64 && started < 3; n++) {
        struct mk_server *server = make(n % 2);
        limit_descriptors(n);
        int err = mk_server_start(server);
        bool has_sentence = *mk_server_error(server);
        if (err == 0)
            CHECK(mk_server_stop(server) == 0);
        limit_descriptors(all);
        CHECK(err < 0 ? has_sentence : ++started);
        CHECK(mk_server_start(server) == 0 && mk_server_stop(server) == 0);
        mk_server_free(server);
        CHECK(count_entries("/proc/self/fd") == before);
    }
    CHECK(started == 3);
}

/* More clients than descriptors: the server serves again when they have left. */
static void connect_too_many(rlim_t all)
{
    int fds[SOCKETS];
    unsigned seed = 1;
    struct mk_server *server = make(false);
    for (int i = 0; i < SOCKETS; i++)
        fds[i] = make_socket();
    CHECK(mk_server_start(server) == 0);
    int friendly = make_socket(), last = dup(friendly);
    close(last);
    limit_descriptors((rlim_t)last + 8);
    for (int i = 0; i < SOCKETS; i++) {
        CHECK(connect_socket(fds[i], mk_server_port(server)) == 0);
        send_half_a_head(fds[i]);
    }
    close(friendly);
    for (int i = 0; i < SOCKETS; i++)
        close(fds[i]);
    ask(server, false, &seed);
    limit_descriptors(all);
    CHECK(mk_server_stop(server) == 0);
    mk_server_free(server);
}

static void run_few(int rounds)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < rounds; i++) {
        start_with_few(limit.rlim_cur);
        connect_too_many(limit.rlim_cur);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3 && close_range(3, ~0U, 0) == 0);
    int rounds = (int)strtol(argv[1], NULL, 10);
    bool closed = strcmp(argv[2], "closed") == 0;
    if (closed)
        CHECK(close_range(0, 2, 0) == 0);
    if (strcmp(argv[2], "plugins") == 0) {
        config = CONFIG "[STATUS]\n    Enabled On\n[HOST]\n    DocumentRoot /proc/self\n";
        reloads = true;
    }
    run_threads(1, false); /* what the process needs once */
    unsigned descriptors = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    if (strcmp(argv[2], "few") == 0)
        run_few(rounds);
    else
        run_threads(rounds, strcmp(argv[2], "caller") == 0);
    CHECK(descriptors == count_entries("/proc/self/fd"));
    CHECK(threads == count_entries("/proc/self/task"));
    return 0;
}
