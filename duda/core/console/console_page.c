// SPDX-License-Identifier: Apache-2.0
/*
 * The console of a service in HTML (console_page.h): one file without scripts, for light and dark screens and phones.
 */
#include "console/console_page.h"

#include "common/sanitize.h"
#include "service/counts.h"
#include "service/service.h"

#include <inttypes.h>

#define REFRESH_S "5"

static const char style[] =
    ":root{color-scheme:light dark;--line:#8884;--soft:#666;--bad:#b11}"
    "@media(prefers-color-scheme:dark){:root{--soft:#aaa;--bad:#f77}}"
    "body{background:Canvas;color:CanvasText;font:15px/1.45 system-ui,sans-serif;margin:0 "
    "auto;max-width:72rem;padding:1rem}"
    "h1{font-size:1.35rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}"
    "p{margin:.2rem 0;color:var(--soft)}a{color:inherit}"
    "dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr));gap:.6rem;margin:1rem 0}"
    "dl div{border:1px solid var(--line);border-radius:.4rem;padding:.4rem .6rem}"
    "dt{color:var(--soft);font-size:.8rem}dd{margin:0;font-size:1.15rem;font-variant-numeric:tabular-nums}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:.25rem .55rem;border-bottom:1px solid "
    "var(--line);white-space:nowrap;vertical-align:top}"
    "th{font-weight:600;font-size:.85rem}th:first-child,td:first-child{text-align:left}"
    "code,td.text{font-family:ui-monospace,monospace;font-size:.9em}"
    "td.text{text-align:left;white-space:pre-wrap;overflow-wrap:anywhere}.bad{color:var(--bad)}.none{color:var(--soft)"
    "}";

/* ── numbers ── */

static void add_duration(struct mk_buf *out, uint64_t us)
{
    if (us < 1000)
        mk_buf_addf(out, "%" PRIu64 " µs", us);
    else if (us < 1000000)
        mk_buf_addf(out, "%.1f ms", (double)us / 1e3);
    else
        mk_buf_addf(out, "%.2f s", (double)us / 1e6);
}

static void add_bytes(struct mk_buf *out, uint64_t bytes)
{
    if (bytes < 1024)
        mk_buf_addf(out, "%" PRIu64 " B", bytes);
    else if (bytes < 1024 * 1024)
        mk_buf_addf(out, "%.1f KB", (double)bytes / 1024);
    else
        mk_buf_addf(out, "%.1f MB", (double)bytes / (1024 * 1024));
}

static void add_uptime(struct mk_buf *out, int64_t seconds)
{
    long long days = seconds / 86400, rest = seconds % 86400;
    if (days)
        mk_buf_addf(out, "%lld d %lld h", days, rest / 3600);
    else
        mk_buf_addf(out, "%lld:%02lld:%02lld", rest / 3600, rest / 60 % 60, rest % 60);
}

/* ── the figures of the service ── */

static void begin_tile(struct mk_buf *out, const char *name, bool is_bad)
{
    mk_buf_addf(out, "<div><dt>%s<dd%s>", name, is_bad ? " class=bad" : "");
}

static void add_tile(struct mk_buf *out, const char *name, int64_t value, bool is_bad)
{
    begin_tile(out, name, is_bad && value);
    mk_buf_addf(out, "%" PRId64 "</div>", value);
}

static void add_time_tile(struct mk_buf *out, const char *name, const struct stats_times *t, uint64_t us)
{
    begin_tile(out, name, false);
    if (t->n)
        add_duration(out, us);
    else
        mk_buf_adds(out, MK_STR("–"));
    mk_buf_adds(out, MK_STR("</div>"));
}

static void add_summary(struct mk_buf *out, const struct stats *f)
{
    const struct stats_row *all = &f->total;
    mk_buf_adds(out, MK_STR("<dl>"));
    add_tile(out, "responses", (int64_t)all->responses, false);
    add_tile(out, "in progress", f->active, false);
    add_tile(out, "5xx", (int64_t)all->classes[4], true);
    add_tile(out, "timeouts", (int64_t)all->failures[COUNTS_TIMEOUT], true);
    add_tile(out, "aborted", (int64_t)all->failures[COUNTS_ABORTED], true);
    add_tile(out, "crashes", f->crashes, true);
    add_time_tile(out, "half within", &all->times, all->times.p50_us);
    add_time_tile(out, "90 % within", &all->times, all->times.p90_us);
    add_time_tile(out, "99 % within", &all->times, all->times.p99_us);
    begin_tile(out, "this version runs", false);
    add_uptime(out, f->uptime_s);
    mk_buf_adds(out, MK_STR("</div></dl>\n"));
}

/* ── routes ── */

static void add_cell(struct mk_buf *out, uint64_t n, bool is_bad)
{
    mk_buf_addf(out, "<td class=%s>%" PRIu64, !n ? "none" : is_bad ? "bad" : "n", n);
}

static void add_time_cell(struct mk_buf *out, const struct stats_times *t, uint64_t us)
{
    mk_buf_adds(out, MK_STR("<td>"));
    if (t->n)
        add_duration(out, us);
}

static void add_route(struct mk_buf *out, const struct stats_row *row)
{
    const struct stats_times *t = &row->times;
    mk_buf_adds(out, MK_STR("<tr><td><code>"));
    if (row->methods.len) {
        sanitize_html(out, row->methods);
        mk_buf_addc(out, ' ');
    }
    sanitize_html(out, row->pattern);
    mk_buf_adds(out, MK_STR("</code>"));
    for (unsigned i = 0; i < COUNTS_CLASSES; i++)
        add_cell(out, row->classes[i], i == 4);
    for (unsigned i = 0; i < COUNTS_FAILURES; i++)
        add_cell(out, row->failures[i], i != COUNTS_CLIENT_CLOSED);
    add_time_cell(out, t, t->p50_us);
    add_time_cell(out, t, t->p90_us);
    add_time_cell(out, t, t->p99_us);
    mk_buf_addc(out, '\n');
}

static void add_routes(struct mk_buf *out, const struct stats *f)
{
    mk_buf_adds(out,
                MK_STR("<h2>Routes</h2><div class=wide><table id=routes>\n<tr><th>route<th>1xx<th>2xx<th>3xx<th>4xx"
                       "<th>5xx<th>timeout<th>aborted<th>client closed<th>50 %<th>90 %<th>99 %\n"));
    for (unsigned i = 0; i < f->n; i++)
        add_route(out, &f->rows[i]);
    mk_buf_adds(out, MK_STR("</table></div>\n"));
}

/* ── packages and memory ── */

static void add_packages(struct mk_buf *out, const struct counts *counts)
{
    if (!counts->packages)
        return;
    mk_buf_adds(out, MK_STR("<h2>Packages</h2><div class=wide><table id=packages>\n"));
    for (const struct package_counts *p = counts->packages; p; p = p->next) {
        mk_buf_adds(out, MK_STR("<tr><td>"));
        sanitize_html(out, mk_str_c(p->package));
        mk_buf_adds(out, MK_STR(": "));
        sanitize_html(out, mk_str_c(p->help));
        mk_buf_addf(out, "<td>%" PRId64 "\n", mk_counter_read(p->counter));
    }
    mk_buf_adds(out, MK_STR("</table></div>\n"));
}

static void add_tasks(struct mk_buf *out, const struct stats_tasks *tasks)
{
    if (!tasks->has_any)
        return;
    mk_buf_adds(out, MK_STR("<h2>Tasks</h2><dl id=tasks>"));
    add_tile(out, "wait for a thread", tasks->queued, false);
    add_tile(out, "run", tasks->running, false);
    add_tile(out, "have run", (int64_t)tasks->done, false);
    add_tile(out, "refused", (int64_t)tasks->refused, true);
    mk_buf_adds(out, MK_STR("</dl>\n"));
}

static void add_memory(struct mk_buf *out, const struct stats_memory *m)
{
    const struct {
        const char *name;
        uint64_t bytes;
        bool is_known;
    } rows[] = {
        {"copy of the file", m->copy_bytes, true},
        {"code and data: address space", m->mapped_bytes, true},
        {"of that in memory", m->resident_bytes, m->has_pages},
        {"of that private to the process", m->private_bytes, m->has_pages},
        {"routes and settings", m->settings_bytes, true},
        {"structs of requests", m->request_bytes, true},
    };
    mk_buf_adds(out, MK_STR("<h2>Memory</h2><p>Without what the service has from malloc(), and bodies and responses of "
                            "requests.</p><div class=wide><table id=memory>\n"));
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        if (!rows[i].is_known)
            continue;
        mk_buf_addf(out, "<tr><td>%s<td>", rows[i].name);
        add_bytes(out, rows[i].bytes);
        mk_buf_addc(out, '\n');
    }
    mk_buf_adds(out, MK_STR("</table></div>\n"));
}

/* ── messages ── */

static bool is_bad(const struct last_line *line)
{
    return strcmp(line->kind, "error") == 0 || strcmp(line->kind, "bug") == 0;
}

static void add_messages(struct mk_buf *out, const struct stats *f)
{
    mk_buf_addf(out,
                "<h2>Messages</h2><p>%u of %" PRIu64 ", the last one first; <a href=messages>as text</a></p>"
                "<div class=wide><table id=messages>\n",
                f->n_lines, f->messages);
    for (unsigned i = f->n_lines; i-- > 0;) {
        const struct last_line *line = &f->lines[i];
        mk_buf_adds(out, MK_STR("<tr><td>"));
        console_text_time(out, line->wall_ms);
        mk_buf_addf(out, "<td%s>%s<td class=text>", is_bad(line) ? " class=bad" : "", line->kind);
        sanitize_html(out, mk_str(line->text, line->len));
        mk_buf_addc(out, '\n');
    }
    mk_buf_adds(out, MK_STR("</table></div>\n"));
}

/* ── the page ── */

static void add_head(struct mk_buf *out, const struct stats *f, bool refreshes)
{
    const struct service *s = f->service;
    mk_buf_adds(out, MK_STR("<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>"
                            "<meta name=viewport content=\"width=device-width,initial-scale=1\">"));
    if (refreshes)
        mk_buf_adds(out, MK_STR("<meta http-equiv=refresh content=" REFRESH_S ">"));
    mk_buf_adds(out, MK_STR("<title>"));
    sanitize_html(out, s->conf.name);
    mk_buf_addf(out, " – console</title><style>%s</style>\n<h1>", style);
    sanitize_html(out, s->conf.name);
    mk_buf_adds(out, MK_STR("</h1><p>"));
    sanitize_html(out, s->host);
    sanitize_html(out, s->self.url.len ? mk_str(s->self.url.data, s->self.url.len) : MK_STR("/"));
    mk_buf_adds(out, MK_STR(", "));
    console_text_time(out, f->wall_s * 1000);
    mk_buf_adds(out, refreshes ? MK_STR("; <a href=\"?stop\">stop</a>") : MK_STR("; <a href=\".\">refresh</a>"));
    mk_buf_adds(out, MK_STR("</p>\n"));
}

void console_page_write(struct mk_buf *out, const struct stats *f, bool refreshes)
{
    add_head(out, f, refreshes);
    add_summary(out, f);
    add_routes(out, f);
    add_packages(out, counts_of(f->service));
    add_tasks(out, &f->tasks);
    add_memory(out, &f->memory);
    add_messages(out, f);
}
