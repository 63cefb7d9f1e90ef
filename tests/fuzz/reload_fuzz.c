// SPDX-License-Identifier: Apache-2.0
/*
 * Reloads amid everything that two connections can be doing, one over HTTP/1 and one over HTTP/2. The input is a
 * script: each operation sends bytes, changes a limit and applies the new settings, lets time pass, lets the client
 * read responses, drains. Old settings are freed as soon as no exchange holds them, as the server does, so that a
 * connection that kept a pointer to them is found. Each hook calls every accessor. Whatever comes, both connections end
 * when their limits have passed, every exchange ends once, and nothing is left in the account.
 *
 *     first byte  the handler of the first request; those of the next ones follow in turn
 *     00..bf      a byte to send by the current connection, at once with those before and behind it
 *     c0..cf v    set the limit of this number to value v, apply
 *     d0..fe      the operation in the table below
 *     ff b        send byte b, whatever it is
 */
#include <stdint.h>
#include <stdlib.h>

#include "handlers.h"

#include "http/h2/flood_counters.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum {
    BYTE_MAX = 0xbf,
    LIMIT_MAX = 0xcf,
    ESCAPE = 0xff,
    LIMITS = 16,
    CLIENTS = 2,
    GENERATIONS_MAX = 32,
    SCRIPT_BYTES_MAX = 4096
};

struct generation {
    struct mk__http_settings settings;
    struct mk__h2_settings h2;
};

/* What the script works on. */
static struct {
    struct mk_test_fixture fixture;
    struct mk_test_client *clients[CLIENTS], *current;
    struct generation *generations[GENERATIONS_MAX]; /* the last one is in use */
    unsigned n_generations;
    uint8_t plan;
} run;

/* ── hooks ── */

static void handle(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    call_accessors(req);
    answer(req, run.plan++);
}

/* ── generations ── */

/* Frees those that nothing holds any more. */
static void free_old_generations(unsigned keep)
{
    if (run.fixture.worker_refs || run.n_generations <= keep)
        return;
    unsigned n = run.n_generations - keep;
    for (unsigned i = 0; i < n; i++)
        free(run.generations[i]);
    for (unsigned i = 0; i < keep; i++)
        run.generations[i] = run.generations[n + i];
    run.n_generations = keep;
}

/* A copy of the settings in use, or the first ones; NULL when there are too many that are still held. */
static struct generation *add_generation(void)
{
    free_old_generations(1);
    if (run.n_generations == GENERATIONS_MAX)
        return NULL;
    struct generation *g = malloc(sizeof(*g));
    if (!g)
        abort();
    if (run.n_generations) {
        *g = *run.generations[run.n_generations - 1];
    } else {
        mk_test_settings(&g->settings);
        g->h2 = *g->settings.h2;
    }
    g->settings.h2 = g->h2.on ? &g->h2 : NULL;
    run.generations[run.n_generations++] = g;
    return g;
}

static void set_limit(struct generation *g, unsigned i, uint8_t value)
{
    struct mk__http_settings *s = &g->settings;
    uint32_t small = 1 + value % 8;
    switch (i) {
    case 0:
        s->head.fields_max = small;
        break;
    case 1:
        s->head.line_bytes_max = 32 * small;
        break;
    case 2:
        s->head.head_bytes_max = 256 * small;
        break;
    case 3:
        s->limits.body_bytes_max = value;
        break;
    case 4:
        s->limits.collect_bytes_max = value;
        break;
    case 5:
        s->limits.discard_bytes_max = value;
        break;
    case 6:
        s->limits.body_rate_min = value;
        break;
    case 7:
        s->requests_max = value;
        break;
    case 8:
        s->keep_alive = value & 1;
        break;
    case 9:
        s->times = value & 1;
        break;
    case 10:
        g->h2.on = value & 1;
        s->h2 = g->h2.on ? &g->h2 : NULL;
        break;
    case 11:
        g->h2.streams_max = small;
        break;
    case 12:
        g->h2.continuations_max = value;
        break;
    case 13:
        g->h2.rates_max[value % MK__H2_FLOOD_RATES] = small;
        break;
    case 14:
        s->handshakes_max = small;
        break;
    default:
        s->limits.timeout_ms[value % MK__TIMEOUTS] = 1 + 16u * value;
    }
}

/* Sets the limits from `first` to `last`. */
static void reload(unsigned first, unsigned last, uint8_t value)
{
    struct mk__context_buffers buffers;
    struct generation *g = add_generation();
    if (!g)
        return;
    for (unsigned i = first; i <= last; i++)
        set_limit(g, i, value);
    if (mk__context_alloc_buffers(&run.fixture.http, &g->settings, &buffers) < 0)
        abort();
    mk__http_apply_settings(&run.fixture.http, &g->settings, &buffers);
    mk__context_free_buffers(&buffers);
    free_old_generations(1);
}

/* ── operations ── */

static void change_client(void)
{
    run.current = run.clients[run.current == run.clients[0]];
}

static void pass_little(void)
{
    mk_test_pass(&run.fixture, 100);
}

static void pass_long(void)
{
    mk_test_pass(&run.fixture, 16000);
}

static void take_little(void)
{
    mk_test_take(run.current, 64);
}

static void take_all(void)
{
    mk_test_take(run.current, SIZE_MAX);
}

static void take_none(void)
{
    run.current->room = 0;
}

static void end_client(void)
{
    mk_test_fin(run.current);
}

static void reset_client(void)
{
    mk_test_reset(run.current);
}

static void retire(void)
{
    mk__conn_retire_all(&run.fixture.http);
}

static void drain(void)
{
    mk__conn_drain_all(&run.fixture.http);
}

/* All limits of heads, bodies and connections at once. */
static void lower_limits(void)
{
    reload(0, LIMITS - 1, 0);
}

static void raise_limits(void)
{
    reload(0, LIMITS - 1, UINT8_MAX);
}

static void make_room(void)
{
    mk__conn_close_idle(&run.fixture.http, 1);
}

static void (*const operations[])(void) = {change_client, pass_little,  pass_long,    take_little,  take_all,
                                           take_none,     lower_limits, raise_limits, end_client,   reset_client,
                                           retire,        drain,        make_room,    change_client};

/* Gathers bytes up to the next operation; the number of bytes of the script that they take. */
static size_t gather_bytes(const uint8_t *script, size_t size, char *to, size_t *ret_len)
{
    size_t at = 0;
    *ret_len = 0;
    for (; at < size && (script[at] <= BYTE_MAX || script[at] == ESCAPE); at++) {
        at += script[at] == ESCAPE && at + 1 < size;
        to[(*ret_len)++] = (char)script[at];
    }
    return at;
}

/* Each operation, and the loop until nothing happens any more. */
static void play(const uint8_t *script, size_t size)
{
    static char bytes[SCRIPT_BYTES_MAX];
    for (size_t at = 0, len; at < size;) {
        at += gather_bytes(script + at, size - at, bytes, &len);
        if (len) {
            mk_test_send(run.current, mk_str(bytes, len));
        } else if (script[at] <= LIMIT_MAX) {
            reload(script[at] % LIMITS, script[at] % LIMITS, at + 1 < size ? script[at + 1] : 0);
            at += 2;
        } else {
            operations[script[at++] % (sizeof(operations) / sizeof(operations[0]))]();
        }
        mk_test_settle(&run.fixture);
        mk_test_received(run.current);
    }
}

static void open_fixture(void)
{
    struct mk_test_fixture *w = &run.fixture;
    if (mk_test_fixture_open(w, NULL) < 0)
        abort();
    w->handler = handle;
    w->on_response = w->on_done = on_hook;
    w->settings.head.fields_max = 8;
    if (mk_test_http_open(w) < 0)
        abort();
    reload(0, 0, 7); /* the settings in use are ours to free from now on */
    run.clients[0] = mk_test_connect(w, MK_STR(""));
    run.clients[1] = mk_test_connect(w, MK_STR(PREFACE));
    if (!run.clients[0] || !run.clients[1])
        abort();
    run.current = run.clients[0];
    for (unsigned i = 0; i < CLIENTS; i++)
        run.clients[i]->room = SIZE_MAX;
}

static void close_fixture(void)
{
    struct mk_test_fixture *w = &run.fixture;
    mk_test_pass(w, MK_TEST_DAY_MS);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (mk_test_connection(run.clients[i]))
            abort();
    mk_test_fixture_close(w); /* aborts when a byte is left */
    if (w->closed != CLIENTS || w->requests > w->done || w->worker_refs != 0)
        abort();
    free_old_generations(0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > SCRIPT_BYTES_MAX)
        return 0;
    run.plan = data[0];
    open_fixture();
    play(data + 1, size - 1);
    close_fixture();
    return 0;
}
