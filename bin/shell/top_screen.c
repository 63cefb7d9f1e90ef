// SPDX-License-Identifier: Apache-2.0
/*
 * Draws `top` (top_screen.h): a head, a meter in each line, and as many hosts and paths as the screen has room for.
 */
#include "top_screen.h"

#include "cell.h"
#include "line.h"
#include "top_tables.h"

#include <stdio.h>
#include <stdlib.h>

enum { LABEL_WIDTH = 12, VALUE_WIDTH = 13, GAP = 2 };

/* ── the head ── */

static void add_head(const struct top_view *v, struct mk_buf *out)
{
    char text[256], clock[32];
    struct mk_buf time;
    struct line line = line_begin(out, &v->style);
    mk_buf_init_fixed(&time, clock, sizeof(clock));
    text_add_clock(&time, v->unix_us);
    snprintf(text, sizeof(text), " monkey %s   %s   up %s   process %lld", v->now->version, v->now->state,
             cell_seconds(v->now->uptime_s).text, v->now->process);
    line_add(&line, HEADING, text);
    if (v->late_s > 0)
        line_addf(&line, HEADING, "   NO ANSWER FOR %.0f s", v->late_s);
    line_skip(&line, line.left > 9 ? line.left - 9 : 0);
    line_addf(&line, HEADING, "%.8s", mk_buf_cstr(&time));
    line_end(&line, true);
}

/* ── meters ── */

static void add_value(struct line *line, const char *value)
{
    line_field(line, BOLD, value, VALUE_WIDTH, true);
    line_skip(line, GAP);
}

static void add_history(struct line *line, const double *values, unsigned n, enum text_colour colour)
{
    MK_BUF_ON_STACK(out, TOP_HISTORY_MAX * 3 + 1);
    size_t shown = n < line->left ? n : line->left;
    text_add_history(&out, values + n - shown, shown, line->style->unicode);
    line_add(line, colour, mk_buf_cstr(&out));
}

static void add_requests(const struct top_view *v, struct line *line)
{
    add_value(line, cell_rate(v->r.requests, "/s").text);
    add_history(line, v->requests, v->n_history, GREEN);
}

static void add_sent(const struct top_view *v, struct line *line)
{
    add_value(line, cell_bytes(v->r.sent, "/s").text);
    add_history(line, v->sent, v->n_history, BLUE);
}

static void add_received(const struct top_view *v, struct line *line)
{
    add_value(line, cell_bytes(v->r.received, "/s").text);
}

static void add_latency(const struct top_view *v, struct line *line)
{
    if (!v->r.timed) {
        add_value(line, "-");
        line_add(line, DIM, "not measured: load the plugin status or logger");
        return;
    }
    char median[CELL_BYTES + 8];
    snprintf(median, sizeof(median), "p50 %s", cell_us(v->r.p50_us).text);
    add_value(line, median);
    line_addf(line, BOLD, "p99 %s", cell_us(v->r.p99_us).text);
}

static void add_errors(const struct top_view *v, struct line *line)
{
    static const struct {
        const char *name;
        enum text_colour colour;
    } classes[SAMPLE_CLASSES] = {{"none", DIM}, {"1xx", DIM},    {"2xx", GREEN},
                                 {"3xx", CYAN}, {"4xx", YELLOW}, {"5xx", RED}};
    double failed = v->r.classes[4] + v->r.classes[5];
    char share[32];
    snprintf(share, sizeof(share), "%.1f%%", v->r.requests > 0 ? failed / v->r.requests * 100 : 0);
    add_value(line, share);
    const char *gap = "";
    for (unsigned i = 0; i < SAMPLE_CLASSES; i++) {
        if (!(v->r.classes[i] > 0))
            continue;
        line_add(line, PLAIN, gap);
        line_addf(line, classes[i].colour, "%s %.1f%%", classes[i].name, v->r.classes[i] / v->r.requests * 100);
        gap = "   ";
    }
}

static int compare_states(const void *left, const void *right)
{
    const struct sample_state *a = left, *b = right;
    return a->connections < b->connections ? 1 : a->connections > b->connections ? -1 : strcmp(a->name, b->name);
}

static void add_connections(const struct top_view *v, struct line *line)
{
    struct sample_state states[SAMPLE_STATES_MAX];
    char number[32];
    unsigned n = v->now->n_states;
    memcpy(states, v->now->states, n * sizeof(states[0]));
    qsort(states, n, sizeof(states[0]), compare_states);
    snprintf(number, sizeof(number), "%lld", v->now->connections);
    add_value(line, number);
    for (unsigned i = 0; i < n; i++)
        line_addf(line, PLAIN, "%s%s %lld", i ? "   " : "", states[i].name, states[i].connections);
}

static void add_workers(const struct top_view *v, struct line *line)
{
    double seconds = v->now->at - v->before->at;
    char number[32];
    snprintf(number, sizeof(number), "%lld", v->now->workers);
    add_value(line, number);
    line_addf(line, PLAIN, "requests under way %lld   memory %s", v->now->under_way,
              cell_bytes((double)v->now->memory_bytes, "").text);
    if (seconds > 0 && v->now->accepted >= v->before->accepted)
        line_addf(line, PLAIN, "   accepted %s",
                  cell_rate((double)(v->now->accepted - v->before->accepted) / seconds, "/s").text);
    if (v->now->refused > v->before->refused)
        line_addf(line, RED, "   refused %s",
                  cell_rate((double)(v->now->refused - v->before->refused) / seconds, "/s").text);
}

static const struct {
    const char *label;
    void (*add)(const struct top_view *v, struct line *line);
} meters[] = {{"Requests", add_requests}, {"Sent", add_sent},     {"Received", add_received},
              {"Latency", add_latency},   {"Errors", add_errors}, {"Connections", add_connections},
              {"Workers", add_workers}};

enum { METERS = MK_COUNT_OF(meters) };

static void add_meter(const struct top_view *v, unsigned i, struct mk_buf *out)
{
    struct line line = line_begin(out, &v->style);
    line_skip(&line, 1);
    line_field(&line, CYAN, meters[i].label, LABEL_WIDTH, false);
    meters[i].add(v, &line);
    line_end(&line, false);
}

/* ── the screen ── */

static void add_footer(const struct top_view *v, struct mk_buf *out)
{
    struct line line = line_begin(out, &v->style);
    line_addf(&line, DIM, " q ends   every %g s   ", v->interval_s);
    line_add(&line, YELLOW, v->now->warning);
    line_end(&line, false);
}

static size_t count_lines(const struct mk_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < out->len; i++)
        n += out->data[i] == '\n';
    return n;
}

void top_screen_draw(const struct top_view *v, struct mk_buf *out)
{
    enum { AROUND = 3, TABLES = 4 }; /* head, the line below it, footer; two headings, each with an empty line */
    size_t room = v->rows > AROUND ? v->rows - AROUND : 0, n_meters = room < METERS ? room : METERS;
    add_head(v, out);
    if (v->rows > 1)
        mk_buf_addc(out, '\n');
    for (unsigned i = 0; i < n_meters; i++)
        add_meter(v, i, out);
    room -= n_meters;
    if (room > TABLES) {
        size_t rows = room - TABLES, half = rows - rows / 2;
        size_t hosts = v->now->n_hosts < half ? v->now->n_hosts : half;
        mk_buf_addc(out, '\n');
        top_add_hosts(v, hosts, out);
        mk_buf_addc(out, '\n');
        top_add_paths(v, rows - hosts, out);
    }
    while (count_lines(out) + 1 < v->rows)
        mk_buf_addc(out, '\n');
    if (v->rows > 2)
        add_footer(v, out);
}
