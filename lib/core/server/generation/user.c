// SPDX-License-Identifier: Apache-2.0
/*
 * User and Group of [SERVER]: looks them up while the configuration is read. The program (bin/monkey) changes to them
 * when listeners, log and pid file are open.
 */
#include "server/generation/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>

static int copy_name(const struct mk_conf_value *value, struct mk__user *ret, struct mk_arena *arena,
                     struct mk_buf *error)
{
    if (value->n != 1) {
        mk_buf_addf(error, "expected one name");
        return -EINVAL;
    }
    *ret = (struct mk__user){.name = mk_arena_dup(arena, value->words[0])};
    return ret->name.p ? 0 : -ENOMEM;
}

int mk__user_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk__user *user = field;
    int err = copy_name(value, user, arena, error);
    if (err < 0)
        return err;
    const struct passwd *found = getpwnam(user->name.p);
    if (!found) {
        mk_buf_addf(error, "there is no user \"%s\"%s", user->name.p,
                    strchr(user->name.p, ':') ? ": the group has its own line, Group" : "");
        return -EINVAL;
    }
    user->id = found->pw_uid;
    user->group = found->pw_gid;
    return 0;
}

int mk__user_parse_group(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk__user *group = field;
    int err = copy_name(value, group, arena, error);
    if (err < 0)
        return err;
    const struct group *found = getgrnam(group->name.p);
    if (!found) {
        mk_buf_addf(error, "there is no group \"%s\"", group->name.p);
        return -EINVAL;
    }
    group->id = found->gr_gid;
    return 0;
}
