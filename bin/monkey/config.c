// SPDX-License-Identifier: Apache-2.0
/*
 * Finds and loads the configuration (config.h).
 */
#include "config.h"

#include "launcher.h"

#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ── its directory ── */

/* An error other than ENOENT counts as yes: reading it reports the reason. */
static bool has_config(const char *dir)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/monkey.conf", dir);
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* Cuts the last part off a path. Returns whether it had one. */
static bool remove_last_part(char *path)
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
    if (!remove_last_part(path) || !remove_last_part(path))
        return NULL;
    if (ends_with(path, "/usr"))
        remove_last_part(path);
    memcpy(path + strlen(path), tail, sizeof(tail));
    return has_config(path) ? path : NULL;
}

static int report_missing(const char *installed)
{
    fprintf(stderr,
            "monkey: there is no configuration: neither ./conf/monkey.conf nor %s/monkey.conf exists\n"
            "    monkey DIR       serves the files in DIR\n"
            "    monkey -c DIR    reads the configuration in DIR\n",
            installed);
    return EXIT_CONFIG;
}

/* What an option asks for would have no effect without the plugin. */
static int check_module(const char *option, const char *module)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s.so", mk_plugin_dir(), module);
    if (access(path, F_OK) == 0)
        return EXIT_OK;
    fprintf(stderr, "monkey: %s needs %s, which does not exist\n", option, path);
    return EXIT_CONFIG;
}

const char *config_find_installed(void)
{
    const char *by_program = find_by_program();
    return by_program ? by_program : MONKEY_CONF_DIR;
}

int config_find(struct options *o)
{
    if (o->backend)
        return check_module("proxy", "proxy");
    if (o->dir || o->root)
        return o->list ? check_module("--list", "dirlisting") : EXIT_OK;
    o->dir = "conf";
    if (access("conf/monkey.conf", R_OK) == 0)
        return EXIT_OK;
    o->dir = config_find_installed();
    return o->json || has_config(o->dir) ? EXIT_OK : report_missing(o->dir);
}

/* ── loading ── */

/* Requests are logged on stdout, unless the server goes to the background. */
static void configure_log(struct mk_server *server, const struct options *o, const char *origin)
{
    if (o->daemon)
        return;
    mk_server_set_plugin(server, "LOGGER", "AccessLog", "stdout", origin);
    mk_server_set_plugin(server, "LOGGER", "Flush", "50ms", origin);
}

/* A backend is served without a configuration. Its scheme, and the host of a port alone, may be left out. */
static void configure_proxy(struct mk_server *server, const struct options *o)
{
    static char url[PATH_MAX]; /* a reload reads it again */
    bool whole = strstr(o->backend, "://") || strncmp(o->backend, "unix:", 5) == 0;
    const char *port = o->backend + (o->backend[0] == ':');
    bool is_port = port[0] && port[strspn(port, "0123456789")] == '\0';
    snprintf(url, sizeof(url), "%s%s%s", whole ? "" : "http://", is_port ? "localhost:" : "",
             is_port ? port : o->backend);
    mk_server_set_plugin(server, "PROXY", "To", url, "option --proxy");
    configure_log(server, o, "option --proxy");
}

/* Files are cached. */
static void configure_one_shot(struct mk_server *server, const struct options *o)
{
    mk_server_one_shot(server, o->root);
    if (o->list) /* a section with the defaults of all other keys */
        mk_server_set_plugin(server, "DIRLISTING", "ReadMe", "README.md", "option --list");
    mk_server_set_plugin(server, "CACHE", "Memory", "32M", "option --one-shot");
    configure_log(server, o, "option --one-shot");
}

int config_load(struct mk_server *server, const struct options *o, char *listen_text, unsigned size)
{
    assert(o->dir || o->root || o->backend);
    const char *listen = options_listen(o, listen_text, size), *https = o->https ? "option --https" : "option --proxy";
    if (o->backend)
        configure_proxy(server, o);
    else if (o->root)
        configure_one_shot(server, o);
    else
        mk_server_configure(server, o->dir);
    if (o->action == ACTION_TEST || o->action == ACTION_SHOW)
        mk_server_check_only(server);
    if (o->action == ACTION_SERVE)
        mk_server_drops_root(server);
    if (o->action == ACTION_SERVE && !launcher_exists())
        mk_server_check_only_supervised(server);
    if (listen)
        mk_server_set(server, "SERVER", "Listen", listen, o->listen ? "option --listen" : "option --port");
    if (o->workers)
        mk_server_set(server, "SERVER", "Workers", o->workers, "option --workers");
    if (o->https || o->backend) {
        mk_server_set(server, "SERVER", "TransportLayer", "tls", https);
        mk_server_set(server, "TLS", "SelfSigned", "On", https);
    }
    int err = mk_server_load(server);
    if (err == -ENOMEM)
        fprintf(stderr, "monkey: out of memory\n");
    return err;
}
