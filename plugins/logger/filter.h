// SPDX-License-Identifier: Apache-2.0
/*
 * Conditions of an access log: which exchanges get a line. Parsers and filter_passes() are pure.
 */
#ifndef LOGGER_FILTER_H
#define LOGGER_FILTER_H

#include <monkey/conf.h>

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

#endif
