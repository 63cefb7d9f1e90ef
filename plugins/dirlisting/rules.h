// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of the sections [DIRLISTING].
 */
#ifndef DIRLISTING_RULES_H
#define DIRLISTING_RULES_H

#include <monkey/conf.h>
#include <monkey/pattern.h>

#include "listing.h"

enum archive_kind { ARCHIVE_NONE, ARCHIVE_TAR, ARCHIVE_TAR_GZ, ARCHIVE_TAR_ZST, ARCHIVE_KINDS };

/* A section [DIRLISTING] of a host. */
struct listing_rule {
    struct mk_pattern match;
    bool enabled;
    int sort; /* enum listing_sort */
    int order;
    uint64_t bytes_max;
    struct mk_str theme; /* a name, or an absolute path */
    struct mk_str theme_url;
    struct mk_conf_list readme;
    struct mk_patterns hidden;
    struct mk_conf_list archive_names;
    uint64_t archive_bytes_max;
    int64_t archive_entries_max, archive_depth_max;
    bool archive_indexed;
    /* set by the section's check: */
    bool archives[ARCHIVE_KINDS];
};

/* The section [DIRLISTING_LIMITS] of the server, for all hosts together. */
struct listing_limits {
    uint64_t memory;
    int64_t archives, archives_per_client;
};

enum { RULES_LIMITS, RULES_RULE };
extern const struct mk_conf_section rules_sections[];

/* Returns the first section of the host that matches the path; NULL: none, or it is unknown whether it matches. */
const struct listing_rule *rules_find(const struct mk_host *host, struct mk_str path);
const struct listing_limits *rules_limits(const struct mk_host *host);

/* Returns true if Hidden hides this path (or if that cannot be told). */
bool rules_is_hidden(const struct listing_rule *rule, struct mk_str path);

/* Returns the kind of a name as Archives has it ("tar.gz"); ARCHIVE_NONE: there is none of that name. */
enum archive_kind rules_archive_kind(struct mk_str name);
/* Returns that name; a literal. */
struct mk_str rules_archive_name(enum archive_kind kind);

#endif
