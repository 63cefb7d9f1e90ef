// SPDX-License-Identifier: Apache-2.0
/*
 * Reads requests and writes answers. A request is read when the answer to the one before is complete.
 */
#include "cheetah.h"

#include <monkey/kit/json.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct mk_worker *thread_worker(const struct thread *t)
{
    struct mk_worker *worker = NULL;
    MK_LIST_EACH_ITEM(&t->base.workers, struct mk_thread_worker, node, w) {
        worker = w->worker;
        if (worker == mk_inspect_current(worker))
            break; /* the one after it is of a generation that is not accepted yet */
    }
    return worker;
}

static bool is_of_server(const struct mk_thread *thread, const void *server)
{
    return MK_CONTAINER_OF((uintptr_t)thread, struct thread, base)->server == server;
}

unsigned thread_list_all(const struct thread *t, struct mk_thread **ret, unsigned max)
{
    unsigned n = mk_threads_list(t->base.threads, ret, max, is_of_server, t->server);
    return n < max ? n : max;
}

static void open_thread(struct mk_thread *base, struct mk_worker *worker)
{
    struct thread *t = thread_of(base);
    t->server = mk_inspect_server(mk_worker_generation(worker));
    mk_list_init(&t->at_end);
    mk_list_init(&t->clients);
}

static void end_thread(struct mk_thread *base)
{
    struct thread *t = thread_of(base);
    assert(mk_list_empty(&t->clients));
    while (!mk_list_empty(&t->at_end)) {
        struct thread_at_end *one = MK_LIST_FIRST(&t->at_end, struct thread_at_end, node);
        mk_list_del(&one->node);
        one->fn(one);
    }
}

const struct mk_thread_type thread_type = {.bytes = sizeof(struct thread), .open = open_thread, .end = end_thread};

enum { READ_BYTES = 4096, LINES_AT_ONCE = 16, REFUSAL_BYTES_MAX = 512 };

static struct mk_loop *get_loop(const struct client *c)
{
    return c->thread->base.loop;
}

void client_close(struct client *c)
{
    struct run *run = c->run;
    c->run = NULL;
    if (run)
        run->stop(run);
    mk_timer_cancel(&c->timer);
    mk_event_del(get_loop(c), &c->event);
    close(c->event.fd);
    mk_list_del(&c->node);
    c->thread->n_clients--;
    mk_buf_release(&c->in);
    mk_buf_release(&c->out);
    mk_account_free(NULL, c, sizeof(*c));
}

/* ── answers ── */

bool client_has_room(struct client *c)
{
    if (c->out.len < CLIENT_OUT_MAX - 2 * CLIENT_OBJECT_MAX)
        return true;
    if (!c->cut)
        client_warn(c, "the answer is too long: the rest is left out");
    c->cut = true;
    return false;
}

void client_begin(struct client *c, const char *view)
{
    c->cut = false;
    mk_json_open(&c->out, NULL, '{');
    mk_json_cstr(&c->out, "begin", c->command);
    mk_json_cstr(&c->out, "view", view);
    mk_json_close_line(&c->out);
}

void client_warn(struct client *c, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    mk_json_open(&c->out, NULL, '{');
    mk_json_cstr(&c->out, "warning", text);
    mk_json_close_line(&c->out);
}

void client_add_lines(struct client *c, struct mk_str text)
{
    while (text.len && client_has_room(c)) {
        mk_json_open(&c->out, NULL, '{');
        mk_json_str(&c->out, "text", mk_str_split(&text, '\n'));
        mk_json_close_line(&c->out);
    }
}

static void add_end(struct mk_buf *out, const char *error)
{
    mk_json_open(out, NULL, '{');
    mk_json_bool(out, "end", true);
    mk_json_bool(out, "ok", !error);
    if (error)
        mk_json_cstr(out, "error", error);
    mk_json_close_line(out);
}

void client_end(struct client *c, const char *error)
{
    add_end(&c->out, error);
    c->run = NULL;
}

void client_refuse(struct client *c, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    client_begin(c, "text");
    client_end(c, text);
}

/* ── input ── */

static void run_line(struct client *c, char *line, size_t len)
{
    struct words words;
    c->command = "";
    const char *error = words_split(line, len, &words);
    if (error)
        client_refuse(c, "%s", error);
    else if (words.n)
        c->on_request(c, &words);
}

/* They get no answer, whose end would have the next line run. */
static void drop_blank_lines(struct client *c)
{
    size_t end = 0;
    for (size_t i = 0; i < c->in.len && mk_is_one_of(c->in.data[i], " \t\r\n"); i++)
        if (c->in.data[i] == '\n')
            end = i + 1;
    if (end)
        mk_buf_drop(&c->in, end);
}

/* Runs the next complete line. Returns false if there is none. */
static bool take_line(struct client *c)
{
    if (c->run)
        return false;
    drop_blank_lines(c);
    char *end = c->in.len ? memchr(c->in.data, '\n', c->in.len) : NULL;
    if (!end)
        return false;
    size_t len = (size_t)(end - c->in.data);
    run_line(c, c->in.data, len);
    mk_buf_drop(&c->in, len + 1);
    return true;
}

static void run_lines(struct client *c)
{
    for (unsigned i = 0; i < LINES_AT_ONCE && !c->closing && !client_is_full(c); i++)
        if (!take_line(c))
            break;
    if (!c->closing && !c->run && c->in.len > WORDS_LINE_BYTES && !memchr(c->in.data, '\n', c->in.len)) {
        c->command = "";
        client_begin(c, "text");
        client_end(c, "the line is longer than 16,384 bytes");
        c->closing = true;
    }
}

/* A command that continues until a line comes is stopped by it; the line itself says nothing. */
static void stop_stream(struct client *c)
{
    struct run *run = c->run;
    char *end = c->in.len ? memchr(c->in.data, '\n', c->in.len) : NULL;
    if (!end && !c->ended_input)
        return;
    mk_buf_drop(&c->in, end ? (size_t)(end - c->in.data) + 1 : c->in.len);
    c->run = NULL;
    run->stop(run);
    client_end(c, NULL);
}

/* Returns false if the connection is to be closed. */
static bool read_input(struct client *c)
{
    if (mk_buf_reserve(&c->in, READ_BYTES) < 0)
        return false;
    ssize_t n = recv(c->event.fd, c->in.data + c->in.len, READ_BYTES, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    c->in.len += (size_t)n;
    c->ended_input |= n == 0;
    return true;
}

/* ── output ── */

/* Returns false on an error. */
static bool write_output(struct client *c)
{
    while (c->out.len) {
        ssize_t n = send(c->event.fd, c->out.data, c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        mk_buf_drop(&c->out, (size_t)n);
        mk_timer_cancel(&c->timer);
    }
    return true;
}

/* Watches for what the client waits for. Returns false if that fails. */
static bool watch_client(struct client *c)
{
    bool reads = !c->ended_input && !c->closing && (!c->run || c->run->streams) && c->in.len <= WORDS_LINE_BYTES;
    uint32_t events = (reads ? EPOLLIN : 0u) | (c->out.len ? EPOLLOUT : 0u);
    if (c->out.len && mk_list_empty(&c->timer.node))
        mk_timer_arm(get_loop(c), &c->timer, c->timeout_ms);
    if (events == c->events)
        return true;
    c->events = events;
    return mk_event_change(get_loop(c), &c->event, events) == 0;
}

static bool is_finished(const struct client *c)
{
    return !c->run && !c->out.len &&
           (c->closing || (c->ended_input && !memchr(c->in.len ? c->in.data : "", '\n', c->in.len)));
}

/* Continues as far as possible without waiting. Returns false if the connection is to be closed. */
static bool step_client(struct client *c)
{
    bool again = true;
    for (unsigned i = 0; i < LINES_AT_ONCE && again; i++) {
        again = false;
        if (!write_output(c) || c->out.err)
            return false;
        if (client_is_full(c))
            break;
        if (c->run && c->run->resume) {
            const struct run *run = c->run;
            size_t before = c->out.len;
            c->run->resume(c->run);
            again = c->run != run || c->out.len != before;
        }
        if (!c->run && c->in.len) {
            run_lines(c);
            again |= c->out.len > 0;
        }
    }
    return watch_client(c) && !is_finished(c);
}

void client_flush(struct client *c)
{
    if (c->in_step)
        return;
    c->in_step = true;
    bool goes_on = step_client(c);
    c->in_step = false;
    if (!goes_on)
        client_close(c);
}

void client_close_with_error(struct client *c, const char *error)
{
    struct run *run = c->run;
    assert(!c->in_step);
    c->run = NULL;
    if (run)
        run->stop(run);
    client_end(c, error);
    c->closing = true;
    client_flush(c);
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct client *c = MK_CONTAINER_OF(event, struct client, event);
    if (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLIN)) {
        client_close(c);
        return;
    }
    c->in_step = true;
    bool alive = !(events & EPOLLIN) || read_input(c);
    if (alive && c->run && c->run->streams)
        stop_stream(c);
    c->in_step = false;
    if (alive)
        client_flush(c);
    else
        client_close(c);
}

static void on_timer(struct mk_timer *timer)
{
    struct client *c = MK_CONTAINER_OF(timer, struct client, timer);
    mk_log_info("shell: the shell of process %d does not read its answer: its connection is closed", c->pid);
    client_close(c);
}

void client_reject(int fd, const char *error)
{
    MK_BUF_ON_STACK(out, REFUSAL_BYTES_MAX);
    add_end(&out, error);
    (void)!send(fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

void client_open(struct thread *t, int fd, client_request_fn on_request, uint32_t timeout_ms, unsigned clients_max)
{
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    struct client *c = t->n_clients < clients_max ? mk_account_alloc(NULL, sizeof(*c)) : NULL;
    if (!c) {
        client_reject(fd, "too many shells are connected (MaxClients)");
        return;
    }
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    *c = (struct client){.thread = t,
                         .event = {on_event, fd},
                         .events = EPOLLIN,
                         .on_request = on_request,
                         .timeout_ms = timeout_ms,
                         .command = "",
                         .pid = peer.pid,
                         .uid = peer.uid};
    mk_list_init(&c->node);
    mk_timer_init(&c->timer, on_timer);
    mk_buf_init(&c->in, WORDS_LINE_BYTES + 2 * READ_BYTES);
    mk_buf_init(&c->out, CLIENT_OUT_MAX);
    if (mk_event_add(get_loop(c), &c->event, EPOLLIN) < 0) {
        close(fd);
        mk_account_free(NULL, c, sizeof(*c));
        return;
    }
    mk_list_add(&t->clients, &c->node);
    t->n_clients++;
}
