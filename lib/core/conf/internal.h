// SPDX-License-Identifier: Apache-2.0
/*
 * The structs of a configuration; for lib/core/conf only. Everything lives in its arena.
 *
 *     conf ─► section_type [SERVER] ─► registration (core) ─► registration (plugin "static")    the schema
 *     set  ─► section [SERVER]      ─► values (core)       ─► values (plugin "static")          the values, and
 *                                        └─► setting ─► setting                                 where they were set
 */
#ifndef MK_CONF_INTERNAL_H
#define MK_CONF_INTERNAL_H

#include "conf/conf.h"
#include "conf/expand.h"

enum mk__conf_level { MK__CONF_FILE = 1, MK__CONF_OPTION }; /* 0: default; the higher one wins */

/* A file, a text in memory, or an option of the command line. */
struct mk__conf_source {
    struct mk__conf_source *next; /* the one read before */
    const char *name;
    struct mk_str dir, text; /* directory part of `name`, with its slash; the bytes, until mk__conf_free_texts() */
    const struct mk__conf_source *parent; /* the file that includes this one, or NULL */
    uint32_t parent_line;
    uint8_t level, depth;
    bool no_include; /* @INCLUDE is refused */
};

struct mk__conf_registration {
    struct mk__conf_registration *next;
    const struct mk_conf_section *section;
    const char *owner; /* plugin; NULL: the core */
    bool absent;       /* the owner is not loaded: known for messages only, has no values */
};

/* All registrations of one section name and scope. */
struct mk__conf_section_type {
    struct mk__conf_section_type *next;
    struct mk_str name;
    uint8_t scope, flags;
    struct mk__conf_registration *registrations;
};

/* Only MK__SETTING_SET has stored a value in the struct. */
enum mk__setting_state {
    MK__SETTING_SET,
    MK__SETTING_FAILED,  /* the line is present, but its value was reported as wrong */
    MK__SETTING_GUESSED, /* an unknown key is probably a misspelling of this one */
};

/* One setting: an item of a list, a pair, or a line of any other key. */
struct mk__conf_setting {
    struct mk__conf_setting *next;
    const struct mk_conf_key *key; /* NULL: a pair, which is always MK__SETTING_SET */
    struct mk__conf_origin origin;
    struct mk_str text; /* CUSTOM: the words, in a form that can be read again */
    uint8_t state;      /* enum mk__setting_state */
};

/* The struct of one owner, as its registration defines it, in an instance of a section. */
struct mk__conf_values {
    struct mk__conf_values *next;          /* of its section */
    struct mk__conf_values *next_instance; /* of the next instance of this section in the set */
    const struct mk__conf_set *set;        /* that has them */
    const struct mk__conf_section *section;
    const struct mk__rule_index *rules; /* of these instances; NULL: there is none */
    uint32_t nth;                       /* in it */
    const struct mk__conf_registration *registration;
    void *data;  /* points to `bytes` */
    bool failed; /* the section's own check reported an error */
    struct mk__conf_setting *settings, **last;
    max_align_t bytes[];
};

/* Returns the values that this struct of a section is part of. */
static inline struct mk__conf_values *mk__conf_values_of(const void *data)
{
    return (struct mk__conf_values *)((uintptr_t)data - offsetof(struct mk__conf_values, bytes));
}

/* One instance of a section. A section that cannot repeat always has one. */
struct mk__conf_section {
    struct mk__conf_section *next;
    const struct mk__conf_section_type *type;
    struct mk__conf_origin origin; /* source NULL: it does not appear */
    struct mk__conf_values *values;
    bool incomplete; /* lines of it may have been skipped after an error */
};

/* The instances of one section in a set. */
struct mk__conf_group {
    struct mk__conf_group *next;
    struct mk__conf_section *first, *last;
};

struct mk__conf_set {
    enum mk_conf_scope scope;
    struct mk__conf_group *groups;
    struct mk__conf_section *sections, **last; /* in a set of the server also those of hosts, for all hosts */
    const struct mk__conf_set *defaults;       /* of a host: the server's set, whose sections follow; may be NULL */
    const struct mk__conf_source *source;      /* the file that was read last, not counting includes */
    bool is_part;                              /* of that file: a section within it has begun this host */
    bool incomplete;                           /* lines of any section may have been skipped after an error */
};

struct mk__conf_diagnostic {
    struct mk__conf_diagnostic *next;
    struct mk__conf_origin origin;
    bool warning;
    struct mk_str text;
};

struct mk__conf {
    struct mk_arena arena; /* lives as long as the generation */
    struct mk_arena texts; /* for loading, until mk__conf_free_texts() */
    struct mk__conf_section_type *section_types;
    struct mk__conf_source *sources;
    struct mk__conf_diagnostic *diagnostics, **last_diagnostic;
    const struct mk__variable *variables;
    unsigned errors;
    unsigned suppressed;            /* errors that only follow from a reported one */
    unsigned kept, dropped;         /* diagnostics in the list, and those beyond its limit */
    unsigned includes;              /* files that were included */
    struct mk__conf_hosts hosts;    /* `section` NULL: hosts begin with files only */
    bool plugins_missing;           /* unknown names may belong to a plugin that could not be loaded */
    bool include_failed;            /* an include failed, so variables may be missing */
    bool includes_refused;          /* no further file is included */
    const char *short_form;         /* that is read, for messages; NULL: none */
    bool semicolon;                 /* the current value ends in an unquoted semicolon */
    bool out_of_memory;             /* an allocation has failed */
    mk__conf_unknown_fn on_unknown; /* called once, before the first unknown name is reported */
    mk__conf_absent_fn on_absent;   /* NULL: messages name no place */
    void *unknown_ctx;              /* of both */
    mk__conf_line_fn on_line;       /* NULL: lines are stored in sets */
    void *line_ctx;
    struct mk__words words; /* words of the current line; the last member, because it is not zeroed */
};

/* A key in the tables and the registration that declares it. */
struct mk__conf_key_ref {
    const struct mk__conf_registration *registration;
    const struct mk_conf_key *key;
};

/*
 * schema.c: find a section type by its name (in any case) and scope, and a key of it. NULL (`key` NULL): there is none.
 * A key of an owner that is loaded has precedence over one of an absent owner.
 */
struct mk__conf_section_type *mk__schema_find_type(const struct mk__conf *conf, struct mk_str name,
                                                   enum mk_conf_scope scope);
struct mk__conf_key_ref mk__schema_find_key(const struct mk__conf_section_type *type, struct mk_str name);

/* Returns whether only plugins that are not loaded declare the section. */
bool mk__schema_is_absent(const struct mk__conf_section_type *type);

/*
 * Find the section of hosts of that name that may appear in the server's files, for all hosts; and the one that has the
 * key, where the server's section `type` of the same name has no such key. NULL: there is none, or its plugin is not
 * loaded.
 */
const struct mk__conf_section_type *mk__schema_find_default(const struct mk__conf *conf, struct mk_str name);
const struct mk__conf_section_type *mk__schema_find_default_key(const struct mk__conf *conf,
                                                                const struct mk__conf_section_type *type,
                                                                struct mk_str key);
/* Returns whether a section may appear in the server's files: one of the server, or one for all hosts. */
bool mk__schema_is_for_server(const struct mk_conf_section *section);

/* unknown_key.c: report a name that no loaded table has. Return the name that was probably meant, or NULL. */
MK_COLD const char *mk__unknown_key_report_section(struct mk__conf *conf, const struct mk__conf_set *set,
                                                   struct mk_str name, struct mk__conf_origin origin);
MK_COLD const char *mk__unknown_key_report(struct mk__conf *conf, const struct mk__conf_section_type *type,
                                           struct mk_str name, struct mk__conf_origin origin);

/* Returns whether short forms may stand in the section: it is [HOST]. */
bool mk__schema_has_short_forms(const struct mk__conf_section_type *type);
/*
 * Return the section that a key of this section means, by its name and value; and one of a plugin that is not loaded,
 * by its name. NULL: it is no short form.
 */
const struct mk__conf_registration *mk__schema_find_short_form(const struct mk__conf *conf,
                                                               const struct mk__conf_section_type *type,
                                                               struct mk_str name, struct mk_str value);
const struct mk__conf_registration *mk__schema_find_absent_form(const struct mk__conf *conf,
                                                                const struct mk__conf_section_type *type,
                                                                struct mk_str name);
/* Returns the row of a short form's value; NULL: it is none of its words. */
const struct mk_conf_short_value *mk__schema_find_short_value(const struct mk_conf_short_form *form,
                                                              struct mk_str value);

/* short_form.c: sets keys of such a section to the words of the line. */
MK_COLD void mk__short_form_bind(struct mk__conf *conf, const struct mk__conf_section *sec,
                                 const struct mk__conf_registration *reg, struct mk__conf_origin origin);

/* rule_index.c: indexes the sections of a set that have a Match and are many. Returns 0 or -ENOMEM. */
MK_COLD int mk__rule_index_make(struct mk__conf *conf, struct mk__conf_set *set);

/* section_values.c: returns the section that the following keys belong to; NULL after an error, which is recorded. */
MK_COLD struct mk__conf_section *mk__section_values_enter_section(struct mk__conf *conf, struct mk__conf_set *set,
                                                                  struct mk_str name, struct mk__conf_origin origin);

/* section_values.c: returns where a section that cannot repeat first appeared in the set; source NULL: nowhere. */
MK_COLD struct mk__conf_origin mk__section_values_find(const struct mk__conf *conf, const struct mk__conf_set *set,
                                                       struct mk_str name);

/* section_values.c: adds an instance of a section that repeats. Returns NULL without memory. */
MK_COLD struct mk__conf_section *mk__section_values_add_section(struct mk__conf *conf, struct mk__conf_set *set,
                                                                const struct mk__conf_section_type *type,
                                                                struct mk__conf_origin origin);

/*
 * bind.c: sets a key of the section to `conf->words`. The key stands at `origin`, the words in the same line. Errors
 * are recorded.
 */
MK_COLD void mk__bind_key(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk_str name,
                          struct mk__conf_origin origin);

/* bind.c: reports a key that no loaded table has, and records the key that was probably meant. */
MK_COLD void mk__bind_unknown(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk_str name,
                              struct mk__conf_origin origin);

/* bind.c: records that a line of this key at `origin` was reported as wrong. */
MK_COLD void mk__bind_failure(struct mk__conf *conf, const struct mk__conf_section *sec, struct mk_str name,
                              struct mk__conf_origin origin, enum mk__setting_state state);

/* Fills the struct with the defaults. */
MK_COLD void mk__bind_defaults(struct mk__conf *conf, struct mk__conf_values *values);

/* diagnostics.c: returns the line at which something was set; empty after mk__conf_free_texts(). */
MK_COLD struct mk_str mk__diagnostics_line(struct mk__conf_origin origin);

#endif
