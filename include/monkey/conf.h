// SPDX-License-Identifier: Apache-2.0
// clang-format off
/*
 * Directives as tables: a plugin (or the core) declares its sections and keys as const rows, and gets the checked
 * values in its own struct.
 *
 *     [CACHE]                struct cache_conf { uint64_t bytes; uint32_t age_ms; };
 *         Bytes  64M   ──►   static const struct mk_conf_key keys[] = {
 *         Age    10s             MK_CONF_KEY_SIZE(struct cache_conf, bytes, "Bytes", "16M", "What it may take.",
 *                                                 .min = 1024),
 *                                MK_CONF_KEY_DURATION(struct cache_conf, age_ms, "Age", "1m", "How long it lasts."),
 *                                {0}};
 *                            static const struct mk_conf_section section = {
 *                                .name = "CACHE", .keys = keys, .size = sizeof(struct cache_conf),
 *                                .doc = MK_CONF_DOC("What this is about.")};
 *
 * Several owners may declare a section of the same name and scope: each gets its own keys in its own struct. Loading,
 * checks, the manual and the listing of the effective values are all derived from the rows. The structs and their
 * strings live as long as the generation.
 */
// clang-format on
#ifndef MONKEY_CONF_H
#define MONKEY_CONF_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/pattern.h"
#include "base/str.h"

MK_C_BEGIN

/* A text of the manual. */
#ifdef MK_NO_MANUAL
#define MK_CONF_DOC(text) ""
#else
#define MK_CONF_DOC(text) text
#endif

enum mk_conf_type {
    MK_CONF_BOOL,     /* bool: On or Off */
    MK_CONF_INT,      /* int64_t */
    MK_CONF_SIZE,     /* uint64_t bytes: 100B 64K 10M 1G */
    MK_CONF_DURATION, /* uint32_t milliseconds: 500ms 10s 5m 2h 1d; uint64_t if it may exceed 49 days */
    MK_CONF_STRING,   /* struct mk_str: the words, with one space between them */
    MK_CONF_PATH,     /* struct mk_str: made absolute, relative to the directory of the file; empty only if it is not
                         MK_CONF_REQUIRED */
    MK_CONF_LIST,     /* struct mk_conf_list: the words; with MK_CONF_REPEAT further lines append */
    MK_CONF_ENUM,     /* int: an index into `names` */
    MK_CONF_CUSTOM,   /* read by `parse`, which with MK_CONF_REPEAT is called once per line */
};

/*
 * Where a section may appear: in monkey.conf and the files of plugins, or in the file of a host. A section of hosts
 * that repeats (MK_CONF_REPEAT) may also appear in monkey.conf, for all hosts: see mk_host_conf(). If a section of the
 * server has the same name, it may have both kinds of keys there, so no key may have the name of another.
 */
enum mk_conf_scope { MK_CONF_SCOPE_SERVER, MK_CONF_SCOPE_HOST };

enum mk_conf_flags {
    MK_CONF_REPEAT = 1,   /* a key (LIST, CUSTOM) or a section that may appear several times in a file */
    MK_CONF_REQUIRED = 2, /* a section that must appear; a key that must be set in its section */
    MK_CONF_PAIRS = 4,    /* a section with arbitrary keys; its struct is struct mk_conf_pairs, or begins with it if the
                             section has `keys`, too */
    MK_CONF_HOST_ONLY = 8, /* a section of hosts that repeats, but may not appear in monkey.conf */
    MK_CONF_SERVES = 16,   /* a section of hosts that repeats, or a key of one, which answers requests */
    MK_CONF_FILES = 32,    /* a required key of hosts that may be missing next to one with MK_CONF_SERVES */
};

struct mk_conf_list {
    struct mk_str *items;
    uint32_t n;
};

struct mk_conf_pair {
    struct mk_str key, value;
};

struct mk_conf_pairs {
    struct mk_conf_pair *items; /* in the order of the lines, including repeated keys */
    uint32_t n;
};

/* The value of a key, with quotes, escapes and variables resolved. Valid during the call that it is passed to. */
struct mk_conf_value {
    struct mk_str text; /* the words, with one space between them */
    const struct mk_str *words;
    uint32_t n;
    struct mk_str dir;  /* directory of the file, with a slash at its end; empty: the working directory */
    const void *origin; /* of the server, for mk_conf_place() */
    size_t *fault;      /* a parser that fails may store the offset of the mistake in `text`; may be NULL */
    const bool *quoted; /* for each word: it was in quotes, or had an escape; NULL: all were */
};

/* For parsers: tells whether the value is the word Off alone. */
static inline bool mk_conf_is_off(const struct mk_conf_value *value)
{
    return value->n == 1 && mk_str_ieq(value->text, MK_STR("Off"));
}

/* For parsers: adds a sentence to `error`. Returns -EINVAL. */
static inline int mk_conf_fail(struct mk_buf *error, const char *sentence)
{
    mk_buf_addf(error, "%s", sentence);
    return -EINVAL;
}

/*
 * For parsers: tells where the mistake is, `at` bytes after the beginning of a word, and adds `reason` to `error`
 * unless it is NULL. Returns -EINVAL.
 */
static inline int mk_conf_fault(const struct mk_conf_value *value, uint32_t word, size_t at, struct mk_buf *error,
                                const char *reason)
{
    for (uint32_t i = 0; i < word; i++)
        at += value->words[i].len + 1;
    if (value->fault)
        *value->fault = at;
    return reason ? mk_conf_fail(error, reason) : -EINVAL;
}

/*
 * Reads a value into its field, which is zeroed before the first call (with REPEAT it keeps the result of the former
 * lines). Data that is kept must be copied into `arena`.
 * Returns 0, -ENOMEM, or another -errno with a sentence in `error`, without a full stop.
 */
typedef int (*mk_conf_parse_fn)(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                struct mk_buf *error);

struct mk_conf_key {
    const char *name;
    uint8_t type, flags;
    uint16_t size;        /* of the field */
    uint32_t offset;      /* of the field in its struct */
    const char *fallback; /* the default, written as in a file; NULL: the field stays zeroed */
    const char *doc;      /* manual text: Markdown, whole sentences */
    const char *unit; /* SIZE, DURATION: unit of a bare number ("B", "s"); CUSTOM: what the manual calls the value */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnested-anon-types" /* of -Wpedantic in C++ */
#endif
    union {
        __extension__ struct {
            int64_t min, max; /* INT, SIZE in bytes, DURATION in ms; max 0: no upper limit; both 0: no range */
        };
        const char *const *names; /* ENUM: the last one is NULL */
        mk_conf_parse_fn parse;   /* CUSTOM */
    };
#ifdef __clang__
#pragma clang diagnostic pop
#endif
};

struct mk_conf_check;

/* A key of other servers or former versions, and what to use instead: a phrase that follows a semicolon. */
struct mk_conf_foreign {
    const char *name, *instead;
};
/* A row for a key that had another name in an earlier version. */
#define MK_CONF_RENAMED(old, new) \
    { \
        old, "it is called " new \
    }

/* A word of a short form, and the value that it means; NULL: the default. */
struct mk_conf_short_value {
    const char *word, *means;
};
/*
 * A key of [HOST] that means a section of that host: the line is read as the section with one key. Before the value may
 * stand a pattern for the section's key Match, if it has one: "Proxy /api http://127.0.0.1:3000".
 */
struct mk_conf_short_form {
    const char *name; /* of the key of [HOST]. A section of hosts may have a key of that name if there are `values`,
                         and gets all others. */
    const char *key;  /* of the section */
    const struct mk_conf_short_value *values; /* the words to write, up to one without a name; NULL: those of `key` */
    const char *doc;                          /* manual text: Markdown, whole sentences */
};

struct mk_conf_section {
    const char *name;
    uint8_t scope, flags;
    uint32_t size;                  /* size of the struct that the keys fill; unused without them */
    const struct mk_conf_key *keys; /* ends with a row without a name; may be NULL with PAIRS */
    const char *doc;
    const struct mk_conf_foreign *foreign;       /* ends with a row without a name; may be NULL */
    const struct mk_conf_short_form *short_form; /* may be NULL */
    /* Checks the struct once everything is read, even if it holds only defaults; reports with mk_conf_error(). */
    void (*check)(const struct mk_conf_check *check, void *section);
};

/* Rows need C++20, as designated initializers do; without them the headers are for C++17, too. */
#if defined(__cplusplus) && __cplusplus > 201703L
#define MK_CONF_MORE(...) __VA_OPT__(, ) __VA_ARGS__
#elif !defined(__cplusplus)
#define MK_CONF_MORE(...) , ##__VA_ARGS__
#endif
/*
 * One row. The unevaluated comparison makes the compiler reject a field of another type. Further members may follow:
 * `.min = 1, .flags = MK_CONF_REQUIRED`.
 */
#define MK_CONF_KEY(kind, ctype, owner, field, key, text, manual, ...) \
    { \
        .name = key, .type = kind, .size = sizeof(((owner *)0)->field), \
        .offset = offsetof(owner, field) + 0 * sizeof((ctype *)0 == &((owner *)0)->field), .fallback = text, \
        .doc = MK_CONF_DOC(manual) MK_CONF_MORE(__VA_ARGS__) \
    }

#define MK_CONF_KEY_BOOL(owner, field, ...) MK_CONF_KEY(MK_CONF_BOOL, bool, owner, field, __VA_ARGS__)
#define MK_CONF_KEY_INT(owner, field, ...) MK_CONF_KEY(MK_CONF_INT, int64_t, owner, field, __VA_ARGS__)
#define MK_CONF_KEY_SIZE(owner, field, ...) MK_CONF_KEY(MK_CONF_SIZE, uint64_t, owner, field, __VA_ARGS__)
#define MK_CONF_KEY_DURATION(owner, field, ...) MK_CONF_KEY(MK_CONF_DURATION, uint32_t, owner, field, __VA_ARGS__)
#define MK_CONF_KEY_LONG_DURATION(owner, field, ...) MK_CONF_KEY(MK_CONF_DURATION, uint64_t, owner, field, __VA_ARGS__)
#define MK_CONF_KEY_STRING(owner, field, ...) MK_CONF_KEY(MK_CONF_STRING, struct mk_str, owner, field, __VA_ARGS__)
#define MK_CONF_KEY_PATH(owner, field, ...) MK_CONF_KEY(MK_CONF_PATH, struct mk_str, owner, field, __VA_ARGS__)
#define MK_CONF_KEY_LIST(owner, field, ...) MK_CONF_KEY(MK_CONF_LIST, struct mk_conf_list, owner, field, __VA_ARGS__)
/* These two need a further member: `.names = ...` or `.parse = ...`. */
#define MK_CONF_KEY_ENUM(owner, field, ...) MK_CONF_KEY(MK_CONF_ENUM, int, owner, field, __VA_ARGS__)
#define MK_CONF_KEY_CUSTOM(owner, field, ...) MK_CONF_KEY(MK_CONF_CUSTOM, void, owner, field, __VA_ARGS__)

/*
 * For a section's check: report an error or a warning, at the line that set the field at `offset`, or else at the
 * section. An error at a key whose value was already reported as wrong is left out.
 */
MK_API void mk_conf_error(const struct mk_conf_check *check, size_t offset, const char *format, ...) MK_PRINTF(3, 4);
MK_API void mk_conf_warn(const struct mk_conf_check *check, size_t offset, const char *format, ...) MK_PRINTF(3, 4);
/*
 * Returns whether the key at `offset` was given, but its value was reported as wrong. The field is then as if the key
 * were not set, so a check must not draw conclusions from it. Errors at the key itself are left out anyway.
 */
MK_API bool mk_conf_is_wrong(const struct mk_conf_check *check, size_t offset);
/* Returns whether the section appears in a file: a check is also called for one that holds only defaults. */
MK_API bool mk_conf_is_given(const struct mk_conf_check *check);
/* Like mk_conf_error() and mk_conf_warn(), at the `nth` item of a list, or line of a repeated key, from 0. */
MK_API void mk_conf_error_nth(const struct mk_conf_check *check, size_t offset, unsigned nth, const char *format, ...)
    MK_PRINTF(4, 5);
MK_API void mk_conf_warn_nth(const struct mk_conf_check *check, size_t offset, unsigned nth, const char *format, ...)
    MK_PRINTF(4, 5);

/*
 * For rules that protect paths: warns if the pattern at `offset` ends in /<star> and so leaves out what is further
 * below.
 */
MK_API void mk_conf_warn_one_level(const struct mk_conf_check *check, size_t offset, const struct mk_pattern *match);

/* Adds copies of the words of a value, from the n-th one on (from 0), to a list. Returns 0 or -ENOMEM. */
MK_API int mk_conf_add_words(const struct mk_conf_value *value, uint32_t nth, struct mk_conf_list *list,
                             struct mk_arena *arena);

/* Parses a struct mk_pattern (<monkey/base/pattern.h>); and a row that uses it. Returns as mk_conf_parse_fn. */
MK_API int mk_conf_pattern(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                           struct mk_buf *error);
#define MK_CONF_KEY_PATTERN(owner, field, ...) \
    MK_CONF_KEY(MK_CONF_CUSTOM, struct mk_pattern, owner, field, __VA_ARGS__, .unit = "pattern", \
                .parse = mk_conf_pattern)

/* Like mk_conf_pattern() for ~expression, which is compared with texts that need not be paths. */
MK_API int mk_conf_expression(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                              struct mk_buf *error);

/*
 * Parses a struct mk_patterns: one or more per line; with MK_CONF_REPEAT further lines append. Returns as
 * mk_conf_parse_fn.
 */
MK_API int mk_conf_patterns(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                            struct mk_buf *error);
#define MK_CONF_KEY_PATTERNS(owner, field, ...) \
    MK_CONF_KEY(MK_CONF_CUSTOM, struct mk_patterns, owner, field, __VA_ARGS__, .unit = "pattern ...", \
                .parse = mk_conf_patterns)

/*
 * Parses a struct mk_networks (<monkey/base/address.h>): one or more per line; with MK_CONF_REPEAT further lines
 * append. Returns as mk_conf_parse_fn.
 */
MK_API int mk_conf_networks(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                            struct mk_buf *error);
#define MK_CONF_KEY_NETWORKS(owner, field, ...) \
    MK_CONF_KEY(MK_CONF_CUSTOM, struct mk_networks, owner, field, __VA_ARGS__, .unit = "network ...", \
                .parse = mk_conf_networks)

/*
 * Returns `path` as a PATH key would read it, for a custom parser: absolute, with a NUL after it. It lives as long as
 * `arena`. `.p` is NULL if memory or the working directory is missing.
 */
MK_API struct mk_str mk_conf_path(const struct mk_conf_value *value, struct mk_str path, struct mk_arena *arena);
/*
 * Returns the file and line of a value ("sites/default:3"), for later messages; empty: unknown. It lives as long as
 * `arena`. `.p` is NULL without memory.
 */
MK_API struct mk_str mk_conf_place(const struct mk_conf_value *value, struct mk_arena *arena);
/*
 * Stores such a path in `*ret`. In a file of the configuration, one that means something else in a shell or a browser,
 * such as ~/www, is an error. Returns 0, -ENOMEM or -EINVAL with a sentence in `error`.
 */
MK_API int mk_conf_read_path(const struct mk_conf_value *value, struct mk_str path, struct mk_str *ret,
                             struct mk_arena *arena, struct mk_buf *error);

MK_C_END

#endif
