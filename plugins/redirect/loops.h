// SPDX-License-Identifier: Apache-2.0
/*
 * Finds rules without end while the configuration is checked: paths are followed through the rules as requests would
 * be. What cannot be decided (conditions, expressions whose paths are not known) is left to the limit for requests.
 */
#ifndef REDIRECT_LOOPS_H
#define REDIRECT_LOOPS_H

#include <monkey/plugin.h>

/* Reports the rules of a host that lead to themselves. Each returns 0 or -EINVAL. During host_start. */
int loops_check_rewrites(struct mk_host *host);
int loops_check_redirects(struct mk_host *host);

#endif
