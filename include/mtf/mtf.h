/* SPDX-License-Identifier: Apache-2.0
 * All of mtf's public interface. */
#ifndef MTF_MTF_H
#define MTF_MTF_H

#include "mtf/dense.h"
#include "mtf/embedding.h"
#include "mtf/gradient.h"
#include "mtf/graph.h"
#include "mtf/loss.h"
#include "mtf/mesh.h"
#include "mtf/nn.h"
#include "mtf/noise.h"
#include "mtf/norm.h"
#include "mtf/ops.h"
#include "mtf/optimize.h"
#include "mtf/program.h"
#include "mtf/schedule.h"
#include "mtf/session.h"
#include "mtf/types.h"

#endif
