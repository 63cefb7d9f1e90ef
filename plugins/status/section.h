// SPDX-License-Identifier: Apache-2.0
/*
 * The section [STATUS].
 */
#ifndef STATUS_SECTION_H
#define STATUS_SECTION_H

#include <monkey/plugin.h>

struct settings {
    bool enabled, paths;
    struct mk_str status_path, metrics_path; /* without a slash at the end */
    struct mk_conf_list listeners;
    int64_t streams_max;
};

extern const struct mk_conf_section section_status[];

/* Checks that the listeners exist. Returns 0 or -EINVAL (reported). */
int section_check_host(struct mk_host *host, const struct settings *s);

/*
 * Returns true if the connection of the request may see the status: it uses one of the listeners or, without any, both
 * its other end and the client are on this machine.
 */
bool section_allows(const struct settings *s, struct mk_request *req);
/* Returns whether the status is on a listener, by the address of its Listen line. */
bool section_has_listener(const struct settings *s, struct mk_str text);

#endif
