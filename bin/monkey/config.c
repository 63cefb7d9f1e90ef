// SPDX-License-Identifier: Apache-2.0
/*
 * Finds and loads the configuration.
 */
#include "program.h"

#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
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

/* Returns the installed directory of the configuration. */
static const char *config_find_installed(void)
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

static void configure_one_shot(struct mk_server *server, const struct options *o)
{
    mk_server_one_shot(server, o->root);
    if (o->list) /* a section with the defaults of all other keys */
        mk_server_set_plugin(server, "DIRLISTING", "ReadMe", "README.md", "option --list");
    mk_server_set_plugin(server, "CACHE", "Memory", "0", "option --one-shot"); /* loads it, with its defaults */
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
    if (o->action != ACTION_SERVE)
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

/* ── the server that serves the configuration already ── */

enum { PROC_BYTES = 64 };

/* Reads a file of /proc/PID, cut to `size` with a NUL at its end. Returns the number of its bytes. */
static size_t read_file(int pid, const char *name, char *to, size_t size)
{
    char path[PROC_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, to, size - 1);
    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* ── folders ── */

static bool is_same_folder(const char *a, const char *b)
{
    struct stat one, other;
    return a && stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* A relative path begins in the folder of the process. A daemon has left that, and it may be hidden: then in ours. */
static bool is_folder_of(int pid, const char *folder, const char *own)
{
    char path[PATH_MAX], link[PROC_BYTES], here[2] = "";
    snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
    bool left = readlink(link, here, sizeof(here)) < 0 || (here[0] == '/' && !here[1]);
    if (folder[0] == '/' || left)
        return is_same_folder(folder, own);
    int n = snprintf(path, sizeof(path), "%s/%s", link, folder);
    return n > 0 && n < (int)sizeof(path) && is_same_folder(path, own);
}

/* ── the command line ── */

/* The configuration that a command line names, and whether it names none because the program finds it. */
struct command_line {
    char text[2 * PATH_MAX];
    const char *folder; /* or file; NULL: none */
    bool finds;
};

/* Returns the value of an option in its argument, after `between`, or in the next one; NULL: it is another option. */
static const char *get_value(const char *argument, const char *option, const char *between, const char *next)
{
    size_t n = strlen(option), len = strlen(between);
    if (strncmp(argument, option, n) != 0)
        return NULL;
    if (!argument[n])
        return next;
    return strncmp(argument + n, between, len) == 0 ? argument + n + len : NULL;
}

/*
 * Reads the command line of a process; only flags may stand next to a folder that it finds. A file without an option is
 * known if it is `own`, the configuration of this process.
 */
static void read_command_line(int pid, const char *own, struct command_line *c)
{
    bool is_file = options_is_file(own);
    size_t len = read_file(pid, "cmdline", c->text, sizeof(c->text));
    const char *end = c->text + len;
    c->folder = NULL;
    c->finds = len > 0;
    for (const char *argument = c->text + strlen(c->text) + 1; argument < end; argument += strlen(argument) + 1) {
        const char *next = argument + strlen(argument) + 1 < end ? argument + strlen(argument) + 1 : NULL;
        const char *short_form = get_value(argument, "-c", "", next);
        const char *value = short_form ? short_form : get_value(argument, "--config", "=", next);
        if (value || (is_file && argument[0] != '-' && is_folder_of(pid, argument, own)))
            c->folder = value ? value : argument;
        c->finds &= argument[0] == '-' && strncmp(argument, "-o", 2) != 0 && strncmp(argument, "--one-shot", 10) != 0;
    }
}

/* Whether both are this program, by the names of their processes. */
static bool is_same_program(int pid)
{
    char name[PROC_BYTES], own[PROC_BYTES];
    return read_file(pid, "comm", name, sizeof(name)) && read_file(getpid(), "comm", own, sizeof(own)) &&
           strcmp(name, own) == 0;
}

bool own_server_is(int pid, void *options)
{
    const struct options *o = options;
    struct command_line line;
    if (!o->dir || pid == getpid())
        return false;
    read_command_line(pid, o->dir, &line);
    if (line.folder)
        return is_folder_of(pid, line.folder, o->dir);
    return line.finds && is_same_program(pid) &&
           (is_folder_of(pid, "conf", o->dir) || is_same_folder(config_find_installed(), o->dir));
}
