// SPDX-License-Identifier: Apache-2.0
/* The word of the service; its folder is beside that of the Makefile.in. */
const char *word = WORD;
