// SPDX-License-Identifier: Apache-2.0
/* A file that no rule names. */
#error this file is not part of the service
