// SPDX-License-Identifier: Apache-2.0
/*
 * shorter: says the right number, but its struct ends early.
 */
#include <monkey/plugin.h>

MK_PLUGIN(shorter) = {
    .abi = MK_PLUGIN_ABI,
    .size = sizeof(struct mk_plugin) - 8,
    .name = "shorter",
    .version = "1.0",
    .summary = "does not fit",
};
