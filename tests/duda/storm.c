// SPDX-License-Identifier: Apache-2.0
/*
 * The service of tests/e2e/test_duda_storm.py: its responses come from handlers, timers, threads, generators and files.
 * Each depends on the request alone, so that a client can compare what it gets over several protocols.
 *
 * duda_exit() prints how many requests have begun and how many of them have ended, which must be the same.
 */
#define _GNU_SOURCE // pipe2()
#include <duda/duda.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

DUDA_REGISTER("tests", "storm");

#ifndef VERSION
#define VERSION 0
#endif

enum { BLOCK_BYTES = 8000, BODY_BYTES_MAX = 100000, MADE_BYTES_MAX = 3000000 };

static _Atomic unsigned long begun, done;

static void count_done(duda_request_t *dr)
{
    (void)dr;
    done++;
}

static int count_begun(duda_request_t *dr)
{
    begun++;
    return response->on_done(dr, count_done);
}

static void mark(duda_request_t *dr)
{
    response->header(dr, "X-After", "%s", request->method(dr));
}

static long get_number(duda_request_t *dr, const char *name, long max)
{
    long n = 0;
    param->get_number(dr, name, &n);
    return n < 0 ? 0 : n > max ? max : n;
}

static unsigned add_up(unsigned sum, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + (unsigned char)bytes[i];
    return sum;
}

static void print_text(duda_request_t *dr, const char *name, const char *text)
{
    response->printf(dr, "%s %s %u\n", name, text ? text : "NULL", text ? add_up(0, text, strlen(text)) : 0);
}

/* ── what a request says ── */

static void print_pairs(duda_request_t *dr, const struct duda_api_pairs *pairs)
{
    long number = 0;
    int n = pairs->count(dr), at = 0;
    response->printf(dr, "%d pairs\n", n);
    for (int i = 0; i < n; i++) {
        print_text(dr, pairs->name(dr, i), pairs->get_id(dr, i));
        if (strcmp(pairs->get(dr, pairs->name(dr, i)), pairs->next(dr, pairs->name(dr, i), &(int){0})) != 0)
            abort();
    }
    response->printf(dr, "%d", pairs->get_number(dr, "n", &number));
    response->printf(dr, " %ld %s\n", number, pairs->next(dr, "n", &at));
}

static void print_cookies(duda_request_t *dr)
{
    size_t at = 0;
    const char *name, *value;
    while ((name = cookie->next(dr, &at, &value)))
        print_text(dr, name, value);
}

static void print_params(duda_request_t *dr)
{
    long number = -1;
    for (int i = 0; i < param->count(dr); i++) {
        print_text(dr, param->name(dr, i), param->get_id(dr, i));
        response->printf(dr, "%d", param->get_number(dr, param->name(dr, i), &number));
        response->printf(dr, " %ld\n", number);
    }
}

static void print_request(duda_request_t *dr)
{
    size_t len = 0;
    const char *body = request->body(dr, &len);
    print_text(dr, "method", request->method(dr));
    print_text(dr, "path", request->path(dr));
    print_text(dr, "target", request->target(dr));
    print_text(dr, "query", request->query(dr));
    print_text(dr, "host", request->host(dr));
    print_text(dr, "pattern", router->pattern(dr));
    print_text(dr, "x-storm", request->header_get(dr, "X-Storm"));
    print_text(dr, "content-type", request->header_get(dr, "Content-Type"));
    response->printf(dr, "body %zu %u %d %d\n", len, body ? add_up(0, body, len) : 0, request->is_data(dr),
                     request->header_contains(dr, "X-Storm", "ab"));
    print_params(dr);
    print_pairs(dr, qs);
    print_pairs(dr, form);
    print_cookies(dr);
}

static void echo(duda_request_t *dr)
{
    response->http_content_type(dr, "txt");
    print_request(dr);
    response->end(dr, NULL);
}

/* ── bodies in pieces ── */

struct count {
    size_t bytes;
    unsigned sum;
    bool pauses;
};

static void resume(duda_request_t *dr, void *data)
{
    (void)data;
    if (dr)
        request->resume(dr);
}

static void pause_body(duda_request_t *dr)
{
    struct duda_ticket ticket;
    request->pause(dr);
    if (response->ticket(dr, &ticket) < 0 || response->deliver(&ticket, resume, NULL) < 0)
        response->error(dr, 503);
}

static void on_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    struct count *c = data;
    c->sum = add_up(c->sum, piece, len);
    c->bytes += len;
    if (end) {
        response->printf(dr, "%zu %u\n", c->bytes, c->sum);
        response->end(dr, NULL);
    } else if (c->pauses) {
        pause_body(dr);
    }
}

static void read_pieces(duda_request_t *dr, bool pauses)
{
    struct count *c = calloc(1, sizeof(*c));
    gc->add(dr, c);
    c->pauses = pauses;
    if (request->read(dr, BODY_BYTES_MAX, on_piece, c) < 0)
        response->error(dr, 500);
}

static void pieces(duda_request_t *dr)
{
    read_pieces(dr, false);
}

static void paused(duda_request_t *dr)
{
    read_pieces(dr, true);
}

/* ── other threads ── */

static int jobs[2];                  /* a pipe of tickets; its reading end belongs to the thread */
static struct duda_event_loop *loop; /* of the thread; made before it, so that the tests know all descriptors */

static void answer(duda_request_t *dr, void *data)
{
    (void)data;
    if (dr)
        echo(dr);
}

static void *work(void *arg)
{
    struct duda_ticket ticket;
    (void)arg;
    while (event->loop_wait(loop) >= 0)
        if (read(jobs[0], &ticket, sizeof(ticket)) == sizeof(ticket))
            response->deliver(&ticket, answer, NULL);
    event->loop_free(loop);
    return NULL;
}

static void ask_thread(duda_request_t *dr)
{
    struct duda_ticket ticket;
    if (response->ticket(dr, &ticket) < 0 || write(jobs[1], &ticket, sizeof(ticket)) != sizeof(ticket))
        response->error(dr, 503);
}

static void proceed(duda_request_t *dr, void *data)
{
    (void)data;
    if (dr)
        router->next(dr);
}

static int stop_for_a_while(duda_request_t *dr)
{
    struct duda_ticket ticket;
    if (response->ticket(dr, &ticket) < 0 || response->deliver(&ticket, proceed, NULL) < 0)
        response->error(dr, 503);
    return 1;
}

/* ── timers ── */

/* Its timer does not ring any more when the service ends: duda_exit() frees those that are left. */
struct later {
    struct later *next, **before;
    struct duda_ticket ticket;
    duda_event_fn fn;
};

static struct later *all_later;
static pthread_mutex_t later_lock = PTHREAD_MUTEX_INITIALIZER;

static struct later *add_later(duda_event_fn fn)
{
    struct later *later = calloc(1, sizeof(*later));
    later->fn = fn;
    pthread_mutex_lock(&later_lock);
    later->next = all_later;
    later->before = &all_later;
    if (all_later)
        all_later->before = &later->next;
    all_later = later;
    pthread_mutex_unlock(&later_lock);
    return later;
}

static void free_later(struct later *later)
{
    pthread_mutex_lock(&later_lock);
    *later->before = later->next;
    if (later->next)
        later->next->before = later->before;
    pthread_mutex_unlock(&later_lock);
    free(later);
}

static void on_timer(void *data)
{
    struct later *later = data;
    response->deliver(&later->ticket, later->fn, NULL);
    free_later(later);
}

static int call_later(duda_request_t *dr, uint32_t ms, duda_event_fn fn)
{
    struct later *later = add_later(fn);
    if (response->ticket(dr, &later->ticket) == 0 && event->timer(ms, on_timer, later))
        return 0;
    free_later(later);
    return -1;
}

static void after_a_while(duda_request_t *dr)
{
    response->wait(dr);
    if (call_later(dr, 2, answer) < 0)
        response->error(dr, 503);
}

/* Answers at about the time of the route's timeout. */
static void race(duda_request_t *dr)
{
    if (call_later(dr, 10, answer) < 0)
        response->error(dr, 503);
}

static void never(duda_request_t *dr)
{
    response->wait(dr);
}

/* ── dthreads ── */

struct part {
    struct duda_channel *channel;
    uint32_t ms;
    int err;
};

static void make_part(duda_request_t *dr, void *data)
{
    struct part *part = data;
    part->err = dr ? dthread->sleep(part->ms) : -ECONNRESET;
    dthread->send(part->channel, part, 0); /* nothing may wait for it any more */
}

/* Two dthreads that write to the stack of a third one, which answers. `data`: how long they take. */
static void answer_of_parts(duda_request_t *dr, void *data)
{
    struct part parts[2];
    duda_dthread_t making[2];
    int err = dr ? 0 : -ECONNRESET, result;
    struct duda_channel *channel = dthread->channel(1);
    for (int i = 0; i < 2; i++) {
        parts[i] = (struct part){channel, (uint32_t)(uintptr_t)data + (unsigned)i, -ENOMEM};
        making[i] = err == 0 ? dthread->handle(dr, make_part, &parts[i]) : 0;
    }
    if (err == 0)
        err = dthread->receive(channel, NULL, 10000);
    for (int i = 0; i < 2; i++) {
        while ((result = dthread->join(making[i], DUDA_FOREVER)) < 0)
            err = result;
    }
    dthread->channel_free(channel);
    if (err == 0)
        echo(dr);
}

static void handle_in_dthread(duda_request_t *dr, uintptr_t ms)
{
    if (!dthread->handle(dr, answer_of_parts, (void *)ms))
        response->error(dr, 503);
}

static void in_dthread(duda_request_t *dr)
{
    handle_in_dthread(dr, 1);
}

static void race_in_dthread(duda_request_t *dr)
{
    handle_in_dthread(dr, 9);
}

/* ── long responses ── */

struct stream {
    long left;
    char block[BLOCK_BYTES];
};

static void write_more(duda_request_t *dr, void *data)
{
    struct stream *s = data;
    int r = 0;
    while (r == 0 && s->left > 0) {
        s->left--;
        r = s->left % 2 ? response->write(dr, s->block, BLOCK_BYTES) : response->print_ref(dr, s->block, BLOCK_BYTES);
    }
    if (r == 0)
        response->end(dr, NULL);
}

static void stream(duda_request_t *dr)
{
    struct stream *s = malloc(sizeof(*s));
    gc->add(dr, s);
    s->left = get_number(dr, "n", 1 << 30);
    memset(s->block, 's', BLOCK_BYTES);
    response->on_writable(dr, write_more, s);
    if (response->flush(dr) >= 0)
        write_more(dr, s);
}

struct maker {
    long left;
    bool waits, woken;
};

static void wake(duda_request_t *dr, void *data)
{
    (void)data;
    if (dr)
        response->wake(dr);
}

static ssize_t make(duda_request_t *dr, char *to, size_t size, void *data)
{
    struct maker *m = data;
    struct duda_ticket ticket;
    m->woken = !m->woken;
    if (m->waits && m->woken) {
        if (response->ticket(dr, &ticket) < 0 || response->deliver(&ticket, wake, NULL) < 0)
            return -EIO;
        return -EAGAIN;
    }
    size_t n = (size_t)m->left < size ? (size_t)m->left : size;
    memset(to, 'm', n);
    m->left -= (long)n;
    return (ssize_t)n;
}

static void generate(duda_request_t *dr, bool waits)
{
    struct maker *m = calloc(1, sizeof(*m));
    gc->add(dr, m);
    m->left = get_number(dr, "n", MADE_BYTES_MAX);
    m->waits = waits;
    response->print(dr, "<", 1);
    response->generate(dr, make, m);
    response->print(dr, ">", 1);
    response->end(dr, NULL);
}

static void made(duda_request_t *dr)
{
    generate(dr, false);
}

static void waiting(duda_request_t *dr)
{
    generate(dr, true);
}

static void file(duda_request_t *dr)
{
    int r = response->sendfile_range(dr, "file", get_number(dr, "from", 1 << 30), (size_t)get_number(dr, "n", 1 << 30));
    response->printf(dr, "%d\n", r);
    response->end(dr, NULL);
}

struct events {
    long left;
};

static void send_event(duda_request_t *dr, void *data);

static void send_events(duda_request_t *dr, struct events *e)
{
    struct duda_ticket ticket;
    response->sse_send(dr, "tick", NULL, "%ld\n%ld", e->left, e->left);
    if (e->left-- <= 0)
        response->end(dr, NULL);
    else if (response->ticket(dr, &ticket) < 0 || response->deliver(&ticket, send_event, e) < 0)
        response->abort(dr);
}

/* `data` is the memory of the request: valid as long as that. */
static void send_event(duda_request_t *dr, void *data)
{
    if (dr)
        send_events(dr, data);
}

static void events(duda_request_t *dr)
{
    struct events *e = calloc(1, sizeof(*e));
    gc->add(dr, e);
    e->left = get_number(dr, "n", 1 << 30);
    if (response->sse_begin(dr, 1) >= 0)
        send_events(dr, e);
}

/* ── short responses ── */

static void cut(duda_request_t *dr)
{
    response->print(dr, "ab", 2);
    response->flush(dr);
    response->abort(dr);
}

static void raw(duda_request_t *dr)
{
    response->headers_off(dr);
    response->printf(dr, "HTTP/1.1 %ld Fine\r\nX-Raw: %s\r\n\r\n", get_number(dr, "n", 700), request->method(dr));
    response->printf(dr, "body");
    response->end(dr, NULL);
}

static void status(duda_request_t *dr)
{
    response->http_status(dr, (int)get_number(dr, "n", 1000));
    response->printf(dr, "status");
    response->end(dr, NULL);
}

static void error(duda_request_t *dr)
{
    response->print(dr, "dropped", 7);
    if (response->error(dr, (int)get_number(dr, "n", 1000)) < 0)
        response->end(dr, NULL);
}

static void redirect(duda_request_t *dr)
{
    const char *to = request->query(dr);
    if (response->redirect(dr, (int)get_number(dr, "n", 1000), to ? to : "/") < 0)
        response->error(dr, 500);
}

static void headers(duda_request_t *dr)
{
    int r = 0;
    for (long i = get_number(dr, "n", 200); i > 0 && r == 0; i--)
        r = response->header(dr, "X-Row", "%ld %s", i, "................................");
    response->header_remove(dr, "X-Row");
    response->header(dr, "X-Result", "%d", r);
    response->end(dr, NULL);
}

static void length(duda_request_t *dr)
{
    response->http_content_length(dr, get_number(dr, "n", 100) - 1);
    if (qs->get(dr, "flush"))
        response->flush(dr);
    response->print(dr, "0123456789", 10);
    response->end(dr, NULL);
}

static void set_cookie(duda_request_t *dr)
{
    struct duda_cookie c = {.name = param->get(dr, "name"), .value = qs->get(dr, "value"), .path = qs->get(dr, "path")};
    response->printf(dr, "%d", cookie->set(dr, &c));
    response->end(dr, NULL);
}

/* ── the service ── */

static void add_routes_of_bodies(void)
{
    router->limit(router->any("/limit", echo), 1000);
    router->stream_body(router->any("/pieces", pieces));
    router->stream_body(router->any("/paused", paused));
    router->stream_body(router->any("/unread", echo));
}

int duda_main(void)
{
    router->before_all(count_begun);
    router->after_all(mark);
    add_routes_of_bodies();
    router->any("/echo", echo);
    router->get("/folder/", echo);
    router->any("/echo/:a/:b/*rest", echo);
    router->any("/thread", ask_thread);
    router->before(router->any("/hook", echo), stop_for_a_while);
    router->before(router->any("/hook/thread", ask_thread), stop_for_a_while);
    router->any("/later", after_a_while);
    router->timeout(router->any("/race", race), 10);
    router->any("/dthread", in_dthread);
    router->timeout(router->any("/race/dthread", race_in_dthread), 10);
    router->timeout(router->any("/never", never), 20);
    router->any("/held", never);
    router->any("/stream/:n", stream);
    router->any("/made/:n", made);
    router->any("/waiting/:n", waiting);
    router->any("/file/:from/:n", file);
    router->any("/events/:n", events);
    router->any("/cut", cut);
    router->any("/raw/:n", raw);
    router->any("/status/:n", status);
    router->any("/error/:n", error);
    router->any("/redirect/:n", redirect);
    router->any("/headers/:n", headers);
    router->any("/length/:n", length);
    router->any("/cookie/:name", set_cookie);
    loop = event->loop_create(1);
    if (!loop || pipe2(jobs, O_CLOEXEC | O_NONBLOCK) < 0 || event->loop_add(loop, jobs[0], DUDA_EVENT_READ, NULL) < 0)
        return -1;
    return worker->spawn(work, NULL);
}

void duda_exit(void)
{
    close(jobs[0]);
    close(jobs[1]);
    while (all_later)
        free_later(all_later);
    fprintf(stderr, "storm %d: %lu begun, %lu done\n", VERSION, begun, done);
}
