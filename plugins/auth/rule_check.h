// SPDX-License-Identifier: Apache-2.0
/*
 * Checks of a host's rules against their files and against settings of other sections, when a configuration is loaded.
 */
#ifndef AUTH_RULE_CHECK_H
#define AUTH_RULE_CHECK_H

#include "rules.h"

/*
 * Checks the rules of a host: errors are certificates that the handshake does not ask for, and a FailureDelay that is
 * not shorter than HandlerTimeout; warnings are users and groups that no line of the files has. In generation_check.
 * Returns 0, or -EINVAL, reported.
 */
int rule_check(struct mk_host *host, const struct auth_host *h);

#endif
