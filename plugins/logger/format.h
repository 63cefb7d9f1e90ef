// SPDX-License-Identifier: Apache-2.0
/*
 * The format of lines: a text with variables, parsed once into ops that are run for each line.
 *
 *     $peer "$method $target" ${status}b        variables between literals; $$ is a dollar
 *     common, combined, error                   formats by name
 *     json, json $peer $status                  an object of the usual variables, or of these; the usual ones of a host
 *                                               that forwards requests include those of upstreams
 */
#ifndef LOGGER_FORMAT_H
#define LOGGER_FORMAT_H

#include <monkey/conf.h>

#include "variables.h"

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

#endif
