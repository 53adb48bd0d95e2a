/* SPDX-License-Identifier: Apache-2.0 */
#include "support/model.h"

#include "check.h"

model model_new(const mtf_transformer_options *o, int64_t batch)
{
    model m = {.g = mtf_graph_new(), .batch = batch};
    mtf_err err = {0};
    m.m = mtf_transformer_variables(m.g, o);
    m.t = mtf_transformer_apply(m.m, batch, o->length, true);
    if (mtf_graph_status(m.g, &err) != MTF_OK) fail_msg("%s", err.text);
    assert_true(m.m->nvariables <= MODEL_MAX_VARIABLES);
    mtf_gradients(m.t.loss_sum, m.m->nvariables, m.m->variable, m.gradient);
    if (mtf_graph_status(m.g, &err) != MTF_OK) fail_msg("%s", err.text);
    return m;
}

machine machine_new(mtf_graph *g, const char *mesh, const char *layout, const mtf_request *r)
{
    machine m = {0};
    mtf_err err = {0};
    m.mesh = mtf_mesh_parse(mesh, &err);
    if (m.mesh) m.layout = mtf_layout_parse(layout, m.mesh, true, NULL, &err);
    if (m.layout) m.program = mtf_compile(g, m.mesh, m.layout, r, &err);
    if (m.program) m.initial = mtf_compile_initial(g, m.mesh, m.layout, &err);
    if (!m.initial) fail_msg("mesh '%s', layout '%s': %s", mesh, layout, err.text);
    const mtf_session_options options = {.threads = 1, .seed = 3};
    m.session = mtf_session_new(2, (mtf_program *[]){m.initial, m.program}, &options, &err);
    if (!m.session || mtf_run(m.session, m.initial, 0, NULL, NULL, NULL, &err) != MTF_OK)
        fail_msg("mesh '%s', layout '%s': %s", mesh, layout, err.text);
    return m;
}

void machine_free(machine *m)
{
    mtf_session_free(&m->session);
    mtf_program_free(&m->initial);
    mtf_program_free(&m->program);
    mtf_layout_free(&m->layout);
    mtf_mesh_free(&m->mesh);
}

int64_t tensor_size(const mtf_tensor *t)
{
    const mtf_shape s = mtf_tensor_shape(t);
    return mtf_shape_size(&s);
}
