// SPDX-License-Identifier: Apache-2.0
/*
 * The program: options, signals, exit codes. All the rest is libmonkey, used through its public headers.
 */
#include <monkey/monkey.h>

#include "daemon.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 1024 * 1024 };

/* ── printing ── */

static int print(FILE *to, struct mk_buf *text)
{
    bool good = text->err == 0;
    if (good && text->len)
        good = fwrite(text->data, 1, text->len, to) == text->len && fflush(to) == 0;
    mk_buf_release(text);
    return good ? EXIT_OK : EXIT_RUN;
}

static int print_problems(const struct mk_server *server, int code)
{
    struct mk_buf text;
    mk_buf_init(&text, TEXT_BYTES_MAX);
    mk_server_problems(server, &text);
    print(stderr, &text);
    return code;
}

static int print_about(enum action action)
{
    struct mk_buf text;
    mk_buf_init(&text, TEXT_BYTES_MAX);
    if (action == ACTION_REFERENCE)
        mk_reference(&text);
    else if (action == ACTION_BUILD)
        mk_build_info(&text);
    else
        mk_buf_addf(&text, "monkey %s\n", mk_version());
    return print(stdout, &text);
}

static int print_config(const struct mk_server *server)
{
    struct mk_buf text;
    mk_buf_init(&text, TEXT_BYTES_MAX);
    mk_server_show(server, &text);
    return print(stdout, &text);
}

/* ── the configuration ── */

/* Without -c: what lies here, then what was installed. */
static const char *find_config(const struct options *o)
{
    if (o->dir || o->root)
        return o->dir;
    return access("conf/monkey.conf", R_OK) == 0 ? "conf" : MONKEY_CONF_DIR;
}

static int load(struct mk_server *server, const struct options *o, char *listen_text, unsigned size)
{
    const char *listen = options_listen(o, listen_text, size);
    if (o->root)
        mk_server_one_shot(server, o->root);
    else
        mk_server_configure(server, find_config(o));
    if (listen)
        mk_server_set(server, "SERVER", "Listen", listen, o->listen ? "option --listen" : "option --port");
    if (o->workers)
        mk_server_set(server, "SERVER", "Workers", o->workers, "option --workers");
    int err = mk_server_load(server);
    if (err == -ENOMEM)
        fprintf(stderr, "monkey: out of memory while reading the configuration\n");
    return err == 0 ? EXIT_OK : print_problems(server, err == -EINVAL ? EXIT_CONFIG : EXIT_RUN);
}

static int test(struct mk_server *server)
{
    int err = mk_server_check(server);
    print_problems(server, 0);
    if (err < 0)
        return EXIT_CONFIG;
    fprintf(stderr, "monkey: the configuration is fine\n");
    return EXIT_OK;
}

/* Those that somebody ignores for us (a shell for its background jobs, nohup) stay ignored. */
static void block_signals(sigset_t *ret_set)
{
    static const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    sigemptyset(ret_set);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        struct sigaction now;
        if (sigaction(ours[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(ret_set, ours[i]);
    }
    pthread_sigmask(SIG_BLOCK, ret_set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ── the log ── */

/*
 * Whatever the log is, it has one descriptor from the start to the end: another file takes its place in one step,
 * while the workers go on writing to it.
 */
static int log_fd = -1;
static const char *no_log; /* where the log goes that has no file: NULL for stderr */

static int open_log(const struct mk_server_info *info)
{
    const char *path = info->error_log ? info->error_log : no_log;
    int fd = path ? daemon_open_log(path) : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0)
        return path ? fd : -errno;
    if (log_fd < 0) {
        log_fd = fd;
    } else {
        dup3(fd, log_fd, O_CLOEXEC);
        close(fd);
    }
    mk_log_to(log_fd, info->log_level);
    return 0;
}

static void reopen_log(struct mk_server *server)
{
    struct mk_server_info info;
    mk_server_info(server, &info);
    int err = open_log(&info);
    if (err < 0)
        mk_log_error("cannot open the error log %s: %s; the old one goes on", info.error_log, strerror(-err));
}

static void log_problems(const struct mk_server *server)
{
    struct mk_buf text;
    mk_buf_init(&text, TEXT_BYTES_MAX);
    mk_server_problems(server, &text);
    char *save = NULL;
    for (char *line = text.len ? strtok_r((char *)(uintptr_t)mk_buf_cstr(&text), "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        mk_log_error("%s", line);
    mk_buf_release(&text);
}

/* ── signals ── */

static void reload(struct mk_server *server)
{
    int err = mk_server_reload(server);
    if (err == 0)
        reopen_log(server);
    log_problems(server);
    if (err == 0)
        mk_log_info("the new configuration is in use");
    else
        mk_log_error("the new configuration cannot be used (%s), the old one stays", strerror(-err));
}

static void upgrade(struct mk_server *server)
{
    (void)server;
    mk_log_info("signal %d has no meaning here", SIGUSR2);
}

/* Those that do not mean the end. */
static const struct {
    int number;
    void (*act)(struct mk_server *server);
} calls[] = {{SIGHUP, reload}, {SIGUSR1, reopen_log}, {SIGUSR2, upgrade}};

static bool act_on(int number, struct mk_server *server)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (calls[i].number != number)
            continue;
        if (server)
            calls[i].act(server);
        return true;
    }
    return false;
}

/* Acts on signals until one means the end; without a server only the end counts. */
static int wait_for_end(struct mk_server *server)
{
    sigset_t set;
    int number;
    block_signals(&set);
    do
        while (sigwait(&set, &number) != 0)
            ;
    while (act_on(number, server));
    return number;
}

/* While the server drains. */
static void *await_second_signal(void *ctx)
{
    wait_for_end(NULL);
    mk_server_stop_now(ctx);
    return NULL;
}

static void wait_and_stop(struct mk_server *server)
{
    pthread_t second;
    int number = wait_for_end(server);
    mk_log_info("signal %d: stopping; another one stops at once", number);
    bool watched = pthread_create(&second, NULL, await_second_signal, server) == 0;
    mk_server_stop(server);
    if (watched) {
        pthread_cancel(second);
        pthread_join(second, NULL);
    }
}

/* ── serving ── */

static int write_pid(const char *path)
{
    int err = path ? daemon_write_pid(path) : 0;
    if (err == -EWOULDBLOCK)
        fprintf(stderr, "monkey: another server is running: it holds %s\n", path);
    else if (err == -EEXIST)
        fprintf(stderr, "monkey: %s holds something else than a process number; it stays as it is\n", path);
    else if (err < 0)
        fprintf(stderr, "monkey: cannot write %s: %s\n", path, strerror(-err));
    return err < 0 ? EXIT_RUN : EXIT_OK;
}

static int start(struct mk_server *server, const struct mk_server_info *info, bool background)
{
    if (background && !info->error_log)
        fprintf(stderr, "monkey: in the background nobody sees stderr; set ErrorLog to a file to keep the log\n");
    int err = background ? daemon_fork() : 0;
    if (err < 0) {
        fprintf(stderr, "monkey: cannot go to the background: %s\n", strerror(-err));
        return EXIT_RUN;
    }
    no_log = background ? "/dev/null" : NULL;
    err = open_log(info);
    if (err < 0) {
        fprintf(stderr, "monkey: cannot open the error log %s: %s\n", info->error_log ? info->error_log : "stderr",
                strerror(-err));
        return EXIT_RUN;
    }
    int code = write_pid(info->pid_file);
    if (code != EXIT_OK)
        return code;
    if (mk_server_start(server) == 0)
        return EXIT_OK;
    if (info->pid_file)
        daemon_remove_pid(info->pid_file);
    return print_problems(server, EXIT_RUN);
}

/* As many descriptors as we are allowed: each connection takes one. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int serve(struct mk_server *server, const struct options *o)
{
    sigset_t set;
    char pid_file[PATH_MAX];
    struct mk_server_info info;
    mk_server_info(server, &info);
    if (info.pid_file) { /* which a reload neither moves nor removes */
        snprintf(pid_file, sizeof(pid_file), "%s", info.pid_file);
        info.pid_file = pid_file;
    }
    block_signals(&set);
    raise_descriptor_limit();
    int code = start(server, &info, o->daemon);
    daemon_ready(code);
    if (code != EXIT_OK)
        return code;
    mk_log_info("monkey %s serves with %u workers", mk_version(), info.workers);
    wait_and_stop(server);
    if (info.pid_file)
        daemon_remove_pid(info.pid_file);
    return EXIT_OK;
}

static int run(const struct options *o)
{
    char listen_text[256];
    struct mk_server *server = mk_server_new();
    if (!server) {
        fprintf(stderr, "monkey: out of memory\n");
        return EXIT_RUN;
    }
    int code = load(server, o, listen_text, sizeof(listen_text));
    if (code == EXIT_OK && o->action == ACTION_TEST)
        code = test(server);
    else if (code == EXIT_OK && o->action == ACTION_SHOW)
        code = print_config(server);
    else if (code == EXIT_OK)
        code = serve(server, o);
    mk_server_free(server);
    return code;
}

/* Descriptors 0 to 2 are never anything else, even if whoever started us has closed them. */
static void keep_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

int main(int argc, char **argv)
{
    struct options o;
    keep_standard_descriptors();
    int code = options_read(&o, argc, argv);
    if (code != 0)
        return code;
    /* workers allocate next to nothing: an arena of glibc's for each would only cost pages */
    mallopt(M_ARENA_MAX, 1);
    switch (o.action) {
    case ACTION_HELP:
        options_help();
        return EXIT_OK;
    case ACTION_VERSION:
    case ACTION_BUILD:
    case ACTION_REFERENCE:
        return print_about(o.action);
    default:
        return run(&o);
    }
}
