// SPDX-License-Identifier: Apache-2.0
/* WebSockets of level 3 for the tests: what each path does stands in the table `routes`. */
#include <duda/duda.h>
#include <duda/packages/websocket/websocket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

DUDA_REGISTER("tests", "WebSockets");

#ifndef VERSION
#define VERSION "1"
#endif

static ws_endpoint_t *plain, *small, *alive, *protocols, *flood, *drop, *tagged, *client, *shut;

/* ── the query ── */

static long get_number(duda_request_t *dr, const char *name, long fallback)
{
    const char *text = qs->get(dr, name);
    return text ? strtol(text, NULL, 10) : fallback;
}

static int get_channel(duda_request_t *dr)
{
    return (int)get_number(dr, "channel", WS_CHANNEL_ALL);
}

/* ── callbacks ── */

void crash(void);

__attribute__((no_sanitize("undefined", "address", "thread"))) void crash(void)
{
    *(volatile int *)16 = 1;
}

static void log_open(duda_request_t *dr, ws_request_t *wr)
{
    if (dr != wr->dr)
        abort();
    msg->info("open %d", wr->channel);
}

static void log_end(const char *what, ws_request_t *wr)
{
    msg->info("%s %u \"%s\" %d", what, wr->code, (char *)wr->payload, (int)wr->payload_len);
}

static void log_error(duda_request_t *dr, ws_request_t *wr)
{
    (void)dr;
    log_end("error", wr);
}

static void log_close(duda_request_t *dr, ws_request_t *wr)
{
    (void)dr;
    log_end("close", wr);
}

static void log_timeout(duda_request_t *dr, ws_request_t *wr)
{
    (void)dr;
    log_end("timeout", wr);
}

static void echo(duda_request_t *dr, ws_request_t *wr)
{
    (void)dr;
    websocket->send(wr, (int)wr->opcode, wr->payload, wr->payload_len);
}

static void reply(ws_request_t *wr, const char *format, long n)
{
    char text[200];
    int len = snprintf(text, sizeof(text), format, n);
    websocket->send(wr, WS_OPCODE_TEXT, text, (size_t)len);
}

static void resume(void *data)
{
    websocket->resume(data);
}

/* Does what a message says; others go to the other members of the channel. */
static void obey(duda_request_t *dr, ws_request_t *wr)
{
    const char *text = (const char *)wr->payload;
    char reason[200] = "";
    unsigned code;
    int n;
    (void)dr;
    if (sscanf(text, "/join %d", &n) == 1)
        reply(wr, "%ld", websocket->set_channel(wr, n));
    else if (sscanf(text, "/count %d", &n) == 1)
        reply(wr, "%ld", (long)websocket->count(n));
    else if (sscanf(text, "/enter %199s", reason) == 1)
        reply(wr, "%ld", websocket->join(wr, reason));
    else if (sscanf(text, "/in %199s", reason) == 1)
        reply(wr, "%ld", (long)websocket->count_in(reason));
    else if (sscanf(text, "/to %199s", reason) == 1)
        websocket->publish_to(reason, WS_OPCODE_TEXT, reason, strlen(reason), wr);
    else if (sscanf(text, "/all %199s", reason) == 1)
        websocket->publish(WS_CHANNEL_ALL, WS_OPCODE_TEXT, reason, strlen(reason), NULL);
    else if (sscanf(text, "/close %u %199[^\n]", &code, reason) >= 1)
        websocket->close(wr, code, reason);
    else if (sscanf(text, "/block %d", &n) == 1)
        usleep((unsigned)n * 1000);
    else if (strcmp(text, "/crash") == 0)
        crash();
    else if (strcmp(text, "/abort") == 0)
        response->abort(dr);
    else if (strcmp(text, "/pause") == 0) {
        websocket->pause(wr);
        event->timer(300, resume, wr);
    } else if (strcmp(text, "/version") == 0)
        websocket->send(wr, WS_OPCODE_TEXT, VERSION, strlen(VERSION));
    else
        websocket->broadcast(wr, wr->payload, wr->payload_len, (int)wr->opcode, wr->channel);
}

static void say_protocol(duda_request_t *dr, ws_request_t *wr)
{
    const char *name = websocket->protocol(wr);
    (void)dr;
    websocket->send(wr, WS_OPCODE_TEXT, name, strlen(name));
}

static void produce(duda_request_t *dr, ws_request_t *wr)
{
    char text[1025];
    enum ws_result r = WS_OK;
    (void)dr;
    for (long *n = wr->data; r == WS_OK; ++*n) {
        snprintf(text, sizeof(text), "%01024ld", *n);
        r = websocket->send(wr, WS_OPCODE_TEXT, text, 1024);
    }
    if (r != WS_AGAIN)
        msg->err("the producer got %d", r);
}

/* Sends far more than the queue of a client that does not read holds. */
static void overflow(duda_request_t *dr, ws_request_t *wr)
{
    static char text[8192];
    int full = 0, n;
    (void)dr;
    memset(text, 'x', sizeof(text));
    for (n = 0; n < 4000; n++)
        full += websocket->send(wr, WS_OPCODE_TEXT, text, sizeof(text)) == WS_FULL;
    msg->info("overflow: %s full", full ? "was" : "was not");
}

static void free_data(duda_request_t *dr, ws_request_t *wr)
{
    log_close(dr, wr);
    free(wr->data);
}

static void count_messages(duda_request_t *dr, ws_request_t *wr)
{
    (void)dr;
    reply(wr, "%ld", ++*(long *)wr->data);
}

/* ── mistakes ── */

static void make_mistakes(duda_request_t *dr, ws_request_t *wr)
{
    const int results[] = {
        websocket->send(NULL, WS_OPCODE_TEXT, "x", 1),
        websocket->send(wr, WS_OPCODE_TEXT, NULL, 1),
        websocket->send(wr, WS_OPCODE_TEXT, "\xff", 1),
        websocket->send(wr, WS_OPCODE_CLOSE, "x", 1),
        websocket->send(wr, WS_OPCODE_CONTINUE, "x", 1),
        websocket->send(wr, WS_OPCODE_PING, wr->payload, 126),
        websocket->send(wr, WS_OPCODE_BINARY, wr->payload, 65 << 20),
        websocket->close(wr, 999, NULL),
        websocket->close(wr, 1005, NULL),
        websocket->close(wr, 1000, "\xff"),
        websocket->write(NULL, WS_OPCODE_TEXT, wr->payload, 1),
        websocket->write(wr, WS_OPCODE_CLOSE, wr->payload, 1),
        websocket->broadcast(NULL, wr->payload, 1, WS_OPCODE_TEXT, -1),
        websocket->broadcast_all(NULL, 1, WS_OPCODE_TEXT, -1),
        websocket->publish(0, WS_OPCODE_PING, "x", 1, NULL),
        websocket->set_callback(WS_ON_OPEN, echo),
        websocket->broadcaster(),
        websocket->endpoint(&(struct ws_settings){.level = 1}) != NULL,
        websocket->accept(NULL, NULL, 0, NULL) != NULL,
        websocket->handshake(dr, 0),
        websocket->connect(NULL, NULL, NULL) != NULL,
        websocket->connect("http://localhost/", NULL, NULL) != NULL,
    };
    char text[300] = "";
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d ", results[i]);
    websocket->send(wr, WS_OPCODE_TEXT, text, strlen(text));
}

static ws_request_t *gone;

static void remember(duda_request_t *dr, ws_request_t *wr)
{
    (void)dr;
    gone = wr;
}

static void use_gone(duda_request_t *dr)
{
    response->printf(dr, "%d %d %s.", websocket->send(gone, WS_OPCODE_TEXT, "x", 1), websocket->pause(gone),
                     websocket->protocol(gone));
    response->end(dr, NULL);
}

/* ── clients ── */

static void greet(duda_request_t *dr, ws_request_t *wr)
{
    (void)dr;
    reply(wr, "hello from %ld", (long)websocket->count(-1));
}

static void publish_reply(duda_request_t *dr, ws_request_t *wr)
{
    (void)dr;
    websocket->broadcast(wr, wr->payload, wr->payload_len, (int)wr->opcode, 7);
}

static void connect_client(duda_request_t *dr)
{
    char url[400];
    snprintf(url, sizeof(url), "ws://%s", qs->get(dr, "to"));
    response->printf(dr, "%d", websocket->connect(url, client, NULL) != NULL);
    response->end(dr, NULL);
}

/* ── HTTP ── */

static void publish(duda_request_t *dr)
{
    const char *text = qs->get(dr, "text"), *name = qs->get(dr, "name");
    int r = name ? websocket->publish_to(name, WS_OPCODE_TEXT, text, strlen(text), NULL)
                 : websocket->publish(get_channel(dr), WS_OPCODE_TEXT, text, strlen(text), NULL);
    response->printf(dr, "%d", r);
    response->end(dr, NULL);
}

static void close_channel(duda_request_t *dr)
{
    long code = 0;
    qs->get_number(dr, "code", &code);
    response->printf(dr, "%d", websocket->close_channel(qs->get(dr, "name"), (unsigned)code, qs->get(dr, "reason")));
    response->end(dr, NULL);
}

static void count(duda_request_t *dr)
{
    const char *name = qs->get(dr, "name");
    response->printf(dr, "%zu", name ? websocket->count_in(name) : websocket->count(get_channel(dr)));
    response->end(dr, NULL);
}

/* Threads send numbered messages when they are asked to: "a0", "a1", ... */
enum { THREADS = 3 };
static _Atomic long wanted;

static void *send_from_thread(void *arg)
{
    const char *name = arg;
    long n = 0;
    while (!worker->stopping()) {
        char text[100];
        if (n == wanted) {
            usleep(1000);
            continue;
        }
        int len = snprintf(text, sizeof(text), "%s %ld of %zu", name, n++, websocket->count(5));
        if (websocket->broadcast_all((unsigned char *)text, (uint64_t)len, WS_OPCODE_TEXT, 5) < 0)
            n--; /* 64 MB wait */
    }
    if (websocket->send(gone, WS_OPCODE_TEXT, "x", 1) == WS_OK)
        abort();
    return NULL;
}

static void ask_threads(duda_request_t *dr)
{
    wanted += get_number(dr, "n", 1);
    response->end(dr, NULL);
}

/* ── routes ── */

static void accept_at(duda_request_t *dr, ws_endpoint_t *endpoint, size_t bytes)
{
    void *state = bytes ? calloc(1, bytes) : NULL;
    response->header(dr, "X-Version", "%s", VERSION);
    if (!websocket->accept(dr, endpoint, get_channel(dr), state))
        free(state);
}

#define ACCEPT(name, bytes) \
    static void accept_##name(duda_request_t *dr) \
    { \
        accept_at(dr, name, bytes); \
    }

ACCEPT(plain, 0)
ACCEPT(small, 0)
ACCEPT(alive, 0)
ACCEPT(protocols, 0)
ACCEPT(flood, sizeof(long))
ACCEPT(drop, 0)
ACCEPT(tagged, sizeof(long))
ACCEPT(shut, 0)

static ws_endpoint_t *mistakes, *leaving;
ACCEPT(mistakes, 0)
ACCEPT(leaving, 0)

static void default_endpoint(duda_request_t *dr)
{
    websocket->handshake(dr, 3);
}

/* Opens it in a later callback. */
static void accept_now(void *data)
{
    accept_plain(data);
}

static void accept_late(duda_request_t *dr)
{
    response->wait(dr);
    event->timer(20, accept_now, dr);
}

static const struct {
    const char *path;
    duda_request_fn fn;
} routes[] = {
    {"/plain", accept_plain},
    {"/small", accept_small},
    {"/alive", accept_alive},
    {"/protocols", accept_protocols},
    {"/flood", accept_flood},
    {"/drop", accept_drop},
    {"/tagged", accept_tagged},
    {"/shut", accept_shut},
    {"/mistakes", accept_mistakes},
    {"/leaving", accept_leaving},
    {"/late", accept_late},
    {"/default", default_endpoint},
    {"/gone", use_gone},
    {"/publish", publish},
    {"/count", count},
    {"/close-channel", close_channel},
    {"/threads", ask_threads},
    {"/connect", connect_client},
};

#define LOGS .on_open = log_open, .on_error = log_error, .on_close = log_close, .on_timeout = log_timeout

int duda_main(void)
{
    duda_load_package(websocket, "websocket");
    websocket->set_callback(WS_ON_MESSAGE, echo);
    websocket->set_callback(WS_ON_CLOSE, log_close);
    plain = websocket->endpoint(&(struct ws_settings){LOGS, .on_message = obey, .close_ms = 1000});
    small = websocket->endpoint(&(struct ws_settings){LOGS, .message_bytes_max = 100, .origins = "https://a.example"});
    alive = websocket->endpoint(&(struct ws_settings){LOGS, .ping_ms = 100, .pong_ms = 2000});
    protocols = websocket->endpoint(
        &(struct ws_settings){.on_open = say_protocol, .protocols = "chat, superchat", .no_deflate = true});
    flood =
        websocket->endpoint(&(struct ws_settings){.on_open = produce, .on_writable = produce, .on_close = free_data});
    drop = websocket->endpoint(&(struct ws_settings){
        .on_open = overflow, .overflow = WS_OVERFLOW_DROP, .queue_bytes_max = 100000, .no_deflate = true});
    shut = websocket->endpoint(&(struct ws_settings){LOGS, .on_message = overflow, .no_deflate = true});
    tagged = websocket->endpoint(&(struct ws_settings){.on_message = count_messages, .on_close = free_data});
    client = websocket->endpoint(&(struct ws_settings){.on_open = greet,
                                                       .on_message = publish_reply,
                                                       .on_error = log_error,
                                                       .on_close = log_close,
                                                       .protocols = "superchat"});
    mistakes = websocket->endpoint(&(struct ws_settings){.on_message = make_mistakes});
    leaving = websocket->endpoint(&(struct ws_settings){.on_open = remember});
    if (websocket->endpoint(&(struct ws_settings){.level = 10}) || websocket->endpoint(NULL) || !shut || !leaving)
        return -1;
    if (websocket->set_callback(5, echo) == 0 || websocket->send(NULL, WS_OPCODE_TEXT, "x", 1) == WS_OK)
        return -1;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        router->get(routes[i].path, routes[i].fn);
    static char *names[THREADS] = {"a", "b", "c"};
    for (size_t i = 0; i < THREADS; i++)
        worker->spawn(send_from_thread, names[i]);
    return 0;
}

void duda_exit(void)
{
    msg->info("exit");
}
