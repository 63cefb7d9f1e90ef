// SPDX-License-Identifier: Apache-2.0
/*
 * The sections of a host as structs. They live as long as the generation.
 */
#ifndef REDIRECT_RULES_H
#define REDIRECT_RULES_H

#include <monkey/conf.h>

#include "target.h"
#include <monkey/when.h>

/* What rules of both kinds begin with. */
struct path_rule {
    struct mk_pattern match;
    struct target to;
    struct mk_when when;
    bool keep_path;
};

struct redirect_rule {
    struct path_rule base;
    int status; /* an index of status_codes[] */
};

struct rewrite_rule {
    struct path_rule base;
    bool keep_query, last;
};

struct redirect_host {
    struct target to;
};

enum { RULES_REDIRECT, RULES_REWRITE, RULES_HOST };

/* In the order of the enum. */
extern const struct mk_conf_section redirect_sections[];

/* Returns the status that the rule sends. */
int redirect_status(const struct redirect_rule *rule);

/*
 * Returns the first rule of RULES_REDIRECT or RULES_REWRITE that matches a path, or of which that is not known; NULL if
 * no rule matches. `request`: what conditions look at; NULL: they are not looked at. `*ret_match`: 1 (it matches, and
 * `groups` has its captures), 0 or -errno.
 */
const void *redirect_find_rule(const struct mk_host *host, unsigned section, struct mk_str path,
                               const struct mk_when_request *request, struct mk_str *groups, int *ret_match);

#endif
