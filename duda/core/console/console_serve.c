// SPDX-License-Identifier: Apache-2.0
/*
 * Serves the console of a service (console_serve.h). The figures are read and written in a job, because they are of
 * many counters and of /proc.
 */
#include "console/console_serve.h"

#include "compat/old.h"
#include "console/console_page.h"
#include "route/dispatch.h"

#include <monkey/base/accept.h>
#include <monkey/kit/local_client.h>
#include <monkey/kit/request_job.h>
#include <monkey/plugin.h>

#include <errno.h>

enum { PAGE_BYTES_MAX = 4 << 20 };

enum console_view console_serve_find(const struct host_service *e, struct mk_str rest)
{
    enum console_view view = console_path_find(e->console, rest);
    if (view == CONSOLE_NONE && MK_UNLIKELY(console_of(e->service)->path.len) && !e->no_console)
        view = console_path_find(console_of(e->service)->path, rest);
    return view;
}

/* ── access ── */

/* Tells whether the request has come through a proxy that the server does not trust: its client is not known then. */
static bool is_proxied(struct mk_request *req)
{
    static const char headers[][16] = {"X-Forwarded-For", "Forwarded", "X-Real-IP"};
    struct mk_address peer = mk_request_peer(req);
    bool has_header = false;
    for (size_t i = 0; i < MK_COUNT_OF(headers); i++)
        has_header |= mk_request_header_by_name(req, mk_str_c(headers[i])).p != NULL;
    return has_header && !mk_generation_trusts(mk_worker_generation(mk_request_worker(req)), &peer);
}

static bool is_allowed(struct mk_request *req, const struct host_service *e)
{
    struct mk_address client = mk_request_client(req);
    return mk_networks_contain(&e->conf->console_allow, &client) && !is_proxied(req) && mk_local_client_names_host(req);
}

/* ── the job ── */

/* One view on its way. */
struct console_job {
    struct mk_request_job base;
    const struct service *service;
    enum console_view view;
    bool is_json, refreshes;
    struct mk_buf out;
};

static void write_view(struct mk_request_job *job)
{
    struct console_job *c = MK_CONTAINER_OF(job, struct console_job, base);
    struct stats *f = mk_account_alloc(NULL, sizeof(*f));
    if (!f) {
        c->out.err = -ENOMEM;
        return;
    }
    stats_read(f, c->service);
    if (c->view == CONSOLE_MESSAGES)
        console_text_messages(&c->out, f);
    else if (c->view == CONSOLE_MAP)
        console_text_map(&c->out, f);
    else if (c->is_json)
        console_json_write(&c->out, f);
    else
        console_page_write(&c->out, f, c->refreshes);
    mk_account_free(NULL, f, sizeof(*f));
}

static struct mk_str get_type(const struct console_job *c)
{
    if (c->view != CONSOLE_PAGE)
        return MK_STR("text/plain; charset=utf-8");
    return c->is_json ? MK_STR("application/json") : MK_STR("text/html; charset=utf-8");
}

/* Nothing is fetched or run that could come from elsewhere, and the page is in no frame of another one. */
static int add_headers(struct mk_request *req, struct mk_str type)
{
    const struct {
        struct mk_str name, value;
    } rows[] = {
        {MK_STR("Content-Type"), type},
        {MK_STR("Cache-Control"), MK_STR("no-store")},
        {MK_STR("Vary"), MK_STR("Accept")},
        {MK_STR("X-Content-Type-Options"), MK_STR("nosniff")},
        {MK_STR("Referrer-Policy"), MK_STR("no-referrer")},
        {MK_STR("Content-Security-Policy"), MK_STR("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                                                   "form-action 'none'; frame-ancestors 'none'")},
    };
    int err = 0;
    for (size_t i = 0; i < MK_COUNT_OF(rows) && err == 0; i++)
        err = mk_response_header(req, rows[i].name, rows[i].value);
    return err;
}

static void send_view(const struct console_job *c, struct mk_request *req)
{
    int err = c->out.err ? c->out.err : add_headers(req, get_type(c));
    if (err == 0)
        err = mk_response_write(req, mk_buf_str(&c->out));
    if (err < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

static void end_view(struct mk_request_job *job, struct mk_request *req)
{
    struct console_job *c = MK_CONTAINER_OF(job, struct console_job, base);
    if (req)
        send_view(c, req);
    mk_buf_release(&c->out);
}

static const struct mk_request_job_type view_job = {sizeof(struct console_job), write_view, end_view};

/* ── requests ── */

/* Tells whether Accept names JSON, and prefers it to HTML, which browsers name. */
static bool wants_json(struct mk_request *req)
{
    static const struct mk_accept_offer offers[] = {
        {.type = MK_STR("text/html"), .only_by_name = true},
        {.type = MK_STR("application/json"), .only_by_name = true},
    };
    return mk_accept_choose(mk_request_header_by_name(req, MK_STR("Accept")), offers, 2, 0) == 1;
}

static void start_job(struct mk_request *req, const struct host_service *e, enum console_view view)
{
    struct console_job *c = mk_request_job_new(req, &view_job, MK_STR_NONE);
    if (c) {
        c->service = e->service;
        c->view = view;
        c->is_json = wants_json(req);
        c->refreshes = !mk_str_eq(mk_request_query(req), MK_STR("stop"));
        mk_buf_init(&c->out, PAGE_BYTES_MAX);
    }
    if (!c || mk_request_job_start(&c->base) < 0)
        mk_response_error(req, 503);
}

int console_serve_view(struct mk_request *req, const struct host_service *e, enum console_view view)
{
    enum mk_method method = mk_request_method(req);
    if (!is_allowed(req, e)) {
        mk_response_error(req, 403);
    } else if (method != MK_GET && method != MK_HEAD) {
        mk_response_method_not_allowed(req, MK_STR("GET, HEAD"));
    } else if (view == CONSOLE_SLASH) {
        dispatch_redirect(req, old_is(e->service));
    } else {
        start_job(req, e, view);
    }
    return 0;
}
