// SPDX-License-Identifier: Apache-2.0
/*
 * Lists the problems of a configuration, without those of another that is known (<monkey/monkey.h>). Left out of small
 * builds.
 */
#include "server/server.h"

static const struct mk_generation *generation_of(const struct mk_server *s)
{
    return !s ? NULL : s->failed ? s->failed : s->current;
}

struct mk_problem_counts mk_server_list_problems(const struct mk_server *s, const struct mk_server *known,
                                                 unsigned flags, struct mk_buf *out)
{
    const struct mk_generation *g = generation_of(s), *k = generation_of(known);
    struct mk__conf_list_format form = {.json = flags & MK_PROBLEMS_JSON,
                                        .as_warnings = flags & MK_PROBLEMS_AS_WARNINGS};
    struct mk__conf_counts count = {0, 0};
    if (g && g->load_conf)
        mk__conf_list_diagnostics(g->load_conf, k ? k->load_conf : NULL, form, out, &count);
    if (g && g->conf)
        mk__conf_list_diagnostics(g->conf, k ? k->conf : NULL, form, out, &count);
    return (struct mk_problem_counts){count.errors, count.warnings};
}
