// SPDX-License-Identifier: Apache-2.0
/*
 * What a line says: a text with fields in it, read once into steps that are then taken for each line.
 *
 *     $peer "$method $target" ${status}b        named fields between literals; $$ is a dollar
 *     common, combined, error                   known ones by name
 *     json, json $peer $status                  an object of all usual fields, or of those that are named
 */
#ifndef LOGGER_FORMAT_H
#define LOGGER_FORMAT_H

#include <monkey/conf.h>
#include <monkey/request.h>

#include "line.h"

/* One exchange that is over, as the fields see it. */
struct log_entry {
    struct mk_request *req;
    unsigned worker;
};

struct format_op;
struct log_variable;

struct format {
    const struct format_op *ops;
    uint32_t n, fixed; /* `fixed`: as of line_begin() */
    bool json;
};

/* For MK_CONF_KEY_CUSTOM: reads a struct format. */
int format_parse(const struct mk_conf_value *value, void *format, struct mk_arena *arena, struct mk_buf *error);

/* One line without its end; its time is set. */
void format_put(const struct format *f, struct line *l, const struct log_entry *e);

/* In the place of lines that did not come through. */
void format_put_lost(const struct format *f, struct line *l, uint64_t lost);
enum { FORMAT_LOST_FIXED = 128 };

#endif
