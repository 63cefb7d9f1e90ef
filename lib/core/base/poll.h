// SPDX-License-Identifier: Apache-2.0
/*
 * What becomes of threads whose calls that wait are refused.
 */
#ifndef MK_BASE_POLL_H
#define MK_BASE_POLL_H

/* Sleeps for MK_POLL_PAUSE_MS or `timeout_ms`, whichever is less; -1: no timeout. */
void mk__poll_pause(int timeout_ms);
/* Logs that a call is refused, unless one was logged before in this process. */
void mk__poll_report(const char *call, int err);

#endif
