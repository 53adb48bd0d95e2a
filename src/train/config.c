/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/number.h"
#include "train/files.h"

static const char *const types[] = {[CONFIG_LM] = "lm", NULL};
static const char *const activations[] = {[CONFIG_RELU] = "relu", [CONFIG_GELU] = "gelu", NULL};
static const char *const tokenizers[] = {
    [CONFIG_BYTES] = "bytes", [CONFIG_CHARACTERS] = "characters", NULL};
static const char *const optimizers[] = {[CONFIG_SGD] = "sgd",
                                         [CONFIG_MOMENTUM] = "momentum",
                                         [CONFIG_ADAM] = "adam",
                                         [CONFIG_ADAMW] = "adamw",
                                         NULL};
static const char *const schedules[] = {[CONFIG_CONSTANT] = "constant",
                                        [CONFIG_LINEAR] = "linear",
                                        [CONFIG_COSINE] = "cosine",
                                        [CONFIG_RSQRT] = "rsqrt",
                                        NULL};
static const char *const dtypes[] = {
    [CONFIG_F32] = "f32", [CONFIG_F64] = "f64", [CONFIG_BF16] = "bf16", NULL};
static const char *const kept_dtypes[] = {[CONFIG_F32] = "f32",
                                          [CONFIG_F64] = "f64",
                                          [CONFIG_BF16] = "bf16",
                                          [CONFIG_AUTO] = "auto",
                                          NULL};

#define AT(place) .offset = offsetof(config, place)

enum { BILLION = 1000000000 };

/* Sizes end at 10^9, so that a product of two fits in an int64_t. */
static const option_row rows[] = {
    {.key = "model.type",
     AT(model.type),
     .type = OPTION_CHOICE,
     .names = types,
     .standard = "lm",
     .help = "kind of model"},
    {.key = "model.layers",
     AT(model.layers),
     .type = OPTION_INT,
     .min = 1,
     .max = 100000,
     .standard = "4",
     .help = "Transformer blocks"},
    {.key = "model.d_model",
     AT(model.d_model),
     .type = OPTION_INT,
     .min = 1,
     .max = BILLION,
     .standard = "128",
     .help = "width of the residual stream"},
    {.key = "model.heads",
     AT(model.heads),
     .type = OPTION_INT,
     .min = 1,
     .max = BILLION,
     .standard = "4",
     .help = "attention heads"},
    {.key = "model.d_kv",
     AT(model.d_kv),
     .type = OPTION_INT,
     .min = 1,
     .max = BILLION,
     .standard = "32",
     .help = "width of one head"},
    {.key = "model.d_ff",
     AT(model.d_ff),
     .type = OPTION_INT,
     .min = 1,
     .max = BILLION,
     .standard = "512",
     .help = "width of the feed-forward layer"},
    {.key = "model.length",
     AT(model.length),
     .type = OPTION_INT,
     .min = 1,
     .max = BILLION,
     .standard = "64",
     .help = "tokens of one sequence"},
    {.key = "model.dropout",
     AT(model.dropout),
     .type = OPTION_REAL,
     .real_max = 1,
     .below = true,
     .standard = "0.0",
     .help = "part of the activations that training drops"},
    {.key = "model.vocab",
     AT(model.vocab),
     .type = OPTION_INT,
     .max = INT32_MAX,
     .standard = "0",
     .help = "size of the vocabulary; 0: that of the tokenizer"},
    {.key = "model.activation",
     AT(model.activation),
     .type = OPTION_CHOICE,
     .names = activations,
     .standard = "relu",
     .help = "function of the feed-forward layer"},
    {.key = "model.tied",
     AT(model.tied),
     .type = OPTION_BOOL,
     .standard = "false",
     .help = "use the embedding table as softmax weights"},
    {.key = "model.recompute",
     AT(model.recompute),
     .type = OPTION_INT,
     .max = 100000,
     .standard = "0",
     .flags = CONFIG_FREE,
     .help =
         "to save memory, compute every n-th layer again in the backward pass; 1: all, 0: none"},
    {.key = "data.train", AT(data.train), .type = OPTION_TEXT, .help = "text file to train on"},
    {.key = "data.valid",
     AT(data.valid),
     .type = OPTION_TEXT,
     .help = "text file for validation, instead of valid_fraction"},
    {.key = "data.valid_fraction",
     AT(data.valid_fraction),
     .type = OPTION_REAL,
     .real_max = 1,
     .below = true,
     .standard = "0.1",
     .help = "last part of the text, for validation"},
    {.key = "data.tokenizer",
     AT(data.tokenizer),
     .type = OPTION_CHOICE,
     .names = tokenizers,
     .standard = "characters",
     .help = "what a token is"},
    {.key = "train.steps",
     AT(train.steps),
     .type = OPTION_INT,
     .min = 1,
     .max = (int64_t)BILLION * 1000,
     .standard = "2000",
     .help = "steps to train",
     .flags = CONFIG_FREE},
    {.key = "train.batch",
     AT(train.batch),
     .type = OPTION_INT,
     .min = 1,
     .max = BILLION,
     .standard = "12",
     .help = "sequences per step, over all processors"},
    {.key = "train.microbatches",
     AT(train.microbatches),
     .type = OPTION_INT,
     .min = 1,
     .max = BILLION,
     .standard = "1",
     .help = "pieces of a batch that run one after another"},
    {.key = "train.optimizer",
     AT(train.optimizer),
     .type = OPTION_CHOICE,
     .names = optimizers,
     .standard = "adam",
     .help = "update rule"},
    {.key = "train.learning_rate",
     AT(train.learning_rate),
     .type = OPTION_REAL,
     .real_max = INFINITY,
     .standard = "1.0e-3",
     .help = "the highest learning rate"},
    {.key = "train.min_learning_rate",
     AT(train.min_learning_rate),
     .type = OPTION_REAL,
     .real_max = INFINITY,
     .standard = "0.0",
     .help = "where the schedule ends"},
    {.key = "train.schedule",
     AT(train.schedule),
     .type = OPTION_CHOICE,
     .names = schedules,
     .standard = "cosine",
     .help = "learning rate after the warm-up"},
    {.key = "train.warmup_steps",
     AT(train.warmup_steps),
     .type = OPTION_INT,
     .max = (int64_t)BILLION * 1000,
     .standard = "100",
     .help = "steps in which the learning rate rises; 0: none"},
    {.key = "train.clip_norm",
     AT(train.clip_norm),
     .type = OPTION_REAL,
     .real_max = INFINITY,
     .standard = "1.0",
     .help = "longest gradient; 0: no clipping"},
    {.key = "train.momentum",
     AT(train.momentum),
     .type = OPTION_REAL,
     .real_max = 1,
     .below = true,
     .standard = "0.9",
     .help = "of optimizer momentum"},
    {.key = "train.beta1",
     AT(train.beta1),
     .type = OPTION_REAL,
     .real_max = 1,
     .below = true,
     .standard = "0.9",
     .help = "of adam and adamw: decay of the mean"},
    {.key = "train.beta2",
     AT(train.beta2),
     .type = OPTION_REAL,
     .real_max = 1,
     .below = true,
     .standard = "0.999",
     .help = "of adam and adamw: decay of the mean square"},
    {.key = "train.epsilon",
     AT(train.epsilon),
     .type = OPTION_REAL,
     .above = true,
     .real_max = INFINITY,
     .standard = "1.0e-8",
     .help = "of adam and adamw: added to the root"},
    {.key = "train.weight_decay",
     AT(train.weight_decay),
     .type = OPTION_REAL,
     .real_max = INFINITY,
     .standard = "0.01",
     .help = "of adamw"},
    {.key = "train.seed",
     AT(train.seed),
     .type = OPTION_INT,
     .max = INT64_MAX,
     .standard = "1",
     .help = "of initial values, dropout and the order of the data"},
    {.key = "train.eval_every",
     AT(train.eval_every),
     .type = OPTION_INT,
     .max = INT64_MAX,
     .standard = "250",
     .help = "steps between validations; 0: only at the end",
     .flags = CONFIG_FREE},
    {.key = "train.checkpoint_every",
     AT(train.checkpoint_every),
     .type = OPTION_INT,
     .max = INT64_MAX,
     .standard = "500",
     .help = "steps between checkpoints; 0: only at the end",
     .flags = CONFIG_FREE},
    {.key = "train.dtype",
     AT(train.dtype),
     .type = OPTION_CHOICE,
     .names = dtypes,
     .standard = "f32",
     .help = "numbers to compute with; bf16 with sums in f32"},
    {.key = "train.stored_dtype",
     AT(train.stored_dtype),
     .type = OPTION_CHOICE,
     .names = kept_dtypes,
     .standard = "auto",
     .help = "what processors hold of weights; auto: f32 for bf16, else train.dtype"},
    {.key = "train.master_dtype",
     AT(train.master_dtype),
     .type = OPTION_CHOICE,
     .names = kept_dtypes,
     .standard = "auto",
     .help = "what checkpoints hold of weights; auto: f32 for bf16, else train.dtype"},
    {.key = "mesh",
     AT(mesh),
     .type = OPTION_TEXT,
     .flags = CONFIG_FREE,
     .help = "processors, as in \"rows:2;cols:4\"; empty: one"},
    {.key = "layout",
     AT(layout),
     .type = OPTION_TEXT,
     .flags = CONFIG_FREE,
     .help = "dims and their mesh axes, as in \"batch:rows;d_ff:cols\""},
    {.key = "max_value_bytes",
     AT(max_value_bytes),
     .type = OPTION_INT,
     .max = INT64_MAX,
     .standard = "0",
     .flags = CONFIG_FREE,
     .help = "largest copy that may be gathered or moved to a processor; 0: no limit"},
};

const option_table config_options = {
    .rows = rows, .count = sizeof rows / sizeof *rows, .noun = "key"};

void config_defaults(config *c)
{
    options_defaults(&config_options, c);
}

void config_free(config *c)
{
    options_free(&config_options, c);
}

mtf_status config_set(config *c, const char *assignment, mtf_err *err)
{
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return err_set(err, MTF_INVALID, "'%s' is not of the form key=value", assignment);
    char *key = mem_strdup(assignment);
    key[equals - assignment] = '\0';
    const mtf_status status = options_set(&config_options, c, key, equals + 1, err);
    mem_free(key);
    return status;
}

static int kept_dtype(const config_train *t, int given)
{
    if (given != CONFIG_AUTO) return given;
    return t->dtype == CONFIG_BF16 ? CONFIG_F32 : t->dtype;
}

int config_stored_dtype(const config_train *t)
{
    return kept_dtype(t, t->stored_dtype);
}

int config_master_dtype(const config_train *t)
{
    return kept_dtype(t, t->master_dtype);
}

/* f64 does not mix: it is for comparisons. A checkpoint that holds less than the run had would make
 * a resumed run another one. */
static mtf_status check_types(const config_train *t, mtf_err *err)
{
    const int stored = config_stored_dtype(t), master = config_master_dtype(t);
    const int wide = (t->dtype == CONFIG_F64) + (stored == CONFIG_F64) + (master == CONFIG_F64);
    if (wide != 0 && wide != 3)
        return err_set(err, MTF_INVALID,
                       "train.dtype is %s, train.stored_dtype %s and train.master_dtype %s: f64 "
                       "does not mix with other types; set all or none of them to f64",
                       dtypes[t->dtype], dtypes[stored], dtypes[master]);
    if (stored == CONFIG_F32 && master == CONFIG_BF16)
        return err_set(err, MTF_INVALID,
                       "train.master_dtype is bf16 and train.stored_dtype is f32: a checkpoint "
                       "would lose half of every weight; raise train.master_dtype to f32 or lower "
                       "train.stored_dtype to bf16");
    return MTF_OK;
}

mtf_status config_check(const config *c, mtf_err *err)
{
    const config_train *t = &c->train;
    if (t->microbatches > t->batch)
        return err_set(err, MTF_INVALID,
                       "train.microbatches is %lld and train.batch is %lld: every microbatch needs "
                       "a sequence; lower microbatches or raise batch",
                       (long long)t->microbatches, (long long)t->batch);
    TRY(check_types(t, err));
    if (t->min_learning_rate > t->learning_rate) {
        char lo[NUMBER_TEXT], hi[NUMBER_TEXT];
        number_format_real(t->min_learning_rate, lo);
        number_format_real(t->learning_rate, hi);
        return err_set(err, MTF_INVALID,
                       "train.min_learning_rate is %s and train.learning_rate is %s: the smallest "
                       "may not be above the largest",
                       lo, hi);
    }
    return MTF_OK;
}

char *config_text(const config *c)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    MTF_CHECK(f, "no memory stream");
    options_print_yaml(&config_options, c, f);
    MTF_CHECK(fclose(f) == 0, "no memory for the configuration");
    char *copy = mem_strdup(text);
    free(text);
    return copy;
}

mtf_status config_write(const config *c, const char *path, mtf_err *err)
{
    char *text = config_text(c);
    const mtf_status status = file_replace(path, text, strlen(text), err);
    mem_free(text);
    return status;
}

mtf_status config_compare_for_resume(const config *before, const config *now, mtf_err *err)
{
    const option_row *row = options_difference(&config_options, before, now, CONFIG_FREE);
    if (!row) return MTF_OK;
    char *x = options_text(row, before), *y = options_text(row, now);
    err_set(err, MTF_INVALID,
            "%s is '%s' in the run and '%s' now: a resumed run keeps its numbers; set it back, or "
            "begin a new run in another folder",
            row->key, x, y);
    mem_free(x);
    mem_free(y);
    return MTF_INVALID;
}
