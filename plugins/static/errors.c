// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and sends a host's error pages (errors.h).
 */
#include "errors.h"

#include "open.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

enum { STATUS_MIN = 400, STATUS_MAX = 599 };

static struct error_page *add_page(struct static_site *site, int status, size_t file_bytes)
{
    assert(status >= STATUS_MIN && status <= STATUS_MAX);
    struct error_page *page = mk_account_alloc(NULL, sizeof(*page) + file_bytes);
    if (!page)
        return NULL;
    *page = (struct error_page){.next = site->errors, .status = status, .bytes = sizeof(*page) + file_bytes};
    site->errors = page;
    return page;
}

/* Reads a file of at most ERROR_PAGE_BYTES_MAX bytes. Returns 0 or -errno. */
static int read_page_file(struct static_site *site, int status, struct mk_str name)
{
    struct stat st;
    int fd = open_beneath(site->root_fd, name.p + 1), err = 0;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        err = -errno;
    else if (!S_ISREG(st.st_mode))
        err = -EINVAL;
    else if (st.st_size > ERROR_PAGE_BYTES_MAX)
        err = -EFBIG;
    struct error_page *page = err ? NULL : add_page(site, status, (size_t)st.st_size);
    ssize_t n = page ? pread(fd, page->file, (size_t)st.st_size, 0) : 0;
    close(fd);
    if (!page)
        return err ? err : -ENOMEM;
    page->name = name;
    page->body = mk_str(page->file, n > 0 ? (size_t)n : 0);
    return n < 0 ? -EIO : 0;
}

static int load_page(struct static_site *site, const struct mk_conf_pair *pair, uint64_t *ret_status)
{
    if (!mk_str_u64(pair->key, STATUS_MAX, ret_status) || *ret_status < STATUS_MIN)
        return -ERANGE;
    for (const struct error_page *page = site->errors; page; page = page->next)
        if (page->status == (int)*ret_status)
            return -EEXIST;
    if (mk_str_starts(pair->value, MK_STR("/")) && site->root_fd < 0)
        return -ESTALE;
    if (mk_str_starts(pair->value, MK_STR("/")))
        return read_page_file(site, (int)*ret_status, pair->value);
    struct error_page *page = add_page(site, (int)*ret_status, 0);
    if (!page)
        return -ENOMEM;
    page->body = pair->value;
    return 0;
}

int errors_load(struct mk_host *host, struct static_site *site, const struct mk_conf_pairs *pairs)
{
    assert(!site->errors);
    int result = 0;
    for (uint32_t i = 0; pairs && i < pairs->n; i++) {
        const struct mk_conf_pair *pair = &pairs->items[i];
        uint64_t status = 0;
        int err = load_page(site, pair, &status);
        if (err == -ENOMEM)
            return err;
        if (err == -ESTALE) /* there is no document root, which was reported */
            continue;
        if (err == -ERANGE)
            mk_host_error(host, pairs, 0, i, "\"%.*s\" is not a status from %d to %d", MK_STR_ARG(pair->key),
                          STATUS_MIN, STATUS_MAX);
        else if (err == -EEXIST)
            mk_host_error(host, pairs, 0, i, "the status %u has a page already", (unsigned)status);
        else if (err < 0)
            mk_host_error(host, pairs, 0, i, "cannot read the page %.*s below the document root: %s",
                          MK_STR_ARG(pair->value), strerror(-err));
        else if (status == 414 || status == 431)
            mk_host_warn(host, pairs, 0, i,
                         "a request whose head is too long has no host: clients get the server's page for %u",
                         (unsigned)status);
        result = err < 0 ? -EINVAL : result;
    }
    return result;
}

void errors_free(struct static_site *site)
{
    for (struct error_page *page = site->errors, *next; page; page = next) {
        next = page->next;
        mk_account_free(NULL, page, page->bytes);
    }
    site->errors = NULL;
}

void errors_apply(struct mk_request *req, const struct static_site *site)
{
    const struct error_page *page = site->errors;
    int status = mk_response_get_status(req);
    if (status < STATUS_MIN || !mk_response_is_default_error(req))
        return;
    while (page && page->status != status)
        page = page->next;
    if (!page)
        return;
    bool html = mk_str_starts(page->body, MK_STR("<"));
    struct mk_str type = html ? MK_STR("text/html; charset=utf-8") : MK_STR("text/plain; charset=utf-8");
    if (page->name.p)
        type = mk_request_mime(req, page->name);
    if (mk_response_replace(req, type, page->body) < 0)
        mk_log_warn("static: no memory for the page of status %d", status);
}
