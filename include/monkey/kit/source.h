// SPDX-License-Identifier: Apache-2.0
/*
 * Which names are those of programs, for plugins that run files: what is_source (<monkey/hooks.h>) compares. Names are
 * compared in any ASCII case. A copy that an editor or a tool leaves next to a program counts as the program: its name
 * followed by .gz .br .zst .bak .old .orig .swp or ~, by what other editors, tools and package managers append (.save
 * .zip .dpkg-old ...) or by a number after one (.1 .~1~ .bak2), several of them too. So does what names the same file
 * on file systems of Windows: dots and spaces after the name, or "::$DATA". Pure functions, any thread, but those of
 * folders. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_SOURCE_H
#define MONKEY_SOURCE_H

#include <pthread.h>

#include "../base/pattern.h"
#include "../program.h"

MK_C_BEGIN

enum { MK_SOURCE_NAME_BYTES = 4096 };

/* Returns the name without what makes it that of a copy; at least its first byte. */
MK_API struct mk_str mk_source_strip(struct mk_str name);

/*
 * Returns whether a segment of a path, or the last one of a file's name, ends with `extension`, which begins with a
 * dot. A segment that is not the last counts, because what follows it may be the PATH_INFO of a program.
 */
MK_API bool mk_source_has_extension(enum mk_source_name kind, struct mk_str name, struct mk_str extension);

/*
 * Returns whether the pattern matches the path for its last segment, and not for its folder: another name in the folder
 * would not match. So `*.php` and `=/a/b` do, `/a` and `~^/a/` do not.
 */
MK_API bool mk_source_is_by_name(const struct mk_pattern *pattern, struct mk_str path);
/* Returns whether the pattern is for any path, as `/` and `~^/(?!static/)` are: it says nothing about one of them. */
MK_API bool mk_source_is_whole_site(const struct mk_pattern *pattern);

/*
 * A folder of programs, or one program, by its real path, which changes when a link on its path is replaced (`current
 * -> releases/42`). The path before is remembered: a file of it may still be open, or another plugin may still use it.
 */
struct mk_source_folder {
    /* Opens it as it is now. Returns a descriptor or -errno. Any thread. */
    int (*open)(struct mk_source_folder *folder);
    /* The others are the library's. */
    pthread_mutex_t lock;
    uint64_t checked_ms; /* when it was opened last */
    struct mk_source_folder_name {
        size_t len; /* 0: none */
        char text[MK_SOURCE_NAME_BYTES];
    } names[2]; /* the newest first */
};

/* Initializes a folder in the caller's storage; it is opened by the first call that needs it. */
MK_API void mk_source_folder_init(struct mk_source_folder *folder, int (*open)(struct mk_source_folder *folder));
/* Frees what it has; the caller frees the struct. */
MK_API void mk_source_folder_release(struct mk_source_folder *folder);
/*
 * Returns what follows the folder in the name of a file (MK_SOURCE_FILE), with its slash; `.p` NULL: it is elsewhere.
 * If it seems to be, the folder is opened again, ten times a second at most; that waits for a disk only if the path of
 * the folder is not in the kernel's cache. Any thread.
 */
MK_API struct mk_str mk_source_folder_strip(struct mk_source_folder *folder, struct mk_str file);

/*
 * Writes the name of a file that the pattern takes, as an example: "/index.php" for `*.php`. Returns false for one for
 * the whole site, and if none is known.
 */
enum { MK_SOURCE_EXAMPLE_BYTES = 256 };
MK_API bool mk_source_make_example(const struct mk_pattern *pattern, char ret[MK_SOURCE_EXAMPLE_BYTES]);

/* The document root of a host, for a plugin that does not serve its files. */
struct mk_source_root {
    struct mk_source_folder folder;
    const struct mk_host *host;
};
/* Initializes the root of a host; mk_source_folder_release() of `folder` ends it. */
MK_API void mk_source_root_init(struct mk_source_root *root, const struct mk_host *host);

/* A name that is_source of a plugin gets. */
struct mk_source_query {
    const struct mk_host *host;
    struct mk_source_folder *root; /* the document root: of struct mk_source_root */
    enum mk_source_name kind;
    struct mk_str name;
};
/*
 * Returns whether a section takes the name, or one that it is a copy of, by its pattern; also if that is not known.
 * What it takes is no file, whatever leads there. The name of a file is compared by its path below the document root;
 * that of one elsewhere only with a glob or a regular expression. Left to files is what mk_host_prefers_files() says.
 * `only_names`: what mk_source_is_by_name() says alone is taken. As mk_source_folder_strip().
 */
MK_API bool mk_source_is_taken(const struct mk_source_query *of, const struct mk_pattern *pattern, bool only_names);
/*
 * Returns the first section after `section_struct` (NULL: of all) that mk_source_is_taken() may be true for, without
 * asking each of thousands; `pattern` is the offset of its struct mk_pattern. NULL: there is none.
 */
MK_API const void *mk_source_next_section(const struct mk_source_query *of, const struct mk_conf_section *section,
                                          size_t pattern, const void *section_struct);
/* Extensions of programs, each once, however many sections have them; zeroed: empty. */
struct mk_source_extensions {
    struct mk_str *items;
    uint32_t n;
};
/* Adds an extension, which must live as long, unless it is there. Returns 0 or -ENOMEM. */
MK_API int mk_source_add_extension(struct mk_source_extensions *all, struct mk_str extension);
/* Returns whether mk_source_has_extension() is true for one of them. */
MK_API bool mk_source_has_extension_of(enum mk_source_name kind, struct mk_str name,
                                       const struct mk_source_extensions *all);
/* Frees them; the texts are the caller's. */
MK_API void mk_source_release_extensions(struct mk_source_extensions *all);

/* Returns whether a line of [HANDLERS] gives the name to the plugin, likewise; but for lines for any path. */
MK_API bool mk_source_is_handled(const struct mk_source_query *of, const struct mk_plugin *plugin);
/* Returns whether a file is the program, or a copy of it next to it. As mk_source_folder_strip(). */
MK_API bool mk_source_is_program(struct mk_source_folder *program, struct mk_str file);

/* Returns whether `name` is the folder or lies below it, in this case of its letters. Slashes at their ends are
 * ignored. */
MK_API bool mk_source_is_below(struct mk_str name, struct mk_str folder);

MK_C_END

#endif
