// SPDX-License-Identifier: Apache-2.0
/*
 * probe: a plugin for the end-to-end tests, which use what files never need: bodies in pieces and collected,
 * answers that come late, never, in pieces or cut off. It sees only what every plugin sees. The test names
 * the behaviour by the path; numbers come in the query.
 */
#include <monkey/base/buf.h>
#include <monkey/plugin.h>
#include <monkey/request_ref.h>
#include <monkey/tunnel.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t number_of(struct mk_request *req, uint64_t fallback)
{
    uint64_t value = fallback;
    mk_str_u64(mk_request_query(req), UINT64_MAX, &value);
    return value;
}

static void answer(struct mk_request *req, struct mk_str text)
{
    int err = mk_response_write(req, text);
    if (err == -EALREADY)
        return;
    if (err < 0)
        mk_response_abort(req);
    else
        mk_response_end(req);
}

/* ── bodies ── */

static void echo_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)ctx;
    if (mk_response_write(req, piece) == MK_AGAIN)
        mk_request_pause(req);
    if (end)
        mk_response_end(req);
}

static void echo_drained(struct mk_request *req, void *ctx)
{
    (void)ctx;
    mk_request_resume(req);
}

static void echo(struct mk_request *req)
{
    mk_response_on_writable(req, echo_drained, NULL);
    mk_request_read(req, echo_piece, NULL);
}

static void answer_collected(struct mk_request *req, struct mk_str body, bool end, void *ctx)
{
    (void)end;
    (void)ctx;
    answer(req, body);
}

static void collect(struct mk_request *req)
{
    mk_request_collect(req, number_of(req, 0), answer_collected, NULL);
}

/* ── late answers ── */

struct late {
    struct mk_timer timer;
    struct mk_request *req;
    uint64_t count;
};

static void cancel_late(void *ctx)
{
    struct late *late = ctx;
    mk_timer_cancel(&late->timer);
}

static struct late *make_late(struct mk_request *req, mk_timer_fn fn)
{
    struct late *late = mk_arena_zalloc(mk_request_arena(req), sizeof(*late));
    if (!late || mk_arena_defer(mk_request_arena(req), cancel_late, late) < 0)
        return NULL;
    late->req = req;
    mk_timer_init(&late->timer, fn);
    return late;
}

static void answer_late(struct mk_timer *timer)
{
    answer(MK_CONTAINER_OF(timer, struct late, timer)->req, MK_STR("late\n"));
}

static void be_late(struct mk_request *req)
{
    struct late *late = make_late(req, answer_late);
    mk_timer_arm(mk_request_loop(req), &late->timer, (uint32_t)number_of(req, 50));
}

static void tick(struct mk_timer *timer)
{
    struct late *late = MK_CONTAINER_OF(timer, struct late, timer);
    mk_response_write(late->req, MK_STR("tick\n"));
    if (--late->count == 0)
        mk_response_end(late->req);
    else
        mk_timer_arm(mk_request_loop(late->req), timer, 100);
}

/* So many ticks, a tenth of a second apart: in all longer than a handler may be silent. */
static void send_ticks(struct mk_request *req)
{
    struct late *late = make_late(req, tick);
    late->count = number_of(req, 3);
    tick(&late->timer);
}

/* Begins a response, and adds nothing to it. */
static void begin_quietly(struct mk_request *req)
{
    mk_response_write_ref(req, MK_STR("begun\n"));
}

/* ── answers from other threads ── */

struct errand {
    struct mk_request_call call;
    struct mk_worker *worker; /* held until the call */
    uint64_t delay_ms;
};

static void bring(struct mk_request_call *call, struct mk_request *req)
{
    struct errand *errand = MK_CONTAINER_OF(call, struct errand, call);
    if (req)
        answer(req, MK_STR("from afar\n"));
    else
        mk_log_info("probe: the client has left");
    mk_worker_put(errand->worker);
    free(errand);
}

static void *run_errand(void *ctx)
{
    struct errand *errand = ctx;
    struct timespec delay = {.tv_sec = (time_t)(errand->delay_ms / 1000),
                             .tv_nsec = (long)(errand->delay_ms % 1000) * 1000000};
    nanosleep(&delay, NULL);
    if (mk_request_ref_call(&errand->call) < 0) {
        mk_log_info("probe: the worker has gone"); /* with all that it held */
        free(errand);
    }
    return NULL;
}

static void send_errand(struct mk_request *req)
{
    struct errand *errand = calloc(1, sizeof(*errand));
    pthread_t thread;
    if (!errand || mk_request_ref(req, &errand->call.ref) < 0) {
        free(errand);
        mk_response_error(req, 503);
        return;
    }
    errand->call.fn = bring;
    errand->worker = mk_worker_get(mk_request_worker(req));
    errand->delay_ms = number_of(req, 20);
    if (pthread_create(&thread, NULL, run_errand, errand) == 0)
        pthread_detach(thread);
}

/* Two threads, each with an answer; the first one counts. */
static void send_two_errands(struct mk_request *req)
{
    send_errand(req);
    send_errand(req);
}

/* ── connections that are taken over ── */

struct echo {
    char kept[4096];
    size_t at, len;
};

static void echo_bytes(struct mk_request *req, unsigned events, void *ctx)
{
    struct echo *e = ctx;
    if (events & MK_TUNNEL_DRAINING) {
        mk_tunnel_write(req, "bye\n", 4);
        mk_tunnel_end(req);
        return;
    }
    for (;;) {
        while (e->at < e->len) {
            ssize_t n = mk_tunnel_write(req, e->kept + e->at, e->len - e->at);
            if (n == -EAGAIN)
                return;
            if (n <= 0) {
                mk_response_abort(req);
                return;
            }
            e->at += (size_t)n;
        }
        ssize_t n = mk_tunnel_read(req, e->kept, sizeof(e->kept));
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            mk_tunnel_end(req);
            return;
        }
        e->at = 0;
        e->len = (size_t)n;
    }
}

static void upgrade(struct mk_request *req)
{
    struct echo *e = mk_arena_zalloc(mk_request_arena(req), sizeof(*e));
    if (!e || mk_request_take_over(req, echo_bytes, e) < 0)
        mk_response_error(req, 426);
    mk_response_header_ref(req, MK_STR("Upgrade"), MK_STR("echo"));
}

static void slow_resume(struct mk_timer *timer)
{
    mk_request_resume(MK_CONTAINER_OF(timer, struct late, timer)->req);
}

static void slow_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct late *late = ctx;
    char text[32];
    late->count += piece.len;
    if (!end) {
        mk_request_pause(req);
        mk_timer_arm(mk_request_loop(req), &late->timer, 20);
        return;
    }
    struct mk_buf b;
    mk_buf_init_fixed(&b, text, sizeof(text));
    mk_buf_addf(&b, "%llu\n", (unsigned long long)late->count);
    answer(req, mk_buf_str(&b));
}

/* Takes one piece, then lets the client wait a while. */
static void read_slowly(struct mk_request *req)
{
    mk_request_read(req, slow_piece, make_late(req, slow_resume));
}

static void stay_silent(struct mk_request *req)
{
    (void)req;
}

/* ── answers in pieces ── */

static ssize_t generate(struct mk_request *req, char *to, size_t size, void *ctx)
{
    uint64_t *left = ctx;
    (void)req;
    size_t n = *left < size ? (size_t)*left : size;
    memset(to, 'g', n);
    *left -= n;
    return (ssize_t)n;
}

static void stream(struct mk_request *req)
{
    uint64_t *left = mk_arena_alloc(mk_request_arena(req), sizeof(*left));
    *left = number_of(req, 100000);
    mk_response_generate(req, generate, left);
    mk_response_end(req);
}

static ssize_t generate_and_count(struct mk_request *req, char *to, size_t size, void *ctx)
{
    ssize_t n = generate(req, to, size, ctx);
    if (n == 0)
        mk_response_trailer(req, MK_STR("X-Last"), mk_request_query(req));
    return n;
}

static void send_trailers(struct mk_request *req)
{
    uint64_t *left = mk_arena_alloc(mk_request_arena(req), sizeof(*left));
    *left = number_of(req, 10);
    mk_response_trailer(req, MK_STR("X-First"), MK_STR("1"));
    mk_response_generate(req, generate_and_count, left);
    mk_response_end(req);
}

/* All of the body is there when the head leaves; `?length`: and announced. */
static void send_trailer_of_a_whole(struct mk_request *req)
{
    struct mk_str body = MK_STR("whole\n");
    if (mk_str_eq(mk_request_query(req), MK_STR("length")))
        mk_response_set_length(req, body.len);
    if (mk_str_eq(mk_request_query(req), MK_STR("empty")))
        body = MK_STR("");
    mk_response_trailer(req, MK_STR("X-Only"), MK_STR("1"));
    answer(req, body);
}

/* Lengthens the file that the query names. */
static void append(struct mk_request *req)
{
    struct mk_str name = mk_arena_dup(mk_request_arena(req), mk_request_query(req));
    int fd = open(name.p, O_WRONLY | O_APPEND | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "+", 1) == 1;
    if (fd >= 0)
        close(fd);
    answer(req, done ? MK_STR("done\n") : MK_STR("failed\n"));
}

static ssize_t break_down(struct mk_request *req, char *to, size_t size, void *ctx)
{
    bool *begun = ctx;
    (void)req;
    (void)size;
    if (*begun)
        return -EIO;
    *begun = true;
    to[0] = 'b';
    return 1;
}

static void fail_halfway(struct mk_request *req)
{
    mk_response_generate(req, break_down, mk_arena_zalloc(mk_request_arena(req), sizeof(bool)));
    mk_response_end(req);
}

static void promise_too_much(struct mk_request *req)
{
    mk_response_set_length(req, 1000);
    answer(req, MK_STR("short\n"));
}

static void inject(struct mk_request *req)
{
    int r = mk_response_header(req, MK_STR("X-Probe"), MK_STR("a\r\nInjected: yes"));
    answer(req, r == -EINVAL ? MK_STR("refused\n") : MK_STR("taken\n"));
}

/* What only the server may say. */
static void claim_length(struct mk_request *req)
{
    int r = mk_response_header(req, MK_STR("Content-length"), MK_STR("3"));
    answer(req, r == -EINVAL ? MK_STR("refused\n") : MK_STR("taken\n"));
}

static void collect_without_end(struct mk_request *req)
{
    mk_request_collect(req, SIZE_MAX, answer_collected, NULL);
}

static void end_connection(struct mk_request *req)
{
    mk_response_close_connection(req);
    answer(req, MK_STR("bye\n"));
}

/* Declines, but later. */
static void decline_late(struct mk_timer *timer)
{
    mk_request_decline(MK_CONTAINER_OF(timer, struct late, timer)->req);
}

static void think(struct mk_request *req)
{
    mk_timer_arm(mk_request_loop(req), &make_late(req, decline_late)->timer, 20);
}

static void answer_at_once(struct mk_request *req)
{
    answer(req, MK_STR("at once\n"));
}

static void no_content(struct mk_request *req)
{
    mk_response_set_status(req, 204);
    answer(req, MK_STR("this must not be sent\n"));
}

static void add_address(struct mk_buf *b, struct mk_address address)
{
    mk_address_print(&address, b);
    mk_buf_addf(b, "|%u|", address.port);
}

static void report_client(struct mk_request *req)
{
    char text[160];
    struct mk_buf b;
    mk_buf_init_fixed(&b, text, sizeof(text));
    add_address(&b, mk_request_client(req));
    add_address(&b, mk_request_peer(req));
    mk_buf_adds(&b, mk_request_scheme(req));
    answer(req, mk_buf_str(&b));
}

static void report_secured(struct mk_request *req)
{
    char text[512];
    struct mk_buf b;
    struct mk_tls_info known;
    int err = mk_request_tls_info(req, &known);
    mk_buf_init_fixed(&b, text, sizeof(text));
    if (err < 0)
        mk_buf_addf(&b, "%s", strerrorname_np(-err));
    else
        mk_buf_addf(&b, "%.*s|%.*s|%.*s|%.*s", MK_STR_ARG(known.version), MK_STR_ARG(known.cipher),
                    MK_STR_ARG(known.server_name), MK_STR_ARG(known.client));
    answer(req, mk_buf_str(&b));
}

/* ── hooks ── */

static const struct {
    struct mk_str path;
    void (*act)(struct mk_request *req);
} acts[] = {
    {MK_STR("/probe/echo"), echo},
    {MK_STR("/probe/collect"), collect},
    {MK_STR("/probe/slow"), read_slowly},
    {MK_STR("/probe/late"), be_late},
    {MK_STR("/probe/thread"), send_errand},
    {MK_STR("/probe/threads"), send_two_errands},
    {MK_STR("/probe/upgrade"), upgrade},
    {MK_STR("/probe/ticks"), send_ticks},
    {MK_STR("/probe/never"), stay_silent},
    {MK_STR("/probe/quiet"), begin_quietly},
    {MK_STR("/probe/stream"), stream},
    {MK_STR("/probe/append"), append},
    {MK_STR("/probe/trailers"), send_trailers},
    {MK_STR("/probe/trailer"), send_trailer_of_a_whole},
    {MK_STR("/probe/broken"), fail_halfway},
    {MK_STR("/probe/promise"), promise_too_much},
    {MK_STR("/probe/inject"), inject},
    {MK_STR("/probe/claim"), claim_length},
    {MK_STR("/probe/all"), collect_without_end},
    {MK_STR("/probe/bye"), end_connection},
    {MK_STR("/hello.txt"), think},
    {MK_STR("/probe/now"), answer_at_once},
    {MK_STR("/probe/nothing"), no_content},
    {MK_STR("/probe/client"), report_client},
    {MK_STR("/probe/secured"), report_secured},
};

static int refuse(struct mk_request *req)
{
    if (mk_str_eq(mk_request_path(req), MK_STR("/probe/error")))
        return -EIO;
    if (mk_str_eq(mk_request_path(req), MK_STR("/probe/half"))) {
        mk_response_write(req, MK_STR("half\n"));
        return MK_DECLINED;
    }
    if (!mk_str_eq(mk_request_path(req), MK_STR("/probe/refused")))
        return MK_DECLINED;
    mk_response_error(req, 403);
    return MK_DECLINED; /* careless, but the answer stands */
}

static int act(struct mk_request *req)
{
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (!mk_str_eq(mk_request_path(req), acts[i].path))
            continue;
        if (acts[i].act != think)
            mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
        acts[i].act(req);
        return 0;
    }
    return MK_DECLINED;
}

/* Looks at every field, as a logger would: also those of a request that could not be read to its end. */
static void mark(struct mk_request *req)
{
    struct mk_str name, value;
    uint64_t bytes = 0;
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++)
        for (size_t k = 0; k < value.len; k++)
            bytes += (unsigned char)value.p[k];
    if (bytes == 1)
        mk_log_debug("probe: nothing but a control byte");
    mk_response_header_ref(req, MK_STR("X-Probe-Saw"), MK_STR("response"));
}

static void tell(struct mk_request *req)
{
    struct mk_str path = mk_request_path(req);
    mk_log_info("probe: done %.*s status %d bytes %llu%s", MK_STR_ARG(path), mk_response_get_status(req),
                (unsigned long long)mk_request_bytes_sent(req), mk_request_aborted(req) ? " aborted" : "");
}

MK_PLUGIN(probe) = {
    MK_PLUGIN_HEAD("probe", "1.0", "for the end-to-end tests"),
    .on_request = refuse,
    .on_content = act,
    .on_response = mark,
    .on_done = tell,
};
