// SPDX-License-Identifier: Apache-2.0
/*
 * The program: options, signals, exit codes. Everything else is libmonkey, used through its public headers.
 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

static bool wants_supervisor(const struct mk_server *server)
{
    struct mk_server_process process;
    mk_server_process(server, &process);
    return process.supervisor && !launcher_exists();
}

/* Executes the program again, so that the supervisor does not keep the loaded configuration in memory. */
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
    if (o->action == ACTION_SERVE) {
        errorlog_keep();
        launcher_offer_listen_fds();
    }
    int err = config_load(server, o, listen_text, sizeof(listen_text)), code = EXIT_OK;
    if (o->action == ACTION_TEST)
        code = report_test(server, o, err);
    else if (err < 0)
        code = print_problems(server, err == -EINVAL ? EXIT_CONFIG : EXIT_RUN);
    else if (code == EXIT_OK && o->action == ACTION_SHOW)
        code = print_config(server, o->name);
    else if (code == EXIT_OK && o->action == ACTION_ONE_FILE)
        code = print_one_file(server, o->dir);
    else if (code == EXIT_OK && wants_supervisor(server))
        code = become_supervisor();
    else if (code == EXIT_OK)
        code = serve_run(server, o);
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

/*
 * Without systemd: the folder for the socket of shells, if there is one. The variable keeps it over upgrades, after
 * which the process may not write there any more.
 */
static void find_run_folder(void)
{
    if (access("/run/monkey", W_OK | X_OK) == 0)
        setenv("MONKEY_RUN_FOLDER", "/run/monkey", 0);
}

int main(int argc, char **argv)
{
    struct options o;
    signals_reset();
    keep_standard_descriptors();
    privileges_forbid_dumps(); /* until the configuration allows it */
    if (argc > 1 && exec_is_command(argv[1]))
        return exec_command(argv + 1);
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
        find_run_folder();
        code = config_find(&o);
        if (code != EXIT_OK)
            return code;
        launcher_init();
        exec_init(&o);
        if (o.daemon)
            exec_use_absolute_paths(&o);
        if (o.action == ACTION_SERVE && o.supervise && !launcher_is_supervisor())
            return supervisor_run(&o);
        return run_action(&o);
    }
}
