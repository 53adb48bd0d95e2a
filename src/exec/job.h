/* SPDX-License-Identifier: Apache-2.0
 * The job before there is a session: what all its processes must agree on. */
#ifndef EXEC_JOB_H
#define EXEC_JOB_H

#include "base/err.h"

/* The status of the first rank that failed, with its message, on every rank. Call mtf_launch first.
 * Collective. */
mtf_status job_agree(mtf_status mine, mtf_err *err);

/* Root's bytes on every rank. Collective. */
mtf_status job_broadcast(void *data, int64_t bytes, mtf_err *err);

#endif
