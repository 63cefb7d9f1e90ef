// SPDX-License-Identifier: Apache-2.0
/*
 * Checks the sections of a host, opens its services, and finds them by path (host.h).
 */
#include "service/host.h"

#include "common/heap.h"
#include "console/console_path.h"
#include "log/last_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES_MAX = 64, SITE_BYTES_MAX = PATH_MAX + 512, ERROR_BYTES_MAX = PATH_MAX + 1024 };

#define OFFSET(field) offsetof(struct service_conf, field)

/* ── the sections ── */

static const char *find_name_error(struct mk_str name, const struct duda_conf *server)
{
    if (!name.len)
        return "it is empty";
    if (name.len > NAME_BYTES_MAX)
        return "it is longer than 64 bytes";
    if (!mk_is_name_byte(name.p[0], "") || !mk_str_is_name(name, "-_."))
        return "a name has letters, digits, \"-\", \"_\" and \".\", and begins with a letter or digit";
    if (server->document_root.len && mk_str_eq(name, MK_STR("ddr")))
        return "/ddr is the DocumentRoot of [DUDA]";
    return NULL;
}

static bool check_name(const struct duda_host *h, const struct service_conf *conf, const struct duda_conf *server)
{
    const char *error = find_name_error(conf->name, server);
    if (error)
        mk_host_error(h->host, conf, OFFSET(name), 0, "\"%.*s\" cannot be the name of a service: %s",
                      MK_STR_ARG(conf->name), error);
    for (unsigned i = 0; i < h->n && !error; i++)
        if (mk_str_eq(h->services[i].conf->name, conf->name)) {
            error = "it is there twice";
            mk_host_error(h->host, conf, OFFSET(name), 0, "this host has a service \"%.*s\" already",
                          MK_STR_ARG(conf->name));
        }
    return !error;
}

static bool check_root(const struct duda_host *h, const struct service_conf *conf)
{
    for (unsigned i = 0; i < h->n && conf->root; i++)
        if (h->services[i].conf->root) {
            mk_host_error(h->host, conf, OFFSET(root), 0, "the service \"%.*s\" is the root of this host already",
                          MK_STR_ARG(h->services[i].conf->name));
            return false;
        }
    return true;
}

static bool check_folder(struct mk_host *host, const void *conf, size_t offset, const char *key)
{
    const struct mk_str *path = (const void *)((const char *)conf + offset);
    struct stat st;
    if (!path->len)
        return true;
    int err = stat(path->p, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    if (!err && faccessat(AT_FDCWD, path->p, X_OK, AT_EACCESS) < 0)
        err = errno;
    if (err)
        mk_host_error(host, conf, offset, 0, "%s %s: %s", key, path->p, strerror(err));
    return !err;
}

static bool check_folders(struct mk_host *host, const struct service_conf *conf)
{
    static const struct {
        size_t offset;
        const char *key;
    } folders[] = {{OFFSET(document_root), "DocumentRoot"},
                   {OFFSET(conf_dir), "ConfDir"},
                   {OFFSET(data_dir), "DataDir"},
                   {OFFSET(log_dir), "LogDir"}};
    bool fine = true;
    for (size_t i = 0; i < MK_COUNT_OF(folders); i++)
        fine &= check_folder(host, conf, folders[i].offset, folders[i].key);
    return fine;
}

/* Checks where the file is, but not the file itself: that a service cannot be loaded is no error of the others. */
static bool check_file(struct mk_host *host, const struct service_conf *conf, const struct duda_conf *server)
{
    if (conf->file.len || server->services_root.len)
        return true;
    mk_host_error(host, conf, OFFSET(name), 0,
                  "nothing says where the service \"%.*s\" is: set File here, or ServicesRoot in [DUDA]",
                  MK_STR_ARG(conf->name));
    return false;
}

/* Checks the key Console, and sets what the service has of it. */
static bool check_console(struct mk_host *host, struct host_service *e)
{
    struct mk_str path = e->conf->console;
    e->no_console = mk_str_ieq(path, MK_STR("Off"));
    if (!path.len || e->no_console)
        return true;
    const char *error = console_path_check(path);
    if (error)
        mk_host_error(host, e->conf, OFFSET(console), 0, "\"%.*s\" cannot be the path of a console: %s",
                      MK_STR_ARG(path), error);
    else
        e->console = console_path_trim(path);
    return !error;
}

void host_check_packages(struct duda_host *h, const struct duda_conf *server)
{
    struct stat st;
    if (!server->packages_root.len)
        return;
    int err = stat(server->packages_root.p, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    if (err)
        mk_host_warn(h->host, server, offsetof(struct duda_conf, packages_root), 0,
                     "PackagesRoot %s: %s; no service can load a package", server->packages_root.p, strerror(err));
}

/* ── opening ── */

static void report_failure(const struct duda_host *h, const struct host_service *e, struct mk_buf *reason)
{
    mk_host_warn(h->host, e->conf, OFFSET(name), 0, "the service \"%.*s\" cannot be used%s: %s",
                 MK_STR_ARG(e->conf->name),
                 e->service ? ", and its last version stays in use" : "; its URLs get the status 503",
                 mk_buf_cstr(reason));
}

/* Makes the configuration complete, with a file in `path`. Returns 0, -ENAMETOOLONG or -ENOMEM. */
static int complete_conf(const struct service_conf *conf, const struct duda_conf *server, struct service_conf *ret,
                         struct mk_buf *path)
{
    *ret = *conf;
    ret->packages_root = server->packages_root;
    if (conf->file.len)
        return 0;
    mk_buf_addf(path, "%.*s/%.*s.duda", MK_STR_ARG(server->services_root), MK_STR_ARG(conf->name));
    ret->file = mk_str_c(mk_buf_cstr(path));
    return path->err == -ENOMEM ? -ENOMEM : path->err ? -ENAMETOOLONG : 0;
}

static void open_service(struct duda_host *h, struct host_service *e, const struct duda_conf *server)
{
    struct service_conf conf;
    struct mk_buf path, error; /* on the heap: a deep stack of the main thread stays in memory */
    mk_buf_init(&path, PATH_MAX);
    mk_buf_init(&error, ERROR_BYTES_MAX);
    int err = complete_conf(e->conf, server, &conf, &path);
    if (err < 0)
        mk_buf_addf(&error, "%s", strerror(-err));
    else
        e->service = service_open(h->set, h->host, mk_buf_str(&h->site), &conf, &error);
    if (!e->service) {
        e->service = service_find(h->set, mk_buf_str(&h->site), &conf);
        report_failure(h, e, &error);
    }
    if (e->service && e->console.len)
        last_lines_keep(e->service);
    mk_buf_release(&error);
    mk_buf_release(&path);
}

static unsigned count_sections(const struct mk_host *host, const struct mk_conf_section *section)
{
    unsigned n = 0;
    for (const void *conf = mk_host_conf(host, section); conf; conf = mk_host_conf_next(host, section, conf))
        n++;
    return n;
}

static size_t host_bytes(unsigned sections)
{
    return sizeof(struct duda_host) + sections * sizeof(struct host_service);
}

/* The name of the file is without folders, so that it is the same on other machines. Returns 0 or -errno. */
static int set_site(struct duda_host *h)
{
    struct mk_buf file;
    mk_buf_init(&file, SITE_BYTES_MAX);
    mk_host_file(h->host, &file);
    const char *slash = file.len ? memrchr(file.data, '/', file.len) : NULL;
    size_t begin = slash ? (size_t)(slash + 1 - file.data) : 0;
    mk_buf_init(&h->site, SITE_BYTES_MAX);
    mk_buf_adds(&h->site, mk_host_name(h->host, 0));
    mk_buf_addc(&h->site, '@');
    if (file.len)
        mk_buf_adds(&h->site, mk_str(file.data + begin, file.len - begin));
    int err = file.err ? file.err : h->site.err;
    mk_buf_release(&file);
    return err;
}

int host_open(struct mk_host *host, struct service_set *set, const struct mk_conf_section *section,
              const struct duda_conf *server, unsigned *n_services, struct duda_host **ret)
{
    unsigned sections = count_sections(host, section);
    struct duda_host *h = *ret = heap_zalloc(host_bytes(sections));
    bool fine = true;
    if (!h)
        return -ENOMEM;
    h->host = host;
    h->set = set;
    h->sections = sections;
    int err = set_site(h);
    if (err < 0)
        return err;
    const struct service_conf *conf = mk_host_conf(host, section);
    for (; conf; conf = mk_host_conf_next(host, section, conf)) {
        if (!conf->enabled)
            continue;
        bool good = check_name(h, conf, server);
        assert(h->n < sections);
        good &= check_root(h, conf);
        good &= check_folders(host, conf);
        good &= check_file(host, conf, server);
        struct host_service *e = &h->services[h->n++];
        *e = (struct host_service){.conf = conf, .index = (*n_services)++};
        good &= check_console(host, e);
        fine &= good;
    }
    for (unsigned i = 0; i < h->n && fine; i++)
        open_service(h, &h->services[i], server);
    return fine ? 0 : -EINVAL;
}

void host_close(struct duda_host *h)
{
    for (unsigned i = 0; i < h->n; i++)
        if (h->services[i].service)
            service_put(h->services[i].service);
    mk_buf_release(&h->site);
    heap_free(h, host_bytes(h->sections));
}

/* ── running ── */

/* Runs the service. If it cannot run, the one that ran before takes its place, if there is one. */
static void run_service(struct duda_host *h, struct host_service *e)
{
    struct mk_buf error;
    mk_buf_init(&error, ERROR_BYTES_MAX);
    struct service *s = e->service;
    if (s && service_run(s, &error) < 0) {
        e->service = service_find(h->set, s->site, &s->conf);
        if (e->service && e->console.len)
            last_lines_keep(e->service);
        service_put(s);
        report_failure(h, e, &error);
    }
    mk_buf_release(&error);
}

static struct mk_str get_segment(const struct host_service *e)
{
    if (!e->service)
        return e->conf->root ? MK_STR("") : e->conf->name;
    const struct duda_string *url = &e->service->self.url;
    return url->len ? mk_str(url->data + 1, url->len - 1) : MK_STR("");
}

static int compare_services(const void *a, const void *b)
{
    const struct host_service *x = a, *y = b;
    int order = mk_str_compare(x->segment, y->segment);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Reports services that chose the URL of another one in duda_main(). */
static void check_urls(const struct duda_host *h)
{
    for (unsigned i = 1; i < h->n; i++) {
        const struct host_service *first = &h->services[i - 1], *second = &h->services[i];
        if (mk_str_eq(first->segment, second->segment))
            mk_host_warn(h->host, second->conf, OFFSET(name), 0,
                         "no request reaches the service \"%.*s\": \"%.*s\" has the same URL",
                         MK_STR_ARG(second->conf->name), MK_STR_ARG(first->conf->name));
    }
}

/*
 * Has the plugin `static` serve the files of a service. The folder of one that cannot be used is checked, too, although
 * all of its URLs get 503: a check and a reload, which may still have a version that runs, find the same errors.
 * Returns 0 or -errno.
 */
static int add_folder(struct duda_host *h, const struct host_service *e)
{
    char text[NAME_BYTES_MAX + 2];
    struct mk_str url, path;
    if (e->service) {
        const struct duda_self *self = &e->service->self;
        url = mk_str(self->url.data, self->url.len);
        path = mk_str(self->docroot.data, self->docroot.len);
    } else {
        snprintf(text, sizeof(text), "/%.*s", MK_STR_ARG(e->conf->name));
        url = e->conf->root ? MK_STR("") : mk_str_c(text);
        path = e->conf->document_root;
    }
    if (!path.len)
        return 0;
    return mk_host_add_folder(h->host, &(struct mk_host_folder){.url = url,
                                                                .path = path,
                                                                .section_struct = e->conf,
                                                                .offset = OFFSET(document_root)});
}

/* /ddr, for each host with services. */
static int add_common_folder(struct duda_host *h, const struct duda_conf *server)
{
    if (!server->document_root.len)
        return 0;
    return mk_host_add_folder(h->host, &(struct mk_host_folder){.url = MK_STR("/ddr"),
                                                                .path = server->document_root,
                                                                .section_struct = server,
                                                                .offset = offsetof(struct duda_conf, document_root)});
}

static int report_order(struct duda_host *h)
{
    mk_host_error(
        h->host, h->services[0].conf, OFFSET(name), 0,
        "the plugin \"duda\" must come before \"static\" in plugins.load, so that the folders of services are "
        "served");
    return -EINVAL;
}

int host_run(struct duda_host *h, const struct duda_conf *server, bool is_check)
{
    int err = h->n ? add_common_folder(h, server) : 0;
    for (unsigned i = 0; i < h->n && err == 0; i++) {
        if (!is_check)
            run_service(h, &h->services[i]);
        h->services[i].segment = get_segment(&h->services[i]);
        err = add_folder(h, &h->services[i]);
    }
    qsort(h->services, h->n, sizeof(h->services[0]), compare_services);
    h->root = h->n && !h->services[0].segment.len ? &h->services[0] : NULL;
    check_urls(h);
    return err == -EALREADY ? report_order(h) : err;
}

/* ── requests ── */

static const struct host_service *find_segment(const struct duda_host *h, struct mk_str segment)
{
    unsigned low = 0, high = h->n;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = mk_str_compare(h->services[middle].segment, segment);
        if (order == 0 && (middle == 0 || !mk_str_eq(h->services[middle - 1].segment, segment)))
            return &h->services[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct host_service *host_find(const struct duda_host *h, struct mk_str path, struct mk_str *ret_rest)
{
    *ret_rest = path;
    if (!path.len || path.p[0] != '/') /* OPTIONS * */
        return NULL;
    struct mk_str segment = mk_str_until(mk_str_after(path, 1), "/");
    const struct host_service *e = segment.len ? find_segment(h, segment) : NULL;
    if (!e)
        return h->root;
    *ret_rest = mk_str_after(path, 1 + segment.len);
    return e;
}
