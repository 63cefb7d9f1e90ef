// SPDX-License-Identifier: Apache-2.0
/*
 * A site of the plugin static, below the folder of the test (folder.h).
 */
#ifndef MK_TEST_STATIC_SITE_H
#define MK_TEST_STATIC_SITE_H

#include "folder.h"

#include "plugins/static/static.h"

static struct static_settings settings;
static struct static_host host;
static struct static_site site;
static char root[512]; /* the path of the folder */

/* Opens the folder `root`, with these index files. Returns 0 or -1. */
static inline int open_site(struct mk_str *index, unsigned n)
{
    snprintf(root, sizeof(root), "%s", mk_test_path("root"));
    settings.index = (struct mk_conf_list){index, n};
    site = (struct static_site){.settings = &settings,
                                .host = &host,
                                .path = mk_str_c(root),
                                .lock = PTHREAD_MUTEX_INITIALIZER};
    site.root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return site.root_fd < 0 ? -1 : 0;
}

/* Closes it and removes the folder of the test. */
static inline int tear_down(void **state)
{
    close(site.root_fd);
    return mk_test_folder_remove(state);
}

#endif
