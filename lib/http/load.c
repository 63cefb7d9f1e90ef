// SPDX-License-Identifier: Apache-2.0
/*
 * The loads of http/load.h. A load owns the file's descriptor while a thread works with it, so that an
 * exchange may end at any time.
 */
#include "http/load.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STEP_BYTES = 64 * 1024 };

struct mk__load {
    struct mk_job job;
    struct mk_request *req; /* NULL: the exchange is gone */
    struct mk_account *account;
    int fd;
    bool keep;
    uint64_t at;
    size_t want, got, size;
    char *data; /* `size` bytes */
};

ssize_t mk__load_cached(int fd, char *to, size_t size, uint64_t at, bool is_warm)
{
    struct iovec vec = {.iov_base = to, .iov_len = size};
    ssize_t n = is_warm ? -1 : preadv2(fd, &vec, 1, (off_t)at, RWF_NOWAIT);
    if (is_warm || (n < 0 && errno == EOPNOTSUPP))
        n = pread(fd, to, size, (off_t)at); /* tmpfs and the like: it is memory anyway */
    return n < 0 ? -errno : n;
}

static void read_bytes(struct mk_job *job)
{
    struct mk__load *l = MK_OWNER(job, struct mk__load, job);
    while (l->got < l->want) {
        size_t step = l->want - l->got < STEP_BYTES ? l->want - l->got : STEP_BYTES;
        ssize_t n = pread(l->fd, l->keep ? l->data + l->got : l->data, step, (off_t)(l->at + l->got));
        if (n <= 0)
            break;
        l->got += (size_t)n;
    }
}

static void free_load(struct mk__load *l)
{
    if (l->fd >= 0)
        close(l->fd);
    if (l->data)
        mk_account_free(l->account, l->data, l->size);
    mk_account_free(l->account, l, sizeof(*l));
}

/* Gives the exchange its descriptor back, which later parts may need, and the bytes that it wanted. */
static void hand_over(struct mk__load *l, struct mk_request *req)
{
    struct mk__part *part = req->first;
    part->warm_to = l->at + l->got;
    part->fd = l->fd;
    l->fd = -1;
    if (l->got < l->want)
        req->failed = true; /* the file has shrunk since its length was announced */
    if (!l->keep)
        return;
    part->kind = MK__PART_MEMORY;
    part->data = part->heap = l->data;
    part->heap_bytes = l->size;
    l->data = NULL;
}

static void finish_load(struct mk_job *job)
{
    struct mk__load *l = MK_OWNER(job, struct mk__load, job);
    struct mk_request *req = l->req;
    if (req) {
        req->loading = NULL;
        hand_over(l, req);
        req->carrier->wake(req);
    }
    free_load(l);
}

int mk__load_start(struct mk_request *req, size_t want, bool keep)
{
    struct mk_account *account = req->http->account;
    struct mk__part *part = req->first;
    struct mk__load *l = mk_account_alloc(account, sizeof(*l));
    if (!l)
        return -ENOMEM;
    *l = (struct mk__load){.req = req, .account = account, .fd = part->fd, .keep = keep, .at = part->at, .want = want};
    l->size = want < STEP_BYTES || keep ? want : STEP_BYTES;
    l->data = mk_account_alloc(account, l->size);
    l->job.work = read_bytes;
    l->job.done = finish_load;
    int err = l->data ? mk_job_submit(req->http->loop, &l->job) : -ENOMEM;
    if (err < 0) {
        l->fd = -1; /* still the part's */
        free_load(l);
        return err;
    }
    part->fd = -1;
    req->loading = l;
    return 0;
}

void mk__load_forget(struct mk__load *l)
{
    l->req = NULL;
}
