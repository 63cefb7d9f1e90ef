// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a listing:
 *
 *     read (disk thread) ─► check (worker, some entries in each turn) ─► respond ─► generate ◄─┐
 *                                                                           └─► read, check ───┘ (if it does not fit)
 *
 * The exchange may end at any time: its clean-up cancels the rest. While a disk thread works, only that thread touches
 * the folder and the entries, and the struct is freed afterwards.
 */
#include "listing.h"
#include "send.h"

#include <monkey/base/accept.h>
#include <monkey/base/hash.h>
#include <monkey/kit/open_file.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

/* Compares weakly (RFC 9110 section 8.8.3.2). `tag.p` NULL: looks for `*` only. */
static bool has_tag(struct mk_str list, struct mk_str tag)
{
    struct mk_str one;
    while (mk_str_next(&list, &one)) {
        if (mk_str_eq(one, MK_STR("*")))
            return true;
        if (mk_str_starts(one, MK_STR("W/")))
            one = mk_str_after(one, 2);
        if (tag.p && mk_str_eq(one, tag))
            return true;
    }
    return false;
}

bool conditions_fail(struct mk_request *req)
{
    struct mk_str list = mk_request_header_by_name(req, MK_STR("If-Match"));
    return list.p && !has_tag(list, MK_STR_NONE);
}

enum { JOB_NAMES_MAX = 1024 };

enum text_part { TEXT_BEGIN, TEXT_ENTRIES, TEXT_COMPLETE };

struct send {
    struct mk_job job;
    struct mk_task check_task;
    struct mk_request *req; /* NULL: the exchange is over */
    struct mk_account *account;
    struct mk_worker *worker; /* held */
    bool working;             /* a disk thread has this struct */
    bool responded;           /* the response has begun */
    _Atomic bool cancelled;

    int err; /* of the disk thread */
    uint64_t memory_max;
    struct folder folder;
    struct listing listing;
    uint32_t checked, kept; /* of its entries */
    struct listing_view view;
    const struct listing_format *format;
    char *readme; /* LISTING_README_BYTES, or NULL */
    ssize_t readme_bytes;
    uint64_t hash;

    struct mk_buf text; /* to be sent next, from `text_at` on */
    size_t text_at;
    enum text_part part;
    uint32_t next, written; /* entry of this batch; of all */
    size_t size;            /* of this struct */
    char path[];            /* of the folder: that of the request may be gone while a disk thread works */
};

static void free_send(struct send *s)
{
    assert(!s->working && !s->req);
    mk_task_cancel(&s->check_task);
    if (s->folder.dir)
        folder_close(&s->folder);
    folder_release(&s->listing);
    mk_buf_release(&s->text);
    mk_account_free(NULL, s->readme, LISTING_README_BYTES);
    mk_worker_put(s->worker);
    mk_account_free(s->account, s, s->size);
}

/* The exchange has ended. */
static void end_send(void *ctx)
{
    struct send *s = ctx;
    s->req = NULL;
    s->cancelled = true;
    if (!s->working)
        free_send(s);
}

/* ── responses ── */

static bool is_missing(int err)
{
    return err == -ENOENT || err == -ENOTDIR || err == -ELOOP || err == -EXDEV;
}

static void send_error(struct mk_request *req, int err)
{
    if (is_missing(err))
        mk_request_decline(req);
    else
        mk_response_error(req, mk_open_file_get_status(err));
}

/* A listing that has changed gets another tag. */
static void add_hash(struct send *s, const void *data, size_t len)
{
    s->hash = mk_hash_add(s->hash, data, len);
}

static void hash_view(struct send *s)
{
    const struct listing_view *v = &s->view;
    unsigned char choice[3] = {(unsigned char)v->sort, v->descending, s->format == &json_format};
    s->hash = MK_HASH_EMPTY;
    add_hash(s, choice, sizeof(choice));
    add_hash(s, &v->host->loaded_ns, sizeof(v->host->loaded_ns));
    add_hash(s, &v->rule, sizeof(v->rule));
}

static void hash_entry(struct send *s, const struct listing_entry *e)
{
    add_hash(s, &e->bytes, sizeof(e->bytes));
    add_hash(s, &e->mtime_seconds, sizeof(e->mtime_seconds));
    add_hash(s, &e->is_dir, sizeof(e->is_dir));
    add_hash(s, e->name, e->name_len + 1u);
}

/* Adds ETag. Returns true if the client has this listing already. */
static bool add_tag(struct send *s)
{
    char tag[32];
    int n = snprintf(tag, sizeof(tag), "W/\"%016llx\"", (unsigned long long)s->hash);
    if (!s->view.is_complete || mk_response_header(s->req, MK_STR("ETag"), mk_str(tag, (size_t)n)) < 0)
        return false;
    struct mk_str none_match = mk_request_header_by_name(s->req, MK_STR("If-None-Match"));
    return has_tag(none_match, mk_str(tag + 2, (size_t)n - 2));
}

static ssize_t generate_text(struct mk_request *req, char *to, size_t size, void *ctx);

static void respond_listing(struct send *s)
{
    struct mk_request *req = s->req;
    s->responded = true;
    if (conditions_fail(req)) {
        mk_response_error(req, 412);
        return;
    }
    listing_counters_add(LISTING_COUNT_PAGES, req, 1);
    int err = mk_response_header_ref(req, MK_STR("Content-Type"), s->format->type);
    if (err == 0)
        err = mk_response_header_ref(req, MK_STR("Vary"), MK_STR("Accept"));
    if (err == 0) /* ETag tells whether it has changed; rules may give other clients other entries */
        err = mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-cache"));
    if (err == 0 && s->format->add_headers)
        err = s->format->add_headers(req, &s->view);
    if (err < 0) {
        mk_response_error(req, 503);
        return;
    }
    if (add_tag(s))
        mk_response_set_status(req, 304);
    else if (mk_response_generate(req, generate_text, s) < 0)
        mk_response_abort(req);
    mk_response_end(req);
}

/* ── what the client may have ── */

static bool is_allowed(struct send *s, struct mk_str name, bool is_dir)
{
    struct mk_str path = folder_entry_path(&s->folder, name, is_dir);
    return path.p && mk_request_allows_path(s->req, path) > 0;
}

static void keep_entry(struct send *s, struct listing_entry *e)
{
    s->listing.entries[s->kept++] = e;
    s->view.folders += e->is_dir;
    s->view.files += !e->is_dir;
    s->view.bytes += e->bytes;
    hash_entry(s, e);
}

static void keep_readme(struct send *s)
{
    if (!s->view.readme_name.p || s->readme_bytes < 0 || !is_allowed(s, s->view.readme_name, false)) {
        s->view.readme_name = MK_STR_NONE;
        return;
    }
    s->view.readme = mk_str(s->readme, (size_t)s->readme_bytes);
    add_hash(s, s->view.readme.p, s->view.readme.len);
}

/* All entries of the batch have been checked. */
static void finish_checks(struct send *s)
{
    for (uint32_t i = s->kept; i < s->listing.n; i++)
        s->listing.entries[i] = NULL;
    if (s->responded) {
        mk_response_wake(s->req);
        return;
    }
    keep_readme(s);
    respond_listing(s);
}

static void check_entries(struct mk_task *task)
{
    struct send *s = MK_CONTAINER_OF(task, struct send, check_task);
    assert(s->req && !s->working);
    struct turn turn = turn_begin(mk_request_loop(s->req));
    for (; s->checked < s->listing.n && turn_allows_entry(&turn); s->checked++) {
        struct listing_entry *e = s->listing.entries[s->checked];
        if (is_allowed(s, mk_str(e->name, e->name_len), e->is_dir))
            keep_entry(s, e);
    }
    if (s->checked < s->listing.n)
        mk_task_schedule(mk_request_loop(s->req), task);
    else
        finish_checks(s);
}

/* ── reading ── */

static void find_readme(struct send *s)
{
    const struct mk_conf_list *names = &s->view.rule->readme;
    s->readme = names->n && s->view.is_complete ? mk_account_alloc(NULL, LISTING_README_BYTES) : NULL;
    s->readme_bytes = -ENOENT;
    for (uint32_t i = 0; s->readme && i < names->n && s->readme_bytes < 0; i++) {
        s->view.readme_name = names->items[i];
        s->readme_bytes = folder_read_file(&s->folder, names->items[i], s->readme);
    }
}

/* The first batch has been read. */
static void finish_first_batch(struct send *s)
{
    s->view.is_complete = !s->listing.more;
    if (s->view.is_complete)
        order_sort(&s->listing, s->view.sort, s->view.descending);
    if (s->format == &page_format)
        find_readme(s);
}

static void read_batch(struct mk_job *job)
{
    struct send *s = MK_CONTAINER_OF(job, struct send, job);
    unsigned names = JOB_NAMES_MAX;
    s->err = 0;
    if (!s->folder.dir)
        s->err = folder_open(&s->folder, s->view.host->host, s->view.rule, s->view.path, &s->cancelled);
    else if (!s->folder.reading)
        folder_release(&s->listing);
    if (s->err == 0)
        s->err = folder_read(&s->folder, &s->listing, s->responded ? FOLDER_BATCH_BYTES : s->view.rule->bytes_max,
                             s->memory_max, &names);
    if (s->err == 0 && !s->responded)
        finish_first_batch(s);
}

static int start_reading(struct send *s);

/* In the worker's thread again. */
static void finish_reading(struct mk_job *job)
{
    struct send *s = MK_CONTAINER_OF(job, struct send, job);
    s->working = false;
    s->checked = s->kept = s->next = 0;
    if (s->req && s->err == MK_AGAIN) {
        int err = start_reading(s);
        if (err == 0)
            return;
        s->err = err;
    }
    if (!s->req)
        free_send(s);
    else if (s->err < 0 && s->responded)
        mk_response_abort(s->req);
    else if (s->err < 0)
        send_error(s->req, s->err);
    else
        check_entries(&s->check_task);
}

/* From the submission on the struct is the disk thread's. */
static int start_reading(struct send *s)
{
    s->job.work = read_batch;
    s->job.done = finish_reading;
    s->working = true;
    int err = mk_job_submit(mk_request_loop(s->req), &s->job);
    s->working = err == 0;
    return err;
}

/* ── the body ── */

/* Returns the next entry of the batch that is sent; NULL: the batch ends. */
static const struct listing_entry *next_entry(struct send *s)
{
    return s->next < s->kept ? s->listing.entries[s->next++] : NULL;
}

/* Writes the next text into the buffer. Returns 0 or -EAGAIN (a disk thread reads), or another -errno. */
static int write_text(struct send *s)
{
    const struct listing_entry *e = NULL;
    mk_buf_drop(&s->text, s->text.len);
    s->text_at = 0;
    if (s->part == TEXT_BEGIN) {
        s->format->begin(&s->text, &s->view);
        s->part = TEXT_ENTRIES;
    } else if (s->part == TEXT_ENTRIES && (e = next_entry(s))) {
        s->format->entry(&s->text, &s->view, e, s->written++);
    } else if (s->part == TEXT_ENTRIES && s->listing.more) {
        int err = start_reading(s);
        return err < 0 ? err : -EAGAIN;
    } else {
        s->format->end(&s->text, &s->view);
        s->part = TEXT_COMPLETE;
    }
    return s->text.err;
}

static ssize_t generate_text(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct send *s = ctx;
    size_t n = 0;
    int err = 0;
    (void)req;
    assert(s->req == req);
    if (s->working || s->checked < s->listing.n)
        return -EAGAIN;
    while (n < size && err == 0) {
        size_t left = s->text.len - s->text_at, part = left < size - n ? left : size - n;
        if (part) {
            memcpy(to + n, s->text.data + s->text_at, part);
            s->text_at += part;
            n += part;
        } else if (s->part == TEXT_COMPLETE) {
            break;
        } else {
            err = write_text(s);
        }
    }
    return n ? (ssize_t)n : err;
}

/* Tells whether the client prefers JSON to the page. */
static bool wants_json(struct mk_request *req)
{
    static const struct mk_accept_offer offers[] = {{.type = MK_STR("text/html")},
                                                    {.type = MK_STR("application/json")}};
    return mk_accept_choose(mk_request_header_by_name(req, MK_STR("Accept")), offers, 2, 0) == 1;
}

int send_listing(struct mk_request *req, const struct listing_host *host, const struct listing_rule *rule,
                 const struct query *query)
{
    bool json = wants_json(req);
    struct mk_str path = mk_request_path(req);
    size_t size = sizeof(struct send) + path.len + 1;
    struct send *s = mk_account_alloc(mk_request_account(req), size);
    if (!s)
        return -ENOMEM;
    *s = (struct send){.req = req,
                       .size = size,
                       .account = mk_request_account(req),
                       .memory_max = rules_limits(host->host)->memory,
                       .format = json ? &json_format : &page_format};
    mk_buf_init(&s->text, LISTING_TEXT_BYTES);
    mk_task_init(&s->check_task, check_entries);
    memcpy(s->path, path.p, path.len + 1);
    s->view = (struct listing_view){.req = req,
                                    .path = mk_str(s->path, path.len),
                                    .sort = (enum listing_sort)(query->sort < 0 ? rule->sort : query->sort),
                                    .descending = query->order < 0 ? rule->order : query->order,
                                    .rule = rule,
                                    .host = host};
    int err = mk_arena_defer(mk_request_arena(req), end_send, s);
    if (err < 0) {
        mk_account_free(s->account, s, s->size);
        return err;
    }
    s->worker = mk_worker_get(mk_request_worker(req));
    hash_view(s);
    return start_reading(s);
}
