// SPDX-License-Identifier: Apache-2.0
/*
 * The commands of plugins (<monkey/command.h>), as the generation in use has them.
 */
#ifndef CHEETAH_PLUGIN_COMMANDS_H
#define CHEETAH_PLUGIN_COMMANDS_H

#include "client.h"

#include <monkey/command.h>
#include <monkey/plugin.h>

/* A command and the plugin that has it; the strings are valid as long as the generation. */
struct plugin_command {
    const struct mk_command *command;
    const char *plugin;
};

/* Gets the n-th command of all plugins in their order. Returns false after the last one. Any thread. */
bool plugin_commands_get(const struct mk_generation *g, unsigned n, struct plugin_command *ret);
/* Finds the command of a name; NULL: no plugin has it. Any thread. */
const struct mk_command *plugin_commands_find(const struct mk_generation *g, struct mk_str name);

/* Runs a command: `words` are its name and its arguments, which are checked. Sends the answer, or begins a run. */
void plugin_commands_run(struct client *c, const struct mk_command *command, const struct words *words);
/* Answers with what the next argument may be: `words` are "complete", a command and the arguments so far. */
void plugin_commands_complete(struct client *c, const struct words *words);

/* Tells whether the shell itself has a command of that name. */
typedef bool (*plugin_commands_own_fn)(struct mk_str name);
/* Reports commands whose names the shell or another plugin has. From generation_check on. Returns 0 or -EINVAL. */
int plugin_commands_check(const struct mk_generation *g, plugin_commands_own_fn is_own, struct mk_buf *error);

#endif
