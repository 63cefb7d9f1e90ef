// SPDX-License-Identifier: Apache-2.0
/*
 * The objects of the API, which services see by pointers (<duda/object.h>).
 */
#ifndef DUDA_CORE_OBJECTS_H
#define DUDA_CORE_OBJECTS_H

#include <duda/duda.h>
#include <duda/map.h>
#include <duda/tunnel.h>
#include <monkey/base/buf.h>

struct service;

extern const struct duda_api_conf object_conf;
extern const struct duda_api_console object_console;
extern const struct duda_api_data object_data;
extern const struct duda_api_dthread object_dthread;
extern const struct duda_api_event object_event;
extern const struct duda_api_fconf object_fconf;
extern const struct duda_api_gc object_gc;
extern const struct duda_api_global object_global;
extern const struct duda_api_logger object_logger;
extern const struct duda_api_mem object_mem;
extern const struct duda_api_msg object_msg;
extern const struct duda_api_multipart object_multipart;
extern const struct duda_api_request object_request;
extern const struct duda_api_response object_response;
extern const struct duda_api_router object_router;
extern const struct duda_api_router_2 object_router_2;
extern const struct duda_api_session object_session;
extern const struct duda_api_sse object_sse;
extern const struct duda_api_task object_task;
extern const struct duda_api_tunnel object_tunnel;
extern const struct duda_api_worker object_worker;
extern const struct duda_api_xtime object_xtime;
extern const struct duda_api_map object_map;
extern const struct duda_api_param object_param;
extern const struct duda_api_param_1 object_param_1;
extern const struct duda_api_param_2 object_param_2;
extern const struct duda_api_pairs object_qs;
extern const struct duda_api_qs_1 object_qs_1;
extern const struct duda_api_pairs object_form;
extern const struct duda_api_cookie object_cookie;
extern const struct duda_api_cookie_1 object_cookie_1;

struct object {
    const char *name;
    size_t size;
    const void *address;
};

/* Fills the pointers of a service or package (objects_bind_fn). */
int objects_bind(struct service *s, const struct duda_service_info *info, struct mk_buf *error);

#endif
