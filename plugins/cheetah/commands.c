// SPDX-License-Identifier: Apache-2.0
/*
 * The table of commands (commands.h).
 */
#include "commands.h"

#include "plugin_commands.h"

#include <assert.h>

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
     "what would become of a request: host, sections, rules, handler and file", explain_run, "method"},
    {"counters", '\0', "[PATTERN]", "what the server and its plugins count", counts_run, NULL},
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
