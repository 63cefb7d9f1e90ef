// SPDX-License-Identifier: Apache-2.0
/*
 * The command `explain`: what would become of a request. The plugins tell it (mk_explain()); the file is then looked up
 * by a job, because that may wait for a disk.
 */
#include "commands.h"

#include <monkey/inspect.h>
#include <monkey/json.h>

#include <errno.h>
#include <limits.h>

struct explain_run {
    struct run run; /* `client` is NULL once it has gone */
    struct mk_job job;
    struct mk_worker *worker; /* held: the host is of its generation */
    struct mk_explain_result result;
    const struct mk_plugin *plugin; /* that responds; NULL: none */
    size_t found_len;
    char found[2 * PATH_MAX];
};

static void add_step(const struct mk_explain_step *step, void *ctx)
{
    struct client *c = ctx;
    if (!client_has_room(c))
        return;
    mk_json_open(&c->out, NULL, '{');
    mk_json_cstr(&c->out, "phase", step->phase);
    mk_json_str(&c->out, "plugin", step->plugin);
    mk_json_cstr(&c->out, "effect", step->effect);
    mk_json_str(&c->out, "what", step->text);
    mk_json_str(&c->out, "place", step->place);
    mk_json_close_line(&c->out);
}

/* ── the file ── */

static void free_run(struct explain_run *r)
{
    mk_buf_release(&r->result.path);
    mk_account_free(NULL, r, sizeof(*r));
}

/* On a disk thread. */
static void look_up_path(struct mk_job *job)
{
    struct explain_run *r = MK_CONTAINER_OF(job, struct explain_run, job);
    struct mk_buf out;
    mk_buf_init_fixed(&out, r->found, sizeof(r->found));
    r->plugin = mk_explain_path(r->result.host, mk_str(mk_buf_cstr(&r->result.path), r->result.path.len), &out);
    r->found_len = out.len;
}

static void report_file(struct client *c, const struct explain_run *r)
{
    mk_json_open(&c->out, NULL, '{');
    mk_json_cstr(&c->out, "phase", "file");
    mk_json_cstr(&c->out, "plugin", r->plugin ? r->plugin->name : "");
    mk_json_cstr(&c->out, "effect", "note");
    mk_json_str(&c->out, "what", r->plugin ? mk_str(r->found, r->found_len) : MK_STR("there is no file"));
    mk_json_cstr(&c->out, "place", "");
    mk_json_close_line(&c->out);
}

static void finish_lookup(struct mk_job *job)
{
    struct explain_run *r = MK_CONTAINER_OF(job, struct explain_run, job);
    struct mk_worker *worker = r->worker;
    struct client *c = r->run.client;
    if (c) {
        report_file(c, r);
        client_end(c, NULL);
    }
    free_run(r);
    mk_worker_put(worker);
    if (c)
        client_flush(c);
}

static void stop_explain(struct run *run)
{
    run->client = NULL; /* the job frees the run */
}

static int start_lookup(struct client *c, const struct mk_explain_result *result)
{
    struct explain_run *r = mk_account_alloc(NULL, sizeof(*r));
    if (!r)
        return -ENOMEM;
    *r = (struct explain_run){.run = {.client = c, .stop = stop_explain},
                              .job = {.work = look_up_path, .done = finish_lookup},
                              .worker = mk_worker_get(client_worker(c)),
                              .result = *result};
    int err = mk_job_submit(c->thread->base.loop, &r->job);
    if (err == 0) {
        c->run = &r->run;
        return 0;
    }
    mk_worker_put(r->worker);
    mk_account_free(NULL, r, sizeof(*r));
    return err;
}

/* ── the command ── */

/* Reads "Name: value" or client=ADDRESS. */
static bool read_argument(struct mk_str word, struct mk_explain_request *request, struct mk_explain_header *headers)
{
    static const struct mk_str client = MK_STR("client=");
    const char *colon = memchr(word.p, ':', word.len);
    if (mk_str_starts(word, client))
        return mk_address_parse(mk_str(word.p + client.len, word.len - client.len), &request->client) == 0;
    if (!colon || colon == word.p)
        return false;
    size_t n = (size_t)(colon - word.p);
    headers[request->n_headers++] =
        (struct mk_explain_header){mk_str(word.p, n), mk_str_trim(mk_str(colon + 1, word.len - n - 1))};
    return true;
}

static void explain_request(struct client *c, const struct mk_explain_request *request)
{
    struct mk_explain_result result = {.host = NULL};
    client_begin(c, "table");
    int err = mk_explain(client_worker(c), request, add_step, c, &result);
    if (err < 0) {
        client_end(c, err == -ENOMEM ? "out of memory" : "the method or the URL is malformed: explain GET /path?query");
        return;
    }
    if (result.path.len && start_lookup(c, &result) == 0)
        return;
    mk_buf_release(&result.path);
    client_end(c, NULL);
}

void explain_run(struct client *c, const struct words *words)
{
    struct mk_explain_header headers[WORDS_MAX];
    struct mk_explain_request request = {.headers = headers};
    if (words->n < 3) {
        client_refuse(c, "explain needs a method and a URL: explain GET http://example.org/path");
        return;
    }
    request.method = words->items[1];
    request.url = words->items[2];
    for (unsigned i = 3; i < words->n; i++) {
        if (read_argument(words->items[i], &request, headers))
            continue;
        client_refuse(c, "%.*s is neither a header (Name: value) nor client=ADDRESS",
                      (int)(words->items[i].len < 100 ? words->items[i].len : 100), words->items[i].p);
        return;
    }
    explain_request(c, &request);
}
