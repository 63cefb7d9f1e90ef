// SPDX-License-Identifier: Apache-2.0
#include "mandril.h"

#include <errno.h>

struct network_file {
    struct mk_str path;
    struct mk_watched *watched;
};

static int load_networks(void *ctx, void **ret_value, struct mk_buf *message)
{
    const struct network_file *file = ctx;
    struct network_set *set;
    int err = networks_load(file->path.p, &set, message);
    *ret_value = set;
    return err;
}

static void free_networks(void *value)
{
    networks_free(value);
}

static const struct mk_watched_type network_file_type = {.load = load_networks, .free = free_networks};

static int find_file(const struct files *files, struct mk_str path)
{
    for (uint32_t i = 0; i < files->n; i++)
        if (mk_str_eq(files->items[i]->path, path))
            return (int)i;
    return -ENOENT;
}

static int open_file(struct network_file *file, struct mk_buf *message)
{
    struct mk_buf name;
    mk_buf_init(&name, 8192);
    mk_buf_addf(&name, "access: the networks of %s", file->path.p);
    struct mk_watched_source source = {&network_file_type, file, mk_buf_str(&name), &file->path, 1};
    int err = name.err ? name.err : mk_watched_open(&source, message, &file->watched);
    mk_buf_release(&name);
    return err;
}

int files_open(struct files *files, struct mk_str path, struct mk_buf *message)
{
    int i = find_file(files, path);
    if (i >= 0)
        return i;
    struct network_file *file = mk_arena_zalloc(files->arena, sizeof(*file));
    struct network_file **items = mk_arena_grow(files->arena, files->items, files->n, sizeof(struct network_file *));
    if (!file || !items)
        return -ENOMEM;
    files->items = items;
    file->path = mk_arena_dup(files->arena, path);
    int err = file->path.p ? open_file(file, message) : -ENOMEM;
    if (err < 0)
        return err;
    items[files->n] = file;
    return (int)files->n++;
}

void files_close(struct files *files)
{
    for (uint32_t i = 0; i < files->n; i++)
        mk_watched_close(files->items[i]->watched);
    files->n = 0;
}

static size_t count_bytes(uint32_t n)
{
    return sizeof(struct files_refs) + n * sizeof(struct mk_watched_ref);
}

struct files_refs *files_refs_new(const struct files *files)
{
    struct files_refs *refs = mk_account_alloc(NULL, count_bytes(files->n));
    if (!refs)
        return NULL;
    refs->n = files->n;
    for (uint32_t i = 0; i < files->n; i++)
        mk_watched_ref_init(&refs->refs[i], files->items[i]->watched);
    return refs;
}

void files_refs_free(struct files_refs *refs)
{
    if (!refs)
        return;
    for (uint32_t i = 0; i < refs->n; i++)
        mk_watched_ref_release(&refs->refs[i]);
    mk_account_free(NULL, refs, count_bytes(refs->n));
}
