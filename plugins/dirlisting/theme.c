// SPDX-License-Identifier: Apache-2.0
#include "template.h"

#include <monkey/base/base64.h>
#include <monkey/base/file.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sha256.h> /* of libmd, which is small: libcrypto would cost half a megabyte of private memory */
#include <stdio.h>
#include <unistd.h>

static void write_digest(struct mk_buf *out, struct mk_str code)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)code.p, code.len);
    SHA256Final(digest, &context);
    mk_buf_adds(out, MK_STR(" 'sha256-"));
    mk_base64_encode(out, digest, sizeof(digest), MK_BASE64);
    mk_buf_addc(out, '\'');
}

static void write_sources(struct mk_buf *out, struct mk_str name, const struct template_codes *codes, bool scripts,
                          bool files)
{
    bool none = !files;
    mk_buf_adds(out, name);
    if (files)
        mk_buf_adds(out, MK_STR(" 'self'"));
    for (uint32_t i = 0; i < codes->n; i++) {
        if (codes->items[i].is_script != scripts)
            continue;
        write_digest(out, codes->items[i].text);
        none = false;
    }
    if (none)
        mk_buf_adds(out, MK_STR(" 'none'"));
}

void policy_write(struct mk_buf *out, const struct template_codes *codes, const struct markup *markup)
{
    mk_buf_adds(out, MK_STR("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
                            "font-src 'self'; img-src 'self' data:; "));
    write_sources(out, MK_STR("style-src"), codes, false, markup->has_style_file);
    write_sources(out, MK_STR("; script-src"), codes, true, markup->has_script_file);
}

enum { POLICY_BYTES_MAX = 4096 };

struct theme_reader {
    const char *folder;
    int dir;
    struct template_parser parser;
    struct mk_buf *error;
};

static int report_errno(struct theme_reader *r, const char *file, int err)
{
    if (err == -ENOMEM)
        return err;
    mk_buf_addf(r->error, "the theme needs %s%s%s, which ", r->folder, file ? "/" : "", file ? file : "");
    mk_file_add_read_error(r->error, err, TEMPLATE_BYTES_MAX);
    return -EINVAL;
}

/* ── files ── */

/* Replaces each CR LF by LF, as browsers do before they compute the digest of a script. */
static size_t remove_returns(char *text, size_t len)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] != '\r' || i + 1 == len || text[i + 1] != '\n')
            text[to++] = text[i];
    return to;
}

static int read_file(struct theme_reader *r, const char *name, struct mk_str *ret)
{
    struct mk_file_bytes text;
    int fd = mk_file_openat2(r->dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                             RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    int err = fd < 0 ? fd : mk_file_read_open(fd, TEMPLATE_BYTES_MAX, r->parser.arena, &text);
    if (fd >= 0)
        close(fd);
    if (err < 0)
        return report_errno(r, name, err);
    *ret = mk_str(text.data, remove_returns(text.data, text.len));
    return 0;
}

static int load_template(struct theme_reader *r, const char *name, bool of_entry, struct template *ret)
{
    struct template_error error;
    struct mk_str text = MK_STR_NONE;
    int err = read_file(r, name, &text);
    if (err < 0)
        return err;
    err = template_parse(&r->parser, text, of_entry, ret, &error);
    if (err == -EINVAL)
        mk_buf_addf(r->error, "%s/%s:%u:%u: %s", r->folder, name, error.line, error.column, error.text);
    return err;
}

/* ── themes ── */

static int make_policy(struct theme_reader *r, struct theme *theme)
{
    MK_BUF_ON_STACK(policy, POLICY_BYTES_MAX);
    policy_write(&policy, r->parser.codes, &r->parser.markup);
    assert(policy.err == 0); /* TEMPLATE_CODES_MAX digests have room */
    theme->policy = mk_arena_dup(r->parser.arena, mk_buf_str(&policy));
    return theme->policy.p ? 0 : -ENOMEM;
}

static int load_files(struct theme_reader *r, struct theme *theme)
{
    int err = load_template(r, "header.theme", false, &theme->header);
    if (err == 0)
        err = load_template(r, "entry.theme", true, &theme->entry);
    if (err == 0)
        err = load_template(r, "footer.theme", false, &theme->footer);
    return err ? err : make_policy(r, theme);
}

/* Finds the folder of a theme. Returns false if the path is too long. */
static bool find_folder(struct mk_str name, char path[PATH_MAX])
{
    bool is_path = name.len && memchr(name.p, '/', name.len);
    int n = is_path ? snprintf(path, PATH_MAX, "%.*s", MK_STR_ARG(name))
                    : snprintf(path, PATH_MAX, "%s/themes/%.*s", mk_plugin_dir(), MK_STR_ARG(name));
    return n > 0 && n < PATH_MAX;
}

int theme_load(struct theme *ret, struct mk_str name, const struct template_field *fields, struct mk_arena *arena,
               struct mk_buf *error)
{
    char path[PATH_MAX];
    struct template_codes codes = {.n = 0};
    struct theme_reader r = {.folder = path, .parser = {fields, arena, &codes, {0}}, .error = error};
    *ret = (struct theme){.name = name};
    if (!find_folder(name, path))
        return report_errno(&r, NULL, -ENAMETOOLONG);
    r.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r.dir < 0)
        return report_errno(&r, NULL, -errno);
    int err = load_files(&r, ret);
    close(r.dir);
    return err;
}
