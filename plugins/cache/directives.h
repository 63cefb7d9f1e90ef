// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [CACHE]: memory in monkey.conf, and what is cached by hosts.
 */
#ifndef CACHE_DIRECTIVES_H
#define CACHE_DIRECTIVES_H

#include <monkey/plugin.h>

/* How soon a change of a file is seen. */
enum files_mode { FILES_OFF, FILES_EACH_CYCLE, FILES_REVALIDATE, FILES_IMMUTABLE };

struct files_policy {
    uint8_t mode;         /* enum files_mode */
    uint32_t interval_ms; /* FILES_REVALIDATE */
};

/* A section [CACHE] of a host. */
struct cache_rule {
    struct mk_pattern match;
    struct files_policy files;
};

/* The section [CACHE] of the server. */
struct cache_conf {
    uint64_t bytes_max, body_bytes_max;
    int64_t descriptors_max, missing_max;
};

/* The sections for struct mk_plugin. */
enum { DIRECTIVES_SERVER, DIRECTIVES_RULES };
extern const struct mk_conf_section directives_sections[];

/* Parses the value of `Files` into a struct files_policy; an mk_conf_parse_fn. */
int directives_parse_files(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                           struct mk_buf *error);
/* Returns the name of a mode. */
const char *directives_mode_name(enum files_mode mode);

/* What paths have that no section matches. */
extern const struct files_policy directives_default_policy;

#endif
