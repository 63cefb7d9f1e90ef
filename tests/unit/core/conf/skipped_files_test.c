// SPDX-License-Identifier: Apache-2.0
/* Which names of sites/ are copies, and which are hosts. */
#include "testing.h"

#include "conf/skipped_files.h"

TEST(names)
{
    static const char *const skipped[] = {
        "default~",    "a.bak",
        "a.BAK",       "a.orig",
        "a.swp",       "sites/a.dpkg-old",
        "a.dpkg-dist", "a.example.org.rpmnew",
        "a.rpmsave",   "#a#",
        "sites/#a#",   "#a#b#",
        ".a.swp",      "a.old",
        "a.save",      "a.save.1",
        "a.bak1",      "a.BAK2",
        "a.old-3",     "a.~1~",
        "a.dpkg-new",  "a.dpkg-divert",
        "a.disabled",  "a.pacnew",
        "a.apk-new",   "a.copy",
        "a.conf.new",  "a.conf.off",
        "a.dist",      "a.sample",
    };
    static const char *const hosts[] = {
        "default",   "a.example", "bak", "a.bak/default", "#a",   "#",      "a#",       "a.bak.example", "~a", "a1",
        "192.0.2.1", "old",       "1",   "a.old.example", "bold", "site-2", "docs.new", "conf"};
    for (size_t i = 0; i < COUNT(skipped); i++)
        if (!mk__skipped_files_describe(skipped[i]))
            fail_msg("%s", skipped[i]);
    for (size_t i = 0; i < COUNT(hosts); i++)
        if (mk__skipped_files_describe(hosts[i]))
            fail_msg("%s", hosts[i]);
}
