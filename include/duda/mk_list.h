// SPDX-License-Identifier: Apache-2.0
/*
 * A header of the server that services of the original API included: its list is in "webservice.h".
 */
#ifndef DUDA_MK_LIST_H
#define DUDA_MK_LIST_H

#include "webservice.h"

#endif
