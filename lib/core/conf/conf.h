// SPDX-License-Identifier: Apache-2.0
/*
 * One loaded configuration: the declared sections, the values read into them, and the diagnostics. There are no
 * globals: several configurations may exist at the same time. A configuration belongs to one thread at a time; once it
 * is loaded and checked, any thread may read the structs.
 *
 *     new ─► declare ... ─► set_new ─► read, override ─► check ─► get, next ─► diagnostics ─► free_texts ─► free
 *
 * Values and returned pointers live until mk__conf_free().
 */
#ifndef MK_CONF_CONF_H
#define MK_CONF_CONF_H

#include <monkey/conf.h>

#include <stdarg.h>

struct mk__conf;
struct mk__conf_set;
struct mk__conf_source;

/* Where something was set: a place in a file, an option (line 0), or a default (source NULL). */
struct mk__conf_origin {
    const struct mk__conf_source *source;
    uint32_t line, col; /* from 1 */
};

/* As `offset` of mk__conf_origin() and mk_conf_error(): the section itself instead of one of its keys. */
#define MK__CONF_SECTION SIZE_MAX

/* Creates an empty configuration. Returns NULL without memory. */
MK_COLD struct mk__conf *mk__conf_new(void);
/* Frees the configuration with all its values; `conf` may be NULL. */
MK_COLD void mk__conf_free(struct mk__conf *conf);

/*
 * Declare a section of `owner` (the name of a plugin; NULL: the core). The second function is for a plugin that is
 * known but not loaded; using one of its keys gives an error that says so. Declare all sections before the first set is
 * created. Rows and names must outlive `conf`.
 * Returns 0, -EEXIST (a key of that section and scope is declared already), -EINVAL (the rows are inconsistent, or
 * their flags contradict those of another owner) or -ENOMEM.
 */
MK_COLD int mk__conf_declare(struct mk__conf *conf, const struct mk_conf_section *section, const char *owner);
MK_COLD int mk__conf_declare_absent(struct mk__conf *conf, const struct mk_conf_section *section, const char *owner);

/*
 * Sets a callback for the first unknown name. It may declare further absent sections, so that the message can name the
 * plugin that a name belongs to.
 */
typedef void (*mk__conf_unknown_fn)(struct mk__conf *conf, void *ctx);
MK_COLD void mk__conf_on_unknown(struct mk__conf *conf, mk__conf_unknown_fn fn, void *ctx);

/*
 * Sets a callback for the message that the plugin of a section or key is not loaded: it adds the place of the line to
 * add, after "add \"Load NAME\" to plugins.load". Its context is that of mk__conf_on_unknown().
 */
typedef void (*mk__conf_absent_fn)(const char *owner, struct mk_buf *out, void *ctx);
MK_COLD void mk__conf_on_absent(struct mk__conf *conf, mk__conf_absent_fn fn);

/* Returns the text of the file that was read first; empty after mk__conf_free_texts(). */
MK_COLD struct mk_str mk__conf_first_text(const struct mk__conf *conf);

/*
 * Sets a callback that gets the names of sections (`value` NULL) and the keys with their sections and values in place
 * of the sets, so that files can be read before their sections are declared. It is not called for lines with errors.
 */
typedef void (*mk__conf_line_fn)(struct mk_str section, struct mk_str name, const struct mk_conf_value *value,
                                 void *ctx);
MK_COLD void mk__conf_on_line(struct mk__conf *conf, mk__conf_line_fn fn, void *ctx);

/* Tells that a plugin could not be loaded, which was reported. Unknown names may belong to it, and are not reported. */
MK_COLD void mk__conf_set_plugins_missing(struct mk__conf *conf);

/*
 * Creates a set with one instance of each section of the scope that cannot repeat, filled with the defaults. Returns
 * NULL without memory.
 */
MK_COLD struct mk__conf_set *mk__conf_set_new(struct mk__conf *conf, enum mk_conf_scope scope);

/*
 * Reads a file and the files that it includes into the set. A key that is set twice in a file is an error; one that an
 * earlier file has set gets the later value. All errors are recorded as diagnostics.
 * Returns 0, -ENOENT and the like (the file cannot be read), -EINVAL (it has errors) or -ENOMEM.
 */
MK_COLD int mk__conf_read(struct mk__conf *conf, struct mk__conf_set *set, const char *path);

/*
 * Like mk__conf_read(), from memory. `name` means the file in messages. Includes are refused; paths are relative
 * to the working directory.
 */
MK_COLD int mk__conf_read_text(struct mk__conf *conf, struct mk__conf_set *set, const char *name, struct mk_str text);

/*
 * Sets a key to one literal word, for example from "option --port"; in a repeatable section, in a new instance. It wins
 * over files, whichever is read first. Of several options the last one wins, unless the key may repeat.
 * Returns 0, -EINVAL or -ENOMEM.
 */
MK_COLD int mk__conf_override(struct mk__conf *conf, struct mk__conf_set *set, const char *section, const char *key,
                              struct mk_str value, const char *origin);

/*
 * How hosts begin within files: by a section `section` of the scope of hosts, with values of its key `names` behind its
 * name in the brackets ("[HOST example.org www.example.org]"). It and what follows in the file, up to the next such
 * section, are read into the set that `begin` returns (NULL: without memory). There is no other set for
 *
 *     the first one of a host's own file,
 *     one without names in a file that a host's part of another file includes: it is that host's.
 */
struct mk__conf_hosts {
    const char *section, *names;
    struct mk__conf_set *(*begin)(void *ctx);
    void *ctx;
};
MK_COLD void mk__conf_on_host(struct mk__conf *conf, const struct mk__conf_hosts *hosts);

/*
 * Appends the sections of hosts in `defaults` (a set of the server) to those of a host, for mk__conf_get() and
 * mk__conf_next(). Both sets must have been read completely.
 */
MK_COLD void mk__conf_set_defaults(const struct mk__conf *conf, struct mk__conf_set *set,
                                   const struct mk__conf_set *defaults);

/*
 * Checks, after everything is read, that required sections and keys are set, and runs the checks of the sections.
 * Returns 0, -EINVAL or -ENOMEM.
 */
MK_COLD int mk__conf_check(struct mk__conf *conf, struct mk__conf_set *set);

/*
 * Returns the struct of a section (with PAIRS a struct mk_conf_pairs), the first one if the section repeats; NULL:
 * there is none.
 */
const void *mk__conf_get(const struct mk__conf_set *set, const struct mk_conf_section *section);

/*
 * Returns the struct of the next instance of a section that repeats, after `data` (NULL: the first one); NULL after the
 * last.
 */
const void *mk__conf_next(const struct mk__conf_set *set, const struct mk_conf_section *section, const void *data);

/* Returns whether a struct that mk__conf_get() or mk__conf_next() has returned is of this set, not of its defaults. */
bool mk__conf_is_of(const struct mk__conf_set *set, const void *data);

/*
 * Returns the key `Match` of a section, which has a struct mk_pattern; NULL: it has none. Sections with that key are
 * rules.
 */
const struct mk_conf_key *mk__rule_index_match_key(const struct mk_conf_section *section);
/* Returns the pattern at this offset of a section's struct. */
static inline const struct mk_pattern *mk__conf_pattern(const void *rule, size_t offset)
{
    return (const struct mk_pattern *)(const void *)((const char *)rule + offset);
}
/*
 * Like mk__conf_next(), but leaves out most instances whose pattern, at offset `pattern`, does not match the path: all
 * of those whose paths begin with another text, where there are many. Both sets must have been checked.
 */
const void *mk__rule_index_next(const struct mk__conf_set *set, const struct mk_conf_section *section, size_t pattern,
                                struct mk_str path, const void *data);
/* The same for a pattern: leaves out instances that do not match all of its paths (mk_pattern_covers()), but not it. */
const void *mk__rule_index_next_cover(const struct mk__conf_set *set, const struct mk_conf_section *section,
                                      size_t pattern, const struct mk_pattern *later, const void *data);

/*
 * Returns where the field at `offset` of a section's struct was set: its `nth` list item or line, from 0; with PAIRS
 * and an offset within struct mk_conf_pairs the `nth` pair. With MK__CONF_SECTION: where the section first appeared.
 */
MK_COLD struct mk__conf_origin mk__conf_origin(const struct mk__conf_set *set, const void *data, size_t offset,
                                               unsigned nth);
/* Returns whether the set has a part of a file: its section that begins a host is not the first one, or the server's.
 */
bool mk__conf_is_part(const struct mk__conf_set *set);
/* Returns the file of a set, without a line: the one that was read, not one that it includes. */
MK_COLD struct mk__conf_origin mk__conf_origin_file(const struct mk__conf_set *set);
/*
 * Returns its name without the folder; empty: the set is not of a file, or of a part of one. Valid while the
 * configuration is.
 */
MK_COLD struct mk_str mk__conf_file_name(const struct mk__conf_set *set);

/*
 * Returns whether an error about that field would only follow from a reported one: its value was reported as wrong, or
 * it is not set and its line may have been skipped because of an error. `set` may be NULL.
 */
bool mk__conf_is_consequence(const struct mk__conf_set *set, const void *data, size_t offset, unsigned nth);

/* Returns whether a value of the section is wrong, or lines of it may have been skipped. */
bool mk__conf_has_errors(const struct mk__conf_set *set, const struct mk_conf_section *section);

/* Appends "monkey.conf:3", "option --port" or "default". */
MK_COLD void mk__conf_origin_print(struct mk__conf_origin origin, struct mk_buf *out);

/* Record an error or a warning: one sentence without a full stop. The first 100 are kept, all are counted. */
MK_COLD void mk__conf_error(struct mk__conf *conf, struct mk__conf_origin origin, const char *format, ...)
    MK_PRINTF(3, 4);
MK_COLD void mk__conf_warn(struct mk__conf *conf, struct mk__conf_origin origin, const char *format, ...)
    MK_PRINTF(3, 4);
/* The same with a va_list. */
MK_COLD void mk__conf_report(struct mk__conf *conf, bool warning, struct mk__conf_origin origin, const char *format,
                             va_list args) MK_PRINTF(4, 0);

/* Records that an allocation has failed. Returns -ENOMEM. */
MK_COLD int mk__conf_out_of_memory(struct mk__conf *conf);
/* Returns whether an allocation has failed, for example that of a warning. */
bool mk__conf_is_out_of_memory(const struct mk__conf *conf);

/* Returns a place for a message about a whole file that is not read. */
MK_COLD struct mk__conf_origin mk__conf_file_origin(struct mk__conf *conf, const char *path);

/* Returns the number of errors so far. */
MK_COLD unsigned mk__conf_errors(const struct mk__conf *conf);
/* mk__conf_suppress() counts an error that only follows from another one; mk__conf_all_errors() includes these. */
MK_COLD void mk__conf_suppress(struct mk__conf *conf);
MK_COLD unsigned mk__conf_all_errors(const struct mk__conf *conf);

/* Appends all diagnostics, each with its line, a caret and the chain of includes. */
MK_COLD void mk__conf_diagnostics(const struct mk__conf *conf, struct mk_buf *out);

/* One diagnostic. The strings are valid as long as the configuration, `line_text` until mk__conf_free_texts(). */
struct mk__conf_problem {
    bool warning;
    struct mk_str place; /* a file, or an option; empty: none */
    uint32_t line, col;  /* from 1; 0: unknown */
    struct mk_str text, line_text;
};

/* Calls `fn` for each diagnostic that was kept. */
typedef void (*mk__conf_problem_fn)(const struct mk__conf_problem *problem, void *ctx);
void mk__conf_each_problem(const struct mk__conf *conf, mk__conf_problem_fn fn, void *ctx);

struct mk__conf_counts {
    unsigned errors, warnings;
};

/* json: as JSON objects; as_warnings: print errors as warnings. */
struct mk__conf_list_format {
    bool json, as_warnings;
};

/*
 * Appends the diagnostics that `known` (may be NULL) does not contain, and adds their numbers to `count`. In JSON a
 * comma precedes each but the first one that `count` has counted.
 */
MK_COLD void mk__conf_list_diagnostics(const struct mk__conf *conf, const struct mk__conf *known,
                                       struct mk__conf_list_format form, struct mk_buf *out,
                                       struct mk__conf_counts *count);

/* Frees the texts of the files; later diagnostics are printed without their line. */
MK_COLD void mk__conf_free_texts(struct mk__conf *conf);

/* Appends the manual of all declared sections, as Markdown. */
MK_COLD void mk__conf_reference(const struct mk__conf *conf, struct mk_buf *out);

/* Appends the effective values, each with its origin, in a form that can be read again. */
MK_COLD void mk__conf_show(const struct mk__conf_set *set, struct mk_buf *out);
/* The same with the sections and keys that were set, without their origins. */
MK_COLD void mk__conf_show_given(const struct mk__conf_set *set, struct mk_buf *out);

#endif
