// SPDX-License-Identifier: Apache-2.0
/*
 * Finding the configuration of a bare `monkey` (conf_dir.h).
 */
#include "conf_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

const char *conf_dir_installed(void)
{
    return MONKEY_CONF_DIR;
}

bool conf_dir_has_config(const char *dir)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/monkey.conf", dir);
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

void conf_dir_report_missing(void)
{
    fprintf(stderr,
            "monkey: there is no configuration: neither ./conf/monkey.conf nor %s/monkey.conf exists\n"
            "    monkey DIR       serves the files in DIR\n"
            "    monkey -c DIR    reads the configuration in DIR\n",
            conf_dir_installed());
}
