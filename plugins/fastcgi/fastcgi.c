// SPDX-License-Identifier: Apache-2.0
/*
 * fastcgi: passes requests to FastCGI and SCGI servers, such as php-fpm. This file has the hooks.
 */
#include "fastcgi.h"

#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/kit/backend_stats.h>
#include <monkey/kit/command.h>
#include <monkey/kit/source.h>

#include <errno.h>
#include <stdio.h>

extern const struct mk_plugin mk_plugin_fastcgi;

static const struct mk_gateway_protocol *const protocols[] = {
    [FASTCGI_SECTION] = &fastcgi_protocol,
    [SCGI_SECTION] = &scgi_protocol,
};

enum { SECTIONS = MK_COUNT_OF(protocols) };

/* ── the process, generations and workers ── */

static int start_process(void **ret_state)
{
    static const struct mk_counter_info counters[MK_GATEWAY_COUNTS] = MK_GATEWAY_COUNTER_INFOS("fastcgi");
    static const struct mk_counter_info stats_infos[] = MK_BACKEND_STATS_INFOS("fastcgi");
    static const struct mk_gateway_type type = {.plugin = &mk_plugin_fastcgi,
                                                .counters = counters,
                                                .stats_infos = stats_infos};
    struct spawns *spawns = spawns_new();
    int err = spawns ? mk_gateway_new(&type, ret_state) : -ENOMEM;
    if (err == 0)
        mk_gateway_set_user(*ret_state, spawns);
    else if (spawns)
        spawns_free(spawns);
    return err;
}

static void stop_process(void *state)
{
    spawns_free(mk_gateway_get_user(state));
    mk_gateway_free(state);
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    return mk_gateway_start_generation(&mk_plugin_fastcgi, g, ret_state);
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    return mk_gateway_start_worker(&mk_plugin_fastcgi, worker, ret_state);
}

static struct spawns *get_spawns(const struct mk_worker *worker)
{
    return mk_gateway_get_user(mk_generation_plugin_state(mk_worker_generation(worker), &mk_plugin_fastcgi));
}

/* Calls `fn` for each section with Spawn, in the same order for the same generation. */
static void each_spawn(struct mk_worker *worker, void (*fn)(struct spawns *all, const struct fastcgi_conf *conf))
{
    const struct mk_conf_section *section = &fastcgi_sections[FASTCGI_SECTION];
    struct mk_generation *g = mk_worker_generation(worker);
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host))
        for (const struct fastcgi_conf *conf = mk_host_conf(host, section); conf;
             conf = mk_host_conf_next(host, section, conf))
            if (conf->spawn.text.len)
                fn(get_spawns(worker), conf);
}

static void hold_spawn(struct spawns *all, const struct fastcgi_conf *conf)
{
    spawns_hold(all, &conf->spawn, (unsigned)conf->children);
}

static void put_spawn(struct spawns *all, const struct fastcgi_conf *conf)
{
    spawns_put(all, &conf->spawn);
}

/* The first worker has the children of Spawn. */
static void serve_worker(struct mk_worker *worker, void *state)
{
    mk_gateway_serve_worker(worker, state);
    if (mk_worker_index(worker) == 0 && spawns_begin(get_spawns(worker), worker))
        each_spawn(worker, hold_spawn);
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    if (spawns_has(get_spawns(worker), worker)) {
        each_spawn(worker, put_spawn);
        spawns_end(get_spawns(worker), worker);
    }
    mk_gateway_stop_worker(worker, state);
}

/* ── hosts ── */

/* A host that has sections. */
struct host {
    struct mk_source_root root;
    struct mk_gateway_routes routes;
    struct mk_source_extensions extensions; /* of Split of all sections */
    unsigned n_workers;
    struct recent *recent[]; /* of each worker, by its index; NULL: not used yet */
};

static void free_host(struct host *own)
{
    for (unsigned i = 0; i < own->n_workers; i++)
        if (own->recent[i]) {
            recent_release(own->recent[i]);
            mk_account_free(NULL, own->recent[i], sizeof(struct recent));
        }
    mk_source_release_extensions(&own->extensions);
    mk_gateway_free_routes(&own->routes);
    mk_source_folder_release(&own->root.folder);
    mk_account_free(NULL, own, sizeof(*own) + own->n_workers * sizeof(own->recent[0]));
}

static void stop_host(struct mk_host *host, void *state)
{
    (void)host;
    if (state)
        free_host(state);
}

/* A name alone must be a group's: a server would have a port. Returns 0 or -EINVAL. */
static int check_group(struct mk_host *host, const struct fastcgi_conf *conf)
{
    const struct mk_generation *g = mk_host_generation(host);
    struct mk_str name = conf->gateway.to.authority;
    const struct mk_upstreams *upstreams = mk_generation_upstreams(g);
    if (!conf->gateway.to.dial || !conf->gateway.to.dial->port || memchr(name.p, ':', name.len) ||
        (upstreams && upstreams->find(g, name)))
        return 0;
    struct mk_str near = mk_target_find_near_group(g, name);
    mk_host_error(host, conf, offsetof(struct fastcgi_conf, gateway.to), 0,
                  "no [UPSTREAM] has the name \"%.*s\", and the address of a server needs a port%s%.*s%s",
                  MK_STR_ARG(name), near.len ? "; did you mean " : "", MK_STR_ARG(near), near.len ? "?" : "");
    return -EINVAL;
}

/* Returns the section of a host before `end` that has the same Spawn with another number of children; NULL: none. */
static const struct fastcgi_conf *find_other_number(struct mk_host *host, const struct fastcgi_conf *conf,
                                                    const struct fastcgi_conf *end)
{
    const struct mk_conf_section *section = &fastcgi_sections[FASTCGI_SECTION];
    const struct fastcgi_conf *c = mk_host_conf(host, section);
    while (c && c != end && (c->children == conf->children || !mk_str_eq(c->spawn.args, conf->spawn.args)))
        c = mk_host_conf_next(host, section, c);
    return c == end ? NULL : c;
}

/* Sections with the same Spawn share its processes. Returns 0 or -EINVAL. */
static int check_children(struct mk_host *host, const struct fastcgi_conf *conf)
{
    const struct fastcgi_conf *other = NULL;
    struct mk_host *h = mk_generation_first_host(mk_host_generation(host));
    if (!conf->spawn.text.len || !conf->children)
        return 0;
    for (; h != host && !other; h = mk_host_next(h))
        other = find_other_number(h, conf, NULL);
    if (!other)
        other = find_other_number(host, conf, conf);
    if (other)
        mk_host_error(host, conf, offsetof(struct fastcgi_conf, children), 0,
                      "a section before this one has the same Spawn with Children %d: they share its processes",
                      (int)other->children);
    return other ? -EINVAL : 0;
}

static int add_extensions(struct mk_host *host, struct host *own)
{
    int err = 0;
    for (unsigned i = 0; i < SECTIONS; i++)
        for (const struct fastcgi_conf *conf = mk_host_conf(host, &fastcgi_sections[i]); conf;
             conf = mk_host_conf_next(host, &fastcgi_sections[i], conf))
            for (uint32_t k = 0; k < conf->split.n && err == 0; k++)
                err = mk_source_add_extension(&own->extensions, conf->split.items[k]);
    return err;
}

static int check_sections(struct mk_host *host, const struct mk_conf_section *section)
{
    int err = mk_host_check_patterns(host, section, offsetof(struct fastcgi_conf, gateway.match));
    for (const struct fastcgi_conf *conf = mk_host_conf(host, section); conf;
         conf = mk_host_conf_next(host, section, conf)) {
        int checked = check_group(host, conf);
        if (checked == 0)
            checked = check_children(host, conf);
        err = err == 0 ? checked : err;
    }
    return err;
}

static int open_sections(struct mk_host *host, struct host *own)
{
    int err = 0;
    for (unsigned i = 0; i < SECTIONS; i++) {
        int checked = check_sections(host, &fastcgi_sections[i]);
        int opened = checked < 0 ? checked
                                 : mk_gateway_open_routes(&mk_plugin_fastcgi, host, &fastcgi_sections[i], protocols[i],
                                                          &own->routes);
        err = err == 0 ? opened : err;
    }
    return err;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    if (!mk_host_conf(host, &fastcgi_sections[FASTCGI_SECTION]) && !mk_host_conf(host, &fastcgi_sections[SCGI_SECTION]))
        return 0;
    unsigned n = mk_generation_workers(mk_host_generation(host));
    size_t bytes = sizeof(struct host) + n * sizeof(struct recent *);
    struct host *own = mk_account_zalloc(NULL, bytes);
    if (!own)
        return -ENOMEM;
    own->n_workers = n;
    mk_source_root_init(&own->root, host);
    int err = add_extensions(host, own);
    if (err == 0)
        err = open_sections(host, own);
    if (err == 0)
        *ret_state = own;
    else
        free_host(own);
    return err;
}

/* ── requests ── */

/* Finds the section for a path; NULL: none. Returns 0, or -errno (it is not known). */
static int find_section(const struct mk_host *host, struct mk_str path, const struct fastcgi_conf **ret)
{
    const void *conf = NULL;
    int err = 0;
    for (unsigned i = 0; i < SECTIONS && !conf && err == 0; i++)
        err = mk_host_conf_match(host, &fastcgi_sections[i], offsetof(struct fastcgi_conf, gateway.match), path, &conf);
    *ret = conf;
    if (conf && !(*ret)->split.n && mk_host_prefers_files(host, &(*ret)->gateway.match, path))
        *ret = NULL; /* with Split the section finds files and scripts in the alias, too */
    return err;
}

/* Passes a request on. `script` is in the arena of the request. */
static void pass_request(struct mk_request *req, const struct fastcgi_conf *conf, const struct fastcgi_script *script)
{
    const struct host *host = mk_request_host_state(req, &mk_plugin_fastcgi);
    mk_gateway_pass(req, mk_gateway_find_route(&host->routes, conf), script);
}

/* Makes "fastcgi: /srv/www/index.php"; without memory the name alone. */
static const char *make_log_prefix(struct mk_arena *arena, struct mk_str file)
{
    static const char name[] = "fastcgi: ";
    size_t len = sizeof(name) - 1;
    char *text = mk_arena_alloc(arena, len + file.len + 1);
    if (!text)
        return "fastcgi";
    memcpy(text, name, len);
    memcpy(text + len, file.p, file.len);
    text[len + file.len] = '\0';
    return text;
}

/* Runs a script, whose strings are copied. */
static void run_script(struct mk_request *req, const struct fastcgi_conf *conf, const struct fastcgi_script *found)
{
    struct mk_arena *arena = mk_request_arena(req);
    struct fastcgi_script *script = mk_arena_alloc(arena, sizeof(*script));
    if (!script) {
        mk_response_error(req, 503);
        return;
    }
    *script = (struct fastcgi_script){.name = mk_arena_dup(arena, found->name),
                                      .info = mk_arena_dup(arena, found->info),
                                      .filename = mk_arena_dup(arena, found->filename),
                                      .root = mk_arena_dup(arena, found->root)};
    if (!script->name.p || !script->info.p || !script->filename.p || !script->root.p) {
        mk_response_error(req, 503);
        return;
    }
    script->log_prefix = make_log_prefix(arena, script->filename);
    pass_request(req, conf, script);
}

/* Returns what was found lately for the worker of a request; NULL without memory. */
static struct recent *get_recent(struct mk_request *req)
{
    struct host *host = mk_request_host_state(req, &mk_plugin_fastcgi);
    struct recent **at = &host->recent[mk_worker_index(mk_request_worker(req))];
    if (!*at)
        *at = mk_account_zalloc(NULL, sizeof(struct recent));
    return *at;
}

static void run_found_script(struct mk_request *req, const struct fastcgi_conf *conf, const struct mk_cgi_script *found)
{
    const struct fastcgi_script script = {.name = found->name,
                                          .info = found->info,
                                          .filename = mk_str_c(found->file),
                                          .root = mk_str_c(found->root)};
    struct recent *recent = get_recent(req);
    if (recent)
        recent_add(recent, conf, mk_request_path(req), &script, mk_loop_now_ms(mk_request_loop(req)));
    if (mk_cgi_may_run(req, script.name))
        run_script(req, conf, &script);
}

static void end_lookup(struct mk_request *req, const struct fastcgi_conf *conf, const struct resolution *found)
{
    switch (found->kind) {
    case RESOLVE_RUN:
        run_found_script(req, conf, &found->script);
        break;
    case RESOLVE_DECLINE:
        mk_request_decline(req);
        break;
    case RESOLVE_REDIRECT:
        mk_response_redirect_to_slash(req, 0);
        break;
    case RESOLVE_STATUS:
        mk_response_error(req, found->status);
        break;
    }
}

/* With Split Off: the prefix of Match is the name of the application. */
static int pass_to_application(struct mk_request *req, const struct fastcgi_conf *conf)
{
    struct fastcgi_script *script = mk_arena_alloc(mk_request_arena(req), sizeof(*script));
    const struct mk_pattern *match = &conf->gateway.match;
    struct mk_str path = mk_request_path(req), name = MK_STR("");
    if (!script)
        return -ENOMEM;
    if (match->kind == MK_PATTERN_PREFIX)
        name = mk_str(path.p, match->text.len - (match->text.p[match->text.len - 1] == '/'));
    *script = (struct fastcgi_script){.name = name,
                                      .info = mk_str(path.p + name.len, path.len - name.len),
                                      .filename = MK_STR_NONE,
                                      .root = conf->remote_root.len ? conf->remote_root : MK_STR_NONE,
                                      .log_prefix = "fastcgi"};
    pass_request(req, conf, script);
    return 0;
}

static int fastcgi_request(struct mk_request *req)
{
    const struct fastcgi_conf *conf;
    struct mk_str path = mk_request_path(req);
    if (!path.len || path.p[0] != '/')
        return MK_DECLINED;
    int err = find_section(mk_request_host_conf(req), path, &conf);
    if (err < 0)
        return err;
    if (!conf)
        return MK_DECLINED;
    if (mk_cgi_refuse_method(req))
        return 0;
    if (!conf->split.n)
        return pass_to_application(req, conf);
    const struct recent *recent = get_recent(req);
    const struct fastcgi_script *script =
        recent ? recent_find(recent, conf, path, mk_loop_now_ms(mk_request_loop(req))) : NULL;
    if (!script)
        return lookup_start(req, conf, end_lookup);
    if (mk_cgi_may_run(req, script->name))
        run_script(req, conf, script);
    return 0;
}

/* ── other paths ── */

/*
 * By the extension alone: a section for one path of the host does not make scripts elsewhere files to send. With Split
 * Off the paths of Match are the application's.
 */
static bool is_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    const size_t pattern = offsetof(struct fastcgi_conf, gateway.match);
    struct host *own = mk_host_state(host, &mk_plugin_fastcgi);
    const struct mk_source_query of = {.host = host, .root = &own->root.folder, .kind = kind, .name = name};
    if (mk_source_has_extension_of(kind, name, &own->extensions))
        return true;
    for (unsigned i = 0; i < SECTIONS; i++)
        for (const struct fastcgi_conf *conf = NULL;
             (conf = mk_source_next_section(&of, &fastcgi_sections[i], pattern, conf));)
            if (!conf->split.n && mk_gateway_takes_source(&conf->gateway, &of))
                return true;
    return mk_source_is_handled(&of, &mk_plugin_fastcgi);
}

static void add_programs(const struct fastcgi_conf *conf, mk_program_fn fn, void *ctx)
{
    char name[MK_SOURCE_EXAMPLE_BYTES];
    struct mk_program program = {.section_struct = conf, .offset = offsetof(struct fastcgi_conf, split)};
    for (uint32_t i = 0; i < conf->split.n; i++) {
        snprintf(name, sizeof(name), "/index%.*s", MK_STR_ARG(conf->split.items[i]));
        program.name = mk_str_c(name);
        fn(&program, ctx);
    }
    if (!conf->split.n)
        mk_gateway_add_program(&conf->gateway, fn, ctx);
}

static void each_program(const struct mk_host *host, mk_program_fn fn, void *ctx)
{
    for (unsigned i = 0; i < SECTIONS; i++)
        for (const struct fastcgi_conf *conf = mk_host_conf(host, &fastcgi_sections[i]); conf;
             conf = mk_host_conf_next(host, &fastcgi_sections[i], conf))
            add_programs(conf, fn, ctx);
}

/* A path that an application has is not the file of that name. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct fastcgi_conf *conf;
    int err = find_section(mk_request_host_conf(req), path, &conf);
    return err < 0 ? err : !conf || conf->split.n;
}

/* With Split other paths than those of scripts are declined, unless TryFiles ends with one for all of them. */
static bool takes_section(const struct mk_host *host, const struct mk_conf_section *type, const void *section_struct)
{
    const struct fastcgi_conf *conf = section_struct;
    const struct fastcgi_tries *tries = &conf->tries;
    (void)host;
    (void)type;
    return !conf->split.n || (tries->n && (tries->items[tries->n - 1].kind == FASTCGI_TRY_SCRIPT ||
                                           tries->items[tries->n - 1].kind == FASTCGI_TRY_STATUS));
}

static int accepts_encoded_slash(const struct mk_host *host, struct mk_str path)
{
    const struct fastcgi_conf *conf;
    return find_section(host, path, &conf) == 0 && conf ? conf->encoded_slash : 0;
}

static void explain_host(const struct mk_host *host, struct mk_explain *e)
{
    const struct fastcgi_conf *conf;
    if (e->phase != MK_EXPLAIN_CONTENT || !mk_host_state(host, &mk_plugin_fastcgi))
        return;
    if (find_section(host, e->path, &conf) < 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of [FASTCGI] or [SCGI] takes too much time for the path");
    else if (conf)
        mk_explain_add(e, host, conf, conf->split.n ? MK_EXPLAIN_MAYBE : MK_EXPLAIN_ANSWERS, "passed to %.*s%s",
                       MK_STR_ARG(conf->gateway.to.text), conf->split.n ? ", if it leads to a script" : "");
}

/* Tells what the path means for its section, as resolve.c finds it. */
static bool explain_path(const struct mk_host *host, struct mk_str path, struct mk_buf *out, struct mk_buf *decided)
{
    const struct fastcgi_conf *conf;
    struct resolution *found;
    if (find_section(host, path, &conf) < 0 || !conf || !conf->split.n)
        return false;
    found = mk_account_alloc(NULL, sizeof(*found));
    if (!found)
        return false;
    resolve_path(conf, host, path, found);
    resolve_explain(found, out);
    if (found->kind == RESOLVE_RUN && !mk_str_eq(path, found->script.name))
        mk_buf_adds(decided, found->script.name);
    bool responds = found->kind != RESOLVE_DECLINE;
    mk_account_free(NULL, found, sizeof(*found));
    return responds;
}

/* ── the shell ── */

static int list_backends(struct mk_command_call *call)
{
    return mk_gateway_list_backends(call, &mk_plugin_fastcgi);
}

static const struct mk_command commands[] = {
    {.name = "fastcgi",
     .arguments = "",
     .help = "the FastCGI and SCGI servers, with what is counted of each",
     .run = list_backends},
    {0},
};

static const struct mk_path_hooks path_hooks = {
    .allows_path = allows_path,
    .accepts_encoded_slash = accepts_encoded_slash,
};

static const struct mk_source_hooks source_hooks = {
    .is_source = is_source,
    .each_program = each_program,
};

static const struct mk_process_hooks process_hooks = {
    .low_on_descriptors = mk_gateway_shed,
    .low_on_memory = mk_gateway_shed_worker,
};

static const struct mk_inspect_hooks inspect_hooks = {
    .explain = explain_host,
    .explain_path = explain_path,
    .takes_section = takes_section,
    .commands = commands,
};

MK_PLUGIN(fastcgi) = {
    MK_PLUGIN_HEAD("fastcgi", "2.0.0", "passes requests to FastCGI and SCGI servers"),
    .flags = MK_PLUGIN_STATE_NEEDED,
    .sections = fastcgi_sections,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .generation_stop = mk_gateway_stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .worker_serve = serve_worker,
    .on_content = fastcgi_request,
    .paths = &path_hooks,
    .sources = &source_hooks,
    .process = &process_hooks,
    .inspection = &inspect_hooks,
};
