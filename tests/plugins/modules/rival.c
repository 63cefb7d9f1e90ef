// SPDX-License-Identifier: Apache-2.0
/*
 * rival: adds a command that the plugin commander has.
 */
#include <monkey/hooks.h>
#include <monkey/kit/command.h>
#include <monkey/plugin.h>

static int do_nothing(struct mk_command_call *call)
{
    (void)call;
    return 0;
}

static const struct mk_command commands[] = {
    {.name = "doors", .arguments = "", .help = "does nothing", .run = do_nothing},
    {0},
};

static const struct mk_inspect_hooks inspect_hooks = {.commands = commands};

MK_PLUGIN(rival) = {
    MK_PLUGIN_HEAD("rival", "1.0", "takes a name that is taken"),
    .inspection = &inspect_hooks,
};
