// SPDX-License-Identifier: Apache-2.0
/*
 * nameless: a shared object that is no plugin, or one that was renamed.
 */
#include <monkey/plugin.h>

MK_PLUGIN(another) = {
    MK_PLUGIN_HEAD("another", "1.0", "has another name than its file"),
};
