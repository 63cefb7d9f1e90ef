// SPDX-License-Identifier: Apache-2.0
/* The speed of the branch that is not taken. */
#error this branch is not taken
