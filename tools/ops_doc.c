/* SPDX-License-Identifier: Apache-2.0
 * Writes docs/ops.md from the rows: what a row says of itself, and what the compiler does with its
 * first sample. Nothing is written down twice: shapes, types, gradients, roles and traffic are
 * found by building, differentiating and compiling the sample, messages are those of the golden
 * files.
 *
 *     ops_doc SOURCE_DIR              the page
 *     ops_doc SOURCE_DIR examples     the examples as one C program, for the test */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mtf/mtf.h"
#include "ops/rows.h"
#include "ops/tile.h"
#include "spmd/program.h"

/* ---- files ---- */

static char *read_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "ops_doc: '%s' cannot be read\n", path);
        exit(1);
    }
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int c; (c = fgetc(f)) != EOF;)
        fputc(c, out);
    fclose(out);
    fclose(f);
    return text;
}

/* ---- the builder's prototype ---- */

static const char *const headers[] = {"include/mtf/ops.h", "include/mtf/gradient.h"};
static const char *const message_files[] = {"tests/golden/op_errors.txt",
                                            "tests/golden/op_window_errors.txt",
                                            "tests/golden/gradient_errors.txt"};
enum { HEADERS = sizeof headers / sizeof *headers, FILES = sizeof message_files / sizeof(char *) };

/* From the start of its line to the semicolon, on one line. */
static void print_prototype(char *const *text, const char *name)
{
    char call[80];
    snprintf(call, sizeof call, "mtf_%s(", name);
    for (int h = 0; h < HEADERS; h++) {
        const char *at = strstr(text[h], call);
        if (!at || (at > text[h] && at[-1] != '*' && at[-1] != ' ')) continue;
        while (at > text[h] && at[-1] != '\n')
            at--;
        if (strncmp(at, "mtf_tensor", 10) != 0 && strncmp(at, "void", 4) != 0) continue;
        fputs("    ", stdout);
        for (bool space = false; *at && *at != ';'; at++) {
            if (isspace((unsigned char)*at)) {
                space = true;
                continue;
            }
            if (space) putchar(' ');
            space = false;
            putchar(*at);
        }
        puts(";\n");
        return;
    }
}

/* ---- samples ---- */

typedef struct sample {
    mtf_graph *g;
    mtf_tensor *out;
    const mtf_node *node; /* of the row; NULL for a composition */
} sample;

static sample open_sample(const op *row, mtf_dtype type)
{
    sample s = {.g = mtf_graph_new()};
    sample_use_float(type);
    s.out = row->sample ? row->sample(s.g, 0) : NULL;
    for (int64_t i = 0; s.out && i < s.g->nnodes; i++)
        if (s.g->node[i]->op == row) s.node = s.g->node[i];
    return s;
}

static void close_sample(sample *s)
{
    mtf_graph_free(&s->g);
}

static void print_tensor(const mtf_tensor *t)
{
    printf("%s%s", mtf_dtype_name(t->dtype), shape_text(&t->shape));
}

/* The operands and results of the first sample. */
static void print_shapes(const sample *s)
{
    printf("- **Dims.** In the example: ");
    if (s->node) {
        for (int k = 0; k < s->node->nin; k++) {
            if (k) printf(", ");
            print_tensor(s->node->in[k]);
        }
        printf("%s gives ", s->node->nin ? "" : "it");
        for (int o = 0; o < s->node->nout; o++) {
            if (o) printf(", ");
            print_tensor(&s->node->out[o]);
        }
    } else {
        int n = 0;
        for (int64_t i = 0; i < s->g->nnodes; i++)
            if (s->g->node[i]->op->traits & TRAIT_FEED) {
                if (n++) printf(", ");
                print_tensor(&s->g->node[i]->out[0]);
            }
        printf(" gives ");
        print_tensor(s->out);
    }
    puts(".");
}

/* Is a tensor of the row, or of a composition, of this type? */
static bool has_type(const sample *s, mtf_dtype type)
{
    for (int64_t i = 0; i < s->g->nnodes; i++) {
        const mtf_node *n = s->g->node[i];
        if (s->node && n != s->node) continue;
        for (int k = 0; k < n->nin; k++)
            if (n->in[k]->dtype == type) return true;
        for (int k = 0; k < n->nout; k++)
            if (n->out[k].dtype == type) return true;
    }
    return false;
}

/* The sample is built with its real operands as each type; what is an error is left out. */
static void print_types(const op *row)
{
    static const mtf_dtype types[] = {MTF_F32, MTF_F64, MTF_BF16, MTF_I32, MTF_BOOL};
    char list[64] = "";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sample s = open_sample(row, types[i]);
        if (s.out && has_type(&s, types[i]))
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "",
                     mtf_dtype_name(types[i]));
        close_sample(&s);
    }
    if (*list) printf("- **Types.** %s.\n", list);
}

/* ---- gradients as formulas ---- */

typedef struct formula {
    FILE *f;
    const sample *s;
    const mtf_tensor *dy;
    int left; /* nodes that may still be written */
} formula;

static const char *const letters[] = {"x", "y", "z", "u", "v", "w"};
enum { LETTERS = sizeof letters / sizeof *letters };

/* The letter of an operand of the row; of a composition's, in the order in which they were made. */
static const char *letter_of(const sample *s, const mtf_tensor *t)
{
    const mtf_node *n = s->node;
    for (int k = 0; n && k < n->nin; k++)
        if (n->in[k] == t) return letters[k < LETTERS ? k : LETTERS - 1];
    for (int64_t i = 0, k = 0; !n && i < s->g->nnodes; i++)
        if ((s->g->node[i]->op->traits & TRAIT_FEED) && &s->g->node[i]->out[0] == t)
            return letters[k < LETTERS ? k : LETTERS - 1];
        else
            k += (s->g->node[i]->op->traits & TRAIT_FEED) != 0;
    return NULL;
}

static void write_formula(formula *w, const mtf_tensor *t)
{
    const mtf_node *n = t->node;
    const char *letter = letter_of(w->s, t);
    if (t == w->dy) {
        fputs("dout", w->f);
    } else if (letter) {
        fputs(letter, w->f);
    } else if (t == w->s->out) {
        fputs("out", w->f);
    } else if (w->left-- <= 0) {
        fputs("...", w->f);
    } else {
        fprintf(w->f, "%s(", n->op->name);
        for (int k = 0; k < n->nin; k++) {
            if (k) fputs(", ", w->f);
            write_formula(w, n->in[k]);
        }
        char *attr = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&attr, &size);
        op_print_attr(n->op, n->attr, f);
        fclose(f);
        if (*attr) fprintf(w->f, "%s%s", n->nin ? ";" : "", n->nin ? attr : attr + 1);
        free(attr);
        fputc(')', w->f);
        if (n->nout > 1) fprintf(w->f, ".%d", t->index);
    }
}

enum { MOST_OPERANDS = 6 };

static void print_gradient(const sample *s)
{
    mtf_tensor *x[MOST_OPERANDS], *dx[MOST_OPERANDS];
    int n = 0, found = 0;
    for (int64_t i = 0; i < s->g->nnodes && n < MOST_OPERANDS; i++) {
        mtf_node *node = s->g->node[i];
        if ((node->op->traits & TRAIT_FEED) && node->out[0].dtype == MTF_F64)
            x[n++] = &node->out[0];
    }
    const bool real = s->out->dtype == MTF_F64;
    mtf_tensor *out = s->out, *dy = NULL;
    if (real && n) {
        dy = mtf_placeholder(s->g, "dout", out->shape, out->dtype);
        if (mtf_gradients_of(1, &out, &dy, n, x, dx) == MTF_OK)
            for (int i = 0; i < n; i++)
                found += dx[i] != NULL;
    }
    if (!found) {
        puts("- **Gradient.** None.");
        return;
    }
    printf("- **Gradient.**");
    for (int i = 0; i < n; i++) {
        if (!dx[i]) continue;
        char *text = NULL;
        size_t size = 0;
        formula w = {.f = open_memstream(&text, &size), .s = s, .dy = dy, .left = 8};
        write_formula(&w, dx[i]);
        fclose(w.f);
        const char *letter = letter_of(s, x[i]);
        printf(" `d%s = %s`", letter ? letter : "x", text);
        free(text);
    }
    puts("");
}

/* ---- how it splits ---- */

static const char *const role_text[] = {
    [ROLE_MAP] = "each processor works on its block",
    [ROLE_SUM] = "each processor has a part of the sum",
    [ROLE_MAX] = "each processor has a candidate for the largest",
    [ROLE_MIN] = "each processor has a candidate for the smallest",
    [ROLE_WHOLE] = "needed whole",
    [ROLE_MOVE] = "elements change places",
};

static const char *part_text(const mtf_node *n, const char *dim)
{
    const role r = op_role(n, dim);
    bool in = false;
    for (int k = 0; k < n->nin; k++)
        in = in || shape_find(&n->in[k]->shape, dim) >= 0;
    if (r != ROLE_WHOLE) return role_text[r];
    if (!in) return "made whole everywhere, then cut";
    return n->op->lower ? "of the other blocks a summary is needed" : role_text[r];
}

/* The dims of the row, or of all operands and the result of a composition. */
static int sample_dims(const sample *s, mtf_dim *dims)
{
    if (s->node) return op_space(s->node, dims);
    int n = op_space(s->out->node, dims);
    for (int64_t i = 0; i < s->g->nnodes; i++) {
        const mtf_node *f = s->g->node[i];
        for (int d = 0; (f->op->traits & TRAIT_FEED) && d < f->out[0].shape.rank; d++) {
            int at = 0;
            while (at < n && dims[at].name != f->out[0].shape.dim[d].name)
                at++;
            if (at == n && n < KERNEL_MAX_SPACE) dims[n++] = f->out[0].shape.dim[d];
        }
    }
    return n;
}

static void print_traffic(const mtf_program *p)
{
    bool any = false;
    for (const instr *i = p->first; i; i = i->next) {
        const instr_cost c = instr_cost_of(p, i);
        if (!instr_is_collective(i) || i->axes.n == 0) continue;
        printf("%s%s of %.0f bytes", any ? ", " : "", instr_name(i), c.bytes);
        any = true;
    }
    printf("%s", any ? "" : "nothing moves");
}

/* Over two processors, one dim after the other. */
static void print_splits(const sample *s)
{
    mtf_err err = {0};
    mtf_dim dims[KERNEL_MAX_SPACE];
    mtf_mesh *m = mtf_mesh_parse("p:2", &err);
    const int count = sample_dims(s, dims);
    if (count) puts("- **Split** over two processors, in the example:");
    for (int d = 0; d < count; d++) {
        char text[96];
        snprintf(text, sizeof text, "%s:p", dims[d].name);
        mtf_layout *l = mtf_layout_parse(text, m, true, NULL, &err);
        mtf_tensor *out = s->out;
        const mtf_request r = {.nfetches = 1, .fetches = &out};
        mtf_program *p = l ? mtf_compile(s->g, m, l, &r, &err) : NULL;
        if (p) {
            printf("  - `%s`: ", dims[d].name);
            if (s->node) printf("%s; ", part_text(s->node, dims[d].name));
            print_traffic(p);
            puts(".");
        }
        mtf_program_free(&p);
        mtf_layout_free(&l);
    }
    mtf_mesh_free(&m);
}

/* ---- messages ---- */

/* Those that begin with the row's name, without the names of the cases. */
static void print_messages(char *const *text, const char *name)
{
    const size_t length = strlen(name);
    int found = 0;
    const char *last = NULL;
    for (int k = 0; k < FILES; k++)
        for (const char *line = text[k]; *line; line = strchr(line, '\n') + 1) {
            const char *end = strchr(line, '\n'), *message = strstr(line, ": ");
            if (!end) break;
            if (!message || message > end) continue;
            message += 2;
            const bool own = strncmp(message, name, length) == 0 &&
                             (message[length] == ':' || strncmp(message + length, " '", 2) == 0 ||
                              strncmp(message + length, " of '", 5) == 0);
            const bool again = last && strncmp(last, message, (size_t)(end - message) + 1) == 0;
            last = message;
            if (!own || again || found == 4) continue;
            if (found++ == 0) puts("- **Errors,** such as:");
            printf("  - `%.*s`\n", (int)(end - message), message);
        }
}

/* ---- examples ---- */

static void example_of(const op *row, char *text, size_t room)
{
    if (row->example)
        snprintf(text, room, "%s", row->example);
    else
        snprintf(text, room, "mtf_%s(%s)", row->name,
                 row->nin == 0   ? "g"
                 : row->nin == 2 ? "x, y"
                                 : "x");
}

static const char preamble[] =
    "mtf_dim a = {\"a\", 4}, b = {\"b\", 6}, v = {\"v\", 3};\n"
    "mtf_tensor *x = mtf_placeholder(g, \"x\", MTF_SHAPE(a, b), MTF_F32);\n"
    "mtf_tensor *y = mtf_placeholder(g, \"y\", MTF_SHAPE(b), MTF_F32);\n"
    "mtf_tensor *i = mtf_placeholder(g, \"i\", MTF_SHAPE(a), MTF_I32);\n"
    "mtf_tensor *k = mtf_placeholder(g, \"k\", MTF_SHAPE(a, b), MTF_BOOL);\n"
    "mtf_tensor *values, *indices, *parts[6];\n";

static void write_examples(void)
{
    puts(
        "#include <mtf/mtf.h>\n#include <stdio.h>\n\n"
        "static void gradient(const void *context, mtf_tensor *const *ins, mtf_tensor *const *outs,"
        " mtf_tensor *const *dys, mtf_tensor **dxs)\n"
        "{\n    (void)context, (void)ins, (void)outs;\n    dxs[0] = dys[0];\n}\n\n"
        "int main(void)\n{\n    int wrong = 0;");
    for (int r = 0; r < op_count; r++) {
        char text[256];
        example_of(op_rows[r], text, sizeof text);
        if (!*text) continue;
        printf("    {\n    mtf_graph *g = mtf_graph_new();\n    %s", preamble);
        puts("    (void)a, (void)b, (void)v, (void)x, (void)y, (void)i, (void)k;");
        puts("    (void)values, (void)indices, (void)parts;");
        printf("    %s;\n    mtf_err err = {0};\n", text);
        printf("    if (mtf_graph_status(g, &err) != MTF_OK) wrong++, printf(\"%s: %%s\\n\", "
               "err.text);\n    mtf_graph_free(&g);\n    }\n",
               op_rows[r]->name);
    }
    puts("    return wrong != 0;\n}");
}

/* ---- the page ---- */

static void print_row(const op *row, char *const *header, char *const *messages)
{
    char example[256];
    example_of(row, example, sizeof example);
    printf("## %s\n\n%s\n\n", row->name, row->doc);
    print_prototype(header, row->name);
    if (*example)
        printf("    %s;\n\n", example);
    else
        puts("Made by gradients only.\n");
    sample s = open_sample(row, MTF_F64);
    if (s.out) {
        print_shapes(&s);
        print_types(row);
        print_gradient(&s);
        print_splits(&s);
    }
    close_sample(&s);
    print_messages(messages, row->name);
    puts("");
}

static const char introduction[] =
    "# Operations\n\n"
    "Made from the rows of `src/ops` by `make docs`: shapes, types, gradients and traffic are what "
    "the first sample of a row gives. The functions are described in `include/mtf/ops.h`.\n\n"
    "Dims match by name, whatever their order; elementwise operations broadcast. Where a dim is "
    "split "
    "over two processors, what moves is said as the bytes that the busiest processor sends; "
    "results "
    "are brought to where the layout wants them. In gradients `x, y, ..` are the operands, `out` "
    "is "
    "the result and `dout` its gradient. The examples stand behind\n\n";

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: ops_doc SOURCE_DIR [examples]\n"), 2;
    if (argc > 2) {
        write_examples();
        return 0;
    }
    char *header[HEADERS], *messages[FILES];
    for (int i = 0; i < HEADERS; i++)
        header[i] = read_file(argv[1], headers[i]);
    for (int i = 0; i < FILES; i++)
        messages[i] = read_file(argv[1], message_files[i]);
    fputs(introduction, stdout);
    for (const char *line = preamble; *line; line = strchr(line, '\n') + 1)
        printf("    %.*s\n", (int)(strchr(line, '\n') - line), line);
    puts("");
    for (int r = 0; r < op_count; r++)
        print_row(op_rows[r], header, messages);
    for (int i = 0; i < HEADERS; i++)
        free(header[i]);
    for (int i = 0; i < FILES; i++)
        free(messages[i]);
    return 0;
}
