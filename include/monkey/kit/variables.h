// SPDX-License-Identifier: Apache-2.0
/*
 * The variables of a request, such as `$user`, for directives whose value is a text with variables: formats of logs,
 * headers for a backend. Each is a text that is known when the request's head was read; plugins may add rows of their
 * own. In the kit: plugins link -lmonkey-kit.
 *
 *     $peer "$method $target" ${user}s          variables between literals; $$ is a dollar
 */
#ifndef MONKEY_VARIABLES_H
#define MONKEY_VARIABLES_H

#include "../request.h"

MK_C_BEGIN

/* What follows a name that is a prefix: $header_NAME. */
enum mk_variable_arg { MK_VARIABLE_ARG_NONE, MK_VARIABLE_ARG_HEADER, MK_VARIABLE_ARG_NOTE };

enum { MK_VARIABLE_NAME_BYTES_MAX = 80 };

struct mk_variable {
    const char *name; /* or a prefix: see `arg` */
    /*
     * Returns the value; `.p` NULL: there is none. A client may have chosen it: it can have any bytes. `arg` is that of
     * mk_variable_parse_arg(). Valid until the callback returns. In the thread of the request's worker.
     */
    struct mk_str (*get)(struct mk_request *req, struct mk_str arg);
    const char *doc;
    enum mk_variable_arg arg;
};

/* Returns the n-th variable, from 0; NULL: there are not that many. Any thread. */
MK_API const struct mk_variable *mk_variable_at(unsigned n);
/* Returns the variable of that name, with its argument if it has one; NULL: there is none. Any thread. */
MK_API const struct mk_variable *mk_variable_find(struct mk_str name);
/* Returns the name that is nearest to one that does not exist; NULL: none is near. Any thread. */
MK_API const char *mk_variable_find_nearest(struct mk_str name);
/*
 * Returns the name for a variable of nginx or Caddy, such as path for uri; NULL: there is none. It may be one that only
 * the logger has. Any thread.
 */
MK_API const char *mk_variable_find_foreign(struct mk_str name);
/* A variable in a text that has none, with its signs, and its name here; NULL: it has none, or may have any. */
struct mk_variable_found {
    struct mk_str text;
    const char *here;
};
/*
 * Finds the first variable in a text, as this server and others write them, of a name that is known: $host, ${host},
 * {host}, %{HTTP_HOST}, %[path]. For directives whose value is sent as it is. Any thread.
 */
MK_API bool mk_variable_find_in(struct mk_str text, struct mk_variable_found *ret);
/*
 * The same for a part of a text with variables that is none of them: only forms without a dollar, such as {host}, are
 * looked for, since a dollar is one that was written as $$ there. Any thread.
 */
MK_API bool mk_variable_find_in_literal(struct mk_str text, struct mk_variable_found *ret);
/* Sets `*best`, NULL at first, to the name `own` of a variable if that is nearer to `name`, and near. Any thread. */
MK_API void mk_variable_prefer_nearer(struct mk_str name, const char *own, const char **best);
/* Tells whether `name` is that of a variable `own`, or begins with it if there is an argument. Any thread. */
MK_API bool mk_variable_is_named(const char *own, enum mk_variable_arg arg, struct mk_str name);

/*
 * Reads the argument in the name of a variable `own`, and copies it: User-Agent for "header_user_agent", but a_b for
 * "note_a_b"; it is empty for MK_VARIABLE_ARG_NONE. Any thread.
 * Returns 0, -EINVAL with a sentence in `error`, or -ENOMEM.
 */
MK_API int mk_variable_parse_arg(const char *own, enum mk_variable_arg arg, struct mk_str name, struct mk_arena *arena,
                                 struct mk_str *ret, struct mk_buf *error);

/*
 * Splits the next piece off a text: a literal, which may be empty, and the name of the variable after it; `.p` of the
 * name is NULL after a `$$`, whose literal ends with a dollar, and at the end of the text. `*ret_name` may be longer
 * than MK_VARIABLE_NAME_BYTES_MAX. Any thread.
 * Returns 1, 0 (the text is empty) or -EINVAL with a sentence in `error`: a dollar has no name after it. `*text`
 * begins with that dollar then.
 */
MK_API int mk_variable_next(struct mk_str *text, struct mk_str *ret_literal, struct mk_str *ret_name,
                            struct mk_buf *error);

/* A part of a text: a literal, which may be empty, and the variable after it, or NULL. */
struct mk_text_piece {
    const struct mk_text_piece *next;
    struct mk_str literal;
    const struct mk_variable *variable;
    struct mk_str arg; /* of the variable */
};

/*
 * Splits a text at its variables, for mk_text_write(); `*ret` is NULL for an empty one. Copies it to `arena`. Any
 * thread. Returns 0, -ENOMEM, or -EINVAL with a sentence in `error`: it has a control byte, or a name that is no
 * variable.
 */
MK_API int mk_text_parse(struct mk_str text, const struct mk_text_piece **ret, struct mk_arena *arena,
                         struct mk_buf *error);
/*
 * Appends the text with the values of a request. Returns 0 or -EINVAL: a value has a control byte other than a tab,
 * which could begin a new line.
 */
MK_API int mk_text_write(const struct mk_text_piece *text, struct mk_request *req, struct mk_buf *out);

/* Returns "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0"; `.p` NULL for a head that could not be read. A literal. */
MK_API struct mk_str mk_request_protocol(const struct mk_request *req);

MK_C_END

#endif
