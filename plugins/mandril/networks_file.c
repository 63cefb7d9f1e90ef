// SPDX-License-Identifier: Apache-2.0
/*
 * Reads files of networks (networks.h): one network in a line, with comments.
 */
#include "networks.h"

#include <monkey/file.h>

#include <errno.h>

/* ── lines ── */

static const char blanks[] = " \t\r";

/* Cuts the next line off `text`. Returns false after the last one. */
static bool split_line(struct mk_str *text, struct mk_str *ret_line)
{
    if (!text->len)
        return false;
    *ret_line = mk_str_split(text, '\n');
    return true;
}

/* Returns the line without its comment and the blanks around it. */
static struct mk_str trim_line(struct mk_str line)
{
    line = mk_str_strip_end(mk_str_until(line, "#"), blanks);
    while (line.len && mk_is_one_of(line.p[0], blanks))
        line = mk_str_after(line, 1);
    return line;
}

/* Returns the offset of the second word of a line; 0 if it has only one. */
static size_t find_second_word(struct mk_str word)
{
    size_t i = mk_str_until(word, blanks).len;
    while (i < word.len && mk_is_one_of(word.p[i], blanks))
        i++;
    return i < word.len ? i : 0;
}

/* Reads the network of a line. Returns 0, or -EINVAL with a sentence and the offset of the mistake. */
static int read_network(struct mk_str word, struct mk_network *ret, size_t *ret_offset, struct mk_buf *message)
{
    const char *nul = memchr(word.p, '\0', word.len);
    *ret_offset = nul ? (size_t)(nul - word.p) : find_second_word(word);
    if (nul) {
        mk_buf_adds(message, MK_STR("a byte is 0: is this a text file, in UTF-8?"));
        return -EINVAL;
    }
    if (!*ret_offset)
        return mk_network_parse(word, ret, message);
    mk_buf_adds(message, MK_STR("a line has one network"));
    return -EINVAL;
}

/* Adds the networks of a text to `networks`. */
static int read_lines(struct mk_str text, struct mk_str name, struct mk_buf *networks, struct mk_buf *message)
{
    struct mk_str line;
    struct mk_network network;
    size_t offset;
    for (unsigned n = 1; split_line(&text, &line); n++) {
        struct mk_str word = trim_line(line);
        if (!word.len)
            continue;
        MK_BUF_ON_STACK(error, 256);
        int err = read_network(word, &network, &offset, &error);
        if (err < 0) {
            mk_buf_addf(message, "%.*s:%u:%u: ", MK_STR_ARG(name), n, (unsigned)(word.p - line.p + offset) + 1);
            mk_buf_adds(message, mk_buf_str(&error));
            return err;
        }
        mk_buf_add(networks, &network, sizeof(network));
        if (networks->err)
            return networks->err == -ENOMEM ? -ENOMEM : -EFBIG;
    }
    return 0;
}

int networks_read(struct mk_str text, struct mk_str name, struct network_set **ret, struct mk_buf *message)
{
    struct mk_buf networks;
    *ret = NULL;
    mk_buf_init(&networks, NETWORKS_MAX * sizeof(struct mk_network));
    int err = read_lines(text, name, &networks, message);
    if (err == -EFBIG)
        mk_buf_addf(message, "%.*s has more than %d networks", MK_STR_ARG(name), NETWORKS_MAX);
    if (err == 0) {
        *ret = networks_new((const struct mk_network *)(const void *)networks.data,
                            networks.len / sizeof(struct mk_network));
        err = *ret ? 0 : -ENOMEM;
    }
    mk_buf_release(&networks);
    return err;
}

/* ── files ── */

int networks_load(const char *path, struct network_set **ret, struct mk_buf *message)
{
    struct mk_arena arena;
    struct mk_file_bytes text;
    *ret = NULL;
    mk_arena_init(&arena, NULL, 2 * NETWORKS_BYTES_MAX, NULL, 0);
    int err = mk_file_read(path, NETWORKS_BYTES_MAX, &arena, &text);
    if (err < 0) {
        mk_buf_addf(message, "%s ", path);
        mk_file_add_read_error(message, err, NETWORKS_BYTES_MAX);
    } else {
        err = networks_read(mk_str(text.data, text.len), mk_str_c(path), ret, message);
    }
    mk_arena_release(&arena);
    return err;
}
