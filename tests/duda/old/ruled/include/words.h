// SPDX-License-Identifier: Apache-2.0
/* The word of the service. */
const char *get_word(void);
