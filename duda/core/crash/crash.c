// SPDX-License-Identifier: Apache-2.0
/*
 * The handler of crashes (crash.h). What runs in it is async-signal-safe, except for dladdr(), which waits for a thread
 * in dlopen() at worst; the service's name is logged before.
 */
#include "crash/crash.h"

#include "common/current.h"
#include "common/heap.h"
#include "crash/trace.h"
#include "task/task.h"

#include <monkey/log.h>

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_BYTES = 512, NAME_BYTES = 72, STACK_BYTES = 64 * 1024 };

static const struct {
    int number;
    const char *name;
} signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"},
};

enum { SIGNALS = MK_COUNT_OF(signals) };

/* ── objects ── */

/* Is never freed before crash_stop(), because a handler may read it at any time, but used again. */
struct crash_object {
    struct crash_object *next;
    _Atomic uintptr_t begin, end;
    _Atomic bool has_ended; /* the place may be used again */
    enum crash_kind kind;
    uintptr_t bias;                             /* what is added to the addresses of the file */
    _Atomic(const struct mk_counter *) crashes; /* NULL: not counted */
    char name[NAME_BYTES];
};

/* Written by the hooks of the configuration, which run one at a time. */
static _Atomic(struct crash_object *) objects;

static struct crash_object *find_object(uintptr_t address)
{
    struct crash_object *found = NULL;
    for (struct crash_object *o = atomic_load(&objects); o; o = o->next)
        if (address >= o->begin && address < o->end && (!found || found->has_ended))
            found = o;
    return found;
}

static struct crash_object *get_free_object(void)
{
    for (struct crash_object *o = atomic_load(&objects); o; o = o->next)
        if (o->has_ended)
            return o;
    struct crash_object *fresh = heap_zalloc(sizeof(*fresh));
    if (!fresh)
        return NULL;
    fresh->next = atomic_load(&objects);
    atomic_store(&objects, fresh);
    return fresh;
}

struct search {
    uintptr_t address, begin, end, bias;
};

/* Is called for each object of the process: finds the bounds of the one that contains the address. */
static int check_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct search *s = ctx;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        begin = at < begin ? at : begin;
        end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
    }
    if (s->address < begin || s->address >= end)
        return 0;
    *s = (struct search){s->address, begin, end, info->dlpi_addr};
    return 1;
}

struct crash_object *crash_add_object(enum crash_kind kind, const char *name, const void *address)
{
    struct search s = {.address = (uintptr_t)address};
    struct crash_object *o = dl_iterate_phdr(check_object, &s) ? get_free_object() : NULL;
    if (!o)
        return NULL;
    o->begin = o->end = 0;
    o->crashes = NULL;
    o->bias = s.bias;
    o->kind = kind;
    snprintf(o->name, sizeof(o->name), "%s", name);
    o->begin = s.begin;
    o->end = s.end;
    o->has_ended = false;
    return o;
}

void crash_count_object(struct crash_object *object, const struct mk_counter *counter)
{
    object->crashes = counter;
}

void crash_get_range(const struct crash_object *object, uintptr_t *ret_begin, uintptr_t *ret_end)
{
    *ret_begin = object->begin;
    *ret_end = object->end;
}

void crash_remove_object(struct crash_object *object)
{
    object->has_ended = true;
}

bool crash_is_mapped(const void *address)
{
    struct search s = {.address = (uintptr_t)address};
    return dl_iterate_phdr(check_object, &s) != 0;
}

/* Those in use stay: they belong to services with threads that have not ended. */
static void free_objects(void)
{
    struct crash_object *next, *kept = NULL;
    for (struct crash_object *o = atomic_exchange(&objects, NULL); o; o = next) {
        next = o->next;
        if (o->has_ended) {
            heap_free(o, sizeof(*o));
            continue;
        }
        o->next = kept;
        kept = o;
    }
    atomic_store(&objects, kept);
}

/* ── lines ── */

struct line {
    char *data;
    size_t len, size; /* `size` includes the NUL */
};

static void put_text(struct line *l, const char *text)
{
    while (*text && l->len + 1 < l->size)
        l->data[l->len++] = *text++;
    l->data[l->len] = '\0';
}

static void put_number(struct line *l, uintptr_t n, unsigned base)
{
    char digits[2 + sizeof(n) * 3], *at = digits + sizeof(digits) - 1;
    *at = '\0';
    do
        *--at = "0123456789abcdef"[n % base];
    while (n /= base);
    put_text(l, base == 16 ? "0x" : "");
    put_text(l, at);
}

static const char *find_base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path && path[0] ? path : "?";
}

/* Returns the file's name; this plugin, services and packages were opened under names that say nothing. */
static const char *find_file_name(const struct crash_object *o, const Dl_info *info)
{
    Dl_info own;
    if (o)
        return o->name;
    if (dladdr(&signals, &own) != 0 && own.dli_fbase == info->dli_fbase)
        return "duda.so";
    return find_base_name(info->dli_fname);
}

static void put_address(struct line *l, uintptr_t address)
{
    Dl_info info = {0};
    const struct crash_object *o = find_object(address);
    bool found = dladdr((const void *)address, &info) != 0;
    put_text(l, find_file_name(o, &info));
    put_text(l, !o ? "" : o->kind == CRASH_SERVICE ? ".duda" : ".dpkg");
    put_text(l, "+");
    put_number(l, address - (o ? o->bias : (uintptr_t)info.dli_fbase), 16);
    if (found && info.dli_sname) {
        put_text(l, " (");
        put_text(l, info.dli_sname);
        put_text(l, ")");
    }
}

void crash_describe(uintptr_t address, char *to, size_t size)
{
    struct line l = {to, 0, size};
    put_address(&l, address);
}

/* ── the handler ── */

/* Returns the object of a service to which the first frame of one belongs; NULL: there is none. */
static const struct crash_object *find_first_object(const struct trace *t)
{
    const struct crash_object *o = NULL;
    for (int i = t->first; i < t->n && !o; i++) {
        o = find_object(t->frames[i]);
        o = o && o->kind == CRASH_SERVICE ? o : NULL;
    }
    return o;
}

const char *crash_find_caller(void)
{
    struct trace t;
    if (!atomic_load(&objects))
        return NULL;
    trace_read(&t);
    const struct crash_object *o = find_first_object(&t);
    return o ? o->name : NULL;
}

static _Atomic bool log_is_open;

void crash_use_log(void)
{
    log_is_open = true;
}

bool crash_log_is_open(void)
{
    return log_is_open;
}

/* Writes to stderr, too, as long as the log may be kept in memory. */
static void log_line(enum mk_log_level level, struct line *l)
{
    mk_log_signal(level, l->data);
    if (log_is_open)
        return;
    put_text(l, "\n");
    if (write(STDERR_FILENO, l->data, l->len) < 0)
        return; /* nothing more can be done */
}

static void put_service(struct line *l, const char *service)
{
    put_text(l, "the service \"");
    put_text(l, service);
    put_text(l, "\" ");
}

static void log_sentence(enum mk_log_level level, const char *service, const char *text)
{
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    put_service(&l, service);
    put_text(&l, text);
    log_line(level, &l);
}

void crash_log(const char *service, const char *text)
{
    log_sentence(MK_LOG_ERROR, service, text);
}

void crash_log_warning(const char *service, const char *text)
{
    log_sentence(MK_LOG_WARN, service, text);
}

/* Names the dthread that runs, and says if it was its stack that had no room. */
static void put_dthread(struct line *l, const struct dthread *d, uintptr_t address)
{
    if (!d)
        return;
    put_text(l, ", in the dthread ");
    put_address(l, d->event ? (uintptr_t)d->event : (uintptr_t)d->call);
    if (!stack_has_guard(d->stack, address))
        return;
    put_text(l, ", whose stack of ");
    put_number(l, stack_kilobytes(), 10);
    put_text(l, " KB has overflowed");
}

static void put_task(struct line *l, const struct task *t)
{
    if (!t)
        return;
    put_text(l, " in the task ");
    put_address(l, (uintptr_t)t->kind.fn);
}

/* `has_ended`: a thread has crashed that should have ended before. */
static void log_headline(const char *service, bool has_ended, int number, const siginfo_t *info)
{
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    put_service(&l, service);
    put_text(&l, has_ended ? "has ended, but a thread of it ran on and has crashed: " : "has crashed: ");
    for (int i = 0; i < SIGNALS; i++)
        put_text(&l, signals[i].number == number ? signals[i].name : "");
    if (number != SIGABRT && info->si_code > 0) {
        put_text(&l, " at address ");
        put_number(&l, (uintptr_t)info->si_addr, 16);
    }
    if (current.service && current.worker) {
        put_text(&l, " in worker ");
        put_number(&l, current.worker->watch.worker, 10);
        put_dthread(&l, current.worker->dthreads.running, (uintptr_t)info->si_addr);
    }
    put_task(&l, task_pool_running());
    log_line(MK_LOG_ERROR, &l);
}

static void log_frame(const struct trace *t, int i)
{
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    put_text(&l, "    #");
    put_number(&l, (uintptr_t)(i - t->first), 10);
    put_text(&l, " ");
    put_address(&l, t->frames[i] - (i > t->first)); /* the call, and not what follows it */
    log_line(MK_LOG_ERROR, &l);
}

/* Comes when the handler returns. */
static void end_by_signal(int number)
{
    signal(number, SIG_DFL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

/* Returns whether this thread is the first one that crashes. Waits for the end of the process if another one is. */
static bool begin_handling(void)
{
    static _Atomic long first;
    long own = syscall(SYS_gettid), before = 0;
    if (atomic_compare_exchange_strong(&first, &before, own))
        return true;
    while (before != own)
        pause();
    return false;
}

/* An atomic addition to memory that the next process continues with. */
static void count_crash(const struct mk_counter *crashes)
{
    if (crashes)
        mk_counter_add(crashes, NULL, 1);
}

static void handle_crash(int number, siginfo_t *info, void *context)
{
    struct trace t;
    if (!begin_handling()) { /* this handler has crashed, because memory is damaged that it reads */
        end_by_signal(number);
        return;
    }
    const char *service = current.service ? current.service->self.name.data : NULL;
    if (service) {
        count_crash(current.service->counts.crashes);
        log_headline(service, false, number, info);
    }
    trace_read_signal(&t, context);
    const struct crash_object *o = service ? NULL : find_first_object(&t);
    if (o) {
        service = o->name;
        count_crash(o->crashes);
        log_headline(service, o->has_ended, number, info);
    }
    for (int i = t.first; i < t.n && service; i++)
        log_frame(&t, i);
    end_by_signal(number);
}

static bool has_handler(int number, struct sigaction *ret)
{
    return sigaction(number, NULL, ret) == 0 && (ret->sa_flags & SA_SIGINFO) && ret->sa_sigaction == handle_crash;
}

void crash_start(void)
{
    struct sigaction now, own = {.sa_sigaction = handle_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int i = 0; i < SIGNALS; i++)
        if (sigaction(signals[i].number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            sigaction(signals[i].number, &own, NULL);
}

void crash_stop(void)
{
    struct sigaction now;
    for (int i = 0; i < SIGNALS; i++)
        if (has_handler(signals[i].number, &now))
            signal(signals[i].number, SIG_DFL);
    free_objects();
}

/* ── threads ── */

struct crash_thread {
    unsigned refs; /* for the thread, and after its end for the one that stops its workers */
    pid_t id;
    void *stack;
};

static __attribute__((tls_model("initial-exec"))) _Thread_local struct crash_thread *own_thread;

static struct crash_thread *new_thread(void)
{
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE))
        return NULL; /* a sanitizer's */
    struct crash_thread *thread = heap_zalloc(sizeof(*thread));
    if (!thread)
        return NULL;
    thread->id = (pid_t)syscall(SYS_gettid);
    thread->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (thread->stack == MAP_FAILED) {
        heap_free(thread, sizeof(*thread));
        return NULL;
    }
    sigaltstack(&(stack_t){.ss_sp = thread->stack, .ss_size = STACK_BYTES}, NULL);
    return thread;
}

static void unblock_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&set, signals[i].number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

struct crash_thread *crash_enter_thread(void)
{
    unblock_signals();
    if (!own_thread)
        own_thread = new_thread();
    if (own_thread)
        own_thread->refs++;
    return own_thread;
}

void crash_leave_thread(struct crash_thread *thread)
{
    if (!thread || --thread->refs > 0)
        return;
    if (thread == own_thread) {
        assert(thread->id == (pid_t)syscall(SYS_gettid));
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
        own_thread = NULL;
    }
    munmap(thread->stack, STACK_BYTES);
    heap_free(thread, sizeof(*thread));
}
