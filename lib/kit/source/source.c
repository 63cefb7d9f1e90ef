// SPDX-License-Identifier: Apache-2.0
/*
 * Compares names with those of programs (<monkey/kit/source.h>).
 */
#include <monkey/base/time.h>
#include <monkey/kit/source.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* ── an example of the names that a pattern matches ── */

/* Names of scripts, of which one fits a regular expression for those of a language. */
static const char *const scripts[] = {
    "/index.php", "/index.phtml", "/index.php5", "/index.py",  "/index.pl",   "/index.cgi",
    "/index.rb",  "/index.lua",   "/index.sh",   "/index.jsp", "/index.fcgi", "/index.asp",
};

static bool find_script(const struct mk_pattern *pattern, char ret[MK_SOURCE_EXAMPLE_BYTES])
{
    for (size_t i = 0; i < MK_COUNT_OF(scripts); i++)
        if (mk_pattern_match(pattern, mk_str_c(scripts[i])) > 0) {
            snprintf(ret, MK_SOURCE_EXAMPLE_BYTES, "%s", scripts[i]);
            return true;
        }
    return false;
}

/* Replaces the wildcards of a glob; one without a slash is that of a name. */
static bool fill_glob(const struct mk_pattern *pattern, char ret[MK_SOURCE_EXAMPLE_BYTES])
{
    size_t n = 0;
    if (pattern->text.len + 2 > MK_SOURCE_EXAMPLE_BYTES)
        return false;
    if (pattern->kind == MK_PATTERN_NAME)
        ret[n++] = '/';
    for (size_t i = 0; i < pattern->text.len; i++)
        ret[n++] = pattern->text.p[i] == '*' || pattern->text.p[i] == '?' ? 'x' : pattern->text.p[i];
    ret[n] = '\0';
    return mk_pattern_match(pattern, mk_str(ret, n)) > 0;
}

bool mk_source_make_example(const struct mk_pattern *pattern, char ret[MK_SOURCE_EXAMPLE_BYTES])
{
    struct mk_str text = mk_str_strip_end(pattern->text, "/");
    if (mk_source_is_whole_site(pattern))
        return false;
    if (pattern->kind == MK_PATTERN_EXACT || pattern->kind == MK_PATTERN_PREFIX)
        return snprintf(ret, MK_SOURCE_EXAMPLE_BYTES, "%.*s%s", MK_STR_ARG(text),
                        pattern->kind == MK_PATTERN_PREFIX ? "/x" : "") < MK_SOURCE_EXAMPLE_BYTES;
    return find_script(pattern, ret) || (pattern->kind != MK_PATTERN_REGEX && fill_glob(pattern, ret));
}

/*
 * ── the real path of a folder of programs ──
 *
 * Keeps the real path of a folder of programs (<monkey/kit/source.h>). A name that is elsewhere is the only sign that
 * the folder may have been replaced: so files of the folder cost no call, and those of the next one are found.
 * RESOLVE_CACHED of openat2(2) is of no use: it fails for a link whose time of access is due, again and again, and a
 * program would be sent meanwhile.
 */

enum { CHECK_MS = 100 };

void mk_source_folder_init(struct mk_source_folder *folder, int (*open)(struct mk_source_folder *folder))
{
    assert(open);
    folder->open = open;
    folder->checked_ms = 0;
    folder->names[0].len = folder->names[1].len = 0;
    pthread_mutex_init(&folder->lock, NULL);
}

void mk_source_folder_release(struct mk_source_folder *folder)
{
    pthread_mutex_destroy(&folder->lock);
}

static struct mk_str strip_name(const struct mk_source_folder_name *name, struct mk_str file)
{
    struct mk_str folder = mk_str(name->text, name->len);
    if (!folder.len || !mk_source_is_below(file, folder))
        return MK_STR_NONE;
    return mk_str_after(file, mk_str_strip_end(folder, "/").len);
}

/* Looks at the names that are known. Sets whether the folder may be opened again, which the caller does then. */
static struct mk_str strip_known(struct mk_source_folder *folder, struct mk_str file, bool *ret_is_due)
{
    uint64_t now = mk_time_monotonic_ms() + 1; /* 0: never */
    pthread_mutex_lock(&folder->lock);
    struct mk_str rest = strip_name(&folder->names[0], file);
    if (!rest.p)
        rest = strip_name(&folder->names[1], file);
    *ret_is_due = !rest.p && now - folder->checked_ms >= CHECK_MS;
    if (*ret_is_due)
        folder->checked_ms = now;
    pthread_mutex_unlock(&folder->lock);
    return rest;
}

static void add_name(struct mk_source_folder *folder, struct mk_str name)
{
    struct mk_source_folder_name *names = folder->names;
    pthread_mutex_lock(&folder->lock);
    if (!mk_str_eq(name, mk_str(names[0].text, names[0].len))) {
        memcpy(names[1].text, names[0].text, names[0].len);
        names[1].len = names[0].len;
        memcpy(names[0].text, name.p, name.len);
        names[0].len = name.len;
    }
    pthread_mutex_unlock(&folder->lock);
}

/* Learns the name that the folder has now, if it can be opened. */
static void renew_name(struct mk_source_folder *folder)
{
    MK_UNINITIALIZED char link[32], name[MK_SOURCE_NAME_BYTES];
    int fd = folder->open(folder);
    if (fd < 0)
        return;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof(name));
    close(fd);
    if (n > 0 && n < (ssize_t)sizeof(name))
        add_name(folder, mk_str(name, (size_t)n));
}

struct mk_str mk_source_folder_strip(struct mk_source_folder *folder, struct mk_str file)
{
    bool is_due;
    struct mk_str rest = strip_known(folder, file, &is_due);
    if (!is_due)
        return rest;
    renew_name(folder);
    return strip_known(folder, file, &is_due);
}

/* Opens the document root. The plugin that serves its files has it open already. */
static int open_document_root(struct mk_source_folder *folder)
{
    return mk_host_open_path(MK_CONTAINER_OF(folder, struct mk_source_root, folder)->host, MK_STR("/"), MK_OPEN_FOLDER);
}

void mk_source_root_init(struct mk_source_root *root, const struct mk_host *host)
{
    root->host = host;
    mk_source_folder_init(&root->folder, open_document_root);
}

/* ── names of programs ── */

enum { PATH_BYTES_MAX = 4096 };

/* What follows the name of a program in that of a copy, or in another name of the same file. */
static const struct mk_str suffixes[] = {
    MK_STR(".gz"),       MK_STR(".br"),       MK_STR(".zst"),      MK_STR(".bak"),       MK_STR(".old"),
    MK_STR(".orig"),     MK_STR(".swp"),      MK_STR(".swo"),      MK_STR(".save"),      MK_STR(".tmp"),
    MK_STR(".dist"),     MK_STR(".dpkg-old"), MK_STR(".dpkg-new"), MK_STR(".dpkg-dist"), MK_STR(".ucf-old"),
    MK_STR(".ucf-dist"), MK_STR(".rpmsave"),  MK_STR(".rpmnew"),   MK_STR("~"),          MK_STR("#"),
    MK_STR("."),         MK_STR(" "),         MK_STR("::$DATA"),   MK_STR(".rej"),       MK_STR(".new"),
    MK_STR(".backup"),   MK_STR(".copy"),     MK_STR(".bz2"),      MK_STR(".xz"),        MK_STR(".zip"),
    MK_STR(".7z"),       MK_STR(".tar"),      MK_STR(",v"),        MK_STR("-"),
};

static size_t find_suffix(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(suffixes); i++)
        if (name.len > suffixes[i].len && mk_str_iends(name, suffixes[i]))
            return suffixes[i].len;
    return 0;
}

/*
 * Returns the bytes of the number of a copy, as in "a.1", "a.~1~" without its end, and "a.bak1"; 0: there is none. That
 * of "a-1" is part of another name.
 */
static size_t count_number(struct mk_str name)
{
    size_t n = 0;
    while (n < name.len && name.p[name.len - 1 - n] >= '0' && name.p[name.len - 1 - n] <= '9')
        n++;
    struct mk_str rest = mk_str(name.p, name.len - n);
    if (!n)
        return 0;
    if (mk_str_iends(rest, MK_STR(".~")))
        return n + 2;
    size_t suffix = find_suffix(rest);
    return suffix && rest.p[rest.len - suffix] == '.' ? n : 0;
}

/* Returns the bytes at the end of the name that are those of a copy. */
static size_t count_suffix(struct mk_str name)
{
    size_t n = find_suffix(name);
    return n ? n : count_number(name);
}

struct mk_str mk_source_strip(struct mk_str name)
{
    for (size_t n = count_suffix(name); n; n = count_suffix(name))
        name.len -= n;
    return name;
}

/* Returns the segment that ends at `end`, without its slash. */
static struct mk_str get_segment(struct mk_str name, size_t end)
{
    size_t at = end;
    while (at && name.p[at - 1] != '/')
        at--;
    return mk_str(name.p + at, end - at);
}

bool mk_source_has_extension(enum mk_source_name kind, struct mk_str name, struct mk_str extension)
{
    assert(extension.len > 1 && extension.p[0] == '.');
    for (name = mk_str_strip_end(name, "/"); name.len; name = mk_str_strip_end(name, "/")) {
        struct mk_str segment = get_segment(name, name.len);
        if (mk_str_iends(segment, extension) || mk_str_iends(mk_source_strip(segment), extension))
            return true;
        if (kind == MK_SOURCE_FILE)
            return false;
        name.len -= segment.len;
    }
    return false;
}

int mk_source_add_extension(struct mk_source_extensions *all, struct mk_str extension)
{
    uint32_t n = 0;
    while (n < all->n && !mk_str_eq(all->items[n], extension))
        n++;
    if (n < all->n)
        return 0;
    struct mk_str *items = mk_account_alloc(NULL, (n + 1) * sizeof(*items));
    if (!items)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        items[i] = all->items[i];
    items[n] = extension;
    mk_source_release_extensions(all);
    *all = (struct mk_source_extensions){items, n + 1};
    return 0;
}

bool mk_source_has_extension_of(enum mk_source_name kind, struct mk_str name, const struct mk_source_extensions *all)
{
    uint32_t i = 0;
    while (i < all->n && !mk_source_has_extension(kind, name, all->items[i]))
        i++;
    return i < all->n;
}

void mk_source_release_extensions(struct mk_source_extensions *all)
{
    mk_account_free(NULL, all->items, all->n * sizeof(*all->items));
}

/* Tells whether a name is one of those that are looked for. */
typedef bool (*name_test)(void *arg, struct mk_str name);

/* Tests the file whose swap file the name is: "/a/x" for "/a/.x", which was "/a/.x.swp". */
static bool test_without_dot(struct mk_str name, name_test test, void *arg)
{
    MK_UNINITIALIZED char text[PATH_BYTES_MAX];
    struct mk_str segment = get_segment(name, name.len);
    size_t before = name.len - segment.len;
    if (segment.len < 2 || segment.p[0] != '.' || name.len > sizeof(text))
        return false;
    memcpy(text, name.p, before);
    memcpy(text + before, segment.p + 1, segment.len - 1);
    return test(arg, mk_str(text, name.len - 1));
}

/* Tests a name, and those of which it is a copy. */
static bool test_names(struct mk_str name, name_test test, void *arg)
{
    if (test(arg, name))
        return true;
    for (size_t n = count_suffix(name); n; n = count_suffix(name)) {
        name.len -= n;
        if (test(arg, name) || test_without_dot(name, test, arg))
            return true;
    }
    return false;
}

/* ── patterns ── */

bool mk_source_is_by_name(const struct mk_pattern *pattern, struct mk_str path)
{
    MK_UNINITIALIZED char other[PATH_BYTES_MAX];
    size_t before = path.len - get_segment(path, path.len).len;
    if (pattern->kind == MK_PATTERN_EXACT || pattern->kind == MK_PATTERN_PREFIX)
        return pattern->kind == MK_PATTERN_EXACT;
    if (before >= sizeof(other))
        return true;
    memcpy(other, path.p, before);
    other[before] = 'x';
    return mk_pattern_match(pattern, mk_str(other, before + 1)) == 0;
}

bool mk_source_is_whole_site(const struct mk_pattern *pattern)
{
    return mk_pattern_match(pattern, MK_STR("/x")) != 0;
}

/* What is compared with a name. */
struct taking {
    const struct mk_source_query *of;
    const struct mk_pattern *pattern;
    bool only_names;
};

static bool takes_path(void *arg, struct mk_str path)
{
    const struct taking *t = arg;
    if (mk_pattern_match(t->pattern, path) == 0)
        return false;
    return mk_source_is_by_name(t->pattern, path) ||
           (!t->only_names && !mk_host_prefers_files(t->of->host, t->pattern, path));
}

bool mk_source_is_taken(const struct mk_source_query *of, const struct mk_pattern *pattern, bool only_names)
{
    struct taking t = {.of = of, .pattern = pattern, .only_names = only_names};
    if (of->kind == MK_SOURCE_PATH)
        return test_names(of->name, takes_path, &t);
    struct mk_str path = mk_source_folder_strip(of->root, of->name);
    if (path.p)
        return path.len && test_names(path, takes_path, &t);
    bool is_path = pattern->kind == MK_PATTERN_EXACT || pattern->kind == MK_PATTERN_PREFIX;
    return !is_path && test_names(of->name, takes_path, &t);
}

const void *mk_source_next_section(const struct mk_source_query *of, const struct mk_conf_section *section,
                                   size_t pattern, const void *section_struct)
{
    struct mk_str path = of->kind == MK_SOURCE_FILE ? mk_source_folder_strip(of->root, of->name) : MK_STR_NONE;
    struct mk_str name = path.p ? path : of->name, segment = get_segment(name, name.len);
    /* All names of test_names() are the first bytes of this one, but for that of a swap file. */
    bool may_be_swap = segment.len && segment.p[0] == '.';
    return may_be_swap ? mk_host_conf_next(of->host, section, section_struct)
                       : mk_host_conf_next_match(of->host, section, pattern, name, section_struct);
}

bool mk_source_is_handled(const struct mk_source_query *of, const struct mk_plugin *plugin)
{
    const struct mk_pattern *pattern;
    bool found = false;
    for (unsigned i = 0; !found && (pattern = mk_host_handler(of->host, plugin, i)); i++)
        found = mk_source_is_taken(of, pattern, mk_source_is_whole_site(pattern));
    return found;
}

/* ── one program ── */

static bool is_folder_itself(void *arg, struct mk_str name)
{
    struct mk_str rest = mk_source_folder_strip(arg, name);
    return rest.p && !rest.len;
}

bool mk_source_is_program(struct mk_source_folder *program, struct mk_str file)
{
    return test_names(file, is_folder_itself, program);
}

bool mk_source_is_below(struct mk_str name, struct mk_str folder)
{
    folder = mk_str_strip_end(folder, "/");
    return mk_str_starts(name, folder) && (name.len == folder.len || name.p[folder.len] == '/');
}
