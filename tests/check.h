/* SPDX-License-Identifier: Apache-2.0
 * What every test includes: cmocka with the headers that it needs first. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
