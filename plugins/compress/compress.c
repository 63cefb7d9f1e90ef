// SPDX-License-Identifier: Apache-2.0
/*
 * compress: compresses the responses of all plugins for clients that accept a coding (RFC 9110 section 8.4). This file
 * decides which ones and changes their headers; filter.c compresses the bodies.
 */
#include "compress.h"

#include <monkey/base/pattern.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>

static bool is_type_name(struct mk_str s)
{
    return mk_str_is_name(s, "!#$&^_.+-"); /* RFC 6838 section 4.2 */
}

bool match_is_type_pattern(struct mk_str s)
{
    const char *slash = memchr(s.p, '/', s.len);
    if (!slash)
        return s.len > 2 && mk_str_starts(s, MK_STR("*+")) && is_type_name(mk_str_after(s, 2));
    struct mk_str type = mk_str(s.p, (size_t)(slash - s.p)), subtype = mk_str(slash + 1, s.len - type.len - 1);
    return is_type_name(type) && (is_type_name(subtype) || mk_str_eq(subtype, MK_STR("*")));
}

bool match_type(struct mk_str pattern, struct mk_str type)
{
    assert(pattern.len > 0);
    type = mk_str_trim(mk_str_until(type, ";"));
    if (mk_str_ieq(pattern, type))
        return true;
    if (mk_str_ieq(type, MK_STR("text/event-stream")))
        return false;
    if (pattern.p[0] == '*')
        return type.len >= pattern.len && mk_str_iends(type, mk_str_after(pattern, 1));
    size_t n = pattern.len - 1;
    return pattern.p[n] == '*' && type.len > n && mk_str_ieq(mk_str(pattern.p, n), mk_str(type.p, n));
}

extern const struct mk_plugin mk_plugin_compress;

/* ── directives ── */

struct compress_rule {
    struct mk_pattern match;
    struct mk_conf_list coding_names, types;
    int64_t zstd_level, br_level, gzip_level;
    uint64_t size_min;
    /* set by check_rule(): */
    uint8_t codings[MK_CODING_COUNT];
    unsigned n_codings;
};

static const struct mk_conf_key server_keys[] = {
    MK_CONF_KEY_INT(struct budget_limits, cpu_percent, "CpuLimit", "0",
                    "The processor time of a worker that compressing may take, in percent. When it is used up, new "
                    "responses are not compressed, and those in progress wait for the next tenth of a second. 0: no "
                    "limit.",
                    .min = 0, .max = 100),
    MK_CONF_KEY_INT(
        struct budget_limits, streams, "Streams", "64",
        "How many responses each worker compresses at the same time; others are not compressed. Together they "
        "use at most half of `MemoryLimit`.",
        .min = 0, .max = 100000),
    {0},
};

static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_PATTERN(struct compress_rule, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.json`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_CONF_KEY_LIST(
        struct compress_rule, coding_names, "Codings", "zstd br gzip",
        "The codings to use: `zstd`, `br`, `gzip`. Of those with the highest weight in Accept-Encoding the "
        "first is used. `none`: responses for these paths are not compressed."),
    MK_CONF_KEY_INT(struct compress_rule, zstd_level, "ZstdLevel", "3", "The level of zstd.", .min = 1,
                    .max = ENCODER_ZSTD_MAX),
    MK_CONF_KEY_INT(struct compress_rule, br_level, "BrotliLevel", "4", "The level of brotli.", .min = 0,
                    .max = ENCODER_BR_MAX),
    MK_CONF_KEY_INT(struct compress_rule, gzip_level, "GzipLevel", "4", "The level of gzip.", .min = 1,
                    .max = ENCODER_GZIP_MAX),
    MK_CONF_KEY_SIZE(struct compress_rule, size_min, "MinSize", "1K",
                     "Smaller bodies are not compressed. Bodies of unknown length are.", .unit = "B"),
    MK_CONF_KEY_LIST(struct compress_rule, types, "Types",
                     "text/* *+json *+xml *+text application/json application/javascript application/x-javascript "
                     "application/xml application/x-ndjson application/yaml application/toml application/rtf "
                     "application/sql application/graphql application/wasm application/vnd.ms-fontobject "
                     "font/otf font/ttf image/bmp image/vnd.microsoft.icon image/x-icon",
                     "The media types to compress: `text/html`, `text/*`, or `*+json`. A star does not include "
                     "text/event-stream, which must be named.",
                     .flags = MK_CONF_REPEAT),
    {0},
};

static bool find_coding(struct mk_str name, uint8_t *ret)
{
    for (unsigned i = MK_CODING_IDENTITY + 1; i < MK_CODING_COUNT; i++)
        if (mk_str_eq(mk_coding_name(i), name)) {
            *ret = (uint8_t)i;
            return true;
        }
    return false;
}

static void check_codings(const struct mk_conf_check *check, struct compress_rule *r)
{
    const struct mk_conf_list *names = &r->coding_names;
    if (names->n == 1 && mk_str_eq(names->items[0], MK_STR("none")))
        return;
    for (uint32_t i = 0; i < names->n; i++) {
        uint8_t coding;
        if (!find_coding(names->items[i], &coding) || memchr(r->codings, coding, r->n_codings))
            mk_conf_error_nth(check, offsetof(struct compress_rule, coding_names), i,
                              "\"Codings\" takes zstd, br and gzip, each once at most, or none alone, not \"%.*s\"",
                              MK_STR_ARG(names->items[i]));
        else
            r->codings[r->n_codings++] = coding;
    }
}

static void check_rule(const struct mk_conf_check *check, void *section)
{
    struct compress_rule *r = section;
    check_codings(check, r);
    for (uint32_t i = 0; i < r->types.n; i++)
        if (!match_is_type_pattern(r->types.items[i]))
            mk_conf_error_nth(
                check, offsetof(struct compress_rule, types), i,
                "\"%.*s\" is not a media type: write text/html, text/* for all texts, or *+json for all that end "
                "with it",
                MK_STR_ARG(r->types.items[i]));
}

static const struct mk_conf_short_value short_values[] = {{"On", NULL}, {"Off", "none"}, {0}};

static const struct mk_conf_short_form short_form = {
    .name = "Compress",
    .key = "Codings",
    .values = short_values,
    .doc = MK_CONF_DOC("Compresses responses, or does not: `Compress On`, `Compress /downloads Off`."),
};

enum { SERVER, HOST };

static const struct mk_conf_section sections[] = {
    {.name = "COMPRESS",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct budget_limits),
     .keys = server_keys,
     .doc = MK_CONF_DOC("Limits of compressing for each worker. The hosts choose which responses are compressed.")},
    {.name = "COMPRESS",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct compress_rule),
     .keys = host_keys,
     .short_form = &short_form,
     .check = check_rule,
     .doc = MK_CONF_DOC("Compresses responses of this host. The first section that matches a path is used.")},
    {0},
};

static const struct compress_rule *find_rule(const struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_state(req, &mk_plugin_compress);
    const void *found = NULL; /* also if a pattern fails on the path: it is not compressed */
    if (host)
        mk_host_conf_match(host, &sections[HOST], offsetof(struct compress_rule, match), mk_request_path(req), &found);
    const struct compress_rule *r = found;
    return r && r->n_codings ? r : NULL;
}

/* ── which responses ── */

/* Returns true if a header of this name has `word` in its list. */
static bool has_header_word(const struct mk_request *req, struct mk_str field, struct mk_str word)
{
    struct mk_str name, value;
    for (unsigned n = 0; mk_response_header_at(req, n, &name, &value); n++)
        if (mk_str_ieq(name, field) && mk_str_list_has(value, word))
            return true;
    return false;
}

static bool has_header(const struct mk_request *req, struct mk_str name)
{
    return mk_response_get_header(req, name).p;
}

static bool is_type_compressible(const struct compress_rule *r, struct mk_str type)
{
    for (uint32_t i = 0; type.p && i < r->types.n; i++)
        if (match_type(r->types.items[i], type))
            return true;
    return false;
}

/*
 * Returns true for successes and errors with content, and for 304, which replaces a 200. Ranges and deltas (206, 226)
 * must not be changed; redirects are too small.
 */
static bool is_status_compressible(int status)
{
    return status == 304 || status == 200 || status == 201 || status == 202 || status == 203 || status == 207 ||
           status >= 400;
}

/*
 * Returns true if it would be compressed for a client that accepts all codings. A 304 that a handler has made itself
 * may have neither the length nor the type of the 200: then that may have been compressed.
 */
static bool is_compressible(const struct mk_request *req, const struct compress_rule *r, uint64_t *ret_size)
{
    uint64_t size;
    struct mk_str type = mk_response_get_header(req, MK_STR("Content-Type"));
    bool is_304 = mk_response_get_status(req) == 304, is_known = mk_response_get_length(req, &size);
    *ret_size = is_known && !(is_304 && size == 0) ? size : ENCODER_SIZE_UNKNOWN;
    return is_status_compressible(mk_response_get_status(req)) && mk_request_method(req) != MK_CONNECT &&
           *ret_size > 0 && *ret_size >= r->size_min && (is_type_compressible(r, type) || (is_304 && !type.p)) &&
           !has_header(req, MK_STR("Content-Encoding")) && !has_header(req, MK_STR("Content-Range")) &&
           !has_header_word(req, MK_STR("Cache-Control"), MK_STR("no-transform"));
}

/* ── headers ── */

/* Tells caches that the bytes depend on Accept-Encoding. Returns 0 or -errno. */
static int add_vary(struct mk_request *req)
{
    if (has_header_word(req, MK_STR("Vary"), MK_STR("Accept-Encoding")) ||
        has_header_word(req, MK_STR("Vary"), MK_STR("*")))
        return 0;
    return mk_response_header_ref(req, MK_STR("Vary"), MK_STR("Accept-Encoding"));
}

/* A strong tag would be wrong for other bytes (RFC 9110 section 8.8.1). Without memory, removes the tag. */
static void weaken_etag(struct mk_request *req)
{
    struct mk_str etag = mk_response_get_header(req, MK_STR("ETag"));
    if (!etag.p || mk_str_starts(etag, MK_STR("W/")))
        return;
    char *weak = mk_arena_alloc(mk_request_arena(req), etag.len + 2);
    mk_response_header_remove(req, MK_STR("ETag"));
    if (!weak)
        return;
    memcpy(weak, "W/", 2);
    memcpy(weak + 2, etag.p, etag.len);
    mk_response_header_ref(req, MK_STR("ETag"), mk_str(weak, etag.len + 2));
}

/* Removes headers about the uncompressed bytes: ranges and digests (RFC 9530: digests are of the coded content). */
static void remove_stale_headers(struct mk_request *req)
{
    static const struct mk_str names[] = {MK_STR("Accept-Ranges"), MK_STR("Content-MD5"), MK_STR("Content-Digest"),
                                          MK_STR("Repr-Digest"), MK_STR("Digest")};
    for (size_t i = 0; i < MK_COUNT_OF(names); i++)
        mk_response_header_remove(req, names[i]);
}

/* ── responses ── */

/* For HEAD: marks the length as unknown, as for GET. */
static ssize_t read_unchanged(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    (void)ctx;
    return mk_filter_read(filter, to, size);
}

static int start_encoding(struct mk_request *req, const struct compress_rule *r, enum mk_coding coding, uint64_t size)
{
    assert(coding > MK_CODING_IDENTITY && coding < MK_CODING_COUNT);
    const struct mk_host *host = mk_request_host_state(req, &mk_plugin_compress);
    const int64_t levels[MK_CODING_COUNT] = {
        [MK_CODING_GZIP] = r->gzip_level, [MK_CODING_BR] = r->br_level, [MK_CODING_ZSTD] = r->zstd_level};
    if (mk_response_header_ref(req, MK_STR("Content-Encoding"), mk_coding_name(coding)) < 0)
        return -ENOMEM;
    int err = mk_request_method(req) == MK_HEAD
                  ? mk_response_filter(req, read_unchanged, NULL)
                  : filter_start(req, coding, (int)levels[coding], size, mk_host_server_conf(host, &sections[SERVER]),
                                 mk_request_worker(req));
    if (err < 0)
        mk_response_header_remove(req, MK_STR("Content-Encoding"));
    return err;
}

/* Reads Accept-Encoding. Returns false if the request forbids transformation. */
static bool parse_accept(struct mk_request *req, struct mk_accept *ret)
{
    if (mk_str_list_has(mk_request_header_by_name(req, MK_STR("Cache-Control")), MK_STR("no-transform")))
        return false;
    mk_accept_encoding(mk_request_header(req, MK_HEADER_ACCEPT_ENCODING), ret);
    return true;
}

/* Starts the best coding for the client; if there is no room for it, the next one. */
static void compress_response(struct mk_request *req, const struct compress_rule *r, uint64_t size)
{
    struct mk_accept accept;
    enum mk_coding coding;
    if (!parse_accept(req, &accept))
        return;
    while (mk_accept_next(&accept, r->codings, r->n_codings, &coding))
        if (start_encoding(req, r, coding, size) == 0) {
            weaken_etag(req);
            remove_stale_headers(req);
            return;
        }
}

/* A 304 has the ETag of the 200 for the same request: RFC 9110 section 15.4.5. */
static void weaken_etag_of_304(struct mk_request *req, const struct compress_rule *r)
{
    struct mk_accept accept;
    enum mk_coding coding;
    if (parse_accept(req, &accept) && mk_accept_next(&accept, r->codings, r->n_codings, &coding))
        weaken_etag(req);
}

/* A 206 is not compressed, but has the Vary of the 200 (RFC 9110 section 15.3.7). A multipart one has not the file's
 * type. */
static void add_vary_to_206(struct mk_request *req, const struct compress_rule *r)
{
    struct mk_str type = mk_response_get_header(req, MK_STR("Content-Type"));
    if (type.p && !has_header(req, MK_STR("Content-Range")))
        type = mk_request_mime(req, mk_request_path(req));
    if (is_type_compressible(r, type) && !has_header(req, MK_STR("Content-Encoding")) &&
        !has_header_word(req, MK_STR("Cache-Control"), MK_STR("no-transform")))
        add_vary(req);
}

static void change_response(struct mk_request *req)
{
    const struct compress_rule *r = find_rule(req);
    uint64_t size;
    if (!r)
        return;
    if (mk_response_get_status(req) == 206)
        add_vary_to_206(req, r);
    else if (!is_compressible(req, r, &size) || add_vary(req) < 0)
        return;
    else if (mk_response_get_status(req) == 304)
        weaken_etag_of_304(req, r);
    else
        compress_response(req, r, size);
}

static int start_process(void **ret_state)
{
    (void)ret_state;
    coding_counters_open();
    return 0;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    *ret_state = mk_host_conf(host, &sections[HOST]) ? host : NULL; /* a host without a section costs nothing */
    return mk_host_check_patterns(host, &sections[HOST], offsetof(struct compress_rule, match));
}

static void explain_compression(const struct mk_host *host, struct mk_explain *e)
{
    const void *found = NULL;
    if (e->phase != MK_EXPLAIN_RESPONSE || !mk_host_conf(host, &sections[HOST]) ||
        mk_host_conf_match(host, &sections[HOST], offsetof(struct compress_rule, match), e->path, &found) < 0 || !found)
        return;
    const struct compress_rule *r = found;
    struct mk_str accepted = mk_explain_header(e, MK_STR("Accept-Encoding"));
    if (!r->n_codings)
        mk_explain_add(e, host, r, MK_EXPLAIN_NOTE, "[COMPRESS] is off for the path");
    else if (!accepted.p)
        mk_explain_add(e, host, r, MK_EXPLAIN_NOTE, "[COMPRESS] holds, but the request has no Accept-Encoding");
    else
        mk_explain_add(e, host, r, MK_EXPLAIN_MAYBE,
                       "[COMPRESS] compresses the response if its type is one of Types and it has %llu bytes or more",
                       (unsigned long long)r->size_min);
}

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_compression};

MK_PLUGIN(compress) = {
    MK_PLUGIN_HEAD("compress", "2.0.0", "compresses responses: zstd, brotli, gzip"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED,
    .sections = sections,
    .start = start_process,
    .host_start = start_host,
    .on_response = change_response,
    .inspection = &inspect_hooks,
};
