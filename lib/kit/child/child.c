// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a child, as its thread sees it (<monkey/kit/child.h>).
 *
 *     QUEUED ─► ASKED ─► RUNNING ─► ENDED ─► closed
 *        └────────┴─ fails ──────────────────────▲
 *
 * The starter sends the signals, also to what descends from the child, and keeps a child that has ended until it is
 * closed, so that its number is no other's. With the starter the kernel kills the program; its number is not certain
 * then, and its end is awaited by its pidfd.
 */
#include "child.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

/* ── limits ── */

enum unit { UNIT_BYTES, UNIT_SECONDS, UNIT_NUMBER };

static const struct row {
    struct mk_str name;
    size_t offset;
    enum unit unit;
    uint64_t min, max;
} rows[] = {
    {MK_STR_INIT("memory"), offsetof(struct mk_child_limits, memory_bytes), UNIT_BYTES, 1 << 20, UINT64_C(1) << 50},
    {MK_STR_INIT("cpu"), offsetof(struct mk_child_limits, cpu_seconds), UNIT_SECONDS, 1, 86400},
    {MK_STR_INIT("files"), offsetof(struct mk_child_limits, files), UNIT_NUMBER, 4, 1 << 20},
    {MK_STR_INIT("processes"), offsetof(struct mk_child_limits, processes), UNIT_NUMBER, 1, 1 << 22},
};

/* What a number is multiplied by, by the letter after it. */
static const struct suffix {
    char letter;
    enum unit unit;
    uint64_t factor;
} suffixes[] = {
    {'K', UNIT_BYTES, 1 << 10}, {'M', UNIT_BYTES, 1 << 20}, {'G', UNIT_BYTES, 1 << 30},
    {'s', UNIT_SECONDS, 1},     {'m', UNIT_SECONDS, 60},    {'h', UNIT_SECONDS, 3600},
};

/* Reads a number with its unit, which bytes and seconds must have. Returns false if it is none, or out of range. */
static bool read_number(struct mk_str text, const struct row *row, uint64_t *ret)
{
    uint64_t factor = row->unit == UNIT_NUMBER;
    for (size_t i = 0; i < MK_COUNT_OF(suffixes) && text.len; i++)
        if (suffixes[i].unit == row->unit && suffixes[i].letter == text.p[text.len - 1])
            factor = suffixes[i].factor;
    if (!factor || !mk_str_u64(mk_str(text.p, text.len - (row->unit != UNIT_NUMBER)), row->max / factor, ret))
        return false;
    *ret *= factor;
    return *ret >= row->min;
}

static const struct row *find_row(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (mk_str_eq(rows[i].name, name))
            return &rows[i];
    return NULL;
}

static int read_word(struct mk_str word, struct mk_child_limits *limits, struct mk_buf *error)
{
    const char *equals = word.len ? memchr(word.p, '=', word.len) : NULL;
    size_t n = equals ? (size_t)(equals - word.p) : word.len;
    const struct row *row = find_row(mk_str(word.p, n));
    if (!equals || !row) {
        mk_buf_addf(error, "a limit is memory=256M, cpu=30s, files=64 or processes=32, not \"%.*s\"", MK_STR_ARG(word));
        return -EINVAL;
    }
    uint64_t *value = (uint64_t *)((char *)limits + row->offset);
    if (*value) {
        mk_buf_addf(error, "%s is set twice", row->name.p);
        return -EINVAL;
    }
    if (!read_number(mk_str(equals + 1, word.len - n - 1), row, value)) {
        mk_buf_addf(error, "\"%.*s\" is no limit: %s", MK_STR_ARG(word),
                    row->unit == UNIT_BYTES     ? "it takes a size of at least 1M, such as memory=256M"
                    : row->unit == UNIT_SECONDS ? "it takes a time of up to a day, such as cpu=30s"
                                                : "it takes a number, such as processes=32; files=4 at least");
        return -EINVAL;
    }
    return 0;
}

int mk_child_parse_limits(const struct mk_conf_value *value, void *limits, struct mk_arena *arena, struct mk_buf *error)
{
    int err = 0;
    (void)arena;
    if (!value->n)
        return mk_conf_fail(error, "it takes limits such as memory=256M cpu=30s files=64 processes=32");
    for (uint32_t i = 0; i < value->n && err == 0; i++)
        err = read_word(value->words[i], limits, error);
    return err;
}

/* ── the life of a child ── */

enum { SLACK_MS = 2000 };

/* ── a stop ── */

static void arm_timer(struct mk_child *child, uint32_t ms)
{
    mk_timer_arm(mk__channel_loop(child->channel), &child->timer, ms);
}

/* The time to start is over, or that to end: the starter, which a script may have stopped, has not killed it. */
static void on_timer(struct mk_timer *timer)
{
    struct mk_child *child = MK_CONTAINER_OF(timer, struct mk_child, timer);
    if (child->state >= MK__CHILD_RUNNING) {
        kill(-child->pid, SIGKILL);
        return;
    }
    if (child->state == MK__CHILD_ASKED)
        mk__channel_drop_starter(child->channel);
    mk__child_fail(child, -ETIMEDOUT, MK_CHILD_STARTER);
}

static void send_stop(struct mk_child *child)
{
    if (child->is_lost)
        return; /* the kernel ends it */
    mk__channel_send_stop(child->channel, child->id, child->grace_ms);
    arm_timer(child, child->grace_ms + SLACK_MS);
}

void mk_child_stop(struct mk_child *child, uint32_t grace_ms)
{
    if (!child->channel || child->is_stopped)
        return;
    child->is_stopped = true;
    child->grace_ms = grace_ms;
    if (child->state >= MK__CHILD_RUNNING)
        send_stop(child);
}

/* ── the end ── */

void mk__child_release(struct mk_child *child)
{
    mk_timer_cancel(&child->timer);
    if (child->event.fd >= 0)
        mk_event_del(mk__channel_loop(child->channel), &child->event);
    child->event.fd = -1;
    for (int i = 0; i < 3; i++)
        if (child->fds[i] >= 0)
            close(child->fds[i]);
    if (child->pidfd >= 0)
        close(child->pidfd);
    mk_buf_release(&child->message);
    mk__channel_remove(child->channel, child);
    child->channel = NULL;
    child->state = MK__CHILD_CLOSED;
}

void mk__child_fail(struct mk_child *child, int err, enum mk_child_step step)
{
    mk__child_release(child);
    child->events->started(child, err, step);
}

void mk_child_close(struct mk_child *child)
{
    if (!child->channel)
        return;
    assert(child->state == MK__CHILD_ENDED);
    if (!child->is_lost)
        mk__channel_send_reap(child->channel, child->id);
    mk__child_release(child);
}

void mk_child_drop(struct mk_child *child)
{
    if (child->channel)
        mk__child_release(child);
}

void mk__child_take_exited(struct mk_child *child, int status)
{
    if (child->state != MK__CHILD_RUNNING)
        return;
    child->state = MK__CHILD_ENDED;
    child->events->ended(child, status);
}

/* ── without the starter ── */

static void on_pidfd(struct mk_event *event, uint32_t events)
{
    struct mk_child *child = MK_CONTAINER_OF(event, struct mk_child, event);
    (void)events;
    mk_event_del(mk__channel_loop(child->channel), event);
    event->fd = -1;
    mk__child_take_exited(child, -1);
}

void mk__child_lose_starter(struct mk_child *child)
{
    if (child->is_lost)
        return; /* it was another starter's */
    child->is_lost = true;
    if (child->state != MK__CHILD_RUNNING || child->pidfd < 0)
        return;
    child->event = (struct mk_event){.ready = on_pidfd, .fd = child->pidfd};
    if (mk_event_add(mk__channel_loop(child->channel), &child->event, EPOLLIN) < 0)
        child->event.fd = -1;
}

/* ── the start ── */

void mk__child_take_started(struct mk_child *child, const struct mk__message *m, int pidfd)
{
    child->pidfd = pidfd;
    if (child->state != MK__CHILD_ASKED || m->err < 0) {
        mk__child_fail(child, m->err < 0 ? m->err : -EBADMSG, (enum mk_child_step)m->step);
        return;
    }
    mk_timer_cancel(&child->timer);
    child->state = MK__CHILD_RUNNING;
    child->worker = NULL;
    child->pid = m->pid;
    if (child->is_stopped)
        send_stop(child);
    child->events->started(child, 0, MK_CHILD_EXEC);
}

static unsigned count_strings(struct mk_str s)
{
    unsigned n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.p[i] == '\0';
    return n;
}

/* Writes the message to the starter. Returns 0, -E2BIG or -ENOMEM. */
static int write_message(struct mk_child *child, const struct mk_child_options *o)
{
    const char *folder = o->folder ? o->folder : "/";
    struct mk__message m = {.kind = MK__MESSAGE_START,
                            .id = child->id,
                            .path_bytes = (uint32_t)strlen(o->path) + 1,
                            .folder_bytes = (uint32_t)strlen(folder) + 1,
                            .arg_bytes = (uint32_t)o->args.len,
                            .env_bytes = (uint32_t)o->env.len,
                            .limits = o->limits};
    size_t bytes = (size_t)m.path_bytes + m.folder_bytes + o->args.len + o->env.len;
    if (bytes > MK_CHILD_BYTES_MAX || count_strings(o->args) > MK_CHILD_ARGS_MAX ||
        count_strings(o->env) > MK_CHILD_ENV_MAX)
        return -E2BIG;
    for (int i = 0; i < 3; i++)
        m.fd_bits |= (uint32_t)(o->fds[i] >= 0) << i;
    mk_buf_init(&child->message, sizeof(m) + bytes);
    mk_buf_reserve(&child->message, sizeof(m) + bytes);
    mk_buf_add(&child->message, &m, sizeof(m));
    mk_buf_add(&child->message, o->path, m.path_bytes);
    mk_buf_add(&child->message, folder, m.folder_bytes);
    mk_buf_adds(&child->message, o->args);
    mk_buf_adds(&child->message, o->env);
    return child->message.err ? -ENOMEM : 0;
}

int mk_child_start(struct mk_child *child, struct mk_child_channel *channel, struct mk_worker *worker,
                   const struct mk_child_events *events, const struct mk_child_options *options)
{
    *child = (struct mk_child){.channel = channel,
                               .worker = worker,
                               .events = events,
                               .pidfd = -1,
                               .fds = {options->fds[0], options->fds[1], options->fds[2]},
                               .event = {.fd = -1}};
    mk_timer_init(&child->timer, on_timer);
    mk_list_init(&child->node);
    int err = mk__channel_add(channel, child);
    if (err == 0)
        err = write_message(child, options);
    if (err < 0) {
        mk__child_release(child);
        return err;
    }
    arm_timer(child, MK_CHILD_START_MS);
    mk__channel_flush(channel);
    return 0;
}

/* ── texts ── */

int mk_child_pid(const struct mk_child *child)
{
    return child->pid;
}

void mk_child_print_status(int status, struct mk_buf *out)
{
    if (status < 0)
        mk_buf_addf(out, "was killed with the process that starts others");
    else if (WIFSIGNALED(status))
        mk_buf_addf(out, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        mk_buf_addf(out, "ended with status %d", WEXITSTATUS(status));
}

const char *mk_child_step_text(enum mk_child_step step)
{
    static const char *const texts[] = {
        [MK_CHILD_STARTER] = "cannot be started by the process that starts others",
        [MK_CHILD_FORK] = "cannot be started",
        [MK_CHILD_LIMITS] = "cannot get the limits that are set for it",
        [MK_CHILD_FOLDER] = "cannot work in its folder",
        [MK_CHILD_RIGHTS] = "cannot give up the server's capabilities",
        [MK_CHILD_EXEC] = "cannot be executed",
    };
    return (unsigned)step < MK_COUNT_OF(texts) ? texts[step] : texts[MK_CHILD_STARTER];
}
