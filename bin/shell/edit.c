// SPDX-License-Identifier: Apache-2.0
/*
 * Line editing. The state is static: libedit calls back without a context, and a program has one terminal.
 */
#include "shell.h"

#include <editline/readline.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HISTORY_MAX = 1000, WORDS_MAX = 512, LINE_BYTES = 4096, LINE_WORDS_MAX = 64 };

/* What a word may be. */
struct word_list {
    char *items[WORDS_MAX];
    unsigned n;
};

static struct {
    struct link *link;
    struct word_list commands, kinds; /* the n-th kind is that of the n-th command */
    struct word_list found;           /* for the word that is completed now */
    unsigned at;
    char history[PATH_MAX];
} edit;

static void clear_words(struct word_list *list)
{
    while (list->n)
        free(list->items[--list->n]);
}

static void add_word(struct word_list *list, const char *word)
{
    char *copy = list->n < WORDS_MAX ? strdup(word) : NULL;
    if (copy)
        list->items[list->n++] = copy;
}

/* ── history ── */

/* Makes a folder that only its owner may enter. Returns false if there is none. */
static bool make_folder(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Stores the path of the history: in $XDG_STATE_HOME, else ~/.local/state. */
static void find_history(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char path[PATH_MAX - 64];
    if (state && state[0] == '/')
        snprintf(path, sizeof(path), "%s", state);
    else if (home && home[0] == '/' && snprintf(path, sizeof(path), "%s/.local", home) > 0 && make_folder(path))
        snprintf(path, sizeof(path), "%s/.local/state", home);
    else
        return;
    if (!make_folder(path) || snprintf(edit.history, sizeof(edit.history), "%s/monkey", path) < 0 ||
        !make_folder(edit.history))
        edit.history[0] = '\0';
    else
        snprintf(edit.history, sizeof(edit.history), "%s/monkey/shell_history", path);
}

static void load_history(void)
{
    using_history();
    stifle_history(HISTORY_MAX);
    find_history();
    if (edit.history[0])
        read_history(edit.history);
}

static void save_history(void)
{
    int fd = edit.history[0] ? open(edit.history, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (fd < 0)
        return;
    bool good = fchmod(fd, 0600) == 0;
    close(fd);
    if (good)
        write_history(edit.history);
}

/* ── completion ── */

static bool take_command(struct object *o, const char *line, void *ctx)
{
    const char *name = object_get(o, "command"), *kind = object_get(o, "_complete");
    (void)line;
    (void)ctx;
    if (name) {
        add_word(&edit.commands, name);
        add_word(&edit.kinds, kind ? kind : "");
    }
    return true;
}

static bool take_id(struct object *o, const char *line, void *ctx)
{
    const char *id = object_get(o, "id");
    (void)line;
    if (id)
        add_word(ctx, id);
    return true;
}

static bool take_names(struct object *o, const char *line, void *ctx)
{
    const char *names = object_get(o, "names");
    char *copy = names ? strdup(names) : NULL, *save = NULL;
    (void)line;
    for (char *name = copy ? strtok_r(copy, " ", &save) : NULL; name; name = strtok_r(NULL, " ", &save))
        add_word(ctx, name);
    free(copy);
    return true;
}

static void ask_terminal_line(const char *line, link_fn fn, void *ctx)
{
    struct mk_buf error;
    mk_buf_init(&error, 4096);
    link_ask(edit.link, mk_str_c(line), -1, fn, ctx, &error);
    mk_buf_release(&error);
}

static void add_all(struct word_list *list, const char *const *words)
{
    for (; *words; words++)
        add_word(list, *words);
}

static bool take_word(struct object *o, const char *line, void *ctx)
{
    const char *word = object_get(o, "word");
    (void)line;
    if (word)
        add_word(ctx, word);
    return true;
}

/* Asks the server what may follow the first `n` bytes of a line, whose command is one of a plugin. */
static void ask_next_word(const char *line, size_t n)
{
    char command[] = "complete", text[LINE_BYTES], *words[LINE_WORDS_MAX] = {command}, *save = NULL;
    int count = 1;
    struct mk_buf request;
    if (n >= sizeof(text))
        return;
    memcpy(text, line, n);
    text[n] = '\0';
    for (char *word = strtok_r(text, " \t", &save); word && count < LINE_WORDS_MAX; word = strtok_r(NULL, " \t", &save))
        words[count++] = word;
    mk_buf_init(&request, 8 * LINE_BYTES);
    link_add_words(&request, words, count);
    if (!request.err)
        ask_terminal_line(mk_buf_cstr(&request), take_word, &edit.found);
    mk_buf_release(&request);
}

/* Finds what an argument of this kind may be. */
static void find_words(const char *kind)
{
    static const char *const levels[] = {"level", "error", "warn", "info", "debug", NULL};
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", NULL};
    static const char *const keys[] = {"close",  "state=",   "peer=",  "listener=", "host=",
                                       "older=", "request=", "limit=", "sort=",     NULL};
    clear_words(&edit.found);
    if (strcmp(kind, "command") == 0)
        for (unsigned i = 0; i < edit.commands.n; i++)
            add_word(&edit.found, edit.commands.items[i]);
    else if (strcmp(kind, "connection") == 0)
        ask_terminal_line("connections limit=200", take_id, &edit.found);
    else if (strcmp(kind, "host") == 0)
        ask_terminal_line("vhosts", take_names, &edit.found);
    else if (strcmp(kind, "level") == 0)
        add_all(&edit.found, levels);
    else if (strcmp(kind, "method") == 0)
        add_all(&edit.found, methods);
    if (strcmp(kind, "connection") == 0)
        add_all(&edit.found, keys);
}

/* Returns the kind of the arguments of the command that the line begins with. */
static const char *find_kind(const char *line)
{
    size_t n = strcspn(line, " \t");
    for (unsigned i = 0; i < edit.commands.n; i++)
        if (strlen(edit.commands.items[i]) == n && strncmp(line, edit.commands.items[i], n) == 0)
            return edit.kinds.items[i];
    return "";
}

/* Returns the next word that begins with `text`, to be freed; NULL after the last one. */
static char *offer_word(const char *text, int state)
{
    if (!state)
        edit.at = 0;
    while (edit.at < edit.found.n) {
        const char *word = edit.found.items[edit.at++];
        if (strncmp(word, text, strlen(text)) == 0)
            return strdup(word);
    }
    return NULL;
}

static char **complete_line(const char *text, int start, int end)
{
    (void)end;
    /* a reload may have changed the commands */
    clear_words(&edit.commands);
    clear_words(&edit.kinds);
    ask_terminal_line("help", take_command, NULL);
    const char *kind = start == 0 ? "command" : find_kind(rl_line_buffer);
    find_words(kind);
    if (strcmp(kind, "server") == 0)
        ask_next_word(rl_line_buffer, (size_t)start);
    rl_attempted_completion_over = 1; /* no names of files */
    return rl_completion_matches(text, offer_word);
}

void edit_open(struct link *l)
{
    edit.link = l;
    rl_readline_name = "monkey-shell";
    rl_initialize();
    load_history();
    rl_attempted_completion_function = complete_line;
}

void edit_close(void)
{
    save_history();
    clear_words(&edit.commands);
    clear_words(&edit.kinds);
    clear_words(&edit.found);
}

char *edit_read(const char *prompt)
{
    char *line = readline(prompt);
    if (line && line[strspn(line, " \t")] != '\0')
        add_history(line);
    return line;
}
