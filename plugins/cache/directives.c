// SPDX-License-Identifier: Apache-2.0
#include "entry.h"
#include "worker.h"

#include <monkey/base/memory.h>
#include <monkey/kit/embedded.h>

#include <errno.h>

enum {
    INTERVAL_MS_MAX = 24 * 3600 * 1000,
    BODIES_IN_MEMORY_MIN = 64,
    MEMORY_DEFAULT = 64 * 1024 * 1024,
    MEMORY_SHARE = 16, /* of the memory of the machine or container */
};

const struct files_policy directives_default_policy = {.mode = FILES_NOTIFY, .interval_ms = 1000},
                          directives_off = {.mode = FILES_OFF};

/* ── Files ── */

static const struct {
    struct mk_str name;
    uint8_t mode;
} modes[] = {
    {MK_STR_INIT("Off"), FILES_OFF},
    {MK_STR_INIT("EachCycle"), FILES_EACH_CYCLE},
    {MK_STR_INIT("Revalidate"), FILES_REVALIDATE},
    {MK_STR_INIT("Notify"), FILES_NOTIFY},
    {MK_STR_INIT("Immutable"), FILES_IMMUTABLE},
};

static const struct {
    struct mk_str suffix;
    uint32_t ms;
} units[] = {{MK_STR_INIT("ms"), 1},
             {MK_STR_INIT("s"), 1000},
             {MK_STR_INIT("m"), 60 * 1000},
             {MK_STR_INIT("h"), 3600 * 1000},
             {MK_STR_INIT(""), 1000}};

/* Parses 500ms, 2s, 1m or 2. Returns 0 if it is no such time, or too long. */
static uint32_t parse_interval_ms(struct mk_str word)
{
    unsigned i = 0;
    uint64_t n;
    while (!mk_str_ends(word, units[i].suffix))
        i++;
    struct mk_str digits = mk_str(word.p, word.len - units[i].suffix.len);
    if (!mk_str_u64(digits, INTERVAL_MS_MAX, &n) || n * units[i].ms > INTERVAL_MS_MAX)
        return 0;
    return (uint32_t)(n * units[i].ms);
}

int directives_parse_files(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct files_policy *policy = field;
    unsigned i = 0;
    (void)arena;
    while (i < MK_COUNT_OF(modes) && !(value->n && mk_str_ieq(value->words[0], modes[i].name)))
        i++;
    if (i == MK_COUNT_OF(modes))
        return mk_conf_fail(
            error, "the values are Off, EachCycle, Notify and Revalidate with a time such as 1s, and Immutable");
    *policy = (struct files_policy){.mode = modes[i].mode, .interval_ms = directives_default_policy.interval_ms};
    if (value->n == 1)
        return 0;
    if (policy->mode != FILES_REVALIDATE && policy->mode != FILES_NOTIFY) {
        mk_buf_addf(error, "only Notify and Revalidate take a time; %.*s takes none", MK_STR_ARG(modes[i].name));
        return -EINVAL;
    }
    policy->interval_ms = value->n == 2 ? parse_interval_ms(value->words[1]) : 0;
    if (policy->interval_ms)
        return 0;
    mk_buf_addf(error,
                value->n > 2 ? "%.*s takes one time, a word such as 1s"
                             : "%.*s needs a time from 1ms to 24h; to revalidate a file in each turn of the loop there "
                               "is EachCycle",
                MK_STR_ARG(modes[i].name));
    return -EINVAL;
}

const char *directives_mode_name(enum files_mode mode)
{
    unsigned i = 0;
    while (modes[i].mode != mode)
        i++;
    return modes[i].name.p;
}

/* ── Warm ── */

/* Parses a line of `Warm` into a struct warm_list; an mk_conf_parse_fn. */
static int parse_warm(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct warm_list *list = field;
    struct warm_item item = {.text = value->text};
    if (value->n != 1 || !value->text.len)
        return mk_conf_fail(error,
                            "one folder of the host such as /assets/ is needed, or one file with a list of paths");
    item.is_folder = item.text.p[0] == '/' && item.text.p[item.text.len - 1] == '/';
    if (item.is_folder)
        item.text = mk_arena_dup(arena, item.text);
    int err =
        item.is_folder ? (item.text.p ? 0 : -ENOMEM) : mk_conf_read_path(value, item.text, &item.text, arena, error);
    struct warm_item *items = err < 0 ? NULL : mk_arena_grow(arena, list->items, list->n, sizeof(item));
    if (!items)
        return err < 0 ? err : -ENOMEM;
    items[list->n] = item;
    *list = (struct warm_list){items, list->n + 1};
    return 0;
}

/* A section that has only `Admin` or `Warm` matches no path: none is empty. */
static void check_rule(const struct mk_conf_check *check, void *section)
{
    struct cache_rule *rule = section;
    (void)check;
    if (rule->files.mode != FILES_UNSET)
        return;
    rule->files = directives_default_policy;
    if (rule->admin.len || rule->warm.n)
        rule->match = (struct mk_pattern){.kind = MK_PATTERN_EXACT, .text = MK_STR("")};
}

bool directives_is_about_files(const struct cache_rule *rule)
{
    return rule->match.kind != MK_PATTERN_EXACT || rule->match.text.len;
}

static const struct mk_conf_key rule_keys[] = {
    MK_CONF_KEY_PATTERN(struct cache_rule, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.json`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_CONF_KEY_CUSTOM(
        struct cache_rule, files, "Files", NULL,
        "How soon a change of a file is seen. `Notify 1s`: by the next request where the kernel reports it (inotify), "
        "else within that time. `Revalidate 1s`: within that time; a file is revalidated "
        "once in it at most, and before it is served if it was not asked for meanwhile. `EachCycle`: at the "
        "next turn of the loop. `Immutable`: after a reload. `Off`: the files are not cached. Without this key: "
        "`Notify 1s`, or nothing in a section that has `Admin` or `Warm`.",
        .unit = "Off, EachCycle, Notify time, Revalidate time or Immutable", .parse = directives_parse_files),
    MK_CONF_KEY_CUSTOM(
        struct cache_rule, admin, "Admin", NULL,
        "The path of a page that shows what the cache holds of this host, and of its API: `/cache`. It is "
        "for clients on this machine, and for those that a rule of `[RULES]` allows or that have logged "
        "in (`[AUTH]`). The first section that has it counts.",
        .unit = "path", .parse = mk_embedded_parse_path),
    MK_CONF_KEY_CUSTOM(struct cache_rule, warm, "Warm", NULL,
                       "Files that are loaded before the first request, and after a reload those that are new: a "
                       "folder of the host with all below it (`/assets/`, with a slash at its end), or a file with a "
                       "list of paths, one in a line. What the cache has no room for is not loaded.",
                       .flags = MK_CONF_REPEAT, .unit = "folder or file", .parse = parse_warm),
    {0},
};

/* ── memory ── */

static const struct mk_conf_key server_keys[] = {
    MK_CONF_KEY_SIZE(struct cache_conf, bytes_max, "Memory", "0",
                     "What the cache may take, of all workers together: bodies, heads, keys and tables. 0: 64M, or a "
                     "16th of the memory of the machine or container (control group) if that is less.",
                     .min = 0, .max = INT64_C(1) << 40),
    MK_CONF_KEY_SIZE(struct cache_conf, body_bytes_max, "BodyMax", "15K",
                     "Files up to this size are kept in memory; of larger ones the descriptor is kept, and the kernel "
                     "sends them from its page cache.",
                     .min = 0, .max = 1 << 20),
    MK_CONF_KEY_INT(
        struct cache_conf, descriptors_max, "Descriptors", "4096",
        "How many descriptors of files are kept open, at most a quarter of `FDLimit`. One that was not used "
        "for 20 seconds is closed. 0: none.",
        .min = 0, .max = 1 << 20),
    MK_CONF_KEY_INT(struct cache_conf, missing_max, "Missing", "4096",
                    "How many names are remembered that do not exist or may not be read. 0: none.", .min = 0,
                    .max = 1 << 24),
    MK_CONF_KEY_DURATION(struct cache_conf, warm_timeout_ms, "WarmTimeout", "5s",
                         "How long the first requests of the process wait for `Warm`; what is left is loaded while "
                         "the server serves. 0s: they do not wait.",
                         .unit = "s", .min = 0, .max = 60 * 1000),
    {0},
};

static uint64_t find_default_memory(uint64_t least)
{
    uint64_t share = mk_memory_bytes() / MEMORY_SHARE;
    share = share < MEMORY_DEFAULT ? share : MEMORY_DEFAULT;
    return share > least ? share : least;
}

static void check_memory(const struct mk_conf_check *check, void *section)
{
    struct cache_conf *conf = section;
    uint64_t least = (conf->body_bytes_max + ENTRY_HEAD_BYTES_MAX) * BODIES_IN_MEMORY_MIN;
    if (!conf->bytes_max)
        conf->bytes_max = find_default_memory(least);
    else if (conf->bytes_max < least)
        mk_conf_error(
            check, offsetof(struct cache_conf, bytes_max),
            "\"Memory\" is too small for a body of \"BodyMax\" (%lluK), which may take a 64th of it: at least "
            "%lluK are needed",
            (unsigned long long)conf->body_bytes_max / 1024, (unsigned long long)(least + 1023) / 1024);
}

const struct mk_conf_section directives_sections[] = {
    [DIRECTIVES_SERVER] = {.name = "CACHE",
                           .scope = MK_CONF_SCOPE_SERVER,
                           .size = sizeof(struct cache_conf),
                           .keys = server_keys,
                           .doc = MK_CONF_DOC("The memory of the file cache, which all hosts share."),
                           .check = check_memory},
    [DIRECTIVES_RULES] = {.name = "CACHE",
                          .scope = MK_CONF_SCOPE_HOST,
                          .flags = MK_CONF_REPEAT,
                          .size = sizeof(struct cache_rule),
                          .keys = rule_keys,
                          .doc =
                              MK_CONF_DOC("Which files of a host are cached, and how soon changes are seen. The first "
                                          "section that matches a path is used. Without a section: `Notify 1s`. "
                                          "And what is loaded ahead, and the page of the cache."),
                          .check = check_rule},
    {0},
};
