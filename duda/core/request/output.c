// SPDX-License-Identifier: Apache-2.0
/*
 * The queue of parts of a response (output.h). Small texts are gathered. The first parts and texts take memory of the
 * exchange's arena; further ones are on the heap, because the arena is small.
 */
#include "request/output.h"

#include "common/current.h"
#include "common/api_error.h"
#include "request/request.h"

#include <errno.h>
#include <unistd.h>

enum {
    ARENA_PARTS = 16,
    ARENA_TEXT_BYTES = 4096,
    TEXT_BYTES_MIN = 512,
    HEAP_TEXT_BYTES_MIN = 16 * 1024,
    GATHERED_BYTES_MAX = 256, /* shorter than this, bytes are copied after others */
    WINDOW_BYTES = 64 * 1024, /* what the server takes at once */
    GATHER_BYTES_MAX = 8 * 1024,
};

enum part_kind { PART_REF, PART_TEXT, PART_HEAP_TEXT, PART_FILE, PART_GENERATOR };

struct output_part {
    struct output_part *next;
    enum part_kind kind;
    bool on_heap; /* the struct itself */
    int fd;
    union {
        const char *data;
        char *text;
    };
    size_t room;     /* of a text */
    uint64_t offset; /* in a file */
    uint64_t len;
    duda_generate_fn generate;
    void *ctx;
    struct duda_request *dr;
};

/* ── parts ── */

static struct mk_account *get_account(const struct duda_request *dr)
{
    return mk_request_account(dr->req);
}

static struct output_part *alloc_part(struct duda_request *dr, enum part_kind kind)
{
    struct output *o = &dr->output;
    struct output_part *part = o->free;
    /* the server keeps the address of a generator until the exchange ends */
    bool on_heap = !part && o->parts_n >= ARENA_PARTS && kind != PART_GENERATOR;
    if (part)
        o->free = part->next;
    else if (on_heap)
        part = mk_account_alloc(get_account(dr), sizeof(*part));
    else
        part = mk_arena_alloc(mk_request_arena(dr->req), sizeof(*part));
    if (!part)
        return NULL;
    if (!on_heap)
        o->parts_n++;
    *part = (struct output_part){.kind = kind, .on_heap = on_heap, .fd = -1, .dr = dr};
    return part;
}

static struct output_part *add_part(struct duda_request *dr, enum part_kind kind)
{
    struct output *o = &dr->output;
    struct output_part *part = alloc_part(dr, kind);
    if (!part)
        return NULL;
    if (o->last)
        o->last->next = part;
    else
        o->first = part;
    o->last = part;
    return part;
}

static void remove_first(struct duda_request *dr)
{
    struct output *o = &dr->output;
    struct output_part *part = o->first;
    o->first = part->next;
    assert((part == o->last) == !o->first);
    if (!o->first)
        o->last = NULL;
    if (part->kind == PART_HEAP_TEXT)
        mk_account_free(get_account(dr), part->text, part->room);
    if (part->fd >= 0)
        close(part->fd);
    if (part->on_heap) {
        mk_account_free(get_account(dr), part, sizeof(*part));
    } else if (part->kind != PART_GENERATOR) {
        part->next = o->free;
        o->free = part;
    }
}

void output_drop(struct duda_request *dr)
{
    while (dr->output.first)
        remove_first(dr);
}

void output_stop(struct duda_request *dr)
{
    output_drop(dr);
    dr->output.state = OUTPUT_ENDED;
}

void output_send_page(struct duda_request *dr, int status)
{
    output_stop(dr);
    dr->answered = true;
    if (dr->is_page)
        dr->output.is_incomplete = true; /* that of the server stays */
    else
        mk_response_error(dr->req, status);
}

void output_abort(struct duda_request *dr)
{
    output_stop(dr);
    dr->is_aborted = true;
    mk_response_abort(dr->req);
}

uint64_t output_count_queued(const struct duda_request *dr)
{
    uint64_t bytes = 0;
    for (const struct output_part *part = dr->output.first; part; part = part->next)
        bytes += part->len;
    return bytes;
}

/* ── passing parts to the server ── */

static int fail_output(struct duda_request *dr, int err)
{
    if (err == -EALREADY) {
        output_stop(dr);
        return err;
    }
    api_error_report(dr->worker, "a response is cut", err);
    output_abort(dr);
    return err;
}

static ssize_t run_generator(struct mk_request *req, char *to, size_t size, void *ctx)
{
    const struct output_part *part = ctx;
    (void)req;
    assert(part->kind == PART_GENERATOR && part->generate);
    struct current outer = request_enter(part->dr);
    ssize_t n = part->generate(part->dr, to, size, part->ctx);
    current_leave(outer);
    if (n <= 0 || (size_t)n <= size)
        return n;
    api_error_log(part->dr->worker, "response->generate()",
                  "the function has returned more bytes than it had room for; the response is cut");
    return -EOVERFLOW;
}

/* A generator without bytes: it makes the server send a head before the body is there, or without a length. */
static ssize_t generate_nothing(struct mk_request *req, char *to, size_t size, void *ctx)
{
    (void)req, (void)to, (void)size, (void)ctx;
    return 0;
}

static int pass_part(struct duda_request *dr, struct output_part *part)
{
    int fd = part->fd;
    switch (part->kind) {
    case PART_REF:
    case PART_TEXT:
        return mk_response_write_ref(dr->req, mk_str(part->data, part->len));
    case PART_HEAP_TEXT:
        return mk_response_write(dr->req, mk_str(part->text, part->len));
    case PART_FILE:
        part->fd = -1;
        return mk_response_write_file(dr->req, fd, part->offset, part->len);
    default:
        return mk_response_generate(dr->req, run_generator, part);
    }
}

static int pump_output(struct duda_request *dr)
{
    struct output *o = &dr->output;
    while (o->first && !o->blocked) {
        int r = pass_part(dr, o->first);
        if (r < 0)
            return fail_output(dr, r);
        o->blocked = r == MK_AGAIN;
        remove_first(dr);
    }
    if (o->state == OUTPUT_ENDING && !o->first) {
        o->state = OUTPUT_ENDED;
        mk_response_end(dr->req);
    }
    return o->blocked && o->state == OUTPUT_SENDING ? MK_AGAIN : 0;
}

static void continue_output(struct mk_request *req, void *ctx)
{
    struct duda_request *dr = ctx;
    (void)req;
    dr->output.blocked = false;
    pump_output(dr);
    if (dr->output.state == OUTPUT_SENDING && !dr->output.blocked && dr->writable.fn)
        request_call_event(dr, dr->writable);
}

static bool is_bodyless(const struct duda_request *dr)
{
    int status = mk_response_get_status(dr->req);
    return mk_request_method(dr->req) == MK_HEAD || status == 204 || status == 205 || status == 304;
}

/* Announces the length of a response that is complete. */
static void set_length_at_end(struct duda_request *dr)
{
    const struct output *o = &dr->output;
    bool is_wrong = o->is_fixed && o->length >= 0 && (uint64_t)o->length != o->bytes && !o->is_unknown;
    if (is_wrong && !o->is_bodyless) {
        api_error_log(dr->worker, "response->http_content_length()",
                      "the body has another length, which is sent instead");
        mk_response_set_length(dr->req, o->bytes);
    } else if (o->is_fixed && o->length >= 0) {
        mk_response_set_length(dr->req, (uint64_t)o->length);
    } else if (!o->is_unknown && !o->is_fixed && (o->is_bodyless || o->bytes > WINDOW_BYTES)) {
        mk_response_set_length(dr->req, o->bytes); /* not all of it will be queued when the head is sent */
    }
}

/* Prepares the head for what follows: the state is SENDING or ENDING. */
static int begin_output(struct duda_request *dr)
{
    struct output *o = &dr->output;
    assert(o->state == OUTPUT_SENDING || o->state == OUTPUT_ENDING);
    o->is_bodyless = is_bodyless(dr);
    mk_response_on_writable(dr->req, continue_output, dr);
    if (o->state == OUTPUT_ENDING)
        set_length_at_end(dr);
    else if (o->is_fixed && o->length >= 0)
        mk_response_set_length(dr->req, (uint64_t)o->length);
    bool omits_length = o->is_fixed && o->length == OUTPUT_LENGTH_OMITTED;
    if (o->state == OUTPUT_ENDING && !omits_length && !(o->is_bodyless && o->is_unknown))
        return 0;
    return mk_response_generate(dr->req, generate_nothing, NULL);
}

void output_truncate(struct duda_request *dr, uint64_t bytes)
{
    assert(dr->output.state == OUTPUT_HELD);
    dr->output.bytes = bytes;
    for (struct output_part *part = dr->output.first; part; part = part->next) {
        part->len = part->len < bytes ? part->len : bytes;
        bytes -= part->len;
    }
}

int output_miss(struct duda_request *dr)
{
    dr->output.is_incomplete = true;
    return -ENOMEM;
}

/* A service may not have looked at the results: what misses a part must not look complete. */
static int reject_incomplete(struct duda_request *dr)
{
    assert(dr->output.is_incomplete && !dr->is_page);
    api_error_log(dr->worker, "response->end()",
                  "a part could not be added, because there was no memory: the response is not sent");
    if (dr->output.state != OUTPUT_HELD)
        return fail_output(dr, -ENOMEM);
    output_send_page(dr, 500);
    return -ENOMEM;
}

static int send_output(struct duda_request *dr, enum output_state state)
{
    bool begins = dr->output.state == OUTPUT_HELD;
    assert(dr->output.state <= OUTPUT_SENDING && dr->output.state <= state);
    if (dr->is_page) { /* it is gathered when the function has returned */
        dr->output.state = state == OUTPUT_ENDING ? OUTPUT_ENDED : OUTPUT_HELD;
        return 0;
    }
    if (dr->output.is_incomplete)
        return reject_incomplete(dr);
    dr->output.state = state;
    int r = begins ? begin_output(dr) : 0;
    return r < 0 ? fail_output(dr, r) : pump_output(dr);
}

int output_flush(struct duda_request *dr)
{
    return send_output(dr, OUTPUT_SENDING);
}

int output_end(struct duda_request *dr)
{
    return send_output(dr, OUTPUT_ENDING);
}

/* ── adding parts ── */

static bool is_direct(const struct output *o)
{
    return o->state == OUTPUT_SENDING && !o->blocked;
}

/* Returns the result of a function that has added `len` bytes. */
static int count_added(struct duda_request *dr, uint64_t len)
{
    dr->output.bytes += len;
    dr->output.has_parts = true;
    return dr->output.state == OUTPUT_HELD ? 0 : pump_output(dr);
}

static int pass_directly(struct duda_request *dr, int r)
{
    if (r < 0)
        return fail_output(dr, r);
    dr->output.blocked = r == MK_AGAIN;
    return r;
}

static struct output_part *add_text(struct duda_request *dr, size_t len)
{
    struct output *o = &dr->output;
    size_t room = len < TEXT_BYTES_MIN ? TEXT_BYTES_MIN : len;
    bool on_heap = room > ARENA_TEXT_BYTES || o->text_bytes + room > ARENA_TEXT_BYTES;
    if (on_heap && room < HEAP_TEXT_BYTES_MIN)
        room = HEAP_TEXT_BYTES_MIN;
    char *text = on_heap ? mk_account_alloc(get_account(dr), room) : mk_arena_alloc(mk_request_arena(dr->req), room);
    struct output_part *part = text ? add_part(dr, on_heap ? PART_HEAP_TEXT : PART_TEXT) : NULL;
    if (!part) {
        if (on_heap)
            mk_account_free(get_account(dr), text, room);
        return NULL;
    }
    if (!on_heap)
        o->text_bytes += (unsigned)room;
    part->text = text;
    part->room = room;
    return part;
}

int output_add_copy(struct duda_request *dr, struct mk_str data)
{
    struct output_part *part = dr->output.last;
    if (is_direct(&dr->output))
        return pass_directly(dr, mk_response_write(dr->req, data));
    if (data.len == 0)
        return 0;
    if (!part || part->kind == PART_REF || part->kind > PART_HEAP_TEXT || part->room - part->len < data.len)
        part = add_text(dr, data.len);
    if (!part)
        return output_miss(dr);
    memcpy(part->text + part->len, data.p, data.len);
    part->len += data.len;
    assert(part->len <= part->room);
    return count_added(dr, data.len);
}

int output_add_ref(struct duda_request *dr, struct mk_str data)
{
    if (is_direct(&dr->output))
        return pass_directly(dr, mk_response_write_ref(dr->req, data));
    if (data.len == 0)
        return 0;
    if (dr->output.first && data.len < GATHERED_BYTES_MAX)
        return output_add_copy(dr, data);
    struct output_part *part = add_part(dr, PART_REF);
    if (!part)
        return output_miss(dr);
    part->data = data.p;
    part->len = data.len;
    return count_added(dr, data.len);
}

int output_add_file(struct duda_request *dr, int fd, uint64_t offset, uint64_t length)
{
    struct output_part *part = length ? add_part(dr, PART_FILE) : NULL;
    assert(fd >= 0);
    if (!part) {
        close(fd);
        return length ? output_miss(dr) : 0;
    }
    part->fd = fd;
    part->offset = offset;
    part->len = length;
    return count_added(dr, length);
}

int output_add_generator(struct duda_request *dr, duda_generate_fn fn, void *data)
{
    struct output_part *part = add_part(dr, PART_GENERATOR);
    assert(fn);
    if (!part)
        return output_miss(dr);
    part->generate = fn;
    part->ctx = data;
    dr->output.is_unknown = true;
    return count_added(dr, 0);
}

/* ── gathering ── */

/* Appends a part. Returns whether it could be. */
static bool gather_part(const struct output_part *part, struct mk_buf *to)
{
    if (part->kind == PART_GENERATOR || mk_buf_reserve(to, part->len) < 0)
        return false;
    if (part->kind != PART_FILE) {
        mk_buf_add(to, part->data, part->len);
        return true;
    }
    ssize_t n = pread(part->fd, to->data + to->len, part->len, (off_t)part->offset);
    to->len += n > 0 ? (size_t)n : 0;
    return n >= 0 && (size_t)n == part->len;
}

struct mk_str output_gather(struct duda_request *dr, struct mk_arena *arena)
{
    struct mk_buf whole;
    size_t size = dr->output.bytes;
    assert(dr->is_page);
    char *storage = size <= GATHER_BYTES_MAX && !dr->output.is_incomplete ? mk_arena_alloc(arena, size + 1) : NULL;
    if (!storage)
        return MK_STR_NONE;
    mk_buf_init_fixed(&whole, storage, size + 1);
    while (dr->output.first) {
        if (!gather_part(dr->output.first, &whole))
            return MK_STR_NONE;
        remove_first(dr);
    }
    return mk_str(storage, whole.len);
}
