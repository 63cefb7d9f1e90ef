// SPDX-License-Identifier: Apache-2.0
/*
 * Looks up names of backends (names.h). A child process does, since getaddrinfo() cannot be interrupted, and a thread
 * of this module would have to end before the module is unloaded.
 */
#include "names.h"

#include <monkey/base/time.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 256 };

/* In the child: its status is 0 or an error of getaddrinfo(), which are negative. */
static _Noreturn void run_child(const char *name)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    _exit(-getaddrinfo(name, NULL, &hints, &list));
}

/* Waits until the child has ended, which closes its end of the pipe, and ends it when the time is over. */
static int wait_for_child(pid_t pid, int fd, uint32_t ms)
{
    struct pollfd poll_fd = {.fd = fd};
    uint64_t end = mk_time_monotonic_ms() + ms;
    int n, status;
    do {
        uint64_t now = mk_time_monotonic_ms();
        n = poll(&poll_fd, 1, now < end ? (int)(end - now) : 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return EAI_SYSTEM;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : EAI_AGAIN;
}

/* Returns 0 or an error of getaddrinfo(); EAI_AGAIN if the time is over. */
static int look_up_host(struct mk_str host, uint32_t ms)
{
    char name[NAME_BYTES];
    int fds[2];
    if (host.len >= sizeof(name) || pipe2(fds, O_CLOEXEC) < 0)
        return EAI_SYSTEM;
    memcpy(name, host.p, host.len);
    name[host.len] = '\0';
    pid_t pid = fork();
    if (pid == 0)
        run_child(name);
    close(fds[1]);
    int err = pid < 0 ? EAI_SYSTEM : wait_for_child(pid, fds[0], ms);
    close(fds[0]);
    return err;
}

void mk__gw_names_check(struct mk_host *host, const struct mk_gateway_conf *conf, uint32_t *left_ms)
{
    const struct mk_dial_target *target = conf->to.dial;
    if (!*left_ms || !target->port || target->addr) /* an address, or a Unix socket */
        return;
    uint64_t began = mk_time_monotonic_ms();
    int err = look_up_host(target->host, *left_ms);
    uint64_t took = mk_time_monotonic_ms() - began;
    *left_ms -= took < *left_ms ? (uint32_t)took : *left_ms;
    if (err && err != EAI_SYSTEM)
        mk_host_warn(host, conf, offsetof(struct mk_gateway_conf, to), 0,
                     "%.*s has no address now (%s); it is looked up for each connection", MK_STR_ARG(target->host),
                     gai_strerror(err));
}
