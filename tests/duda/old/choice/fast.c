// SPDX-License-Identifier: Apache-2.0
/* The speed of the branch that is taken. */
int speed = 9;
