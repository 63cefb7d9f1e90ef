// SPDX-License-Identifier: Apache-2.0
/* A number. */
int deep(void)
{
    return 40;
}
