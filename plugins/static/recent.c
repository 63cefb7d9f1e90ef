// SPDX-License-Identifier: Apache-2.0
/*
 * The file of recent.h.
 */
#include "recent.h"

#include "site.h"

#include <sys/uio.h>
#include <unistd.h>

static bool is_again(const struct recent *r, uint64_t turn, const struct place *at)
{
    return r->turn == turn && r->site == at->site && mk_str_eq(mk_str(r->path, r->path_len), at->path);
}

void recent_forget(struct recent *r)
{
    r->turn = 0;
}

static void note(struct recent *r, uint64_t turn, const struct place *at)
{
    recent_forget(r);
    if (at->path.len > sizeof(r->path))
        return;
    r->turn = turn;
    r->site = at->site;
    r->path_len = at->path.len;
    memcpy(r->path, at->path.p, at->path.len);
    r->found.kind = FOUND_NOTHING;
}

/* What has another size now, or waits for a disk, is left to its own request. */
static void keep(struct recent *r, const struct place *at, struct found *f)
{
    struct iovec to = {.iov_base = r->bytes, .iov_len = sizeof(r->bytes)};
    if (f->kind != FOUND_FILE || f->varies || f->bytes > sizeof(r->bytes) ||
        preadv2(f->fd, &to, 1, 0, f->in_memory ? 0 : RWF_NOWAIT) != (ssize_t)f->bytes)
        return;
    close(f->fd);
    f->fd = -1;
    f->content = mk_str(r->bytes, f->bytes);
    r->found = *f;
    if (f->name.p == at->path.p)
        r->found.name = MK_STR_NONE;
}

struct found recent_find(struct recent *r, uint64_t turn, const struct place *at, const struct mk_accept *accept)
{
    bool again = is_again(r, turn, at);
    if (again && r->found.kind == FOUND_FILE) {
        struct found f = r->found;
        if (!f.name.p)
            f.name = at->path;
        return f;
    }
    struct found f = site_find(at->site, at->path, accept, true);
    if (again)
        keep(r, at, &f);
    else
        note(r, turn, at);
    return f;
}
