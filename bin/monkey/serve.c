// SPDX-License-Identifier: Apache-2.0
/*
 * Starts, runs and stops a server. The order matters: first what needs root, then root's privileges are
 * dropped, then the first thread starts.
 */
#include "program.h"

#include <monkey/base/address.h>
#include <monkey/base/file.h>

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * ── the URLs of the listeners ──
 *
 * Workers can have a socket each for the same address, so every URL is printed once only.
 */

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

/*
 * Prints the folder `root` and the URLs of all listeners on stdout. For a listener on all addresses these are localhost
 * and the addresses of the network interfaces, without link-local ones.
 */
static void urls_print(const struct mk_server *server, const char *root)
{
    struct urls urls = {.server = server};
    char folder[PATH_MAX];
    mk_server_each_socket(server, add_listener, &urls);
    dprintf(STDOUT_FILENO, "monkey serves %s at\n", realpath(root, folder) ? folder : root);
    print_all(&urls, STDOUT_FILENO);
    dprintf(STDOUT_FILENO, "Ctrl-C stops it.\n");
}

/* Prints the URLs on stderr, if that is a terminal: after the log's lines of the start. */
static void print_urls_on_terminal(const struct mk_server *server)
{
    struct urls urls = {.server = server};
    int terminal = launcher_get_stderr();
    if (!isatty(terminal))
        return;
    mk_server_each_socket(server, add_listener, &urls);
    dprintf(terminal, "monkey serves at\n");
    print_all(&urls, terminal);
}

/* ── a server from its start to its end ── */

/* Each step of a start prints what failed, and returns an exit code. */

static int write_pid(const char *path)
{
    int err = !path ? 0 : launcher_claim_pid_file(path);
    if (err == -EWOULDBLOCK)
        fprintf(stderr, "monkey: another server is running: it holds %s\n", path);
    else if (err < 0)
        fprintf(stderr, "monkey: cannot write %s: %s\n", path, mk_file_error(err));
    return err < 0 ? EXIT_RUN : EXIT_OK;
}

/* Opens what only root can open, and becomes the configured user. Does nothing if this is not root. */
static int open_and_drop_root(struct mk_server *server, const struct options *o)
{
    struct mk_server_process process;
    mk_server_process(server, &process);
    if (!process.user && geteuid() == 0)
        mk_log_warn("the server runs as root: set User in monkey.conf, or start it as another user");
    if (!privileges_must_drop(&process))
        return EXIT_OK;
    if (mk_server_listen(server) < 0)
        return print_problems(server, EXIT_RUN);
    report_as_user(server, o);
    errorlog_chown(process.uid, process.gid);
    if (privileges_drop(&process) < 0)
        return EXIT_RUN;
    mk_log_info("running as user %s (%u:%u)", process.user, process.uid, process.gid);
    return EXIT_OK;
}

/* With a supervisor or a predecessor the background is left to it: it waits for this very process. */
static int go_to_background(const struct mk_server_info *info, const struct options *o)
{
    if (!o->daemon || launcher_exists())
        return EXIT_OK;
    if (!info->error_log)
        fprintf(stderr, "monkey: the log on stderr is lost in the background; ErrorLog keeps it in a file\n");
    int err = daemon_fork();
    if (err < 0)
        fprintf(stderr, "monkey: cannot go to the background: %s\n", strerror(-err));
    return err < 0 ? EXIT_RUN : EXIT_OK;
}

static int open_error_log(const struct mk_server_info *info, const struct options *o)
{
    int err = errorlog_open(info, o->daemon);
    if (err < 0)
        fprintf(stderr, "monkey: cannot open the error log %s: %s\n", info->error_log ? info->error_log : "stderr",
                mk_file_error(err));
    return err < 0 ? EXIT_RUN : EXIT_OK;
}

static int start_server(struct mk_server *server, const struct mk_server_info *info, const struct options *o)
{
    int code = go_to_background(info, o);
    if (code == EXIT_OK)
        code = open_error_log(info, o);
    if (code == EXIT_OK)
        code = write_pid(info->pid_file);
    if (code != EXIT_OK)
        return code;
    launcher_report_counters();
    launcher_inherit_listen_fds(server);
    code = open_and_drop_root(server, o);
    privileges_apply_core_dumps(server);
    if (code == EXIT_OK && mk_server_start(server) < 0)
        code = print_problems(server, EXIT_RUN);
    if (code != EXIT_OK)
        daemon_remove_pid(info->pid_file);
    return code;
}

/* Returns whether the launcher is the process being replaced, which has printed its URLs. */
static bool is_upgrade(void)
{
    return launcher_exists() && !launcher_is_supervisor();
}

static void print_urls(const struct mk_server *server, const struct options *o)
{
    if (is_upgrade())
        return;
    const char *served = o->backend ? o->backend : o->root;
    if (served)
        urls_print(server, served);
    else
        print_urls_on_terminal(server);
}

int serve_run(struct mk_server *server, const struct options *o)
{
    char pid_file[PATH_MAX];
    struct mk_server_info info;
    mk_server_info(server, &info);
    if (info.pid_file) { /* a copy: a reload replaces `info`, but not the pid file */
        snprintf(pid_file, sizeof(pid_file), "%s", info.pid_file);
        info.pid_file = pid_file;
    }
    signals_block();
    daemon_raise_descriptors();
    if (privileges_set_no_new_privs() < 0)
        return EXIT_RUN;
    signals_take_commands(server);
    int code = start_server(server, &info, o);
    if (code == EXIT_OK)
        mk_log_info("monkey %s serves with %u workers", mk_version(), info.workers);
    if (code == EXIT_OK) {
        errorlog_write_problems(server, MK_LOG_WARN);
        launcher_notify_ready(server, info.workers);
        print_urls(server, o);
    }
    daemon_ready(code, o->daemon);
    if (code != EXIT_OK)
        return code;
    signals_serve(server);
    daemon_remove_pid(info.pid_file);
    return EXIT_OK;
}
