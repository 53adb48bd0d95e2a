/* SPDX-License-Identifier: Apache-2.0
 * Reshapes between random shapes under random layouts, through the executor: values and gradients.
 * test_exchange checks all pairs as data; this checks that what the plan says is what happens. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "mtf/mtf.h"

enum { SAMPLES = 2000, MOST = 48 };

static const char *const meshes[] = {"x:2", "x:3", "x:2;y:2", "x:2;y:3", "x:2;y:2;z:2"};
static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 8};
static uint64_t seed = 1, draws;

static int below(int n)
{
    return (int)(random_u32(seed, 1, 0, draws++) % (uint32_t)n);
}

/* Up to 4 dims whose product is `elements` (0: anything up to MOST). */
static bool any_shape(const char *const *names, int64_t elements, mtf_shape *s)
{
    int64_t product = 1;
    *s = MTF_SCALAR;
    const int rank = below(5);
    for (int i = 0; i < rank; i++) {
        const int64_t size = sizes[below(7)];
        if (product * size > MOST) continue;
        product *= size;
        *s = mtf_shape_with(*s, (mtf_dim){names[s->rank], size});
    }
    return elements == 0 || product == elements;
}

/* Every axis to a random dim or to none; dims with several axes list them in a random order. */
static void any_layout(const mtf_shape *a, const mtf_shape *b, const char *mesh, char *text,
                       size_t room)
{
    static const char axes[] = "xyz";
    const int naxes = strchr(mesh, 'z') ? 3 : strchr(mesh, 'y') ? 2 : 1;
    const mtf_shape *both[2] = {a, b};
    size_t used = 0;
    text[0] = '\0';
    for (int side = 0; side < 2; side++) {
        int to[3];
        for (int i = 0; i < naxes; i++)
            to[i] = below(both[side]->rank + 1);
        const int first = below(naxes);
        for (int d = 0; d < both[side]->rank; d++) {
            bool open = false;
            for (int i = 0; i < naxes; i++) {
                const int axis = (first + i) % naxes;
                if (to[axis] != d) continue;
                if (open)
                    used += (size_t)snprintf(text + used, room - used, "+%c", axes[axis]);
                else
                    used += (size_t)snprintf(text + used, room - used, ";%s:%c",
                                             both[side]->dim[d].name, axes[axis]);
                open = true;
            }
        }
    }
}

static void run(const mtf_shape *a, const mtf_shape *b, const char *mesh, const char *layout)
{
    mtf_err err = {0};
    mtf_graph *g = mtf_graph_new();
    mtf_tensor *x = mtf_placeholder(g, "x", *a, MTF_F64), *w = mtf_placeholder(g, "w", *b, MTF_F64);
    mtf_tensor *y = mtf_reshape(x, *b), *dx = NULL;
    mtf_gradients(mtf_reduce_sum(mtf_mul(y, w), MTF_SCALAR), 1, &x, &dx);
    mtf_mesh *m = mtf_mesh_parse(mesh, &err);
    mtf_layout *l = mtf_layout_parse(layout, m, true, NULL, &err);
    const mtf_request r = {.nfetches = 2, .fetches = (mtf_tensor *[]){y, dx}};
    mtf_program *p = l ? mtf_compile(g, m, l, &r, &err) : NULL;
    mtf_session *s = p ? mtf_session_new(1, &p, NULL, &err) : NULL;
    double in[MOST], weights[MOST], out[MOST], gradient[MOST];
    for (int i = 0; i < MOST; i++) {
        in[i] = i + 1;
        weights[i] = 100 + i;
    }
    const mtf_feed feeds[] = {{.placeholder = x, .data = in}, {.placeholder = w, .data = weights}};
    if (!s || mtf_run(s, p, 2, feeds, (void *[]){out, gradient}, NULL, &err) != MTF_OK)
        fail_msg("mesh %s, layout %s: %s", mesh, layout, err.text);
    for (int64_t i = 0; i < mtf_shape_size(a); i++)
        if (out[i] != in[i] || gradient[i] != weights[i])
            fail_msg("mesh %s, layout %s: element %lld is %g with gradient %g", mesh, layout,
                     (long long)i, out[i], gradient[i]);
    mtf_session_free(&s);
    mtf_program_free(&p);
    mtf_layout_free(&l);
    mtf_mesh_free(&m);
    mtf_graph_free(&g);
}

static void random_reshapes(void **state)
{
    (void)state;
    static const char *const old_names[] = {"a", "b", "c", "d"}, *const new_names[] = {"e", "f",
                                                                                       "g", "h"};
    printf("%d samples, seed %llu\n", SAMPLES, (unsigned long long)seed);
    for (int k = 0; k < SAMPLES;) {
        mtf_shape a, b;
        char layout[256];
        const char *mesh = meshes[k % 5];
        any_shape(old_names, 0, &a);
        if (!any_shape(new_names, mtf_shape_size(&a), &b)) continue;
        any_layout(&a, &b, mesh, layout, sizeof layout);
        run(&a, &b, mesh, layout);
        k++;
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_reshapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
