// SPDX-License-Identifier: Apache-2.0
/*
 * A file as the response: validators, preconditions, ranges. The handler finds and opens the file, the protocol sends
 * its bytes.
 */
#include "http/block.h"
#include "http/message/date.h"
#include "http/message/multipart.h"
#include "http/request.h"
#include "http/message/validators.h"

#include <monkey/base/buf.h>

#include <errno.h>
#include <unistd.h>

enum { CONTENT_RANGE_BYTES = 80 };

/* The validators that are sent with the response, and compared with the conditions of the request. */
struct file_validators {
    struct mk_str etag, modified;
    int64_t now, mtime;
};

/* Returns the media type, which a block has instead of `file->type`. */
static struct mk_str get_type(const struct mk_file *file)
{
    return file->block ? mk__block_value(file->block, MK_BLOCK_CONTENT_TYPE) : file->type;
}

/* Makes the validators of a file that has none, or was just changed. */
static MK_NOINLINE int make_validators(struct mk_request *req, const struct mk_file *file,
                                       struct file_validators *validators)
{
    char *etag = mk_arena_alloc(&req->arena, MK__BLOCK_ETAG_BYTES);
    char *date = mk_arena_alloc(&req->arena, MK__DATE_BYTES + 1);
    if (!etag || !date)
        return -1;
    int err = 0;
    if (mk__block_has_date(file)) {
        /* not in the future: RFC 9110 section 8.8.2.1 */
        validators->mtime = file->mtime_seconds > validators->now ? validators->now : file->mtime_seconds;
        validators->modified = mk_str(date, mk__date_format(validators->mtime, date));
        err |= mk__response_add_header(req, MK_STR("Last-Modified"), validators->modified);
    }
    if (mk__block_has_etag(file)) {
        /* a file that was just changed may change again without a new time stamp */
        bool weak = file->mtime_seconds > validators->now - MK__ETAG_STRONG_SECONDS;
        validators->etag = mk_str(etag, mk__block_format_etag(file, weak, etag));
        err |= mk__response_add_header(req, MK_STR("ETag"), validators->etag);
    }
    return err;
}

static MK_HOT int add_validators(struct mk_request *req, const struct mk_file *file, struct file_validators *validators)
{
    validators->now = mk_loop_wall_seconds(req->http->loop);
    if (!file->block || !mk_file_is_settled(file, validators->now))
        return make_validators(req, file, validators);
    /* the block has the validators, which do not change with the clock any more */
    validators->mtime = mk__block_has_date(file) ? file->mtime_seconds : MK__MTIME_NONE;
    validators->etag = mk__block_value(file->block, MK_BLOCK_ETAG);
    mk__response_set_block(req, file->block);
    return 0;
}

enum {
    CONDITIONS = 1u << MK_HEADER_IF_MATCH | 1u << MK_HEADER_IF_NONE_MATCH | 1u << MK_HEADER_IF_MODIFIED_SINCE |
                 1u << MK_HEADER_IF_UNMODIFIED_SINCE
};

/* Other methods were performed before their response is a file, too late for conditions. */
static enum mk__condition check_conditions(struct mk_request *req, const struct file_validators *validators)
{
    bool reads = req->parse.method == MK_GET || req->parse.method == MK_HEAD;
    if (!(req->parse.seen & CONDITIONS) || !reads)
        return MK__CONDITION_PASS;
    return mk__validators_check(&(struct mk__conditions){
        .if_match = mk_request_header(req, MK_HEADER_IF_MATCH),
        .if_none_match = mk_request_header(req, MK_HEADER_IF_NONE_MATCH),
        .if_modified_since = mk_request_header(req, MK_HEADER_IF_MODIFIED_SINCE),
        .if_unmodified_since = mk_request_header(req, MK_HEADER_IF_UNMODIFIED_SINCE),
        .etag = validators->etag,
        .mtime = validators->mtime,
        .now = validators->now,
    });
}

/* The requested ranges; none: the whole file. */
struct range_set {
    unsigned n;
    struct mk__range ranges[MK__RANGES_MAX];
};

static uint64_t count_range_bytes(const struct mk__range *r)
{
    return r->last - r->first + 1;
}

/*
 * Finds the ranges to send. Range is defined for GET only (RFC 9110 section 14.2), and If-Range may cancel it. Several
 * ranges are merged where one part is cheaper than two. If they amount to the whole file, or are still more than
 * MK__MULTIPART_MAX, the whole file is sent.
 */
static enum mk__range_result find_ranges(struct mk_request *req, const struct mk_file *file,
                                         const struct file_validators *validators, struct range_set *s)
{
    struct mk_str value = mk_request_header(req, MK_HEADER_RANGE);
    s->n = 0;
    if (!value.p || file->no_ranges || req->no_ranges || req->parse.method != MK_GET)
        return MK__RANGE_IGNORE;
    struct mk_str if_range = mk_request_header(req, MK_HEADER_IF_RANGE);
    if (if_range.p && !mk__validators_check_if_range(if_range, validators->etag, validators->mtime, validators->now))
        return MK__RANGE_IGNORE;
    enum mk__range_result result = mk__range_parse(value, file->bytes, s->ranges, MK__RANGES_MAX, &s->n);
    if (s->n < 2)
        return result;
    s->n = mk__range_merge(s->ranges, s->n, MK__MULTIPART_GAP_BYTES);
    /* with multipart/byteranges Content-Encoding would describe the whole body, not the parts */
    bool is_coded_multipart = s->n > 1 && file->coding != MK_CODING_IDENTITY;
    if (s->n > MK__MULTIPART_MAX || count_range_bytes(s->ranges) == file->bytes || is_coded_multipart)
        s->n = 0;
    return s->n ? result : MK__RANGE_IGNORE;
}

static int add_content_range(struct mk_request *req, const char *format, ...)
{
    struct mk_buf b;
    char *storage = mk_arena_alloc(&req->arena, CONTENT_RANGE_BYTES);
    va_list args;
    if (!storage)
        return -1;
    mk_buf_init_fixed(&b, storage, CONTENT_RANGE_BYTES);
    va_start(args, format);
    mk_buf_vaddf(&b, format, args);
    va_end(args);
    return mk__response_add_header(req, MK_STR("Content-Range"), mk_buf_str(&b));
}

/* Of a file with a block these are the lines of the block, unless `type` is that of a multipart body. */
static MK_HOT int add_content_headers(struct mk_request *req, const struct mk_file *file, struct mk_str type,
                                      uint64_t bytes)
{
    bool is_file_type = type.p == file->type.p;
    if (req->block && is_file_type)
        return mk_response_set_length(req, bytes);
    if (req->block)
        mk__response_drop_block_content(req);
    int err = mk_response_header_ref(req, MK_STR("Content-Type"), is_file_type ? get_type(file) : type);
    if (file->coding != MK_CODING_IDENTITY)
        err |= mk__response_add_header(req, MK_STR("Content-Encoding"), mk_coding_name(file->coding));
    if (!file->no_ranges && !req->no_ranges)
        err |= mk__response_add_header(req, MK_STR("Accept-Ranges"), MK_STR("bytes"));
    return err | mk_response_set_length(req, bytes);
}

static bool has_content(const struct mk_file *file)
{
    return file->content.p;
}

static bool is_shared(const struct mk_file *file)
{
    return file->owner;
}

static void close_file(const struct mk_file *file)
{
    if (!has_content(file) && !is_shared(file))
        close(file->fd);
}

static void fail_with_503(struct mk_request *req, const struct mk_file *file)
{
    close_file(file);
    mk_response_error(req, 503);
}

/*
 * Queues a range of the file, which takes the descriptor over even if that fails. The first range gets it from `file`
 * (`before` NULL), a later one from the previous range, the part `before`.
 */
static MK_HOT int queue_bytes(struct mk_request *req, const struct mk_file *file, struct mk__part *before, uint64_t at,
                              uint64_t bytes)
{
    if (has_content(file))
        return mk_response_write_ref(req, mk_str(file->content.p + at, bytes));
    if (before)
        return mk__response_write_same_file(req, before, at, bytes);
    return is_shared(file) ? mk__response_write_borrowed_file(req, file->fd, at, bytes)
                           : mk_response_write_file(req, file->fd, at, bytes);
}

/* Ends the response; `queued` is the result of queueing its last part. The descriptor belongs to the queue. */
static MK_HOT void end_file_response(struct mk_request *req, const struct mk_file *file, int queued)
{
    if (queued < 0) {
        mk_response_abort(req);
        return;
    }
    for (struct mk__part *part = req->first; part; part = part->next) {
        if (part->kind != MK__PART_FILE)
            continue;
        part->version = file->version;
        if (file->in_memory)
            part->cached_until = UINT64_MAX; /* it needs no disk threads */
    }
    mk_response_end(req);
}

static void send_single(struct mk_request *req, const struct mk_file *file, const struct mk__range *range)
{
    uint64_t at = range ? range->first : 0;
    uint64_t bytes = range ? count_range_bytes(range) : file->bytes;
    int err = add_content_headers(req, file, file->type, bytes);
    if (range) {
        err |= add_content_range(req, "bytes %llu-%llu/%llu", (unsigned long long)range->first,
                                 (unsigned long long)range->last, (unsigned long long)file->bytes);
        req->status = 206;
    }
    if (err)
        fail_with_503(req, file);
    else
        end_file_response(req, file, queue_bytes(req, file, NULL, at, bytes));
}

/* Content-Range is in the parts, not in the head (RFC 9110 section 15.3.7.2). */
static void send_multipart(struct mk_request *req, const struct mk_file *file, const struct range_set *s,
                           const struct mk__multipart *m)
{
    const struct mk__range *r = s->ranges;
    req->status = 206;
    if (add_content_headers(req, file, m->type, m->bytes) < 0 || mk_response_write_ref(req, m->heads[0]) < 0) {
        fail_with_503(req, file);
        return;
    }
    int queued = queue_bytes(req, file, NULL, r[0].first, count_range_bytes(&r[0]));
    for (unsigned i = 1; i < s->n && queued >= 0; i++) {
        struct mk__part *before = req->last;
        queued = mk_response_write_ref(req, m->heads[i]);
        if (queued >= 0)
            queued = queue_bytes(req, file, before, r[i].first, count_range_bytes(&r[i]));
    }
    if (queued >= 0)
        queued = mk_response_write_ref(req, m->heads[s->n]);
    end_file_response(req, file, queued);
}

/*
 * Builds the texts around the parts. Returns false if that fails, or if the body would be as large as the file: the
 * Range is ignored then, which is always allowed.
 */
static bool build_multipart(struct mk_request *req, const struct mk_file *file, const struct range_set *s,
                            struct mk__multipart *ret_multipart)
{
    char boundary[MK__BOUNDARY_BYTES];
    return mk__multipart_make_boundary(boundary) == 0 &&
           mk__multipart_build(ret_multipart, &req->arena, mk_str(boundary, sizeof(boundary)), s->ranges, s->n,
                               get_type(file), file->bytes) == 0 &&
           ret_multipart->bytes < file->bytes;
}

static void close_kept_file(void *ctx)
{
    const struct mk_file *file = ctx;
    if (file->fd >= 0)
        close(file->fd);
}

/* Keeps the file for mk_response_no_ranges(); `fd` of a 416, which has no part that owns it, else -1. */
static bool keep_file(struct mk_request *req, const struct mk_file *file, int fd)
{
    struct mk_file *kept = mk_arena_alloc(&req->arena, sizeof(*kept));
    if (!kept)
        return false;
    *kept = *file;
    kept->fd = is_shared(file) ? file->fd : fd;
    if (fd >= 0 && !is_shared(file) && mk_arena_defer(&req->arena, close_kept_file, kept) < 0)
        return false;
    req->ranged_file = kept;
    return true;
}

/* Apart from what every response takes, since the texts of all parts would be zeroed. Returns false: it does not pay.
 */
static MK_NOINLINE bool send_several(struct mk_request *req, const struct mk_file *file, const struct range_set *s)
{
    struct mk__multipart multipart;
    if (!build_multipart(req, file, s, &multipart))
        return false;
    send_multipart(req, file, s, &multipart);
    return true;
}

static void reject_range(struct mk_request *req, const struct mk_file *file)
{
    if (!keep_file(req, file, has_content(file) ? -1 : file->fd))
        close_file(file);
    mk_response_error(req, 416);
    add_content_range(req, "bytes */%llu", (unsigned long long)file->bytes);
}

/* Response hooks see and may change the headers of the 200; those that a 304 does not repeat are removed later. */
static void send_not_modified(struct mk_request *req, const struct mk_file *file)
{
    if (add_content_headers(req, file, file->type, file->bytes) != 0) {
        mk_response_error(req, 503);
        return;
    }
    req->status = 304;
    mk_response_end(req);
}

MK_HOT void mk_response_file(struct mk_request *req, const struct mk_file *file)
{
    struct file_validators validators = {.mtime = MK__MTIME_NONE};
    MK_UNINITIALIZED struct range_set set;

    if (is_shared(file))
        mk__request_borrow(req, file->owner, file->owned);
    if (add_validators(req, file, &validators) != 0) {
        fail_with_503(req, file);
        return;
    }
    enum mk__condition condition = check_conditions(req, &validators);
    if (condition != MK__CONDITION_PASS) {
        close_file(file);
        if (condition == MK__CONDITION_NOT_MODIFIED)
            send_not_modified(req, file);
        else
            mk_response_error(req, 412);
        return;
    }
    if (find_ranges(req, file, &validators, &set) == MK__RANGE_UNSATISFIABLE) {
        reject_range(req, file);
        return;
    }
    if (set.n)
        keep_file(req, file, -1);
    if (set.n < 2 || !send_several(req, file, &set))
        send_single(req, file, set.n == 1 ? set.ranges : NULL);
}

/* ── the whole file instead of a part ── */

/* Returns the descriptor of the file, which the parts of a 206 or the kept file own; -1: its content is in memory. */
static int take_fd(struct mk_request *req, struct mk_file *kept)
{
    int fd = kept->fd;
    if (is_shared(kept))
        return fd;
    kept->fd = -1;
    for (struct mk__part *part = req->first; part && fd < 0; part = part->next) {
        fd = part->kind == MK__PART_FILE ? part->fd : -1;
        if (fd >= 0)
            part->fd = -1;
    }
    return fd;
}

/* Changes the headers of a 206 or 416 to those of the whole file. Returns 0 or -1 (no memory). */
static int change_headers(struct mk_request *req, const struct mk_file *file)
{
    static const struct mk_str names[] = {MK_STR("Content-Range"), MK_STR("Content-Type")};
    struct file_validators validators = {.mtime = MK__MTIME_NONE};
    for (size_t i = 0; i < MK_COUNT_OF(names); i++)
        mk_response_header_remove(req, names[i]);
    if (req->status == 206)
        return mk__response_add_header(req, MK_STR("Content-Type"), get_type(file));
    mk_response_header_remove(req, MK_STR("Content-Encoding")); /* of its page */
    return add_validators(req, file, &validators) | add_content_headers(req, file, file->type, file->bytes);
}

static void replace_parts(struct mk_request *req, const struct mk_file *file)
{
    if (req->status == 416)
        req->filter = NULL;
    req->is_default_error = false;
    req->status = 200;
    mk__response_drop_parts(req);
    if (req->filter)
        mk__filter_change_input(req, file->bytes);
    else
        mk_response_set_length(req, file->bytes);
    end_file_response(req, file, queue_bytes(req, file, NULL, 0, file->bytes));
}

static int send_whole(struct mk_request *req)
{
    struct mk_file file = *req->ranged_file;
    file.fd = take_fd(req, req->ranged_file);
    if (file.fd < 0 && !file.content.p)
        return -ENOTSUP; /* the parts were replaced */
    req->ranged_file = NULL;
    req->response_state = MK__RESPONSE_OPEN;
    if (change_headers(req, &file) != 0) {
        fail_with_503(req, &file);
        return -ENOMEM;
    }
    replace_parts(req, &file);
    return 0;
}

int mk_response_no_ranges(struct mk_request *req)
{
    bool partial = req->status == 206 || (req->status == 416 && req->ranged_file);
    if (req->output_state >= MK__OUTPUT_HEAD || req->response_state == MK__RESPONSE_FAILED)
        return -EALREADY;
    if (partial && !req->ranged_file)
        return -ENOTSUP;
    req->no_ranges = true;
    mk_response_header_remove(req, MK_STR("Accept-Ranges"));
    return partial ? send_whole(req) : 0;
}

void mk_response_no_codings(struct mk_request *req)
{
    req->no_codings = true;
}

static MK_COLD bool is_refused(const struct mk_request *req, struct mk_str name)
{
    if (req->no_codings && mk_str_ieq(name, MK_STR("Accept-Encoding")))
        return true;
    return req->no_ranges && (mk_str_ieq(name, MK_STR("Range")) || mk_str_ieq(name, MK_STR("If-Range")));
}

bool mk_request_passes_header(const struct mk_request *req, struct mk_str name)
{
    return (!req->no_ranges && !req->no_codings) || !is_refused(req, name);
}
