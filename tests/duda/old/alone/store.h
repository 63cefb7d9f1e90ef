// SPDX-License-Identifier: Apache-2.0
/* The connection, for all files. */
#include "packages/kv/kv.h"

extern kv_conn_t connection;
