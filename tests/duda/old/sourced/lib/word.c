// SPDX-License-Identifier: Apache-2.0
/* The word of the service; its folder is next to that of the Makefile.in. */
const char *word = WORD;
