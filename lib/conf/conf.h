// SPDX-License-Identifier: Apache-2.0
/*
 * One loaded configuration: the declared sections, the sets of values read into them, and what was wrong.
 * No globals: several configurations live beside each other. Belongs to one thread at a time; once it is
 * loaded and checked, many may read the structs.
 *
 *     new ─► declare ... ─► set_new ─► read, override ─► check ─► get, next ─► problems ─► settle ─► free
 *
 * Every value, and every pointer that is handed out, lives until mk__conf_free.
 */
#ifndef MK_CONF_CONF_H
#define MK_CONF_CONF_H

#include <monkey/conf.h>

#include <stdarg.h>

struct mk__conf;
struct mk__conf_set;
struct mk__conf_source;

/* Where something was set: a place in a file, an option (line 0), or nowhere (a default: source NULL). */
struct mk__conf_origin {
    const struct mk__conf_source *source;
    uint32_t line, col; /* from 1 */
};

/* For `offset` of mk__conf_origin and mk_conf_error: the section itself, not one of its keys. */
#define MK__CONF_SECTION SIZE_MAX

/* NULL without memory. */
struct mk__conf *mk__conf_new(void);
void mk__conf_free(struct mk__conf *conf);

/*
 * Declares a section of `owner` (a plugin's name, NULL = the core) that is loaded, or of a plugin that is
 * known but not loaded, whose keys then give an error that says so. All before the first set; rows and
 * names must outlive `conf`. -EEXIST when a key of that section and scope is declared already, -EINVAL
 * for rows that contradict themselves or another owner's flags, -ENOMEM.
 */
int mk__conf_declare(struct mk__conf *conf, const struct mk_conf_section *section, const char *owner);
int mk__conf_declare_absent(struct mk__conf *conf, const struct mk_conf_section *section, const char *owner);

/*
 * Calls `fn` once, when a name is not known: it may declare more that is absent, so that the message can say whose
 * name it is.
 */
typedef void (*mk__conf_unknown_fn)(struct mk__conf *conf, void *ctx);
void mk__conf_on_unknown(struct mk__conf *conf, mk__conf_unknown_fn fn, void *ctx);

/*
 * A plugin that was asked for could not be loaded, which was reported: names that are not known may be its own, and
 * are not reported.
 */
void mk__conf_set_plugins_missing(struct mk__conf *conf);

/* One instance of each section of the scope that cannot repeat, filled with the defaults. NULL without memory. */
struct mk__conf_set *mk__conf_set_new(struct mk__conf *conf, enum mk_conf_scope scope);

/*
 * Reads a file, with what it includes, into the set. A key that is set twice in one file is an error; one
 * that an earlier file has set takes the later value. 0; -ENOENT and its like when the file cannot be
 * read; -EINVAL when there are errors in it; -ENOMEM. All are recorded as problems.
 */
int mk__conf_read(struct mk__conf *conf, struct mk__conf_set *set, const char *path);

/* The same from memory, under a name for messages. Includes are refused; paths start at the working directory. */
int mk__conf_read_text(struct mk__conf *conf, struct mk__conf_set *set, const char *name, struct mk_str text);

/*
 * Sets a key to one literal word, for example from "option --port" (of a repeatable section: in a new one). It wins
 * over files, whichever comes first; of several the last wins, or they all count where the key may repeat.
 */
int mk__conf_override(struct mk__conf *conf, struct mk__conf_set *set, const char *section, const char *key,
                      struct mk_str value, const char *origin);

/* Once all is read: what is required is there, and the sections' own checks agree. 0, -EINVAL, -ENOMEM. */
int mk__conf_check(struct mk__conf *conf, struct mk__conf_set *set);

/* The struct of a section (a struct mk_conf_pairs with PAIRS); of a repeatable one the first. NULL: there is none. */
const void *mk__conf_get(const struct mk__conf_set *set, const struct mk_conf_section *section);

/* The struct behind `data`, which came from one of these two, in a section that repeats; NULL after the last. */
const void *mk__conf_next(const struct mk__conf_set *set, const struct mk_conf_section *section, const void *data);

/*
 * Where the field at `offset` of a section's struct was set: its `nth` list item or line, from 0; the nth
 * pair of a PAIRS section (any offset). With MK__CONF_SECTION: where the section appeared first.
 */
struct mk__conf_origin mk__conf_origin(const struct mk__conf_set *set, const void *data, size_t offset, unsigned nth);

/*
 * `set` may be NULL. Would an error about that field follow from one that was reported? True where its value was
 * reported as wrong, and where it is not set but its line may have been skipped because of an error.
 */
bool mk__conf_is_consequence(const struct mk__conf_set *set, const void *data, size_t offset, unsigned nth);

/* Is any value of a section wrong, or may lines of it have been skipped? */
bool mk__conf_has_errors(const struct mk__conf_set *set, const struct mk_conf_section *section);

/* Appends "monkey.conf:3", "option --port" or "default". */
void mk__conf_origin_print(struct mk__conf_origin origin, struct mk_buf *out);

/* Records a problem, one sentence without a full stop. The first 100 are kept, all are counted. */
void mk__conf_error(struct mk__conf *conf, struct mk__conf_origin origin, const char *format, ...) MK_PRINTF(3, 4);
void mk__conf_warn(struct mk__conf *conf, struct mk__conf_origin origin, const char *format, ...) MK_PRINTF(3, 4);
/* The same for those who take such arguments themselves. */
void mk__conf_report(struct mk__conf *conf, bool warning, struct mk__conf_origin origin, const char *format,
                     va_list args) MK_PRINTF(4, 0);

unsigned mk__conf_errors(const struct mk__conf *conf);
unsigned mk__conf_warnings(const struct mk__conf *conf);
/* Instead of an error that follows from another one; and how many errors there were with those. */
void mk__conf_suppress(struct mk__conf *conf);
unsigned mk__conf_all_errors(const struct mk__conf *conf);

/* Appends all problems, each with its line, a caret and the chain of includes. */
void mk__conf_diagnostics(const struct mk__conf *conf, struct mk_buf *out);

struct mk__conf_counts {
    unsigned errors, warnings;
};

/* As JSON, with errors called warnings. */
struct mk__conf_list_format {
    bool json, as_warnings;
};

/*
 * Appends the problems that `known` (which may be NULL) has not, and adds to `count`. In JSON a comma stands before
 * each but the first that `count` knows.
 */
void mk__conf_list_diagnostics(const struct mk__conf *conf, const struct mk__conf *known,
                               struct mk__conf_list_format form, struct mk_buf *out, struct mk__conf_counts *count);

/* Gives back the texts of the files: later problems are printed without their line. */
void mk__conf_free_texts(struct mk__conf *conf);

/* Appends the manual of all declared sections, as Markdown. */
void mk__conf_reference(const struct mk__conf *conf, struct mk_buf *out);

/* Appends the effective values and where each comes from, in a form that can be read again. */
void mk__conf_show(const struct mk__conf_set *set, struct mk_buf *out);

#endif
