// SPDX-License-Identifier: Apache-2.0
/*
 * Directives: rules of hosts, of which the first that matches a path is used, and limits of the server.
 */
#include "listing.h"

#include <assert.h>
#include <errno.h>

static const struct mk_str archive_names[ARCHIVE_KINDS] = {
    [ARCHIVE_NONE] = MK_STR("none"),
    [ARCHIVE_TAR] = MK_STR("tar"),
    [ARCHIVE_TAR_GZ] = MK_STR("tar.gz"),
    [ARCHIVE_TAR_ZST] = MK_STR("tar.zst"),
};

enum archive_kind rules_archive_kind(struct mk_str name)
{
    enum archive_kind kind = ARCHIVE_KINDS - 1;
    while (kind > ARCHIVE_NONE && !mk_str_eq(archive_names[kind], name))
        kind--;
    return kind;
}

struct mk_str rules_archive_name(enum archive_kind kind)
{
    assert(kind > ARCHIVE_NONE && kind < ARCHIVE_KINDS);
    return archive_names[kind];
}

static int parse_theme(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *theme = field, text = value->text;
    if (!text.len)
        return mk_conf_fail(error, "a theme has a name");
    if (memchr(text.p, '/', text.len))
        return mk_conf_read_path(value, text, theme, arena, error);
    *theme = mk_arena_dup(arena, text);
    return theme->p ? 0 : -ENOMEM;
}

static const struct mk_conf_key limit_keys[] = {
    MK_CONF_KEY_SIZE(struct listing_limits, memory, "Memory", "64M",
                     "The memory that the listings of all clients may take together. When it is used up, further ones "
                     "are sent unsorted, in batches of 64 KB.",
                     .min = 1024 * 1024),
    MK_CONF_KEY_INT(struct listing_limits, archives, "Archives", "4",
                    "How many archives are made at the same time; further requests for one get 503.", .min = 1,
                    .max = 1000),
    MK_CONF_KEY_INT(struct listing_limits, archives_per_client, "ArchivesPerClient", "2",
                    "How many of them one client gets at the same time, so that a client that reads slowly leaves "
                    "some to others; further requests get 429. A client is an IPv4 address or an IPv6 network of 64 "
                    "bits; all clients of Unix sockets are one.",
                    .min = 1, .max = 1000),
    {0},
};

static const struct mk_conf_key rule_keys[] = {
    MK_CONF_KEY_PATTERN(struct listing_rule, match, "Match", "/",
                        "Which folders, by their paths: `=/exact/`, `/prefix` with everything below it, a glob, or a "
                        "regular expression."),
    MK_CONF_KEY_BOOL(struct listing_rule, enabled, "Enabled", "On",
                     "Off: folders at these paths are not listed, and are in no archive."),
    MK_CONF_KEY_SIZE(struct listing_rule, bytes_max, "MaxListing", "16M",
                     "The memory for the entries of one folder; an entry takes about 80 bytes. A larger folder is sent "
                     "unsorted.",
                     .min = 64 * 1024, .max = 1024 * 1024 * 1024),
    MK_CONF_KEY_ENUM(struct listing_rule, sort, "Sort", "name",
                     "How entries are sorted if the client does not say it (`?sort=`): `name`, `size` or `date`.",
                     .names = order_sorts),
    MK_CONF_KEY_ENUM(struct listing_rule, order, "Order", "asc",
                     "In which direction: `asc` or `desc`. Folders come first.", .names = order_directions),
    MK_CONF_KEY_CUSTOM(
        struct listing_rule, theme, "Theme", "default",
        "The theme of the page: `default` or `guineo`, which are installed, or the path of a folder with "
        "the templates `header.theme`, `entry.theme` and `footer.theme`, such as `./theme`. They are read "
        "at the start.",
        .unit = "name or path", .parse = parse_theme),
    MK_CONF_KEY_STRING(struct listing_rule, theme_url, "ThemeURL", "/theme",
                       "Where the site has further files of a theme, such as pictures: the field `%_theme_path_%`."),
    MK_CONF_KEY_LIST(struct listing_rule, readme, "ReadMe", NULL,
                     "Names of files, such as `README README.md`: the text of the first that the folder has is shown "
                     "below the list, up to 64 KB of it."),
    MK_CONF_KEY_PATTERNS(struct listing_rule, hidden, "Hidden", NULL,
                         "Patterns of paths, as in `Match`, that no listing and no archive has, such as `*.bak`. The "
                         "files can still be requested by their names.",
                         .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_LIST(struct listing_rule, archive_names, "Archives", NULL,
                     "The kinds of archives in which clients can get a folder (`?archive=tar.gz`): `tar`, `tar.gz`, "
                     "`tar.zst`."),
    MK_CONF_KEY_SIZE(struct listing_rule, archive_bytes_max, "ArchiveMaxBytes", "4G",
                     "The bytes of all files in one archive; the response of a larger one is cut.", .min = 1),
    MK_CONF_KEY_INT(struct listing_rule, archive_entries_max, "ArchiveMaxEntries", "100000",
                    "The files and folders in one archive; the response of a larger one is cut.", .min = 1,
                    .max = 100000000),
    MK_CONF_KEY_INT(struct listing_rule, archive_depth_max, "ArchiveMaxDepth", "32",
                    "How many folders may be within each other in one archive; the response of a deeper one is cut.",
                    .min = 1, .max = 100),
    MK_CONF_KEY_BOOL(struct listing_rule, archive_indexed, "ArchiveIndexed", "Off",
                     "On: archives have the files of folders with an index, too, which are not listed."),
    {0},
};

static void check_rule(const struct mk_conf_check *check, void *section)
{
    struct listing_rule *r = section;
    for (uint32_t i = 0; i < r->archive_names.n; i++) {
        enum archive_kind kind = rules_archive_kind(r->archive_names.items[i]);
        if (kind == ARCHIVE_NONE || r->archives[kind])
            mk_conf_error_nth(check, offsetof(struct listing_rule, archive_names), i,
                              "\"Archives\" takes tar, tar.gz and tar.zst, each once at most, not \"%.*s\"",
                              MK_STR_ARG(r->archive_names.items[i]));
        r->archives[kind] = true;
    }
    for (uint32_t i = 0; i < r->readme.n; i++)
        if (memchr(r->readme.items[i].p, '/', r->readme.items[i].len) || r->readme.items[i].len > 255)
            mk_conf_error_nth(check, offsetof(struct listing_rule, readme), i,
                              "\"ReadMe\" takes names of files in the folder, not \"%.*s\"",
                              MK_STR_ARG(r->readme.items[i]));
}

static const struct mk_conf_short_form short_form = {
    .name = "Listing",
    .key = "Enabled",
    .doc = MK_CONF_DOC("Lists folders that have no index: `Listing On`, or for some paths only `Listing /pub On`."),
};

const struct mk_conf_section rules_sections[] = {
    [RULES_LIMITS] = {.name = "DIRLISTING_LIMITS",
                      .scope = MK_CONF_SCOPE_SERVER,
                      .size = sizeof(struct listing_limits),
                      .keys = limit_keys,
                      .doc = MK_CONF_DOC("What listings and archives of all hosts may take together.")},
    [RULES_RULE] = {.name = "DIRLISTING",
                    .scope = MK_CONF_SCOPE_HOST,
                    .flags = MK_CONF_REPEAT,
                    .size = sizeof(struct listing_rule),
                    .keys = rule_keys,
                    .short_form = &short_form,
                    .check = check_rule,
                    .doc = MK_CONF_DOC("Lists folders that have no index. The first section that matches a path is "
                                       "used.")},
    {0},
};

const struct listing_rule *rules_find(const struct mk_host *host, struct mk_str path)
{
    const void *rule; /* NULL, too, if a pattern fails on the path: it is not listed */
    mk_host_conf_match(host, &rules_sections[RULES_RULE], offsetof(struct listing_rule, match), path, &rule);
    return rule;
}

const struct listing_limits *rules_limits(const struct mk_host *host)
{
    return mk_host_server_conf(host, &rules_sections[RULES_LIMITS]);
}

bool rules_is_hidden(const struct listing_rule *rule, struct mk_str path)
{
    return mk_patterns_match(&rule->hidden, path) != 0; /* below 0: it is not known */
}
