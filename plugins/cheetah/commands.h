// SPDX-License-Identifier: Apache-2.0
/*
 * The commands of the shell itself, as a table. Plugins have more: plugin_commands.h.
 */
#ifndef CHEETAH_COMMANDS_H
#define CHEETAH_COMMANDS_H

#include "client.h"

/* Runs a command with the words of a line, the first of which is its name. Sends the answer, or begins a run. */
typedef void (*command_fn)(struct client *c, const struct words *words);

struct command {
    const char *name;
    char letter;                  /* the command is \letter, too; '\0': none */
    const char *arguments, *help; /* `help` NULL: it is for programs, and not listed */
    command_fn run;               /* NULL: the shell itself does it */
    /*
     * What the arguments are, for completion: "command", "connection", "host", "level", "method"; "server": the command
     * `complete` says it. NULL: nothing is known of them.
     */
    const char *complete;
};

/* Ends with a row without a name. */
extern const struct command commands[];

/* Finds a command of the shell itself by its name or letter; NULL: it has none. */
const struct command *commands_find(struct mk_str name);
/* Finds the command of the first word and runs it. An unknown one is answered with the nearest name. */
void commands_run(struct client *c, const struct words *words);

/* info.c */
void info_help(struct client *c, const struct words *words);
void info_status(struct client *c, const struct words *words);
void info_uptime(struct client *c, const struct words *words);
void info_config(struct client *c, const struct words *words);
void info_plugins(struct client *c, const struct words *words);
void info_vhosts(struct client *c, const struct words *words);
/* workers.c */
void workers_list(struct client *c, const struct words *words);
void workers_timers(struct client *c, const struct words *words);
void workers_memory(struct client *c, const struct words *words);
void workers_status(struct client *c);
/* conns.c */
void conns_run(struct client *c, const struct words *words);
/* trace.c */
void trace_run(struct client *c, const struct words *words);
/* control.c */
void control_log(struct client *c, const struct words *words);
void control_reload(struct client *c, const struct words *words);
void control_reopen(struct client *c, const struct words *words);
void control_drain(struct client *c, const struct words *words);
/* explain.c */
void explain_run(struct client *c, const struct words *words);
/* counts.c */
void counts_run(struct client *c, const struct words *words);

#endif
