// SPDX-License-Identifier: Apache-2.0
/*
 * Reads configurations: files, their includes, texts in memory, and options. Scans the lines and passes each to the
 * function for its kind.
 */
#include "conf/internal.h"
#include "base/file.h"
#include "conf/foreign_syntax.h"
#include "conf/scan.h"
#include "conf/skipped_files.h"

#include <assert.h>
#include <errno.h>

enum { FILE_BYTES_MAX = 1 << 20, DEPTH_MAX = 10, INCLUDES_MAX = 100000 };

/* ── lines ── */

struct reader {
    struct mk__conf *conf;
    struct mk__conf_set *set;
    struct mk__conf_source *source;
    struct mk__scan scan;
    struct mk__conf_section *sec;   /* the current section */
    struct mk__conf_section *hosts; /* the one of hosts for its keys that are not of the server; NULL: none was set */
    struct mk__conf_origin sec_origin;
    bool skip_keys;        /* an error was reported for the section: its keys are skipped */
    struct mk_str section; /* its name, for a callback */
};

static int read_source(struct mk__conf *conf, struct mk__conf_set *set, struct mk__conf_source *source);

static struct mk_str get_dir(struct mk_str path)
{
    const char *slash = path.len ? memrchr(path.p, '/', path.len) : NULL;
    return mk_str(path.p, slash ? (size_t)(slash - path.p) + 1 : 0);
}

static struct mk__conf_source *add_source(struct mk__conf *conf, struct mk_str name, enum mk__conf_level level)
{
    assert(name.p);
    struct mk__conf_source *s = mk_arena_zalloc(&conf->arena, sizeof(*s));
    struct mk_str copy = mk_arena_dup(&conf->arena, name);

    if (!s || !copy.p) {
        mk__conf_out_of_memory(conf);
        return NULL;
    }
    s->name = copy.p;
    s->level = (uint8_t)level;
    s->next = conf->sources;
    return conf->sources = s;
}

static struct mk__conf_origin make_origin(const struct reader *r, uint32_t col)
{
    return (struct mk__conf_origin){r->source, r->scan.line, col};
}

static bool expand_value(struct reader *r, const struct mk__scan_line *line)
{
    struct mk__expand_error error;

    if (mk__expand(r->conf->variables, line->value, line->value_col, &r->conf->words, &error))
        return true;
    if (error.text[0] && !(error.unset && r->conf->include_failed))
        mk__conf_error(r->conf, make_origin(r, error.col), "%s", error.text);
    else
        mk__conf_suppress(r->conf);
    return false;
}

/* ── sections ── */

void mk__conf_on_host(struct mk__conf *conf, const struct mk__conf_hosts *hosts)
{
    assert(hosts->section && hosts->names && hosts->begin);
    conf->hosts = *hosts;
}

/* Returns "HOST" of "HOST example.org"; the names of other sections are whole lines. */
static struct mk_str get_section_name(const struct reader *r, const struct mk__scan_line *line, bool *ret_is_host)
{
    struct mk_str first = mk_str_until(line->name, " \t");
    *ret_is_host = r->conf->hosts.section && mk_str_ieq(first, mk_str_c(r->conf->hosts.section));
    return *ret_is_host ? first : line->name;
}

/* Returns whether a section that may begin a host does so here, and is not one of the host whose part is being read. */
static bool begins_host(const struct reader *r, struct mk_str name, bool has_names)
{
    if (r->set->scope == MK_CONF_SCOPE_SERVER)
        return true;
    struct mk__conf_origin first = mk__section_values_find(r->conf, r->set, name);
    return first.source && (has_names || first.source == r->source);
}

static void begin_host(struct reader *r)
{
    struct mk__conf_set *set = r->conf->hosts.begin(r->conf->hosts.ctx);
    if (!set) {
        mk__conf_out_of_memory(r->conf);
        return;
    }
    set->source = r->source;
    set->is_part = true;
    r->set = set;
}

/* Reads the names behind the name of a section, which are values of one of its keys. */
static void read_names(struct reader *r, const struct mk__scan_line *names)
{
    struct mk_str key = mk_str_c(r->conf->hosts.names);
    if (names->kind == MK__SCAN_ERROR)
        mk__conf_error(r->conf, make_origin(r, names->col), "%s", names->error);
    if (names->kind != MK__SCAN_ERROR && expand_value(r, names))
        mk__bind_key(r->conf, r->sec, key, make_origin(r, names->value_col));
    else
        mk__bind_failure(r->conf, r->sec, key, make_origin(r, names->value_col), MK__SETTING_FAILED);
}

static void read_section(struct reader *r, const struct mk__scan_line *line)
{
    struct mk__conf_origin origin = make_origin(r, line->col);
    bool is_host;
    struct mk_str name = get_section_name(r, line, &is_host);
    struct mk__scan_line names;
    mk__scan_names(line, name.len, &names);
    bool has_names = names.value.len || names.kind == MK__SCAN_ERROR;
    if (is_host && begins_host(r, name, has_names))
        begin_host(r);
    r->sec = mk__section_values_enter_section(r->conf, r->set, name, origin);
    r->skip_keys = !r->sec;
    r->sec_origin = origin;
    r->hosts = NULL;
    if (r->sec && is_host && has_names)
        read_names(r, &names);
}

/*
 * Returns the section that the key belongs to: the current one, or if that is the server's and does not have the key,
 * one of the same name for all hosts, which the first such key adds. NULL: without memory.
 */
static struct mk__conf_section *choose_section(struct reader *r, struct mk_str key)
{
    const struct mk__conf_section_type *hosts = mk__schema_find_default_key(r->conf, r->sec->type, key);
    if (!hosts)
        return r->sec;
    if (!r->hosts)
        r->hosts = mk__section_values_add_section(r->conf, r->set, hosts, r->sec_origin);
    return r->hosts;
}

static const struct mk__conf_registration *find_short_form(const struct reader *r, const struct mk__conf_section *sec,
                                                           struct mk_str name)
{
    return mk__schema_find_short_form(r->conf, sec->type, name, mk_buf_str(&r->conf->words.text));
}

/* Adds the section that a short form means. Without a line only records that its key was reported as wrong. */
static void read_short_form(struct reader *r, const struct mk__conf_registration *form,
                            const struct mk__scan_line *line, struct mk__conf_origin origin)
{
    struct mk__conf_section *sec =
        mk__section_values_enter_section(r->conf, r->set, mk_str_c(form->section->name), origin);
    unsigned errors = mk__conf_all_errors(r->conf);
    if (sec && line && expand_value(r, line)) /* again: the defaults of a new section have replaced the words */
        mk__short_form_bind(r->conf, sec, form, origin);
    else if (sec)
        mk__bind_failure(r->conf, sec, mk_str_c(form->section->short_form->key), origin, MK__SETTING_FAILED);
    if (sec && (!line || mk__conf_all_errors(r->conf) > errors))
        sec->incomplete = true; /* the paths that it is for may be missing */
}

static void report_sign(struct reader *r, const struct mk__foreign_key *key)
{
    int shown = key->value.len > 80 ? 80 : (int)key->value.len;
    mk__conf_error(r->conf, make_origin(r, key->col),
                   "a blank separates a key from its value, not \"%c\": write \"%.*s %.*s\"", key->sign,
                   MK_STR_ARG(key->name), shown ? shown : 5, shown ? key->value.p : "VALUE");
}

/* Reports a key that another sign than a blank separates from its value. Returns whether it is one. */
static bool reject_sign(struct reader *r, const struct mk__scan_line *line)
{
    struct mk__foreign_key key;
    bool pairs = r->sec->type->flags & MK_CONF_PAIRS;
    if (!mk__foreign_syntax_split_key(line, &key) || (pairs && key.within))
        return false;
    struct mk__conf_section *sec = choose_section(r, key.name);
    struct mk__conf_origin origin = make_origin(r, line->col);
    struct mk__conf_key_ref ref = sec ? mk__schema_find_key(sec->type, key.name) : (struct mk__conf_key_ref){0};
    if (!mk__expand_literal(key.value, &r->conf->words)) /* what the key means may depend on its value */
        r->conf->words.n = 0;
    const struct mk__conf_registration *form = sec ? find_short_form(r, sec, key.name) : NULL;
    if (form) {
        report_sign(r, &key);
        read_short_form(r, form, NULL, origin);
    } else if (sec && !pairs && (!ref.key || ref.registration->absent)) {
        mk__bind_unknown(r->conf, sec, key.name, origin);
    } else if (sec) {
        report_sign(r, &key);
        mk__bind_failure(r->conf, sec, key.name, origin, MK__SETTING_FAILED);
    }
    return true;
}

static void read_key(struct reader *r, const struct mk__scan_line *line)
{
    if (!r->sec && !r->skip_keys) {
        mk__conf_error(r->conf, make_origin(r, line->col), "a key needs a [SECTION] above it");
        r->skip_keys = true;
    }
    if (!r->skip_keys && reject_sign(r, line))
        return;
    struct mk__conf_section *sec = r->skip_keys ? NULL : choose_section(r, line->name);
    if (!sec)
        return;
    r->conf->semicolon = line->value.len && line->value.p[line->value.len - 1] == ';';
    bool expanded = expand_value(r, line);
    struct mk__conf_origin origin = make_origin(r, line->col);
    const struct mk__conf_registration *form = find_short_form(r, sec, line->name);
    if (form)
        read_short_form(r, form, expanded ? line : NULL, origin);
    else if (expanded)
        mk__bind_key(r->conf, sec, line->name, origin);
    else
        mk__bind_failure(r->conf, sec, line->name, origin, MK__SETTING_FAILED);
    r->conf->semicolon = false;
}

static void read_set(struct reader *r, const struct mk__scan_line *line)
{
    struct mk_arena *arena = &r->conf->texts;

    bool failed = !expand_value(r, line);
    struct mk__variable *v = mk_arena_alloc(arena, sizeof(*v));
    struct mk_str value = mk_arena_dup(arena, mk_buf_str(&r->conf->words.text));
    if (!v || !value.p) {
        mk__conf_out_of_memory(r->conf);
        return;
    }
    *v = (struct mk__variable){.next = r->conf->variables, .failed = failed, .name = line->name, .value = value};
    r->conf->variables = v;
}

static bool includes_itself(const struct mk__conf_source *s, struct mk_str path)
{
    for (; s; s = s->parent)
        if (mk_str_eq(mk_str_c(s->name), path))
            return true;
    return false;
}

static const char *describe_error(int err)
{
    return err == -EINVAL ? "it is not a regular file" : strerror(-err);
}

/* Returns false from the first include on that has no end, which is reported: includes of each other multiply. */
static bool may_include(struct reader *r, uint32_t col)
{
    struct mk__conf *conf = r->conf;
    if (conf->includes_refused)
        return false;
    if (r->source->depth + 1 >= DEPTH_MAX)
        mk__conf_error(conf, make_origin(r, col), "files are included more than %d deep", DEPTH_MAX);
    else if (++conf->includes > INCLUDES_MAX)
        mk__conf_error(conf, make_origin(r, col), "more than %d files are included", INCLUDES_MAX);
    else
        return true;
    r->set->incomplete = conf->include_failed = conf->includes_refused = true;
    return false;
}

static void include_file(struct reader *r, struct mk_str path, uint32_t col)
{
    assert(path.len && !r->source->no_include);
    struct mk__conf *conf = r->conf;

    if (includes_itself(r->source, path)) {
        mk__conf_error(conf, make_origin(r, col), "\"%.*s\" includes itself", MK_STR_ARG(path));
        return;
    }
    if (!may_include(r, col))
        return;
    struct mk__conf_source *s = add_source(conf, path, MK__CONF_FILE);
    if (!s)
        return;
    s->parent = r->source;
    s->parent_line = r->scan.line;
    s->depth = r->source->depth + 1;
    int err = read_source(conf, r->set, s);
    if (err < 0) {
        mk__conf_error(conf, make_origin(r, col), "cannot read \"%s\": %s", s->name, describe_error(err));
        r->set->incomplete = true;
        conf->include_failed = true;
    }
}

/* Returns whether a file that a pattern has found is none of the configuration by its name; that is a warning. */
static bool skip_file(struct mk__conf *conf, const char *path)
{
    const char *what = mk__skipped_files_describe(path);
    if (what)
        mk__conf_warn(conf, mk__conf_file_origin(conf, path), "this file is skipped: by its name it is %s", what);
    return what;
}

/* Only `name` is a pattern. */
static void include_all(struct reader *r, struct mk_str dir, struct mk_str name, uint32_t col)
{
    struct mk_str *names;
    size_t n;
    int err = mk__file_glob(dir, name, MK__FILE_ONLY, &r->conf->texts, &names, &n);

    if (err == -ENOMEM)
        mk__conf_out_of_memory(r->conf);
    else if (err < 0)
        mk__conf_error(r->conf, make_origin(r, col), "cannot read the directory of \"%.*s%.*s\": %s", MK_STR_ARG(dir),
                       MK_STR_ARG(name), strerror(-err));
    for (size_t i = 0; err == 0 && i < n; i++)
        if (!skip_file(r->conf, names[i].p))
            include_file(r, names[i], col);
}

static void read_include(struct reader *r, const struct mk__scan_line *line)
{
    struct mk_str dir = r->source->dir, name;
    char *path;

    if (r->source->no_include) {
        mk__conf_error(r->conf, make_origin(r, line->col), "@INCLUDE works in files only");
        return;
    }
    if (!expand_value(r, line))
        return;
    name = mk_buf_str(&r->conf->words.text);
    if (!name.len) {
        mk__conf_error(r->conf, make_origin(r, line->value_col), "@INCLUDE wants the name of a file");
        return;
    }
    if (name.p[0] == '/')
        dir.len = 0;
    if (mk__file_is_glob(name)) {
        include_all(r, dir, name, line->value_col);
        return;
    }
    if (!(path = mk_arena_alloc(&r->conf->texts, dir.len + name.len + 1))) {
        mk__conf_out_of_memory(r->conf);
        return;
    }
    char *end = mempcpy(mempcpy(path, dir.p ? dir.p : "", dir.len), name.p, name.len);
    *end = '\0';
    include_file(r, mk_str(path, dir.len + name.len), line->value_col);
}

static void read_error(struct reader *r, const struct mk__scan_line *line)
{
    mk__conf_error(r->conf, make_origin(r, line->col), "%s", line->error);
    if (line->section) { /* it is not known which section the next keys belong to */
        r->sec = NULL;
        r->skip_keys = true;
    }
    if (r->sec)
        r->sec->incomplete = true;
    else
        r->set->incomplete = true;
    if (r->hosts)
        r->hosts->incomplete = true;
}

typedef void (*line_fn)(struct reader *r, const struct mk__scan_line *line);

static const line_fn readers[] = {
    [MK__SCAN_ERROR] = read_error,     [MK__SCAN_SECTION] = read_section, [MK__SCAN_KEY] = read_key,
    [MK__SCAN_INCLUDE] = read_include, [MK__SCAN_SET] = read_set,
};

/* ── lines for a callback ── */

void mk__conf_on_line(struct mk__conf *conf, mk__conf_line_fn fn, void *ctx)
{
    assert(fn);
    conf->on_line = fn;
    conf->line_ctx = ctx;
}

static void pass_section(struct reader *r, const struct mk__scan_line *line)
{
    r->section = line->name;
    r->conf->on_line(r->section, line->name, NULL, r->conf->line_ctx);
}

static void pass_key(struct reader *r, const struct mk__scan_line *line)
{
    const struct mk__words *w = &r->conf->words;
    if (!expand_value(r, line))
        return;
    struct mk_conf_value value = {.text = mk_buf_str(&w->text), .words = w->word, .n = w->n, .dir = r->source->dir};
    r->conf->on_line(r->section, line->name, &value, r->conf->line_ctx);
}

static const line_fn passers[] = {
    [MK__SCAN_ERROR] = read_error,     [MK__SCAN_SECTION] = pass_section, [MK__SCAN_KEY] = pass_key,
    [MK__SCAN_INCLUDE] = read_include, [MK__SCAN_SET] = read_set,
};

/* ── files ── */

static void read_lines(struct mk__conf *conf, struct mk__conf_set *set, struct mk__conf_source *source)
{
    const line_fn *handlers = conf->on_line ? passers : readers;
    struct reader r = {.conf = conf, .set = set, .source = source};
    struct mk__scan_line line;

    mk__scan_init(&r.scan, source->text);
    r.scan.foreign = mk__foreign_syntax_scan;
    for (mk__scan_next(&r.scan, &line); line.kind != MK__SCAN_END; mk__scan_next(&r.scan, &line))
        handlers[line.kind](&r, &line);
}

/*
 * Reads a file. An included file does not change the current section of the one that includes it.
 * Returns 0, or -errno if it cannot be read.
 */
static int read_source(struct mk__conf *conf, struct mk__conf_set *set, struct mk__conf_source *source)
{
    struct mk_file_bytes bytes = {0};
    int err = mk_file_read(source->name, FILE_BYTES_MAX, &conf->texts, &bytes);
    if (err == -ENOMEM)
        mk__conf_out_of_memory(conf);
    if (err < 0)
        return err;
    source->text = mk_str(bytes.data, bytes.len);
    source->dir = get_dir(mk_str_c(source->name));
    read_lines(conf, set, source);
    return 0;
}

static int get_result(const struct mk__conf *conf, unsigned errors_before)
{
    if (conf->out_of_memory)
        return -ENOMEM;
    return conf->errors > errors_before ? -EINVAL : 0;
}

int mk__conf_read(struct mk__conf *conf, struct mk__conf_set *set, const char *path)
{
    assert(set && path[0]);
    unsigned before = conf->errors;
    struct mk__conf_source *s = add_source(conf, mk_str_c(path), MK__CONF_FILE);
    if (!s)
        return -ENOMEM;
    set->source = s;
    int err = read_source(conf, set, s);
    if (err < 0) {
        mk__conf_error(conf, (struct mk__conf_origin){s, 0, 0}, "cannot be read: %s", describe_error(err));
        set->incomplete = true;
    }
    return err < 0 ? err : get_result(conf, before);
}

int mk__conf_read_text(struct mk__conf *conf, struct mk__conf_set *set, const char *name, struct mk_str text)
{
    assert(set && name);
    unsigned before = conf->errors;
    struct mk__conf_source *s = add_source(conf, mk_str_c(name), MK__CONF_FILE);
    if (!s || !(s->text = mk_arena_dup(&conf->texts, text)).p)
        return mk__conf_out_of_memory(conf);
    s->no_include = true;
    set->source = s;
    read_lines(conf, set, s);
    return get_result(conf, before);
}

int mk__conf_override(struct mk__conf *conf, struct mk__conf_set *set, const char *section, const char *key,
                      struct mk_str value, const char *origin)
{
    assert(set && section && key && origin);
    unsigned before = conf->errors;
    struct mk__conf_origin where = {add_source(conf, mk_str_c(origin), MK__CONF_OPTION), 0, 0};
    if (!where.source)
        return -ENOMEM;
    struct mk__conf_section *sec = mk__section_values_enter_section(conf, set, mk_str_c(section), where);
    if (sec && mk__expand_literal(value, &conf->words))
        mk__bind_key(conf, sec, mk_str_c(key), where);
    else if (sec)
        mk__conf_error(conf, where, "the value is too long or contains control bytes");
    return get_result(conf, before);
}

struct mk__conf_origin mk__conf_file_origin(struct mk__conf *conf, const char *path)
{
    struct mk__conf_source *s = conf->sources; /* several hosts may include what is skipped */
    while (s && (s->text.p || strcmp(s->name, path) != 0))
        s = s->next;
    return (struct mk__conf_origin){s ? s : add_source(conf, mk_str_c(path), MK__CONF_FILE), 0, 0};
}
