// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of the plugin, as structs that live as long as the generation.
 */
#ifndef LOGGER_SETTINGS_H
#define LOGGER_SETTINGS_H

#include <monkey/conf.h>

#include "dest.h"
#include "filter.h"
#include "format.h"

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

#endif
