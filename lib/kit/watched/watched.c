// SPDX-License-Identifier: Apache-2.0
/*
 * Values made from files (<monkey/kit/watched.h>), and the thread that makes them again. A reader compares a pointer
 * with its own; all the rest is done under one lock, which is not held during a load, a free or a look at files.
 */
#include <monkey/kit/watched.h>

#include <monkey/base/arena.h>
#include <monkey/base/list.h>
#include <monkey/base/poll.h>
#include <monkey/base/thread_start.h>
#include <monkey/base/time.h>
#include <monkey/kit/hash_table.h>
#include <monkey/log.h>

#include "paths.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    STACK_BYTES = 256 * 1024,
    MESSAGE_BYTES = 900,
    QUIET_MS = 100,   /* after a change that completes a file: a rename, a close */
    UNSURE_MS = 1000, /* after one that begins something: a new name may be a file that is still written */
    BURST_MS = 2000,  /* changes do not delay a load any longer than this */
    POLL_MS = 2000,
    DENIED_MS = 60000,   /* the same for files below a folder that may not be searched */
    SHORTAGE_MS = 10000, /* until a load that failed for lack of memory or descriptors is repeated */
    AT_ONCE = 1,         /* a time that has passed */
    PAUSE_MS = 20,       /* between two reads of events: a busy folder does not keep the thread busy */
};

/* A load that fails is repeated after these times, before the failure is logged. */
static const unsigned retries_ms[] = {200, 1000};
enum { RETRIES = MK_COUNT_OF(retries_ms) };

struct mk_watched_value {
    void *data;
    unsigned refs;
    struct mk_watched_value *next; /* of those without references */
};

struct mk_watched {
    struct mk_list node, todo;    /* in the lists of the watcher; `todo`: while due_ms or `unused` is set */
    struct mk_hash_node by_paths; /* in its table */
    const struct mk_watched_type *type;
    void *ctx;
    struct mk_str name;
    struct mk__paths paths; /* its steps are the thread's */
    _Atomic(struct mk_watched_value *) current;
    struct mk_watched_value *unused;
    uint64_t due_ms, since_ms; /* when to look at the files; when the first of the changes came; 0: not */
    uint64_t signature;        /* of the files that the last load has seen */
    unsigned failures;         /* loads of these files that have failed */
    bool moved;                /* a name on the way has changed: walk the paths again */
    bool written;              /* a file was closed after a write: load it even if it looks the same */
    bool walked;               /* the steps are those of the paths, unless `moved` is set */
    bool busy;                 /* the thread works on it */
    bool repeats;              /* after a failure for lack of memory or descriptors */
    bool warned;               /* about files that this user may not read */
};

static struct {
    pthread_mutex_t life; /* held while the thread is started or joined; taken before the lock */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;          /* of what follows, and of all mk_watched */
    pthread_cond_t done;           /* the thread has finished with one of them */
    struct mk_list all, todo;      /* all values, and those that the thread has something to do for, now or later */
    struct mk_hash_table by_paths; /* all values, to find those with the same files */
    int inotify, wake;
    uint64_t waits_until_ms; /* of the thread; 0: it does not wait, or is being woken */
    bool stops;
} watcher = {.life = PTHREAD_MUTEX_INITIALIZER,
             .lock = PTHREAD_MUTEX_INITIALIZER,
             .done = PTHREAD_COND_INITIALIZER,
             .all = {&watcher.all, &watcher.all},
             .todo = {&watcher.todo, &watcher.todo}};

/* ── values ── */

static struct mk_watched_value *new_value(void *data)
{
    struct mk_watched_value *value = mk_account_alloc(NULL, sizeof(*value));
    if (value)
        *value = (struct mk_watched_value){.data = data, .refs = 1};
    return value;
}

static void add_todo(struct mk_watched *w)
{
    if (mk_list_empty(&w->todo))
        mk_list_add(&watcher.todo, &w->todo);
}

/* Releases a reference under the lock. Returns true if the value has no more, and waits to be freed. */
static bool put_value(struct mk_watched *w, struct mk_watched_value *value)
{
    assert(value->refs);
    if (--value->refs)
        return false;
    value->next = w->unused;
    w->unused = value;
    add_todo(w);
    return true;
}

static void free_values(const struct mk_watched *w, struct mk_watched_value *value)
{
    for (struct mk_watched_value *next; value; value = next) {
        next = value->next;
        w->type->free(value->data);
        mk_account_free(NULL, value, sizeof(*value));
    }
}

/* Loads a value. Returns it, or NULL with `*ret_err`. */
static struct mk_watched_value *load_value(const struct mk_watched *w, struct mk_buf *message, int *ret_err)
{
    void *data = NULL;
    *ret_err = w->type->load(w->ctx, &data, message);
    if (*ret_err < 0)
        return NULL;
    struct mk_watched_value *value = new_value(data);
    if (!value) {
        w->type->free(data);
        *ret_err = -ENOMEM;
    }
    return value;
}

/* ── a look at the files, without the lock ── */

static bool is_shortage(int err)
{
    return err == -ENOMEM || err == -EMFILE || err == -ENFILE || err == -EAGAIN;
}

static void log_failure(const struct mk_watched *w, int err, struct mk_buf *message)
{
    const char *unreadable = mk__paths_unreadable(&w->paths);
    if (message->err || !message->len) {
        message->len = 0;
        message->err = 0;
        mk_buf_addf(message, "%s", strerror(-err));
    }
    mk_log_error("%.*s: the files have changed, but cannot be used, and the former state stays: %s%s%s%s",
                 MK_STR_ARG(w->name), mk_buf_cstr(message), unreadable ? "; the user of the server may not read " : "",
                 unreadable ? unreadable : "", unreadable ? ": let that user read it, or restart the server" : "");
}

static void log_success(const struct mk_watched *w, struct mk_buf *message)
{
    if (message->len && !message->err)
        mk_log_warn("%.*s: loaded again: %s", MK_STR_ARG(w->name), mk_buf_cstr(message));
    else
        mk_log_info("%.*s: loaded again", MK_STR_ARG(w->name));
}

/* Returns when to look again after a failure, 0: after the next change. Logs the last one. */
static uint64_t count_failure(struct mk_watched *w, int err, struct mk_buf *message)
{
    unsigned failures = w->failures++;
    if (failures < RETRIES)
        return mk_time_monotonic_ms() + retries_ms[failures];
    if (failures == RETRIES)
        log_failure(w, err, message);
    w->repeats = is_shortage(err);
    return w->repeats ? mk_time_monotonic_ms() + SHORTAGE_MS : 0;
}

/* Tells once that changes cannot be loaded, or not even be seen, although the files could be read before. */
static void warn_of_user(struct mk_watched *w, const char *denied)
{
    const char *unreadable = w->warned ? NULL : denied ? denied : mk__paths_unreadable(&w->paths);
    if (!unreadable)
        return;
    w->warned = true;
    mk_log_info("%.*s: the user of the server may not read %s: when it changes, restart the server, or let that user "
                "read it",
                MK_STR_ARG(w->name), unreadable);
}

static void publish_value(struct mk_watched *w, struct mk_watched_value *value)
{
    pthread_mutex_lock(&watcher.lock);
    struct mk_watched_value *former = atomic_load_explicit(&w->current, memory_order_relaxed);
    atomic_store_explicit(&w->current, value, memory_order_release);
    put_value(w, former);
    pthread_mutex_unlock(&watcher.lock);
}

/* Loads the files, and logs the result once it is in use. Returns when to load them again, or 0. */
static uint64_t load_files(struct mk_watched *w)
{
    int err;
    MK_BUF_ON_STACK(message, MESSAGE_BYTES);
    struct mk_watched_value *value = load_value(w, &message, &err);
    if (!value)
        return count_failure(w, err, &message);
    w->failures = 0;
    publish_value(w, value);
    log_success(w, &message);
    return 0;
}

static void warn_of_limit(const struct mk_watched *w)
{
    static bool warned; /* used by the thread only */
    if (!w->paths.limited || warned)
        return;
    warned = true;
    mk_log_warn("%.*s: the files are looked at every %d s, because the kernel watches no more folders for this user: "
                "raise fs.inotify.max_user_watches",
                MK_STR_ARG(w->name), POLL_MS / 1000);
}

/*
 * Takes the steps of another value with the same files, such as that of the generation before, under the lock: events
 * that were not read yet concern both. Returns false if there is none.
 */
static bool copy_steps(struct mk_watched *w)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&watcher.by_paths, mk__paths_hash(&w->paths), n) {
        const struct mk_watched *other = MK_CONTAINER_OF(n, struct mk_watched, by_paths);
        if (other->walked && !other->moved && mk__paths_copy_steps(&w->paths, &other->paths))
            return true;
    }
    return false;
}

/*
 * Returns the signature of the files, walking their paths before if names have changed, or if not all changes are
 * reported. If a folder's mode has changed, the files tell whether that makes a difference.
 */
static uint64_t read_signature(struct mk_watched *w, bool moved, const char **ret_denied)
{
    if (!moved && !w->paths.polls && mk__paths_signature(&w->paths, ret_denied) == w->signature)
        return w->signature;
    mk__paths_watch(&w->paths, watcher.inotify);
    warn_of_limit(w);
    return mk__paths_signature(&w->paths, ret_denied);
}

/* Looks at the files, and loads them if they have changed. Returns when to do so again, as due_ms. */
static uint64_t check_files(struct mk_watched *w, bool moved, bool written)
{
    const char *denied;
    uint64_t signature = read_signature(w, moved, &denied);
    uint64_t poll_ms = w->paths.polls ? mk_time_monotonic_ms() + (denied ? DENIED_MS : POLL_MS) : 0;
    bool changed = written || signature != w->signature;
    if (changed)
        w->failures = 0;
    if (denied || (!changed && !w->failures)) {
        warn_of_user(w, denied);
        return poll_ms;
    }
    if (!changed && w->failures > RETRIES && !w->repeats)
        return poll_ms;
    w->signature = signature;
    uint64_t again_ms = load_files(w);
    return again_ms ? again_ms : poll_ms;
}

/* ── the thread ── */

/* Takes the lock away for a look at the files of one value, and to free what nothing refers to. */
static void serve_value(struct mk_watched *w, bool due)
{
    struct mk_watched_value *unused = w->unused;
    uint64_t due_ms = w->due_ms;
    bool moved = w->moved, written = w->written;
    w->busy = true;
    w->unused = NULL;
    if (due && !w->walked)
        moved = !copy_steps(w);
    if (due) {
        w->due_ms = w->since_ms = 0;
        w->moved = w->written = false;
        w->walked = true;
    }
    pthread_mutex_unlock(&watcher.lock);
    free_values(w, unused);
    if (due)
        due_ms = check_files(w, moved, written);
    pthread_mutex_lock(&watcher.lock);
    w->due_ms = due_ms;
    w->busy = false;
    pthread_cond_broadcast(&watcher.done);
}

/*
 * Serves the values that are due or have something to free, in one walk of their list. It may change meanwhile, but a
 * value that is busy stays in it until the lock is released after that.
 * Returns false if there was none; `*ret_due_ms` is when there will be.
 */
static bool serve_values(uint64_t now_ms, uint64_t *ret_due_ms)
{
    bool served = false;
    *ret_due_ms = UINT64_MAX;
    for (struct mk_list *n = watcher.todo.next, *next; n != &watcher.todo && !watcher.stops; n = next) {
        struct mk_watched *w = MK_CONTAINER_OF(n, struct mk_watched, todo);
        bool due = w->due_ms && w->due_ms <= now_ms;
        if (due || w->unused) {
            serve_value(w, due);
            served = true;
        } else if (w->due_ms && w->due_ms < *ret_due_ms) {
            *ret_due_ms = w->due_ms;
        }
        next = n->next;
        if (!w->due_ms && !w->unused)
            mk_list_del(n);
    }
    return served;
}

static void note_change(struct mk_watched *w, uint32_t mask, uint64_t now_ms)
{
    bool complete = mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB);
    uint64_t due_ms = now_ms + (complete ? QUIET_MS : UNSURE_MS);
    w->since_ms = w->since_ms ? w->since_ms : now_ms;
    w->due_ms = due_ms < w->since_ms + BURST_MS ? due_ms : w->since_ms + BURST_MS;
    w->moved = w->moved || (mask & ~(uint32_t)(IN_CLOSE_WRITE | IN_ATTRIB | IN_ISDIR));
    w->written = w->written || (mask & IN_CLOSE_WRITE);
    add_todo(w);
}

/* Returns whether an event may change what the paths lead to. The folder of a file reports that it was removed. */
static bool concerns_file(const struct mk_watched *w, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        return true;
    if ((event->mask & IN_IGNORED) && mk__paths_has_file(&w->paths, event->wd))
        return false;
    return mk__paths_has_step(&w->paths, event->wd, event->len ? event->name : "");
}

/* Marks the values that an event concerns. Ends the watch of a file or folder that no path needs any more. */
static void handle_event(const struct inotify_event *event, uint64_t now_ms)
{
    bool known = event->mask & (IN_Q_OVERFLOW | IN_IGNORED);
    MK_LIST_EACH_ITEM(&watcher.all, struct mk_watched, node, w) {
        if (concerns_file(w, event))
            note_change(w, event->mask, now_ms);
        known = known || mk__paths_is_watched(&w->paths, event->wd);
    }
    if (!known)
        inotify_rm_watch(watcher.inotify, event->wd);
}

static void read_events(uint64_t now_ms)
{
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t n;
    while ((n = read(watcher.inotify, bytes, sizeof(bytes))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const void *)(bytes + at);
            handle_event(event, now_ms);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
}

/* Waits, without the lock, until a value is due, an event has come or another thread calls. */
static void wait_for_work(uint64_t due_ms, uint64_t now_ms, uint64_t *pause_until_ms)
{
    bool pausing = *pause_until_ms > now_ms;
    struct pollfd fds[] = {{.fd = watcher.wake, .events = POLLIN},
                           {.fd = pausing ? -1 : watcher.inotify, .events = POLLIN}};
    uint64_t until = pausing && *pause_until_ms < due_ms ? *pause_until_ms : due_ms, calls;
    int timeout = until == UINT64_MAX ? -1 : until - now_ms < 60000 ? (int)(until - now_ms) : 60000;
    watcher.waits_until_ms = until;
    pthread_mutex_unlock(&watcher.lock);
    mk_poll(fds, 2, timeout);
    if (fds[0].revents && read(watcher.wake, &calls, sizeof(calls)) < 0)
        assert(errno == EAGAIN);
    pthread_mutex_lock(&watcher.lock);
    watcher.waits_until_ms = 0;
    if (!fds[1].revents)
        return;
    now_ms = mk_time_monotonic_ms();
    read_events(now_ms);
    *pause_until_ms = now_ms + PAUSE_MS;
}

static void *run_thread(void *ctx)
{
    uint64_t due_ms, now_ms, pause_until_ms = 0;
    (void)ctx;
    prctl(PR_SET_NAME, "monkey: watch");
    pthread_mutex_lock(&watcher.lock);
    while (!watcher.stops) {
        now_ms = mk_time_monotonic_ms();
        if (!serve_values(now_ms, &due_ms))
            wait_for_work(due_ms, now_ms, &pause_until_ms);
    }
    pthread_mutex_unlock(&watcher.lock);
    return NULL;
}

/* Wakes the thread if it waits, and longer than until then; under the lock. */
static void wake_thread(uint64_t due_ms)
{
    uint64_t one = 1;
    if (watcher.waits_until_ms <= due_ms)
        return;
    watcher.waits_until_ms = 0;
    if (write(watcher.wake, &one, sizeof(one)) < 0)
        assert(errno == EAGAIN);
}

/* ── start and stop of the thread, with the lock of its life ── */

static void mark_due(struct mk_watched *w, uint64_t due_ms)
{
    w->due_ms = due_ms;
    w->moved = true;
    add_todo(w);
}

/* All files are looked at in the beginning: they may have changed since they were loaded. */
static void mark_all(void)
{
    pthread_mutex_lock(&watcher.lock);
    MK_LIST_EACH_ITEM(&watcher.all, struct mk_watched, node, watched)
        mark_due(watched, AT_ONCE);
    pthread_mutex_unlock(&watcher.lock);
}

static int start_thread(void)
{
    watcher.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watcher.wake < 0)
        return -errno;
    watcher.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watcher.inotify < 0)
        mk_log_warn("files are looked at every %d s, because the kernel cannot report changes: %s", POLL_MS / 1000,
                    strerror(errno));
    watcher.stops = false;
    mark_all();
    int err = mk_thread_start(&watcher.thread, STACK_BYTES, run_thread, NULL);
    if (err == 0) {
        watcher.running = true;
        return 0;
    }
    close(watcher.wake);
    if (watcher.inotify >= 0)
        close(watcher.inotify);
    return err;
}

static void stop_thread(void)
{
    pthread_mutex_lock(&watcher.lock);
    watcher.stops = true;
    wake_thread(AT_ONCE);
    pthread_mutex_unlock(&watcher.lock);
    pthread_join(watcher.thread, NULL);
    watcher.running = false;
    close(watcher.wake);
    if (watcher.inotify >= 0)
        close(watcher.inotify);
}

/* ── open and close ── */

static void free_watched(struct mk_watched *w)
{
    mk__paths_release(&w->paths);
    mk_account_free(NULL, (char *)(uintptr_t)w->name.p, w->name.len + 1);
    mk_account_free(NULL, w, sizeof(*w));
}

/* Returns one without a value, or NULL. */
static struct mk_watched *new_watched(const struct mk_watched_source *source, int *ret_err)
{
    struct mk_watched *w = mk_account_alloc(NULL, sizeof(*w));
    char *name = mk_account_alloc(NULL, source->name.len + 1);
    *ret_err = -ENOMEM;
    if (!w || !name) {
        mk_account_free(NULL, name, source->name.len + 1);
        mk_account_free(NULL, w, sizeof(*w));
        return NULL;
    }
    *(char *)mempcpy(name, source->name.p, source->name.len) = '\0';
    *w = (struct mk_watched){.type = source->type, .ctx = source->ctx, .name = mk_str(name, source->name.len)};
    mk_list_init(&w->todo);
    *ret_err = mk__paths_init(&w->paths, source->paths, source->n);
    if (*ret_err == 0)
        return w;
    free_watched(w);
    return NULL;
}

/*
 * Adds it to those that are watched. A thread that runs already begins soon: a reload adds many, for which it is woken
 * once. Returns 0 or -ENOMEM.
 */
static int add_watched(struct mk_watched *w)
{
    uint64_t due_ms = mk_time_monotonic_ms() + QUIET_MS;
    pthread_mutex_lock(&watcher.life);
    pthread_mutex_lock(&watcher.lock);
    int err = mk_hash_insert(&watcher.by_paths, NULL, &w->by_paths, mk__paths_hash(&w->paths));
    if (err == 0) {
        mark_due(w, due_ms);
        mk_list_add(&watcher.all, &w->node);
        if (watcher.running)
            wake_thread(due_ms);
    }
    pthread_mutex_unlock(&watcher.lock);
    pthread_mutex_unlock(&watcher.life);
    return err;
}

int mk_watched_open(const struct mk_watched_source *source, struct mk_buf *message, struct mk_watched **ret)
{
    int err;
    const char *denied;
    if (!source->n || source->n > MK_WATCHED_FILES_MAX)
        return -EINVAL;
    struct mk_watched *w = new_watched(source, &err);
    if (!w)
        return err;
    w->signature = mk__paths_signature(&w->paths, &denied); /* before the load, so that no change is lost */
    struct mk_watched_value *value = load_value(w, message, &err);
    if (!value) {
        free_watched(w);
        return err;
    }
    atomic_init(&w->current, value);
    err = add_watched(w);
    if (err == 0) {
        *ret = w;
        return 0;
    }
    free_values(w, value);
    free_watched(w);
    return err;
}

static bool is_unused(void)
{
    pthread_mutex_lock(&watcher.lock);
    bool empty = mk_list_empty(&watcher.all);
    pthread_mutex_unlock(&watcher.lock);
    return empty;
}

void mk_watched_close(struct mk_watched *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&watcher.lock);
    while (w->busy)
        pthread_cond_wait(&watcher.done, &watcher.lock);
    mk_list_del(&w->node);
    mk_hash_remove(&watcher.by_paths, &w->by_paths);
    if (!watcher.by_paths.n)
        mk_hash_release(&watcher.by_paths, NULL);
    put_value(w, atomic_load_explicit(&w->current, memory_order_relaxed));
    mk_list_del(&w->todo);
    assert(!atomic_load_explicit(&w->current, memory_order_relaxed)->refs); /* all references were released */
    pthread_mutex_unlock(&watcher.lock);
    pthread_mutex_lock(&watcher.life);
    if (watcher.running && is_unused())
        stop_thread();
    pthread_mutex_unlock(&watcher.life);
    free_values(w, w->unused);
    free_watched(w);
}

/* ── references ── */

static void take_value(struct mk_watched_ref *ref)
{
    ref->value = atomic_load_explicit(&ref->watched->current, memory_order_relaxed);
    ref->value->refs++;
}

void mk_watched_ref_peek(struct mk_watched_ref *ref, struct mk_watched *w)
{
    ref->watched = w;
    pthread_mutex_lock(&watcher.lock);
    take_value(ref);
    pthread_mutex_unlock(&watcher.lock);
}

void mk_watched_ref_init(struct mk_watched_ref *ref, struct mk_watched *w)
{
    mk_watched_ref_peek(ref, w);
    pthread_mutex_lock(&watcher.life);
    int err = watcher.running ? 0 : start_thread();
    pthread_mutex_unlock(&watcher.life);
    if (err < 0)
        mk_log_error("changes of files are not noticed, because no thread can be started: %s", strerror(-err));
}

static MK_COLD void renew_value(struct mk_watched_ref *ref)
{
    pthread_mutex_lock(&watcher.lock);
    struct mk_watched_value *former = ref->value;
    take_value(ref);
    if (put_value(ref->watched, former))
        wake_thread(AT_ONCE);
    pthread_mutex_unlock(&watcher.lock);
}

void *mk_watched_ref_get(struct mk_watched_ref *ref)
{
    if (MK_UNLIKELY(atomic_load_explicit(&ref->watched->current, memory_order_relaxed) != ref->value))
        renew_value(ref);
    return ref->value->data;
}

void mk_watched_ref_release(struct mk_watched_ref *ref)
{
    if (!ref->watched)
        return;
    pthread_mutex_lock(&watcher.lock);
    if (put_value(ref->watched, ref->value))
        wake_thread(AT_ONCE);
    pthread_mutex_unlock(&watcher.lock);
    *ref = (struct mk_watched_ref){0};
}
