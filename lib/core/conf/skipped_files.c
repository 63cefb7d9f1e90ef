// SPDX-License-Identifier: Apache-2.0
/*
 * The table of ends of names (conf/skipped_files.h).
 */
#include "conf/skipped_files.h"

#include <monkey/base/str.h>

static const struct {
    struct mk_str end;
    const char *what;
} rows[] = {
    {MK_STR("~"), "a backup of an editor"},
    {MK_STR(".bak"), "a backup"},
    {MK_STR(".orig"), "the original of a patched file"},
    {MK_STR(".rej"), "what a patch could not change"},
    {MK_STR(".swp"), "a temporary file of an editor"},
    {MK_STR(".swo"), "a temporary file of an editor"},
    {MK_STR(".dpkg-old"), "an old version that dpkg keeps"},
    {MK_STR(".dpkg-dist"), "a new version that dpkg has not installed"},
    {MK_STR(".dpkg-new"), "a new version that dpkg has not installed"},
    {MK_STR(".dpkg-bak"), "an old version that dpkg keeps"},
    {MK_STR(".dpkg-tmp"), "a temporary file of dpkg"},
    {MK_STR(".ucf-old"), "an old version that ucf keeps"},
    {MK_STR(".ucf-dist"), "a new version that ucf has not installed"},
    {MK_STR(".rpmnew"), "a new version that rpm has not installed"},
    {MK_STR(".rpmsave"), "an old version that rpm keeps"},
    {MK_STR(".rpmorig"), "an old version that rpm keeps"},
};

const char *mk__skipped_files_describe(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct mk_str name = mk_str_c(slash ? slash + 1 : path);
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (mk_str_iends(name, rows[i].end))
            return rows[i].what;
    return name.len > 1 && name.p[0] == '#' && mk_str_iends(name, MK_STR("#")) ? "a temporary file of an editor" : NULL;
}
