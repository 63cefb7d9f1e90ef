// SPDX-License-Identifier: Apache-2.0
/*
 * commander: a plugin with commands for `monkey shell`.
 */
#include <monkey/hooks.h>
#include <monkey/kit/command.h>
#include <monkey/kit/json.h>
#include <monkey/plugin.h>

enum { DOORS_MAX = 1000000 };

/* Lists as many doors as the argument says. */
static int list_doors(struct mk_command_call *call)
{
    uint64_t n = 3;
    if (call->n_args && !mk_str_u64(call->args[0], DOORS_MAX, &n))
        return mk_command_refuse(call, "there are up to %d doors", DOORS_MAX);
    for (; call->at < n; call->at++) {
        if (!mk_command_has_room(call))
            return MK_AGAIN;
        struct mk_buf *row = mk_command_begin_row(call);
        mk_json_number(row, "door", (int64_t)call->at);
        mk_json_bool(row, "open", call->at % 2);
        mk_command_end_row(call);
    }
    if (n > 10)
        mk_command_warn(call, "those are many");
    return 0;
}

static void offer_numbers(struct mk_command_call *call)
{
    mk_command_offer(call, MK_STR("10"));
    mk_command_offer(call, MK_STR("1000"));
}

static int turn_key(struct mk_command_call *call)
{
    mk_log_info("commander: %s turns the key: %.*s", call->by, MK_STR_ARG(call->args[0]));
    mk_json_str(mk_command_begin_row(call), "key", call->args[0]);
    mk_command_end_row(call);
    return 0;
}

static const char *const turns[] = {"left", "right", NULL};

static const struct mk_command commands[] = {
    {.name = "doors",
     .arguments = "[NUMBER]",
     .help = "the doors",
     .args_max = 1,
     .run = list_doors,
     .complete = offer_numbers},
    {.name = "key",
     .arguments = "left|right",
     .help = "turns the key",
     .args_min = 1,
     .args_max = 1,
     .view = MK_COMMAND_LIST,
     .run = turn_key,
     .words = turns},
    {0},
};

static const struct mk_inspect_hooks inspect_hooks = {.commands = commands};

MK_PLUGIN(commander) = {
    MK_PLUGIN_HEAD("commander", "1.0", "adds commands to the shell"),
    .inspection = &inspect_hooks,
};
