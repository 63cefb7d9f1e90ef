// SPDX-License-Identifier: Apache-2.0
/*
 * Draws `top`: a head, a meter in each line, and as many hosts and paths as the screen has room for.
 */
#include "shell.h"

#include <monkey/kit/json.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * What `top` shows, and how it is written elsewhere than on a screen.
 */
void top_view_compare(struct top_view *v)
{
    double seconds = v->now->at - v->before->at;
    sample_compare(&v->before->total, &v->now->total, seconds, &v->r);
    if (seconds <= 0)
        return;
    if (v->n_history == TOP_HISTORY_MAX) {
        memmove(v->requests, v->requests + 1, sizeof(v->requests) - sizeof(v->requests[0]));
        memmove(v->sent, v->sent + 1, sizeof(v->sent) - sizeof(v->sent[0]));
        v->n_history--;
    }
    v->requests[v->n_history] = v->r.requests;
    v->sent[v->n_history++] = v->r.sent;
}

void top_view_add_line(const struct top_view *v, struct mk_buf *out)
{
    mk_buf_addf(out, "%.0f requests/s, %lld connections, %lld requests under way, ", v->r.requests, v->now->connections,
                v->now->under_way);
    mk_buf_addf(out, "sent %s, received %s, ", cell_bytes(v->r.sent, "/s").text, cell_bytes(v->r.received, "/s").text);
    if (v->r.timed)
        mk_buf_addf(out, "p50 %s, p99 %s, ", cell_us(v->r.p50_us).text, cell_us(v->r.p99_us).text);
    mk_buf_addf(out, "memory %s, ", cell_bytes((double)v->now->memory_bytes, "").text);
    text_add_safe(out, v->now->state);
    mk_buf_addc(out, '\n');
}

void top_view_add_json(const struct top_view *v, struct mk_buf *out)
{
    mk_json_open(out, NULL, '{');
    mk_json_real(out, "requests_per_s", round(10 * v->r.requests) / 10);
    mk_json_real(out, "sent_bytes_per_s", round(v->r.sent));
    mk_json_real(out, "received_bytes_per_s", round(v->r.received));
    if (v->r.timed) {
        mk_json_number(out, "p50_us", (int64_t)v->r.p50_us);
        mk_json_number(out, "p99_us", (int64_t)v->r.p99_us);
    }
    mk_json_number(out, "connections", v->now->connections);
    mk_json_number(out, "requests_under_way", v->now->under_way);
    mk_json_number(out, "memory_bytes", v->now->memory_bytes);
    mk_json_close_line(out);
}

enum { SHARE_WIDTH = 5, GAP = 2 };

/* Returns the columns of a bar; 0: the screen is too narrow for one. */
static size_t get_bar_width(const struct top_view *v)
{
    return v->style.columns < 64 ? 0 : v->style.columns < 100 ? 8 : v->style.columns / 6;
}

static size_t get_share_width(const struct top_view *v)
{
    return GAP + get_bar_width(v) + SHARE_WIDTH;
}

static void add_share(const struct top_view *v, double share, enum text_colour colour, struct line *line)
{
    MK_BUF_ON_STACK(out, TOP_HISTORY_MAX * 3);
    text_add_bar(&out, share, get_bar_width(v), v->style.unicode);
    line_skip(line, GAP);
    line_add(line, colour, mk_buf_cstr(&out));
    line_addf(line, PLAIN, "%*.0f%%", SHARE_WIDTH - 1, share * 100);
}

/* ── hosts ── */

struct host_row {
    const char *name;
    struct sample_rates r;
};

static struct cell make_host_rate(const struct host_row *row)
{
    return cell_rate(row->r.requests, "");
}

static struct cell make_host_errors(const struct host_row *row)
{
    struct cell cell = {"-"};
    if (row->r.classes[5] > 0)
        snprintf(cell.text, sizeof(cell.text), "%.1f%%", row->r.classes[5] / row->r.requests * 100);
    return cell;
}

static struct cell make_host_sent(const struct host_row *row)
{
    return cell_bytes(row->r.sent, "");
}

static struct cell make_host_p50(const struct host_row *row)
{
    return cell_us(row->r.p50_us);
}

static struct cell make_host_p99(const struct host_row *row)
{
    return cell_us(row->r.p99_us);
}

/* Columns between the name and the share; `from`: the columns of a screen that shows it. */
static const struct {
    const char *heading;
    size_t width, from;
    struct cell (*make)(const struct host_row *row);
    enum text_colour colour;
} host_columns[] = {{"REQUESTS/S", 12, 0, make_host_rate, BOLD},
                    {"5XX", 7, 64, make_host_errors, RED},
                    {"SENT/S", 10, 40, make_host_sent, PLAIN},
                    {"P50", 9, 72, make_host_p50, PLAIN},
                    {"P99", 9, 56, make_host_p99, PLAIN}};

enum { HOST_COLUMNS = MK_COUNT_OF(host_columns) };

/* Returns the columns that are left for the name of a host. */
static size_t get_host_width(const struct top_view *v)
{
    size_t used = 1 + get_share_width(v);
    for (unsigned i = 0; i < HOST_COLUMNS; i++)
        used += v->style.columns >= host_columns[i].from ? host_columns[i].width : 0;
    return v->style.columns > used ? v->style.columns - used : 0;
}

static void add_host_heading(const struct top_view *v, size_t shown, struct mk_buf *out)
{
    struct line line = line_begin(out, &v->style);
    char name[64] = " HOST";
    if (shown < v->now->n_hosts)
        snprintf(name, sizeof(name), " HOST (%zu of %u)", shown, v->now->n_hosts);
    line_field(&line, HEADING, name, 1 + get_host_width(v), false);
    for (unsigned i = 0; i < HOST_COLUMNS; i++)
        if (v->style.columns >= host_columns[i].from)
            line_field(&line, HEADING, host_columns[i].heading, host_columns[i].width, true);
    line_skip(&line, GAP);
    line_add(&line, HEADING, "SHARE");
    line_end(&line, true);
}

static void add_host_cell(struct line *line, const struct host_row *row, unsigned i)
{
    struct cell cell = host_columns[i].make(row);
    enum text_colour colour = strcmp(cell.text, "-") == 0 ? DIM : host_columns[i].colour;
    line_field(line, colour, cell.text, host_columns[i].width, true);
}

static void add_host(const struct top_view *v, const struct host_row *row, struct mk_buf *out)
{
    struct line line = line_begin(out, &v->style);
    line_skip(&line, 1);
    line_field(&line, PLAIN, row->name, get_host_width(v), false);
    for (unsigned i = 0; i < HOST_COLUMNS; i++)
        if (v->style.columns >= host_columns[i].from)
            add_host_cell(&line, row, i);
    add_share(v, v->r.requests > 0 ? row->r.requests / v->r.requests : 0, GREEN, &line);
    line_end(&line, false);
}

static int compare_hosts(const void *left, const void *right)
{
    const struct host_row *a = left, *b = right;
    return a->r.requests < b->r.requests ? 1 : a->r.requests > b->r.requests ? -1 : strcmp(a->name, b->name);
}

static void add_hosts(const struct top_view *v, size_t n, struct mk_buf *out)
{
    static struct host_row rows[SAMPLE_HOSTS_MAX];
    for (unsigned i = 0; i < v->now->n_hosts; i++) {
        const struct sample_host *host = &v->now->hosts[i];
        rows[i].name = host->name;
        sample_compare(sample_find(v->before, host->name), &host->counts, v->now->at - v->before->at, &rows[i].r);
    }
    qsort(rows, v->now->n_hosts, sizeof(rows[0]), compare_hosts);
    add_host_heading(v, n, out);
    for (size_t i = 0; i < n; i++)
        add_host(v, &rows[i], out);
}

/* ── paths ── */

static void add_path(const struct top_view *v, const char *const *texts, double share, struct mk_buf *out)
{
    size_t host = v->style.columns / 5, rest = 1 + 8 + host + GAP + get_share_width(v);
    struct line line = line_begin(out, &v->style);
    line_skip(&line, 1);
    line_field(&line, PLAIN, texts[0], 8, false);
    line_field(&line, PLAIN, texts[1], host, false);
    line_skip(&line, GAP);
    line_field(&line, PLAIN, texts[2], v->style.columns > rest ? v->style.columns - rest : 0, false);
    add_share(v, share, CYAN, &line);
    line_end(&line, false);
}

static void add_path_heading(const struct top_view *v, struct mk_buf *out)
{
    struct line line = line_begin(out, &v->style);
    size_t host = v->style.columns / 5, rest = 1 + 8 + host + GAP + get_share_width(v);
    line_field(&line, HEADING, " METHOD", 9, false);
    line_field(&line, HEADING, "HOST", host + GAP, false);
    line_field(&line, HEADING, "PATH (samples of requests under way)",
               v->style.columns > rest ? v->style.columns - rest : 0, false);
    line_skip(&line, GAP);
    line_add(&line, HEADING, "SHARE");
    line_end(&line, true);
}

static void add_paths(const struct top_view *v, size_t n, struct mk_buf *out)
{
    add_path_heading(v, out);
    paths_sort(v->paths);
    for (size_t i = 0; i < n && i < v->paths->n; i++) {
        const struct paths_row *row = &v->paths->rows[i];
        add_path(v, (const char *const[]){row->method, row->host, row->path}, row->weight / v->paths->total, out);
    }
    if (!v->paths->n && n) {
        struct line line = line_begin(out, &v->style);
        line_addf(&line, DIM, " no request was under way in %lu samples", v->paths->n_samples);
        line_end(&line, false);
    }
}

enum { LABEL_WIDTH = 12, VALUE_WIDTH = 13 };

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
        add_hosts(v, hosts, out);
        mk_buf_addc(out, '\n');
        add_paths(v, rows - hosts, out);
    }
    while (count_lines(out) + 1 < v->rows)
        mk_buf_addc(out, '\n');
    if (v->rows > 2)
        add_footer(v, out);
}
