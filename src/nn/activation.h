/* SPDX-License-Identifier: Apache-2.0
 * Activations by name. */
#ifndef NN_ACTIVATION_H
#define NN_ACTIVATION_H

#include "mtf/dense.h"

/* Whether there is an activation of that name (NULL is one); stores the error where not. */
bool activation_known(mtf_graph *g, const char *name);

#endif
