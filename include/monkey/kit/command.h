// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of plugins for `monkey shell`: mk_inspect_hooks.commands is a table, which ends with a row without a name.
 *
 *     static int list_doors(struct mk_command_call *call)
 *     {
 *         for (; call->at < n_doors; call->at++) {
 *             if (!mk_command_has_room(call))
 *                 return MK_AGAIN;
 *             struct mk_buf *row = mk_command_begin_row(call);
 *             mk_json_cstr(row, "door", doors[call->at].name);
 *             mk_json_bool(row, "open", doors[call->at].open);
 *             mk_command_end_row(call);
 *         }
 *         return 0;
 *     }
 *
 *     static const struct mk_command commands[] = {
 *         {.name = "doors", .arguments = "", .help = "the doors", .run = list_doors},
 *         {0},
 *     };
 *
 * The plugin cheetah serves shells in the thread of a worker. The functions of a command run there, under the
 * generation in use: they must not block, and may do what any thread may, and what the thread of `call->worker` may.
 * Rows are objects of <monkey/kit/json.h>; the units are the ends of their keys ("_bytes", "_s", "_ms", "_us").
 */
#ifndef MONKEY_COMMAND_H
#define MONKEY_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/buf.h"
#include "../base/str.h"
#include "../status.h"

MK_C_BEGIN

struct mk_command_call;
struct mk_worker;

/* How the shell shows the rows. */
enum mk_command_view {
    MK_COMMAND_TABLE,
    MK_COMMAND_LIST, /* each member in a line: for one row, or few */
};

struct mk_command {
    const char *name;           /* lower case; neither one of the shell nor of another plugin */
    const char *arguments;      /* as `help` shows them: "[GROUP]", "GROUP SERVER up|down"; "" for none */
    const char *help;           /* one line, without a full stop */
    uint8_t args_min, args_max; /* how many arguments it takes; others are refused before `run` */
    uint8_t view;               /* enum mk_command_view */
    /*
     * Adds the rows of the answer. Returns 0, or mk_command_refuse(). MK_AGAIN: there is no room (see
     * mk_command_has_room()); it is called again when the shell has taken rows, with `at` as it was left.
     */
    int (*run)(struct mk_command_call *call);
    /* What an argument may be, ends with NULL; others are refused before `run`. NULL: `run` checks them. */
    const char *const *words;
    /* Offers what the argument after call->args may be, by mk_command_offer(). NULL: the words are offered. */
    void (*complete)(struct mk_command_call *call);
};

/* What the shell gives to a command. */
struct mk_command_shell {
    bool (*has_room)(struct mk_command_call *call);
    struct mk_buf *(*begin_row)(struct mk_command_call *call);
    void (*end_row)(struct mk_command_call *call);
    void (*offer)(struct mk_command_call *call, struct mk_str word);
    void (*warn)(struct mk_command_call *call, const char *format, ...) MK_PRINTF(2, 3);
    int (*refuse)(struct mk_command_call *call, const char *format, ...) MK_PRINTF(2, 3);
};

/* A call of a command. The strings are valid until the answer ends. */
struct mk_command_call {
    struct mk_worker *worker;  /* of the thread, under the generation in use */
    const struct mk_str *args; /* after the name, without a NUL */
    unsigned n_args;
    uint64_t at;    /* 0 at first; then what the command has set, for the next call of the same answer */
    const char *by; /* for the log, after a change: "process 4711, user 0" */
    const struct mk_command_shell *shell;
};

/*
 * Returns whether another row has room; if not, `run` returns MK_AGAIN. An answer between whose calls a reload has
 * changed the configuration ends there. Rows that are added without room are left out above a megabyte, with a warning.
 */
static inline bool mk_command_has_room(struct mk_command_call *call)
{
    return call->shell->has_room(call);
}

/* Begins a row, an object, whose members are added to the buffer. */
static inline struct mk_buf *mk_command_begin_row(struct mk_command_call *call)
{
    return call->shell->begin_row(call);
}

/* Ends the row. One of more than 64 KB is left out with a warning. */
static inline void mk_command_end_row(struct mk_command_call *call)
{
    call->shell->end_row(call);
}

/* Offers a word for the argument that is completed. */
static inline void mk_command_offer(struct mk_command_call *call, struct mk_str word)
{
    call->shell->offer(call, word);
}

/* Adds a warning to the answer. */
#define mk_command_warn(call, ...) (call)->shell->warn(call, __VA_ARGS__)
/* Ends the answer with a sentence that says what would be right, up to 511 bytes. Returns -EINVAL, for `run`. */
#define mk_command_refuse(call, ...) (call)->shell->refuse(call, __VA_ARGS__)

MK_C_END

#endif
