// SPDX-License-Identifier: Apache-2.0
/*
 * What a program passes to its server before the start (<monkey/embed.h>): text, a folder, plugins.
 */
#include "embed/embed.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum { ARENA_BYTES_MAX = 64 * 1024 * 1024 };

static void free_embedded(struct mk__embedded *e)
{
    mk_arena_release(&e->arena);
    mk_account_free(NULL, e, sizeof(*e));
}

static int make_embedded(struct mk_server *s)
{
    static const struct mk__embedded_ops ops = {.stopped = mk__embed_stopped, .free = free_embedded};
    struct mk__embedded *e = mk_account_zalloc(NULL, sizeof(*e));
    if (!e)
        return -ENOMEM;
    mk_arena_init(&e->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    e->timer_event.fd = -1;
    s->embedded = e;
    s->embedded_ops = &ops;
    s->source.program = &e->program;
    return 0;
}

int mk__embed_configure(struct mk_server *s, struct mk__embedded **ret)
{
    int err = mk__server_begin_call(s);
    if (err == 0 && s->state != MK__SERVER_STOPPED)
        err = mk__server_refuse(s, -EBUSY,
                                "the server runs: its configuration and its handlers are set before the start");
    if (err == 0 && !s->embedded)
        err = make_embedded(s);
    if (err < 0)
        return err;
    s->is_stale = true; /* the next start loads it */
    s->error = 0;
    *ret = s->embedded;
    return 0;
}

int mk__embed_fail(struct mk_server *s, int err, const char *format, ...)
{
    struct mk__embedded *e = s->embedded;
    assert(e && err < 0);
    va_list args;
    va_start(args, format);
    vsnprintf(e->error, sizeof(e->error), format, args);
    va_end(args);
    s->refusal = e->error;
    return err;
}

/* ── the text ── */

int mk_server_text(struct mk_server *s, const char *text)
{
    struct mk__embedded *e;
    int err = mk__embed_configure(s, &e);
    if (err == 0 && !text)
        err = mk__server_refuse(s, -EINVAL, "mk_server_text(): the text is NULL");
    if (err < 0)
        return err;
    struct mk_str copy = mk_arena_dup(&e->arena, mk_str_c(text));
    if (!copy.p)
        return -ENOMEM;
    e->program.text = copy;
    return 0;
}

int mk_server_folder(struct mk_server *s, const char *folder)
{
    struct mk__embedded *e;
    int err = mk__embed_configure(s, &e);
    if (err == 0 && !folder)
        err = mk__server_refuse(s, -EINVAL, "mk_server_folder(): the folder is NULL");
    if (err < 0)
        return err;
    const char *copy = mk_arena_dup(&e->arena, mk_str_c(folder)).p;
    if (!copy)
        return -ENOMEM;
    mk_server_one_shot(s, copy);
    s->source.root_origin = "mk_server_folder()";
    return 0;
}

int mk_server_in_caller(struct mk_server *s)
{
    struct mk__embedded *e;
    int err = mk__embed_configure(s, &e);
    if (err == 0)
        e->program.in_caller = true;
    return err;
}

/* ── plugins ── */

static bool has_plugin(const struct mk__program *program, const char *name)
{
    for (unsigned i = 0; i < program->n_plugins; i++)
        if (strcmp(program->plugins[i]->name, name) == 0)
            return true;
    return false;
}

int mk_server_add_plugin(struct mk_server *s, const struct mk_plugin *plugin)
{
    struct mk__embedded *e;
    int err = mk__embed_configure(s, &e);
    if (err == 0 && (!plugin || !plugin->name))
        err = mk__server_refuse(s, -EINVAL, "mk_server_add_plugin(): there is no plugin, or it has no name");
    if (err < 0)
        return err;
    if (plugin->abi != MK_PLUGIN_ABI || plugin->size != sizeof(*plugin))
        return mk__embed_fail(s, -ENOEXEC,
                              "mk_server_add_plugin(): \"%s\" was compiled with the headers of another version",
                              plugin->name);
    if (has_plugin(&e->program, plugin->name))
        return mk__embed_fail(s, -EEXIST, "mk_server_add_plugin(): \"%s\" is added already", plugin->name);
    if (e->program.n_plugins == MK__PROGRAM_PLUGINS_MAX)
        return mk__embed_fail(s, -ENOBUFS, "mk_server_add_plugin(): %d plugins are added already",
                              MK__PROGRAM_PLUGINS_MAX);
    e->program.plugins[e->program.n_plugins++] = plugin;
    return 0;
}
