// SPDX-License-Identifier: Apache-2.0
/*
 * What the error replies of Redis mean. Pure.
 */
#ifndef DUDA_PACKAGES_REDIS_STATUS_H
#define DUDA_PACKAGES_REDIS_STATUS_H

/* Returns the error of a reply such as "NOAUTH Authentication required.": -EACCES ... -EREMOTEIO. */
int redis_status_of(const char *text);

#endif
