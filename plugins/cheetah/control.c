// SPDX-License-Identifier: Apache-2.0
/*
 * Commands that change the server: log level, reload, drain, reopen. The program carries them out in its main thread.
 */
#include "cheetah.h"

#include <monkey/kit/json.h>

#include <errno.h>

enum { RELOAD_MS_MAX = 60000, PROBLEMS_BYTES_MAX = 256 * 1024 };

static const char *const level_names[] = {
    [MK_LOG_ERROR] = "error", [MK_LOG_WARN] = "warn", [MK_LOG_INFO] = "info", [MK_LOG_DEBUG] = "debug"};

/* ── log level ── */

static int find_level(struct mk_str name)
{
    for (int i = MK_LOG_ERROR; i <= MK_LOG_DEBUG; i++)
        if (mk_str_ieq(mk_str_c(level_names[i]), name))
            return i;
    return -1;
}

static int get_level(void)
{
    int level = MK_LOG_DEBUG;
    while (level > MK_LOG_ERROR && !mk_log_wants((enum mk_log_level)level))
        level--;
    return level;
}

void control_log(struct client *c, const struct words *words)
{
    int level = words->n > 2 ? find_level(words->items[2]) : -1;
    if (words->n < 2 || words->n > 3 || !mk_str_eq(words->items[1], MK_STR("level")) || (words->n == 3 && level < 0)) {
        client_refuse(c, "log level takes error, warn, info or debug, or nothing");
        return;
    }
    if (level >= 0) {
        mk_log_set_level((enum mk_log_level)level);
        mk_log_info("shell: process %d has set the log level to %s", c->pid, level_names[level]);
    }
    client_begin(c, "list");
    mk_json_open(&c->out, NULL, '{');
    mk_json_cstr(&c->out, "log_level", level_names[get_level()]);
    mk_json_close_line(&c->out);
    client_end(c, NULL);
}

/* ── reload ── */

struct reload_run {
    struct run run; /* `client` is NULL once it has gone */
    struct mk_server_reload reload;
    struct thread *thread;
    struct mk_timer timer;
};

static void free_reload(struct reload_run *r)
{
    mk_timer_cancel(&r->timer);
    mk_buf_release(&r->reload.problems);
    mk_account_free(NULL, r, sizeof(*r));
}

static void finish_reload(struct reload_run *r)
{
    struct client *c = r->run.client;
    client_add_lines(c, r->reload.problems.err ? MK_STR("the problems are too many to be shown here; see monkey --test")
                                               : mk_buf_str(&r->reload.problems));
    if (r->reload.err == 0) {
        mk_json_open(&c->out, NULL, '{');
        mk_json_format(&c->out, "text", "the new configuration is in use (generation %u)",
                       mk_generation_number(mk_worker_generation(client_worker(c))));
        mk_json_close_line(&c->out);
    }
    bool failed = r->reload.err < 0;
    free_reload(r);
    client_end(c, failed ? "the new configuration cannot be used, the old one stays" : NULL);
    client_flush(c);
}

static void on_reload(struct mk_message *message)
{
    struct reload_run *r = MK_CONTAINER_OF(message, struct reload_run, reload.message);
    if (r->run.client)
        finish_reload(r);
    else
        free_reload(r);
}

/* The client does not wait any more. The run is freed now, or by the message that is on its way. */
static void stop_reload(struct run *run)
{
    struct reload_run *r = MK_CONTAINER_OF(run, struct reload_run, run);
    const struct mk_worker *worker = thread_worker(r->thread);
    run->client = NULL;
    mk_timer_cancel(&r->timer);
    if (worker && mk_inspect_reload_cancel(worker, &r->reload))
        free_reload(r);
}

static void on_reload_timer(struct mk_timer *timer)
{
    struct reload_run *r = MK_CONTAINER_OF(timer, struct reload_run, timer);
    struct client *c = r->run.client;
    stop_reload(&r->run);
    client_end(c, "the reload takes longer than a minute; the log has its result");
    client_flush(c);
}

void control_reload(struct client *c, const struct words *words)
{
    struct reload_run *r = mk_account_alloc(NULL, sizeof(*r));
    (void)words;
    client_begin(c, "text");
    if (!r) {
        client_end(c, "out of memory");
        return;
    }
    *r = (struct reload_run){.run = {.client = c, .stop = stop_reload}, .thread = c->thread};
    r->reload.message.fn = on_reload;
    mk_buf_init(&r->reload.problems, PROBLEMS_BYTES_MAX);
    mk_timer_init(&r->timer, on_reload_timer);
    int err = mk_inspect_reload(client_worker(c), &r->reload);
    if (err < 0) {
        free_reload(r);
        client_end(c,
                   err == -ENOTSUP ? "the program that runs the server takes no commands" : "the server stops already");
        return;
    }
    mk_log_info("shell: process %d asks for a reload", c->pid);
    mk_timer_arm(c->thread->base.loop, &r->timer, RELOAD_MS_MAX);
    c->run = &r->run;
}

/* ── reopen, drain ── */

static void give_command(struct client *c, enum mk_server_command command, const char *done)
{
    int err = mk_inspect_command(client_worker(c), command);
    client_begin(c, "text");
    if (err == 0) {
        mk_json_open(&c->out, NULL, '{');
        mk_json_cstr(&c->out, "text", done);
        mk_json_close_line(&c->out);
    }
    client_end(c, err == 0           ? NULL
                  : err == -ENOTSUP  ? "the program that runs the server takes no commands"
                  : err == -EALREADY ? "the server stops already"
                                     : strerror(-err));
}

void control_reopen(struct client *c, const struct words *words)
{
    (void)words;
    mk_log_info("shell: process %d has the log files opened again", c->pid);
    give_command(c, MK_SERVER_REOPEN_LOGS, "the log files are opened again");
}

void control_drain(struct client *c, const struct words *words)
{
    (void)words;
    mk_log_info("shell: process %d stops the server", c->pid);
    give_command(c, MK_SERVER_STOP, "the server stops: requests under way are finished");
}
