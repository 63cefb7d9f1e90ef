// SPDX-License-Identifier: Apache-2.0
/*
 * The directives about bodies that wait: [SPOOL], and two values of [PROXY].
 */
#include "conf.h"

#include <monkey/spool.h>

#include <errno.h>

const struct mk_conf_key spool_keys[] = {
    MK_CONF_KEY_PATH(struct spool_conf, folder, "Folder", NULL,
                     "Where files are made, which have no names there. The user of the server must be able to write "
                     "to it, and no other should. If it is not set: `/var/tmp`."),
    MK_CONF_KEY_SIZE(struct spool_conf, memory_bytes, "MaxMemory", "128M",
                     "What all bodies together may have in memory. Each one reserves up to 128K.", .min = 0,
                     .max = INT64_C(1) << 40),
    MK_CONF_KEY_SIZE(struct spool_conf, disk_bytes, "MaxDisk", "4G", "What they may have in files; 0: no files.",
                     .min = 0, .max = INT64_C(1) << 50),
    MK_CONF_KEY_INT(struct spool_conf, files, "MaxFiles", "1024",
                    "How many files they may have. Each one is a descriptor.", .min = 0, .max = 1 << 20),
    {0},
};

static int fail(struct mk_buf *error, const char *sentence)
{
    mk_buf_addf(error, "%s", sentence);
    return -EINVAL;
}

/* Parses 100, 100B, 256K, 64M or 1G. Returns false if it is no size. */
static bool parse_size(struct mk_str word, uint64_t *ret)
{
    static const struct {
        char suffix;
        unsigned shift;
    } units[] = {{'B', 0}, {'K', 10}, {'M', 20}, {'G', 30}};
    unsigned shift = 0, with_suffix = 0;
    for (size_t i = 0; i < MK_COUNT_OF(units) && word.len; i++)
        if (word.p[word.len - 1] == units[i].suffix) {
            shift = units[i].shift;
            with_suffix = 1;
        }
    if (!mk_str_u64(mk_str(word.p, word.len - with_suffix), UINT64_C(1) << (50 - shift), ret))
        return false;
    *ret <<= shift;
    return true;
}

static bool is_off(const struct mk_conf_value *value)
{
    return value->n == 1 && mk_str_ieq(value->text, MK_STR("Off"));
}

int spool_parse_buffer(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    enum { MEMORY_MAX = 64 << 20 };
    struct proxy_buffer *buffer = field;
    struct proxy_buffer sizes = {0};
    (void)arena;
    if (is_off(value))
        return 0;
    if (value->n < 1 || value->n > 2 || !parse_size(value->words[0], &sizes.memory_bytes) ||
        (value->n == 2 && !parse_size(value->words[1], &sizes.file_bytes)))
        return fail(error, "it takes a size in memory and one in a file, such as `256K 64M`, or Off");
    if (sizes.memory_bytes < MK_SPOOL_MEMORY_MIN || sizes.memory_bytes > MEMORY_MAX)
        return fail(error, "the size in memory is from 128K to 64M");
    *buffer = sizes;
    return 0;
}

int spool_parse_request(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    uint64_t *bytes = field;
    (void)arena;
    if (is_off(value))
        return 0;
    if (value->n == 1 && mk_str_ieq(value->text, MK_STR("On"))) {
        *bytes = UINT64_MAX;
        return 0;
    }
    if (value->n != 1 || !parse_size(value->text, bytes) || !*bytes)
        return fail(error, "it takes On, Off, or the length of the longest body, such as 64M");
    return 0;
}
