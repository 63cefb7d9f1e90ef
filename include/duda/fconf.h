// SPDX-License-Identifier: Apache-2.0
/*
 * The object `fconf`: the service's own configuration, files of [WEB_SERVICE] ConfDir.
 *
 *     # a comment
 *     [BACKEND]
 *         Host     db.example.org
 *         Port     5432
 *         Ssl      on
 *         Replicas db2.example.org db3.example.org
 *
 * A file has sections, and sections have indented lines of a key and a value, separated by blanks. Names are at most
 * 255 bytes, lines 4,096, files 1 MB. Sections and keys are found in any case of their letters; if one appears several
 * times the first is found. A line that does not follow these rules is an error, which is logged with its number.
 *
 * The functions may block: call them in duda_main() or in threads of the service's own. Any thread, except set_path().
 */
#ifndef DUDA_FCONF_H
#define DUDA_FCONF_H

#include "types.h"

enum {
    DUDA_CONFIG_STR,
    DUDA_CONFIG_NUM,
    DUDA_CONFIG_BOOL,
    DUDA_CONFIG_LIST,
};

struct duda_config;
struct duda_config_section;

struct duda_api_fconf {
    /* Returns the folder with a slash at its end, valid as long as the service; NULL if none is set. */
    char *(*get_path)(void);
    /* Sets the folder, which must exist. Returns 0 or -1, which is logged. Only in duda_main(). */
    int (*set_path)(const char *path);
    /*
     * Returns the contents of a file, any path, with a NUL after them; free() them. NULL, which is logged: it cannot
     * be read, is not a regular file, or has more than 64 MB.
     */
    char *(*read_file)(const char *path);
    /* Reads a file of the folder. Returns NULL, which is logged, if it cannot be read or has an error. */
    struct duda_config *(*read_conf)(const char *file);
    /* Frees a configuration with its sections, and with what get_string() and get_list() have returned. */
    void (*free_conf)(struct duda_config *conf);
    /* Returns the section of that name, or NULL. */
    struct duda_config_section *(*section_get)(struct duda_config *conf, const char *name);
    /*
     * Returns the value of a key; NULL: there is none, or it is not of that type.
     *
     *   DUDA_CONFIG_STR   char *, which the caller frees
     *   DUDA_CONFIG_NUM   the number itself: (long)section_key(...)
     *   DUDA_CONFIG_BOOL  1 for on, yes or true, and 0: (long)section_key(...)
     *   DUDA_CONFIG_LIST  a list of its words, struct duda_string_line of the original API, which is valid as long as
     *                     the service in duda_main(), else as the configuration. get_list() is the same in plain C
     *
     * The functions below tell an absent key from a value of 0.
     */
    void *(*section_key)(struct duda_config_section *section, const char *key, int type);

    /*
     * Return the value, or `fallback` if the key is absent. get_number() and get_bool() return it, too, and log a line,
     * if the value is not a decimal number, or not one of on, off, yes, no, true, false.
     */
    const char *(*get_string)(struct duda_config_section *section, const char *key, const char *fallback);
    long (*get_number)(struct duda_config_section *section, const char *key, long fallback);
    bool (*get_bool)(struct duda_config_section *section, const char *key, bool fallback);
    /* Returns the words of the value, with NULL after the last one; NULL if the key is absent, or without memory. */
    const char *const *(*get_list)(struct duda_config_section *section, const char *key);
};

DUDA_OBJECT(struct duda_api_fconf, fconf)

#endif
