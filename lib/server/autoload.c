// SPDX-License-Identifier: Apache-2.0
/*
 * Scans a configuration for the names of modules (server/autoload.h): the first word of each line, and the values of
 * Listen and TransportLayer. Included files are not scanned; plugins.load can name their modules.
 */
#include "server/autoload.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>

enum { PATH_BYTES = 4096, TEXT_BYTES_MAX = 16 * 1024 * 1024, ARENA_BYTES_MAX = 64 * 1024 * 1024 };

/* Takes the first word off a line, or the name of a section. */
static struct mk_str take_word(struct mk_str *line)
{
    *line = mk_str_trim(*line);
    if (line->len && line->p[0] == '[')
        *line = mk_str(line->p + 1, line->len - 1);
    size_t n = 0;
    while (n < line->len && !strchr(" \t\r]", line->p[n]))
        n++;
    struct mk_str word = mk_str(line->p, n);
    *line = mk_str(line->p + n, line->len - n);
    return word;
}

static uint32_t match_module(struct mk_str word, const char *const *names)
{
    for (unsigned i = 0; names[i]; i++)
        if (mk_str_ieq(word, mk_str_c(names[i])))
            return 1u << i;
    return 0;
}

uint32_t mk__autoload_match_words(struct mk_str words, const char *const *names)
{
    uint32_t found = 0;
    for (struct mk_str word; (word = take_word(&words)).len && word.p[0] != '#';)
        found |= match_module(word, names);
    return found;
}

static uint32_t scan_line(struct mk_str line, const char *const *names)
{
    struct mk_str word = take_word(&line);
    uint32_t found = match_module(word, names);
    if (!mk_str_ieq(word, MK_STR("Listen")) && !mk_str_ieq(word, MK_STR("TransportLayer")))
        return found;
    return found | mk__autoload_match_words(line, names);
}

static uint32_t scan_text(struct mk_str text, const char *const *names)
{
    uint32_t found = 0;
    while (text.len) {
        const char *end = memchr(text.p, '\n', text.len);
        size_t n = end ? (size_t)(end - text.p) : text.len;
        found |= scan_line(mk_str(text.p, n), names);
        n += end != NULL;
        text = mk_str(text.p + n, text.len - n);
    }
    return found;
}

static int scan_file(const char *path, const char *const *names, uint32_t *wanted)
{
    struct mk_arena arena;
    struct mk_str text;
    mk_arena_init(&arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    int err = mk__file_read(path, TEXT_BYTES_MAX, &arena, &text);
    if (err == 0)
        *wanted |= scan_text(text, names);
    mk_arena_release(&arena);
    return err == -ENOMEM ? err : 0;
}

static int scan_files(const char *pattern, const char *const *names, uint32_t *wanted)
{
    struct mk_arena arena;
    struct mk_str *files;
    size_t n = 0;
    mk_arena_init(&arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    int err = mk__file_glob(pattern, &arena, &files, &n);
    err = err == -ENOMEM ? err : 0;
    for (size_t i = 0; i < n && err == 0; i++)
        err = scan_file(files[i].p, names, wanted);
    mk_arena_release(&arena);
    return err;
}

int mk__autoload_find_modules(const char *dir, const char *const *names, uint32_t *ret_wanted)
{
    static const char *const places[] = {"monkey.conf", "sites/*", "plugins/*/*.conf"};
    int err = 0;
    *ret_wanted = 0;
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]) && err == 0; i++) {
        char pattern[PATH_BYTES];
        snprintf(pattern, sizeof(pattern), "%s/%s", dir, places[i]);
        err = scan_files(pattern, names, ret_wanted);
    }
    return err;
}
