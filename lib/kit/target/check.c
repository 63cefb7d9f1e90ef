// SPDX-License-Identifier: Apache-2.0
/*
 * Warns of servers that cannot be connected to (<monkey/kit/target.h>).
 */
#include <monkey/kit/target.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns why a socket cannot be used now; NULL: it can, as far as can be told. */
static const char *check_socket(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT ? "does not exist now" : strerror(errno);
    if (!S_ISSOCK(st.st_mode))
        return "is no socket";
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 ? "may not be opened by the user of this server" : NULL;
}

void mk_target_check(struct mk_host *host, const void *section, size_t offset, unsigned nth,
                     const struct mk_dial_target *target)
{
    const char *problem = target && !target->port ? check_socket(target->host.p) : NULL;
    if (target && mk_generation_listens(mk_host_generation(host), target))
        mk_host_warn(host, section, offset, nth,
                     "%.*s is this server itself, by a Listen line: a request that comes back to the section which "
                     "passes it on gets 508 in the end",
                     MK_STR_ARG(target->text));
    else if (problem)
        mk_host_warn(host, section, offset, nth, "the socket %.*s %s: requests get 502 until it can be used",
                     MK_STR_ARG(target->host), problem);
}
