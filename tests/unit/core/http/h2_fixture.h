// SPDX-License-Identifier: Apache-2.0
/*
 * What the tests of HTTP/2 connections share: a client that writes raw frames, and writes down what it hears.
 *
 *     1:200,content-length=5 1:"hello"!  3:RST(2) GOAWAY(3,0) 1:+4096 SETTINGS ACK PING PONG
 *
 * "!" is the end of a stream; DATA frames of one stream in a row are one piece of text, or their number of bytes where
 * that is long: 1:#40000. Fields that every response has are left out. Expectations are patterns of fnmatch(3).
 */
#ifndef MK_UNIT_HTTP_H2_FIXTURE_H
#define MK_UNIT_HTTP_H2_FIXTURE_H

#include "http/h1_fixture.h"

#include <fnmatch.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

enum { H2_STREAMS = 256, H2_TEXT = 100 };

struct mk_test_h2 {
    struct mk_test_client *end;
    nghttp2_hd_inflater *inflater;
    struct mk_test_bytes in;         /* what is not a whole frame yet */
    struct mk_test_bytes log, turns; /* what was heard; the digits of the streams whose DATA came, in turn */
    struct mk_test_bytes run;        /* DATA of one stream in a row */
    int32_t run_of;                  /* 0: none */
    size_t data[H2_STREAMS];         /* bytes, by stream / 2 */
    bool patterned;                  /* each byte must be mk_test_byte() of its place */
};

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define HEAD(method, path) ":method " method "|:scheme http|:path " path "|:authority h"
#define HELLO_OF(id) #id ":200,content-length=5 " #id ":\"hello\"!"

enum { END_STREAM = NGHTTP2_FLAG_END_STREAM, END_HEADERS = NGHTTP2_FLAG_END_HEADERS };

/* ── bytes that a test keeps ── */

static inline void h2_append(struct mk_test_bytes *b, const void *data, size_t len)
{
    if (b->len + len + 1 > b->size) {
        b->size = (b->len + len + 1) * 2;
        b->p = realloc(b->p, b->size);
        assert_non_null(b->p);
    }
    if (len)
        memcpy(b->p + b->len, data, len);
    b->len += len;
    b->p[b->len] = '\0';
}

static inline void h2_forget(struct mk_test_bytes *b, size_t len)
{
    memmove(b->p, b->p + len, b->len - len + 1);
    b->len -= len;
}

#define h2_logf(t, ...) \
    do { \
        char logged_[512]; \
        h2_append(&(t)->log, logged_, (size_t)snprintf(logged_, sizeof(logged_), __VA_ARGS__)); \
    } while (0)

/* A byte of a large body: it tells its place. */
static inline char mk_test_byte(size_t n)
{
    return (char)('a' + n / 7 % 25);
}

/* ── what the client says ── */

static inline void h2_put32(uint8_t *to, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(n >> (24 - 8 * i));
}

static inline uint32_t h2_get(const char *from, size_t bytes)
{
    uint32_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n = n << 8 | (uint8_t)from[i];
    return n;
}

static inline void h2_frame(struct mk_test_h2 *t, uint8_t type, uint8_t flags, int32_t id, struct mk_str payload)
{
    uint8_t head[9] = {(uint8_t)(payload.len >> 16), (uint8_t)(payload.len >> 8), (uint8_t)payload.len, type, flags};
    h2_put32(head + 5, (uint32_t)id);
    mk_test_send(t->end, mk_str((char *)head, sizeof(head)));
    mk_test_send(t->end, payload);
}

static inline void h2_number(struct mk_test_h2 *t, uint8_t type, int32_t id, uint32_t n)
{
    uint8_t bytes[4];
    h2_put32(bytes, n);
    h2_frame(t, type, 0, id, mk_str((char *)bytes, 4));
}

static inline void h2_window(struct mk_test_h2 *t, int32_t id, uint32_t bytes)
{
    h2_number(t, NGHTTP2_WINDOW_UPDATE, id, bytes);
}

static inline void h2_rst(struct mk_test_h2 *t, int32_t id)
{
    h2_number(t, NGHTTP2_RST_STREAM, id, NGHTTP2_CANCEL);
}

static inline void h2_settings(struct mk_test_h2 *t, uint16_t key, uint32_t value)
{
    uint8_t bytes[6] = {(uint8_t)(key >> 8), (uint8_t)key};
    h2_put32(bytes + 2, value);
    h2_frame(t, NGHTTP2_SETTINGS, 0, 0, mk_str((char *)bytes, 6));
}

static inline void h2_ping(struct mk_test_h2 *t, bool ack)
{
    h2_frame(t, NGHTTP2_PING, ack ? NGHTTP2_FLAG_ACK : 0, 0, MK_STR("\0\0\0\0\0\0\0\0"));
}

static inline void h2_goaway(struct mk_test_h2 *t)
{
    h2_frame(t, NGHTTP2_GOAWAY, 0, 0, MK_STR("\0\0\0\0\0\0\0\0"));
}

static inline void h2_data(struct mk_test_h2 *t, int32_t id, uint8_t flags, struct mk_str bytes)
{
    for (size_t at = 0; at == 0 || at < bytes.len; at += 16384) {
        size_t n = bytes.len - at < 16384 ? bytes.len - at : 16384;
        h2_frame(t, NGHTTP2_DATA, at + n == bytes.len ? flags : 0, id, mk_str(bytes.p + at, n));
    }
}

static inline void h2_put_string(struct mk_test_bytes *to, struct mk_str s)
{
    size_t n = s.len;
    uint8_t byte = n < 127 ? (uint8_t)n : 127;
    h2_append(to, &byte, 1);
    for (n -= byte; byte >= 127; n >>= 7) {
        byte = n < 128 ? (uint8_t)n : (uint8_t)(n | 128);
        h2_append(to, &byte, 1);
    }
    h2_append(to, s.p, s.len);
}

/* Literals without an index (RFC 7541 section 6.2.2): "name value|name value". Freed by the caller. */
static inline struct mk_test_bytes h2_encode(const char *fields)
{
    struct mk_test_bytes to = {0};
    for (const char *at = fields; *at;) {
        const char *name_end = strchr(at, ' '), *end = strchrnul(at, '|');
        assert_true(name_end && name_end < end);
        h2_append(&to, "", 1);
        h2_put_string(&to, mk_str(at, (size_t)(name_end - at)));
        h2_put_string(&to, mk_str(name_end + 1, (size_t)(end - name_end - 1)));
        at = *end ? end + 1 : end;
    }
    return to;
}

static inline void h2_head(struct mk_test_h2 *t, int32_t id, uint8_t flags, const char *fields)
{
    struct mk_test_bytes block = h2_encode(fields);
    h2_frame(t, NGHTTP2_HEADERS, flags, id, mk_str(block.p, block.len));
    free(block.p);
}

/* A whole request without a body. */
static inline void h2_get_path(struct mk_test_h2 *t, int32_t id, const char *path)
{
    char fields[256];
    snprintf(fields, sizeof(fields), ":method GET|:scheme http|:path %s|:authority h", path);
    h2_head(t, id, END_HEADERS | END_STREAM, fields);
}

static inline void h2_post(struct mk_test_h2 *t, int32_t id)
{
    h2_head(t, id, END_HEADERS, HEAD("POST", "/"));
}

/* ── what it hears ── */

static inline bool is_text(const struct mk_test_bytes *b)
{
    for (size_t i = 0; i < b->len; i++)
        if ((uint8_t)b->p[i] < ' ' || b->p[i] == '"')
            return false;
    return b->len < H2_TEXT;
}

static inline void h2_log_run(struct mk_test_h2 *t, bool end)
{
    if (!t->run_of)
        return;
    if (t->run.len == 0)
        h2_logf(t, " %d:", t->run_of);
    else if (is_text(&t->run))
        h2_logf(t, " %d:\"%s\"", t->run_of, t->run.p);
    else
        h2_logf(t, " %d:#%zu", t->run_of, t->run.len);
    h2_logf(t, "%s", end ? "!" : "");
    t->run_of = 0;
    t->run.len = 0;
}

static inline void h2_hear_data(struct mk_test_h2 *t, int32_t id, uint8_t flags, const char *p, size_t len)
{
    size_t *at = &t->data[id / 2 % H2_STREAMS];
    char digit = (char)('0' + id % 10);
    if (t->run_of != id)
        h2_log_run(t, false);
    t->run_of = id;
    h2_append(&t->turns, &digit, 1);
    for (size_t i = 0; i < len && t->patterned; i++)
        if (p[i] != mk_test_byte(*at + i))
            fail_msg("byte %zu of stream %d is wrong", *at + i, id);
    *at += len;
    h2_append(&t->run, p, len);
    if (flags & END_STREAM)
        h2_log_run(t, true);
}

static inline void h2_hear_field(struct mk_test_h2 *t, int32_t id, const nghttp2_nv *nv)
{
    struct mk_str name = mk_str((char *)nv->name, nv->namelen);
    for (size_t i = 0; i < name.len; i++)
        assert_false(name.p[i] >= 'A' && name.p[i] <= 'Z');
    if (mk_str_eq(name, MK_STR(":status")))
        h2_logf(t, " %d:%.*s", id, (int)nv->valuelen, (char *)nv->value);
    else if (!mk_str_eq(name, MK_STR("server")) && !mk_str_eq(name, MK_STR("date")))
        h2_logf(t, ",%.*s=%.*s", MK_STR_ARG(name), (int)nv->valuelen, (char *)nv->value);
}

static inline void h2_hear_head(struct mk_test_h2 *t, int32_t id, uint8_t flags, const char *p, size_t len)
{
    nghttp2_nv nv;
    int inflated = 0;
    assert_true(flags & END_HEADERS);
    do {
        ssize_t n = nghttp2_hd_inflate_hd2(t->inflater, &nv, &inflated, (const uint8_t *)p, len, 1);
        assert_true(n >= 0);
        p += n;
        len -= (size_t)n;
        if (inflated & NGHTTP2_HD_INFLATE_EMIT)
            h2_hear_field(t, id, &nv);
    } while (!(inflated & NGHTTP2_HD_INFLATE_FINAL));
    nghttp2_hd_inflate_end_headers(t->inflater);
    h2_logf(t, "%s", flags & END_STREAM ? "!" : "");
}

static inline void h2_hear(struct mk_test_h2 *t, uint8_t type, uint8_t flags, int32_t id, const char *p, size_t len)
{
    bool ack = flags & NGHTTP2_FLAG_ACK;
    if (type == NGHTTP2_DATA) {
        h2_hear_data(t, id, flags, p, len);
        return;
    }
    h2_log_run(t, false);
    if (type == NGHTTP2_HEADERS)
        h2_hear_head(t, id, flags, p, len);
    else if (type == NGHTTP2_RST_STREAM)
        h2_logf(t, " %d:RST(%u)", id, h2_get(p, 4));
    else if (type == NGHTTP2_GOAWAY)
        h2_logf(t, " GOAWAY(%d,%u)", (int32_t)h2_get(p, 4), h2_get(p + 4, 4));
    else if (type == NGHTTP2_WINDOW_UPDATE)
        h2_logf(t, " %d:+%u", id, h2_get(p, 4));
    else if (type == NGHTTP2_SETTINGS)
        h2_logf(t, ack ? " ACK" : " SETTINGS");
    else if (type == NGHTTP2_PING)
        h2_logf(t, ack ? " PONG" : " PING");
    else
        fail_msg("a frame of type %u", type);
}

/* All that came until now. */
static inline void h2_listen(struct mk_test_h2 *t)
{
    struct mk_str all = mk_test_received(t->end);
    size_t at = 0;
    h2_append(&t->in, all.p, all.len);
    while (t->in.len - at >= 9) {
        const char *p = t->in.p + at;
        size_t len = h2_get(p, 3);
        assert_true(len <= 16384);
        if (t->in.len - at < 9 + len)
            break;
        h2_hear(t, (uint8_t)p[3], (uint8_t)p[4], (int32_t)h2_get(p + 5, 4), p + 9, len);
        at += 9 + len;
    }
    h2_forget(&t->in, at);
}

/* Settles, and compares all that was heard since the last time. */
#define h2_expect(t, pattern) \
    do { \
        struct mk_test_h2 *t_ = (t); \
        mk_test_settle(&w); \
        h2_listen(t_); \
        h2_log_run(t_, false); \
        const char *log_ = t_->log.len ? t_->log.p + 1 : ""; \
        if (fnmatch(pattern, log_, 0) != 0) \
            fail_msg("heard \"%s\", not \"%s\"", log_, pattern); \
        t_->log.len = t_->turns.len = 0; \
    } while (0)

/* Speaks HTTP/2 from now on. */
static inline struct mk_test_h2 h2_begin(struct mk_test_client *end)
{
    struct mk_test_h2 t = {.end = end};
    assert_non_null(end);
    assert_int_equal(nghttp2_hd_inflate_new(&t.inflater), 0);
    h2_append(&t.in, "", 0);
    h2_append(&t.log, "", 0);
    h2_append(&t.turns, "", 0);
    mk_test_send(end, MK_STR(PREFACE));
    h2_frame(&t, NGHTTP2_SETTINGS, 0, 0, MK_STR(""));
    return t;
}

static inline void h2_free(struct mk_test_h2 *t)
{
    nghttp2_hd_inflate_del(t->inflater);
    free(t->in.p);
    free(t->log.p);
    free(t->turns.p);
    free(t->run.p);
}

/* A connection that has exchanged its settings. */
static inline struct mk_test_h2 h2_connect(void)
{
    struct mk_test_h2 t = h2_begin(mk_test_connect(&w, MK_STR("")));
    h2_frame(&t, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, MK_STR(""));
    h2_expect(&t, "SETTINGS 0:+196609 ACK");
    return t;
}

static inline struct mk_test_h2 h2_open(handler_fn *handler)
{
    open_fixture(handler);
    return h2_connect();
}

/* The end of a test with one client. */
static inline void h2_close(struct mk_test_h2 *t)
{
    h2_free(t);
    close_fixture();
}

/* ── handlers ── */

static inline void give_a_part(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    mk_response_write_ref(req, MK_STR("part"));
}

static inline void pause_body(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    read_all(req, fixture);
    mk_request_pause(req);
}

#define PAGE(status) "1:" #status ",content-type=text/html; charset=utf-8,content-length=* 1:#*!"

#define LENGTH(n) HEAD("POST", "/") "|content-length " #n

static inline void collected(struct mk_request *req, struct mk_str data, bool end, void *ctx)
{
    (void)end, (void)ctx;
    if (mk_response_header(req, MK_STR("X-Long"), MK_STR("a value that is copied")) < 0 ||
        mk_response_write(req, data) < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

static inline void collect(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_request_collect(req, 0, collected, NULL);
}

/* A body of so many bytes, by the path: "/100000". "/wait..." gets no answer yet. */
struct h2_rest {
    size_t at, left;
};

static inline ssize_t h2_generate(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct h2_rest *rest = ctx;
    size_t n = rest->left < size ? rest->left : size;
    (void)req;
    for (size_t i = 0; i < n; i++)
        to[i] = mk_test_byte(rest->at + i);
    rest->at += n;
    rest->left -= n;
    return (ssize_t)n;
}

static inline void h2_give(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_str path = mk_request_path(req);
    remember(req, fixture);
    if (path.p[1] == 'w')
        return;
    struct h2_rest *rest = mk_arena_zalloc(mk_request_arena(req), sizeof(*rest));
    assert_non_null(rest);
    rest->left = strtoul(path.p + 1, NULL, 10);
    mk_response_set_length(req, rest->left);
    mk_response_generate(req, h2_generate, rest);
    mk_response_end(req);
}

static inline void h2_open_windows(struct mk_test_h2 *t, uint32_t bytes)
{
    h2_settings(t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bytes);
    h2_window(t, 0, INT32_MAX - 65535);
}

static inline struct mk_test_h2 h2_open_giving(uint32_t window)
{
    struct mk_test_h2 t = h2_open(h2_give);
    t.patterned = true;
    h2_open_windows(&t, window);
    h2_expect(&t, "ACK");
    return t;
}

static inline void h2_ask(struct mk_test_h2 *t, int32_t id, const char *path, const char *priority)
{
    char fields[256];
    snprintf(fields, sizeof(fields), ":method GET|:scheme http|:path %s|:authority h%s%s", path,
             priority ? "|priority " : "", priority ? priority : "");
    h2_head(t, id, END_HEADERS | END_STREAM, fields);
}

/* Opens the windows so far that nothing waits for them. */
static inline void h2_open_wide(struct mk_test_h2 *t)
{
    t->patterned = true;
    h2_settings(t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX);
    h2_window(t, 0, INT32_MAX - 65535);
    h2_expect(t, "ACK");
}

#endif
