// SPDX-License-Identifier: Apache-2.0
/*
 * A folder of one host may be that of another one, which runs files of it. Examples of their names are compared, by
 * their real paths: what each host says of them decides (mk_host_is_source()). What [RULES] deny to all clients is not
 * sent.
 */
#include "static.h"

#include <monkey/base/arena.h>
#include <monkey/program.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SCANNED_MAX = 1000, SCANNED_LEVELS = 3, ORIGIN_BYTES = 4096, PROGRAMS_BYTES_MAX = 64 << 20 };

/* A program of a host, by its real path. */
struct program {
    const struct mk_host *host;
    const void *section_struct;
    struct mk_str name;
};

/* Those of all hosts, host by host: they are looked up once, and compared with what each host sends. */
struct programs {
    struct mk_arena arena;
    struct program *items;
    uint32_t n;
    const struct mk_host *host; /* whose programs are added */
};

/* A folder, or a file, that a host sends, and the key that says so. */
struct sent {
    struct mk_host *host;
    const struct programs *programs;
    struct static_site *site;
    const void *section_struct;
    size_t offset;
    struct mk_str name; /* of a file in the folder; empty: all of them */
};

/* ── names ── */

/* Writes the name of a program. Returns its length; 0: it is too long, or there is no folder. */
static size_t name_program(const struct mk_host *host, const struct mk_program *program, char ret[STATIC_NAME_BYTES])
{
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    MK_UNINITIALIZED char configured[STATIC_NAME_BYTES], real[PATH_MAX];
    struct mk_str folder = site ? site->path : MK_STR_NONE;
    if (program->folder.len) {
        snprintf(configured, sizeof(configured), "%.*s", MK_STR_ARG(program->folder));
        folder = realpath(configured, real) ? mk_str_c(real) : MK_STR_NONE;
    }
    if (!folder.p)
        return 0;
    int n = snprintf(ret, STATIC_NAME_BYTES, "%.*s%.*s", MK_STR_ARG(folder), MK_STR_ARG(program->name));
    return n < STATIC_NAME_BYTES ? (size_t)n : 0;
}

/* Returns the last segment of a name with its slash. */
static struct mk_str get_last(struct mk_str name)
{
    const char *slash = memrchr(name.p, '/', name.len);
    return mk_str_after(name, (size_t)(slash - name.p));
}

/* Both are real paths without a last slash. */
static bool is_below(struct mk_str name, struct mk_str folder)
{
    return mk_str_starts(name, folder) && (name.len == folder.len || name.p[folder.len] == '/');
}

/*
 * Writes a name that `sent` may be asked for: the program's, if it is below the folder; one like it in the folder, if
 * that is below the program's; or the only file. Returns its length, or 0.
 */
static size_t choose_name(const struct sent *sent, struct mk_str program, char ret[STATIC_NAME_BYTES])
{
    struct mk_str folder = sent->site->path, last = get_last(program);
    struct mk_str of = mk_str(program.p, program.len - last.len);
    int n = sent->name.len ? snprintf(ret, STATIC_NAME_BYTES, "%.*s%.*s", MK_STR_ARG(folder), MK_STR_ARG(sent->name))
            : is_below(program, folder) ? snprintf(ret, STATIC_NAME_BYTES, "%.*s", MK_STR_ARG(program))
            : is_below(folder, of) ? snprintf(ret, STATIC_NAME_BYTES, "%.*s%.*s", MK_STR_ARG(folder), MK_STR_ARG(last))
                                   : 0;
    return n > 0 && n < STATIC_NAME_BYTES ? (size_t)n : 0;
}

/* Tells whether any client gets the bytes of a file, by its path on the host and by its name. */
static bool sends_file(const struct sent *sent, struct mk_str file)
{
    char path[2 * STATIC_NAME_BYTES];
    struct mk_str below = mk_str_after(file, sent->site->path.len);
    int n = snprintf(path, sizeof(path), "%.*s%.*s", MK_STR_ARG(sent->site->prefix),
                     MK_STR_ARG(sent->name.len ? MK_STR("") : below));
    struct mk_str url = mk_str(path, (size_t)n);
    if (!sent->site->of_host && mk__static_alias_find_pattern(sent->host, url))
        return false; /* the path is that of an alias */
    return !mk_host_is_source(sent->host, MK_SOURCE_FILE, file) &&
           !mk_host_is_source(sent->host, MK_SOURCE_PATH, url) && mk_host_asks_files(sent->host, url) &&
           !mk_host_denies_path(sent->host, url);
}

/* ── other hosts ── */

/* Without memory a program is not compared: only a warning would be missing. */
static void add_program(const struct mk_program *program, void *ctx)
{
    struct programs *all = ctx;
    MK_UNINITIALIZED char name[STATIC_NAME_BYTES];
    size_t n = name_program(all->host, program, name);
    struct mk_str copy = n ? mk_arena_dup(&all->arena, mk_str(name, n)) : MK_STR_NONE;
    struct program *items = copy.p ? mk_arena_grow(&all->arena, all->items, all->n, sizeof(*items)) : NULL;
    if (!items)
        return;
    all->items = items;
    items[all->n++] = (struct program){all->host, program->section_struct, copy};
}

/* Tells whether the folder of a file exists: `Match /app` need not be more than a path of an application. */
static bool has_folder(struct mk_str file)
{
    MK_UNINITIALIZED char folder[STATIC_NAME_BYTES];
    snprintf(folder, sizeof(folder), "%.*s/", (int)(file.len - get_last(file).len), file.p);
    return access(folder, F_OK) == 0;
}

/* Returns whether the program is one that another host sends, which was reported. */
static bool compare_program(const struct sent *sent, const struct program *program)
{
    MK_UNINITIALIZED char file[STATIC_NAME_BYTES];
    size_t len = choose_name(sent, program->name, file);
    if (!len || !mk_host_is_source(program->host, MK_SOURCE_FILE, mk_str(file, len)) ||
        !sends_file(sent, mk_str(file, len)) || !has_folder(mk_str(file, len)))
        return false;
    struct mk_buf origin;
    mk_buf_init(&origin, ORIGIN_BYTES);
    mk_host_conf_origin(program->host, program->section_struct, &origin);
    mk_host_warn(sent->host, sent->section_struct, sent->offset, 0,
                 "%.*s is a program of another host, which runs it by %s, and a file of this one, which sends its "
                 "source: write that section here, too, or deny such paths by [RULES]",
                 (int)len, file, mk_buf_cstr(&origin));
    mk_buf_release(&origin);
    return true;
}

/* Compares what is sent with the programs of all other hosts; reports one of each. Returns whether there is any. */
static bool compare_hosts(const struct sent *sent)
{
    const struct mk_host *reported = NULL;
    for (uint32_t i = 0; i < sent->programs->n; i++) {
        const struct program *program = &sent->programs->items[i];
        if (program->host != sent->host && program->host != reported && compare_program(sent, program))
            reported = program->host;
    }
    return reported != NULL;
}

/* ── programs of the host itself ── */

/* A folder whose files are all programs may be that of the host's files, or one above it: then it sends none. */
static void compare_root(const struct mk_program *program, void *ctx)
{
    const struct sent *sent = ctx;
    MK_UNINITIALIZED char name[STATIC_NAME_BYTES], file[STATIC_NAME_BYTES];
    size_t n = program->folder.len ? name_program(sent->host, program, name) : 0;
    if (!n || !is_below(sent->site->path, mk_str(name, n - get_last(mk_str(name, n)).len)))
        return;
    int len = snprintf(file, sizeof(file), "%.*s/x", MK_STR_ARG(sent->site->path));
    if (len < (int)sizeof(file) && mk_host_is_source(sent->host, MK_SOURCE_FILE, mk_str(file, (size_t)len)))
        mk_host_warn(
            sent->host, program->section_struct, program->offset, 0,
            "the document root is this folder, or below it: all of its files are programs, and none is sent. Write "
            "a folder that has nothing but programs");
}

/* ── programs that no host runs ── */

/* Looks for a script in a folder and those below it, with a limit for all entries. */
struct scan {
    const struct sent *sent;
    unsigned entries_left;
    char name[STATIC_NAME_BYTES]; /* of the folder; at the end of a script, if one was found */
};

/* Returns the length of the name with an entry behind it; 0: it is too long, or is not looked at. */
static size_t add_entry(struct scan *s, size_t len, const struct dirent *e)
{
    if (e->d_name[0] == '.' || !s->entries_left)
        return 0;
    s->entries_left--;
    int n = snprintf(s->name + len, sizeof(s->name) - len, "/%s", e->d_name);
    return (size_t)n < sizeof(s->name) - len ? len + (size_t)n : 0;
}

/* Opens the name as a request does, through links that SymLink follows. Returns a descriptor or -errno. */
static int open_scanned(const struct scan *s)
{
    struct static_site *site = s->sent->site;
    const char *name = s->name + site->path.len;
    return sources_check(site, mk__static_open_name(site, name[0] ? name + 1 : ".", false));
}

/* Tells whether a link leads to a file that is sent. */
static bool leads_to_file(const struct scan *s)
{
    struct stat st;
    int fd = open_scanned(s);
    bool is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (fd >= 0)
        close(fd);
    return is_file;
}

/* Tells whether a name is that of a script of PHP: one that Debian's configuration of it has, or did. */
static bool is_script_name(struct mk_str file)
{
    static const char *const ends[] = {".php", ".phtml", ".phar", ".php3", ".php4", ".php5", ".php7", ".php8"};
    for (size_t i = 0; i < MK_COUNT_OF(ends); i++)
        if (mk_str_iends(file, mk_str_c(ends[i])))
            return true;
    return false;
}

static bool is_sent_script(const struct scan *s, size_t len, const struct dirent *e)
{
    struct mk_str file = mk_str(s->name, len);
    return is_script_name(file) && sends_file(s->sent, file) &&
           (e->d_type == DT_REG || (e->d_type == DT_LNK && leads_to_file(s)));
}

static bool scan_folder(struct scan *s, size_t len, unsigned levels);

/* Returns whether there is a script in an open folder, whose name has `len` bytes. Files come before folders. */
static bool scan_entries(struct scan *s, DIR *dir, size_t len, unsigned levels)
{
    const struct dirent *e;
    size_t n;
    while (s->entries_left && (e = readdir(dir)))
        if ((n = add_entry(s, len, e)) && is_sent_script(s, n, e))
            return true;
    rewinddir(dir);
    while (levels && s->entries_left && (e = readdir(dir)))
        if ((e->d_type == DT_DIR || e->d_type == DT_LNK) && (n = add_entry(s, len, e)) && scan_folder(s, n, levels - 1))
            return true;
    return false;
}

static bool scan_folder(struct scan *s, size_t len, unsigned levels)
{
    int fd = open_scanned(s);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    bool found = dir && scan_entries(s, dir, len, levels);
    if (dir)
        closedir(dir);
    return found;
}

/* Reports the first PHP script that is found below the folder. */
static void scan_site(const struct sent *sent)
{
    struct scan s = {.sent = sent, .entries_left = SCANNED_MAX};
    struct mk_str root = sent->site->path;
    if (root.len >= sizeof(s.name))
        return;
    memcpy(s.name, root.p, root.len);
    if (scan_folder(&s, root.len, SCANNED_LEVELS))
        mk_host_warn(sent->host, sent->section_struct, sent->offset, 0,
                     "%s is a script that no section runs: its source is sent as a file. Write [FASTCGI] for such "
                     "scripts, or deny their paths by [RULES]",
                     s.name);
}

/* Compares what a folder or a file has with what other hosts run, and a check with what none does. */
static void check_sent(const struct sent *sent)
{
    bool is_reported = compare_hosts(sent);
    if (!is_reported && !sent->name.len && mk_generation_is_check(mk_host_generation(sent->host)))
        scan_site(sent);
}

static void check_alias(struct static_site *alias, const struct alias_rule *section, struct mk_str name, void *ctx)
{
    struct sent sent = *(const struct sent *)ctx; /* the root of the host */
    sent.site = alias;
    sent.section_struct = section;
    sent.offset = offsetof(struct alias_rule, to);
    sent.name = name;
    check_sent(&sent);
}

/* ── all hosts ── */

static void check_host(struct mk_host *host, const struct programs *programs)
{
    struct static_site *site = mk_host_state(host, &mk_plugin_static);
    struct sent root = {.host = host, .programs = programs, .site = site, .offset = offsetof(struct static_host, root)};
    if (!site)
        return;
    root.section_struct = site->host;
    if (site->root_fd >= 0) {
        mk_host_each_program(host, compare_root, &root);
        check_sent(&root);
    }
    mk__static_alias_each_section(site, check_alias, &root);
}

void mk__static_other_programs_check(struct mk_generation *g)
{
    struct programs all = {.n = 0};
    mk_arena_init(&all.arena, NULL, PROGRAMS_BYTES_MAX, NULL, 0);
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host)) {
        all.host = host;
        mk_host_each_program(host, add_program, &all);
    }
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host))
        check_host(host, &all);
    mk_arena_release(&all.arena);
}
