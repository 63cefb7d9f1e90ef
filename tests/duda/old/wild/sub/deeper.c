// SPDX-License-Identifier: Apache-2.0
/* Another number. */
int deeper(void)
{
    return 2;
}
