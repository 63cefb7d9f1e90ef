// SPDX-License-Identifier: Apache-2.0
/*
 * A program with a server inside: serves the directory that it is given until a line comes on stdin.
 *
 *     cc embed.c -lmonkey -o embed && ./embed /srv/www 8080
 */
#include <monkey/monkey.h>

#include <stdio.h>
#include <unistd.h>

static int complain(const struct mk_server *server)
{
    struct mk_buf text;
    mk_buf_init(&text, 65536);
    mk_server_problems(server, &text);
    fputs(mk_buf_cstr(&text), stderr);
    mk_buf_release(&text);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct mk_server *server = mk_server_new();
    if (!server)
        return 1;
    mk_log_to(STDERR_FILENO, MK_LOG_INFO);
    mk_server_one_shot(server, argv[1]);
    mk_server_set(server, "SERVER", "Listen", argv[2], "the second argument");
    if (mk_server_load(server) < 0 || mk_server_start(server) < 0)
        return complain(server);
    getchar();
    mk_server_stop(server);
    mk_server_free(server);
    return 0;
}
