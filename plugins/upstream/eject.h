// SPDX-License-Identifier: Apache-2.0
/*
 * What counts as a failure of a server: EjectOn and EjectSlower. Pure.
 */
#ifndef UPSTREAM_EJECT_H
#define UPSTREAM_EJECT_H

#include <monkey/conf.h>
#include <monkey/status_set.h>
#include <monkey/upstreams.h>

struct eject_on {
    bool refused, timeout, reset;
    struct mk_status_set statuses;
};

/* Parses `Refused Timeout Reset 502-504` into a struct eject_on; mk_conf_parse_fn. */
int eject_parse(const struct mk_conf_value *value, void *eject_on, struct mk_arena *arena, struct mk_buf *error);

/* `slower_ms`: a response whose head takes longer is a failure; 0: none is for that. */
bool eject_is_failure(const struct eject_on *on, uint32_t slower_ms, const struct mk_upstream_outcome *outcome);
/* Appends why it is one: "status 503", "connection refused". */
void eject_write_reason(const struct mk_upstream_outcome *outcome, struct mk_buf *out);

#endif
