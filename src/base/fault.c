/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULT_NAME(id, name) [id] = name,
static const char *const names[FAULT_COUNT] = {FAULT_LIST(FAULT_NAME)};

static int find(void)
{
    const char *wanted = getenv("MTF_FAULT");
    if (!wanted || !*wanted) return FAULT_COUNT;
    for (int i = 0; i < FAULT_COUNT; i++)
        if (strcmp(names[i], wanted) == 0) return i;
    fprintf(stderr, "mtf: MTF_FAULT=%s names no fault; known are:\n", wanted);
    for (int i = 0; i < FAULT_COUNT; i++)
        fprintf(stderr, "  %s\n", names[i]);
    exit(2);
}

bool fault_is_planted(fault id)
{
    static int planted = -1;
    if (planted < 0) planted = find();
    return (int)id == planted;
}
