// SPDX-License-Identifier: Apache-2.0
/*
 * Tells an operator which rules a request meets.
 */
#ifndef REDIRECT_EXPLAIN_H
#define REDIRECT_EXPLAIN_H

#include <monkey/inspect.h>

/* The hook of struct mk_plugin. */
void explain_rules(const struct mk_host *host, struct mk_explain *e);

#endif
