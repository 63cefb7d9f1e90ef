// SPDX-License-Identifier: Apache-2.0
/*
 * The read jobs of http/file_read.h. A job owns the descriptor while a disk thread works with it, so that the exchange
 * may end at any time.
 */
#include "http/file_read.h"

#include <assert.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STEP_BYTES = 64 * 1024, READ_AHEAD_BYTES = 128 * 1024 /* of the kernel, by default */ };

struct mk__file_read_job {
    struct mk_job job;
    struct mk_request *req; /* NULL: the exchange has ended */
    struct mk_account *account;
    const struct mk_owner *owner; /* of `owned`, which has the descriptor; NULL: the job has it */
    void *owned;
    const struct mk__http_app *app;
    void *worker; /* held with `owner`, whose functions and data may be those of a plugin */
    int fd;
    bool keep;
    uint64_t at;
    size_t want, got, size;
    char *data; /* `size` bytes */
};

ssize_t mk__file_read_cached_pieces(int fd, const struct iovec *to, int pieces, uint64_t at, bool is_cached)
{
    ssize_t n = is_cached ? -1 : preadv2(fd, to, pieces, (off_t)at, RWF_NOWAIT);
    if (is_cached || (n < 0 && errno == EOPNOTSUPP))
        n = preadv(fd, to, pieces, (off_t)at); /* tmpfs and the like, which are in memory anyway */
    return n < 0 ? -errno : n;
}

ssize_t mk__file_read_cached(int fd, char *to, size_t size, uint64_t at, bool is_cached)
{
    struct iovec piece = {.iov_base = to, .iov_len = size};
    return mk__file_read_cached_pieces(fd, &piece, 1, at, is_cached);
}

ssize_t mk_file_read_cached(int fd, char *to, size_t size, uint64_t at)
{
    return mk__file_read_cached(fd, to, size, at, false);
}

/* Reads the last byte of each window that the kernel reads ahead. */
int mk_file_check_cached(int fd, uint64_t from, uint64_t to)
{
    while (from < to) {
        char byte;
        from = to - from > READ_AHEAD_BYTES ? from + READ_AHEAD_BYTES : to;
        ssize_t n = mk__file_read_cached(fd, &byte, 1, from - 1, false);
        if (n <= 0)
            return n < 0 ? (int)n : -EIO;
    }
    return 0;
}

static void read_in_thread(struct mk_job *job)
{
    struct mk__file_read_job *r = MK_CONTAINER_OF(job, struct mk__file_read_job, job);
    while (r->got < r->want) {
        size_t step = r->want - r->got < STEP_BYTES ? r->want - r->got : STEP_BYTES;
        ssize_t n = pread(r->fd, r->keep ? r->data + r->got : r->data, step, (off_t)(r->at + r->got));
        if (n <= 0)
            break;
        r->got += (size_t)n;
    }
}

static void free_file_read(struct mk__file_read_job *r)
{
    if (r->owner) {
        r->owner->put(r->owned);
        r->app->on_free(r->worker); /* the last reference to a generation may end the plugin */
    } else if (r->fd >= 0) {
        close(r->fd);
    }
    if (r->data)
        mk_account_free(r->account, r->data, r->size);
    mk_account_free(r->account, r, sizeof(*r));
}

/* Gives the part its descriptor back, which later parts may need, and with `keep` the bytes. */
static void give_to_part(struct mk__file_read_job *r, struct mk_request *req)
{
    struct mk__part *part = req->first;
    assert(part && part->kind == MK__PART_FILE && part->fd < 0 && part->at == r->at);
    part->cached_until = r->at + r->got;
    part->fd = r->fd;
    r->fd = -1;
    if (r->got < r->want)
        req->response_state = MK__RESPONSE_FAILED; /* the file has shrunk since its length was announced */
    if (!r->keep)
        return;
    part->kind = MK__PART_MEMORY;
    part->data = part->heap = r->data;
    part->heap_bytes = r->size;
    r->data = NULL;
}

static void finish_file_read(struct mk_job *job)
{
    struct mk__file_read_job *r = MK_CONTAINER_OF(job, struct mk__file_read_job, job);
    struct mk_request *req = r->req;
    if (req) {
        req->file_read = NULL;
        give_to_part(r, req);
        req->ops->wake(req);
    }
    free_file_read(r);
}

/*
 * A borrowed descriptor is held by its owner, even if the exchange ends before the job; and so is the generation, whose
 * end could stop and unload the plugin that is the owner.
 */
static void hold_owner(struct mk__file_read_job *r)
{
    const struct mk_request *req = r->req;
    if (!req->first->borrowed)
        return;
    r->owner = req->owner;
    r->owned = req->owned;
    r->owner->get(r->owned);
    r->app = req->http->app;
    r->worker = req->worker;
    r->app->hold_worker(r->worker);
}

int mk__file_read_start(struct mk_request *req, size_t want, bool keep)
{
    struct mk_account *account = req->http->account;
    struct mk__part *part = req->first;
    assert(!req->file_read && part->kind == MK__PART_FILE && part->fd >= 0);
    assert(want > 0 && (keep ? want == part->left : want <= part->left));
    struct mk__file_read_job *r = mk_account_alloc(account, sizeof(*r));
    if (!r)
        return -ENOMEM;
    *r = (struct mk__file_read_job){
        .req = req, .account = account, .fd = part->fd, .keep = keep, .at = part->at, .want = want};
    r->size = want < STEP_BYTES || keep ? want : STEP_BYTES;
    r->data = mk_account_alloc(account, r->size);
    r->job.work = read_in_thread;
    r->job.done = finish_file_read;
    hold_owner(r);
    int err = r->data ? mk_job_submit(req->http->loop, &r->job) : -ENOMEM;
    if (err < 0) {
        r->fd = -1; /* the part still has it */
        free_file_read(r);
        return err;
    }
    part->fd = -1;
    req->file_read = r;
    return 0;
}

void mk__file_read_cancel(struct mk__file_read_job *r)
{
    assert(r->req && r->req->file_read == r);
    r->req = NULL;
}
