// SPDX-License-Identifier: Apache-2.0
/*
 * Listening sockets from another process (server/listen/listeners.h): a service manager, the supervisor, or the server
 * before an upgrade. Each goes to the Listen directive that names its address.
 */
#include "server/listen/listeners.h"

#include "net/listen.h"

#include <monkey/base/arena.h>
#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

/* A socket that no Listen has claimed yet. */
struct mk__inherited {
    struct mk_list node;
    int fd;
    bool own; /* a Unix socket's path is unlinked at the end, as for sockets that this process has made */
    struct mk__addr addr;
};

static int get_socket_option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);
    return getsockopt(fd, level, name, &value, &len) < 0 ? -errno : value;
}

/* Returns 0, -EPROTOTYPE (no stream), -EINVAL (does not listen), -EAFNOSUPPORT or another -errno. */
static int check_socket(int fd, struct mk__addr *ret_addr)
{
    *ret_addr = (struct mk__addr){.len = sizeof(ret_addr->un)};
    int type = get_socket_option(fd, SOL_SOCKET, SO_TYPE);
    if (type < 0)
        return type;
    if (type != SOCK_STREAM)
        return -EPROTOTYPE;
    if (get_socket_option(fd, SOL_SOCKET, SO_ACCEPTCONN) != 1)
        return -EINVAL;
    if (getsockname(fd, &ret_addr->sa, &ret_addr->len) < 0)
        return -errno;
    int family = ret_addr->sa.sa_family;
    if (family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&ret_addr->in6.sin6_addr))
        ret_addr->any = get_socket_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0;
    bool named = family != AF_UNIX || ret_addr->un.sun_path[0] == '/';
    return named && (family == AF_UNIX || family == AF_INET || family == AF_INET6) ? 0 : -EAFNOSUPPORT;
}

int mk__inherited_add(struct mk__listeners *s, int fd, bool own)
{
    assert(fd >= 0);
    struct mk__addr addr;
    int err = check_socket(fd, &addr);
    if (err < 0)
        return err;
    err = mk__listen_unretire(fd);
    if (err < 0) { /* a reload had retired it when its process died; this one has no right to undo that */
        mk_log_warn("closing an inherited socket that gets no connections any more: a reload had ended it (%s)",
                    strerror(-err));
        close(fd);
        return 0;
    }
    struct mk__inherited *one = mk_account_alloc(NULL, sizeof(*one));
    if (!one)
        return -ENOMEM;
    *one = (struct mk__inherited){.fd = fd, .own = own, .addr = addr};
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    mk_list_add(&s->inherited, &one->node);
    return 0;
}

/* ── matching sockets and directives ── */

/* Compares addresses without their ports. */
static bool is_same_host(const struct mk__addr *wanted, const struct mk__addr *bound)
{
    if (wanted->any && bound->sa.sa_family == AF_INET)
        return bound->in.sin_addr.s_addr == htonl(INADDR_ANY); /* a system without IPv6 */
    if (wanted->sa.sa_family != bound->sa.sa_family)
        return false;
    switch (wanted->sa.sa_family) {
    case AF_INET:
        return wanted->in.sin_addr.s_addr == bound->in.sin_addr.s_addr;
    case AF_INET6:
        return wanted->in6.sin6_scope_id == bound->in6.sin6_scope_id &&
               IN6_ARE_ADDR_EQUAL(&wanted->in6.sin6_addr, &bound->in6.sin6_addr);
    default:
        return strcmp(wanted->un.sun_path, bound->un.sun_path) == 0;
    }
}

static bool is_same_addr(const struct mk__addr *wanted, const struct mk__addr *bound)
{
    return is_same_host(wanted, bound) && mk__addr_port(wanted) == mk__addr_port(bound);
}

/* A directive that names just this address has precedence over one with port 0. */
static bool is_claimed(const struct mk__settings *settings, const struct mk__addr *bound)
{
    for (unsigned i = 0; i < settings->listen.n; i++)
        if (is_same_addr(&settings->listen.items[i].addr, bound))
            return true;
    return false;
}

static bool is_match(const struct mk__listener *one, const struct mk__settings *settings, const struct mk__addr *bound)
{
    if (one->n) /* further sockets of the same address */
        return is_same_addr(&one->addr, bound);
    if (is_same_addr(&one->configured, bound))
        return true;
    return bound->sa.sa_family != AF_UNIX && mk__addr_port(&one->configured) == 0 &&
           is_same_host(&one->configured, bound) && !is_claimed(settings, bound);
}

static int add_inherited(struct mk__listener *one, struct mk__inherited *found)
{
    assert(one->state == MK__LISTENER_NEW);
    int *fds = mk_account_alloc(NULL, (one->n + 1) * sizeof(int));
    if (!fds)
        return -ENOMEM;
    if (one->n)
        memcpy(fds, one->fds, one->n * sizeof(int));
    mk_account_free(NULL, one->fds, 0);
    fds[one->n] = found->fd;
    one->fds = fds;
    if (one->n++ == 0)
        one->addr = found->addr;
    one->rights = MK__LISTEN_DEFAULT_RIGHTS; /* which are not known */
    if (!found->own)
        one->owner = MK__LISTENER_EXTERNAL;
    else if (one->owner == MK__LISTENER_OWNED)
        one->owner = MK__LISTENER_SHARED; /* until these settings are in use */
    one->shared |= !found->own;
    mk_list_del(&found->node);
    mk_account_free(NULL, found, sizeof(*found));
    return 0;
}

int mk__inherited_take(struct mk__listeners *s, struct mk__listener *one, const struct mk__settings *settings)
{
    int err = 0;
    MK_LIST_EACH_ITEM(&s->inherited, struct mk__inherited, node, found) {
        if (err == 0 && is_match(one, settings, &found->addr))
            err = add_inherited(one, found);
    }
    return err;
}

bool mk__inherited_conflicts(const struct mk__listeners *s, const struct mk__addr *addr)
{
    MK_LIST_EACH_ITEM(&s->inherited, struct mk__inherited, node, one)
        if (mk__addr_conflicts(&one->addr, addr))
            return true;
    return false;
}

void mk__inherited_release(struct mk__listeners *s, bool used)
{
    MK_LIST_EACH_ITEM(&s->inherited, struct mk__inherited, node, one) {
        MK_BUF_ON_STACK(text, 160);
        mk__addr_print(&one->addr, &text);
        if (used)
            mk_log_warn("closing the inherited socket %s: no Listen names it", mk_buf_cstr(&text));
        if (used && one->own && one->addr.sa.sa_family == AF_UNIX)
            mk__listen_unlink(one->fd, one->addr.un.sun_path);
        close(one->fd);
        mk_list_del(&one->node);
        mk_account_free(NULL, one, sizeof(*one));
    }
}
