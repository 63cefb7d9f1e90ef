// SPDX-License-Identifier: Apache-2.0
/*
 * What a console has to say as plain text and as JSON (console_page.h).
 */
#include "console/console_page.h"

#include "common/sanitize.h"
#include "service/counts.h"
#include "service/service.h"

#include <monkey/base/time.h>
#include <monkey/kit/json.h>

/* ── text ── */

void console_text_time(struct mk_buf *out, int64_t wall_ms)
{
    char text[MK_TIME_ISO_BYTES];
    mk_buf_add(out, text, mk_time_iso(wall_ms / 1000, text));
    mk_buf_addf(out, ".%03uZ", (unsigned)(wall_ms % 1000));
}

void console_text_messages(struct mk_buf *out, const struct stats *f)
{
    for (unsigned i = 0; i < f->n_lines; i++) {
        const struct last_line *line = &f->lines[i];
        console_text_time(out, line->wall_ms);
        mk_buf_addf(out, " %-5s %.*s\n", line->kind, (int)line->len, line->text);
    }
}

void console_text_map(struct mk_buf *out, const struct stats *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        char text[1024];
        const struct stats_row *row = &f->rows[i];
        if (row->methods.len)
            mk_buf_addf(out, "%.*s %.*s\n", MK_STR_ARG(row->methods),
                        (int)sanitize_text(text, sizeof(text), row->pattern), text);
    }
}

/* ── JSON ── */

static void add_row(struct mk_buf *out, const struct stats_row *row)
{
    const struct stats_times *t = &row->times;
    mk_json_number(out, "responses", (int64_t)row->responses);
    for (unsigned i = 0; i < COUNTS_CLASSES; i++)
        mk_json_number(out, (const char[]){(char)('1' + i), 'x', 'x', '\0'}, (int64_t)row->classes[i]);
    for (unsigned i = 0; i < COUNTS_FAILURES; i++)
        mk_json_number(out, counts_failure_names[i], (int64_t)row->failures[i]);
    mk_json_open(out, "duration_us", '{');
    mk_json_number(out, "count", (int64_t)t->n);
    mk_json_number(out, "sum", (int64_t)t->sum_us);
    mk_json_number(out, "p50", (int64_t)t->p50_us);
    mk_json_number(out, "p90", (int64_t)t->p90_us);
    mk_json_number(out, "p99", (int64_t)t->p99_us);
    mk_json_close(out, '}');
}

static void add_routes(struct mk_buf *out, const struct stats *f)
{
    mk_json_open(out, "routes", '[');
    for (unsigned i = 0; i < f->n; i++) {
        mk_json_open(out, NULL, '{');
        mk_json_str(out, "method", f->rows[i].methods);
        mk_json_str(out, "route", f->rows[i].pattern);
        add_row(out, &f->rows[i]);
        mk_json_close(out, '}');
    }
    mk_json_close(out, ']');
}

static void add_packages(struct mk_buf *out, const struct counts *counts)
{
    mk_json_open(out, "packages", '{');
    for (const struct package_counts *p = counts->packages; p; p = p->next)
        mk_json_number(out, p->name, mk_counter_read(p->counter));
    mk_json_close(out, '}');
}

static void add_tasks(struct mk_buf *out, const struct stats_tasks *tasks)
{
    mk_json_open(out, "tasks", '{');
    mk_json_number(out, "queued", tasks->queued);
    mk_json_number(out, "running", tasks->running);
    mk_json_number(out, "done", (int64_t)tasks->done);
    mk_json_number(out, "refused", (int64_t)tasks->refused);
    mk_json_close(out, '}');
}

static void add_memory(struct mk_buf *out, const struct stats_memory *m)
{
    mk_json_open(out, "memory_bytes", '{');
    mk_json_number(out, "copy", (int64_t)m->copy_bytes);
    mk_json_number(out, "mapped", (int64_t)m->mapped_bytes);
    if (m->has_pages) {
        mk_json_number(out, "resident", (int64_t)m->resident_bytes);
        mk_json_number(out, "private", (int64_t)m->private_bytes);
    }
    mk_json_number(out, "settings", (int64_t)m->settings_bytes);
    mk_json_number(out, "requests", (int64_t)m->request_bytes);
    mk_json_close(out, '}');
}

static void add_messages(struct mk_buf *out, const struct stats *f)
{
    mk_json_open(out, "messages", '[');
    for (unsigned i = 0; i < f->n_lines; i++) {
        const struct last_line *line = &f->lines[i];
        mk_json_open(out, NULL, '{');
        mk_json_key(out, MK_STR("time"));
        mk_buf_addc(out, '"');
        console_text_time(out, line->wall_ms);
        mk_buf_addc(out, '"');
        mk_json_cstr(out, "kind", line->kind);
        mk_json_str(out, "text", mk_str(line->text, line->len));
        mk_json_close(out, '}');
    }
    mk_json_close(out, ']');
}

void console_json_write(struct mk_buf *out, const struct stats *f)
{
    const struct service *s = f->service;
    mk_json_open(out, NULL, '{');
    mk_json_str(out, "host", s->host);
    mk_json_str(out, "service", s->conf.name);
    mk_json_str(out, "url", mk_str(s->self.url.data, s->self.url.len));
    mk_json_number(out, "time_s", f->wall_s);
    mk_json_number(out, "uptime_s", f->uptime_s);
    mk_json_number(out, "active", f->active);
    mk_json_number(out, "crashes", (int64_t)f->crashes);
    add_row(out, &f->total);
    add_routes(out, f);
    add_packages(out, counts_of(s));
    add_tasks(out, &f->tasks);
    add_memory(out, &f->memory);
    mk_json_number(out, "messages_in_all", (int64_t)f->messages);
    add_messages(out, f);
    mk_json_close_line(out);
}
