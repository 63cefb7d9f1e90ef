// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of `top` (top_tables.h).
 */
#include "top_tables.h"

#include "cell.h"
#include "line.h"

#include <stdio.h>
#include <stdlib.h>

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

void top_add_hosts(const struct top_view *v, size_t n, struct mk_buf *out)
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

void top_add_paths(const struct top_view *v, size_t n, struct mk_buf *out)
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
