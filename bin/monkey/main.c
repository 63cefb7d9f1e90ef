// SPDX-License-Identifier: Apache-2.0
/*
 * The program: options, signals, exit codes. Everything else is libmonkey, used through its public headers.
 */
#include <monkey/monkey.h>

#include "options.h"
#include "conf_dir.h"
#include "launcher.h"
#include "manual.h"
#include "report.h"
#include "serve.h"
#include "signals.h"
#include "exec.h"
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 1024 * 1024 };

/* ── printing ── */

static int print_buffer(FILE *to, struct mk_buf *text)
{
    bool good = text->err == 0;
    if (good && text->len)
        good = fwrite(text->data, 1, text->len, to) == text->len && fflush(to) == 0;
    mk_buf_release(text);
    return good ? EXIT_OK : EXIT_RUN;
}

int print_problems(const struct mk_server *server, int code)
{
    struct mk_buf text;
    mk_buf_init(&text, TEXT_BYTES_MAX);
    mk_server_problems(server, &text);
    print_buffer(stderr, &text);
    return code;
}

/* Prints one section of the manual. */
static int print_section(const char *name)
{
    struct mk_buf manual, text;
    mk_buf_init(&manual, TEXT_BYTES_MAX);
    mk_buf_init(&text, TEXT_BYTES_MAX);
    mk_reference(&manual);
    int err = manual_add_section(mk_buf_str(&manual), name, &text);
    if (err == -ENOENT) {
        manual_list_sections(mk_buf_str(&manual), &text);
        fprintf(stderr, "monkey: the manual has no section [%s]; it has %s\n", name, mk_buf_cstr(&text));
    }
    mk_buf_release(&manual);
    if (err == 0)
        return print_buffer(stdout, &text);
    mk_buf_release(&text);
    return err == -ENOENT ? EXIT_OPTIONS : EXIT_RUN;
}

static int print_info(const struct options *o)
{
    struct mk_buf text;
    if (!MK_SMALL && o->action == ACTION_REFERENCE && o->name)
        return print_section(o->name);
    mk_buf_init(&text, TEXT_BYTES_MAX);
    if (o->action == ACTION_REFERENCE)
        mk_reference(&text);
    else if (o->action == ACTION_BUILD)
        mk_build_info(&text);
    else
        mk_buf_addf(&text, "monkey %s\n", mk_version());
    return print_buffer(stdout, &text);
}

static int print_config(const struct mk_server *server, const char *host)
{
    struct mk_buf text;
    mk_buf_init(&text, TEXT_BYTES_MAX);
    if (MK_SMALL || !host) {
        mk_server_show(server, &text);
    } else if (mk_server_show_host(server, mk_str_c(host), &text) == -ENOENT) {
        fprintf(stderr, "monkey: no host serves the name %s, and no file in sites has this name\n", host);
        mk_buf_release(&text);
        return EXIT_OPTIONS;
    }
    return print_buffer(stdout, &text);
}

/* ── the configuration ── */

/* Returns the directory of the configuration: -c, else ./conf, else the installed one. NULL with -o. */
static const char *find_config(const struct options *o)
{
    if (o->dir || o->root)
        return o->dir;
    if (access("conf/monkey.conf", R_OK) == 0)
        return "conf";
    return MK_SMALL ? MONKEY_CONF_DIR : conf_dir_installed();
}

/* Requests are logged on stdout, unless the server goes to the background. */
static void configure_one_shot(struct mk_server *server, const struct options *o)
{
    mk_server_one_shot(server, o->root);
    if (MK_SMALL || o->daemon)
        return;
    mk_server_set_plugin(server, "LOGGER", "AccessLog", "stdout", "option --one-shot");
    mk_server_set_plugin(server, "LOGGER", "Flush", "50ms", "option --one-shot");
}

int load_config(struct mk_server *server, const struct options *o, char *listen_text, unsigned size)
{
    const char *listen = options_listen(o, listen_text, size);
    if (o->root)
        configure_one_shot(server, o);
    else
        mk_server_configure(server, find_config(o));
    if (listen)
        mk_server_set(server, "SERVER", "Listen", listen, o->listen ? "option --listen" : "option --port");
    if (o->workers)
        mk_server_set(server, "SERVER", "Workers", o->workers, "option --workers");
    if (MK_HAS_TLS && o->https) {
        mk_server_set(server, "SERVER", "TransportLayer", "tls", "option --https");
        mk_server_set(server, "TLS", "SelfSigned", "On", "option --https");
    }
    int err = mk_server_load(server);
    if (err == -ENOMEM)
        fprintf(stderr, "monkey: out of memory while reading the configuration\n");
    return err;
}

static int test_config(struct mk_server *server, const struct options *o, int loaded)
{
    if (!MK_SMALL)
        return report_test(server, o, loaded);
    int err = loaded == -ENOMEM ? loaded : mk_server_check(server);
    print_problems(server, 0);
    if (err < 0 || loaded < 0)
        return err == -ENOMEM ? EXIT_RUN : EXIT_CONFIG;
    fprintf(stderr, "monkey: the configuration is fine\n");
    return EXIT_OK;
}

static bool wants_supervisor(const struct mk_server *server)
{
    struct mk_server_process process;
    mk_server_process(server, &process);
    return process.supervisor && !launcher_exists();
}

/* Executes the program again, so that the supervisor keeps nothing of the loaded configuration in memory. */
static int become_supervisor(void)
{
    int err = exec_supervisor();
    fprintf(stderr, "monkey: cannot start the supervisor: %s\n", strerror(-err));
    return EXIT_RUN;
}

static int run_action(const struct options *o)
{
    char listen_text[256];
    struct mk_server *server = mk_server_new();
    if (!server) {
        fprintf(stderr, "monkey: out of memory\n");
        return EXIT_RUN;
    }
    int err = load_config(server, o, listen_text, sizeof(listen_text)), code = EXIT_OK;
    if (o->action == ACTION_TEST)
        code = test_config(server, o, err);
    else if (err < 0)
        code = print_problems(server, err == -EINVAL ? EXIT_CONFIG : EXIT_RUN);
    else if (code == EXIT_OK && o->action == ACTION_SHOW)
        code = print_config(server, o->name);
    else if (MK_HAS_SUPERVISOR && code == EXIT_OK && wants_supervisor(server))
        code = become_supervisor();
    else if (code == EXIT_OK)
        code = serve(server, o);
    mk_server_free(server);
    return code;
}

/* Opens descriptors 0 to 2 if the parent process closed them, so that no other file gets these numbers. */
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
    signals_reset();
    keep_standard_descriptors();
    int code = options_read(&o, argc, argv);
    if (code != 0)
        return code;
    /* workers allocate very little: a malloc arena for each thread would only cost memory */
    mallopt(M_ARENA_MAX, 1);
    switch (o.action) {
    case ACTION_HELP:
        options_help();
        return EXIT_OK;
    case ACTION_VERSION:
    case ACTION_BUILD:
    case ACTION_REFERENCE:
        return print_info(&o);
    default:
        if (!MK_SMALL && !o.root && !o.dir && !o.json && !conf_dir_has_config(find_config(&o))) {
            conf_dir_report_missing();
            return EXIT_CONFIG;
        }
        if (MK_HAS_SUPERVISOR) {
            launcher_init();
            exec_init(&o, find_config(&o));
            if (o.daemon)
                exec_use_absolute_paths(&o);
            if (o.action == ACTION_SERVE && o.supervise && !launcher_is_supervisor())
                return supervisor_run(&o);
        }
        return run_action(&o);
    }
}
