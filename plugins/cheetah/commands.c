// SPDX-License-Identifier: Apache-2.0
/*
 * The table of commands (commands.h).
 */
#include "commands.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

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
     orders_log, "level"},
    {"reload", '\0', "", "reads the configuration again, and tells what is wrong with it", orders_reload, NULL},
    {"drain", '\0', "", "stops the server: requests under way are finished", orders_drain, NULL},
    {"reopen", '\0', "", "opens the log files again, because they were renamed", orders_reopen, NULL},
    {"trace", '\0', "ID | peer=ADDRESS", "the states of a connection, or of all of a client, until a line is entered",
     trace_run, "connection"},
    {"rules", '\0', "[PATTERN]", "access rules and limits, with the number of their decisions", info_rules, NULL},
    {"explain", '\0', "METHOD URL [client=ADDRESS] [NAME: VALUE ...]",
     "what would become of a request: host, sections, rules, handler and file", explain_run, "method"},
    {"backends", '\0', "", "the backends of the proxy, with what is counted of each", backends_run, NULL},
    {"counters", '\0', "[PATTERN]", "what the server and its plugins count", counts_run, NULL},
    {"clear", 'c', "", "clears the screen", NULL, NULL},
    {"quit", 'q', "", "leaves the shell", NULL, NULL},
    {"\\?", '?', "", "the same as help", info_help, NULL},
    {0},
};
/* clang-format on */

void commands_refuse(struct client *c, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    client_begin(c, "text");
    client_end(c, text);
}

static const struct command *find_command(struct mk_str name)
{
    bool is_letter = name.len == 2 && name.p[0] == '\\';
    for (const struct command *each = commands; each->name; each++)
        if (is_letter ? each->letter == name.p[1] : mk_str_ieq(mk_str_c(each->name), name))
            return each;
    return NULL;
}

static void refuse_unknown(struct client *c, struct mk_str name)
{
    const struct command *nearest = NULL;
    unsigned least = UINT_MAX;
    for (const struct command *each = commands; each->name; each++) {
        unsigned distance = mk_str_distance(mk_str_c(each->name), name);
        bool begins = name.len > 1 && mk_str_starts(mk_str_c(each->name), name);
        distance = begins ? 0 : distance;
        if (distance < least) {
            least = distance;
            nearest = each;
        }
    }
    int len = (int)(name.len < 64 ? name.len : 64);
    if (nearest && least * 2 < name.len + 1)
        commands_refuse(c, "there is no command %.*s; did you mean %s?", len, name.p, nearest->name);
    else
        commands_refuse(c, "there is no command %.*s; help lists them", len, name.p);
}

void commands_run(struct client *c, const struct words *words)
{
    assert(words->n > 0 && !c->run);
    struct mk_str name = words->items[0];
    const struct command *command = find_command(name);
    if (!command) {
        refuse_unknown(c, name);
        return;
    }
    c->command = command->name;
    if (command->run)
        command->run(c, words);
    else
        commands_refuse(c, "%s is a command of the shell itself", command->name);
}
