// SPDX-License-Identifier: Apache-2.0
#ifndef LOGGER_LOGGER_H
#define LOGGER_LOGGER_H

#include <monkey/base/list.h>
#include <monkey/base/str.h>
#include <monkey/conf.h>
#include <monkey/kit/log_writer.h>
#include <monkey/kit/variables.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <stdatomic.h>

/*
 * Builds a line in storage of the caller. The result is printable ASCII, whatever a client has sent.
 *
 * A part of the room is reserved for text of the server (literals, numbers). Values of clients share the rest and are
 * truncated there, so that a long one leaves some of it to those that follow.
 */
enum { LINE_BYTES_MAX = 8192, LINE_FIXED_MAX = 4096, LINE_VARIABLE_FIXED = 48, LINE_SHARE = 256 };

/*
 * How bytes are escaped that are not printable ASCII, and quotes and backslashes.
 *
 *     WORD      \xNN, blanks too: the value stays one word
 *     QUOTED    \xNN
 *     JSON      \u00NN for each byte: decoded, the characters 0 to 255 are the bytes
 */
enum line_form { LINE_WORD, LINE_QUOTED, LINE_JSON };

struct line {
    char *start, *at;
    size_t left;    /* for values */
    size_t kept;    /* of that for values which follow the next one */
    bool cut;       /* a value was truncated */
    int64_t second; /* of the texts below */
    uint32_t ms;
    char clf[32], iso[24]; /* "20/Nov/2026:03:36:14 +0000", "2026-11-20T03:36:14" */
};

/* Begins a line at `storage` of LINE_BYTES_MAX bytes, with `fixed` of them reserved. */
static inline void line_begin(struct line *l, char *storage, size_t fixed)
{
    assert(fixed <= LINE_BYTES_MAX);
    l->start = l->at = storage;
    l->left = LINE_BYTES_MAX - fixed;
    l->kept = 0;
    l->cut = false;
}

static inline size_t line_length(const struct line *l)
{
    return (size_t)(l->at - l->start);
}

/* Adds text of the server, unescaped, from the reserved bytes. */
static inline void line_put(struct line *l, struct mk_str s)
{
    assert(line_length(l) + l->left + s.len <= LINE_BYTES_MAX);
    memcpy(l->at, s.p, s.len);
    l->at += s.len;
}

static inline void line_put_char(struct line *l, char c)
{
    assert(line_length(l) + l->left < LINE_BYTES_MAX);
    *l->at++ = c;
}

void line_put_number(struct line *l, uint64_t value);
/* Adds a value of a client, escaped. */
void line_put_value(struct line *l, struct mk_str s, enum line_form form);

/* Sets the time of the line; formats the texts again if the second has changed. */
void line_set_time(struct line *l, int64_t second, uint32_t ms);
/* Adds that time as "2026-11-20T03:36:14.123Z". */
void line_put_iso(struct line *l);

/*
 * The variables of a format: those of requests (<monkey/kit/variables.h>), and one row for each of those that are known
 * when the exchange is over.
 */
/* An exchange that is over. */
struct log_entry {
    struct mk_request *req;
    unsigned worker;
};

struct log_variable;

/* One step of a format: a variable of one of two kinds, or (both NULL) a literal. */
struct log_op {
    const struct log_variable *variable;
    const struct mk_variable *request_variable;
    struct mk_str arg; /* the literal; the argument of the variable, empty if it has none */
    enum line_form form;
};

/* One of `text`, `number` and `put`. */
struct log_variable {
    const char *name;
    /* Returns a value that a client may have chosen; `.p` NULL: there is none. */
    struct mk_str (*text)(const struct log_entry *e, const struct log_op *op);
    /* Gets a number. Returns false if there is none. */
    bool (*number)(const struct log_entry *e, uint64_t *ret);
    /* Adds the value itself, at most LINE_VARIABLE_FIXED of the reserved bytes. */
    void (*put)(struct line *l, const struct log_entry *e, const struct log_op *op);
    const char *doc;
    enum mk_variable_arg arg;
};

/* Ends with a row without a name. */
extern const struct log_variable log_variables[];

void variables_put(struct line *l, const struct log_entry *e, const struct log_op *op);

/*
 * Directives of Apache's log formats, and the variables to write here. Pure functions.
 */
/* Returns the variable for the Apache directive that `s` begins with, such as "%>s"; NULL: it begins with none. */
const char *foreign_find_directive(struct mk_str s);

/*
 * The format of lines: a text with variables, parsed once into ops that are run for each line.
 *
 *     $peer "$method $target" ${status}b        variables between literals; $$ is a dollar
 *     common, combined, error                   formats by name
 *     json, json $peer $status                  an object of the usual variables, or of these; the usual ones of a host
 *                                               that forwards requests include those of upstreams
 */
struct format {
    const struct log_op *ops;
    uint32_t n, fixed; /* `fixed`: as of line_begin() */
    uint32_t values;   /* variables that have more than a number */
    bool json;
    const struct format *of_gateways; /* the format of hosts that forward requests; NULL: this one */
};

/* Parses a struct format; an mk_conf_parse_fn. */
int format_parse(const struct mk_conf_value *value, void *format, struct mk_arena *arena, struct mk_buf *error);

/*
 * Adds a line without its newline. Set its time before. If the values do not fit, each has at least LINE_SHARE bytes,
 * or an equal part of the room.
 */
void format_put(const struct format *f, struct line *l, const struct log_entry *e);

/* Adds a line that says how many lines were lost, instead of them. */
void format_put_lost(const struct format *f, struct line *l, uint64_t lost);
enum { FORMAT_LOST_FIXED = 128 };

/*
 * Conditions of an access log: which exchanges get a line. Parsers and filter_passes() are pure.
 */
struct filter_range {
    uint16_t first, last;
};

/* Statuses; without any, all. */
struct filter_statuses {
    struct filter_range *items;
    uint32_t n;
    bool aborted; /* and exchanges whose response is not complete */
};

/* `part` of `of` lines are written; `of` 0: all. */
struct filter_sample {
    uint32_t part, of;
};

struct filter {
    struct mk_patterns except;
    struct filter_statuses statuses;
    struct filter_sample sample;
    uint32_t slower_ms; /* 0: all */
};

/* An exchange that is over. */
struct filter_exchange {
    struct mk_str path; /* of the client, decoded */
    int status;
    bool aborted;
    uint64_t time_us;
};

/*
 * Parse the values of keys, each an mk_conf_parse_fn: "404 5xx aborted" (a struct filter_statuses; further lines
 * append), "1%" or "1/100" (a struct filter_sample).
 */
int filter_parse_statuses(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int filter_parse_sample(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/*
 * Tells whether an exchange gets a line. `credit` is what the sample has saved up from the exchanges before, from 0: of
 * each `of` exchanges that pass all other conditions exactly `part` pass.
 */
bool filter_passes(const struct filter *f, const struct filter_exchange *e, uint32_t *credit);

/*
 * The directives of the plugin, as structs that live as long as the generation.
 */
struct logger_server_conf {
    uint64_t buffer_bytes;
    uint32_t flush_ms;
};

enum log_kind { ACCESS, ERRORS, LOGS };

enum when_full { WHEN_FULL_DROP, WHEN_FULL_WAIT };

/* One [LOGGER] of a host, or of all hosts. */
struct logger_host_conf {
    struct mk_pattern match;
    struct mk_log_dest dests[LOGS];
    struct format formats[LOGS];
    struct filter filter; /* of the access log */
    bool request_id;
    int facility, when_full;
};

enum { SETTINGS_SERVER, SETTINGS_HOST };

/* In the order of the enum. */
extern const struct mk_conf_section logger_sections[];

/*
 * WhenFull wait, for one log in one worker: requests wait at the gate while too much of the log is not written. The
 * worker's loop continues; the writer sends it a message when there is room.
 *
 *     open ── half of `Buffer` waits to be written ──► closed ── a quarter or less waits ──► open: requests continue
 */
/*
 * The worker sets `closed` and then reads how much waits; the writer takes lines and then reads `closed`. So at least
 * one sees what the other did. The thread that resets `closed` opens the gate: the writer by a message, the worker
 * directly.
 */
struct gate {
    struct mk_message message; /* from the writer to the loop */
    struct mk_loop *loop;
    const struct mk_log_producer *producer;
    struct mk_list waiting;   /* waiters, the oldest first; for the worker */
    struct mk_worker *worker; /* held while the gate is closed, so that it is not freed */
    _Atomic bool closed;
};

/* Prepares the gate of a producer, which is part of it. */
void gate_init(struct gate *g, struct mk_loop *loop, const struct mk_log_producer *producer);

/*
 * Lets a request pass or wait; in the worker's thread.
 * Returns MK_DECLINED (it passes), 0 (it waits; mk_request_decline() is called later, unless it ends before) or
 * -ENOMEM.
 */
int gate_pass(struct gate *g, struct mk_request *req);

/* Opens the gate if there is room; called after lines were written. Any thread. */
void gate_check(struct gate *g);

/*
 * The logs of hosts, and those of a generation, which several hosts may share.
 */
/* The logs of a generation, each once. Workers have a producer for each row, hosts have the index of a row. */
struct log_table {
    struct mk_log_writer *writer;
    struct log_table_row {
        struct mk_log_target *target;
        bool wait; /* a host has WhenFull wait for it */
    } * rows;
    unsigned n, max;
    unsigned sections; /* of all hosts */
};

/* One section of a host. */
struct logger_logs {
    const struct logger_host_conf *settings;
    const struct format *formats[LOGS];
    unsigned number;   /* among the sections of all hosts */
    int indexes[LOGS]; /* -1: off */
};

struct logger_host {
    unsigned n, n_own; /* those of monkey.conf follow the host's own */
    struct logger_logs logs[];
};

/* Hooks of the plugin (struct mk_plugin). The state of a generation is a struct log_table, of a host a logger_host. */
int hosts_start_generation(struct mk_generation *g, void **ret_state);
void hosts_stop_generation(struct mk_generation *g, void *state);
int hosts_start(struct mk_host *host, void **ret_state);
void hosts_stop(struct mk_host *host, void *state);

/*
 * Finds the next section of a host (or NULL) from `*at` on that has the path, and moves `*at` after it. Those of
 * monkey.conf count only if none of the host's own has it. `*at` and `*own` are 0 and false at first.
 */
const struct logger_logs *hosts_find_logs(const struct logger_host *h, struct mk_str path, unsigned *at, bool *own);

#endif
