/* SPDX-License-Identifier: Apache-2.0
 * The YAML reader of configurations: nested mappings become dotted keys of the option table. */
#include <string.h>
#include <yaml.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "train/config.h"
#include "train/files.h"

enum { MOST_BYTES = 1 << 20, MOST_DEPTH = 16, SHOWN = 100, NO_LINE = -1 };

typedef struct reader {
    config *c;
    const char *name; /* of the file, for messages */
    yaml_document_t *doc;
    int64_t *seen; /* line on which each row of the table was set, 0: not yet */
    mtf_err *err;
} reader;

static int64_t line_of(const yaml_node_t *node)
{
    return (int64_t)node->start_mark.line + 1;
}

static int64_t line_at(const char *text, size_t offset)
{
    int64_t line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

/* The text of a scalar, or NULL with a message. */
static const char *scalar(const reader *r, const yaml_node_t *node, const char *what)
{
    if (node->type != YAML_SCALAR_NODE) {
        err_set(r->err, MTF_INVALID, "%s:%lld: %s wants a single value, not a %s", r->name,
                (long long)line_of(node), what,
                node->type == YAML_SEQUENCE_NODE ? "list" : "mapping");
        return NULL;
    }
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length) {
        err_set(r->err, MTF_INVALID, "%s:%lld: %s holds a zero byte", r->name,
                (long long)line_of(node), what);
        return NULL;
    }
    return text;
}

/* YAML's nothing, "key:" or "key: null", which for us is the empty text. */
static bool is_null(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    const char *text = (const char *)node->data.scalar.value;
    return !*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

static mtf_status set_key(reader *r, const char *key, const yaml_node_t *at,
                          const yaml_node_t *value)
{
    const option_row *row = options_find(&config_options, key);
    const int64_t line = line_of(at);
    char shown[SHOWN], what[SHOWN + 8];
    utf8_quote(key, shown, sizeof shown);
    if (!row)
        return err_set(r->err, MTF_INVALID, "%s:%lld: unknown key '%s'; did you mean '%s'?",
                       r->name, (long long)line, shown, options_nearest(&config_options, key));
    int64_t *seen = &r->seen[row - config_options.rows];
    if (*seen)
        return err_set(r->err, MTF_INVALID, "%s:%lld: key '%s' is given twice, first on line %lld",
                       r->name, (long long)line, shown, (long long)*seen);
    *seen = line;
    snprintf(what, sizeof what, "key '%s'", shown);
    const char *text = scalar(r, value, what);
    if (!text) return MTF_INVALID;
    mtf_err own = {.status = MTF_OK};
    if (options_set_row(row, r->c, is_null(value) ? "" : text, &own) == MTF_OK) return MTF_OK;
    return err_set(r->err, MTF_INVALID, "%s:%lld: %s", r->name, (long long)line, own.text);
}

/* The first key that begins with `section` and a dot, or NULL. */
static const option_row *section_row(const char *section)
{
    const size_t n = strlen(section);
    for (int i = 0; i < config_options.count; i++) {
        const char *key = config_options.rows[i].key;
        if (strncmp(key, section, n) == 0 && key[n] == '.') return &config_options.rows[i];
    }
    return NULL;
}

/* The section that is nearest to a misspelt one. */
static void nearest_section(const char *name, char *out, size_t room)
{
    char shown[SHOWN];
    int best = 1 << 20;
    snprintf(shown, sizeof shown, "%s", name);
    for (int i = 0; i < config_options.count; i++) {
        const char *key = config_options.rows[i].key, *dot = strchr(key, '.');
        char section[SHOWN];
        if (!dot) continue;
        snprintf(section, sizeof section, "%.*s", (int)(dot - key), key);
        const int d = options_distance(shown, section);
        if (d < best) snprintf(out, room, "%s", section);
        if (d < best) best = d;
    }
}

static mtf_status read_section(reader *r, const char *section, const yaml_node_t *mapping)
{
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(r->doc, pair->key);
        const char *text = scalar(r, key, "a key");
        if (!text) return MTF_INVALID;
        const size_t room = strlen(section) + strlen(text) + 2;
        char *full = mem_alloc(room);
        snprintf(full, room, "%s.%s", section, text);
        const mtf_status status =
            set_key(r, full, key, yaml_document_get_node(r->doc, pair->value));
        mem_free(full);
        TRY(status);
    }
    return MTF_OK;
}

/* Whether an earlier pair of the top mapping has the same key; then its line. */
static int64_t earlier(const reader *r, const yaml_node_t *top, const yaml_node_pair_t *pair,
                       const char *text)
{
    for (const yaml_node_pair_t *p = top->data.mapping.pairs.start; p < pair; p++) {
        const yaml_node_t *key = yaml_document_get_node(r->doc, p->key);
        if (strcmp((const char *)key->data.scalar.value, text) == 0) return line_of(key);
    }
    return NO_LINE;
}

static mtf_status read_pair(reader *r, const yaml_node_t *top, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = yaml_document_get_node(r->doc, pair->key);
    const yaml_node_t *value = yaml_document_get_node(r->doc, pair->value);
    const char *text = scalar(r, key, "a key");
    if (!text) return MTF_INVALID;
    char shown[SHOWN], near[SHOWN];
    utf8_quote(text, shown, sizeof shown);
    const int64_t first = earlier(r, top, pair, text);
    if (first != NO_LINE)
        return err_set(r->err, MTF_INVALID, "%s:%lld: key '%s' is given twice, first on line %lld",
                       r->name, (long long)line_of(key), shown, (long long)first);
    const option_row *inside = section_row(text);
    if (!inside && (options_find(&config_options, text) || value->type != YAML_MAPPING_NODE))
        return set_key(r, text, key, value);
    if (!inside) {
        nearest_section(text, near, sizeof near);
        return err_set(r->err, MTF_INVALID, "%s:%lld: unknown key '%s'; did you mean '%s'?",
                       r->name, (long long)line_of(key), shown, near);
    }
    if (is_null(value)) return MTF_OK;
    if (value->type != YAML_MAPPING_NODE)
        return err_set(r->err, MTF_INVALID,
                       "%s:%lld: '%s' holds other keys, such as '%s'; write "
                       "them below it",
                       r->name, (long long)line_of(key), shown, inside->key);
    return read_section(r, text, value);
}

static mtf_status read_document(reader *r)
{
    const yaml_node_t *top = yaml_document_get_root_node(r->doc);
    if (!top || is_null(top)) return MTF_OK;
    if (top->type != YAML_MAPPING_NODE)
        return err_set(r->err, MTF_INVALID,
                       "%s:%lld: a configuration is made of keys and values, such as "
                       "'model: {layers: 4}'",
                       r->name, (long long)line_of(top));
    const yaml_node_pair_t *pair = top->data.mapping.pairs.start;
    for (; pair < top->data.mapping.pairs.top; pair++)
        TRY(read_pair(r, top, pair));
    return MTF_OK;
}

static mtf_status broken(const yaml_parser_t *p, const char *name, const char *text, mtf_err *err)
{
    const char *problem = p->problem ? p->problem : "unknown";
    if (p->error == YAML_READER_ERROR)
        return err_set(err, MTF_INVALID, "%s:%lld: broken YAML: %s", name,
                       (long long)line_at(text, p->problem_offset), problem);
    return err_set(err, MTF_INVALID, "%s:%lld: broken YAML%s%s: %s", name,
                   (long long)p->problem_mark.line + 1, p->context ? " " : "",
                   p->context ? p->context : "", problem);
}

/* Walks over the events alone, and refuses deep nesting: libyaml's time grows with the square of
 * the depth, so that a small file of brackets could take minutes. */
static mtf_status check_depth(const char *name, const char *text, yaml_parser_t *p, mtf_err *err)
{
    for (int depth = 0;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(p, &event)) return broken(p, name, text, err);
        const yaml_event_type_t type = event.type;
        const int64_t line = (int64_t)event.start_mark.line + 1;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT) return MTF_OK;
        depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
        depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
        if (depth > MOST_DEPTH)
            return err_set(err, MTF_INVALID, "%s:%lld: nested more than %d deep", name,
                           (long long)line, (int)MOST_DEPTH);
    }
}

static mtf_status second_document(const char *name, const char *text, yaml_parser_t *p,
                                  mtf_err *err)
{
    yaml_document_t doc;
    mtf_status status = MTF_OK;
    if (!yaml_parser_load(p, &doc)) return broken(p, name, text, err);
    const yaml_node_t *second = yaml_document_get_root_node(&doc);
    if (second)
        status = err_set(err, MTF_INVALID,
                         "%s:%lld: a second YAML document begins here; a configuration is one",
                         name, (long long)line_of(second));
    yaml_document_delete(&doc);
    return status;
}

static mtf_status read_documents(config *c, const char *name, const char *text, yaml_parser_t *p,
                                 mtf_err *err)
{
    yaml_document_t doc;
    if (!yaml_parser_load(p, &doc)) return broken(p, name, text, err);
    reader r = {.c = c, .name = name, .doc = &doc, .err = err};
    r.seen = mem_zalloc(sizeof *r.seen * (size_t)config_options.count);
    const bool is_empty = !yaml_document_get_root_node(&doc);
    const mtf_status status = read_document(&r);
    mem_free(r.seen);
    yaml_document_delete(&doc);
    return status != MTF_OK || is_empty ? status : second_document(name, text, p, err);
}

static void begin(yaml_parser_t *p, const char *text, size_t bytes)
{
    MTF_CHECK(yaml_parser_initialize(p), "out of memory for a YAML parser");
    yaml_parser_set_encoding(p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(p, (const unsigned char *)text, bytes);
}

mtf_status config_parse(config *c, const char *name, const char *text, size_t bytes, mtf_err *err)
{
    const int64_t bad = utf8_check(text, (int64_t)bytes);
    if (bad >= 0)
        return err_set(err, MTF_INVALID, "%s:%lld: byte 0x%02x at offset %lld is not UTF-8 text",
                       name, (long long)line_at(text, (size_t)bad), (unsigned)(uint8_t)text[bad],
                       (long long)bad);
    yaml_parser_t parser;
    begin(&parser, text, bytes);
    mtf_status status = check_depth(name, text, &parser, err);
    yaml_parser_delete(&parser);
    if (status != MTF_OK) return status;
    begin(&parser, text, bytes);
    status = read_documents(c, name, text, &parser, err);
    yaml_parser_delete(&parser);
    return status;
}

mtf_status config_load(const char *path, char **text, size_t *bytes, mtf_err *err)
{
    const mtf_status status = file_read(path, MOST_BYTES, text, bytes, err);
    if (status != MTF_OK) err_prefix(err, "configuration: ");
    return status;
}

mtf_status config_read(config *c, const char *path, mtf_err *err)
{
    char *text;
    size_t bytes;
    TRY(config_load(path, &text, &bytes, err));
    const mtf_status status = config_parse(c, path, text, bytes, err);
    mem_free(text);
    return status;
}
