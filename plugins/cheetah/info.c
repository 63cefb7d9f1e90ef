// SPDX-License-Identifier: Apache-2.0
#include "cheetah.h"

#include <monkey/kit/json.h>

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { SHOW_BYTES_MAX = 512 * 1024 };

static struct mk_generation *get_generation(const struct client *c)
{
    return mk_worker_generation(client_worker(c));
}

/* ── help ── */

/* A row of `help`; an empty name of a plugin means the shell. */
static void add_help(struct client *c, const struct command *command, const char *plugin)
{
    char letter[3] = {'\\', command->letter, '\0'};
    mk_json_open(&c->out, NULL, '{');
    mk_json_cstr(&c->out, "command", command->name);
    mk_json_cstr(&c->out, "short", command->letter ? letter : "");
    mk_json_cstr(&c->out, "help", command->help);
    mk_json_cstr(&c->out, "arguments", command->arguments);
    mk_json_cstr(&c->out, "plugin", plugin);
    if (command->complete)
        mk_json_cstr(&c->out, "_complete", command->complete);
    mk_json_close_line(&c->out);
}

static bool is_wanted(const struct words *words, const char *name)
{
    return words->n < 2 || mk_str_ieq(mk_str_c(name), words->items[1]);
}

/* Returns how many were added. */
static unsigned add_plugin_help(struct client *c, const struct words *words)
{
    struct plugin_command each;
    unsigned n = 0;
    for (unsigned i = 0; plugin_commands_get(get_generation(c), i, &each) && client_has_room(c); i++) {
        const struct mk_command *from = each.command;
        struct command row = {.name = from->name, .arguments = from->arguments, .help = from->help};
        row.complete = from->args_max ? "server" : NULL;
        if (!is_wanted(words, from->name))
            continue;
        add_help(c, &row, each.plugin);
        n++;
    }
    return n;
}

void info_help(struct client *c, const struct words *words)
{
    unsigned n = 0;
    client_begin(c, "table");
    for (const struct command *each = commands; each->name; each++) {
        if (!each->help || !is_wanted(words, each->name))
            continue;
        add_help(c, each, "");
        n++;
    }
    n += add_plugin_help(c, words);
    client_end(c, n ? NULL : "there is no such command; help lists them");
}

/* ── status ── */

/* Returns how long this process has run, in seconds; it reads /proc/self/stat, which never waits for a disk. */
static int64_t get_uptime(void)
{
    char text[1024];
    uint64_t ticks = 0;
    struct timespec now;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *behind_name = strrchr(text, ')');
    if (!behind_name ||
        sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
               &ticks) != 1)
        return -1;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec - (int64_t)(ticks / (uint64_t)sysconf(_SC_CLK_TCK));
}

static unsigned count_hosts(const struct mk_generation *g)
{
    unsigned n = 0;
    for (const struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host))
        n++;
    return n;
}

static unsigned count_plugins(const struct mk_generation *g)
{
    unsigned n = 0;
    while (mk_inspect_plugin(g, n))
        n++;
    return n;
}

static const char *get_log_level(void)
{
    return mk_log_wants(MK_LOG_DEBUG)  ? "debug"
           : mk_log_wants(MK_LOG_INFO) ? "info"
           : mk_log_wants(MK_LOG_WARN) ? "warn"
                                       : "error";
}

void info_add_status(struct client *c)
{
    const struct mk_generation *g = get_generation(c);
    struct mk_str text, transport;
    mk_json_cstr(&c->out, "version", mk_version());
    mk_json_number(&c->out, "process", getpid());
    mk_json_number(&c->out, "uptime_s", get_uptime());
    mk_json_number(&c->out, "generation", mk_generation_number(g));
    mk_json_number(&c->out, "workers", mk_generation_workers(g));
    mk_json_number(&c->out, "hosts", count_hosts(g));
    mk_json_number(&c->out, "plugins", count_plugins(g));
    struct mk_buf listeners;
    mk_buf_init(&listeners, 16 * 1024);
    for (unsigned i = 0; mk_inspect_listener(g, i, &text, &transport); i++)
        mk_buf_addf(&listeners, "%s%.*s", i ? " " : "", MK_STR_ARG(text));
    mk_json_str(&c->out, "listeners", mk_buf_str(&listeners));
    mk_buf_release(&listeners);
    mk_json_cstr(&c->out, "log_level", get_log_level());
}

void info_status(struct client *c, const struct words *words)
{
    (void)words;
    workers_status(c);
}

void info_uptime(struct client *c, const struct words *words)
{
    (void)words;
    client_begin(c, "list");
    mk_json_open(&c->out, NULL, '{');
    mk_json_number(&c->out, "uptime_s", get_uptime());
    mk_json_close_line(&c->out);
    client_end(c, NULL);
}

void info_plugins(struct client *c, const struct words *words)
{
    const struct mk_generation *g = get_generation(c);
    const struct mk_plugin *plugin;
    (void)words;
    client_begin(c, "table");
    for (unsigned i = 0; (plugin = mk_inspect_plugin(g, i)); i++) {
        mk_json_open(&c->out, NULL, '{');
        mk_json_cstr(&c->out, "plugin", plugin->name);
        mk_json_cstr(&c->out, "version", plugin->version);
        mk_json_cstr(&c->out, "kind", mk_inspect_is_built_in(g, i) ? "built in" : "module");
        mk_json_cstr(&c->out, "summary", plugin->summary);
        mk_json_close_line(&c->out);
    }
    client_end(c, NULL);
}

/* ── what goes through the hosts, in pieces; a reload in between ends it ── */

struct host_run {
    struct run run;
    uint32_t generation;
    const struct mk_host *next; /* NULL: all were shown */
    bool shows_server;          /* the server's part comes first */
    bool only_one;
    void (*show)(struct host_run *r, const struct mk_generation *g, const struct mk_host *host);
};

static void stop_host_run(struct run *run)
{
    mk_account_free(NULL, MK_CONTAINER_OF(run, struct host_run, run), sizeof(struct host_run));
}

static void resume_host_run(struct run *run)
{
    struct host_run *r = MK_CONTAINER_OF(run, struct host_run, run);
    struct client *c = run->client;
    const struct mk_generation *g = get_generation(c);
    bool same = mk_generation_number(g) == r->generation;
    for (; same && (r->next || r->shows_server) && !client_is_full(c); r->shows_server = false) {
        r->show(r, g, r->shows_server ? NULL : r->next);
        if (!r->shows_server)
            r->next = r->only_one ? NULL : mk_host_next(r->next);
    }
    if (same && (r->next || r->shows_server))
        return;
    stop_host_run(run);
    client_end(c, same ? NULL : "a reload has changed the configuration; ask again");
}

static void run_hosts(struct client *c, const struct host_run *what, const char *view)
{
    struct host_run *r = mk_account_alloc(NULL, sizeof(*r));
    client_begin(c, view);
    if (!r) {
        client_end(c, "out of memory");
        return;
    }
    *r = *what;
    r->run = (struct run){.client = c, .resume = resume_host_run, .stop = stop_host_run};
    r->generation = mk_generation_number(get_generation(c));
    c->run = &r->run;
}

static void show_config(struct host_run *r, const struct mk_generation *g, const struct mk_host *host)
{
    struct client *c = r->run.client;
    struct mk_buf text;
    mk_buf_init(&text, SHOW_BYTES_MAX);
    if (host) {
        mk_buf_addf(&text, "\n# ");
        mk_host_file(host, &text);
        mk_buf_addc(&text, '\n');
    }
    mk_inspect_show(g, host, &text);
    if (text.err)
        client_warn(c, "a part of the configuration is too long to be shown here; see monkey --show-config");
    else
        client_add_lines(c, mk_buf_str(&text));
    mk_buf_release(&text);
}

/* Finds the host that serves a name, of the generation in use; NULL: none has it. */
static struct mk_host *find_host(const struct client *c, struct mk_str name)
{
    struct mk_host *host = mk_generation_first_host(get_generation(c));
    while (host && !mk_host_has_name(host, name))
        host = mk_host_next(host);
    return host;
}

void info_config(struct client *c, const struct words *words)
{
    struct host_run what = {.show = show_config, .shows_server = true, .only_one = words->n > 1};
    what.next = words->n > 1 ? find_host(c, words->items[1]) : mk_generation_first_host(get_generation(c));
    if (words->n > 1 && !what.next)
        client_refuse(c, "no host serves the name %.*s; vhosts lists them",
                      (int)(words->items[1].len < 255 ? words->items[1].len : 255), words->items[1].p);
    else
        run_hosts(c, &what, "text");
}

static void show_host(struct host_run *r, const struct mk_generation *g, const struct mk_host *host)
{
    struct client *c = r->run.client;
    struct mk_buf names, file;
    (void)g;
    assert(host);
    mk_buf_init(&names, CLIENT_OBJECT_MAX / 2);
    mk_buf_init(&file, 4096);
    struct mk_str name;
    for (unsigned i = 0; (name = mk_host_name(host, i)).p; i++)
        mk_buf_addf(&names, "%s%.*s", i ? " " : "", MK_STR_ARG(name));
    mk_host_file(host, &file);
    mk_json_open(&c->out, NULL, '{');
    mk_json_str(&c->out, "names", mk_buf_str(&names));
    mk_json_str(&c->out, "file", mk_buf_str(&file));
    mk_json_close_line(&c->out);
    mk_buf_release(&names);
    mk_buf_release(&file);
}

void info_vhosts(struct client *c, const struct words *words)
{
    struct host_run what = {.show = show_host, .next = mk_generation_first_host(get_generation(c))};
    (void)words;
    run_hosts(c, &what, "table");
}
