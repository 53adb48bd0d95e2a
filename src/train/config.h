/* SPDX-License-Identifier: Apache-2.0
 * The configuration of a training run: every key, its default, and its YAML file.
 *
 * A config owns its texts. It begins with config_defaults and ends with config_free; reading and
 * setting change what is there. All local; on several processors the same file gives the same
 * values and the same message. */
#ifndef TRAIN_CONFIG_H
#define TRAIN_CONFIG_H

#include <stdio.h>

#include "base/options.h"

enum { CONFIG_RELU, CONFIG_GELU };        /* model.activation */
enum { CONFIG_LM };                       /* model.type */
enum { CONFIG_BYTES, CONFIG_CHARACTERS }; /* data.tokenizer */
/* train.optimizer */
enum {
    CONFIG_SGD,
    CONFIG_MOMENTUM,
    CONFIG_NESTEROV,
    CONFIG_ADAM,
    CONFIG_ADAMW,
    CONFIG_ADAFACTOR,
};
enum { CONFIG_POW, CONFIG_BY_BETA2 }; /* adafactor.decay */
/* train.dtype, and the last only of train.stored_dtype and train.master_dtype */
enum { CONFIG_F32, CONFIG_F64, CONFIG_BF16, CONFIG_AUTO };

/* A row with this flag does not change the numbers of a run: it may differ on a resume. */
enum { CONFIG_FREE = 1 };

typedef struct config_model {
    int type, activation;
    int64_t layers, d_model, heads, d_kv, d_ff, length;
    int64_t vocab;     /* 0: the tokenizer's size */
    int64_t recompute; /* every n-th layer; 0: none */
    double dropout;
    bool tied; /* the softmax weights are the embedding table */
} config_model;

typedef struct config_data {
    char *train, *valid; /* paths; an empty `valid` means the last part of `train` */
    double valid_fraction;
    int tokenizer;
} config_data;

typedef struct config_train {
    int64_t steps, batch, microbatches, warmup_steps, seed, eval_every, checkpoint_every;
    int64_t schedule_offset;
    int optimizer, dtype, stored_dtype, master_dtype;
    char *schedule, *schedule_rules, *exclude_from_weight_decay;
    double learning_rate, min_learning_rate, clip_value, clip_variable_norm, clip_norm;
    double momentum, beta1, beta2, epsilon, weight_decay, ema_decay, label_smoothing, z_loss;
    bool bias_correction;
} config_train;

typedef struct config_adafactor {
    bool multiply_by_parameter_scale, factored;
    int decay;
    int64_t decay_offset, min_dim_size_to_factor;
    double exponent, beta1, beta2, clipping_threshold, epsilon1, epsilon2;
    char *stacked_dims, *exclude_from_parameter_scale;
} config_adafactor;

typedef struct config {
    config_model model;
    config_data data;
    config_train train;
    config_adafactor adafactor;
    char *mesh, *layout;
    int64_t max_value_bytes;
} config;

/* The rows, for help and for whoever walks over all keys. */
extern const option_table config_options;

void config_defaults(config *c);
void config_free(config *c);

/* Sets what a YAML file (or pipe) says, and leaves the rest. MTF_INVALID with file and line:
 * "config.yaml:12: unknown key 'model.layrs'; did you mean 'model.layers'?" */
mtf_status config_read(config *c, const char *path, mtf_err *err);

/* The text of such a file, for config_parse; free with mem_free. */
mtf_status config_load(const char *path, char **text, size_t *bytes, mtf_err *err);

/* As config_read for YAML in memory that came from `name`. */
mtf_status config_parse(config *c, const char *name, const char *text, size_t bytes, mtf_err *err);

/* Sets one key from "key=value", as --set takes it. */
mtf_status config_set(config *c, const char *assignment, mtf_err *err);

/* Checks what involves several keys and needs no corpus. MTF_INVALID names keys and values. */
mtf_status config_check(const config *c, mtf_err *err);

/* What the keys mean: CONFIG_F32, CONFIG_F64 or CONFIG_BF16. */
int config_stored_dtype(const config_train *t);
int config_master_dtype(const config_train *t);

/* All keys as YAML that config_parse reads back exactly; free with mem_free. */
char *config_text(const config *c);

/* Writes config_text to a file, which is there wholly or not at all. */
mtf_status config_write(const config *c, const char *path, mtf_err *err);

/* MTF_INVALID with key and both values when any key differs that changes numbers. */
mtf_status config_compare_for_resume(const config *before, const config *now, mtf_err *err);

#endif
