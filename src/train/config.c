/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/number.h"
#include "train/config_schedule.h"
#include "train/files.h"

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
    static const char *const names[] = {
        [CONFIG_F32] = "f32", [CONFIG_F64] = "f64", [CONFIG_BF16] = "bf16"};
    const int stored = config_stored_dtype(t), master = config_master_dtype(t);
    const int wide = (t->dtype == CONFIG_F64) + (stored == CONFIG_F64) + (master == CONFIG_F64);
    if (wide != 0 && wide != 3)
        return err_set(err, MTF_INVALID,
                       "train.dtype is %s, train.stored_dtype %s and train.master_dtype %s: f64 "
                       "does not mix with other types; set all or none of them to f64",
                       names[t->dtype], names[stored], names[master]);
    if (stored == CONFIG_F32 && master == CONFIG_BF16)
        return err_set(err, MTF_INVALID,
                       "train.master_dtype is bf16 and train.stored_dtype is f32: a checkpoint "
                       "would lose half of every weight; raise train.master_dtype to f32 or lower "
                       "train.stored_dtype to bf16");
    if (stored == CONFIG_BF16 && t->ema_decay > 0)
        return err_set(err, MTF_INVALID,
                       "train.ema_decay is above 0 and train.stored_dtype is bf16: an average of "
                       "bf16 would not move; set train.stored_dtype to f32 or train.ema_decay to "
                       "0");
    return MTF_OK;
}

/* Of this optimizer or another: a mistake is found when it is made. */
static mtf_status check_patterns(const config *c, mtf_err *err)
{
    TRY(config_check_pattern("train.exclude_from_weight_decay", c->train.exclude_from_weight_decay,
                             err));
    return config_check_pattern("adafactor.exclude_from_parameter_scale",
                                c->adafactor.exclude_from_parameter_scale, err);
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
    TRY(check_patterns(c, err));
    if (t->min_learning_rate > t->learning_rate) {
        char lo[NUMBER_TEXT], hi[NUMBER_TEXT];
        number_format_real(t->min_learning_rate, lo);
        number_format_real(t->learning_rate, hi);
        return err_set(err, MTF_INVALID,
                       "train.min_learning_rate is %s and train.learning_rate is %s: the smallest "
                       "may not be above the largest",
                       lo, hi);
    }
    return config_check_schedules(c, err);
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

/* The same configuration, its texts not copied, with every type by its own name. */
static config with_types(const config *c)
{
    config copy = *c;
    copy.train.stored_dtype = config_stored_dtype(&c->train);
    copy.train.master_dtype = config_master_dtype(&c->train);
    return copy;
}

mtf_status config_compare_for_resume(const config *before, const config *now, mtf_err *err)
{
    const config a = with_types(before), b = with_types(now);
    const option_row *row = options_difference(&config_options, &a, &b, CONFIG_FREE);
    if (!row) return MTF_OK;
    char *x = options_text(row, &a), *y = options_text(row, &b);
    err_set(err, MTF_INVALID,
            "%s is '%s' in the run and '%s' now: a resumed run keeps its numbers; set it back, or "
            "begin a new run in another folder",
            row->key, x, y);
    mem_free(x);
    mem_free(y);
    return MTF_INVALID;
}
