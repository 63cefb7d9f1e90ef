// SPDX-License-Identifier: Apache-2.0
/*
 * The loads of http/file_read.h. A load owns the file's descriptor while a thread works with it, so that an
 * exchange may end at any time.
 */
#include "http/file_read.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STEP_BYTES = 64 * 1024 };

struct mk__file_read_job {
    struct mk_job job;
    struct mk_request *req; /* NULL: the exchange is gone */
    struct mk_account *account;
    int fd;
    bool keep;
    uint64_t at;
    size_t want, got, size;
    char *data; /* `size` bytes */
};

ssize_t mk__file_read_cached(int fd, char *to, size_t size, uint64_t at, bool is_cached)
{
    struct iovec vec = {.iov_base = to, .iov_len = size};
    ssize_t n = is_cached ? -1 : preadv2(fd, &vec, 1, (off_t)at, RWF_NOWAIT);
    if (is_cached || (n < 0 && errno == EOPNOTSUPP))
        n = pread(fd, to, size, (off_t)at); /* tmpfs and the like: it is memory anyway */
    return n < 0 ? -errno : n;
}

static void read_in_thread(struct mk_job *job)
{
    struct mk__file_read_job *l = MK_CONTAINER_OF(job, struct mk__file_read_job, job);
    while (l->got < l->want) {
        size_t step = l->want - l->got < STEP_BYTES ? l->want - l->got : STEP_BYTES;
        ssize_t n = pread(l->fd, l->keep ? l->data + l->got : l->data, step, (off_t)(l->at + l->got));
        if (n <= 0)
            break;
        l->got += (size_t)n;
    }
}

static void free_file_read(struct mk__file_read_job *l)
{
    if (l->fd >= 0)
        close(l->fd);
    if (l->data)
        mk_account_free(l->account, l->data, l->size);
    mk_account_free(l->account, l, sizeof(*l));
}

/* Gives the exchange its descriptor back, which later parts may need, and the bytes that it wanted. */
static void give_to_part(struct mk__file_read_job *l, struct mk_request *req)
{
    struct mk__part *part = req->first;
    part->cached_until = l->at + l->got;
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

static void finish_file_read(struct mk_job *job)
{
    struct mk__file_read_job *l = MK_CONTAINER_OF(job, struct mk__file_read_job, job);
    struct mk_request *req = l->req;
    if (req) {
        req->file_read = NULL;
        give_to_part(l, req);
        req->protocol->wake(req);
    }
    free_file_read(l);
}

int mk__file_read_start(struct mk_request *req, size_t want, bool keep)
{
    struct mk_account *account = req->http->account;
    struct mk__part *part = req->first;
    struct mk__file_read_job *l = mk_account_alloc(account, sizeof(*l));
    if (!l)
        return -ENOMEM;
    *l = (struct mk__file_read_job){
        .req = req, .account = account, .fd = part->fd, .keep = keep, .at = part->at, .want = want};
    l->size = want < STEP_BYTES || keep ? want : STEP_BYTES;
    l->data = mk_account_alloc(account, l->size);
    l->job.work = read_in_thread;
    l->job.done = finish_file_read;
    int err = l->data ? mk_job_submit(req->http->loop, &l->job) : -ENOMEM;
    if (err < 0) {
        l->fd = -1; /* still the part's */
        free_file_read(l);
        return err;
    }
    part->fd = -1;
    req->file_read = l;
    return 0;
}

void mk__file_read_cancel(struct mk__file_read_job *l)
{
    l->req = NULL;
}
