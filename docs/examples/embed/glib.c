// SPDX-License-Identifier: Apache-2.0
/*
 * A server in the main loop of GLib: its handlers and the program's callbacks run in one thread, and need no locks. It
 * ends with a line on stdin.
 *
 *     cc glib.c $(pkg-config --cflags --libs monkey glib-2.0) -o glib && ./glib
 */
#include <monkey/embed.h>

#include <glib-unix.h>
#include <stdio.h>
#include <unistd.h>

static int show_count(struct mk_request *req, void *ctx)
{
    int *count = ctx;
    return mk_response_printf(req, 200, "text/plain", "%d\n", ++*count);
}

static gboolean run_server(gint fd, GIOCondition condition, gpointer server)
{
    (void)fd;
    (void)condition;
    return mk_server_run_once(server, 0) == 0 ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static gboolean quit(gint fd, GIOCondition condition, gpointer loop)
{
    (void)fd;
    (void)condition;
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

int main(void)
{
    int count = 0;
    GMainLoop *loop = g_main_loop_new(NULL, FALSE);
    struct mk_server *server = mk_server_new();
    mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n");
    mk_server_handle(server, "GET", "/count", show_count, &count);
    mk_server_in_caller(server);
    if (mk_server_start(server) < 0) {
        fprintf(stderr, "glib: %s\n", mk_server_error(server));
        return 1;
    }
    g_unix_fd_add(mk_server_fd(server), G_IO_IN, run_server, server);
    g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP, quit, loop);
    printf("http://127.0.0.1:%d/count\n", mk_server_port(server));
    fflush(stdout);
    g_main_loop_run(loop);
    mk_server_stop(server);
    mk_server_free(server);
    g_main_loop_unref(loop);
    return 0;
}
