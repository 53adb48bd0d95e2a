/* SPDX-License-Identifier: Apache-2.0
 * The schedules of a configuration: train.schedule, and the rules for some variables. */
#ifndef TRAIN_CONFIG_SCHEDULE_H
#define TRAIN_CONFIG_SCHEDULE_H

#include "base/mem.h"
#include "mtf/optimize.h"
#include "train/config.h"

/* train.schedule times train.learning_rate. The words constant, linear, cosine and rsqrt stand for
 * a warm-up over train.warmup_steps and a factor that ends at train.min_learning_rate. MTF_INVALID
 * names the key and what is wrong with its text. */
mtf_status config_schedule(const config *c, mtf_schedule *out, mtf_err *err);

/* train.schedule_rules, "PATTERN -> SCHEDULE" in lines or behind semicolons, into
 * rules[MTF_MAX_RATE_RULES]; returns their number, or -1 after an error. Patterns are in `mem`. */
int config_rate_rules(const config *c, arena *mem, mtf_rate_rule *rules, mtf_err *err);

/* MTF_INVALID, with the key in the message, where `text` is no regular expression. */
mtf_status config_check_pattern(const char *key, const char *text, mtf_err *err);

/* Both, for their errors alone. */
mtf_status config_check_schedules(const config *c, mtf_err *err);

#endif
