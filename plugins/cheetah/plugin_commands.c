// SPDX-License-Identifier: Apache-2.0
/*
 * Finds and runs the commands of plugins. Between two calls of a command a reload may have removed
 * its plugin, so each call checks the generation first.
 */
#include "cheetah.h"

#include <monkey/hooks.h>
#include <monkey/kit/json.h>

#include <errno.h>
#include <stdio.h>

enum { ERROR_BYTES = 512, BY_BYTES = 64 };

/* An answer of a command that is under way. */
struct plugin_run {
    struct run run;
    struct mk_command_call call;
    const struct mk_command *command;
    bool completes; /* its next argument is asked for, not its answer */
    uint32_t generation;
    struct mk_buf row;
    char by[BY_BYTES], error[ERROR_BYTES];
    size_t bytes; /* of the struct, with what follows: the arguments, and their text */
    struct mk_str args[];
};

/* ── the table of the generation ── */

bool plugin_commands_get(const struct mk_generation *g, unsigned n, struct plugin_command *ret)
{
    const struct mk_plugin *plugin;
    for (unsigned i = 0; (plugin = mk_inspect_plugin(g, i)); i++) {
        const struct mk_command *table = MK_PLUGIN_HOOK(plugin, inspection, commands);
        for (const struct mk_command *each = table; each && each->name; each++) {
            if (n--)
                continue;
            *ret = (struct plugin_command){each, plugin->name};
            return true;
        }
    }
    return false;
}

const struct mk_command *plugin_commands_find(const struct mk_generation *g, struct mk_str name)
{
    struct plugin_command each;
    for (unsigned i = 0; plugin_commands_get(g, i, &each); i++)
        if (mk_str_ieq(mk_str_c(each.command->name), name))
            return each.command;
    return NULL;
}

int plugin_commands_check(const struct mk_generation *g, plugin_commands_own_fn is_own, struct mk_buf *error)
{
    struct plugin_command each, other;
    for (unsigned i = 0; plugin_commands_get(g, i, &each); i++) {
        struct mk_str name = mk_str_c(each.command->name);
        const char *owner = is_own(name) ? "the shell" : NULL;
        for (unsigned k = 0; k < i && !owner && plugin_commands_get(g, k, &other); k++)
            owner = mk_str_ieq(mk_str_c(other.command->name), name) ? other.plugin : NULL;
        if (!owner)
            continue;
        mk_buf_addf(error, "the plugin %s has a command \"%s\", which %s has already", each.plugin, each.command->name,
                    owner);
        return -EINVAL;
    }
    return 0;
}

/* ── what a command may call ── */

static struct plugin_run *run_of(struct mk_command_call *call)
{
    return MK_CONTAINER_OF(call, struct plugin_run, call);
}

static bool has_room(struct mk_command_call *call)
{
    return !client_is_full(run_of(call)->run.client);
}

static struct mk_buf *begin_row(struct mk_command_call *call)
{
    struct plugin_run *r = run_of(call);
    r->row.len = 0;
    r->row.err = 0;
    mk_json_open(&r->row, NULL, '{');
    return &r->row;
}

static void end_row(struct mk_command_call *call)
{
    struct plugin_run *r = run_of(call);
    struct client *c = r->run.client;
    mk_json_close_line(&r->row);
    if (!client_has_room(c))
        return;
    if (r->row.err)
        client_warn(c, "a row of the answer is too long: it is left out");
    else
        mk_buf_adds(&c->out, mk_buf_str(&r->row));
}

static void offer_word(struct mk_command_call *call, struct mk_str word)
{
    mk_json_str(begin_row(call), "word", word);
    end_row(call);
}

static MK_PRINTF(2, 3) void add_warning(struct mk_command_call *call, const char *format, ...)
{
    struct client *c = run_of(call)->run.client;
    char text[ERROR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (client_has_room(c))
        client_warn(c, "%s", text);
}

static MK_PRINTF(2, 3) int refuse_command(struct mk_command_call *call, const char *format, ...)
{
    struct plugin_run *r = run_of(call);
    va_list args;
    va_start(args, format);
    vsnprintf(r->error, sizeof(r->error), format, args);
    va_end(args);
    return -EINVAL;
}

static const struct mk_command_shell shell = {
    .has_room = has_room,
    .begin_row = begin_row,
    .end_row = end_row,
    .offer = offer_word,
    .warn = add_warning,
    .refuse = refuse_command,
};

/* ── runs ── */

static void stop_run(struct run *run)
{
    struct plugin_run *r = MK_CONTAINER_OF(run, struct plugin_run, run);
    mk_buf_release(&r->row);
    mk_account_free(NULL, r, r->bytes);
}

static void offer_words(struct plugin_run *r)
{
    const struct mk_command *command = r->command;
    if (r->call.n_args >= command->args_max)
        return;
    if (command->complete) {
        command->complete(&r->call);
        return;
    }
    for (const char *const *word = command->words; word && *word; word++)
        offer_word(&r->call, mk_str_c(*word));
}

/* Calls the command until the output is full. Returns as mk_command.run. */
static int call_command(struct plugin_run *r)
{
    struct client *c = r->run.client;
    int err = MK_AGAIN;
    while (err == MK_AGAIN && !client_is_full(c)) {
        uint64_t before = r->call.at;
        err = r->command->run(&r->call);
        if (err == MK_AGAIN && r->call.at == before)
            return refuse_command(&r->call, "the command %s does not advance", c->command);
    }
    return err;
}

static void resume_run(struct run *run)
{
    struct plugin_run *r = MK_CONTAINER_OF(run, struct plugin_run, run);
    struct client *c = run->client;
    int err = 0;
    r->call.worker = client_worker(c);
    if (mk_generation_number(mk_worker_generation(r->call.worker)) != r->generation)
        err = refuse_command(&r->call, "a reload has changed the configuration; ask again");
    else if (r->completes)
        offer_words(r);
    else
        err = call_command(r);
    if (err == MK_AGAIN)
        return;
    client_end(c, err == 0 ? NULL : r->error[0] ? r->error : strerror(-err));
    stop_run(run);
}

/* Copies the arguments after the struct: the line is gone when a run continues. */
static void copy_args(struct plugin_run *r, const struct mk_str *args, unsigned n)
{
    char *to = (char *)&r->args[n];
    for (unsigned i = 0; i < n; i++) {
        memcpy(to, args[i].p, args[i].len);
        r->args[i] = mk_str(to, args[i].len);
        to += args[i].len;
    }
    r->call.args = r->args;
    r->call.n_args = n;
}

/* Begins the answer of a command. */
static void start_run(struct client *c, const struct mk_command *command, const struct mk_str *args, unsigned n,
                      bool completes)
{
    static const char *const views[] = {[MK_COMMAND_TABLE] = "table", [MK_COMMAND_LIST] = "list"};
    size_t bytes = sizeof(struct plugin_run) + n * sizeof(*args);
    for (unsigned i = 0; i < n; i++)
        bytes += args[i].len;
    struct plugin_run *r = mk_account_alloc(NULL, bytes);
    client_begin(c, views[command->view]);
    if (!r) {
        client_end(c, "out of memory");
        return;
    }
    *r = (struct plugin_run){.run = {.client = c, .resume = resume_run, .stop = stop_run},
                             .call = {.by = r->by, .shell = &shell},
                             .command = command,
                             .completes = completes,
                             .generation = mk_generation_number(mk_worker_generation(client_worker(c))),
                             .bytes = bytes};
    copy_args(r, args, n);
    mk_buf_init(&r->row, CLIENT_OBJECT_MAX);
    snprintf(r->by, sizeof(r->by), "process %d, user %u", c->pid, c->uid);
    c->run = &r->run;
}

static bool is_allowed(const struct mk_command *command, struct mk_str arg)
{
    for (const char *const *word = command->words; word && *word; word++)
        if (mk_str_eq(mk_str_c(*word), arg))
            return true;
    return !command->words;
}

/* Returns whether number and words of the arguments are right. */
static bool check_args(const struct mk_command *command, const struct mk_str *args, unsigned n)
{
    bool good = n >= command->args_min && n <= command->args_max;
    for (unsigned i = 0; i < n && good; i++)
        good = is_allowed(command, args[i]);
    return good;
}

void plugin_commands_run(struct client *c, const struct mk_command *command, const struct words *words)
{
    const struct mk_str *args = words->items + 1;
    unsigned n = words->n - 1;
    c->command = command->name;
    if (check_args(command, args, n))
        start_run(c, command, args, n, false);
    else if (command->args_max)
        client_refuse(c, "that is not understood: write %s %s", command->name, command->arguments);
    else
        client_refuse(c, "%s takes no arguments", command->name);
}

void plugin_commands_complete(struct client *c, const struct words *words)
{
    const struct mk_command *command = NULL;
    if (words->n > 1)
        command = plugin_commands_find(mk_worker_generation(client_worker(c)), words->items[1]);
    if (command) {
        start_run(c, command, words->items + 2, words->n - 2, true);
        return;
    }
    client_begin(c, "table");
    client_end(c, NULL);
}
