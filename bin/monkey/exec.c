// SPDX-License-Identifier: Apache-2.0
/*
 * Starts this program again. Everything is prepared before the fork: between fork and exec only calls that are
 * async-signal-safe are allowed, since the process has several threads.
 */
#include "program.h"

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/counters.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_FD = 3, ARGUMENTS_MAX = 16, NAMES_BYTES_MAX = 1 << 20 };

/* One after the other, so that they take one page. */
static char paths[3 * PATH_MAX];
static size_t paths_len;
static const char *program = "", *config = "", *root = "";
static const struct options *options;

/* Returns the absolute path; empty if it is too long. Call it three times at most. */
static const char *make_absolute(const char *path)
{
    char here[PATH_MAX] = "", *out = paths + paths_len;
    if (path[0] != '/' && !getcwd(here, sizeof(here)))
        here[0] = '\0';
    size_t n = strlen(here), len = strlen(path);
    if (n + 1 + len >= PATH_MAX)
        return "";
    assert(paths_len + PATH_MAX <= sizeof(paths));
    memcpy(out, here, n);
    if (n)
        out[n++] = '/';
    memcpy(out + n, path, len + 1);
    paths_len += n + len + 1;
    return out;
}

static const char *find_program(void)
{
    char path[PATH_MAX];
    const char *given = (const char *)getauxval(AT_EXECFN);
    if (given && strncmp(given, "/dev/fd/", 8) != 0 && given[0])
        return make_absolute(given);
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n < 0 ? 0 : n] = '\0';
    return n < 0 ? "" : make_absolute(path);
}

void exec_init(const struct options *o)
{
    assert(!options);
    options = o;
    program = find_program();
    if (o->dir)
        config = make_absolute(o->dir);
    if (o->root)
        root = make_absolute(o->root);
}

void exec_use_absolute_paths(struct options *o)
{
    if (config[0])
        o->dir = config;
    if (root[0])
        o->root = root;
}

static void make_arguments(const char **argv, bool supervise)
{
    const struct {
        const char *option, *value;
    } rows[] = {{"-c", config[0] ? config : NULL}, {"-o", root[0] ? root : NULL},
                {"--proxy", options->backend},     {"-p", options->port},
                {"-l", options->listen},           {"-w", options->workers}};
    *argv++ = "monkey";
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        if (!rows[i].value)
            continue;
        *argv++ = rows[i].option;
        *argv++ = rows[i].value;
    }
    if (options->daemon)
        *argv++ = "-D";
    if (options->https)
        *argv++ = "--https";
    if (supervise)
        *argv++ = "--supervise";
    *argv = NULL;
}

/* Words of the command line that are programs of their own, monkey-WORD in the folder of the plugins. */
static const struct command {
    const char *word, *interpreter;
} commands[] = {
    {"shell", NULL},
    {"convert", "python3"},
};

static const struct command *find_command(const char *word)
{
    for (size_t i = 0; i < MK_COUNT_OF(commands); i++)
        if (strcmp(word, commands[i].word) == 0)
            return &commands[i];
    return NULL;
}

bool exec_is_command(const char *word)
{
    return find_command(word);
}

int exec_command(char **argv)
{
    char path[PATH_MAX];
    const struct command *command = find_command(argv[0]);
    assert(command);
    snprintf(path, sizeof(path), "%s/monkey-%s", mk_plugin_dir(), command->word);
    execv(path, argv);
    int err = errno;
    if (err == ENOENT && command->interpreter && access(path, F_OK) == 0)
        fprintf(stderr, "monkey: %s needs %s, which is not installed\n", command->word, command->interpreter);
    else
        fprintf(stderr, "monkey: cannot run %s: %s\n", path, strerror(err));
    return EXIT_OPTIONS;
}

int exec_supervisor(void)
{
    assert(options);
    const char *argv[ARGUMENTS_MAX];
    make_arguments(argv, true);
    if (sd_notify_variable())
        putenv(sd_notify_variable());
    execv(program, (char **)(uintptr_t)argv);
    return -errno;
}

/* ── the environment ── */

/*
 * Returns the memory of the counters, with which the new process continues; a supervisor, which counts nothing, makes
 * an empty one for all its servers. Negative: there is none, and the new process begins at 0.
 */
static int get_counters_fd(void)
{
    static int empty = -1;
    int fd = mk_counters_fd();
    if (fd < 0 && empty < 0)
        empty = memfd_create("counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd < 0 ? empty : fd;
}

struct exec_plan {
    const char *argv[ARGUMENTS_MAX];
    char **environment;
    int *fds, *copies; /* the descriptors to pass on, and temporary duplicates above the target numbers */
    unsigned n;
    int output;   /* stderr of the server while it starts; -1: inherit ours */
    int counters; /* -1: none */
    char pid[32], count[32], role[64], error[64], counters_variable[64];
    struct mk_buf names;
};

static bool is_listen_variable(const char *variable)
{
    return strncmp(variable, "LISTEN_PID=", 11) == 0 || strncmp(variable, "LISTEN_FDS=", 11) == 0 ||
           strncmp(variable, "LISTEN_FDNAMES=", 15) == 0;
}

static int make_environment(struct exec_plan *p, const struct ipc_sockets *sockets, const char *role)
{
    size_t n = 0;
    for (char **e = environ; *e; e++)
        n++;
    p->environment = mk_account_alloc(NULL, (n + 8) * sizeof(char *));
    mk_buf_addf(&p->names, "LISTEN_FDNAMES=");
    for (unsigned i = 0; i < sockets->n; i++)
        mk_buf_addf(&p->names, "%s%s", i ? ":" : "", sockets->items[i].own ? EXEC_FD_NAME : "unknown");
    if (!p->environment || p->names.err)
        return -ENOMEM;
    snprintf(p->count, sizeof(p->count), "LISTEN_FDS=%u", sockets->n);
    snprintf(p->role, sizeof(p->role), "%s=%u", role, FIRST_FD + sockets->n);
    memcpy(p->pid, "LISTEN_PID=", 12);
    n = 0;
    for (char **e = environ; *e; e++)
        if (!is_listen_variable(*e))
            p->environment[n++] = *e;
    p->environment[n++] = p->pid;
    p->environment[n++] = p->count;
    p->environment[n++] = (char *)(uintptr_t)mk_buf_cstr(&p->names);
    p->environment[n++] = p->role;
    if (p->output >= 0) {
        snprintf(p->error, sizeof(p->error), "%s=%u", EXEC_ENV_STDERR, FIRST_FD + sockets->n + 1);
        p->environment[n++] = p->error;
    }
    if (p->counters >= 0) {
        snprintf(p->counters_variable, sizeof(p->counters_variable), "%s=%u", EXEC_ENV_COUNTERS, FIRST_FD + p->n - 1);
        p->environment[n++] = p->counters_variable;
    }
    if (strcmp(role, EXEC_ENV_PREDECESSOR) == 0) /* a supervisor notifies for its servers */
        p->environment[n++] = sd_notify_variable();
    p->environment[n] = NULL;
    return 0;
}

static int make_plan(struct exec_plan *p, const struct ipc_sockets *sockets, const char *role, int ipc_fd, int output)
{
    *p = (struct exec_plan){.output = output, .counters = get_counters_fd()};
    p->n = sockets->n + 1 + (output >= 0) + (p->counters >= 0);
    mk_buf_init(&p->names, NAMES_BYTES_MAX);
    p->fds = mk_account_alloc(NULL, p->n * 2 * sizeof(int));
    if (!p->fds)
        return -ENOMEM;
    p->copies = p->fds + p->n;
    for (unsigned i = 0; i < sockets->n; i++)
        p->fds[i] = sockets->items[i].fd;
    p->fds[sockets->n] = ipc_fd;
    if (output >= 0)
        p->fds[sockets->n + 1] = STDERR_FILENO; /* restored when the server is ready */
    if (p->counters >= 0)
        p->fds[p->n - 1] = p->counters;
    make_arguments(p->argv, false);
    return make_environment(p, sockets, role);
}

/* ── the child ── */

/* snprintf() is not async-signal-safe. */
static void format_pid(char *out)
{
    char digits[16];
    int n = 0;
    for (unsigned pid = (unsigned)getpid(); pid; pid /= 10)
        digits[n++] = (char)('0' + pid % 10);
    while (n)
        *out++ = digits[--n];
    *out = '\0';
}

static void become_server(struct exec_plan *p)
{
    sigset_t none;
    bool good = true;
    for (unsigned i = 0; i < p->n; i++) {
        p->copies[i] = fcntl(p->fds[i], F_DUPFD_CLOEXEC, FIRST_FD + (int)p->n);
        good &= p->copies[i] >= 0;
    }
    if (good && p->output >= 0)
        good = dup2(p->output, STDERR_FILENO) >= 0; /* before the loop below overwrites its number */
    for (unsigned i = 0; good && i < p->n; i++)
        good = dup2(p->copies[i], FIRST_FD + (int)i) >= 0;
    format_pid(p->pid + sizeof("LISTEN_PID=") - 1);
    signal(SIGPIPE, SIG_DFL); /* the only signal that this program ignores */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* Ctrl-C goes to the parent only */
    if (good)
        execve(program, (char **)(uintptr_t)p->argv, p->environment);
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", program, strerror(errno)); /* the parent logs it */
    _exit(EXIT_RUN);
}

/* Opens the pipe for the stderr of the new process if it is `wanted`. Returns 0 or -errno. */
static int open_output(bool wanted, int *pipe_fds)
{
    pipe_fds[0] = pipe_fds[1] = -1;
    if (!wanted)
        return 0;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    return 0;
}

static pid_t fork_server(struct exec_plan *p)
{
    pid_t pid = fork();
    if (pid == 0)
        become_server(p);
    return pid < 0 ? -errno : pid;
}

pid_t exec_start_server(const struct ipc_sockets *sockets, const char *role, int *ret_ipc_fd, int *ret_output)
{
    assert(options && ret_ipc_fd);
    int pair[2], output[2];
    struct exec_plan p;
    if (access(program, X_OK) < 0)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pid_t pid = open_output(ret_output != NULL, output);
    if (pid == 0) {
        pid = make_plan(&p, sockets, role, pair[1], output[1]);
        if (pid == 0)
            pid = fork_server(&p);
        mk_account_free(NULL, p.fds, 0);
        mk_account_free(NULL, p.environment, 0);
        mk_buf_release(&p.names);
    }
    close(pair[1]);
    if (output[1] >= 0)
        close(output[1]);
    *ret_ipc_fd = pair[0];
    if (ret_output)
        *ret_output = output[0];
    if (pid >= 0)
        return pid;
    close(pair[0]);
    if (output[0] >= 0)
        close(output[0]);
    return pid;
}
