// SPDX-License-Identifier: Apache-2.0
/*
 * The sections of a host as structs. They live as long as the generation.
 */
#ifndef REDIRECT_RULES_H
#define REDIRECT_RULES_H

#include <monkey/conf.h>

#include "target.h"
#include <monkey/when.h>

struct redirect_rule {
    struct mk_pattern match;
    struct target to;
    struct mk_when when;
    int status; /* an index of status_codes[] */
    bool keep_path;
};

struct rewrite_rule {
    struct mk_pattern match;
    struct target to;
    struct mk_when when;
    bool keep_path, keep_query, last;
};

struct redirect_host {
    struct target to;
};

enum { RULES_REDIRECT, RULES_REWRITE, RULES_HOST };

/* In the order of the enum. */
extern const struct mk_conf_section redirect_sections[];

/* Returns the status that the rule sends. */
int redirect_status(const struct redirect_rule *rule);

#endif
