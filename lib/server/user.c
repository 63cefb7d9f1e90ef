// SPDX-License-Identifier: Apache-2.0
/*
 * User and Group of [SERVER]: looks them up while the configuration is read. The program (bin/monkey) changes to them
 * when listeners, log and pid file are open.
 */
#include "server/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "server/server.h"

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
        mk_buf_addf(error, "there is no user \"%s\"", user->name.p);
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

void mk__user_check(const struct mk_conf_check *check, const struct mk__settings *s)
{
    if (s->group.name.p && !s->user.name.p)
        mk_conf_error(check, offsetof(struct mk__settings, group), "Group needs User beside it");
    else if (s->user.name.p && geteuid() != 0 && s->user.id != geteuid())
        mk_conf_error(check, offsetof(struct mk__settings, user),
                      "only root can become %s, and this process runs as user %u: start it as root, or as %s",
                      s->user.name.p, geteuid(), s->user.name.p);
    else if (s->group.name.p && geteuid() != 0 && s->group.id != getegid())
        mk_conf_error(check, offsetof(struct mk__settings, group),
                      "only root can change to the group %s, and this process has group %u", s->group.name.p,
                      getegid());
}

void mk_server_process(const struct mk_server *server, struct mk_server_process *ret)
{
    const struct mk__settings *s = server->current ? server->current->settings : NULL;
    *ret = (struct mk_server_process){0};
    if (!s)
        return;
    ret->supervisor = s->supervisor;
    ret->user = s->user.name.p;
    ret->uid = s->user.id;
    ret->gid = s->group.name.p ? s->group.id : s->user.group;
}
