// SPDX-License-Identifier: Apache-2.0
/*
 * Log files of services (log.h).
 *
 *     any thread ─► log.lines (lock, 256 KB) ─► the writer: swaps the buffer, and writes it
 */
#include "log/log.h"

#include "common/heap.h"
#include "log/message.h"
#include "service/folder.h"
#include "service/service.h"

#include <monkey/file.h>
#include <monkey/thread_start.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LOGS_MAX = 64, TEXT_BYTES_MAX = 4000, WAITING_BYTES_MAX = 256 * 1024, URGENT_BYTES = WAITING_BYTES_MAX / 2 };
enum { FLUSH_MS = 200, MS_NS = 1000 * 1000, SECOND_NS = 1000 * MS_NS };

struct duda_log {
    struct duda_log *next;   /* in the service */
    struct mk_list node;     /* in the writer's list, once log_start() was called */
    struct service *service; /* NULL: log_end() was called, and a function that runs at the unloading writes */
    const char *path;
    pthread_mutex_t lock; /* of the lines that wait */
    struct mk_buf lines;
    uint64_t lost;
    /* for the writer only, or for log_end() after it */
    struct mk_buf out;
    int fd, err;
    uint64_t round;
    bool busy, reopen; /* under the writer's lock; busy: a thread writes it */
};

/* The state of the process's writer: several services, and versions of them, share it. */
static struct {
    pthread_mutex_t life; /* held while the thread is started or joined */
    unsigned users;       /* services that have started; under `life` */
    pthread_t thread;
    bool runs;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake, idle;
    struct mk_list logs;
    bool has_lines, urgent, stop;
    uint64_t round;
} writer = {
    .life = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .wake = PTHREAD_COND_INITIALIZER,
    .idle = PTHREAD_COND_INITIALIZER,
    .logs = {&writer.logs, &writer.logs},
};

/* ── lines ── */

static size_t put_time(char *out, size_t size)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(out + n, size - n, ".%03uZ ", (unsigned)(now.tv_nsec / MS_NS) % 1000);
}

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

/* Appends the text: nothing in it can break a line or reach a terminal as an escape sequence. */
static void add_text(struct mk_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (is_control(text[i]))
            mk_buf_addf(out, "\\x%02x", (unsigned char)text[i]);
        else
            mk_buf_addc(out, text[i]);
    }
}

static void wake_writer(bool urgent)
{
    pthread_mutex_lock(&writer.lock);
    writer.has_lines = true;
    writer.urgent |= urgent;
    pthread_cond_signal(&writer.wake);
    pthread_mutex_unlock(&writer.lock);
}

/* Appends a whole line. Returns whether there was room for it. */
static bool add_line(struct duda_log *log, struct mk_str line)
{
    pthread_mutex_lock(&log->lock);
    size_t before = log->lines.len;
    bool fits = before + line.len <= WAITING_BYTES_MAX && mk_buf_reserve(&log->lines, line.len) == 0;
    if (fits)
        mk_buf_adds(&log->lines, line);
    else
        log->lost++;
    log->lines.err = 0;
    pthread_mutex_unlock(&log->lock);
    bool urgent = fits && before <= URGENT_BYTES && before + line.len > URGENT_BYTES;
    if (before == 0 || urgent)
        wake_writer(urgent);
    return fits;
}

int log_vadd(struct duda_log *log, const char *format, va_list args)
{
    char text[TEXT_BYTES_MAX + 1], storage[64 + TEXT_BYTES_MAX * 4] MK_UNINITIALIZED;
    struct mk_buf line;
    int n = log->service ? vsnprintf(text, sizeof(text), format, args) : -1;
    if (n < 0)
        return -1;
    size_t len = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    while (len && text[len - 1] == '\n')
        len--;
    mk_buf_init_fixed(&line, storage, sizeof(storage));
    line.len = put_time(storage, sizeof(storage));
    add_text(&line, text, len);
    mk_buf_addc(&line, '\n');
    return add_line(log, mk_buf_str(&line)) ? 0 : -1;
}

int log_add(struct duda_log *log, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = log_vadd(log, format, args);
    va_end(args);
    return result;
}

/* ── writing; in the writer, or in log_end() ── */

static void report(struct duda_log *log, int err)
{
    if (err != log->err && err)
        message_log_of(log->service, MK_LOG_ERROR, "cannot write %s: %s; its lines are lost", log->path,
                       mk_file_error(err));
    else if (err != log->err)
        message_log_of(log->service, MK_LOG_INFO, "%s can be written again", log->path);
    log->err = err;
}

static int open_file(struct duda_log *log)
{
    if (log->fd >= 0)
        return 0;
    log->fd = mk_file_open_output(log->path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0640, NULL);
    return log->fd < 0 ? log->fd : 0;
}

static int write_bytes(int fd, struct mk_str *rest)
{
    while (rest->len) {
        ssize_t n = write(fd, rest->p, rest->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        *rest = mk_str(rest->p + n, rest->len - (size_t)n);
    }
    return 0;
}

static uint64_t count_lines(struct mk_str text)
{
    uint64_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    return n;
}

/* Takes the lines that wait, and how many were lost behind them. */
static uint64_t take_lines(struct duda_log *log)
{
    assert(!log->out.len);
    pthread_mutex_lock(&log->lock);
    struct mk_buf empty = log->out;
    log->out = log->lines;
    log->lines = empty;
    uint64_t lost = log->lost;
    log->lost = 0;
    pthread_mutex_unlock(&log->lock);
    return lost;
}

static void give_back_lost(struct duda_log *log, uint64_t lost)
{
    pthread_mutex_lock(&log->lock);
    log->lost += lost;
    pthread_mutex_unlock(&log->lock);
}

static void write_log(struct duda_log *log)
{
    uint64_t lost = take_lines(log);
    char text[128];
    struct mk_str rest = mk_buf_str(&log->out), last = {text, 0};
    if (!rest.len && !lost)
        return;
    int err = open_file(log);
    if (err == 0)
        err = write_bytes(log->fd, &rest);
    if (err == 0 && lost) {
        size_t n = put_time(text, sizeof(text));
        last.len = n + (size_t)snprintf(text + n, sizeof(text) - n, "%llu lines were lost\n", (unsigned long long)lost);
        err = write_bytes(log->fd, &last);
    }
    if (err < 0)
        give_back_lost(log, lost + count_lines(rest));
    report(log, err);
    mk_buf_drop(&log->out, log->out.len);
}

static void close_file(struct duda_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}

/* Writes the lines from before to the old file. A quiet log gets its new file, too. */
static void reopen_file(struct duda_log *log)
{
    write_log(log);
    close_file(log);
    report(log, open_file(log));
}

/* ── the thread ── */

static struct duda_log *find_next(void)
{
    for (struct mk_list *n = writer.logs.next; n != &writer.logs; n = n->next) {
        struct duda_log *log = MK_CONTAINER_OF(n, struct duda_log, node);
        if (log->round != writer.round)
            return log;
    }
    return NULL;
}

/* Writes a log. The writer's lock is held, except for the writing; one thread at a time writes a log. */
static void write_locked(struct duda_log *log)
{
    while (log->busy)
        pthread_cond_wait(&writer.idle, &writer.lock);
    bool reopen = log->reopen;
    log->reopen = false;
    log->busy = true;
    pthread_mutex_unlock(&writer.lock);
    (reopen ? reopen_file : write_log)(log);
    pthread_mutex_lock(&writer.lock);
    log->busy = false;
    pthread_cond_broadcast(&writer.idle);
}

static void write_all(void)
{
    struct duda_log *log;
    writer.has_lines = writer.urgent = false;
    writer.round++;
    while ((log = find_next())) {
        log->round = writer.round;
        write_locked(log);
    }
}

/* Waits for further lines, to write several together. */
static void wait_flush(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)FLUSH_MS * MS_NS;
    until.tv_sec += until.tv_nsec / SECOND_NS;
    until.tv_nsec %= SECOND_NS;
    while (!writer.urgent && !writer.stop && pthread_cond_timedwait(&writer.wake, &writer.lock, &until) == 0)
        ;
}

static void *run_writer(void *ctx)
{
    prctl(PR_SET_NAME, "duda: logs");
    pthread_mutex_lock(&writer.lock);
    while (!writer.stop || writer.has_lines) {
        if (!writer.has_lines) {
            pthread_cond_wait(&writer.wake, &writer.lock);
            continue;
        }
        wait_flush();
        write_all();
    }
    pthread_mutex_unlock(&writer.lock);
    return ctx;
}

static void stop_writer(void)
{
    pthread_mutex_lock(&writer.lock);
    writer.stop = true;
    pthread_cond_signal(&writer.wake);
    pthread_mutex_unlock(&writer.lock);
    pthread_join(writer.thread, NULL);
    writer.runs = writer.stop = false;
}

/* ── the logs of a service ── */

static const char *find_fault(const struct service *s, const char *name)
{
    if (!s->self.logdir.len)
        return "LogDir of [WEB_SERVICE] is not set";
    if (!name || !*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return "the name of a file in LogDir is needed, without a slash";
    return s->logs.n == LOGS_MAX ? "the service has 64 logs already" : NULL;
}

/* Returns the log of that path, if the service has it: two buffers for one file would mix their lines. */
static struct duda_log *find_log(const struct service *s, const char *path)
{
    struct duda_log *log = s->logs.first;
    while (log && strcmp(log->path, path) != 0)
        log = log->next;
    return log;
}

static struct duda_log *make_log(struct service *s, const char *path)
{
    struct duda_log *log = mk_arena_zalloc(&s->arena, sizeof(*log));
    if (!log)
        return NULL;
    *log = (struct duda_log){.next = s->logs.first, .service = s, .path = path, .fd = -1};
    mk_list_init(&log->node);
    pthread_mutex_init(&log->lock, NULL);
    mk_buf_init(&log->lines, WAITING_BYTES_MAX);
    mk_buf_init(&log->out, WAITING_BYTES_MAX);
    s->logs.first = log;
    s->logs.n++;
    return log;
}

struct duda_log *log_new(struct service *s, const char *name, const char *call)
{
    const char *fault = find_fault(s, name);
    if (fault) {
        message_log_of(s, MK_LOG_ERROR, "%s: %s: %s", call, name ? name : "NULL", fault);
        return NULL;
    }
    char *path = folder_join(&s->arena, &s->self.logdir, name, call);
    if (!path)
        return NULL;
    struct duda_log *log = find_log(s, path);
    int err = mk_file_check_output(path);
    if (!log && err == 0 && !(log = make_log(s, path)))
        err = -ENOMEM;
    if (err < 0)
        message_log_of(s, MK_LOG_ERROR, "%s: %s: %s", call, path, mk_file_error(err));
    return err < 0 ? NULL : log;
}

void log_start(struct service *s)
{
    if (!s->logs.first)
        return;
    pthread_mutex_lock(&writer.life);
    if (!s->logs.started) {
        s->logs.started = true;
        writer.users++;
        pthread_mutex_lock(&writer.lock);
        for (struct duda_log *log = s->logs.first; log; log = log->next)
            mk_list_add(&writer.logs, &log->node);
        writer.has_lines = true; /* of duda_main() */
        pthread_mutex_unlock(&writer.lock);
    }
    int err = writer.runs ? 0 : mk_thread_start(&writer.thread, 0, run_writer, NULL);
    writer.runs = err == 0;
    pthread_mutex_unlock(&writer.life);
    if (err < 0)
        message_log_of(s, MK_LOG_ERROR, "the thread that writes the logs cannot start: %s", strerror(-err));
}

static void end_log(struct duda_log *log)
{
    pthread_mutex_lock(&writer.lock);
    mk_list_del(&log->node);
    write_locked(log);
    pthread_mutex_unlock(&writer.lock);
    close_file(log);
    mk_buf_release(&log->lines);
    mk_buf_release(&log->out);
    pthread_mutex_destroy(&log->lock);
    log->service = NULL;
}

void log_flush(struct service *s)
{
    pthread_mutex_lock(&writer.lock);
    for (struct duda_log *log = s->logs.first; log; log = log->next)
        write_locked(log);
    pthread_mutex_unlock(&writer.lock);
}

void log_end(struct service *s)
{
    bool started = s->logs.started;
    for (struct duda_log *log = s->logs.first; log; log = log->next)
        end_log(log);
    s->logs = (struct logs){0};
    pthread_mutex_lock(&writer.life);
    writer.users -= started;
    if (writer.runs && !writer.users)
        stop_writer();
    pthread_mutex_unlock(&writer.life);
}

void log_reopen_all(void *state)
{
    (void)state;
    pthread_mutex_lock(&writer.lock);
    for (struct mk_list *n = writer.logs.next; n != &writer.logs; n = n->next)
        MK_CONTAINER_OF(n, struct duda_log, node)->reopen = true;
    writer.has_lines = writer.urgent = true;
    pthread_cond_signal(&writer.wake);
    pthread_mutex_unlock(&writer.lock);
}
