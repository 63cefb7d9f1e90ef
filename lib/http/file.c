// SPDX-License-Identifier: Apache-2.0
/*
 * A file as an answer: validators, preconditions, ranges. Finding and opening it is a handler's job, moving
 * its bytes the carrier's.
 */
#include "http/date.h"
#include "http/range.h"
#include "http/request.h"
#include "http/validators.h"

#include <monkey/buf.h>

#include <unistd.h>

enum { CONTENT_RANGE_BYTES = 80 };

/* The validators as the response carries them. */
struct tags {
    struct mk_str etag, modified;
    int64_t now, mtime;
};

static int add_validators(struct mk_request *req, const struct mk_file *file, struct tags *tags)
{
    char *etag = mk_arena_alloc(&req->arena, MK__ETAG_BYTES);
    char *date = mk_arena_alloc(&req->arena, MK__DATE_BYTES + 1);
    if (!etag || !date)
        return -1;
    tags->now = mk_loop_wall_seconds(req->http->loop);
    /* a date in the future would be wrong for ever: RFC 9110 section 8.8.2.1 */
    tags->mtime = file->mtime_seconds > tags->now ? tags->now : file->mtime_seconds;
    bool weak = tags->now - file->mtime_seconds < MK__SETTLED_SECONDS;
    tags->etag = mk_str(etag, mk__etag_format(file->bytes, file->mtime_seconds, file->mtime_nanoseconds, weak, etag));
    tags->modified = mk_str(date, mk__date_format(tags->mtime, date));
    return mk_response_header_borrow(req, MK_STR("Last-Modified"), tags->modified) |
           mk_response_header_borrow(req, MK_STR("ETag"), tags->etag);
}

enum {
    CONDITIONS = 1u << MK_FIELD_IF_MATCH | 1u << MK_FIELD_IF_NONE_MATCH | 1u << MK_FIELD_IF_MODIFIED_SINCE |
                 1u << MK_FIELD_IF_UNMODIFIED_SINCE
};

static enum mk__condition check_conditions(struct mk_request *req, const struct tags *tags)
{
    if (!(req->parse.seen & CONDITIONS))
        return MK__CONDITION_PASS;
    return mk__validators_check(&(struct mk__conditions){
        .get_or_head = req->parse.method == MK_GET || req->parse.method == MK_HEAD,
        .if_match = mk_request_field(req, MK_FIELD_IF_MATCH),
        .if_none_match = mk_request_field(req, MK_FIELD_IF_NONE_MATCH),
        .if_modified_since = mk_request_field(req, MK_FIELD_IF_MODIFIED_SINCE),
        .if_unmodified_since = mk_request_field(req, MK_FIELD_IF_UNMODIFIED_SINCE),
        .etag = tags->etag,
        .mtime = tags->mtime,
        .now = tags->now,
    });
}

/* Range is defined for GET alone (RFC 9110 section 14.2); If-Range may take it back. */
static enum mk__range_result find_range(struct mk_request *req, const struct mk_file *file, const struct tags *tags,
                                        struct mk__range *range)
{
    unsigned n;
    struct mk_str value = mk_request_field(req, MK_FIELD_RANGE);
    if (!value.p || file->no_ranges || req->parse.method != MK_GET)
        return MK__RANGE_IGNORE;
    struct mk_str if_range = mk_request_field(req, MK_FIELD_IF_RANGE);
    if (if_range.p && !mk__validators_if_range(if_range, tags->etag, tags->mtime, tags->now))
        return MK__RANGE_IGNORE;
    return mk__range_parse(value, file->bytes, range, 1, &n);
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
    return mk_response_header_borrow(req, MK_STR("Content-Range"), mk_buf_str(&b));
}

static void send_whole(struct mk_request *req, const struct mk_file *file, const struct mk__range *range)
{
    uint64_t at = range ? range->first : 0;
    uint64_t bytes = range ? range->last - range->first + 1 : file->bytes;
    int err = mk_response_header_borrow(req, MK_STR("Content-Type"), file->type);
    if (!file->no_ranges)
        err |= mk_response_header_borrow(req, MK_STR("Accept-Ranges"), MK_STR("bytes"));
    if (range) {
        err |= add_content_range(req, "bytes %llu-%llu/%llu", (unsigned long long)range->first,
                                 (unsigned long long)range->last, (unsigned long long)file->bytes);
        req->status = 206;
    }
    err |= mk_response_length(req, bytes);
    if (err) {
        close(file->fd);
        mk_response_error(req, 503);
        return;
    }
    if (mk_response_write_file(req, file->fd, at, bytes) < 0) {
        mk_response_abort(req);
        return;
    }
    if (file->in_memory && req->last)
        req->last->warm_to = UINT64_MAX;
    mk_response_end(req);
}

static void refuse_range(struct mk_request *req, const struct mk_file *file)
{
    mk_response_error(req, 416);
    add_content_range(req, "bytes */%llu", (unsigned long long)file->bytes);
}

void mk_response_file(struct mk_request *req, const struct mk_file *file)
{
    struct tags tags;
    struct mk__range range;
    enum mk__condition condition = MK__CONDITION_FAILED;
    enum mk__range_result found = MK__RANGE_IGNORE;

    if (add_validators(req, file, &tags) != 0) {
        close(file->fd);
        mk_response_error(req, 503);
        return;
    }
    condition = check_conditions(req, &tags);
    if (condition == MK__CONDITION_PASS)
        found = find_range(req, file, &tags, &range);
    if (condition == MK__CONDITION_PASS && found != MK__RANGE_UNSATISFIABLE) {
        send_whole(req, file, found == MK__RANGE_OK ? &range : NULL);
        return;
    }
    close(file->fd);
    if (found == MK__RANGE_UNSATISFIABLE) {
        refuse_range(req, file);
    } else if (condition == MK__CONDITION_NOT_MODIFIED) {
        req->status = 304;
        mk_response_end(req);
    } else {
        mk_response_error(req, 412);
    }
}
