/* Models of hand-built graphs. */
#include "tests/support/model.h"

#include "backends/cpuref/cpuref.h"
#include "tests/support/fake_backend.h"

enum ifd_code test_engine(const struct ifd_alloc *alloc, bool with_fake,
                          struct ifd_engine **ret_engine, struct ifd_err *err)
{
    static const struct ifd_backend *const backends[] = {&fake_backend, &ifd_backend_cpuref};
    const struct ifd_engine_options options = {.alloc = alloc,
                                               .backends = backends + (with_fake ? 0 : 1),
                                               .backend_count = with_fake ? 2 : 1};
    return ifd_engine_create(&options, ret_engine, err);
}

static struct ifd_port *take_ports(struct ifd_model *model, const uint32_t *value, uint32_t count)
{
    struct ifd_port *port = ifd_arena_take_array(&model->arena, count, sizeof(*port));
    for (uint32_t i = 0; port && i < count; i++) {
        port[i].name = model->graph.value[value[i]].name;
    }
    return port;
}

enum ifd_code test_model_build(struct ifd_model *model, struct ifd_err *err)
{
    const struct ifd_graph *graph = &model->graph;
    const struct ifd_parsed parsed = {.format = "test",
                                      .input = take_ports(model, graph->input, graph->input_count),
                                      .output =
                                          take_ports(model, graph->output, graph->output_count)};
    if (!parsed.input || !parsed.output) {
        return ifd_arena_fail(&model->arena, 0, err);
    }
    return ifd_model_build(model, &parsed, err);
}

struct ifd_tensor test_tensor_f32(struct ifd_shape shape)
{
    size_t bytes = sizeof(float);
    for (uint32_t i = 0; i < shape.rank; i++) {
        bytes *= (size_t)shape.dim[i];
    }
    struct ifd_tensor tensor = {.dtype = IFD_F32,
                                .shape = shape,
                                .data = ifd_acquire_tensor(ifd_alloc_system(), bytes),
                                .bytes = bytes,
                                .capacity = bytes + IFD_TENSOR_PAD};
    REQUIRE(tensor.data != NULL);
    return tensor;
}
