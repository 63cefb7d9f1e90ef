// SPDX-License-Identifier: Apache-2.0
/*
 * cgi: runs scripts for requests (RFC 3875). This file has the hooks.
 */
#include "cgi.h"

#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/kit/open_file.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* ── the process and its threads ── */

static void open_thread(struct mk_thread *base, struct mk_worker *worker)
{
    struct thread *t = thread_of(base);
    t->process = MK_CONTAINER_OF(base->threads, struct process, threads);
    t->account = mk_worker_account(worker);
    mk_list_init(&t->runs);
}

static void end_thread(struct mk_thread *base)
{
    struct thread *t = thread_of(base);
    mk_child_channel_close(t->channel);
    t->channel = NULL;
}

static const struct mk_thread_type thread_type = {.bytes = sizeof(struct thread),
                                                  .open = open_thread,
                                                  .end = end_thread};

static int start_process(void **ret_state)
{
    struct process *process = mk_account_zalloc(NULL, sizeof(*process));
    if (!process)
        return -ENOMEM;
    int err = mk_child_starter_new(&process->starter);
    if (err < 0) {
        mk_account_free(NULL, process, sizeof(*process));
        return err;
    }
    mk_threads_init(&process->threads, &thread_type);
    slots_table_init(&process->slots);
    counters_open();
    *ret_state = process;
    return 0;
}

static void stop_process(void *state)
{
    struct process *process = state;
    mk_child_starter_free(process->starter);
    mk_threads_release(&process->threads);
    slots_table_release(&process->slots);
    mk_account_free(NULL, process, sizeof(*process));
}

/* ── hosts ── */

static struct process *get_process(const struct mk_host *host)
{
    return mk_generation_plugin_state(mk_host_generation(host), &mk_plugin_cgi);
}

static void stop_host(struct mk_host *host, void *state)
{
    struct host *own = state;
    if (!own)
        return;
    while (own->first) {
        struct section *s = own->first;
        own->first = s->next;
        slots_put(&get_process(host)->slots, s->slots);
        mk_account_free(NULL, s, sizeof(*s));
    }
    while (own->programs) {
        struct programs *p = own->programs;
        own->programs = p->next;
        mk_source_folder_release(&p->folder);
        mk_account_free(NULL, p, sizeof(*p));
    }
    mk_source_release_extensions(&own->extensions);
    mk_source_folder_release(&own->root.folder);
    mk_account_free(NULL, own, sizeof(*own));
}

/* Finds the slots of a section: those of the same file, Match and Root, also before a reload. NULL: no memory. */
static struct slots *hold_slots(struct mk_host *host, const struct cgi_conf *conf)
{
    struct mk_buf key;
    mk_buf_init(&key, 64 * 1024);
    mk_host_file(host, &key);
    mk_buf_addc(&key, '\0');
    mk_buf_adds(&key, mk_host_name(host, 0));
    mk_buf_addc(&key, '\0');
    mk_buf_adds(&key, conf->match.text);
    mk_buf_addc(&key, '\0');
    mk_buf_adds(&key, conf->root);
    struct slots *slots =
        key.err ? NULL : slots_hold(&get_process(host)->slots, mk_buf_str(&key), (unsigned)conf->processes_max);
    mk_buf_release(&key);
    return slots;
}

static int open_programs(struct mk_source_folder *folder)
{
    int fd = open(MK_CONTAINER_OF(folder, struct programs, folder)->path.p, O_PATH | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Adds the folder or the file of a section, unless one before has the same. Returns 0 or -ENOMEM. */
static int add_programs_of(struct host *own, const struct cgi_conf *conf)
{
    struct mk_str path = conf->root.len ? conf->root : conf->script;
    struct programs *p = own->programs;
    bool is_script = !conf->root.len;
    while (p && !(p->is_script == is_script && mk_str_eq(p->path, path)))
        p = p->next;
    if (p || !path.len)
        return 0;
    p = mk_account_alloc(NULL, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->next = own->programs;
    p->path = path;
    p->is_script = is_script;
    mk_source_folder_init(&p->folder, open_programs);
    own->programs = p;
    return 0;
}

/* Adds what sources are known by. Returns 0 or -ENOMEM. */
static int add_sources(struct host *own, const struct cgi_conf *conf)
{
    int err = add_programs_of(own, conf);
    for (const struct cgi_interpreter *i = conf->interpreters.first; i && err == 0; i = i->next)
        err = mk_source_add_extension(&own->extensions, i->extension);
    return err;
}

static int add_section(struct mk_host *host, struct section **last, const struct cgi_conf *conf)
{
    struct section *s = mk_account_alloc(NULL, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct section){.conf = conf, .slots = hold_slots(host, conf)};
    if (!s->slots) {
        mk_account_free(NULL, s, sizeof(*s));
        return -ENOMEM;
    }
    *last = s;
    return 0;
}

/* Checks all sections, so that all mistakes are reported, and adds them. Returns 0, -EINVAL or -ENOMEM. */
static int add_sections(struct mk_host *host, struct host *own)
{
    struct section **last = &own->first;
    int result = mk_host_check_patterns(host, cgi_sections, offsetof(struct cgi_conf, match));
    for (const struct cgi_conf *c = mk_host_conf(host, cgi_sections); c; c = mk_host_conf_next(host, cgi_sections, c)) {
        int err = cgi_conf_check_files(host, c);
        if (err == 0)
            err = add_section(host, last, c);
        if (err == 0) {
            last = &(*last)->next;
            err = add_sources(own, c);
        }
        result = err < 0 ? err : result;
    }
    return result;
}

/* Without a folder for files, the start of a server that has no use for it is not refused: SpoolRequest is On. */
static void warn_of_spool_folder(struct mk_host *host, const char *folder, int err)
{
    for (const struct cgi_conf *c = mk_host_conf(host, cgi_sections); c; c = mk_host_conf_next(host, cgi_sections, c))
        if (c->spool_request_bytes)
            mk_host_warn(host, c, offsetof(struct cgi_conf, spool_request_bytes), 0,
                         "bodies above %uK are answered with 503: they wait in files of \"%s\", which cannot be "
                         "written (%s): name another one in Folder of [SPOOL], or write SpoolRequest Off",
                         MK_SPOOL_MEMORY_MIN / 1024, folder, strerror(-err));
}

static int start_host(struct mk_host *host, void **ret_state)
{
    const char *folder;
    int spool_err;
    if (!mk_host_conf(host, cgi_sections))
        return 0;
    struct host *own = mk_account_alloc(NULL, sizeof(*own));
    if (!own)
        return -ENOMEM;
    *own = (struct host){.host = host};
    mk_source_root_init(&own->root, host);
    int err = add_sections(host, own);
    int held = mk_host_hold_spools(host, &folder, &spool_err);
    if (err == 0)
        err = held;
    if (err == 0 && spool_err < 0)
        warn_of_spool_folder(host, folder, spool_err);
    if (err == 0)
        *ret_state = own;
    else
        stop_host(host, own);
    return err;
}

/* ── workers ── */

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct process *process = mk_generation_plugin_state(mk_worker_generation(worker), &mk_plugin_cgi);
    struct mk_thread_worker *w = mk_account_alloc(NULL, sizeof(*w));
    if (!w)
        return -ENOMEM;
    int err = mk_threads_add_worker(&process->threads, w, worker);
    if (err < 0)
        mk_account_free(NULL, w, sizeof(*w));
    else
        *ret_state = w;
    return err;
}

/* The limits are those of this generation from now on, also for requests that wait. */
static void serve_worker(struct mk_worker *worker, void *state)
{
    struct mk_generation *g = mk_worker_generation(worker);
    (void)state;
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host)) {
        const struct host *own = mk_host_state(host, &mk_plugin_cgi);
        for (const struct section *s = own ? own->first : NULL; s; s = s->next)
            slots_set_max(s->slots, (unsigned)s->conf->processes_max);
    }
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct mk_thread_worker *w = state;
    runs_stop(thread_of(w->thread), worker);
    mk_threads_remove_worker(w);
    mk_account_free(NULL, w, sizeof(*w));
}

/* ── requests ── */

static int run_script(struct mk_request *req)
{
    const struct mk_thread_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_cgi);
    const struct section *section;
    struct mk_str path = mk_request_path(req);
    if (!path.len || path.p[0] != '/')
        return MK_DECLINED;
    int err = run_find_section(mk_request_host_conf(req), path, &section);
    if (err < 0 || !section)
        return err < 0 ? err : MK_DECLINED;
    if (mk_cgi_refuse_method(req))
        return 0;
    run_begin(req, thread_of(w->thread), section);
    return 0;
}

/* A path of a script is not the file of that name. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct section *section;
    int err = run_find_section(mk_request_host_conf(req), path, &section);
    return err < 0 ? err : !section;
}

static int accepts_encoded_slash(const struct mk_host *host, struct mk_str path)
{
    const struct section *section;
    return run_find_section(host, path, &section) == 0 && section ? section->conf->encoded_slash : 0;
}

static bool is_program(struct host *own, struct mk_str file)
{
    struct programs *p = own->programs;
    while (p && !(p->is_script ? mk_source_is_program(&p->folder, file)
                               : mk_source_is_below(file, p->path) || mk_source_folder_strip(&p->folder, file).p))
        p = p->next;
    return p != NULL;
}

/* What a section runs, by its name, or a copy of it. A file below Root is no matter of Match. */
static bool is_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    struct host *own = mk_host_state(host, &mk_plugin_cgi);
    const struct mk_source_query of = {.host = host, .root = &own->root.folder, .kind = kind, .name = name};
    if (mk_source_has_extension_of(kind, name, &own->extensions) || (kind == MK_SOURCE_FILE && is_program(own, name)))
        return true;
    for (const struct cgi_conf *conf = NULL;
         (conf = mk_source_next_section(&of, cgi_sections, offsetof(struct cgi_conf, match), conf));)
        if (!(conf->root.len && kind == MK_SOURCE_FILE) && mk_source_is_taken(&of, &conf->match, false))
            return true;
    return mk_source_is_handled(&of, &mk_plugin_cgi);
}

/* What each_program calls. */
struct program_adder {
    mk_program_fn fn;
    void *ctx;
};

static void add_program(const struct cgi_conf *conf, size_t key, struct mk_str folder, struct mk_str name,
                        const struct program_adder *to)
{
    const struct mk_program program = {.section_struct = conf, .offset = key, .folder = folder, .name = name};
    to->fn(&program, to->ctx);
}

static void add_programs(const struct cgi_conf *conf, const struct program_adder *to)
{
    char name[MK_SOURCE_EXAMPLE_BYTES];
    for (const struct cgi_interpreter *i = conf->interpreters.first; i; i = i->next) {
        snprintf(name, sizeof(name), "/index%.*s", MK_STR_ARG(i->extension));
        add_program(conf, offsetof(struct cgi_conf, interpreters), MK_STR_NONE, mk_str_c(name), to);
    }
    if (conf->script.len) {
        size_t folder = (size_t)((const char *)memrchr(conf->script.p, '/', conf->script.len) - conf->script.p);
        add_program(conf, offsetof(struct cgi_conf, script), mk_str(conf->script.p, folder),
                    mk_str_after(conf->script, folder), to);
    } else if (conf->root.len)
        add_program(conf, offsetof(struct cgi_conf, root), conf->root, MK_STR("/x"), to);
    else if (mk_source_make_example(&conf->match, name))
        add_program(conf, offsetof(struct cgi_conf, match), MK_STR_NONE, mk_str_c(name), to);
}

static void each_program(const struct mk_host *host, mk_program_fn fn, void *ctx)
{
    const struct host *own = mk_host_state(host, &mk_plugin_cgi);
    const struct program_adder to = {fn, ctx};
    for (const struct section *s = own->first; s; s = s->next)
        add_programs(s->conf, &to);
}

/* What it finds no script for is 404. */
static bool takes_section(const struct mk_host *host, const struct mk_conf_section *type, const void *conf)
{
    (void)host;
    (void)type;
    (void)conf;
    return true;
}

static void explain_host(const struct mk_host *host, struct mk_explain *e)
{
    const struct section *section;
    if (e->phase != MK_EXPLAIN_CONTENT)
        return;
    if (run_find_section(host, e->path, &section) < 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of [CGI] takes too much time for the path");
    if (!section)
        return;
    e->runs_file = true;
    if (section->conf->root.len)
        mk_explain_add(e, host, section->conf, MK_EXPLAIN_ANSWERS, "[CGI]: a script below %s", section->conf->root.p);
    else if (section->conf->script.len)
        mk_explain_add(e, host, section->conf, MK_EXPLAIN_ANSWERS, "[CGI]: the script %s", section->conf->script.p);
    else
        mk_explain_add(e, host, section->conf, MK_EXPLAIN_ANSWERS, "[CGI]: a script below DocumentRoot");
}

/* Adds how a file is run, or why it is not. */
static void explain_script(const struct cgi_conf *conf, const char *file, bool may_run, struct mk_str info,
                           struct mk_buf *out)
{
    const struct cgi_interpreter *i = cgi_conf_find_interpreter(conf, mk_str_c(file));
    if (!i && !may_run)
        mk_buf_addf(out, "403: the server's user may not execute the script %s", file);
    else
        mk_buf_addf(out, "the script %s%s%s", file, i ? ", run by " : "", i ? i->path.p : "");
    if ((i || may_run) && info.len)
        mk_buf_addf(out, ", with PATH_INFO %.*s", MK_STR_ARG(info));
}

/* Looks for the script as a request does. */
static bool explain_path(const struct mk_host *host, struct mk_str path, struct mk_buf *out, struct mk_buf *decided)
{
    const struct section *section;
    struct mk_cgi_place place;
    struct mk_str asked = path;
    if (run_find_section(host, path, &section) < 0 || !section)
        return false;
    const struct cgi_conf *conf = section->conf;
    if (conf->script.len) {
        explain_script(conf, conf->script.p, true, mk_str_after(path, run_get_prefix_len(conf, path)), out);
        return true;
    }
    struct mk_cgi_script *script = mk_account_alloc(NULL, sizeof(*script));
    int err = script ? run_find_place(conf, host, &path, &place) : -ENOMEM;
    if (err == 0)
        err = mk_cgi_find_script(&place, MK_CGI_FIND_WALK, path, script);
    if (err < 0)
        mk_buf_addf(out, "%d: there is no script: %s", mk_open_file_get_status(err), strerror(-err));
    else
        explain_script(conf, script->file, script->may_run, script->info, out);
    if (err == 0 && script->info.len)
        mk_buf_adds(decided, mk_str(asked.p, asked.len - script->info.len));
    mk_account_free(NULL, script, sizeof(*script));
    return true;
}

static const struct mk_path_hooks path_hooks = {
    .allows_path = allows_path,
    .accepts_encoded_slash = accepts_encoded_slash,
};

static const struct mk_source_hooks source_hooks = {
    .is_source = is_source,
    .each_program = each_program,
};

static const struct mk_inspect_hooks inspect_hooks = {
    .explain = explain_host,
    .explain_path = explain_path,
    .takes_section = takes_section,
};

MK_PLUGIN(cgi) = {
    MK_PLUGIN_HEAD("cgi", "2.0.0", "runs scripts for requests"),
    .flags = MK_PLUGIN_STATE_NEEDED,
    .sections = cgi_sections,
    .start = start_process,
    .stop = stop_process,
    .host_start = start_host,
    .host_stop = stop_host,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .worker_serve = serve_worker,
    .on_content = run_script,
    .paths = &path_hooks,
    .sources = &source_hooks,
    .inspection = &inspect_hooks,
};
