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
    {MK_STR(".backup"), "a backup"},
    {MK_STR(".old"), "an old version"},
    {MK_STR(".save"), "what an editor has saved"},
    {MK_STR(".tmp"), "a temporary file"},
    {MK_STR(".disabled"), "one that is not used"},
    {MK_STR(".orig"), "the original of a patched file"},
    {MK_STR(".rej"), "what a patch could not change"},
    {MK_STR(".swp"), "a temporary file of an editor"},
    {MK_STR(".swo"), "a temporary file of an editor"},
    {MK_STR(".dpkg-old"), "an old version that dpkg keeps"},
    {MK_STR(".dpkg-dist"), "a new version that dpkg has not installed"},
    {MK_STR(".dpkg-new"), "a new version that dpkg has not installed"},
    {MK_STR(".dpkg-bak"), "an old version that dpkg keeps"},
    {MK_STR(".dpkg-tmp"), "a temporary file of dpkg"},
    {MK_STR(".dpkg-backup"), "an old version that dpkg keeps"},
    {MK_STR(".dpkg-remove"), "an old version that dpkg removes"},
    {MK_STR(".dpkg-divert"), "a file that dpkg has moved away"},
    {MK_STR(".ucf-old"), "an old version that ucf keeps"},
    {MK_STR(".ucf-dist"), "a new version that ucf has not installed"},
    {MK_STR(".ucf-new"), "a new version that ucf has not installed"},
    {MK_STR(".rpmnew"), "a new version that rpm has not installed"},
    {MK_STR(".rpmsave"), "an old version that rpm keeps"},
    {MK_STR(".rpmorig"), "an old version that rpm keeps"},
    {MK_STR(".pacnew"), "a new version that pacman has not installed"},
    {MK_STR(".pacsave"), "an old version that pacman keeps"},
    {MK_STR(".pacorig"), "an old version that pacman keeps"},
    {MK_STR(".apk-new"), "a new version that apk has not installed"},
    {MK_STR(".copy"), "a copy"},
    {MK_STR(".dist"), "a version of a distribution"},
    {MK_STR(".sample"), "an example"},
    {MK_STR(".conf.new"), "a new version that is not installed"},
    {MK_STR(".conf.off"), "one that is not used"},
};

/* Returns the name without a number at its end, with which copies are counted: a.bak1, a.save.2, a.old-3. */
static MK_COLD struct mk_str strip_number(struct mk_str name)
{
    struct mk_str left = name;
    while (left.len && mk_is_digit(left.p[left.len - 1]))
        left.len--;
    if (left.len == name.len || !left.len)
        return name;
    left.len -= memchr(".-_", left.p[left.len - 1], 3) != NULL;
    return left;
}

const char *mk__skipped_files_describe(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct mk_str name = strip_number(mk_str_c(slash ? slash + 1 : path));
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (mk_str_iends(name, rows[i].end))
            return rows[i].what;
    return name.len > 1 && name.p[0] == '#' && mk_str_iends(name, MK_STR("#")) ? "a temporary file of an editor" : NULL;
}
