// SPDX-License-Identifier: Apache-2.0
/* A test, which the Makefile.in leaves out. */
#error tests are not part of the service
