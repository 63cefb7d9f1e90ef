// SPDX-License-Identifier: Apache-2.0
/*
 * A shell for the commands of plugins (<monkey/kit/command.h>) in unit tests: keeps the rows of an answer as text, a
 * line each, in which quotes are left out.
 */
#ifndef MK_UNIT_COMMAND_CALL_H
#define MK_UNIT_COMMAND_CALL_H

#include <monkey/kit/command.h>
#include <monkey/kit/json.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MK_TEST_CALL_BYTES = 64 * 1024, MK_TEST_CALL_ARGS = 8 };

struct mk_test_call {
    struct mk_command_call base;
    struct mk_str args[MK_TEST_CALL_ARGS];
    unsigned rows, rows_max; /* so many have room */
    struct mk_buf row, out;
    char warning[512], error[512], storage[2][MK_TEST_CALL_BYTES];
};

static inline struct mk_test_call *mk_test_call_of(struct mk_command_call *call)
{
    return (struct mk_test_call *)(void *)call;
}

static inline bool mk_test_call_has_room(struct mk_command_call *call)
{
    return mk_test_call_of(call)->rows < mk_test_call_of(call)->rows_max;
}

static inline struct mk_buf *mk_test_call_begin_row(struct mk_command_call *call)
{
    struct mk_test_call *c = mk_test_call_of(call);
    mk_buf_init_fixed(&c->row, c->storage[0], sizeof(c->storage[0]));
    mk_json_open(&c->row, NULL, '{');
    return &c->row;
}

static inline void mk_test_call_end_row(struct mk_command_call *call)
{
    struct mk_test_call *c = mk_test_call_of(call);
    mk_json_close_line(&c->row);
    c->rows++;
    for (size_t i = 0; i < c->row.len; i++)
        if (c->row.data[i] != '"')
            mk_buf_addc(&c->out, c->row.data[i]);
}

static inline void mk_test_call_offer(struct mk_command_call *call, struct mk_str word)
{
    mk_buf_addf(&mk_test_call_of(call)->out, "%.*s ", MK_STR_ARG(word));
}

static inline MK_PRINTF(2, 3) void mk_test_call_warn(struct mk_command_call *call, const char *format, ...)
{
    struct mk_test_call *c = mk_test_call_of(call);
    va_list args;
    va_start(args, format);
    vsnprintf(c->warning, sizeof(c->warning), format, args);
    va_end(args);
}

static inline MK_PRINTF(2, 3) int mk_test_call_refuse(struct mk_command_call *call, const char *format, ...)
{
    struct mk_test_call *c = mk_test_call_of(call);
    va_list args;
    va_start(args, format);
    vsnprintf(c->error, sizeof(c->error), format, args);
    va_end(args);
    return -EINVAL;
}

/* Prepares a call with the words of `line` as arguments; it must stay. */
static inline void mk_test_call_init(struct mk_test_call *c, struct mk_worker *worker, const char *line)
{
    static const struct mk_command_shell shell = {mk_test_call_has_room, mk_test_call_begin_row, mk_test_call_end_row,
                                                  mk_test_call_offer,    mk_test_call_warn,      mk_test_call_refuse};
    memset(c, 0, sizeof(*c));
    c->base = (struct mk_command_call){.worker = worker, .args = c->args, .by = "a test", .shell = &shell};
    c->rows_max = UINT32_MAX;
    mk_buf_init_fixed(&c->out, c->storage[1], sizeof(c->storage[1]));
    for (const char *at = line; *at; at += strspn(at, " ")) {
        c->args[c->base.n_args++] = mk_str(at, strcspn(at, " "));
        at += strcspn(at, " ");
    }
}

/* Returns what was added, and begins anew. */
static inline const char *mk_test_call_take(struct mk_test_call *c)
{
    const char *text = mk_buf_cstr(&c->out);
    c->out.len = 0;
    c->rows = 0;
    return text;
}

#endif
