// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTP/2 connection, compared with nghttp2: the frames of a client, which are the input behind the preface, go to a
 * connection of the server and to a server session of nghttp2, one after the other. A frame has the same outcome for
 * both: it is accepted, resets its stream or ends the connection; and both deliver the same heads, bodies and trailers.
 * The table `choices` has what may differ. No request is answered, so that the streams of both are in the same states.
 */
#include <monkey/request.h>

#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/harness.h"

#include "http/h2/h2.h"

enum { INPUT_BYTES_MAX = 32 * 1024, STREAMS_MAX = 4, CONTINUATIONS_MAX = 8, NO_FRAME = UINT8_MAX };

#define PREFACE MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

/* ── the outcome of a frame ── */

/* From the mildest to the most severe. */
enum outcome { ACCEPTED, STREAM_ERROR, ANSWERED, CONNECTION_ERROR };

struct result {
    enum outcome outcome;
    int32_t reset_id; /* stream that was reset */
    unsigned settings_acks;
    uint64_t pings;                 /* sum of the payloads that are acknowledged */
    uint64_t heads, body, trailers; /* sums of what was delivered */
    bool over_limit;                /* the connection was ended for a limit of ours */
    bool tunnel;                    /* the request is a CONNECT */
    struct mk__h2_frame frame;      /* the last one that has begun */
    char refused[128];              /* the error message of nghttp2 */
};

static struct result ours, theirs;

static void raise_outcome(struct result *result, enum outcome outcome)
{
    if (result->outcome < outcome)
        result->outcome = outcome;
}

static uint64_t add_bytes(uint64_t sum, struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        sum = (sum ^ (uint8_t)s.p[i]) * 1099511628211u;
    return sum;
}

static uint64_t add(uint64_t sum, struct mk_str s)
{
    return add_bytes(sum, s) * 31 + s.len;
}

static struct mk_str str_of(const uint8_t *p, size_t len)
{
    return mk_str((const char *)p, len);
}

static void read_reply(struct result *result, const struct mk__h2_frame *frame, const uint8_t *payload)
{
    bool acks = frame->flags & MK__H2_FLAG_ACK;
    uint32_t code = frame->type == MK__H2_FRAME_GOAWAY ? mk__h2_frame_get32(payload + 4) : MK__H2_ERR_NO_ERROR;
    if (code != MK__H2_ERR_NO_ERROR)
        raise_outcome(result, CONNECTION_ERROR);
    result->over_limit |= code == MK__H2_ERR_ENHANCE_YOUR_CALM;
    if (frame->type == MK__H2_FRAME_HEADERS)
        raise_outcome(result, ANSWERED);
    if (frame->type == MK__H2_FRAME_RST_STREAM) {
        raise_outcome(result, STREAM_ERROR);
        result->reset_id = frame->stream_id;
    }
    result->settings_acks += acks && frame->type == MK__H2_FRAME_SETTINGS;
    if (acks && frame->type == MK__H2_FRAME_PING)
        result->pings = add(result->pings, str_of(payload, frame->len));
}

static struct mk__h2_frame get_head(const char *p)
{
    const uint8_t *bytes = (const uint8_t *)p;
    return (struct mk__h2_frame){.len = mk__h2_frame_get32(bytes) >> 8,
                                 .type = bytes[3],
                                 .flags = bytes[4],
                                 .stream_id = (int32_t)(mk__h2_frame_get32(bytes + 5) & INT32_MAX)};
}

/* Reads the whole frames that a server has sent. */
static void read_replies(struct result *result, struct mk_str in)
{
    while (in.len) {
        CHECK(in.len >= MK__H2_FRAME_HEAD_BYTES);
        const struct mk__h2_frame frame = get_head(in.p);
        size_t len = MK__H2_FRAME_HEAD_BYTES + frame.len;
        CHECK(in.len >= len);
        read_reply(result, &frame, (const uint8_t *)in.p + MK__H2_FRAME_HEAD_BYTES);
        in = mk_str(in.p + len, in.len - len);
    }
}

/* ── what is delivered ── */

/* Sums of a head as its request has it: with one host, and the cookies joined. */
struct head {
    uint64_t method, target, host, cookie, fields;
    bool has_host, has_cookie;
};

static void add_field(struct head *head, struct mk_str name, struct mk_str value)
{
    if (mk_str_eq(name, MK_STR("host"))) {
        if (!head->has_host)
            head->host = add(0, value);
        head->has_host = true;
    } else if (mk_str_eq(name, MK_STR("cookie"))) {
        head->cookie = add_bytes(add_bytes(head->cookie, head->has_cookie ? MK_STR("; ") : MK_STR("")), value);
        head->has_cookie = true;
    } else if (!mk_str_eq(name, MK_STR("transfer-encoding"))) { /* which means a body without a length */
        head->fields = add(add(head->fields, name), value);
    }
}

static void deliver_head(struct result *result, const struct head *head)
{
    const uint64_t sums[] = {head->method, head->target, head->host, head->cookie, head->fields};
    result->heads = add(result->heads, mk_str((const char *)sums, sizeof(sums)));
}

static void deliver_trailer(struct result *result, struct mk_str name, struct mk_str value)
{
    if (!mk_response_header_reserved(name)) /* no trailer can be one */
        result->trailers = add(add(result->trailers, name), value);
}

/* ── our side ── */

static void on_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct mk_str name, value;
    (void)ctx;
    ours.body = add_bytes(ours.body, piece);
    for (unsigned i = 0; end && mk_request_trailer_at(req, i, &name, &value); i++)
        deliver_trailer(&ours, name, value);
}

static void handle(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct head head = {.method = add(0, mk_request_method_name(req)), .target = add(0, mk_request_target(req))};
    struct mk_str name, value;
    (void)fixture;
    for (unsigned i = 0; mk_request_header_at(req, i, &name, &value); i++)
        add_field(&head, name, value);
    deliver_head(&ours, &head);
    mk_request_hold_continue(req);
    mk_request_keep_trailers(req);
    mk_request_read(req, on_piece, NULL);
}

static void send_ours(struct mk_test_client *c, struct mk_str bytes)
{
    ours = (struct result){.outcome = ACCEPTED, .frame.type = NO_FRAME};
    mk_test_send(c, bytes);
    mk_test_settle(c->fixture);
    read_replies(&ours, mk_test_received(c));
    const struct mk__conn *conn = mk_test_connection(c);
    const struct mk__h2 *h2 = conn ? mk__h2_of(conn) : NULL;
    if (h2)
        ours.frame = h2->reader.frame;
}

static struct mk_test_client *open_ours(struct mk_test_fixture *w)
{
    static const struct mk__h2_settings settings = {.on = true,
                                                    .streams_max = STREAMS_MAX,
                                                    .continuations_max = CONTINUATIONS_MAX,
                                                    .rates_max = {[0 ... MK__H2_FLOOD_RATES - 1] = INT32_MAX}};
    CHECK(mk_test_fixture_open(w, NULL) == 0);
    w->handler = handle;
    w->settings.h2 = &settings;
    w->settings.head.line_bytes_max = w->settings.head.head_bytes_max = INPUT_BYTES_MAX;
    w->settings.head.fields_max = 100;
    CHECK(mk_test_http_open(w) == 0);
    struct mk_test_client *c = mk_test_connect(w, MK_STR(""));
    CHECK(c);
    send_ours(c, PREFACE);
    return c;
}

/* ── the side of nghttp2 ── */

static struct head their_head; /* of the block that is being received */

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *ctx)
{
    (void)session, (void)ctx;
    theirs.frame = (struct mk__h2_frame){.len = (uint32_t)hd->length,
                                         .type = hd->type,
                                         .flags = hd->flags,
                                         .stream_id = hd->stream_id};
    return 0;
}

/* A request with such a field has no body for us, so that its trailers are ignored (RFC 9110 section 6.5). */
static bool says_no_body(struct mk_str name, struct mk_str value)
{
    uint64_t bytes;
    return mk_str_eq(name, MK_STR("content-length")) && mk_str_u64(value, UINT64_MAX, &bytes) && bytes == 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_p, size_t name_len,
                     const uint8_t *value_p, size_t value_len, uint8_t flags, void *ctx)
{
    struct mk_str name = str_of(name_p, name_len), value = str_of(value_p, value_len);
    int32_t id = frame->hd.stream_id;
    (void)flags, (void)ctx;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST && says_no_body(name, value))
        nghttp2_session_set_stream_user_data(session, id, &their_head);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        if (!nghttp2_session_get_stream_user_data(session, id))
            deliver_trailer(&theirs, name, value);
    } else if (mk_str_eq(name, MK_STR(":method"))) {
        their_head.method = add(0, value);
        theirs.tunnel = mk_str_eq(value, MK_STR("CONNECT"));
    } else if (mk_str_eq(name, MK_STR(":path"))) {
        their_head.target = add(0, value);
    } else if (mk_str_eq(name, MK_STR(":authority"))) {
        add_field(&their_head, MK_STR("host"), value);
    } else if (name.p[0] != ':') {
        add_field(&their_head, name, value);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *ctx)
{
    (void)session, (void)flags, (void)id, (void)ctx;
    theirs.body = add_bytes(theirs.body, str_of(data, len));
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    (void)session, (void)ctx;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        deliver_head(&theirs, &their_head);
    return 0;
}

static int on_error(nghttp2_session *session, int code, const char *text, size_t len, void *ctx)
{
    (void)session, (void)code, (void)ctx;
    snprintf(theirs.refused, sizeof(theirs.refused), "%.*s", (int)len, text);
    return 0;
}

static void send_theirs(nghttp2_session *session, struct mk_str bytes)
{
    const uint8_t *out;
    ssize_t n;
    theirs = (struct result){.outcome = ACCEPTED, .frame.type = NO_FRAME};
    their_head = (struct head){.has_host = false};
    if (nghttp2_session_mem_recv(session, (const uint8_t *)bytes.p, bytes.len) < 0)
        raise_outcome(&theirs, CONNECTION_ERROR);
    while ((n = nghttp2_session_mem_send(session, &out)) > 0)
        read_replies(&theirs, str_of(out, (size_t)n));
    CHECK(n == 0);
}

/* Without what our server does not have either: a memory of closed streams, a rate of resets. */
static nghttp2_session *new_session(const nghttp2_session_callbacks *callbacks)
{
    nghttp2_option *option;
    nghttp2_session *session;
    CHECK(nghttp2_option_new(&option) == 0);
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_stream_reset_rate_limit(option, INPUT_BYTES_MAX, INPUT_BYTES_MAX);
    nghttp2_option_set_max_continuations(option, CONTINUATIONS_MAX);
    CHECK(nghttp2_session_server_new2(&session, callbacks, NULL, option) == 0);
    nghttp2_option_del(option);
    return session;
}

static nghttp2_session *open_theirs(void)
{
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
                                                      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                                       MK__H2_STREAM_WINDOW_BYTES},
                                                      {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
                                                      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
    nghttp2_session_callbacks *callbacks;
    CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_error_callback2(callbacks, on_error);
    nghttp2_session *session = new_session(callbacks);
    nghttp2_session_callbacks_del(callbacks);
    CHECK(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, MK_COUNT_OF(settings)) == 0);
    send_theirs(session, PREFACE);
    return session;
}

/* ── steps ── */

/* A frame, or a header block with all its frames. */
struct step {
    struct mk_str bytes;
    struct mk__h2_frame frame;        /* the head of the first one */
    const uint8_t *payload;           /* and its payload */
    nghttp2_stream_proto_state state; /* of its stream, before it */
    int32_t last_id;                  /* highest number of a stream before it */
};

/*
 * Returns the length of the next step; 0: it is incomplete. A frame that is too long is the last one, whatever there is
 * of it: both end the connection at its head.
 */
static size_t find_end(struct mk_str in)
{
    uint8_t type = MK__H2_FRAME_HEADERS;
    for (size_t at = 0;; type = MK__H2_FRAME_CONTINUATION) {
        if (in.len - at < MK__H2_FRAME_HEAD_BYTES)
            return 0;
        const struct mk__h2_frame frame = get_head(in.p + at);
        at += MK__H2_FRAME_HEAD_BYTES;
        if (frame.len > MK__H2_FRAME_BYTES)
            return in.len;
        if (in.len - at < frame.len)
            return 0;
        at += frame.len;
        if (frame.type != type || frame.flags & MK__H2_FLAG_END_HEADERS)
            return at;
    }
}

static nghttp2_stream_proto_state find_state(nghttp2_session *session, int32_t id)
{
    nghttp2_stream *stream = nghttp2_session_find_stream(session, id);
    return stream ? nghttp2_stream_get_state(stream) : NGHTTP2_STREAM_STATE_CLOSED;
}

/* ── what may differ ── */

static bool is_live(const struct step *s)
{
    return s->state == NGHTTP2_STREAM_STATE_OPEN || s->state == NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
}

static bool is_ended(const struct step *s)
{
    return s->state == NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
}

static bool is_closed(const struct step *s)
{
    return !is_live(s) && s->frame.stream_id % 2 && s->frame.stream_id <= s->last_id;
}

static bool depends_on_itself(const struct step *s)
{
    size_t at = s->frame.flags & MK__H2_FLAG_PADDED ? 1 : 0;
    return s->frame.flags & MK__H2_FLAG_PRIORITY && s->frame.len >= at + 4 &&
           (mk__h2_frame_get32(s->payload + at) & INT32_MAX) == (uint32_t)s->frame.stream_id;
}

static bool is_ended_or_depends_on_itself(const struct step *s)
{
    return is_ended(s) || depends_on_itself(s);
}

/* Trailers, in which Content-Length and Host have a meaning for nghttp2; or an empty :authority together with Host. */
static bool is_trailers_or_lacks_authority(const struct step *s)
{
    return is_live(s) || strstr(theirs.refused, "name: [:authority], value: []");
}

static bool has_long_frame(const struct step *s)
{
    for (size_t at = 0; s->bytes.len - at >= MK__H2_FRAME_HEAD_BYTES;) {
        uint32_t len = get_head(s->bytes.p + at).len;
        if (len > MK__H2_FRAME_BYTES)
            return true;
        at += MK__H2_FRAME_HEAD_BYTES + len;
    }
    return false;
}

static unsigned count_setting(const struct step *s, unsigned setting)
{
    unsigned n = 0;
    for (size_t at = 0; at + MK__H2_FRAME_SETTING_BYTES <= s->frame.len; at += MK__H2_FRAME_SETTING_BYTES)
        n += (unsigned)(s->payload[at] << 8 | s->payload[at + 1]) == setting;
    return n;
}

static bool repeats_setting(const struct step *s)
{
    unsigned n = 0;
    for (unsigned setting = 1; setting <= MK__H2_SETTING_NO_RFC7540_PRIORITIES; setting++)
        n += count_setting(s, setting) > 1;
    return n;
}

static bool sets_priorities(const struct step *s)
{
    return count_setting(s, MK__H2_SETTING_NO_RFC7540_PRIORITIES);
}

static bool prioritizes_request(const struct step *s)
{
    return s->frame.len >= 4 && s->payload[3] % 2;
}

/* nghttp2 does not read updates that are longer, nor those for stream 0. */
static bool is_unread_update(const struct step *s)
{
    return s->frame.len > 32 || (s->frame.len >= 4 && !(mk__h2_frame_get32(s->payload) & INT32_MAX));
}

/* The outcomes that may differ for each type of frame, and when. The comparison ends there. */
static const struct {
    uint8_t type, ours, theirs;
    bool (*applies)(const struct step *s);
} choices[] = {
    /* RFC 9113 section 5.1: we end the connection for frames on streams that the client has closed or skipped, where
       nghttp2, which does not remember them, ignores the frames. */
    {MK__H2_FRAME_DATA, CONNECTION_ERROR, ACCEPTED, is_closed},
    {MK__H2_FRAME_HEADERS, CONNECTION_ERROR, ACCEPTED, is_closed},
    {MK__H2_FRAME_RST_STREAM, CONNECTION_ERROR, ACCEPTED, is_closed},
    {MK__H2_FRAME_WINDOW_UPDATE, CONNECTION_ERROR, ACCEPTED, is_closed},
    /* Section 5.1: behind END_STREAM they are an error of the stream; nghttp2 makes it one of the connection. */
    {MK__H2_FRAME_DATA, STREAM_ERROR, CONNECTION_ERROR, is_ended},
    {MK__H2_FRAME_HEADERS, STREAM_ERROR, CONNECTION_ERROR, is_ended_or_depends_on_itself}, /* RFC 7540 section 5.3.1 */
    /* Section 8.1.1: some heads are malformed for us only, and some get a status. */
    {MK__H2_FRAME_HEADERS, STREAM_ERROR, ACCEPTED, NULL},
    {MK__H2_FRAME_HEADERS, ANSWERED, ACCEPTED, NULL},
    {MK__H2_FRAME_HEADERS, ANSWERED, STREAM_ERROR, NULL},
    {MK__H2_FRAME_HEADERS, ACCEPTED, STREAM_ERROR, is_trailers_or_lacks_authority},
    /* Section 4.2: nghttp2 does not check the length of CONTINUATION frames. */
    {MK__H2_FRAME_HEADERS, CONNECTION_ERROR, ACCEPTED, has_long_frame},
    {MK__H2_FRAME_HEADERS, CONNECTION_ERROR, STREAM_ERROR, has_long_frame},
    /* Section 6.3: nghttp2 reads no PRIORITY frame if SETTINGS_NO_RFC7540_PRIORITIES was sent. */
    {MK__H2_FRAME_PRIORITY, STREAM_ERROR, ACCEPTED, is_live},
    {MK__H2_FRAME_PRIORITY, CONNECTION_ERROR, ACCEPTED, NULL},
    /* Section 6.5: settings count in their order, of which nghttp2 reads the last; a window that gets too large ends
       the connection (6.9.2). RFC 9218 section 2.1: the priorities should not change. */
    {MK__H2_FRAME_SETTINGS, CONNECTION_ERROR, ACCEPTED, repeats_setting},
    {MK__H2_FRAME_SETTINGS, CONNECTION_ERROR, STREAM_ERROR, NULL},
    {MK__H2_FRAME_SETTINGS, ACCEPTED, CONNECTION_ERROR, sets_priorities},
    /* Section 6.8: we do not need the number, which nghttp2 checks. */
    {MK__H2_FRAME_GOAWAY, ACCEPTED, CONNECTION_ERROR, NULL},
    /* Section 6.9: an increment of 0 is an error of the stream; nghttp2 makes it one of the connection. */
    {MK__H2_FRAME_WINDOW_UPDATE, STREAM_ERROR, CONNECTION_ERROR, is_live},
    /* RFC 9218 section 7.1. nghttp2 limits the streams that are to come; we forget the oldest. */
    {MK__H2_FRAME_PRIORITY_UPDATE, CONNECTION_ERROR, ACCEPTED, is_unread_update},
    {MK__H2_FRAME_PRIORITY_UPDATE, ACCEPTED, CONNECTION_ERROR, prioritizes_request},
};

static bool is_choice(const struct step *s)
{
    for (size_t i = 0; i < MK_COUNT_OF(choices); i++)
        if (choices[i].type == s->frame.type && choices[i].ours == ours.outcome &&
            choices[i].theirs == theirs.outcome && (!choices[i].applies || choices[i].applies(s)))
            return true;
    return false;
}

/* ── the comparison ── */

static void fail(const struct step *s, const char *what)
{
    static const char *const names[] = {"accepted", "stream error", "answered", "connection error"};
    fprintf(stderr, "type %u, flags %u, stream %d, %u bytes: %s differ: %s, nghttp2: %s %s\n", s->frame.type,
            s->frame.flags, s->frame.stream_id, s->frame.len, what, names[ours.outcome], names[theirs.outcome],
            theirs.refused);
    abort();
}

/*
 * nghttp2 reports the frames that it reads, with the flags that it knows; not the CONTINUATION frames of a block that
 * it ignores. A session may have ended with GOAWAY.
 */
static bool is_same_frame(const struct mk__h2_frame *our, const struct mk__h2_frame *their)
{
    if (our->type == NO_FRAME || their->type == NO_FRAME ||
        (our->type == MK__H2_FRAME_CONTINUATION && their->type == MK__H2_FRAME_HEADERS))
        return true;
    return our->type == their->type && our->len == their->len && our->stream_id == their->stream_id &&
           (our->flags & their->flags) == their->flags;
}

static void compare_delivery(const struct step *s)
{
    if (!is_same_frame(&ours.frame, &theirs.frame))
        fail(s, "frames");
    if (ours.heads != theirs.heads)
        fail(s, "heads");
    if (ours.body != theirs.body || ours.trailers != theirs.trailers)
        fail(s, "bodies");
}

/* Returns whether the streams of both are in the same states, so that the next frame can be compared. */
static bool compare(const struct step *s)
{
    if (ours.over_limit)
        return false;
    if (ours.outcome != theirs.outcome) {
        if (!is_choice(s))
            fail(s, "outcomes");
        return false;
    }
    if (ours.outcome == CONNECTION_ERROR || theirs.tunnel)
        return false;
    if (ours.settings_acks != theirs.settings_acks || ours.pings != theirs.pings || ours.reset_id != theirs.reset_id)
        fail(s, "replies");
    if (ours.outcome == ACCEPTED)
        compare_delivery(s);
    return s->frame.type != MK__H2_FRAME_GOAWAY; /* behind which each closes the connection when it likes */
}

static void play(struct mk_test_client *c, nghttp2_session *session, struct mk_str in)
{
    struct step s = {.last_id = 0};
    for (size_t len; (len = find_end(in)) > 0; in = mk_str(in.p + len, in.len - len)) {
        s.bytes = mk_str(in.p, len);
        s.frame = get_head(in.p);
        s.payload = (const uint8_t *)in.p + MK__H2_FRAME_HEAD_BYTES;
        s.state = find_state(session, s.frame.stream_id);
        send_ours(c, s.bytes);
        send_theirs(session, s.bytes);
        if (!compare(&s))
            return;
        if (s.frame.type == MK__H2_FRAME_HEADERS && s.frame.stream_id > s.last_id)
            s.last_id = s.frame.stream_id;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mk_test_fixture w;
    if (size > INPUT_BYTES_MAX)
        return 0;
    struct mk_test_client *c = open_ours(&w);
    nghttp2_session *session = open_theirs();
    play(c, session, str_of(data, size));
    nghttp2_session_del(session);
    mk_test_fixture_close(&w); /* aborts when a byte is left */
    return 0;
}
