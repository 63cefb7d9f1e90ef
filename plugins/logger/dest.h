// SPDX-License-Identifier: Apache-2.0
/*
 * The destination of a log: the value of AccessLog or ErrorLog.
 */
#ifndef LOGGER_DEST_H
#define LOGGER_DEST_H

#include <monkey/conf.h>
#include <monkey/log_writer.h>

/* Parses a struct mk_log_dest; an mk_conf_parse_fn. */
int dest_parse(const struct mk_conf_value *value, void *dest, struct mk_arena *arena, struct mk_buf *error);

#endif
