// SPDX-License-Identifier: Apache-2.0
/*
 * Asks the plugins which files of a host are programs, whose bytes are never sent (<monkey/plugin.h>). Left out of
 * small builds.
 */
#include "server/generation.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* What the kernel appends to the name of a file that is open but deleted. */
#define DELETED MK_STR(" (deleted)")

static bool has_hook(const struct mk_host *host, unsigned i)
{
    return host->generation->plugins[i]->is_source && host->states[i];
}

bool mk_host_has_sources(const struct mk_host *host)
{
    unsigned i = 0;
    while (i < host->generation->n_plugins && !has_hook(host, i))
        i++;
    return i < host->generation->n_plugins;
}

bool mk_host_is_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    bool is_source = false;
    assert(name.len && name.p[0] == '/');
    for (unsigned i = 0; i < host->generation->n_plugins && !is_source; i++)
        is_source = has_hook(host, i) && host->generation->plugins[i]->is_source(host, kind, name);
    return is_source;
}

/* Logs once in a process that names are not known: a server without /proc sends no file of these hosts. */
static void log_unknown_name(const struct mk_host *host, int err)
{
    static _Atomic bool is_logged;
    if (!atomic_exchange(&is_logged, true))
        mk_host_log(host, MK_LOG_ERROR,
                    "no file of this host is sent: it may be a program, and /proc/self/fd cannot be read: %s",
                    strerror(err));
}

bool mk_host_is_source_fd(const struct mk_host *host, int fd)
{
    MK_UNINITIALIZED char link[32], text[PATH_MAX];
    if (!mk_host_has_sources(host))
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, text, sizeof(text));
    if (n < 0)
        log_unknown_name(host, errno);
    if (n <= 0 || n == sizeof(text) || text[0] != '/')
        return true;
    struct mk_str name = mk_str(text, (size_t)n);
    if (mk_host_is_source(host, MK_SOURCE_FILE, name))
        return true;
    bool is_deleted =
        name.len > DELETED.len && mk_str_eq(mk_str(name.p + name.len - DELETED.len, DELETED.len), DELETED);
    return is_deleted && mk_host_is_source(host, MK_SOURCE_FILE, mk_str(name.p, name.len - DELETED.len));
}
