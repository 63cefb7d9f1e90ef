// SPDX-License-Identifier: Apache-2.0
/*
 * headers: adds, replaces and removes headers of responses by the rules of a host. All rules that match a path apply,
 * to files and to the responses of all plugins; a header that one has set or removed is left alone by those after it.
 */
#include <monkey/base/pattern.h>
#include <monkey/counters.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/kit/header_line.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

extern const struct mk_plugin mk_plugin_headers;

/* ── directives ── */

enum change_kind { CHANGE_ADD, CHANGE_SET, CHANGE_REMOVE };

struct header_change {
    struct header_change *next;
    uint8_t kind; /* enum change_kind */
    struct mk_str name, value;
};

/* In the order of the lines. */
struct header_changes {
    struct header_change *first, **last;
};

struct headers_rule {
    struct mk_pattern match;
    struct header_changes add, set, remove;
    uint64_t expires_ms;   /* 0: not set */
    struct mk_str max_age; /* the same for Cache-Control; check_rule() writes it to `text` */
    char text[32];
    bool on_errors;
};

static const char *const verbs[] = {[CHANGE_ADD] = "Add", [CHANGE_SET] = "Set", [CHANGE_REMOVE] = "Remove"};

static int parse_change(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error,
                        enum change_kind kind)
{
    struct header_changes *all = field;
    struct mk_header_field line;
    int err = mk_header_line_parse(value, verbs[kind], kind != CHANGE_REMOVE, &line, arena, error);
    if (err < 0)
        return err;
    if (value->n > 2 && mk_str_eq(value->words[value->n - 1], MK_STR("always")))
        return mk_conf_fail(error, "\"always\" becomes part of the value: leave it out, and write OnErrors On");
    struct header_change *change = mk_arena_zalloc(arena, sizeof(*change));
    if (!change)
        return -ENOMEM;
    change->kind = (uint8_t)kind;
    change->name = line.name;
    change->value = line.value;
    if (!all->last)
        all->last = &all->first;
    assert(!*all->last);
    *all->last = change;
    all->last = &change->next;
    return 0;
}

static int parse_add(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    return parse_change(value, field, arena, error, CHANGE_ADD);
}

static int parse_set(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    return parse_change(value, field, arena, error, CHANGE_SET);
}

static int parse_remove(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    return parse_change(value, field, arena, error, CHANGE_REMOVE);
}

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct headers_rule, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.css`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_CONF_KEY_CUSTOM(struct headers_rule, remove, "Remove", NULL,
                       "Removes all headers of this name. Applied before `Set`.", .flags = MK_CONF_REPEAT,
                       .unit = "name", .parse = parse_remove),
    MK_CONF_KEY_LONG_DURATION(struct headers_rule, expires_ms, "Expires", NULL,
                              "How long caches may use a response: replaces `Expires` by that time from now, and "
                              "`Cache-Control` by `max-age=` and the seconds. Applied before `Set`.",
                              .min = 1000, .max = 315360000000, .unit = "s"),
    MK_CONF_KEY_CUSTOM(struct headers_rule, set, "Set", NULL,
                       "Replaces the header, or adds it: `Set Cache-Control no-cache`.", .flags = MK_CONF_REPEAT,
                       .unit = "name value", .parse = parse_set),
    MK_CONF_KEY_CUSTOM(struct headers_rule, add, "Add", NULL, "Adds the header; others of this name stay.",
                       .flags = MK_CONF_REPEAT, .unit = "name value", .parse = parse_add),
    MK_CONF_KEY_BOOL(struct headers_rule, on_errors, "OnErrors", "Off",
                     "Whether the rule applies to statuses of 400 and above, too."),
    {0},
};

static void check_values(const struct mk_conf_check *check, const struct header_changes *changes, size_t offset)
{
    unsigned nth = 0;
    for (const struct header_change *c = changes->first; c; c = c->next)
        mk_header_line_check(check, offset, nth++, c->value);
}

/* Warns of a rule that changes nothing, unless a line of it is wrong. */
static void check_changes(const struct mk_conf_check *check, const struct headers_rule *r)
{
    static const size_t offsets[] = {offsetof(struct headers_rule, set), offsetof(struct headers_rule, add),
                                     offsetof(struct headers_rule, remove), offsetof(struct headers_rule, expires_ms)};
    bool changes = r->set.first || r->add.first || r->remove.first || r->expires_ms;
    for (size_t i = 0; i < MK_COUNT_OF(offsets); i++)
        changes |= mk_conf_is_wrong(check, offsets[i]);
    if (!changes)
        mk_conf_warn(check, offsetof(struct headers_rule, match),
                     "this section has no effect without \"Set NAME VALUE\", \"Add\", \"Remove\" or \"Expires\"");
}

static void check_rule(const struct mk_conf_check *check, void *section)
{
    struct headers_rule *r = section;
    check_changes(check, r);
    check_values(check, &r->set, offsetof(struct headers_rule, set));
    check_values(check, &r->add, offsetof(struct headers_rule, add));
    int n = snprintf(r->text, sizeof(r->text), "max-age=%llu", (unsigned long long)(r->expires_ms / 1000));
    assert(n > 0 && (size_t)n < sizeof(r->text));
    r->max_age = mk_str(r->text, (size_t)n);
}

static const struct mk_conf_section sections[] = {
    {.name = "HEADERS",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct headers_rule),
     .keys = keys,
     .check = check_rule,
     .doc =
         MK_CONF_DOC("Headers of responses. All sections that match a path apply, those of the host before those in "
                     "`monkey.conf`. A header that a section has set or removed (`Set`, `Remove`, `Expires`) is left "
                     "alone by the sections after it, and one that it has added is neither replaced nor removed: put "
                     "the rule for some paths before the one for all.")},
    {0},
};

/* ── what is counted ── */

enum headers_count { HEADERS_REJECTED, HEADERS_LOST, HEADERS_COUNTS };

static const struct mk_counter_info rejected = {
    "headers", "rejected_requests", "requests answered with 500, because a pattern takes too much time for the path",
    MK_COUNTER_SUM};
static const struct mk_counter_info lost = {
    "headers", "lost_headers", "headers that were not added, for lack of memory or because of too many headers",
    MK_COUNTER_SUM};

static const struct mk_counter_row rows[HEADERS_COUNTS] = {
    [HEADERS_REJECTED] = {&rejected, {0}}, [HEADERS_LOST] = {&lost, {0}}};

static const struct mk_counter *counters[HEADERS_COUNTS];

static int start_process(void **ret_state)
{
    (void)ret_state;
    mk_counters_open(rows, HEADERS_COUNTS, counters);
    return 0;
}

/* ── responses ── */

static void report_no_room(struct mk_request *req, struct mk_str name)
{
    mk_counter_add(counters[HEADERS_LOST], mk_request_worker(req), 1);
    mk_request_log(req, MK_LOG_WARN, "headers: no memory for the header %.*s, or too many headers", MK_STR_ARG(name));
}

/* A response, and the rule that is applied to it. */
struct header_target {
    struct mk_request *req;
    const struct mk_host *host;
    const struct headers_rule *rule;
};

static bool has_name(const struct header_changes *changes, struct mk_str name)
{
    const struct header_change *c = changes->first;
    while (c && !mk_str_ieq(c->name, name))
        c = c->next;
    return c != NULL;
}

/* Returns true if a change of this kind in a later rule must leave the header alone. Headers may be added by several.
 */
static bool decides_header(const struct headers_rule *r, struct mk_str name, enum change_kind kind)
{
    bool expiry = r->expires_ms && (mk_str_ieq(name, MK_STR("Cache-Control")) || mk_str_ieq(name, MK_STR("Expires")));
    return expiry || has_name(&r->remove, name) || has_name(&r->set, name) ||
           (kind != CHANGE_ADD && has_name(&r->add, name));
}

static bool applies_to(const struct mk_request *req, const struct headers_rule *r)
{
    bool failed = mk_response_get_status(req) >= 400;
    return (!failed || r->on_errors) && mk_pattern_match(&r->match, mk_request_path(req)) > 0;
}

/* Returns the next rule that may match the path, after `rule`; NULL: begins with the first, or there is none. */
static const struct headers_rule *find_next_rule(const struct mk_host *host, struct mk_str path,
                                                 const struct headers_rule *rule)
{
    return mk_host_conf_next_match(host, sections, offsetof(struct headers_rule, match), path, rule);
}

/* Returns true if a rule before this one has decided about the header. */
static bool is_decided(const struct header_target *at, struct mk_str name, enum change_kind kind)
{
    struct mk_str path = mk_request_path(at->req);
    const struct headers_rule *r = find_next_rule(at->host, path, NULL);
    while (r != at->rule && !(decides_header(r, name, kind) && applies_to(at->req, r)))
        r = find_next_rule(at->host, path, r);
    return r != at->rule;
}

static void apply_changes(const struct header_target *at, const struct header_changes *changes)
{
    for (const struct header_change *c = changes->first; c; c = c->next) {
        if (is_decided(at, c->name, c->kind))
            continue;
        if (c->kind != CHANGE_ADD)
            mk_response_header_remove(at->req, c->name);
        if (c->kind != CHANGE_REMOVE && mk_response_header_ref(at->req, c->name, c->value) < 0)
            report_no_room(at->req, c->name);
    }
}

/* Sets max-age for HTTP/1.1 caches and Expires for older ones (RFC 9111 sections 5.2.2.1 and 5.3). */
static void set_expiry(const struct header_target *at)
{
    const struct headers_rule *r = at->rule;
    assert(r->expires_ms > 0 && r->max_age.len > 0);
    struct mk_str control = MK_STR("Cache-Control"), expires = MK_STR("Expires");
    int64_t now = mk_loop_wall_seconds(mk_request_loop(at->req));
    bool sets_control = !is_decided(at, control, CHANGE_SET), sets_expires = !is_decided(at, expires, CHANGE_SET);
    if (sets_control)
        mk_response_header_remove(at->req, control);
    if (sets_expires)
        mk_response_header_remove(at->req, expires);
    if (sets_control && mk_response_header_ref(at->req, control, r->max_age) < 0)
        report_no_room(at->req, control);
    if (sets_expires && mk_response_header_date(at->req, expires, now + (int64_t)(r->expires_ms / 1000)) < 0)
        report_no_room(at->req, expires);
}

/*
 * Sends 500 if a regular expression fails on the path. Headers can protect (Content-Security-Policy): a client must not
 * be able to choose a path that makes one disappear.
 */
static int reject_failed_match(struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_state(req, &mk_plugin_headers);
    struct mk_str path = mk_request_path(req);
    if (!host)
        return MK_DECLINED;
    for (const struct headers_rule *r = NULL; (r = find_next_rule(host, path, r));)
        if (r->match.kind == MK_PATTERN_REGEX && mk_pattern_match(&r->match, path) < 0) {
            mk_counter_add(counters[HEADERS_REJECTED], mk_request_worker(req), 1);
            mk_response_error(req, 500);
            return 0;
        }
    return MK_DECLINED;
}

static void apply_rule(const struct header_target *at)
{
    apply_changes(at, &at->rule->remove);
    if (at->rule->expires_ms)
        set_expiry(at);
    apply_changes(at, &at->rule->set);
    apply_changes(at, &at->rule->add);
}

static void change_response(struct mk_request *req)
{
    struct header_target at = {.req = req, .host = mk_request_host_state(req, &mk_plugin_headers)};
    if (!at.host)
        return;
    while ((at.rule = find_next_rule(at.host, mk_request_path(req), at.rule)))
        if (applies_to(req, at.rule)) /* not if its pattern has failed: this is the 500 of reject_failed_match() */
            apply_rule(&at);
}

/* ── checks ── */

/* Warns of changes without effect, because `before` decides about their headers for all paths of the rule. */
static void warn_of_changes(struct mk_host *host, const struct headers_rule *before, const struct headers_rule *r,
                            const struct header_changes *changes, size_t field)
{
    unsigned nth = 0;
    for (const struct header_change *c = changes->first; c; c = c->next, nth++)
        if (decides_header(before, c->name, c->kind))
            mk_host_warn(host, r, field, nth,
                         "this line has no effect: a [HEADERS] before it takes all of its paths and decides about %.*s",
                         MK_STR_ARG(c->name));
}

static void check_pair(struct mk_host *host, const struct headers_rule *before, const struct headers_rule *r)
{
    if ((r->on_errors && !before->on_errors) || !mk_pattern_covers(&before->match, &r->match))
        return;
    warn_of_changes(host, before, r, &r->remove, offsetof(struct headers_rule, remove));
    warn_of_changes(host, before, r, &r->set, offsetof(struct headers_rule, set));
    warn_of_changes(host, before, r, &r->add, offsetof(struct headers_rule, add));
}

/* Compares each rule of the host with those before it, and each one for all hosts with those of its kind. */
static void check_order(struct mk_host *host)
{
    size_t match = offsetof(struct headers_rule, match);
    for (const struct headers_rule *r = mk_host_conf(host, sections); r; r = mk_host_conf_next(host, sections, r))
        for (const void *e = NULL; (e = mk_host_conf_next_cover(host, sections, match, r, e));)
            check_pair(host, e, r);
}

static int start_host(struct mk_host *host, void **ret_state)
{
    *ret_state = mk_host_conf(host, sections) ? host : NULL; /* a host without rules costs nothing */
    check_order(host);
    return 0;
}

/* ── for operators ── */

static void explain_changes(const struct mk_host *host, struct mk_explain *e, const struct headers_rule *r,
                            const struct header_changes *changes)
{
    static const char *const says[] = {[CHANGE_ADD] = "adds", [CHANGE_SET] = "sets", [CHANGE_REMOVE] = "removes"};
    for (const struct header_change *c = changes->first; c; c = c->next)
        mk_explain_add(e, host, r, MK_EXPLAIN_NOTE, "[HEADERS] %s %.*s%s%.*s%s", says[c->kind], MK_STR_ARG(c->name),
                       c->value.len ? ": " : "", MK_STR_ARG(c->value), r->on_errors ? ", also of errors" : "");
}

static void explain_headers(const struct mk_host *host, struct mk_explain *e)
{
    for (const struct headers_rule *r = mk_host_conf(host, sections); r; r = mk_host_conf_next(host, sections, r)) {
        int match = mk_pattern_match(&r->match, e->path);
        if (match < 0 && e->phase == MK_EXPLAIN_REQUEST)
            mk_explain_add(e, host, r, MK_EXPLAIN_ANSWERS, "500, because the pattern takes too much time for the path");
        if (match <= 0 || e->phase != MK_EXPLAIN_RESPONSE)
            continue;
        explain_changes(host, e, r, &r->remove);
        if (r->expires_ms)
            mk_explain_add(e, host, r, MK_EXPLAIN_NOTE, "[HEADERS] sets Expires and Cache-Control: %.*s",
                           MK_STR_ARG(r->max_age));
        explain_changes(host, e, r, &r->set);
        explain_changes(host, e, r, &r->add);
    }
}

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_headers};

MK_PLUGIN(headers) = {
    MK_PLUGIN_HEAD("headers", "2.0.0", "adds, replaces and removes headers of responses"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED,
    .sections = sections,
    .start = start_process,
    .host_start = start_host,
    .on_request = reject_failed_match,
    .on_response = change_response,
    .inspection = &inspect_hooks,
};
