// SPDX-License-Identifier: Apache-2.0
/*
 * Finding the configuration of a bare `monkey` (conf_dir.h).
 */
#include "conf_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Cuts the last part off a path. Returns whether it had one. */
static bool cut_last_part(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), len = strlen(end);
    return n >= len && strcmp(path + n - len, end) == 0;
}

/*
 * Finds the configuration by the path of the program, PREFIX/bin/monkey, since it may be installed with another prefix
 * than it was built for: PREFIX/etc/monkey, or /etc/monkey for the prefix /usr, as in cmake/install_paths.cmake.
 * Returns NULL if there is none.
 */
static const char *find_by_program(void)
{
    static const char tail[] = "/etc/monkey";
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(tail));
    path[n > 0 ? n : 0] = '\0';
    if (!cut_last_part(path) || !cut_last_part(path))
        return NULL;
    if (ends_with(path, "/usr"))
        cut_last_part(path);
    memcpy(path + strlen(path), tail, sizeof(tail));
    return conf_dir_has_config(path) ? path : NULL;
}

const char *conf_dir_installed(void)
{
    const char *found = find_by_program();
    return found ? found : MONKEY_CONF_DIR;
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
