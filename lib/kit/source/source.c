// SPDX-License-Identifier: Apache-2.0
/*
 * Compares names with those of programs (<monkey/kit/source.h>).
 */
#include <monkey/kit/source.h>

#include <assert.h>

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
