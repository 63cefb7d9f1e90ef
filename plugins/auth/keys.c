// SPDX-License-Identifier: Apache-2.0
/* Which format a file of keys has, and secrets (keys.h). */
#include "keys.h"

#include <monkey/file.h>

#include <errno.h>

#include "jwks.h"
#include "pem_keys.h"

static int report_memory(struct mk_buf *message, const char *name)
{
    mk_buf_addf(key_set_report(message, name), "cannot be stored: %s", strerror(ENOMEM));
    return -ENOMEM;
}

/* What is surely no secret, but a key file under the wrong directive. */
static bool is_key_file(struct mk_str bytes)
{
    return memmem(bytes.p, bytes.len, "-----BEGIN", 10) || memmem(bytes.p, bytes.len, "\"kty\"", 5) ||
           mk_str_starts(bytes, MK_STR("\x30\x82")) || mk_str_starts(bytes, MK_STR("ssh-"));
}

static int read_secret(struct key_set *keys, const char *name, struct mk_str bytes, struct mk_buf *message)
{
    if (is_key_file(bytes)) {
        mk_buf_addf(key_set_report(message, name), "holds a key, not a secret: name it behind Keys");
        return -EINVAL;
    }
    if (bytes.len && bytes.p[bytes.len - 1] == '\n')
        bytes.len--;
    if (bytes.len && bytes.p[bytes.len - 1] == '\r')
        bytes.len--;
    MK_BUF_ON_STACK(phrase, 128);
    int err = key_set_add_secret(keys, bytes, MK_STR_NONE, &phrase);
    if (err < 0)
        mk_buf_adds(key_set_report(message, name), mk_buf_str(&phrase));
    return err;
}

static bool is_json(struct mk_str bytes)
{
    size_t i = 0;
    while (i < bytes.len && mk_is_one_of(bytes.p[i], " \t\r\n"))
        i++;
    return i < bytes.len && bytes.p[i] == '{';
}

int keys_read(struct key_set *keys, enum keys_kind kind, const char *name, struct mk_str bytes, struct mk_buf *message)
{
    int err = key_set_extend_id(keys, kind, bytes);
    if (err < 0)
        return report_memory(message, name);
    if (kind == KEYS_SECRET)
        return read_secret(keys, name, bytes, message);
    return is_json(bytes) ? jwks_read(keys, name, bytes, message) : pem_keys_read(keys, name, bytes, message);
}

/* Reads the keys of a file. Secrets must not be open to others. */
static int add_keys(struct key_set *keys, const struct keys_file *which, const struct mk_file_bytes *file,
                    struct mk_buf *message)
{
    unsigned secrets = key_set_count_secrets(keys);
    int err = keys_read(keys, which->kind, which->path.p, mk_str(file->data, file->len), message);
    if (err < 0 || key_set_count_secrets(keys) == secrets || mk_file_is_private(file->mode))
        return err;
    mk_file_add_mode_error(key_set_report(message, which->path.p), file->mode);
    return -EINVAL;
}

static int load_file(struct key_set *keys, const struct keys_file *which, struct mk_buf *message)
{
    struct mk_arena arena;
    struct mk_file_bytes file;
    mk_arena_init(&arena, NULL, 2 * KEYS_FILE_BYTES_MAX, NULL, 0);
    int err = mk_file_read(which->path.p, KEYS_FILE_BYTES_MAX, &arena, &file);
    if (err == 0 && !file.len)
        err = -ENODATA;
    if (err < 0) {
        mk_file_add_read_error(key_set_report(message, which->path.p), err, KEYS_FILE_BYTES_MAX);
    } else {
        err = add_keys(keys, which, &file, message);
        explicit_bzero(file.data, file.len);
    }
    mk_arena_release(&arena);
    return err;
}

int keys_load(const struct keys_file *files, unsigned n, struct key_set **ret, struct mk_buf *message)
{
    int err = 0;
    struct key_set *keys = key_set_new();
    if (!keys)
        return report_memory(message, "the keys");
    for (unsigned i = 0; i < n && err == 0; i++)
        err = load_file(keys, &files[i], message);
    if (err < 0)
        key_set_free(keys);
    else
        *ret = keys;
    return err;
}
