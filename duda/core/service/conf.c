// SPDX-License-Identifier: Apache-2.0
/*
 * The objects `conf` and `data`.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "compat/map.h"
#include "log/log.h"
#include "log/message.h"
#include "objects.h"
#include "request/request.h"
#include "service/folder.h"

#include <stdio.h>

/* ── the object `conf` ── */

enum { NAME_BYTES_MAX = 128 };

static int force_redirect(void)
{
    if (!phase_check(PHASE_MAIN, "conf->force_redirect()"))
        return -1;
    map_force_redirect(map_of(current.service));
    return 0;
}

static int bind_messages(void)
{
    static const char call[] = "conf->bind_messages()";
    char name[NAME_BYTES_MAX + sizeof(".messages")];
    if (!phase_check(PHASE_MAIN, call))
        return -1;
    struct service *s = current.service;
    snprintf(name, sizeof(name), "%.*s.messages", (int)NAME_BYTES_MAX, s->self.name.data);
    logs_of(s)->messages = log_new(s, name, call);
    return logs_of(s)->messages ? 0 : -1;
}

static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
    return name && *name && strlen(name) <= NAME_BYTES_MAX && !name[strspn(name, allowed)] && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static int set_name(const char *name)
{
    static const char call[] = "conf->service_name()";
    if (!phase_check(PHASE_MAIN, call))
        return -1;
    if (!is_name(name)) {
        message_log(MK_LOG_ERROR, "%s: \"%s\" cannot be part of a URL", call, name ? name : "NULL");
        return -1;
    }
    struct service *s = current.service;
    size_t len = strlen(name);
    char *url = mk_arena_alloc(&s->arena, len + 2);
    if (!url)
        return -1;
    url[0] = '/';
    memcpy(url + 1, name, len + 1);
    mk_log_info("service %s: its URLs begin with /%s/", s->self.name.data, name);
    s->self.name = (struct duda_string){url + 1, len};
    if (s->self.url.len)
        s->self.url = (struct duda_string){url, len + 1};
    return 0;
}

static int become_root(void)
{
    if (!phase_check(PHASE_MAIN, "conf->service_root()"))
        return -1;
    struct duda_self *self = &current.service->self;
    mk_log_info("service %s: its URLs begin with /", self->name.data);
    self->url = (struct duda_string){self->name.data + self->name.len, 0};
    return 0;
}

const struct duda_api_conf object_conf = {
    .force_redirect = force_redirect,
    .bind_messages = bind_messages,
    .service_name = set_name,
    .service_root = become_root,
};

/* ── the object `data` ── */

static char *get_path(void)
{
    if (!phase_check(PHASE_ANY, "data->get_path()"))
        return NULL;
    const struct duda_string *folder = folder_get(current.service, FOLDER_DATA);
    return folder->len ? folder->data : NULL;
}

static int set_path(const char *path)
{
    return folder_set(FOLDER_DATA, path, "data->set_path()");
}

REQUEST_CALL(char *locate_file(duda_request_t *dr, const char *file), request_check, "data->locate()", NULL,
             folder_join(mk_request_arena(dr->req), folder_get(dr->worker->service, FOLDER_DATA), file,
                         "data->locate()"))

const struct duda_api_data object_data = {
    .get_path = get_path,
    .set_path = set_path,
    .locate = locate_file,
};
