/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/rows.h"

const op *const op_rows[] = {OP_LIST(OP_ADDRESS)};
const int op_count = sizeof op_rows / sizeof op_rows[0];
