// SPDX-License-Identifier: Apache-2.0
/*
 * respond: sends fixed answers, a text or a file with a status and headers. The first section whose paths and
 * conditions fit is used, before other plugins look for content.
 */
#include "respond.h"

#include <monkey/base/file.h>
#include <monkey/counters.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/kit/header_line.h>
#include <monkey/kit/open_file.h>
#include <monkey/kit/variables.h>
#include <monkey/program.h>

#include <errno.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_respond;

/* ── directives ── */

enum { HEADERS_MAX = 32, HEADERS_BYTES_MAX = 8192 };

static int parse_header(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct respond_headers *headers = field;
    struct mk_header_field line, *items;
    int err = mk_header_line_parse(value, "Header", true, &line, arena, error);
    if (err < 0)
        return err;
    if (headers->n == HEADERS_MAX || (headers->bytes += line.name.len + line.value.len) > HEADERS_BYTES_MAX) {
        mk_buf_addf(error, "a section has at most %d headers with %d bytes", HEADERS_MAX, HEADERS_BYTES_MAX);
        return -EINVAL;
    }
    if (respond_is_type(line.name) && headers->type.p)
        return mk_conf_fail(error, "a line before this one has the Content-Type");
    items = mk_arena_grow(arena, headers->items, headers->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    items[headers->n++] = line;
    headers->items = items;
    if (respond_is_type(line.name)) {
        headers->type = line.value;
        headers->nth_type = headers->n - 1;
    }
    return 0;
}

/* Reads the path of a file that can be sent now. Each request opens it again. */
static int parse_file(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *path = field;
    struct mk_file file;
    int err = mk_conf_read_path(value, value->text, path, arena, error);
    if (err < 0)
        return err;
    int fd = respond_open_file(path->p, 0);
    err = fd < 0 ? fd : mk_open_file_describe(fd, &file);
    if (fd >= 0)
        close(fd);
    if (err == 0)
        return 0;
    mk_buf_adds(error, MK_STR("the file "));
    mk_file_add_read_error(error, err == -ENXIO ? -EINVAL : err, 0);
    return err;
}

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct respond_rule, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.php`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_WHEN_KEY(struct respond_rule, when),
    MK_CONF_KEY_INT(struct respond_rule, status, "Status", "200",
                    "The status. One of 400 and above without `Text` and `File` has the server's page, or the one of "
                    "`[ERROR_PAGES]`.",
                    .min = 200, .max = 599),
    MK_CONF_KEY_CUSTOM(struct respond_rule, headers, "Header", NULL,
                       "A header of the response: `Header Location /new`. May be repeated, also with one name.",
                       .flags = MK_CONF_REPEAT, .unit = "name value", .parse = parse_header),
    MK_CONF_KEY_STRING(struct respond_rule, text, "Text", NULL,
                       "The body: plain text in UTF-8, unless `Header Content-Type` says otherwise."),
    MK_CONF_KEY_CUSTOM(struct respond_rule, file, "File", NULL,
                       "The body: a file, which each request opens. Its extension gives the type, unless `Header "
                       "Content-Type` says otherwise.",
                       .unit = "path", .parse = parse_file),
    {0},
};

static void check_body(const struct mk_conf_check *check, const struct respond_rule *r)
{
    size_t text = offsetof(struct respond_rule, text), file = offsetof(struct respond_rule, file);
    bool has_body = r->text.p || r->file.p;
    if (r->text.p && r->file.p)
        mk_conf_error(check, file, "\"Text\" and \"File\" are both the body: write one of them");
    else if (has_body && (r->status == 204 || r->status == 205 || r->status == 304))
        mk_conf_error(check, r->file.p ? file : text, "a response with the status %d has no body: leave \"%s\" out",
                      (int)r->status, r->file.p ? "File" : "Text");
    else if (!has_body && r->headers.type.p && !mk_conf_is_wrong(check, file) && !mk_conf_is_wrong(check, text))
        mk_conf_warn_nth(check, offsetof(struct respond_rule, headers), r->headers.nth_type,
                         "Content-Type has no effect without \"Text\" or \"File\", whose type it is");
}

/* What the server sends with a file itself, and responses that the server makes of ranges only. */
static void check_file(const struct mk_conf_check *check, const struct respond_rule *r)
{
    static const struct mk_str names[] = {MK_STR_INIT("ETag"), MK_STR_INIT("Last-Modified"),
                                          MK_STR_INIT("Accept-Ranges"), MK_STR_INIT("Content-Range")};
    for (uint32_t i = 0; i < r->headers.n; i++)
        if (r->file.p && mk_str_is_any(r->headers.items[i].name, names, MK_COUNT_OF(names)))
            mk_conf_error_nth(check, offsetof(struct respond_rule, headers), i,
                              "\"%.*s\" is that of the file: only the server sets it",
                              MK_STR_ARG(r->headers.items[i].name));
    if (r->status == 206)
        mk_conf_error(check, offsetof(struct respond_rule, status),
                      "206 answers a request for a range, which a file with the status 200 does by itself");
}

static bool has_header(const struct respond_rule *r, struct mk_str name)
{
    for (uint32_t i = 0; i < r->headers.n; i++)
        if (mk_str_ieq(r->headers.items[i].name, name))
            return true;
    return false;
}

/* RFC 9110 sections 15.4, 15.5.2 and 15.5.6. */
static void warn_of_missing_header(const struct mk_conf_check *check, const struct respond_rule *r)
{
    static const struct {
        int status;
        struct mk_str name;
    } needed[] = {{301, MK_STR_INIT("Location")}, {302, MK_STR_INIT("Location")},
                  {303, MK_STR_INIT("Location")}, {307, MK_STR_INIT("Location")},
                  {308, MK_STR_INIT("Location")}, {401, MK_STR_INIT("WWW-Authenticate")},
                  {405, MK_STR_INIT("Allow")}};
    for (unsigned i = 0; i < MK_COUNT_OF(needed); i++)
        if (r->status == needed[i].status && !has_header(r, needed[i].name))
            mk_conf_warn(check, offsetof(struct respond_rule, status),
                         "a response with the status %d needs a line \"Header %.*s\"", needed[i].status,
                         MK_STR_ARG(needed[i].name));
}

static void check_rule(const struct mk_conf_check *check, void *section)
{
    const struct respond_rule *r = section;
    struct mk_variable_found found;
    for (uint32_t i = 0; i < r->headers.n; i++)
        mk_header_line_check(check, offsetof(struct respond_rule, headers), i, r->headers.items[i].value);
    if (mk_variable_find_in(r->text, &found))
        mk_conf_warn(check, offsetof(struct respond_rule, text), "a text has no variables: \"%.*s\" is sent as it is",
                     MK_STR_ARG(found.text));
    check_body(check, r);
    check_file(check, r);
    warn_of_missing_header(check, r);
}

static const struct mk_conf_section sections[] = {
    {.name = "RESPOND",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT | MK_CONF_SERVES,
     .size = sizeof(struct respond_rule),
     .keys = keys,
     .check = check_rule,
     .doc = MK_CONF_DOC("A fixed answer: a status, headers, and a text or a file. The first section whose paths and "
                        "conditions fit is used, before other plugins look for content.")},
    {0},
};

/* ── hosts ── */

static const struct mk_counter_info responses = {"respond", "responses", "requests for which a section had an answer",
                                                 MK_COUNTER_SUM};
static const struct mk_counter_info failures = {"respond", "failures",
                                                "requests that did not get the answer of a section, by reason",
                                                MK_COUNTER_SUM};

static const struct mk_counter_row rows[RESPOND_COUNTERS] = {
    [RESPOND_RESPONSES] = {&responses, {0}},
    [RESPOND_FAILED_FILE] = {&failures, {"reason", "file"}},
    [RESPOND_FAILED_PATTERN] = {&failures, {"reason", "pattern"}},
};

static const struct mk_counter *counters[RESPOND_COUNTERS];

void respond_count(const struct mk_request *req, enum respond_counter counter)
{
    mk_counter_add(counters[counter], mk_request_worker(req), 1);
}

static int start_process(void **ret_state)
{
    (void)ret_state;
    mk_counters_open(rows, RESPOND_COUNTERS, counters);
    return 0;
}

static bool is_conditional(const void *rule)
{
    const struct respond_rule *r = rule;
    return r->when.n > 0;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    *ret_state = mk_host_conf(host, sections) ? host : NULL; /* a host without rules costs nothing */
    return mk_host_check_rules(host, sections, offsetof(struct respond_rule, match), is_conditional);
}

/*
 * Returns the rule for a request, or one of which that is not known; NULL: none. `*ret_match`: 1, or 0 without a rule,
 * or -errno. An [ALIAS] within the prefix of a rule comes before it, as before the sections of gateways.
 */
static const struct respond_rule *find_rule(const struct mk_host *host, struct mk_str path,
                                            const struct mk_when_request *request, int *ret_match)
{
    const struct respond_rule *r = NULL;
    int match = 0;
    while (match == 0 && (r = mk_host_conf_next_match(host, sections, offsetof(struct respond_rule, match), path, r))) {
        match = mk_pattern_match(&r->match, path);
        if (match > 0)
            match = mk_host_prefers_files(host, &r->match, path) ? 0 : mk_when_holds(&r->when, request);
    }
    *ret_match = match;
    return r;
}

/* ── requests ── */

/* CONNECT and OPTIONS * have no path. */
static int answer_request(struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_state(req, &mk_plugin_respond);
    struct mk_when_request request = mk_when_describe(req);
    int match;
    if (!host || !mk_str_starts(mk_request_path(req), MK_STR("/")))
        return MK_DECLINED;
    const struct respond_rule *r = find_rule(host, mk_request_path(req), &request, &match);
    if (match == 0)
        return MK_DECLINED;
    if (match > 0) {
        respond_send(req, r);
    } else {
        respond_count(req, RESPOND_FAILED_PATTERN);
        mk_response_error(req, 500); /* the rule may be there to hide what the path has */
    }
    return 0;
}

/* ── other paths ── */

/* An answer for a prefix is also for paths below it that have an encoded slash. */
static int accept_encoded_slash(const struct mk_host *host, struct mk_str path)
{
    const void *r = NULL;
    mk_host_conf_match(host, sections, offsetof(struct respond_rule, match), path, &r);
    return r ? MK_ENCODED_SLASH_KEEP : MK_ENCODED_SLASH_REFUSE;
}

/* A path with an answer for GET without a query is not the file of that name. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    struct mk_when_request request = mk_when_describe(req);
    int match;
    request.method = MK_STR("GET");
    request.query = MK_STR_NONE;
    find_rule(mk_request_host_conf(req), path, &request, &match);
    return match < 0 ? match : match == 0;
}

static bool takes_section(const struct mk_host *host, const struct mk_conf_section *section, const void *section_struct)
{
    (void)host;
    (void)section;
    return !is_conditional(section_struct);
}

static void explain_answer(const struct mk_host *host, struct mk_explain *e)
{
    struct mk_when_request request = mk_when_describe_explained(e);
    int match;
    if (e->phase != MK_EXPLAIN_CONTENT)
        return;
    const struct respond_rule *r = find_rule(host, e->path, &request, &match);
    if (match < 0)
        mk_explain_add(e, host, r, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of the section takes too much time for the path");
    else if (r)
        mk_explain_add(e, host, r, MK_EXPLAIN_ANSWERS, "[RESPOND] answers with %d%s%.*s", (int)r->status,
                       r->file.p   ? " and the file "
                       : r->text.p ? " and its Text"
                                   : "",
                       MK_STR_ARG(r->file));
}

static const struct mk_path_hooks path_hooks = {
    .allows_path = allows_path,
    .accepts_encoded_slash = accept_encoded_slash,
};

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_answer, .takes_section = takes_section};

MK_PLUGIN(respond) = {
    MK_PLUGIN_HEAD("respond", "2.0.0", "sends fixed answers"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED,
    .sections = sections,
    .start = start_process,
    .host_start = start_host,
    .on_content = answer_request,
    .paths = &path_hooks,
    .inspection = &inspect_hooks,
};
