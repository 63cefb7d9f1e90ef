// SPDX-License-Identifier: Apache-2.0
/* The sum of two numbers. */
int sum(int a, int b)
{
    return a + b;
}
