// SPDX-License-Identifier: Apache-2.0
/*
 * The program: options, signals, exit codes. All the rest is libmonkey, used through its public headers.
 */
#include <monkey/monkey.h>

#include "daemon.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
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

/* ── serving ── */

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

/* The next signal that means the end. */
static int wait_for_signal(void)
{
    sigset_t set;
    int number;
    block_signals(&set);
    for (;;) {
        if (sigwait(&set, &number) != 0)
            continue;
        if (number != SIGUSR1 && number != SIGUSR2)
            return number;
        mk_log_info("signal %d has no meaning here", number);
    }
}

/* While the server drains. */
static void *await_second_signal(void *ctx)
{
    wait_for_signal();
    mk_server_stop_now(ctx);
    return NULL;
}

static void wait_and_stop(struct mk_server *server)
{
    pthread_t second;
    int number = wait_for_signal();
    mk_log_info("signal %d: stopping; another one stops at once", number);
    bool watched = pthread_create(&second, NULL, await_second_signal, server) == 0;
    mk_server_stop(server);
    if (watched) {
        pthread_cancel(second);
        pthread_join(second, NULL);
    }
}

static int open_log(const struct mk_server_info *info)
{
    int fd = info->error_log ? daemon_open_log(info->error_log) : STDERR_FILENO;
    if (fd < 0) {
        fprintf(stderr, "monkey: cannot open the error log %s: %s\n", info->error_log, strerror(-fd));
        return EXIT_RUN;
    }
    mk_log_to(fd, info->log_level);
    return EXIT_OK;
}

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
    int code = open_log(info);
    if (code == EXIT_OK)
        code = write_pid(info->pid_file);
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
    struct mk_server_info info;
    mk_server_info(server, &info);
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
