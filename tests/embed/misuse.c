// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that are mistakes of the program: each is refused with a sentence, which it prints, and the server serves on.
 * With assertions in the library the program is aborted instead. Compiled and run by tests/e2e/test_embed.py:
 * misuse CASE
 */
#include <monkey/embed.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct mk_server *server;
static int result;
static char sentence[512];

static void keep(int err)
{
    result = err;
    snprintf(sentence, sizeof(sentence), "%s", mk_server_error(server));
}

static int decline(struct mk_request *req, void *ctx)
{
    (void)req;
    (void)ctx;
    return MK_DECLINED;
}

static int stop_here(struct mk_request *req, void *ctx)
{
    (void)ctx;
    keep(mk_server_stop(server));
    return mk_response_send(req, 200, NULL, MK_STR("refused"));
}

static int turn_here(struct mk_request *req, void *ctx)
{
    (void)ctx;
    keep(mk_server_run_once(server, 0));
    return mk_response_send(req, 200, NULL, MK_STR("refused"));
}

static void ask(const char *path, int in_caller)
{
    char text[1024];
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)mk_server_port(server))};
    int fd = socket(AF_INET, SOCK_STREAM, 0), n = snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n\r\n", path);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        exit(3);
    ssize_t got;
    while ((got = recv(fd, text, sizeof(text), in_caller ? MSG_DONTWAIT : 0)) != 0) {
        if (got < 0 && (!in_caller || errno != EAGAIN))
            exit(4);
        if (in_caller && mk_server_run_once(server, 10) < 0)
            exit(5);
    }
    close(fd);
}

static void *turn_elsewhere(void *ctx)
{
    (void)ctx;
    keep(mk_server_run_once(server, 0));
    return NULL;
}

static void start_twice(void)
{
    keep(mk_server_start(server));
}

static void load_while_it_runs(void)
{
    keep(mk_server_load(server));
}

/* Also what a reload then loads is the text of the start. */
static void text_while_it_runs(void)
{
    int port = mk_server_port(server);
    keep(mk_server_text(server, "[SERVER]\n    Nonsense 1\n"));
    if (result != -EBUSY || mk_server_reload(server) < 0 || mk_server_port(server) != port)
        exit(7);
}

static void folder_while_it_runs(void)
{
    keep(mk_server_folder(server, "/"));
    if (result != -EBUSY)
        exit(7);
}

static void handle_while_it_runs(void)
{
    keep(mk_server_handle(server, "GET", "/late", decline, NULL));
}

static void handle_nothing(void)
{
    mk_server_stop(server);
    keep(mk_server_handle(server, "GET", "/nothing", NULL, NULL));
    mk_server_start(server);
}

static void text_of_nothing(void)
{
    mk_server_stop(server);
    keep(mk_server_text(server, NULL));
    mk_server_start(server);
}

static void folder_of_nothing(void)
{
    mk_server_stop(server);
    keep(mk_server_folder(server, NULL));
    mk_server_start(server);
}

static void add_nothing(void)
{
    mk_server_stop(server);
    keep(mk_server_add_plugin(server, NULL));
    mk_server_start(server);
}

static void turn_with_threads(void)
{
    keep(mk_server_run_once(server, 0));
}

static void turn_without_start(void)
{
    mk_server_stop(server);
    keep(mk_server_run_once(server, 0));
    mk_server_start(server);
}

static void stop_in_a_handler(void)
{
    ask("/stop", 0);
}

static void restart_in_caller(void)
{
    mk_server_stop(server);
    mk_server_in_caller(server);
    mk_server_load(server);
    mk_server_start(server);
}

static void stop_in_a_turn(void)
{
    restart_in_caller();
    ask("/stop", 1);
}

static void turn_in_a_turn(void)
{
    restart_in_caller();
    ask("/turn", 1);
}

static void turn_in_another_thread(void)
{
    pthread_t thread;
    restart_in_caller();
    pthread_create(&thread, NULL, turn_elsewhere, NULL);
    pthread_join(thread, NULL);
}

/* ── in a hook, and during a call that waits for one ── */

static void *stop_elsewhere(void *ctx)
{
    (void)ctx;
    keep(mk_server_stop(server));
    return NULL;
}

static int wait_for_a_stop(struct mk_worker *worker, void **ret_state)
{
    pthread_t thread;
    (void)worker;
    (void)ret_state;
    if (result == 0 && pthread_create(&thread, NULL, stop_elsewhere, NULL) == 0)
        pthread_join(thread, NULL);
    return 0;
}

static int load_here(struct mk_generation *g, void **ret_state)
{
    (void)g;
    (void)ret_state;
    keep(mk_server_load(server));
    return 0;
}

static const struct mk_plugin waiting = {MK_PLUGIN_HEAD("waiting", "1", ""), .worker_start = wait_for_a_stop};
static const struct mk_plugin loading = {MK_PLUGIN_HEAD("loading", "1", ""), .generation_start = load_here};

static void start_with(const struct mk_plugin *plugin)
{
    mk_server_stop(server);
    mk_server_add_plugin(server, plugin);
    mk_server_start(server);
}

static void stop_beside_a_start(void)
{
    start_with(&waiting);
}

static void load_in_a_hook(void)
{
    start_with(&loading);
}

static void free_while_it_runs(void)
{
    struct mk_server *other = mk_server_new();
    mk_server_text(other, "[SERVER]\n    Listen 127.0.0.1:0\n");
    mk_server_start(other);
    mk_server_free(other);
    snprintf(sentence, sizeof(sentence), "it was stopped first");
    result = -1;
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"start_twice", start_twice},
    {"load_while_it_runs", load_while_it_runs},
    {"text_while_it_runs", text_while_it_runs},
    {"folder_while_it_runs", folder_while_it_runs},
    {"handle_while_it_runs", handle_while_it_runs},
    {"handle_nothing", handle_nothing},
    {"add_nothing", add_nothing},
    {"text_of_nothing", text_of_nothing},
    {"folder_of_nothing", folder_of_nothing},
    {"turn_with_threads", turn_with_threads},
    {"turn_without_start", turn_without_start},
    {"stop_in_a_handler", stop_in_a_handler},
    {"stop_in_a_turn", stop_in_a_turn},
    {"turn_in_a_turn", turn_in_a_turn},
    {"turn_in_another_thread", turn_in_another_thread},
    {"stop_beside_a_start", stop_beside_a_start},
    {"load_in_a_hook", load_in_a_hook},
    {"free_while_it_runs", free_while_it_runs},
};

int main(int argc, char **argv)
{
    server = mk_server_new();
    mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n");
    mk_server_handle(server, "GET", "/stop", stop_here, NULL);
    mk_server_handle(server, "GET", "/turn", turn_here, NULL);
    if (mk_server_start(server) < 0)
        return 2;
    for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(cases[i].name, argv[1]) == 0)
            cases[i].run();
    ask("/other", strstr(argv[1], "turn") && strstr(argv[1], "a_turn") ? 1 : strstr(argv[1], "another") ? 1 : 0);
    printf("%d %s\n", result, sentence);
    int err = mk_server_stop(server);
    mk_server_free(server);
    return err ? 6 : 0;
}
