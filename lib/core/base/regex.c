// SPDX-License-Identifier: Apache-2.0
/*
 * Regular expressions (base/regex.h). No other file uses PCRE2. Clients choose the paths, and so the cost of a match:
 * each match has a limit of steps and of memory.
 *
 * JIT is not used: it needs memory that is writable and executable, which hardened systems forbid (systemd's
 * MemoryDenyWriteExecute), and it cannot count steps.
 */
#include "base/regex.h"
#include "base/clock.h"
#include "base/log.h"

#include <monkey/base/library.h>

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    BYTES_MAX = 1024,      /* length of an expression */
    STEPS_MAX = 50000,     /* of a match; a step takes some 10 to 40 ns */
    BYTES_A_STEP = 16,     /* bytes that a repeated item skips in the time of a step */
    DEPTH_MAX = 20000,     /* of nested alternatives */
    MEMORY_KIB_MAX = 1024, /* of a match: enough for some 4,000 bytes of (a|b)* */
    REASON_BYTES = 128,    /* longer than the library's messages */
};

struct mk_regex {
    pcre2_code *code;
    struct mk_str text, location;
    _Atomic uint64_t warned_ms;
};

/* ── the library ── */

#define FUNCTIONS(each) \
    each(code_free) each(compile) each(compile_context_create) each(general_context_create) each(get_error_message) \
        each(get_ovector_pointer) each(match) each(match_context_copy) each(match_context_create) \
            each(match_context_free) each(match_data_create) each(match_data_free) each(pattern_info) \
                each(set_callout) each(set_depth_limit) each(set_heap_limit) each(set_match_limit)

#define POINTER(name) typeof(&pcre2_##name##_8) name;
#define SYMBOL(name) {"pcre2_" #name "_8", &pcre2.name},

/* Open until the process ends, so that expressions can be used without a check. */
static struct {
    FUNCTIONS(POINTER)
} pcre2;
static const struct mk_library_symbol symbols[] = {FUNCTIONS(SYMBOL)};

/* Contexts for all calls: the allocator and the limits of a match. Created once, then only read. */
static pcre2_general_context *memory;
static pcre2_compile_context *compiling;
static pcre2_match_context *matching; /* set last: once it is set, the others are */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static void *alloc_memory(size_t size, void *ctx)
{
    (void)ctx;
    return mk_account_alloc(NULL, size);
}

static void free_memory(void *p, void *ctx)
{
    (void)ctx;
    mk_account_free(NULL, p, 0);
}

static int find_functions(void)
{
    MK_BUF_ON_STACK(error, REASON_BYTES);
    void *library = mk_library_open("libpcre2-8.so.0", MK_LIBRARY_SHARED, &error);
    bool found = library && mk_library_find(library, symbols, MK_COUNT_OF(symbols), &error) == 0;
    return found ? 0 : -ENOENT;
}

static int make_contexts(void)
{
    if (!memory)
        memory = pcre2.general_context_create(alloc_memory, free_memory, NULL);
    if (memory && !compiling)
        compiling = pcre2.compile_context_create(memory);
    pcre2_match_context *context = compiling ? pcre2.match_context_create(memory) : NULL;
    if (!context)
        return -ENOMEM;
    pcre2.set_match_limit(context, STEPS_MAX);
    pcre2.set_depth_limit(context, DEPTH_MAX);
    pcre2.set_heap_limit(context, MEMORY_KIB_MAX);
    matching = context;
    return 0;
}

static int open_library(void)
{
    pthread_mutex_lock(&open_lock);
    int err = matching ? 0 : find_functions();
    if (err == 0 && !matching)
        err = make_contexts();
    pthread_mutex_unlock(&open_lock);
    return err;
}

/* ── compiling ── */

static int set_error(struct mk_buf *error, const char *reason)
{
    mk_buf_addf(error, "%s", reason);
    return -EINVAL;
}

/*
 * Expressions match bytes, so every path is valid. A dot matches any byte and `$` only the end, so that an encoded line
 * break does not evade a rule. Each item calls count_step().
 */
static const uint32_t options = PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_UTF |
                                PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C;

static int compile_regex(struct mk_regex *regex, struct mk_buf *error, size_t *ret_fault)
{
    bool any_case = mk_str_starts(regex->text, MK_STR("~*"));
    struct mk_str body = mk_str(regex->text.p + 1 + any_case, regex->text.len - 1 - any_case);
    PCRE2_UCHAR reason[REASON_BYTES];
    size_t at;
    int code;
    regex->code =
        pcre2.compile((PCRE2_SPTR)body.p, body.len, options | (any_case ? PCRE2_CASELESS : 0), &code, &at, compiling);
    if (regex->code)
        return 0;
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return -ENOMEM;
    *ret_fault = 1 + any_case + (at < body.len ? at : body.len - 1); /* the library may report the end of the text */
    pcre2.get_error_message(code, reason, sizeof(reason));
    int shown = regex->text.len > 80 ? 80 : (int)regex->text.len;
    mk_buf_addf(error, "the regular expression \"%.*s\" does not compile: %s, at byte %zu", shown, regex->text.p,
                (const char *)reason, *ret_fault + 1);
    return -EINVAL;
}

static void free_code(void *ctx)
{
    struct mk_regex *regex = ctx;
    if (regex->code)
        pcre2.code_free(regex->code);
}

int mk__regex_new(const struct mk_regex **ret_regex, struct mk_str text, struct mk_arena *arena, struct mk_buf *error,
                  size_t *ret_fault)
{
    assert(text.len && text.p[0] == '~');
    *ret_fault = 0;
    if (text.len < 2 || mk_str_eq(text, MK_STR("~*")))
        return set_error(error, "behind ~ stands a regular expression, such as ~^/a/[0-9]+$");
    if (text.len > BYTES_MAX)
        return set_error(error, "a regular expression has at most 1,024 bytes");
    int err = open_library();
    if (err == -ENOENT)
        return set_error(error,
                         "regular expressions need libpcre2-8.so.0: install it (Debian: libpcre2-8-0), or use a glob");
    struct mk_regex *regex = err == 0 ? mk_arena_zalloc(arena, sizeof(*regex)) : NULL;
    if (!regex || mk_arena_defer(arena, free_code, regex) < 0)
        return -ENOMEM;
    regex->text = text;
    err = compile_regex(regex, error, ret_fault);
    *ret_regex = err == 0 ? regex : NULL;
    return err;
}

void mk__regex_set_location(const struct mk_regex *regex, struct mk_str location)
{
    ((struct mk_regex *)(uintptr_t)regex)->location = location;
}

unsigned mk__regex_groups(const struct mk_regex *regex)
{
    uint32_t n = 0;
    pcre2.pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &n);
    return n;
}

/* ── matching ── */

struct match_cost {
    unsigned steps;
    size_t at;
};

/*
 * Counts the steps of a whole match. The library's own limit starts again at each place where a match may begin, and
 * does not count the bytes that a repeated item skips; both grow with the path.
 */
static int count_step(pcre2_callout_block *step, void *ctx)
{
    struct match_cost *cost = ctx;
    size_t at = step->current_position;
    cost->steps += 1 + (at > cost->at ? (unsigned)(at - cost->at) / BYTES_A_STEP : 0);
    cost->at = at;
    return cost->steps > STEPS_MAX ? PCRE2_ERROR_MATCHLIMIT : 0;
}

static void warn_limit(const struct mk_regex *regex, struct mk_str path, int result)
{
    _Atomic uint64_t *warned = &((struct mk_regex *)(uintptr_t)regex)->warned_ms;
    uint64_t before = *warned, now = before;
    if (mk__log_is_due(&now, mk__clock_system.now_ms(NULL)) && atomic_compare_exchange_strong(warned, &before, now))
        mk_log_warn(
            "%.*s%sthe pattern \"%.*s\" took too much %s on a path of %zu bytes: it is not known whether it matches",
            MK_STR_ARG(regex->location), regex->location.len ? ": " : "", MK_STR_ARG(regex->text),
            result == PCRE2_ERROR_MATCHLIMIT ? "time" : "memory", path.len);
}

static void find_groups(pcre2_match_data *data, struct mk_str path, int found, struct mk_str *groups, unsigned n)
{
    const size_t *at = pcre2.get_ovector_pointer(data);
    for (unsigned i = 0; i < n; i++, at += 2) {
        bool set = (found == 0 || i < (unsigned)found) && at[0] <= at[1] && at[1] <= path.len;
        groups[i] = set ? mk_str(path.p + at[0], at[1] - at[0]) : MK_STR("");
    }
}

/*
 * Each match allocates its memory (20 KiB, rarely more) and frees it: workers share nothing, and a costly path leaves
 * nothing after. In a release build this makes a simple match take some 150 ns.
 */
int mk__regex_match(const struct mk_regex *regex, struct mk_str path, struct mk_str *groups, unsigned n)
{
    assert(groups || !n);
    struct match_cost cost = {0};
    if (!regex)
        return 0;
    pcre2_match_context *context = pcre2.match_context_copy(matching);
    pcre2_match_data *data = context ? pcre2.match_data_create(n, memory) : NULL;
    int found = PCRE2_ERROR_NOMEMORY;
    if (data) {
        pcre2.set_callout(context, count_step, &cost);
        found = pcre2.match(regex->code, (PCRE2_SPTR)(path.p ? path.p : ""), path.len, 0, 0, data, context);
        if (found >= 0)
            find_groups(data, path, found, groups, n);
        pcre2.match_data_free(data);
    }
    if (context)
        pcre2.match_context_free(context);
    if (found >= 0 || found == PCRE2_ERROR_NOMATCH)
        return found >= 0;
    warn_limit(regex, path, found);
    return found == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -EOVERFLOW;
}
