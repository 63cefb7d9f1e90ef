// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the package coro of 2013, which became the object `dthread` (<duda/compat/dthread.h>). It needs no
 * file: duda_load_package(coro, "coro") gives services of the original API that object.
 */
#ifndef DUDA_PACKAGES_CORO_H
#define DUDA_PACKAGES_CORO_H

#include "../../webservice.h"

typedef duda_dthread_channel_t channel_t;

DUDA_PACKAGE(struct duda_old_dthread, coro)

#endif
