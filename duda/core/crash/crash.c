// SPDX-License-Identifier: Apache-2.0
/*
 * The handler of crashes (crash.h). What runs in it is async-signal-safe, except for dladdr(), which waits for a thread
 * in dlopen() at worst; the service's name is logged before.
 */
#include "crash/crash.h"

#include "common/current.h"
#include "common/heap.h"
#include "crash/crash_object.h"
#include "crash/line.h"
#include "crash/names.h"
#include "crash/reason.h"
#include "crash/trace.h"

#include <monkey/counters.h>
#include <monkey/log.h>

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_BYTES = 512, STACK_BYTES = 64 * 1024 };

static const struct {
    int number;
    const char *name;
} signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"},
};

enum { SIGNALS = MK_COUNT_OF(signals) };

/* ── addresses ── */

static const char *find_base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path && path[0] ? path : "?";
}

/* Adds "NAME.duda+0x1234". This plugin, services and packages were opened under names that say nothing. */
static void put_place(struct line *l, const struct crash_object *o, uintptr_t address, const Dl_info *info)
{
    Dl_info own;
    bool is_own = dladdr(&signals, &own) != 0 && own.dli_fbase == info->dli_fbase;
    line_add(l, o ? o->name : is_own ? "duda.so" : find_base_name(info->dli_fname));
    line_add(l, !o ? "" : o->kind == CRASH_SERVICE ? ".duda" : ".dpkg");
    line_add(l, "+");
    line_add_number(l, address - (o ? o->bias : (uintptr_t)info->dli_fbase), 16);
}

/* Adds " (find_items, shop.c:42)", of what is known. */
static void put_name(struct line *l, const struct name *name)
{
    line_add(l, " (");
    line_add(l, name->function);
    if (name->file && name->line > 0) {
        line_add(l, ", ");
        line_add(l, name->file);
        line_add(l, ":");
        line_add_number(l, (uintptr_t)name->line, 10);
    }
    line_add(l, ")");
}

/* Calls fn for each name of an address; services have names of static functions, too. Returns how many there are. */
static unsigned find_names(struct crash_object *o, uintptr_t address, const Dl_info *info, name_fn fn, void *ctx)
{
    unsigned n = o ? names_find(o, address, fn, ctx) : 0;
    if (n > 0 || !info->dli_sname)
        return n;
    fn(ctx, &(struct name){.function = info->dli_sname});
    return 1;
}

struct address_line {
    struct line *line;
    size_t len; /* before the name */
};

static void put_last_name(void *ctx, const struct name *name)
{
    struct address_line *a = ctx;
    a->line->len = a->len;
    put_name(a->line, name);
}

void crash_add_address(struct line *l, uintptr_t address)
{
    Dl_info info = {0};
    struct crash_object *o = crash_find_object(address);
    dladdr((const void *)address, &info);
    put_place(l, o, address, &info);
    find_names(o, address, &info, put_last_name, &(struct address_line){l, l->len});
}

void crash_describe(uintptr_t address, char *to, size_t size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct line l = {to, 0, size};
    pthread_mutex_lock(&lock); /* the file is read once */
    crash_add_address(&l, address);
    pthread_mutex_unlock(&lock);
}

/* ── the handler ── */

/* Returns the number of the first frame that belongs to a service; `n` of the trace: there is none. */
static int find_service_frame(const struct trace *t)
{
    int i = t->first;
    for (; i < t->n; i++) {
        const struct crash_object *o = crash_find_object(t->frames[i]);
        if (o && o->kind == CRASH_SERVICE)
            break;
    }
    return i;
}

/* Returns the object of a service to which the first frame of one belongs; NULL: there is none. */
static const struct crash_object *find_first_object(const struct trace *t)
{
    int i = find_service_frame(t);
    return i < t->n ? crash_find_object(t->frames[i]) : NULL;
}

const char *crash_find_caller(void)
{
    struct trace t;
    trace_read(&t);
    const struct crash_object *o = find_first_object(&t);
    return o ? o->name : NULL;
}

bool crash_describe_caller(char *to, size_t size)
{
    struct trace t;
    trace_read(&t);
    int i = find_service_frame(&t);
    if (i < t.n)
        crash_describe(t.frames[i] - 1, to, size); /* of the call, not of what it returns to */
    return i < t.n;
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
    line_add(l, "\n");
    if (write(STDERR_FILENO, l->data, l->len) < 0)
        return; /* nothing more can be done */
}

static void put_service(struct line *l, const char *service)
{
    line_add(l, "the service \"");
    line_add(l, service);
    line_add(l, "\" ");
}

void crash_log(enum mk_log_level level, const char *service, const char *text)
{
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    put_service(&l, service);
    line_add(&l, text);
    log_line(level, &l);
}

/* `has_ended`: a thread has crashed that should have ended before. */
static void log_headline(const char *service, bool has_ended, int number, const siginfo_t *info)
{
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    put_service(&l, service);
    line_add(&l, has_ended ? "has ended, but a thread of it ran on and has crashed: " : "has crashed: ");
    for (int i = 0; i < SIGNALS; i++)
        line_add(&l, signals[i].number == number ? signals[i].name : "");
    if (number != SIGABRT && info->si_code > 0) {
        line_add(&l, " at address ");
        line_add_number(&l, (uintptr_t)info->si_addr, 16);
    }
    if (current.service && current.worker) {
        line_add(&l, " in worker ");
        line_add_number(&l, current.worker->watch.worker, 10);
    }
    if (current.service)
        FEATURES_CALL(current.service->features, crash_describe, &l, (uintptr_t)info->si_addr);
    if (number == SIGABRT)
        reason_add_abort(&l);
    log_line(MK_LOG_ERROR, &l);
}

struct frame {
    const struct crash_object *object;
    uintptr_t address;
    Dl_info info;
    unsigned *number;
};

static void log_frame(void *ctx, const struct name *name)
{
    struct frame *f = ctx;
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    line_add(&l, "    #");
    line_add_number(&l, (*f->number)++, 10);
    line_add(&l, " ");
    put_place(&l, f->object, f->address, &f->info);
    if (name)
        put_name(&l, name);
    log_line(MK_LOG_ERROR, &l);
}

static void log_reason(const char *text)
{
    char data[LINE_BYTES];
    struct line l = {data, 0, sizeof(data)};
    line_add(&l, text);
    log_line(MK_LOG_ERROR, &l);
}

/* `named`: how many addresses in services have names. */
static void log_missing_names(const struct trace *t, unsigned named)
{
    const struct crash_object *o = named == 0 ? find_first_object(t) : NULL;
    const char *text = o ? names_explain(o) : NULL;
    if (text)
        log_reason(text);
}

/* A function that was inlined has its own frame, as in a debugger. */
static void log_frames(const struct trace *t)
{
    unsigned number = 0, named = 0;
    for (int i = t->first; i < t->n; i++) {
        uintptr_t address = t->frames[i] - (i > t->first); /* the call, and not what follows it */
        struct crash_object *o = crash_find_object(address);
        struct frame f = {.object = o, .address = address, .number = &number};
        dladdr((const void *)address, &f.info);
        unsigned n = find_names(o, address, &f.info, log_frame, &f);
        if (n == 0)
            log_frame(&f, NULL);
        else if (o && o->kind == CRASH_SERVICE)
            named++;
    }
    log_missing_names(t, named);
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
        count_crash(current.service->object ? current.service->object->crashes : NULL);
        log_headline(service, false, number, info);
    }
    trace_read_signal(&t, context);
    const struct crash_object *o = service ? NULL : find_first_object(&t);
    if (o) {
        service = o->name;
        count_crash(o->crashes);
        log_headline(service, o->has_ended, number, info);
    }
    if (service)
        log_frames(&t);
    if (current.service)
        reason_log(number, info, log_reason);
    end_by_signal(number);
}

static bool has_handler(int number, struct sigaction *ret)
{
    return sigaction(number, NULL, ret) == 0 && (ret->sa_flags & SA_SIGINFO) && ret->sa_sigaction == handle_crash;
}

void crash_start(void)
{
    struct sigaction now, own = {.sa_sigaction = handle_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    reason_start();
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
    crash_free_objects();
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
