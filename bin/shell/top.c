// SPDX-License-Identifier: Apache-2.0
/*
 * Live figures (top.h): those of `status` and of the server's counters, twice, and the differences by time.
 */
#include "top.h"

#include "table.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { COUNTERS_MAX = 512, ROWS_SHOWN = 16 };

struct counted {
    char *name;
    long long value;
};

struct sample {
    double at;
    long long connections, under_way, memory_bytes;
    char state[32];
    struct counted counters[COUNTERS_MAX];
    unsigned n;
};

static double get_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ── asking ── */

static long long get_number(const struct object *o, const char *key)
{
    const char *value = object_get(o, key);
    return value ? atoll(value) : 0;
}

static bool take_status(struct object *o, const char *line, void *ctx)
{
    struct sample *s = ctx;
    (void)line;
    if (object_get(o, "begin") || object_get(o, "warning"))
        return true;
    s->connections = get_number(o, "connections");
    s->under_way = get_number(o, "requests_under_way");
    s->memory_bytes = get_number(o, "workers_memory_bytes");
    snprintf(s->state, sizeof(s->state), "%s", object_get(o, "state") ? object_get(o, "state") : "");
    return true;
}

static bool take_counter(struct object *o, const char *line, void *ctx)
{
    struct sample *s = ctx;
    const char *name = object_get(o, "counter"), *labels = object_get(o, "labels"), *kind = object_get(o, "kind");
    (void)line;
    if (!name || !kind || strcmp(kind, "sum") != 0 || s->n == COUNTERS_MAX)
        return true;
    struct counted *c = &s->counters[s->n];
    if (asprintf(&c->name, "%s{%s}", name, labels ? labels : "") < 0)
        return true;
    c->value = get_number(o, "value");
    s->n++;
    return true;
}

static int ask(struct link *l, const char *line, link_fn fn, struct sample *s)
{
    struct mk_buf error;
    mk_buf_init(&error, 4096);
    int result = link_ask(l, mk_str_c(line), -1, fn, s, &error);
    mk_buf_release(&error);
    return result < 0 ? result : 1;
}

static void clear_sample(struct sample *s)
{
    while (s->n)
        free(s->counters[--s->n].name);
}

static int take_sample(struct link *l, struct sample *s)
{
    clear_sample(s);
    int result = ask(l, "status", take_status, s);
    if (result > 0)
        result = ask(l, "counters", take_counter, s);
    s->at = get_time();
    return result;
}

/* ── showing ── */

/* Returns how much a counter has grown in a second; a counter that is new counts from 0. */
static double get_rate(const struct sample *before, const struct sample *now, unsigned i)
{
    long long value = 0;
    for (unsigned k = 0; k < before->n; k++)
        if (strcmp(before->counters[k].name, now->counters[i].name) == 0)
            value = before->counters[k].value;
    double seconds = now->at - before->at;
    return seconds > 0 ? (double)(now->counters[i].value - value) / seconds : 0;
}

/* Returns requests in a second, of all hosts together. */
static double get_requests(const struct sample *before, const struct sample *now)
{
    double sum = 0;
    for (unsigned i = 0; i < now->n; i++)
        if (strncmp(now->counters[i].name, "requests{", 9) == 0)
            sum += get_rate(before, now, i);
    return sum;
}

static void add_line(const struct sample *before, const struct sample *now, struct mk_buf *out)
{
    struct object_member memory = {.key = "memory_bytes", .kind = OBJECT_NUMBER};
    char digits[32];
    snprintf(digits, sizeof(digits), "%lld", now->memory_bytes);
    memory.value = digits;
    if (now->n)
        mk_buf_addf(out, "%.0f requests/s, ", get_requests(before, now));
    mk_buf_addf(out, "%lld connections, %lld requests under way, memory ", now->connections, now->under_way);
    table_add_value(out, &memory);
    mk_buf_addf(out, ", %s\n", now->state);
}

/* Appends the counters that grow fastest. */
static void add_counters(const struct sample *before, const struct sample *now, struct mk_buf *out)
{
    bool shown[COUNTERS_MAX] = {false};
    for (unsigned row = 0; row < ROWS_SHOWN; row++) {
        unsigned best = now->n;
        for (unsigned i = 0; i < now->n; i++)
            if (!shown[i] && (best == now->n || get_rate(before, now, i) > get_rate(before, now, best)))
                best = i;
        if (best == now->n || get_rate(before, now, best) <= 0)
            return;
        shown[best] = true;
        mk_buf_addf(out, "%12.1f/s  ", get_rate(before, now, best));
        table_add_safe(out, now->counters[best].name);
        mk_buf_addc(out, '\n');
    }
}

static bool show(const struct sample *before, const struct sample *now, bool screen)
{
    struct mk_buf out;
    mk_buf_init(&out, 256 * 1024);
    if (screen)
        mk_buf_adds(&out, MK_STR("\033[H\033[J"));
    add_line(before, now, &out);
    if (screen)
        add_counters(before, now, &out);
    if (screen)
        mk_buf_adds(&out, MK_STR("q ends\n"));
    bool good = fwrite(out.data, 1, out.len, stdout) == out.len && fflush(stdout) == 0;
    mk_buf_release(&out);
    return good;
}

/* Waits for the next refresh. Returns false if a key (or on something other than a terminal the end of input) ends it.
 */
static bool wait_refresh(double seconds, bool terminal)
{
    struct pollfd one = {.fd = STDIN_FILENO, .events = POLLIN};
    double until = get_time() + seconds;
    char key;
    for (double left = seconds; left > 0; left = until - get_time()) {
        int n = poll(&one, terminal ? 1 : 0, (int)(left * 1000) + 1);
        if (n < 0 && errno != EINTR)
            return false;
        if (n <= 0)
            continue;
        if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == 3 || key == 4)
            return false;
    }
    return true;
}

static int run(struct link *l, double seconds, bool terminal)
{
    static struct sample samples[2];
    unsigned now = 0;
    int result = take_sample(l, &samples[now]);
    if (result > 0 && terminal)
        show(&samples[now], &samples[now], terminal);
    while (result > 0 && wait_refresh(seconds, terminal)) {
        now = !now;
        result = take_sample(l, &samples[now]);
        if (result > 0 && !show(&samples[!now], &samples[now], terminal))
            break;
    }
    clear_sample(&samples[0]);
    clear_sample(&samples[1]);
    return result;
}

int top_run(struct link *l, double seconds, const struct view_options *options)
{
    struct termios before, raw;
    (void)options;
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
    if (terminal) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    int result = run(l, seconds, terminal);
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return result;
}
