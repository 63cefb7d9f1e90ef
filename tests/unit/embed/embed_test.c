// SPDX-License-Identifier: Apache-2.0
/* The server inside a program, over <monkey/embed.h> and real sockets alone. */
#include "folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <monkey/embed.h>

static char root[512];

static const char listen_any[] = "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 2\n    FastOpen 0\n";

/* ── clients ── */

static int connect_to(const struct mk_server *server)
{
    int port = mk_server_port(server);
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons((uint16_t)port)};
    struct timeval patience = {.tv_sec = 30};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && port > 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

static void send_request(int fd, const char *method, const char *path)
{
    char text[512];
    int n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", method, path);
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* Reads the response up to the end of the connection; turns the loop of a server in this thread meanwhile. */
static const char *read_response(int fd, struct mk_server *turned)
{
    static char text[8192];
    size_t len = 0;
    for (ssize_t got = 1; got != 0;) {
        if (turned)
            assert_int_equal(mk_server_run_once(turned, 10), 0);
        got = recv(fd, text + len, sizeof(text) - len - 1, turned ? MSG_DONTWAIT : 0);
        assert_true(got >= 0 || (turned && errno == EAGAIN));
        len += got > 0 ? (size_t)got : 0;
    }
    text[len] = '\0';
    close(fd);
    return text;
}

static const char *ask(struct mk_server *server, const char *method, const char *path)
{
    int fd = connect_to(server);
    send_request(fd, method, path);
    return read_response(fd, NULL);
}

static void expect(const char *response, const char *status, const char *part)
{
    if (strncmp(response + strlen("HTTP/1.1 "), status, strlen(status)) != 0 || !strstr(response, part))
        fail_msg("not %s with %s:\n%s", status, part, response);
}

/* ── handlers ── */

static int say_hello(struct mk_request *req, void *ctx)
{
    struct mk_str name = mk_request_param(req, "name");
    assert(!mk_request_param(req, "other").p);
    return mk_response_printf(req, 200, "text/plain", "%s, %.*s", (const char *)ctx, MK_STR_ARG(name));
}

static int say_text(struct mk_request *req, void *ctx)
{
    return mk_response_send(req, 200, NULL, mk_str_c(ctx));
}

static int decline(struct mk_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
    return MK_DECLINED;
}

static int fail_request(struct mk_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
    return -EIO;
}

/* Longer than the buffer of mk_response_printf(), and then too long for it. */
static int say_much(struct mk_request *req, void *ctx)
{
    (void)ctx;
    int err = mk_response_printf(req, 200, "text/plain", "%70000s", "x");
    assert(err == -E2BIG);
    return err ? mk_response_printf(req, 200, "text/plain", "%5000s", "end") : 0;
}

static struct mk_server *make_server(const char *text)
{
    struct mk_server *server = mk_server_new();
    assert_non_null(server);
    assert_int_equal(mk_server_text(server, text), 0);
    return server;
}

static void start(struct mk_server *server)
{
    if (mk_server_start(server) < 0)
        fail_msg("%s", mk_server_error(server));
}

static void end(struct mk_server *server)
{
    assert_int_equal(mk_server_stop(server), 0);
    mk_server_free(server);
}

TEST(handlers)
{
    struct mk_server *server = make_server(listen_any);
    assert_int_equal(mk_server_port(server), -EINVAL);
    assert_int_equal(mk_server_handle(server, "GET", "/hello/:name", say_hello, (void *)(uintptr_t) "Hello"), 0);
    assert_int_equal(mk_server_handle(server, "PUT, POST", "/hello/:name", say_text, (void *)(uintptr_t) "put"), 0);
    assert_int_equal(mk_server_handle(server, "ANY", "/any", say_text, (void *)(uintptr_t) "any"), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/declined", decline, NULL), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/failed", fail_request, NULL), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/much", say_much, NULL), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/folder/", say_text, (void *)(uintptr_t) "folder"), 0);
    start(server);
    assert_string_equal(mk_server_error(server), "");
    expect(ask(server, "GET", "/hello/you"), "200", "\r\n\r\nHello, you");
    expect(ask(server, "GET", "/hello/%41%20b"), "200", "Hello, A b");
    expect(ask(server, "HEAD", "/hello/you"), "200", "Content-Length: 10\r\n");
    expect(ask(server, "PUT", "/hello/you"), "200", "\r\n\r\nput");
    expect(ask(server, "DELETE", "/hello/you"), "405", "Allow: GET, HEAD, POST, PUT, OPTIONS\r\n");
    expect(ask(server, "OPTIONS", "/hello/you"), "204", "Allow: GET, HEAD, POST, PUT, OPTIONS\r\n");
    expect(ask(server, "BREW", "/hello/you"), "501", "");
    expect(ask(server, "BREW", "/any"), "200", "any");
    expect(ask(server, "OPTIONS", "*"), "204", "");
    expect(ask(server, "GET", "/declined"), "404", "");
    expect(ask(server, "GET", "/failed"), "500", "");
    expect(ask(server, "GET", "/much"), "200", "  end");
    expect(ask(server, "GET", "/folder"), "301", "Location: /folder/\r\n");
    expect(ask(server, "PUT", "/folder"), "308", "Location: /folder/\r\n");
    expect(ask(server, "GET", "/a.txt"), "404", "");
    end(server);
}

TEST(a_folder_behind_the_handlers)
{
    struct mk_server *server = make_server(listen_any);
    assert_int_equal(mk_server_folder(server, root), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/a.txt", decline, NULL), 0);
    assert_int_equal(mk_server_handle(server, "PUT", "/b.txt", say_text, (void *)(uintptr_t) "put"), 0);
    start(server);
    expect(ask(server, "GET", "/a.txt"), "200", "\r\n\r\nhello");
    expect(ask(server, "GET", "/b.txt"), "200", "\r\n\r\nfile");
    expect(ask(server, "PUT", "/b.txt"), "200", "\r\n\r\nput");
    expect(ask(server, "DELETE", "/b.txt"), "405", "Allow: PUT, OPTIONS\r\n");
    end(server);
}

/* ── configurations as text ── */

TEST(hosts_as_text)
{
    char text[2048];
    snprintf(text, sizeof(text),
             "%s[HOST]\n    ServerName one\n    DocumentRoot %s\n[HOST]\n    ServerName h\n    DocumentRoot %s/sub\n",
             listen_any, root, root);
    struct mk_server *server = make_server("[SERVER]\n    Nonsense 1\n"); /* replaced */
    assert_int_equal(mk_server_text(server, text), 0);
    start(server);
    expect(ask(server, "GET", "/a.txt"), "200", "\r\n\r\nsub");
    end(server);
}

/* By calls instead of text. What is set between a stop and the next start is in use then. */
TEST(keys_by_calls)
{
    struct mk_server *server = mk_server_new();
    assert_int_equal(mk_server_start(server), -EINVAL);
    assert_non_null(strstr(mk_server_error(server), "nothing was loaded: call mk_server_text()"));
    assert_int_equal(mk_server_set(server, "SERVER", "Listen", "127.0.0.1:0", "program"), 0);
    assert_int_equal(mk_server_set(server, "SERVER", "FastOpen", "0", "program"), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/a", say_text, (void *)(uintptr_t) "by calls"), 0);
    assert_int_equal(mk_server_port(server), -EINVAL);
    assert_non_null(strstr(mk_server_error(server), "the server does not run"));
    start(server);
    expect(ask(server, "GET", "/a"), "200", "\r\n\r\nby calls");
    assert_int_equal(mk_server_stop(server), 0);
    assert_int_equal(mk_server_set(server, "SERVER", "HideVersion", "Nonsense", "program"), 0);
    assert_int_equal(mk_server_start(server), -EINVAL);
    assert_non_null(strstr(mk_server_error(server), "program"));
    assert_non_null(strstr(mk_server_error(server), "HideVersion"));
    mk_server_free(server);
}

TEST(no_port)
{
    char text[1024];
    snprintf(text, sizeof(text), "[SERVER]\n    Listen unix:%s/socket\n", root);
    struct mk_server *server = make_server(text);
    start(server);
    assert_int_equal(mk_server_port(server), -ENOENT);
    assert_non_null(strstr(mk_server_error(server), "listens at no port"));
    end(server);
}

struct problems {
    unsigned n;
    char text[2048];
};

static void add_problem(const struct mk_problem *p, void *ctx)
{
    struct problems *all = ctx;
    size_t len = strlen(all->text);
    snprintf(all->text + len, sizeof(all->text) - len, "%s:%u:%u: %s: %s|%s\n", p->place, p->line, p->column,
             p->is_warning ? "warning" : "error", p->message, p->source);
    all->n++;
}

TEST(problems)
{
    struct mk_server *server = make_server("[SERVER]\n    Workerss 2\n[HOST]\n\n[HOST]\n    ServerNam x\n");
    struct problems all = {.n = 0};
    assert_int_equal(mk_server_start(server), -EINVAL);
    assert_non_null(strstr(mk_server_error(server), "text:2:5: unknown key \"Workerss\""));
    mk_server_each_problem(server, add_problem, &all);
    assert_true(all.n >= 2);
    assert_non_null(strstr(all.text, "text:2:5: error: unknown key \"Workerss\""));
    assert_non_null(strstr(all.text, "|    Workerss 2\n"));
    assert_non_null(strstr(all.text, "text:6:5: error: unknown key \"ServerNam\""));
    assert_int_equal(mk_server_start(server), -EINVAL);      /* as before */
    assert_int_equal(mk_server_text(server, listen_any), 0); /* and corrected */
    assert_string_equal(mk_server_error(server), "");
    start(server);
    end(server);
}

/* What is set between a stop and the next start is in use then. */
TEST(changes_between_starts)
{
    char text[2048];
    struct mk_server *server = make_server(listen_any);
    start(server);
    expect(ask(server, "GET", "/hello/you"), "404", "");
    assert_int_equal(mk_server_stop(server), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/hello/:name", say_hello, (void *)(uintptr_t) "Hello"), 0);
    start(server);
    expect(ask(server, "GET", "/hello/you"), "200", "Hello, you");
    expect(ask(server, "GET", "/a.txt"), "404", "");
    assert_int_equal(mk_server_stop(server), 0);
    snprintf(text, sizeof(text), "%s[HOST]\n    DocumentRoot %s\n", listen_any, root);
    assert_int_equal(mk_server_text(server, text), 0);
    start(server);
    expect(ask(server, "GET", "/a.txt"), "200", "hello");
    assert_int_equal(mk_server_stop(server), 0);
    assert_int_equal(mk_server_in_caller(server), 0);
    start(server);
    int fd = connect_to(server);
    send_request(fd, "GET", "/hello/you");
    expect(read_response(fd, server), "200", "Hello, you");
    end(server);
}

TEST(a_port_in_use)
{
    char text[128];
    struct mk_server *first = make_server(listen_any);
    start(first);
    snprintf(text, sizeof(text), "[SERVER]\n    Listen 127.0.0.1:%d\n", mk_server_port(first));
    struct mk_server *second = make_server(text);
    assert_int_equal(mk_server_start(second), -EADDRINUSE);
    assert_non_null(strstr(mk_server_error(second), "text:2:12: cannot listen on 127.0.0.1:"));
    end(first);
    start(second);
    end(second);
}

/* ── plugins of the program ── */

static _Atomic int starts, stops;

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    (void)worker;
    *ret_state = &starts;
    starts++;
    return 0;
}

static void stop_worker(struct mk_worker *worker, void *worker_state)
{
    (void)worker;
    assert(worker_state == &starts);
    stops++;
}

static void add_header(struct mk_request *req)
{
    mk_response_header(req, MK_STR("X-Own"), MK_STR("yes"));
}

static const struct mk_plugin own = {
    MK_PLUGIN_HEAD("own", "1", "of a test"),
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_response = add_header,
};
static const struct mk_plugin named_static = {MK_PLUGIN_HEAD("liana", "1", "has a name that is taken")};

TEST(plugins)
{
    struct mk_plugin other = own;
    struct mk_server *server = make_server(listen_any);
    starts = stops = 0;
    assert_int_equal(mk_server_add_plugin(server, &own), 0);
    assert_int_equal(mk_server_add_plugin(server, &own), -EEXIST);
    assert_non_null(strstr(mk_server_error(server), "\"own\" is added already"));
    other.name = "other";
    other.size--;
    assert_int_equal(mk_server_add_plugin(server, &other), -ENOEXEC);
    start(server);
    assert_int_equal(starts, 2);
    expect(ask(server, "GET", "/"), "404", "X-Own: yes\r\n");
    end(server);
    assert_int_equal(stops, 2);
    server = make_server(listen_any);
    assert_int_equal(mk_server_add_plugin(server, &named_static), 0);
    assert_int_equal(mk_server_start(server), -EINVAL);
    assert_non_null(strstr(mk_server_error(server), "has the name of another one"));
    mk_server_free(server);
}

/* What a plugin keeps in the loop of a worker, which it removes in worker_stop. */
struct kept {
    pthread_t thread;
    struct mk_event event;
    struct mk_timer timer;
    struct mk_task task;
};
static struct {
    _Atomic unsigned elsewhere, here;
} stopped;

static void on_kept_event(struct mk_event *event, uint32_t events)
{
    (void)event;
    (void)events;
}

static void on_kept_timer(struct mk_timer *timer)
{
    (void)timer;
}

static void on_kept_task(struct mk_task *task)
{
    (void)task;
}

static int start_keeping(struct mk_worker *worker, void **ret_state)
{
    struct kept *k = mk_account_alloc(mk_worker_account(worker), sizeof(*k));
    if (!k)
        return -ENOMEM;
    *ret_state = k;
    k->thread = pthread_self();
    k->event = (struct mk_event){on_kept_event, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    mk_timer_init(&k->timer, on_kept_timer);
    mk_timer_arm(mk_worker_loop(worker), &k->timer, 3600000);
    mk_task_init(&k->task, on_kept_task);
    mk_task_schedule(mk_worker_loop(worker), &k->task);
    return mk_event_add(mk_worker_loop(worker), &k->event, EPOLLIN);
}

extern const struct mk_plugin keeping;

/* All that the header allows there, in whatever thread. */
static void stop_keeping(struct mk_worker *worker, void *worker_state)
{
    struct kept *k = worker_state;
    assert(mk_worker_state(worker, &keeping) == k && mk_worker_index(worker) < 2);
    assert(!mk_generation_is_check(mk_worker_generation(worker)));
    if (pthread_equal(k->thread, pthread_self()))
        stopped.here++;
    else
        stopped.elsewhere++;
    mk_event_del(mk_worker_loop(worker), &k->event);
    mk_timer_cancel(&k->timer);
    mk_task_cancel(&k->task);
    close(k->event.fd);
    mk_account_free(mk_worker_account(worker), k, sizeof(*k));
}

const struct mk_plugin keeping = {
    MK_PLUGIN_HEAD("keeping", "1", "of a test"),
    .worker_start = start_keeping,
    .worker_stop = stop_keeping,
};

TEST(worker_stop_in_either_thread)
{
    unsigned before = mk_test_descriptors();
    struct mk_server *server = make_server(listen_any);
    stopped.here = stopped.elsewhere = 0;
    assert_int_equal(mk_server_add_plugin(server, &keeping), 0);
    start(server);
    assert_int_equal(mk_server_reload(server), 0); /* nothing holds the former workers */
    end(server);
    assert_int_equal(stopped.here, 2);
    assert_int_equal(stopped.elsewhere, 2);
    server = make_server(listen_any);
    assert_int_equal(mk_server_add_plugin(server, &keeping), 0);
    assert_int_equal(mk_server_in_caller(server), 0);
    start(server);
    end(server); /* the loop is closed, in the same thread */
    assert_int_equal(stopped.here, 3);
    assert_int_equal(mk_test_descriptors(), before);
}

/* ── in the thread of the caller ── */

static struct mk_server *start_in_caller(void)
{
    struct mk_server *server = make_server(listen_any);
    assert_int_equal(mk_server_in_caller(server), 0);
    assert_int_equal(mk_server_folder(server, root), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/hello/:name", say_hello, (void *)(uintptr_t) "Hello"), 0);
    start(server);
    return server;
}

TEST(in_the_caller)
{
    unsigned before = mk_test_descriptors();
    for (int round = 0; round < 3; round++) {
        struct mk_server *server = start_in_caller();
        for (int i = 0; i < 5; i++) {
            int fd = connect_to(server);
            send_request(fd, "GET", i % 2 ? "/a.txt" : "/hello/you");
            expect(read_response(fd, server), "200", i % 2 ? "\r\n\r\nhello" : "Hello, you");
        }
        end(server);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

/* The descriptor alone says when there is something to do: for a connection, and for a timer. */
TEST(the_descriptor)
{
    char text[256];
    unsigned before = mk_test_descriptors();
    snprintf(text, sizeof(text), "%s    KeepAliveTimeout 100ms\n", listen_any);
    struct mk_server *server = make_server(text);
    assert_int_equal(mk_server_in_caller(server), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/hello/:name", say_hello, (void *)(uintptr_t) "Hello"), 0);
    start(server);
    struct pollfd one = {.fd = mk_server_fd(server), .events = POLLIN};
    assert_true(one.fd >= 0);
    assert_int_equal(mk_server_fd(server), one.fd);
    int fd = connect_to(server);
    static const char request[] = "GET /hello/you HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    char response[1024];
    ssize_t got;
    while ((got = recv(fd, response, sizeof(response), MSG_DONTWAIT)) != 0) { /* until KeepAliveTimeout closes it */
        assert_true(got > 0 || errno == EAGAIN);
        assert_true(poll(&one, 1, 30000) == 1);
        assert_int_equal(mk_server_run_once(server, 0), 0);
    }
    close(fd);
    end(server);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(a_reload_in_the_caller)
{
    struct mk_server *server = start_in_caller();
    for (int i = 0; i < 3; i++) {
        int fd = connect_to(server);
        send_request(fd, "GET", "/hello/you");
        expect(read_response(fd, server), "200", "Hello, you");
        assert_int_equal(mk_server_reload(server), 0);
    }
    end(server);
}

TEST(stop_now)
{
    struct mk_server *server = start_in_caller();
    mk_server_stop_now(server);
    assert_int_equal(mk_server_run_once(server, 30000), -ECANCELED);
    assert_int_equal(mk_server_run_once(server, 30000), -ECANCELED);
    assert_int_equal(mk_server_reload(server), -ECANCELED); /* does not wait for a loop that has ended */
    end(server);
    server = make_server(listen_any); /* and with threads */
    start(server);
    mk_server_stop_now(server);
    assert_int_equal(mk_server_reload(server), -ECANCELED);
    assert_non_null(strstr(mk_server_error(server), "mk_server_stop()"));
    end(server);
}

/* ── the end of a server during a reload ── */

static struct mk_server *ended_server; /* by the hook; NULL: not yet */
static _Atomic int began;

/* In the second generation: the reload waits for this worker, and then for what it does next. */
static int stop_now_in_worker(struct mk_worker *worker, void **ret_state)
{
    (void)worker;
    (void)ret_state;
    if (began++ >= 2)
        mk_server_stop_now(ended_server);
    return 0;
}

static const struct mk_plugin ending = {MK_PLUGIN_HEAD("ending", "1", "of a test"), .worker_start = stop_now_in_worker};

/* Workers that are stopping answer the reload before they end. */
TEST(stop_now_during_a_reload)
{
    for (int in_caller = 0; in_caller < 2; in_caller++) {
        struct mk_server *server = ended_server = make_server(listen_any);
        began = in_caller; /* one worker only */
        if (in_caller)
            assert_int_equal(mk_server_in_caller(server), 0);
        assert_int_equal(mk_server_add_plugin(server, &ending), 0);
        start(server);
        assert_int_equal(mk_server_reload(server), 0); /* it is too late to give it up */
        assert_int_equal(mk_server_reload(server), -ECANCELED);
        end(server);
    }
}

static int stop_now_in_load(struct mk_generation *g, void **ret_state)
{
    (void)g;
    (void)ret_state;
    if (began++)
        mk_server_stop_now(ended_server);
    return 0;
}

static const struct mk_plugin loaded = {MK_PLUGIN_HEAD("loaded", "1", "of a test"),
                                        .generation_start = stop_now_in_load};

TEST(stop_now_during_the_load)
{
    struct mk_server *server = ended_server = make_server(listen_any);
    began = 0;
    assert_int_equal(mk_server_add_plugin(server, &loaded), 0);
    start(server);
    assert_int_equal(mk_server_reload(server), -ECANCELED); /* given up before the workers take part */
    assert_non_null(strstr(mk_server_error(server), "mk_server_stop()"));
    end(server);
}

/* A client that leaves during a file raises no SIGPIPE, and the mask is as before. */
TEST(no_sigpipe)
{
    struct mk_server *server = start_in_caller();
    struct linger reset = {.l_onoff = 1};
    sigset_t mask, pending;
    for (int i = 0; i < 5; i++) {
        int fd = connect_to(server);
        send_request(fd, "GET", "/large");
        for (int k = 0; k < 3; k++)
            assert_int_equal(mk_server_run_once(server, 10), 0);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(fd);
        for (int k = 0; k < 3; k++)
            assert_int_equal(mk_server_run_once(server, 10), 0);
    }
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    assert_false(sigismember(&mask, SIGPIPE));
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
    end(server);
}

/* ── misuse that is no assertion ── */

TEST(errors)
{
    struct mk_server *server = make_server(listen_any);
    assert_int_equal(mk_server_handle(server, "GET", "/a", decline, NULL), 0);
    assert_int_equal(mk_server_handle(server, "GET", "/a", decline, NULL), -EEXIST);
    assert_non_null(strstr(mk_server_error(server), "(\"/a\") adds no handler: there is a route"));
    assert_int_equal(mk_server_handle(server, "GET", "a", decline, NULL), -EINVAL);
    assert_non_null(strstr(mk_server_error(server), "does not begin with"));
    assert_int_equal(mk_server_handle(server, "FETCH", "/b", decline, NULL), -EINVAL);
    assert_non_null(strstr(mk_server_error(server), "methods are ANY"));
    assert_int_equal(mk_server_handle(server, "GET", "/b", decline, NULL), 0);
    assert_string_equal(mk_server_error(server), "");
    mk_server_free(server);
}

TEST(no_server)
{
    assert_int_equal(mk_server_text(NULL, ""), -EINVAL);
    assert_int_equal(mk_server_folder(NULL, ""), -EINVAL);
    assert_int_equal(mk_server_handle(NULL, "GET", "/", decline, NULL), -EINVAL);
    assert_int_equal(mk_server_add_plugin(NULL, &own), -EINVAL);
    assert_int_equal(mk_server_in_caller(NULL), -EINVAL);
    assert_int_equal(mk_server_set(NULL, "SERVER", "Workers", "1", "program"), -EINVAL);
    assert_int_equal(mk_server_load(NULL), -EINVAL);
    assert_int_equal(mk_server_start(NULL), -EINVAL);
    assert_int_equal(mk_server_reload(NULL), -EINVAL);
    assert_int_equal(mk_server_stop(NULL), -EINVAL);
    assert_int_equal(mk_server_port(NULL), -EINVAL);
    assert_int_equal(mk_server_run_once(NULL, 0), -EINVAL);
    assert_int_equal(mk_server_fd(NULL), -EINVAL);
    assert_non_null(strstr(mk_server_error(NULL), "mk_server_new()"));
    mk_server_each_problem(NULL, add_problem, NULL);
    mk_server_stop_now(NULL);
    mk_server_free(NULL);
}

/* ── processes ── */

TEST(a_child_does_not_own_the_server)
{
    struct mk_server *server = make_server(listen_any);
    int status = 0;
    start(server);
    pid_t child = fork();
    if (child == 0) {
        bool refused = mk_server_stop(server) == -EPERM && mk_server_reload(server) == -EPERM;
        mk_server_free(server);
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect(ask(server, "GET", "/"), "404", "");
    end(server);
}

/* ── the log ── */

struct lines {
    _Atomic int n, listening;
};

static void count_line(enum mk_log_level level, const char *message, void *ctx)
{
    struct lines *lines = ctx;
    lines->n++;
    if (level == MK_LOG_INFO && strncmp(message, "listening on 127.0.0.1:", 23) == 0)
        lines->listening++;
}

TEST(the_log)
{
    struct lines lines = {0, 0};
    struct mk_server *server = make_server(listen_any);
    mk_log_to_function(count_line, &lines, MK_LOG_INFO);
    mk_log_debug("not for this level");
    mk_log_error("%s", "with a \n and \\");
    assert_int_equal(lines.n, 1);
    start(server);
    end(server);
    mk_log_to(-1, MK_LOG_INFO);
    int before = lines.n;
    mk_log_error("to no log");
    assert_int_equal(lines.n, before);
    assert_int_equal(lines.listening, 1);
}

/* ── memory ── */

static int run_in_caller(void *ctx)
{
    struct mk_server *server = mk_server_new();
    if (!server)
        return -ENOMEM;
    int err = mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n[HOST]\n    ServerName x\n");
    if (err == 0)
        err = mk_server_handle(server, "GET", "/hello/:name", say_hello, ctx);
    if (err == 0)
        err = mk_server_in_caller(server);
    if (err == 0)
        err = mk_server_start(server);
    if (err == 0)
        err = mk_server_run_once(server, 0);
    if (err < 0)
        (void)*mk_server_error(server);
    mk_server_stop(server);
    mk_server_free(server);
    return err;
}

static int run_in_threads(void *ctx)
{
    struct mk_server *server = mk_server_new();
    if (!server)
        return -ENOMEM;
    int err = mk_server_text(server, listen_any);
    if (err == 0)
        err = mk_server_folder(server, root);
    if (err == 0)
        err = mk_server_handle(server, "GET", "/hello/:name", say_hello, ctx);
    if (err == 0)
        err = mk_server_start(server);
    mk_server_stop(server);
    mk_server_free(server);
    return err;
}

TEST(every_allocation_may_fail)
{
    unsigned before = mk_test_descriptors();
    assert_true(mk_test_failing_allocs(run_in_caller, NULL) >= 10);
    assert_true(mk_test_failing_allocs(run_in_threads, NULL) >= 10);
    assert_int_equal(mk_test_descriptors(), before);
}

static int set_up(void **state)
{
    static char large[1 << 20];
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_write("a.txt", MK_STR("hello"));
    mk_test_write("b.txt", MK_STR("file"));
    mk_test_mkdir("sub");
    mk_test_write("sub/a.txt", MK_STR("sub"));
    memset(large, 'x', sizeof(large));
    mk_test_write("large", mk_str(large, sizeof(large)));
    snprintf(root, sizeof(root), "%s", mk_test_folder);
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
