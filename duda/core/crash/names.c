// SPDX-License-Identifier: Apache-2.0
/*
 * Names by libbacktrace (names.h), which belongs to gcc. It finds files by the names that objects have in the process;
 * a service is a copy in memory and has none. So the copy is given as the file of the program, in whose place it is
 * read, and addresses are moved there. The other objects are left out.
 */
#include "crash/names.h"

#include <backtrace.h>
#include <link.h>
#include <string.h>

enum { STATES_MAX = 64 };

struct search {
    const struct crash_object *object;
    name_fn fn;
    void *ctx;
    unsigned n;
};

static void ignore_error(void *data, const char *text, int err)
{
    (void)data, (void)text, (void)err;
}

typedef int (*phdr_fn)(struct dl_phdr_info *info, size_t size, void *ctx);

struct iteration {
    phdr_fn fn;
    void *ctx;
    int result;
};

/* Is called for the first object, which is the program. */
static int call_once(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct iteration *i = ctx;
    i->result = i->fn(info, size, i->ctx);
    return 1;
}

int names_iterate_program(phdr_fn fn, void *ctx);

/*
 * What libbacktrace calls in place of dl_iterate_phdr() (duda.cmake): only the program. Objects that were opened by a
 * descriptor have paths in /proc/self/fd, where another file may be by now: one that is empty would end the process by
 * SIGBUS, a FIFO would block.
 */
int names_iterate_program(phdr_fn fn, void *ctx)
{
    struct iteration i = {fn, ctx, 0};
    dl_iterate_phdr(call_once, &i);
    return i.result;
}

static int get_base(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    *(uintptr_t *)ctx = info->dlpi_addr;
    return 0;
}

/*
 * Versions of a service that make mistakes after reload and reload do not fill the memory. `has_copy`: the copy is
 * held. The first backtrace_*() of a state opens it; without a copy another thread has done so.
 */
static struct backtrace_state *get_state(struct crash_object *o, bool has_copy)
{
    static _Atomic unsigned states;
    struct backtrace_state *state = atomic_load(&o->names);
    if (!state && has_copy && atomic_fetch_add(&states, 1) < STATES_MAX) {
        state = backtrace_create_state(o->copy_path, true, ignore_error, NULL);
        atomic_store(&o->names, state);
    }
    return state;
}

/* Returns the path below the folder of the service's file, where authors know it from. */
static const char *shorten_path(const struct crash_object *o, const char *file)
{
    const char *slash = strrchr(o->file, '/');
    size_t n = slash ? (size_t)(slash + 1 - o->file) : 0;
    return file && strncmp(file, o->file, n) == 0 ? file + n : file;
}

static int add_line(void *data, uintptr_t pc, const char *file, int line, const char *function)
{
    struct search *s = data;
    (void)pc;
    if (!function)
        return 0;
    s->n++;
    s->fn(s->ctx, &(struct name){function, shorten_path(s->object, file), line});
    return 0;
}

static void add_symbol(void *data, uintptr_t pc, const char *function, uintptr_t value, uintptr_t size)
{
    (void)value, (void)size;
    add_line(data, pc, NULL, 0, function);
}

const char *names_explain(const struct crash_object *object)
{
    if (atomic_load(&object->names))
        return "    its functions have no names: compile it with -g, and do not strip it";
    if (object->has_ended)
        return "    its functions have no names: the service has ended, while a thread of it ran on";
    return object->copy_users == 0
               ? "    its functions have no names: no descriptor was left when it was loaded"
               : "    its functions have no names: those of too many versions were read since the server has started";
}

static unsigned search_names(struct backtrace_state *state, uintptr_t address, struct search *search)
{
    uintptr_t program = 0;
    names_iterate_program(get_base, &program);
    uintptr_t pc = address - search->object->bias + program;
    backtrace_pcinfo(state, pc, add_line, ignore_error, search);
    if (search->n == 0)
        backtrace_syminfo(state, pc, add_symbol, ignore_error, search);
    return search->n;
}

unsigned names_find(struct crash_object *object, uintptr_t address, name_fn fn, void *ctx)
{
    struct search search = {object, fn, ctx, 0};
    bool has_copy = crash_hold_copy(object);
    struct backtrace_state *state = get_state(object, has_copy);
    unsigned n = state ? search_names(state, address, &search) : 0;
    if (has_copy)
        crash_release_copy(object);
    return n;
}
