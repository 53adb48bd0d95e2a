/* SPDX-License-Identifier: Apache-2.0
 * Golden files: expected texts in tests/golden, reviewed as diffs, rewritten by `make golden`. */
#ifndef TESTS_SUPPORT_GOLDEN_H
#define TESTS_SUPPORT_GOLDEN_H

/* Fails the test where `text` is not what tests/golden/<name> holds, and prints the first line that
 * differs. With MTF_UPDATE_GOLDEN set the file is written instead. */
void golden_check(const char *name, const char *text);

#endif
