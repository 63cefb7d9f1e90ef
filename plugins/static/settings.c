// SPDX-License-Identifier: Apache-2.0
/*
 * Merges the settings of a host and the server (settings.h).
 */
#include "settings.h"

const char *const settings_switch_names[] = {"Server", "Off", "On", NULL};
const char *const settings_symlink_names[] = {"Server", "Off", "Inside", "On", NULL};

static int choose_value(int own, int servers)
{
    return own ? own - 1 : servers;
}

const struct static_settings *settings_merge(struct static_site *site, const struct static_settings *server)
{
    const struct static_host *host = site->host;
    site->own_settings = (struct static_settings){
        .index = host->index.n ? host->index : server->index,
        .symlinks = choose_value(host->symlinks, server->symlinks),
        .ranges = choose_value(host->ranges, server->ranges),
        .dotfiles = choose_value(host->dotfiles, server->dotfiles),
    };
    return &site->own_settings;
}
