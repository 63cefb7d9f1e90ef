// SPDX-License-Identifier: Apache-2.0
/*
 * Names of states (admin.h).
 */
#include "admin.h"

const char *const admin_state_names[ADMIN_STATES] = {
    [ADMIN_UNSET] = "", [ADMIN_UP] = "up", [ADMIN_DRAIN] = "drain", [ADMIN_DOWN] = "down"};

enum admin_state admin_find_state(struct mk_str name)
{
    for (unsigned i = ADMIN_UP; i < ADMIN_STATES; i++)
        if (mk_str_eq(mk_str_c(admin_state_names[i]), name))
            return (enum admin_state)i;
    return ADMIN_UNSET;
}
