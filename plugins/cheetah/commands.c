// SPDX-License-Identifier: Apache-2.0
#include "cheetah.h"

#include <monkey/counters.h>
#include <monkey/kit/json.h>

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum { PATTERN_BYTES = 256, NAME_BYTES = 1024 };

struct counts_query {
    struct client *client;
    char pattern[PATTERN_BYTES];
};

/* Adds the buckets that are not empty, as "END:NUMBER END:NUMBER ..." with the microseconds after the bucket. */
static void add_buckets(struct mk_buf *out, const uint64_t *buckets)
{
    char text[MK_COUNTER_BUCKETS * 44]; /* two numbers of 20 digits, and what separates them */
    int len = 0;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++) {
        uint64_t end = mk_counter_bucket_end_us(i);
        const char *blank = len ? " " : "";
        if (buckets[i] && end == UINT64_MAX)
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%sinf:%" PRIu64, blank, buckets[i]);
        else if (buckets[i])
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%" PRIu64 ":%" PRIu64, blank, end, buckets[i]);
    }
    mk_json_str(out, "_buckets", mk_str(text, (size_t)len));
}

static void add_counter(struct mk_buf *out, const struct mk_counter_value *v, const char *name)
{
    static const char *const kinds[] = {"sum", "level", "histogram"};
    mk_json_open(out, NULL, '{');
    mk_json_cstr(out, "counter", name);
    mk_json_str(out, "labels", v->labels);
    mk_json_cstr(out, "kind", kinds[v->kind]);
    mk_json_number(out, "value", v->value);
    if (v->kind == MK_COUNTER_HISTOGRAM) {
        mk_json_number(out, "sum_us", (int64_t)v->sum_us);
        add_buckets(out, v->buckets);
    }
    mk_json_str(out, "help", v->help);
    mk_json_close_line(out);
}

static int show_counter(const struct mk_counter_value *v, void *ctx)
{
    struct counts_query *q = ctx;
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "%.*s%s%.*s", MK_STR_ARG(v->plugin), v->plugin.len ? "_" : "", MK_STR_ARG(v->name));
    if (fnmatch(q->pattern, name, 0) != 0)
        return 0;
    if (!client_has_room(q->client))
        return 1;
    add_counter(&q->client->out, v, name);
    return 0;
}

static void run_counters(struct client *c, const struct words *words)
{
    struct counts_query q = {.client = c, .pattern = "*"};
    if (words->n > 1)
        snprintf(q.pattern, sizeof(q.pattern), "*%.*s*", (int)(words->items[1].len < 200 ? words->items[1].len : 200),
                 words->items[1].p);
    client_begin(c, "table");
    mk_counters_each(show_counter, &q);
    client_end(c, NULL);
}

/*
 * The command `explain`: what would become of a request. The plugins tell it (mk_explain()); the file is then looked up
 * by a job, because that may wait for a disk. If it has another path, what holds for that one is told next.
 */
struct explain_run {
    struct run run; /* `client` is NULL once it has gone */
    struct mk_job job;
    struct mk_worker *worker; /* held: the host is of its generation */
    struct mk_explain_result result;
    struct mk_arena arena; /* of the request */
    struct mk_explain_request request;
    struct mk_explain_header headers[WORDS_MAX];
    const struct mk_plugin *plugin; /* that responds; NULL: none */
    size_t found_len, decided_len;
    char found[2 * PATH_MAX], decided[PATH_MAX];
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

/* On a disk thread. */
static void look_up_path(struct mk_job *job)
{
    struct explain_run *r = MK_CONTAINER_OF(job, struct explain_run, job);
    struct mk_buf out, decided;
    mk_buf_init_fixed(&out, r->found, sizeof(r->found));
    mk_buf_init_fixed(&decided, r->decided, sizeof(r->decided));
    struct mk_str path = mk_str(mk_buf_cstr(&r->result.path), r->result.path.len);
    r->plugin = mk_explain_path(r->result.host, path, &out, &decided);
    r->found_len = out.len;
    r->decided_len = decided.len;
}

static void free_lookup(struct explain_run *r)
{
    mk_buf_release(&r->result.path);
    mk_arena_release(&r->arena);
    mk_account_free(NULL, r, sizeof(*r));
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

/* Access goes by the path of the file, too. */
static void report_lookup(struct client *c, const struct explain_run *r)
{
    struct mk_str decided = mk_str(r->decided, r->decided_len);
    if (!decided.len || !mk_explain_access(r->worker, &r->request, decided, add_step, c))
        report_file(c, r);
}

static void finish_lookup(struct mk_job *job)
{
    struct explain_run *r = MK_CONTAINER_OF(job, struct explain_run, job);
    struct mk_worker *worker = r->worker;
    struct client *c = r->run.client;
    if (c) {
        report_lookup(c, r);
        client_end(c, NULL);
    }
    free_lookup(r);
    mk_worker_put(worker);
    if (c)
        client_flush(c);
}

static void stop_explain(struct run *run)
{
    run->client = NULL; /* the job frees the run */
}

/* Copies the request, whose strings are those of a line that is read. Returns 0 or -ENOMEM. */
static int copy_request(struct explain_run *r, const struct mk_explain_request *request)
{
    struct mk_explain_request *to = &r->request;
    *to = (struct mk_explain_request){.method = mk_arena_dup(&r->arena, request->method),
                                      .url = mk_arena_dup(&r->arena, request->url),
                                      .headers = r->headers,
                                      .n_headers = request->n_headers,
                                      .client = request->client};
    bool is_whole = to->method.p && to->url.p;
    for (unsigned i = 0; i < request->n_headers; i++) {
        r->headers[i].name = mk_arena_dup(&r->arena, request->headers[i].name);
        r->headers[i].value = mk_arena_dup(&r->arena, request->headers[i].value);
        is_whole = is_whole && r->headers[i].name.p && r->headers[i].value.p;
    }
    return is_whole ? 0 : -ENOMEM;
}

/* Takes the result in any case. */
static int start_lookup(struct client *c, const struct mk_explain_request *request, struct mk_explain_result *result)
{
    struct explain_run *r = mk_account_alloc(NULL, sizeof(*r));
    if (!r) {
        mk_buf_release(&result->path);
        return -ENOMEM;
    }
    *r = (struct explain_run){.run = {.client = c, .stop = stop_explain},
                              .job = {.work = look_up_path, .done = finish_lookup},
                              .result = *result};
    mk_arena_init(&r->arena, NULL, 2 * WORDS_LINE_BYTES, NULL, 0);
    int err = copy_request(r, request);
    if (err == 0)
        err = mk_job_submit(c->thread->base.loop, &r->job);
    if (err < 0) {
        free_lookup(r);
        return err;
    }
    r->worker = mk_worker_get(client_worker(c));
    c->run = &r->run;
    return 0;
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
    if (!result.path.len)
        mk_buf_release(&result.path);
    else if (start_lookup(c, request, &result) == 0)
        return;
    client_end(c, NULL);
}

static void run_explain(struct client *c, const struct words *words)
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

/* clang-format off */
const struct command commands[] = {
    {"help", 'h', "[COMMAND]", "lists the commands, or explains one", info_help, "command"},
    {"status", 's', "", "the server at a glance", info_status, NULL},
    {"uptime", 'u', "", "how long the server has run", info_uptime, NULL},
    {"config", 'f', "[HOST]", "the effective configuration, with the origin of each value", info_config, "host"},
    {"plugins", 'g', "", "the loaded plugins, in the order in which requests pass them", info_plugins, NULL},
    {"vhosts", 'v', "", "the hosts, their names and files", info_vhosts, NULL},
    {"workers", 'w', "", "the workers with their connections and the generations that they hold", workers_list, NULL},
    {"connections", '\0',
     "[state=S] [peer=A] [listener=L] [host=H] [older=SECONDS] [request=yes|no] [id=N] [limit=N] [sort=KEY] | close ID",
     "lists connections, or closes one", conns_run, "connection"},
    {"top", '\0', "[SECONDS]", "a live view of requests, hosts and paths, until q", NULL, NULL},
    {"timers", '\0', "", "armed timers, and when the next one fires", workers_timers, NULL},
    {"memory", '\0', "", "memory by account and pool", workers_memory, NULL},
    {"log", '\0', "level [error|warn|info|debug]", "shows or sets the level of the error log until the next reload",
     control_log, "level"},
    {"reload", '\0', "", "reads the configuration again, and tells what is wrong with it", control_reload, NULL},
    {"drain", '\0', "", "stops the server: requests under way are finished", control_drain, NULL},
    {"reopen", '\0', "", "opens the log files again, because they were renamed", control_reopen, NULL},
    {"trace", '\0', "ID | peer=ADDRESS", "the states of a connection, or of all of a client, until a line is entered",
     trace_run, "connection"},
    {"explain", '\0', "METHOD URL [client=ADDRESS] [NAME: VALUE ...]",
     "what would become of a request: host, sections, rules, handler and file", run_explain, "method"},
    {"counters", '\0', "[PATTERN]", "what the server and its plugins count", run_counters, NULL},
    {"clear", 'c', "", "clears the screen", NULL, NULL},
    {"quit", 'q', "", "leaves the shell", NULL, NULL},
    {"\\?", '?', "", NULL, info_help, NULL},
    {"complete", '\0', "COMMAND [ARGUMENT ...]", NULL, plugin_commands_complete, NULL},
    {0},
};
/* clang-format on */

const struct command *commands_find(struct mk_str name)
{
    bool is_letter = name.len == 2 && name.p[0] == '\\';
    for (const struct command *each = commands; each->name; each++)
        if (is_letter ? each->letter == name.p[1] : mk_str_ieq(mk_str_c(each->name), name))
            return each;
    return NULL;
}

/* The command whose name is nearest to a word. */
struct nearest {
    struct mk_str word;
    const char *name; /* NULL: none yet */
    unsigned distance;
};

static void compare_name(struct nearest *n, const char *name)
{
    bool begins = n->word.len > 1 && mk_str_starts(mk_str_c(name), n->word);
    unsigned distance = begins ? 0 : mk_str_distance(mk_str_c(name), n->word);
    if (n->name && distance >= n->distance)
        return;
    n->distance = distance;
    n->name = name;
}

static void refuse_unknown(struct client *c, const struct mk_generation *g, struct mk_str word)
{
    struct nearest nearest = {.word = word};
    struct plugin_command other;
    for (const struct command *each = commands; each->name; each++)
        if (each->help)
            compare_name(&nearest, each->name);
    for (unsigned i = 0; plugin_commands_get(g, i, &other); i++)
        compare_name(&nearest, other.command->name);
    int len = (int)(word.len < 64 ? word.len : 64);
    if (nearest.distance * 2 < word.len + 1)
        client_refuse(c, "there is no command %.*s; did you mean %s?", len, word.p, nearest.name);
    else
        client_refuse(c, "there is no command %.*s; help lists them, also those of the loaded plugins", len, word.p);
}

static void run_own(struct client *c, const struct command *command, const struct words *words)
{
    c->command = command->name;
    if (command->run)
        command->run(c, words);
    else
        client_refuse(c, "%s is a command of the shell itself", command->name);
}

void commands_run(struct client *c, const struct words *words)
{
    assert(words->n > 0 && !c->run);
    const struct mk_generation *g = mk_worker_generation(client_worker(c));
    const struct command *own = commands_find(words->items[0]);
    const struct mk_command *other = own ? NULL : plugin_commands_find(g, words->items[0]);
    if (own)
        run_own(c, own, words);
    else if (other)
        plugin_commands_run(c, other, words);
    else
        refuse_unknown(c, g, words->items[0]);
}
