// libFuzzer's mutator for TFLite: changes the model's objects, not bytes, and writes them again, so
// that what it makes is a FlatBuffer. First the graph (operators, operands, shapes, types,
// content), then numbers where they stand, options included.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "flatbuffers/minireflect.h"
#include "objects_generated.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                                          unsigned seed);
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                            size_t other_size, uint8_t *out, size_t max_size,
                                            unsigned seed);

namespace fb = inferd::tflite;

namespace
{

class Random
{
  public:
    explicit Random(unsigned seed) : state_(seed)
    {
    }

    size_t operator()(size_t count)
    {
        state_ = state_ * 1664525u + 1013904223u;
        return (size_t)((uint64_t)(state_ >> 8) * count >> 24);
    }

    template <typename T> T &of(std::vector<T> &items)
    {
        return items[(*this)(items.size())];
    }

    template <typename T, size_t N> T of(const T (&items)[N])
    {
        return items[(*this)(N)];
    }

  private:
    uint32_t state_;
};

int64_t any_number(Random &random)
{
    static const int64_t numbers[] = {255,       256,       65535,     65536,      INT32_MAX,
                                      INT32_MIN, INT64_MAX, INT64_MIN, 1000000000, 1 << 20};
    switch (random(8)) {
    case 0:
        return random.of(numbers);
    case 1:
        return -1 - (int64_t)random(3);
    case 2:
        return (int64_t)random(64);
    default:
        return (int64_t)random(8);
    }
}

float any_float(Random &random)
{
    static const float floats[] = {0,    -0.0F, 1,     -1,    0.5F,   2,        1 / 256.0F, 0.1F,
                                   3e9F, 1e-9F, 1e30F, 1e38F, 1e-40F, INFINITY, NAN,        1e-20F};
    return random.of(floats);
}

size_t size_of(int8_t type)
{
    switch (type) {
    case fb::TensorType_FLOAT32:
    case fb::TensorType_INT32:
    case fb::TensorType_UINT32:
        return 4;
    case fb::TensorType_INT64:
    case fb::TensorType_UINT64:
    case fb::TensorType_FLOAT64:
    case fb::TensorType_COMPLEX64:
        return 8;
    case fb::TensorType_INT16:
    case fb::TensorType_UINT16:
    case fb::TensorType_FLOAT16:
    case fb::TensorType_BFLOAT16:
        return 2;
    default:
        return 1;
    }
}

// ---- graph ----

using Tensors = std::vector<std::unique_ptr<fb::TensorT>>;

int any_tensor(Random &random, const fb::SubGraphT &graph)
{
    return random(16) == 0 || graph.tensors.empty() ? -1 : (int)random(graph.tensors.size());
}

void change_list(Random &random, const fb::SubGraphT &graph, std::vector<int> &list)
{
    switch (random(4)) {
    case 0:
        list.insert(list.begin() + (long)random(list.size() + 1), any_tensor(random, graph));
        break;
    case 1:
        if (!list.empty()) {
            list.erase(list.begin() + (long)random(list.size()));
        }
        break;
    default:
        if (!list.empty()) {
            random.of(list) = any_tensor(random, graph);
        }
    }
}

void change_shape(Random &random, fb::TensorT &tensor)
{
    auto &shape = tensor.shape;
    switch (random(8)) {
    case 0:
        shape.insert(shape.begin() + (long)random(shape.size() + 1), 1 + (int)random(3));
        break;
    case 1:
        if (!shape.empty()) {
            shape.erase(shape.begin() + (long)random(shape.size()));
        }
        break;
    case 2:
        tensor.shape_signature = shape;
        if (!shape.empty()) {
            random.of(tensor.shape_signature) = -1;
        }
        break;
    case 3:
        if (!shape.empty()) {
            std::swap(random.of(shape), random.of(shape));
        }
        break;
    default:
        if (!shape.empty()) {
            random.of(shape) = random(8) == 0 ? (int)any_number(random) : (int)random(6);
        }
    }
}

void change_quantization(Random &random, fb::TensorT &tensor)
{
    const bool has_axis = !tensor.shape.empty() && random(3) == 0;
    const size_t axis = has_axis ? random(tensor.shape.size()) : 0;
    const size_t count =
        has_axis ? std::min((size_t)std::max(tensor.shape[axis], 0), (size_t)64) : 1;
    auto quantization = std::make_unique<fb::QuantizationT>();
    for (size_t i = 0; i < count; i++) {
        const bool is_usual = random(4) > 0;
        quantization->scale.push_back(is_usual ? 0.01F * (float)(1 + random(9))
                                               : any_float(random));
        quantization->zero_point.push_back(random(2) == 0 ? 0 : (int64_t)random(256) - 128);
    }
    quantization->quantized_dimension = (int)axis;
    if (random(8) == 0) {
        quantization.reset();
    }
    tensor.quantization = std::move(quantization);
}

// All tensors of one type get another, with the quantization that it needs.
void change_types(Random &random, fb::SubGraphT &graph)
{
    static const fb::TensorType types[] = {
        fb::TensorType_FLOAT32, fb::TensorType_INT8,   fb::TensorType_UINT8,   fb::TensorType_INT16,
        fb::TensorType_INT32,   fb::TensorType_INT64,  fb::TensorType_FLOAT16, fb::TensorType_BOOL,
        fb::TensorType_INT4,    fb::TensorType_FLOAT64};
    const auto from = random.of(graph.tensors)->type;
    const auto to = random(8) == 0 ? (fb::TensorType)random(19) : random.of(types);
    for (auto &tensor : graph.tensors) {
        if (tensor->type == from) {
            tensor->type = to;
            if (size_of((int8_t)to) <= 2 && !tensor->quantization) {
                change_quantization(random, *tensor);
            }
        }
    }
}

// Content as long as the shape says, or none.
void change_content(Random &random, fb::ModelT &model, fb::TensorT &tensor)
{
    size_t bytes = size_of((int8_t)tensor.type);
    for (const int dim : tensor.shape) {
        bytes *= (size_t)std::min(std::max(dim, 0), 64);
    }
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->data.resize(std::min(bytes, (size_t)1024));
    for (size_t i = 0; i + size_of((int8_t)tensor.type) <= buffer->data.size();
         i += size_of((int8_t)tensor.type)) {
        const float f = random(4) == 0 ? any_float(random) : (float)random(9) / 4 - 1;
        const int64_t n = any_number(random);
        const bool is_float = tensor.type == fb::TensorType_FLOAT32;
        memcpy(&buffer->data[i], is_float ? (const void *)&f : &n, size_of((int8_t)tensor.type));
    }
    if (random(4) == 0) {
        tensor.buffer = 0;
    } else {
        tensor.buffer = (uint32_t)model.buffers.size();
        model.buffers.push_back(std::move(buffer));
    }
}

std::unique_ptr<fb::OperatorT> copy_of(const fb::OperatorT &op)
{
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::CreateOperator(builder, &op));
    return std::unique_ptr<fb::OperatorT>(
        flatbuffers::GetRoot<fb::Operator>(builder.GetBufferPointer())->UnPack());
}

void change_operator(Random &random, fb::ModelT &model, fb::SubGraphT &graph)
{
    auto &operators = graph.operators;
    auto &op = random.of(operators);
    switch (random(8)) {
    case 0: {
        auto made = copy_of(*op);
        if (!made->outputs.empty() && !graph.tensors.empty()) { // of its own
            const int at = random.of(made->outputs);
            if (at >= 0 && (size_t)at < graph.tensors.size()) {
                flatbuffers::FlatBufferBuilder builder;
                builder.Finish(fb::CreateTensor(builder, graph.tensors[(size_t)at].get()));
                graph.tensors.emplace_back(
                    flatbuffers::GetRoot<fb::Tensor>(builder.GetBufferPointer())->UnPack());
                std::replace(made->outputs.begin(), made->outputs.end(), at,
                             (int)graph.tensors.size() - 1);
                graph.outputs.push_back((int)graph.tensors.size() - 1);
            }
        }
        operators.push_back(std::move(made));
        break;
    }
    case 1:
        operators.erase(operators.begin() + (long)random(operators.size()));
        break;
    case 2:
        std::swap(op, random.of(operators));
        break;
    case 3:
        if (!model.operator_codes.empty()) {
            auto &code = random.of(model.operator_codes);
            code->builtin_code = (fb::Builtin)random(209);
            code->deprecated_builtin_code = 0;
            code->version = 1 + (int)random(6);
        }
        break;
    case 4:
        change_list(random, graph, op->outputs);
        break;
    default:
        change_list(random, graph, op->inputs);
    }
}

void change_graph(Random &random, fb::ModelT &model)
{
    if (model.subgraphs.empty()) {
        return;
    }
    fb::SubGraphT &graph = *random.of(model.subgraphs);
    const size_t what = random(12);
    if (what < 5 && !graph.operators.empty()) {
        change_operator(random, model, graph);
    } else if (what == 5) {
        change_list(random, graph, random(2) == 0 ? graph.inputs : graph.outputs);
    } else if (!graph.tensors.empty()) {
        fb::TensorT &tensor = *random.of(graph.tensors);
        switch (what) {
        case 6:
            change_types(random, graph);
            break;
        case 7:
            change_quantization(random, tensor);
            break;
        case 8:
        case 9:
            change_content(random, model, tensor);
            break;
        case 10:
            tensor.is_variable = !tensor.is_variable;
            break;
        default:
            change_shape(random, tensor);
        }
    }
}

// An operator of another model with all that it needs, its first input one of ours.
void add_operator(Random &random, fb::ModelT &model, fb::ModelT &other)
{
    if (model.subgraphs.empty() || other.subgraphs.empty() ||
        other.subgraphs[0]->operators.empty()) {
        return;
    }
    fb::SubGraphT &to = *model.subgraphs[0], &from = *other.subgraphs[0];
    auto op = std::move(random.of(from.operators));
    const size_t first_tensor = to.tensors.size(), first_buffer = model.buffers.size();
    const size_t first_code = model.operator_codes.size();
    for (auto *list : {&op->inputs, &op->outputs, &op->intermediates}) {
        for (int &at : *list) {
            at = at >= 0 ? (int)((uint32_t)at + (uint32_t)first_tensor) : at; // any number may come
        }
    }
    op->opcode_index += (uint32_t)first_code;
    for (auto &tensor : from.tensors) {
        tensor->buffer += tensor->buffer > 0 ? (uint32_t)first_buffer : 0;
        to.tensors.push_back(std::move(tensor));
    }
    std::move(other.buffers.begin(), other.buffers.end(), std::back_inserter(model.buffers));
    std::move(other.operator_codes.begin(), other.operator_codes.end(),
              std::back_inserter(model.operator_codes));
    if (!op->inputs.empty() && first_tensor > 0) {
        op->inputs[0] = (int)random(first_tensor);
    }
    for (const int at : op->inputs) {
        if (random(2) == 0 && at >= (int)first_tensor) {
            to.inputs.push_back(at);
        }
    }
    to.outputs.insert(to.outputs.end(), op->outputs.begin(), op->outputs.end());
    to.operators.push_back(std::move(op));
}

// ---- numbers where they stand ----

// Collects the places of all numbers.
class Numbers : public flatbuffers::IterationVisitor
{
  public:
    struct Place {
        uint8_t *at;
        flatbuffers::ElementaryType type;
        size_t values; // of an enum; 0
    };
    std::vector<Place> places;

    void Field(size_t, size_t, flatbuffers::ElementaryType type, bool is_vector,
               const flatbuffers::TypeTable *table, const char *, const uint8_t *at) override
    {
        if (!is_vector) {
            add(type, table, at);
        }
    }
    void Element(size_t, flatbuffers::ElementaryType type, const flatbuffers::TypeTable *table,
                 const uint8_t *at) override
    {
        add(type, table, at);
    }
    void StartSequence() override
    {
    }
    void EndSequence() override
    {
    }
    void StartVector() override
    {
    }
    void EndVector() override
    {
    }
    void UType(uint8_t, const char *) override
    {
    }
    void Bool(bool) override
    {
    }
    void Char(int8_t, const char *) override
    {
    }
    void UChar(uint8_t, const char *) override
    {
    }
    void Short(int16_t, const char *) override
    {
    }
    void UShort(uint16_t, const char *) override
    {
    }
    void Int(int32_t, const char *) override
    {
    }
    void UInt(uint32_t, const char *) override
    {
    }
    void Long(int64_t) override
    {
    }
    void ULong(uint64_t) override
    {
    }
    void Float(float) override
    {
    }
    void Double(double) override
    {
    }
    void String(const flatbuffers::String *) override
    {
    }
    void Unknown(const uint8_t *) override
    {
    }

  private:
    void add(flatbuffers::ElementaryType type, const flatbuffers::TypeTable *table,
             const uint8_t *at)
    {
        if (at && type != flatbuffers::ET_UTYPE && type <= flatbuffers::ET_DOUBLE) {
            places.push_back({const_cast<uint8_t *>(at), type, table ? table->num_elems : 0});
        }
    }
};

size_t bytes_of(flatbuffers::ElementaryType type)
{
    switch (type) {
    case flatbuffers::ET_BOOL:
    case flatbuffers::ET_CHAR:
    case flatbuffers::ET_UCHAR:
        return 1;
    case flatbuffers::ET_SHORT:
    case flatbuffers::ET_USHORT:
        return 2;
    case flatbuffers::ET_LONG:
    case flatbuffers::ET_ULONG:
    case flatbuffers::ET_DOUBLE:
        return 8;
    default:
        return 4;
    }
}

void change_numbers(Random &random, uint8_t *data)
{
    Numbers numbers;
    flatbuffers::IterateFlatBuffer(data, fb::ModelTypeTable(), &numbers);
    if (numbers.places.empty()) {
        return;
    }
    for (size_t i = 1 + random(2); i > 0; i--) {
        const auto &place = random.of(numbers.places);
        int64_t n = place.values > 0 ? (int64_t)random(place.values + 1) : any_number(random);
        n = place.type == flatbuffers::ET_BOOL ? n & 1 : n;
        const float f = any_float(random);
        memcpy(place.at, place.type == flatbuffers::ET_FLOAT ? (const void *)&f : &n,
               bytes_of(place.type));
    }
}

// ---- reading and writing ----

// A union may have a type and no value.
template <typename Union, typename Type> void settle(Union &options, Type none)
{
    options.type = options.value ? options.type : none;
}

void settle(fb::ModelT &model)
{
    for (auto &graph : model.subgraphs) {
        for (auto &op : graph->operators) {
            settle(op->options, fb::Options_NONE);
            settle(op->more_options, fb::MoreOptions_NONE);
        }
        for (auto &tensor : graph->tensors) {
            if (tensor->quantization) {
                settle(tensor->quantization->details, fb::QuantizationDetails_NONE);
            }
            for (size_t i = 0; tensor->sparsity && i < tensor->sparsity->dimensions.size(); i++) {
                settle(tensor->sparsity->dimensions[i]->segments, fb::SparseIndexes_NONE);
                settle(tensor->sparsity->dimensions[i]->indices, fb::SparseIndexes_NONE);
            }
        }
    }
}

// NULL: not a model. Content behind the FlatBuffer (large files) is lost.
std::unique_ptr<fb::ModelT> read_model(const uint8_t *data, size_t size)
{
    if (size < 16 || size > 1 << 16) {
        return nullptr;
    }
    flatbuffers::Verifier verifier(data, size, 32, 4096);
    auto model = fb::VerifyModelBuffer(verifier) ? fb::UnPackModel(data) : nullptr;
    if (model) {
        settle(*model);
    }
    return model;
}

// 0: larger than it may be.
size_t write_model(const fb::ModelT &model, Random &random, uint8_t *data, size_t max_size)
{
    flatbuffers::FlatBufferBuilder builder;
    builder.ForceDefaults(random(2) == 0); // all numbers have a place
    fb::FinishModelBuffer(builder, fb::CreateModel(builder, &model));
    if (builder.GetSize() > max_size) {
        return 0;
    }
    memcpy(data, builder.GetBufferPointer(), builder.GetSize());
    return builder.GetSize();
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                                          unsigned seed)
{
    Random random(seed);
    auto model = random(16) == 0 ? nullptr : read_model(data, size);
    if (!model) { // for the verifier, and for archives
        return LLVMFuzzerMutate(data, size, max_size);
    }
    const size_t what = random(4);
    for (size_t i = what > 0 ? 1 + random(3) : 0; i > 0; i--) {
        change_graph(random, *model);
    }
    const size_t written = write_model(*model, random, data, max_size);
    if (written == 0) {
        return size;
    }
    if (what < 2) { // after it was written: a union of the input may have a value and no type
        change_numbers(random, data);
    }
    return written;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                            size_t other_size, uint8_t *out, size_t max_size,
                                            unsigned seed)
{
    Random random(seed);
    auto model = read_model(data, size), second = read_model(other, other_size);
    if (!model || !second) {
        return 0;
    }
    add_operator(random, *model, *second);
    return write_model(*model, random, out, max_size);
}
