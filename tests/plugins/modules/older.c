// SPDX-License-Identifier: Apache-2.0
/*
 * older: was built for a plugin interface that this server does not have.
 */
#include <monkey/plugin.h>

MK_PLUGIN(older) = {
    .abi = MK_PLUGIN_ABI - 1,
    .size = sizeof(struct mk_plugin),
    .name = "older",
    .version = "1.0",
    .summary = "does not fit",
};
