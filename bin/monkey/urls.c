// SPDX-License-Identifier: Apache-2.0
/*
 * The URLs of a server (urls.h), from the addresses of the listening sockets. Workers can have a socket each for
 * the same address, so every URL is printed once only.
 */
#include "urls.h"

#include "launcher.h"

#include <monkey/base/address.h>

#include <assert.h>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { URLS_MAX = 32, URL_BYTES = sizeof(((struct sockaddr_un *)0)->sun_path) + 16 };

struct urls {
    const struct mk_server *server;
    bool https; /* of the listener at hand */
    unsigned n;
    char texts[URLS_MAX][URL_BYTES];
};

union address {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

static void add_text(struct urls *urls, const char *text)
{
    assert(urls->n <= URLS_MAX);
    for (unsigned i = 0; i < urls->n; i++)
        if (strcmp(urls->texts[i], text) == 0)
            return;
    if (urls->n < URLS_MAX)
        snprintf(urls->texts[urls->n++], URL_BYTES, "%s", text);
}

static void add_url(struct urls *urls, const char *host, unsigned port)
{
    char text[URL_BYTES];
    const char *scheme = urls->https ? "https" : "http";
    if (port == (urls->https ? 443 : 80))
        snprintf(text, sizeof(text), "%s://%s/", scheme, host);
    else
        snprintf(text, sizeof(text), "%s://%s:%u/", scheme, host, port);
    add_text(urls, text);
}

static void add_address(struct urls *urls, const union address *addr, unsigned port)
{
    bool v6 = addr->sa.sa_family == AF_INET6;
    struct mk_address address;
    mk_address_set(&address, addr->sa.sa_family,
                   v6 ? (const void *)&addr->in6.sin6_addr : (const void *)&addr->in.sin_addr, 0);
    v6 = address.family == AF_INET6; /* an IPv4-mapped address has become IPv4 */
    MK_BUF_ON_STACK(host, URL_BYTES);
    mk_buf_adds(&host, v6 ? MK_STR("[") : MK_STR(""));
    mk_address_print(&address, &host);
    mk_buf_adds(&host, v6 ? MK_STR("]") : MK_STR(""));
    add_url(urls, mk_buf_cstr(&host), port);
}

static void add_interface(struct urls *urls, const struct ifaddrs *one, int family, unsigned port)
{
    const union address *addr = (const union address *)(const void *)one->ifa_addr;
    if (!addr || (one->ifa_flags & IFF_LOOPBACK) || !(one->ifa_flags & IFF_UP))
        return;
    bool v4 = addr->sa.sa_family == AF_INET, v6 = addr->sa.sa_family == AF_INET6 && family == AF_INET6;
    if (v4 || (v6 && !IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr)))
        add_address(urls, addr, port);
}

/* For a listener on all addresses: an IPv6 one takes connections over IPv4 too. */
static void add_all_interfaces(struct urls *urls, int family, unsigned port)
{
    struct ifaddrs *all;
    add_url(urls, "localhost", port);
    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next)
        add_interface(urls, one, family, port);
    freeifaddrs(all);
}

static void add_unix(struct urls *urls, const struct sockaddr_un *addr)
{
    char text[URL_BYTES];
    snprintf(text, sizeof(text), "unix:%s", addr->sun_path);
    add_text(urls, text);
}

static void add_listener(int fd, bool own, void *ctx)
{
    union address addr = {.sa = {0}};
    socklen_t len = sizeof(addr);
    struct urls *urls = ctx;
    const char *transport = mk_server_socket_transport(urls->server, fd);
    (void)own;
    if (!transport || getsockname(fd, &addr.sa, &len) < 0) /* without one it is a plugin's */
        return;
    urls->https = strcmp(transport, "tls") == 0;
    if (addr.sa.sa_family == AF_UNIX)
        add_unix(ctx, &addr.un);
    else if (addr.sa.sa_family == AF_INET && addr.in.sin_addr.s_addr == htonl(INADDR_ANY))
        add_all_interfaces(ctx, AF_INET, ntohs(addr.in.sin_port));
    else if (addr.sa.sa_family == AF_INET)
        add_address(ctx, &addr, ntohs(addr.in.sin_port));
    else if (addr.sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&addr.in6.sin6_addr))
        add_all_interfaces(ctx, AF_INET6, ntohs(addr.in6.sin6_port));
    else if (addr.sa.sa_family == AF_INET6)
        add_address(ctx, &addr, ntohs(addr.in6.sin6_port));
}

static void print_all(const struct urls *urls, int fd)
{
    for (unsigned i = 0; i < urls->n; i++)
        dprintf(fd, "    %s\n", urls->texts[i]);
}

void urls_print(const struct mk_server *server, const char *root)
{
    struct urls urls = {.server = server};
    char folder[PATH_MAX];
    mk_server_each_socket(server, add_listener, &urls);
    dprintf(STDOUT_FILENO, "monkey serves %s at\n", realpath(root, folder) ? folder : root);
    print_all(&urls, STDOUT_FILENO);
    dprintf(STDOUT_FILENO, "Ctrl-C stops it.\n");
}

void urls_print_on_terminal(const struct mk_server *server)
{
    struct urls urls = {.server = server};
    int terminal = launcher_get_stderr();
    if (!isatty(terminal))
        return;
    mk_server_each_socket(server, add_listener, &urls);
    dprintf(terminal, "monkey serves at\n");
    print_all(&urls, terminal);
}
