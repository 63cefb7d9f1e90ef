// SPDX-License-Identifier: Apache-2.0
/*
 * cheetah: shows the running server to its operator, and takes commands, through a Unix socket (the program
 * `monkey shell`). This file has the directives and hooks.
 *
 *     shell ─► endpoint.c ─► client.c ─► commands.c ─► info.c                  (this thread)
 *                                                  ├─► walk.c ─► threads.c ─► each thread, in pieces
 *                                                  └─► plugin_commands.c ─► plugins (this thread)
 */
#include "cheetah.h"

#include <assert.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_cheetah;

/* ── directives ── */

enum { USERS_MAX = 32 };

struct allowed_users {
    uint32_t n;
    uid_t ids[USERS_MAX];
};

struct cheetah_conf {
    struct mk_str listen;
    struct allowed_users users;
    int64_t clients_max;
    uint32_t timeout_ms;
    bool is_given; /* else the socket is a convenience: the server runs without it, too */
};

static int parse_listen(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    if (mk_str_ieq(value->text, MK_STR("server")) || mk_str_ieq(value->text, MK_STR("STDIN"))) {
        mk_buf_addf(error,
                    "expected the path of a socket; without the line it is the one that `monkey shell` looks for");
        return -EINVAL;
    }
    return mk_conf_read_path(value, value->text, field, arena, error);
}

static int parse_users(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct allowed_users *users = field;
    for (uint32_t i = 0; i < value->n; i++) {
        char name[64], storage[4096];
        struct passwd user, *found = NULL;
        struct mk_str word = value->words[i];
        (void)arena;
        if (users->n == USERS_MAX) {
            mk_buf_addf(error, "there are more than %d users", USERS_MAX);
            return -EINVAL;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(word.len < sizeof(name) ? word.len : sizeof(name) - 1), word.p);
        getpwnam_r(name, &user, storage, sizeof(storage), &found);
        if (!found) {
            mk_buf_addf(error, "there is no user \"%s\"", name);
            return -EINVAL;
        }
        users->ids[users->n++] = found->pw_uid;
    }
    return 0;
}

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_CUSTOM(
        struct cheetah_conf, listen, "Listen", NULL,
        "The path of the Unix socket at which shells connect. Without it: `shell.sock` in `$RUNTIME_DIRECTORY`, which "
        "systemd sets, or in `/run/monkey` if that folder exists and the server may write to it; else "
        "`/run/monkey-shell.sock` for a server that root starts, `monkey-shell.sock` in `$XDG_RUNTIME_DIR`, or "
        "`/tmp/monkey-shell-UID.sock`.",
        .unit = "path", .parse = parse_listen),
    MK_CONF_KEY_CUSTOM(
        struct cheetah_conf, users, "AllowedUsers", NULL,
        "Users that may connect in addition to root, the user of the server and the owner of the socket. "
        "The mode of the socket is 0600 all the same: a user needs the right to write to it, too. A reload "
        "that takes the right away closes the shells of the user.",
        .flags = MK_CONF_REPEAT, .unit = "users", .parse = parse_users),
    MK_CONF_KEY_INT(struct cheetah_conf, clients_max, "MaxClients", "16", "How many shells may be connected at a time.",
                    .min = 1, .max = 1000),
    MK_CONF_KEY_DURATION(struct cheetah_conf, timeout_ms, "Timeout", "30s",
                         "How long a shell may leave an answer unread before its connection is closed.", .min = 100,
                         .max = 3600000, .unit = "s"),
    {0},
};

static void check_section(const struct mk_conf_check *check, void *section)
{
    struct cheetah_conf *conf = section;
    conf->is_given = mk_conf_is_given(check);
}

static const struct mk_conf_section sections[] = {
    {.name = "CHEETAH",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct cheetah_conf),
     .keys = keys,
     .check = check_section,
     .doc = MK_CONF_DOC("The socket of `monkey shell`, which shows the running server and controls it. Without the "
                        "section there is one where the server has a folder for its sockets (`Listen`).")},
    {0},
};

/* ── the process and its generations ── */

struct cheetah_process {
    struct mk_threads threads;
    struct endpoints endpoints;
};

struct cheetah_generation {
    const struct cheetah_conf *conf;
    struct endpoint *endpoint; /* NULL: the configuration is only checked, or has no section and there is no socket */
};

/* The state of a worker. */
struct cheetah_worker {
    struct mk_thread_worker base;
    struct endpoint *endpoint; /* that it watches; NULL: it is not the first worker */
};

static int start_process(void **ret_state)
{
    struct cheetah_process *process = mk_account_zalloc(NULL, sizeof(*process));
    if (!process)
        return -ENOMEM;
    mk_threads_init(&process->threads, &thread_type);
    mk_list_init(&process->endpoints.all);
    *ret_state = process;
    return 0;
}

static void stop_process(void *state)
{
    struct cheetah_process *process = state;
    assert(mk_list_empty(&process->endpoints.all));
    mk_threads_release(&process->threads);
    mk_account_free(NULL, process, sizeof(*process));
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    if (mk_inspect_check() < 0) {
        mk_log_error("shell: the plugin was built with another server");
        return -ENOEXEC;
    }
    struct cheetah_generation *state = mk_account_alloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    *state = (struct cheetah_generation){.conf = mk_generation_conf(g, sections)};
    *ret_state = state;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *ctx)
{
    struct cheetah_generation *state = ctx;
    (void)g;
    if (state->endpoint)
        endpoint_put(state->endpoint);
    mk_account_free(NULL, state, sizeof(*state));
}

static int report_conflict(struct mk_generation *g, const struct cheetah_conf *conf, struct mk_buf *error)
{
    mk_host_error(mk_generation_first_host(g), conf, offsetof(struct cheetah_conf, listen), 0, "%s",
                  mk_buf_cstr(error));
    return -EINVAL;
}

static bool is_own_command(struct mk_str name)
{
    return commands_find(name) != NULL;
}

/* Opens the socket, or for a check looks whether that is possible. Returns 0, or -EINVAL with a sentence. */
static int open_endpoint(struct mk_generation *g, struct cheetah_generation *state, struct mk_buf *error)
{
    struct cheetah_process *process = mk_generation_plugin_state(g, &mk_plugin_cheetah);
    MK_BUF_ON_STACK(path, 4096);
    bool has_path = state->conf->listen.len;
    mk_buf_adds(&path, has_path ? state->conf->listen : mk_str_c(endpoint_default_path(&process->endpoints, g)));
    if (!has_path && mk_generation_has_dropped_root(g) && endpoint_needs_root(mk_buf_cstr(&path)))
        mk_buf_addf(error,
                    "only root can open the socket %s, and a reload does not open it: restart the server, or write "
                    "Listen with a path in a folder of its user",
                    mk_buf_cstr(&path));
    else if (has_path && mk_generation_is_in_sites(g, state->conf->listen))
        mk_buf_addf(error, "%s would be a host, as each file of sites/ is: write a path in another folder",
                    mk_buf_cstr(&path));
    else if (path.err || path.len > ENDPOINT_PATH_MAX)
        mk_buf_addf(error, "the path of a Unix socket has at most %d bytes here", ENDPOINT_PATH_MAX);
    else if (!mk_generation_is_check(g))
        state->endpoint = endpoint_get(&process->endpoints, mk_buf_cstr(&path), error);
    else if (endpoint_check(mk_buf_cstr(&path), error) == 0)
        return 0;
    return state->endpoint ? 0 : -EINVAL;
}

static int check_generation(struct mk_generation *g, void *ctx)
{
    struct cheetah_generation *state = ctx;
    MK_BUF_ON_STACK(error, 512);
    if (plugin_commands_check(g, is_own_command, &error) < 0)
        return report_conflict(g, state->conf, &error);
    if (open_endpoint(g, state, &error) == 0)
        return 0;
    if (state->conf->is_given)
        return report_conflict(g, state->conf, &error);
    if (!mk_generation_is_check(g))
        mk_log_info("shell: there is no socket for shells: %s", mk_buf_cstr(&error));
    return 0;
}

/* ── workers ── */

static const char not_allowed[] = "your user may not control this server (AllowedUsers)";

static bool is_allowed(const struct cheetah_generation *g, uid_t uid)
{
    for (uint32_t i = 0; i < g->conf->users.n; i++)
        if (g->conf->users.ids[i] == uid)
            return true;
    return uid == 0 || uid == geteuid() || (g->endpoint && uid == g->endpoint->owner);
}

/* Returns what the configuration in use says, or NULL if it does not have this plugin. In the thread of `t`. */
static const struct cheetah_generation *find_current(const struct thread *t)
{
    const struct mk_worker *worker = thread_worker(t);
    return worker ? mk_generation_state(mk_worker_generation(mk_inspect_current(worker)), &mk_plugin_cheetah) : NULL;
}

/* Returns why the shell of a user may do nothing, or NULL. A reload may have taken the right away. */
static const char *find_denial_reason(const struct thread *t, uid_t uid)
{
    const struct cheetah_generation *g = find_current(t);
    return !g                    ? "the server's configuration does not permit shells any more (plugins.load)"
           : !is_allowed(g, uid) ? not_allowed
                                 : NULL;
}

static void run_command(struct client *c, const struct words *words)
{
    const char *objection = find_denial_reason(c->thread, c->uid);
    if (!objection) {
        commands_run(c, words);
        return;
    }
    client_end(c, objection);
    c->closing = true;
}

/* Closes the shells that the configuration in use does not permit. */
static void check_clients(struct thread *t)
{
    MK_LIST_EACH_ITEM(&t->clients, struct client, node, c) {
        const char *objection = c->closing ? NULL : find_denial_reason(t, c->uid);
        if (!objection)
            continue;
        mk_log_info("shell: closing the shell of process %d, user %u: %s", c->pid, c->uid, objection);
        client_close_with_error(c, objection);
    }
}

static void refuse_user(int fd, const struct ucred *peer)
{
    mk_log_warn("shell: refusing the shell of process %d: user %u may not control this server (AllowedUsers)",
                peer->pid, peer->uid);
    client_reject(fd, not_allowed);
}

static void accept_shell(struct endpoint *e, int fd)
{
    struct thread *t = e->ctx;
    const struct cheetah_generation *g = find_current(t);
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof(peer);
    if (!g || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        close(fd);
    else if (is_allowed(g, peer.uid))
        client_open(t, fd, run_command, g->conf->timeout_ms, (unsigned)g->conf->clients_max);
    else
        refuse_user(fd, &peer);
}

static struct thread *get_thread(const struct cheetah_worker *state)
{
    return thread_of(state->base.thread);
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct mk_generation *g = mk_worker_generation(worker);
    struct cheetah_process *process = mk_generation_plugin_state(g, &mk_plugin_cheetah);
    const struct cheetah_generation *generation = mk_generation_state(g, &mk_plugin_cheetah);
    struct cheetah_worker *state = mk_account_alloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    int err = mk_threads_add_worker(&process->threads, &state->base, worker);
    if (err < 0) {
        mk_account_free(NULL, state, sizeof(*state));
        return err;
    }
    state->endpoint = mk_worker_index(worker) == 0 ? generation->endpoint : NULL;
    if (state->endpoint) {
        state->endpoint->on_accept = accept_shell;
        state->endpoint->ctx = get_thread(state);
        err = endpoint_watch(state->endpoint, mk_worker_loop(worker));
    }
    if (err < 0) {
        mk_threads_remove_worker(&state->base);
        mk_account_free(NULL, state, sizeof(*state));
        return err;
    }
    *ret_state = state;
    return 0;
}

/* Before this the generation in use has other rights, or no shells at all. */
static void serve_worker(struct mk_worker *worker, void *ctx)
{
    struct cheetah_worker *state = ctx;
    (void)worker;
    if (state->endpoint)
        endpoint_accept(state->endpoint);
}

/*
 * Another process may accept now, or another worker may have taken this one's place: closes what its generation does
 * not permit.
 */
static void retire_worker(struct mk_worker *worker, void *ctx)
{
    struct cheetah_worker *state = ctx;
    struct thread *t = get_thread(state);
    if (state->endpoint && mk_socket_is_handed_over()) {
        endpoint_unwatch(state->endpoint, true);
        state->endpoint = NULL;
    }
    if (mk_inspect_current(worker) == worker)
        return;
    const struct cheetah_generation *g = find_current(t);
    if (state->endpoint && (!g || g->endpoint != state->endpoint))
        endpoint_close(state->endpoint);
    check_clients(t);
}

static void stop_worker(struct mk_worker *worker, void *ctx)
{
    struct cheetah_worker *state = ctx;
    struct thread *t = get_thread(state);
    bool loop_lives = !mk_loop_has_ended(t->base.loop), is_last = t->base.workers.next == t->base.workers.prev;
    if (loop_lives)
        retire_worker(worker, state);
    if (state->endpoint)
        endpoint_unwatch(state->endpoint, loop_lives);
    if (is_last) {
        while (!mk_list_empty(&t->clients))
            client_close(MK_LIST_FIRST(&t->clients, struct client, node));
    }
    mk_threads_remove_worker(&state->base);
    mk_account_free(NULL, state, sizeof(*state));
}

MK_PLUGIN(cheetah) = {
    MK_PLUGIN_HEAD("cheetah", "2.0.0", "shows and controls the running server: monkey shell"),
    .sections = sections,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .generation_check = check_generation,
    .worker_start = start_worker,
    .worker_serve = serve_worker,
    .worker_stop = stop_worker,
    .worker_retire = retire_worker,
};
