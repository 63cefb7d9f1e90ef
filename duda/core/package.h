// SPDX-License-Identifier: Apache-2.0
/*
 * Packages of services, <duda/package.h>. One package is loaded once and has a reference of each service that uses it.
 */
#ifndef DUDA_CORE_PACKAGE_H
#define DUDA_CORE_PACKAGE_H

#include <duda/package.h>
#include <monkey/buf.h>

struct service;

extern const struct duda_api_package object_package;

/*
 * Calls duda_main() of a service. Returns its result; or -ENOENT with a sentence in `error`: a package that it needs
 * cannot be loaded, and duda_main() was left there.
 */
int package_run_main(struct service *s, struct mk_buf *error);

/* Drops the references of a service, after its shared object was closed. */
void package_close_all(struct service *s);

#endif
