// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps the real path of a folder of programs (<monkey/kit/source.h>). A name that is elsewhere is the only sign that
 * the folder may have been replaced: so files of the folder cost no call, and those of the next one are found.
 * RESOLVE_CACHED of openat2(2) is of no use: it fails for a link whose time of access is due, again and again, and a
 * program would be sent meanwhile.
 */
#include <monkey/base/time.h>
#include <monkey/kit/source.h>

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

enum { CHECK_MS = 100 };

void mk_source_folder_init(struct mk_source_folder *folder, int (*open)(struct mk_source_folder *folder))
{
    assert(open);
    folder->open = open;
    folder->checked_ms = 0;
    folder->names[0].len = folder->names[1].len = 0;
    pthread_mutex_init(&folder->lock, NULL);
}

void mk_source_folder_release(struct mk_source_folder *folder)
{
    pthread_mutex_destroy(&folder->lock);
}

static struct mk_str strip_name(const struct mk_source_folder_name *name, struct mk_str file)
{
    struct mk_str folder = mk_str(name->text, name->len);
    if (!folder.len || !mk_source_is_below(file, folder))
        return MK_STR_NONE;
    return mk_str_after(file, mk_str_strip_end(folder, "/").len);
}

/* Looks at the names that are known. Sets whether the folder may be opened again, which the caller does then. */
static struct mk_str strip_known(struct mk_source_folder *folder, struct mk_str file, bool *ret_is_due)
{
    uint64_t now = mk_time_monotonic_ms() + 1; /* 0: never */
    pthread_mutex_lock(&folder->lock);
    struct mk_str rest = strip_name(&folder->names[0], file);
    if (!rest.p)
        rest = strip_name(&folder->names[1], file);
    *ret_is_due = !rest.p && now - folder->checked_ms >= CHECK_MS;
    if (*ret_is_due)
        folder->checked_ms = now;
    pthread_mutex_unlock(&folder->lock);
    return rest;
}

static void add_name(struct mk_source_folder *folder, struct mk_str name)
{
    struct mk_source_folder_name *names = folder->names;
    pthread_mutex_lock(&folder->lock);
    if (!mk_str_eq(name, mk_str(names[0].text, names[0].len))) {
        memcpy(names[1].text, names[0].text, names[0].len);
        names[1].len = names[0].len;
        memcpy(names[0].text, name.p, name.len);
        names[0].len = name.len;
    }
    pthread_mutex_unlock(&folder->lock);
}

/* Learns the name that the folder has now, if it can be opened. */
static void renew_name(struct mk_source_folder *folder)
{
    MK_UNINITIALIZED char link[32], name[MK_SOURCE_NAME_BYTES];
    int fd = folder->open(folder);
    if (fd < 0)
        return;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof(name));
    close(fd);
    if (n > 0 && n < (ssize_t)sizeof(name))
        add_name(folder, mk_str(name, (size_t)n));
}

struct mk_str mk_source_folder_strip(struct mk_source_folder *folder, struct mk_str file)
{
    bool is_due;
    struct mk_str rest = strip_known(folder, file, &is_due);
    if (!is_due)
        return rest;
    renew_name(folder);
    return strip_known(folder, file, &is_due);
}

/* Opens the document root. The plugin that serves its files has it open already. */
static int open_document_root(struct mk_source_folder *folder)
{
    return mk_host_open_path(MK_CONTAINER_OF(folder, struct mk_source_root, folder)->host, MK_STR("/"), MK_OPEN_FOLDER);
}

void mk_source_root_init(struct mk_source_root *root, const struct mk_host *host)
{
    root->host = host;
    mk_source_folder_init(&root->folder, open_document_root);
}
