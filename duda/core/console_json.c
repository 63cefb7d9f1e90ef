// SPDX-License-Identifier: Apache-2.0
/*
 * The console of a service as JSON (console_page.h).
 */
#include "clean.h"
#include "console_page.h"
#include "service.h"

#include <inttypes.h>

static void add_number(struct mk_buf *out, const char *name, uint64_t value)
{
    mk_buf_addf(out, "\"%s\":%" PRIu64 ",", name, value);
}

static void add_text(struct mk_buf *out, const char *name, struct mk_str value)
{
    mk_buf_addf(out, "\"%s\":", name);
    clean_json(out, value);
    mk_buf_addc(out, ',');
}

/* Writes `end` in the place of the last comma, if there is one. */
static void end_list(struct mk_buf *out, const char *end)
{
    if (!out->err && out->len && out->data[out->len - 1] == ',')
        out->len--;
    mk_buf_adds(out, mk_str_c(end));
}

static void add_row(struct mk_buf *out, const struct figures_row *row)
{
    const struct figures_times *t = &row->times;
    add_number(out, "responses", row->responses);
    for (unsigned i = 0; i < COUNTS_CLASSES; i++)
        mk_buf_addf(out, "\"%uxx\":%" PRIu64 ",", i + 1, row->classes[i]);
    for (unsigned i = 0; i < COUNTS_FAILURES; i++)
        add_number(out, counts_failure_names[i], row->failures[i]);
    mk_buf_adds(out, MK_STR("\"duration_us\":{"));
    add_number(out, "count", t->n);
    add_number(out, "sum", t->sum_us);
    add_number(out, "p50", t->p50_us);
    add_number(out, "p90", t->p90_us);
    add_number(out, "p99", t->p99_us);
    end_list(out, "}");
}

static void add_routes(struct mk_buf *out, const struct figures *f)
{
    mk_buf_adds(out, MK_STR("\"routes\":["));
    for (unsigned i = 0; i < f->n; i++) {
        mk_buf_addc(out, '{');
        add_text(out, "method", f->rows[i].methods);
        add_text(out, "route", f->rows[i].pattern);
        add_row(out, &f->rows[i]);
        mk_buf_adds(out, MK_STR("},"));
    }
    end_list(out, "],");
}

static void add_packages(struct mk_buf *out, const struct counts *counts)
{
    mk_buf_adds(out, MK_STR("\"packages\":{"));
    for (const struct package_counts *p = counts->packages; p; p = p->next)
        mk_buf_addf(out, "\"%s\":%" PRId64 ",", p->name, mk_counter_read(p->counter));
    end_list(out, "},");
}

static void add_tasks(struct mk_buf *out, const struct figures_tasks *tasks)
{
    mk_buf_addf(out, "\"tasks\":{\"queued\":%" PRId64 ",\"running\":%" PRId64 ",", tasks->queued, tasks->running);
    add_number(out, "done", tasks->done);
    add_number(out, "refused", tasks->refused);
    end_list(out, "},");
}

static void add_memory(struct mk_buf *out, const struct figures_memory *m)
{
    mk_buf_adds(out, MK_STR("\"memory_bytes\":{"));
    add_number(out, "copy", m->copy_bytes);
    add_number(out, "mapped", m->mapped_bytes);
    if (m->has_pages) {
        add_number(out, "resident", m->resident_bytes);
        add_number(out, "private", m->private_bytes);
    }
    add_number(out, "settings", m->settings_bytes);
    add_number(out, "requests", m->request_bytes);
    end_list(out, "},");
}

static void add_messages(struct mk_buf *out, const struct figures *f)
{
    mk_buf_adds(out, MK_STR("\"messages\":["));
    for (unsigned i = 0; i < f->n_lines; i++) {
        const struct recent_line *line = &f->lines[i];
        mk_buf_adds(out, MK_STR("{\"time\":\""));
        console_text_time(out, line->wall_ms);
        mk_buf_addf(out, "\",\"kind\":\"%s\",\"text\":", line->kind);
        clean_json(out, mk_str(line->text, line->len));
        mk_buf_adds(out, MK_STR("},"));
    }
    end_list(out, "]");
}

void console_json_write(struct mk_buf *out, const struct figures *f)
{
    const struct service *s = f->service;
    mk_buf_addc(out, '{');
    add_text(out, "host", s->host);
    add_text(out, "service", s->conf.name);
    add_text(out, "url", mk_str(s->self.url.data, s->self.url.len));
    add_number(out, "time_s", (uint64_t)f->wall_s);
    add_number(out, "uptime_s", (uint64_t)f->uptime_s);
    mk_buf_addf(out, "\"active\":%" PRId64 ",", f->active);
    add_number(out, "crashes", (uint64_t)f->crashes);
    add_row(out, &f->total);
    mk_buf_addc(out, ',');
    add_routes(out, f);
    add_packages(out, &s->counts);
    add_tasks(out, &f->tasks);
    add_memory(out, &f->memory);
    add_number(out, "messages_in_all", f->messages);
    add_messages(out, f);
    mk_buf_adds(out, MK_STR("}\n"));
}
