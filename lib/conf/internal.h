// SPDX-License-Identifier: Apache-2.0
/*
 * What a loaded configuration is made of; for lib/conf only. Everything lives in its arena.
 *
 *     conf ─► family [SERVER] ─► decl (core) ─► decl (plugin "static")      what may be said
 *     set  ─► block [SERVER]  ─► part (core) ─► part (plugin "static")      what was said: a struct per values,
 *                                  └─► record ─► record                    and where each key was set
 */
#ifndef MK_CONF_INTERNAL_H
#define MK_CONF_INTERNAL_H

#include "conf/conf.h"
#include "conf/expand.h"

enum mk__conf_level { MK__CONF_FILE = 1, MK__CONF_OPTION }; /* 0 is a default; the higher one wins */

/* A file, a text in memory, or an option of the command line. */
struct mk__conf_source {
    struct mk__conf_source *next; /* read before */
    const char *name;
    struct mk_str dir, text;              /* of the name, with its slash; the bytes, empty after settling */
    const struct mk__conf_source *parent; /* the file that includes this one */
    uint32_t parent_line;
    uint8_t level, depth;
    bool no_include; /* may not include */
};

struct mk__conf_registration {
    struct mk__conf_registration *next;
    const struct mk_conf_section *section;
    const char *owner; /* NULL = the core */
    bool absent;
};

/* All declarations that share a name and a scope. */
struct mk__conf_section_set {
    struct mk__conf_section_set *next;
    struct mk_str name;
    uint8_t scope, flags;
    struct mk__conf_registration *registrations;
};

/* Only MK__SETTING_SET has a value in the struct. */
enum mk__setting_state {
    MK__SETTING_SET,
    MK__SETTING_FAILED,  /* the line is there, its value was reported as wrong */
    MK__SETTING_GUESSED, /* a misspelt key was probably meant to be this one */
};

/* One item of a list, one pair, or one line of any other key. */
struct mk__conf_setting {
    struct mk__conf_setting *next;
    const struct mk_conf_key *key; /* NULL: a pair */
    struct mk__conf_origin origin;
    struct mk_str text; /* CUSTOM: the words as they can be read again */
    uint8_t state;      /* enum mk__setting_state */
};

struct mk__conf_values {
    struct mk__conf_values *next;          /* of its block */
    struct mk__conf_values *next_instance; /* of the same section, where that stands next in the set */
    const struct mk__conf_registration *registration;
    void *data;  /* is `bytes` */
    bool failed; /* the section's own check reported an error */
    struct mk__conf_setting *settings, **last;
    max_align_t bytes[];
};

/* One section as it stands in a file; of one that cannot repeat there is always one. */
struct mk__conf_section {
    struct mk__conf_section *next;
    const struct mk__conf_section_set *section_set;
    struct mk__conf_origin origin; /* source NULL: it did not appear */
    struct mk__conf_values *values;
    bool incomplete; /* lines of it may have been skipped after an error */
};

struct mk__conf_set {
    enum mk_conf_scope scope;
    struct mk__conf_section *sections, **last;
    const struct mk__conf_source *source; /* the file that was read last, not an included one */
    bool incomplete;                      /* any section may lack lines, because of a reported error */
};

struct mk__conf_diagnostic {
    struct mk__conf_diagnostic *next;
    struct mk__conf_origin origin;
    bool warning;
    struct mk_str text;
};

struct mk__conf {
    struct mk_arena arena; /* what the generation keeps */
    struct mk_arena texts; /* what loading needs, until it is settled */
    struct mk__conf_section_set *section_sets;
    struct mk__conf_source *sources;
    struct mk__conf_diagnostic *diagnostics, **last_diagnostic;
    const struct mk__variable *variables;
    unsigned errors, warnings;
    unsigned suppressed;            /* errors that follow from one that was reported */
    unsigned kept, dropped;         /* problems in the list, and beyond its limit */
    bool plugins_missing;           /* unknown names may be those of one that could not be loaded */
    bool include_failed;            /* variables may be missing because of that */
    bool semicolon;                 /* the value at hand ends in ; without quotes */
    bool out_of_memory;             /* memory ran out somewhere */
    mk__conf_unknown_fn on_unknown; /* once, before the first unknown name is explained */
    void *unknown_ctx;
    struct mk__words words; /* of the line at hand; the last member, which is not zeroed */
};

/* A key as found in the tables. */
struct mk__conf_key_ref {
    const struct mk__conf_registration *registration;
    const struct mk_conf_key *key;
};

/* Notes that memory ran out: -ENOMEM. */
int mk__conf_out_of_memory(struct mk__conf *conf);

/* schema.c: the family of that name (any case) and scope, the row of that key: NULL when there is none. */
struct mk__conf_section_set *mk__schema_find_section(const struct mk__conf *conf, struct mk_str name,
                                                     enum mk_conf_scope scope);
struct mk__conf_key_ref mk__schema_find_key(const struct mk__conf_section_set *section_set, struct mk_str name);

/* True when only plugins that are not loaded declare the section. */
bool mk__schema_is_absent(const struct mk__conf_section_set *section_set);

/* unknown_key.c: errors for a name that no loaded table has. Returns the name that may have been meant, or NULL. */
const char *mk__unknown_key_report_section(struct mk__conf *conf, enum mk_conf_scope scope, struct mk_str name,
                                           struct mk__conf_origin origin);
const char *mk__unknown_key_report(struct mk__conf *conf, const struct mk__conf_section_set *section_set,
                                   struct mk_str name, struct mk__conf_origin origin);

/* values.c: where the keys of that section go from now on; NULL after an error, which is recorded. */
struct mk__conf_section *mk__values_enter_section(struct mk__conf *conf, struct mk__conf_set *set, struct mk_str name,
                                                  struct mk__conf_origin origin);

/*
 * bind.c: sets a key of the block from `conf->words`. The key stands at `origin`, the words in the same
 * line. Errors are recorded.
 */
void mk__bind_key(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk_str name,
                  struct mk__conf_origin origin);

/* bind.c: notes that a line of this key stands at `origin` and was reported as wrong. */
void mk__bind_failure(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk_str name,
                      struct mk__conf_origin origin, enum mk__setting_state state);

/* Fills a part's struct with the defaults. */
void mk__bind_defaults(struct mk__conf *conf, struct mk__conf_values *values);

/* diagnostics.c: one problem for people, errors as warnings where `soft`. */
void mk__diagnostics_print(const struct mk__conf_diagnostic *p, bool as_warnings, struct mk_buf *out);

/* The line where something was set, as long as the texts are there. */
struct mk_str mk__diagnostics_line(struct mk__conf_origin origin);

#endif
