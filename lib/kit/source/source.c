// SPDX-License-Identifier: Apache-2.0
/*
 * Compares names with those of programs (<monkey/source.h>).
 */
#include <monkey/source.h>

#include <assert.h>

enum { PATH_BYTES_MAX = 4096 };

/* What is behind the name of a program in that of a copy, or in another name of the same file. */
static const struct mk_str suffixes[] = {
    MK_STR(".gz"),       MK_STR(".br"),       MK_STR(".zst"),      MK_STR(".bak"),       MK_STR(".old"),
    MK_STR(".orig"),     MK_STR(".swp"),      MK_STR(".swo"),      MK_STR(".save"),      MK_STR(".tmp"),
    MK_STR(".dist"),     MK_STR(".dpkg-old"), MK_STR(".dpkg-new"), MK_STR(".dpkg-dist"), MK_STR(".ucf-old"),
    MK_STR(".ucf-dist"), MK_STR(".rpmsave"),  MK_STR(".rpmnew"),   MK_STR("~"),          MK_STR("#"),
    MK_STR("."),         MK_STR(" "),         MK_STR("::$DATA"),
};

static bool ends_with(struct mk_str name, struct mk_str end)
{
    return name.len >= end.len && mk_str_ieq(mk_str(name.p + name.len - end.len, end.len), end);
}

/* Returns the bytes at the end of the name that one of the suffixes takes. */
static size_t count_suffix(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(suffixes); i++)
        if (name.len > suffixes[i].len && ends_with(name, suffixes[i]))
            return suffixes[i].len;
    return 0;
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

static struct mk_str strip_slashes(struct mk_str name)
{
    while (name.len && name.p[name.len - 1] == '/')
        name.len--;
    return name;
}

bool mk_source_has_extension(enum mk_source_name kind, struct mk_str name, struct mk_str extension)
{
    assert(extension.len > 1 && extension.p[0] == '.');
    for (name = strip_slashes(name); name.len; name = strip_slashes(name)) {
        struct mk_str segment = get_segment(name, name.len);
        if (ends_with(segment, extension) || ends_with(mk_source_strip(segment), extension))
            return true;
        if (kind == MK_SOURCE_FILE)
            return false;
        name.len -= segment.len;
    }
    return false;
}

/* Matches the file whose swap file the path names: "/a/x" for "/a/.x", which was "/a/.x.swp". */
static bool matches_without_dot(const struct mk_pattern *pattern, struct mk_str path)
{
    MK_UNINITIALIZED char text[PATH_BYTES_MAX];
    struct mk_str segment = get_segment(path, path.len);
    size_t before = path.len - segment.len;
    if (segment.len < 2 || segment.p[0] != '.' || path.len > sizeof(text))
        return false;
    memcpy(text, path.p, before);
    memcpy(text + before, segment.p + 1, segment.len - 1);
    return mk_pattern_match(pattern, mk_str(text, path.len - 1)) != 0;
}

bool mk_source_matches(const struct mk_pattern *pattern, struct mk_str path)
{
    if (mk_pattern_match(pattern, path) != 0)
        return true;
    struct mk_str original = mk_source_strip(path);
    return original.len < path.len &&
           (mk_pattern_match(pattern, original) != 0 || matches_without_dot(pattern, original));
}

bool mk_source_is_below(struct mk_str name, struct mk_str folder)
{
    folder = strip_slashes(folder);
    return mk_str_starts(name, folder) && (name.len == folder.len || name.p[folder.len] == '/');
}
