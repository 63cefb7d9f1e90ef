// SPDX-License-Identifier: Apache-2.0
/*
 * Parses the configuration files of services; the format is that of <duda/fconf.h>. Pure: bytes in, structs out.
 */
#ifndef DUDA_CORE_SERVICE_CONF_FILE_H
#define DUDA_CORE_SERVICE_CONF_FILE_H

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>

enum { CONF_FILE_BYTES_MAX = 1 << 20, CONF_LINE_BYTES_MAX = 4096, CONF_NAME_BYTES_MAX = 255 };

struct conf_key {
    struct conf_key *next;
    struct mk_str name, value; /* with a NUL after them; neither is empty */
};

struct duda_config_section {
    struct duda_config_section *next;
    struct mk_str name;
    struct conf_key *first;
    struct mk_arena *arena; /* of everything here */
};

/*
 * Parses a file. Sections and keys are in the order of the file; they live as long as `arena`, `text` may go.
 * Returns 0, -ENOMEM, or -EINVAL with "LINE: what is wrong" in `error`.
 */
int conf_file_parse(struct mk_str text, struct mk_arena *arena, struct duda_config_section **ret_first,
                    struct mk_buf *error);

/* Return the first section, or key, of that name in any case of its letters; or NULL. */
struct duda_config_section *conf_file_find(struct duda_config_section *first, struct mk_str name);
const struct conf_key *conf_file_find_key(const struct duda_config_section *section, struct mk_str name);

/* Read a value. Return false if it is not a decimal number of a long, with or without a sign; or not on, off ... */
bool conf_file_get_number(struct mk_str value, long *ret);
bool conf_file_get_bool(struct mk_str value, bool *ret);

#endif
