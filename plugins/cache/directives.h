// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [CACHE]: memory in monkey.conf, and what is cached by hosts.
 */
#ifndef CACHE_DIRECTIVES_H
#define CACHE_DIRECTIVES_H

#include <monkey/plugin.h>

/* How soon a change of a file is seen. */
enum files_mode { FILES_UNSET, FILES_OFF, FILES_EACH_CYCLE, FILES_REVALIDATE, FILES_NOTIFY, FILES_IMMUTABLE };

struct files_policy {
    uint8_t mode;         /* enum files_mode */
    uint32_t interval_ms; /* FILES_REVALIDATE and FILES_NOTIFY */
};

/* What is loaded ahead: a folder of the host, or a file with a list of paths. */
struct warm_item {
    struct mk_str text; /* the path of a folder of the host, with a slash at its end, or that of the file */
    bool is_folder;
};

struct warm_list {
    struct warm_item *items;
    uint32_t n;
};

/* A section [CACHE] of a host. One that has `Admin` or `Warm`, but not `Files`, says nothing about files. */
struct cache_rule {
    struct mk_pattern match; /* matches nothing in a section that says nothing about files */
    struct files_policy files;
    struct mk_str admin;
    struct warm_list warm;
};

/* The section [CACHE] of the server. */
struct cache_conf {
    uint64_t bytes_max, body_bytes_max;
    int64_t descriptors_max, missing_max;
    uint32_t warm_timeout_ms;
};

/* The sections for struct mk_plugin. */
enum { DIRECTIVES_SERVER, DIRECTIVES_RULES };
extern const struct mk_conf_section directives_sections[];

/* Parses the value of `Files` into a struct files_policy; an mk_conf_parse_fn. */
int directives_parse_files(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                           struct mk_buf *error);
/* Parses a line of `Warm` into a struct warm_list; an mk_conf_parse_fn. */
int directives_parse_warm(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
/* Returns whether a section says something about files. */
bool directives_is_about_files(const struct cache_rule *rule);
/* Returns the name of a mode. */
const char *directives_mode_name(enum files_mode mode);

/* What paths have that no section matches, and those for which a regular expression fails. */
extern const struct files_policy directives_default_policy, directives_off;

/* Returns the policy of a path; `ret_rule`: the section that it comes from, or NULL. Any thread. */
static inline const struct files_policy *directives_find_policy(const struct mk_host *host, struct mk_str path,
                                                                const void **ret_rule)
{
    *ret_rule = NULL;
    int r = mk_host_conf_match(host, &directives_sections[DIRECTIVES_RULES], offsetof(struct cache_rule, match), path,
                               ret_rule);
    const struct cache_rule *rule = *ret_rule;
    return r < 0 ? &directives_off : rule ? &rule->files : &directives_default_policy;
}

#endif
