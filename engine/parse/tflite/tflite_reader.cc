// The only C++ of the engine: from FlatBuffers accessors to the structs of tflite_reader.h.
// No exceptions, no run-time types, all memory from the arena.
#include "engine/parse/tflite/tflite_reader.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "metadata_generated.h"
#include "schema_generated.h"

namespace fb = inferd::tflite;
namespace fbm = inferd::tflite::metadata;

namespace
{

// FlatBuffers offsets are 31 bits; the verifier asserts it. Behind them a file has content only.
constexpr size_t kMaxFlatBufferBytes = (size_t)INT32_MAX - 1;
constexpr size_t kMinFileBytes = 8;
constexpr size_t kReuseFloorBytes = 64 * 1024;
constexpr size_t kTableBytes = 32; // charge for a listed table

// Takes memory and counts the bytes read. Keeps the first error.
class Reader
{
  public:
    Reader(size_t file_bytes, struct ifd_arena *arena, struct ifd_err *err)
        : left_((uint64_t)file_bytes * IFD_TFLITE_REUSE + kReuseFloorBytes), arena_(arena),
          err_(err)
    {
    }

    bool ok() const
    {
        return code_ == IFD_OK;
    }
    enum ifd_code code() const
    {
        return code_;
    }

    void fail(enum ifd_code code, const char *what, size_t got, size_t limit)
    {
        if (ok()) {
            code_ = ifd_fail(err_, code, "%s: %zu, limit %zu", what, got, limit);
        }
    }

    // False if too much was read: the file then lists the same bytes many times.
    bool account(size_t bytes)
    {
        if (ok() && bytes > left_) {
            code_ =
                ifd_fail(err_, IFD_TOO_LARGE, "the file lists the same content more than %d times",
                         IFD_TFLITE_REUSE);
        }
        left_ -= ok() ? bytes : 0;
        return ok();
    }

    template <typename T> T *take(size_t count)
    {
        if (!ok()) {
            return nullptr;
        }
        void *items = ifd_arena_take_array(arena_, count, sizeof(T));
        if (!items) {
            code_ = ifd_arena_fail(arena_, count * sizeof(T), err_);
        }
        return static_cast<T *>(items);
    }

    const char *text(const flatbuffers::String *s)
    {
        return s && account(s->size()) ? s->c_str() : "";
    }

    // A vector in place. Vectors are aligned to 4 bytes, so wider elements could be misaligned.
    template <typename T> const T *array(const flatbuffers::Vector<T> *v, uint32_t *ret_count)
    {
        static_assert(sizeof(T) <= 4, "wider elements may be misaligned");
        *ret_count = 0;
        if (!v || v->size() == 0 || !account(v->size() * sizeof(T))) {
            return nullptr;
        }
        *ret_count = v->size();
        return reinterpret_cast<const T *>(v->Data());
    }

    struct ifd_tflite_ints ints(const flatbuffers::Vector<int32_t> *v)
    {
        struct ifd_tflite_ints r = {};
        r.value = array(v, &r.count);
        return r;
    }

    // Reads a vector of tables with one(table) for each.
    template <typename Out, typename Table, typename One>
    const Out *tables(const flatbuffers::Vector<flatbuffers::Offset<Table>> *v, const char *what,
                      size_t limit, uint32_t *ret_count, One one)
    {
        *ret_count = 0;
        uint32_t count = v ? v->size() : 0;
        if (count > limit) {
            fail(IFD_TOO_LARGE, what, count, limit);
        }
        if (count == 0 || !account(count * kTableBytes)) {
            return nullptr;
        }
        Out *out = take<Out>(count);
        for (uint32_t i = 0; ok() && i < count; i++) {
            one(v->Get(i), &out[i]);
        }
        *ret_count = ok() ? count : 0;
        return out;
    }

  private:
    uint64_t left_; // 4 times a large file does not fit 32 bits
    struct ifd_arena *arena_;
    struct ifd_err *err_;
    enum ifd_code code_ = IFD_OK;
};

// ---- options ----

template <typename T> void read_window(const T *t, struct ifd_tflite_options *o)
{
    o->padding = t->padding();
    o->stride_h = t->stride_h();
    o->stride_w = t->stride_w();
    o->dilation_h = 1;
    o->dilation_w = 1;
    o->activation = t->activation();
}

template <typename T> void read_dilated_window(const T *t, struct ifd_tflite_options *o)
{
    read_window(t, o);
    o->dilation_h = t->dilation_h();
    o->dilation_w = t->dilation_w();
}

void read(const fb::Conv2D *t, struct ifd_tflite_options *o, Reader &)
{
    read_dilated_window(t, o);
}

void read(const fb::DepthwiseConv2D *t, struct ifd_tflite_options *o, Reader &)
{
    read_dilated_window(t, o);
}

void read(const fb::TransposeConv *t, struct ifd_tflite_options *o, Reader &)
{
    read_window(t, o);
}

void read(const fb::Pool2D *t, struct ifd_tflite_options *o, Reader &)
{
    read_window(t, o);
    o->filter_h = t->filter_h();
    o->filter_w = t->filter_w();
}

void read(const fb::FullyConnected *t, struct ifd_tflite_options *o, Reader &)
{
    o->activation = t->activation();
    o->weights_format = t->weights_format();
    o->keep_dims = t->keep_num_dims();
    o->asymmetric_quantize_inputs = t->asymmetric_quantize_inputs();
}

void read(const fb::Softmax *t, struct ifd_tflite_options *o, Reader &)
{
    o->beta = t->beta();
}

void read(const fb::Concatenation *t, struct ifd_tflite_options *o, Reader &)
{
    o->axis = t->axis();
    o->activation = t->activation();
}

template <typename T> void read_add(const T *t, struct ifd_tflite_options *o)
{
    o->activation = t->activation();
    o->pot_scale_int16 = t->pot_scale_int16();
}

void read(const fb::Add *t, struct ifd_tflite_options *o, Reader &)
{
    read_add(t, o);
}

void read(const fb::Sub *t, struct ifd_tflite_options *o, Reader &)
{
    read_add(t, o);
}

void read(const fb::Mul *t, struct ifd_tflite_options *o, Reader &)
{
    o->activation = t->activation();
}

void read(const fb::Div *t, struct ifd_tflite_options *o, Reader &)
{
    o->activation = t->activation();
}

template <typename T> void read_resize(const T *t, struct ifd_tflite_options *o)
{
    o->align_corners = t->align_corners();
    o->half_pixel_centers = t->half_pixel_centers();
}

void read(const fb::ResizeBilinear *t, struct ifd_tflite_options *o, Reader &)
{
    read_resize(t, o);
}

void read(const fb::ResizeNearest *t, struct ifd_tflite_options *o, Reader &)
{
    read_resize(t, o);
}

void read(const fb::Reshape *t, struct ifd_tflite_options *o, Reader &r)
{
    o->ints = r.ints(t->new_shape());
}

void read(const fb::Gather *t, struct ifd_tflite_options *o, Reader &)
{
    o->axis = t->axis();
    o->batch_dims = t->batch_dims();
}

void read(const fb::Reducer *t, struct ifd_tflite_options *o, Reader &)
{
    o->keep_dims = t->keep_dims();
}

void read(const fb::Squeeze *t, struct ifd_tflite_options *o, Reader &r)
{
    o->ints = r.ints(t->squeeze_dims());
}

void read(const fb::StridedSlice *t, struct ifd_tflite_options *o, Reader &)
{
    o->begin_mask = t->begin_mask();
    o->end_mask = t->end_mask();
    o->ellipsis_mask = t->ellipsis_mask();
    o->new_axis_mask = t->new_axis_mask();
    o->shrink_axis_mask = t->shrink_axis_mask();
    o->offset = t->offset();
}

void read(const fb::Split *t, struct ifd_tflite_options *o, Reader &)
{
    o->count = t->num_splits();
}

void read(const fb::SplitV *t, struct ifd_tflite_options *o, Reader &)
{
    o->count = t->num_splits();
}

void read(const fb::Pack *t, struct ifd_tflite_options *o, Reader &)
{
    o->count = t->values_count();
    o->axis = t->axis();
}

void read(const fb::Unpack *t, struct ifd_tflite_options *o, Reader &)
{
    o->count = t->num();
    o->axis = t->axis();
}

void read(const fb::LeakyRelu *t, struct ifd_tflite_options *o, Reader &)
{
    o->alpha = t->alpha();
}

void read(const fb::L2Norm *t, struct ifd_tflite_options *o, Reader &)
{
    o->activation = t->activation();
}

void read(const fb::LocalResponseNormalization *t, struct ifd_tflite_options *o, Reader &)
{
    o->radius = t->radius();
    o->bias = t->bias();
    o->alpha = t->alpha();
    o->beta = t->beta();
}

void read(const fb::SpaceToDepth *t, struct ifd_tflite_options *o, Reader &)
{
    o->block = t->block_size();
}

void read(const fb::DepthToSpace *t, struct ifd_tflite_options *o, Reader &)
{
    o->block = t->block_size();
}

void read(const fb::OneHot *t, struct ifd_tflite_options *o, Reader &)
{
    o->axis = t->axis();
}

void read(const fb::MirrorPad *t, struct ifd_tflite_options *o, Reader &)
{
    o->mode = t->mode();
}

void read(const fb::ReverseSequence *t, struct ifd_tflite_options *o, Reader &)
{
    o->seq_dim = t->seq_dim();
    o->batch_dim = t->batch_dim();
}

void read(const fb::BatchMatMul *t, struct ifd_tflite_options *o, Reader &)
{
    o->adj_x = t->adj_x();
    o->asymmetric_quantize_inputs = t->asymmetric_quantize_inputs();
    o->adj_y = t->adj_y();
}

void read(const fb::Cumsum *t, struct ifd_tflite_options *o, Reader &)
{
    o->exclusive = t->exclusive();
    o->reverse = t->reverse();
}

void read(const fb::Conv3D *t, struct ifd_tflite_options *o, Reader &)
{
    read_dilated_window(t, o);
    o->stride_d = t->stride_d();
    o->dilation_d = t->dilation_d();
}

void read(const fb::Gelu *t, struct ifd_tflite_options *o, Reader &)
{
    o->approximate = t->approximate();
}

void read(const fb::Call *t, struct ifd_tflite_options *o, Reader &)
{
    o->subgraph[0] = t->subgraph();
}

void read(const fb::If *t, struct ifd_tflite_options *o, Reader &)
{
    o->subgraph[0] = static_cast<uint32_t>(t->then_subgraph());
    o->subgraph[1] = static_cast<uint32_t>(t->else_subgraph());
}

void read(const fb::While *t, struct ifd_tflite_options *o, Reader &)
{
    o->subgraph[0] = static_cast<uint32_t>(t->cond_subgraph());
    o->subgraph[1] = static_cast<uint32_t>(t->body_subgraph());
}

void read(const fb::CallOnce *t, struct ifd_tflite_options *o, Reader &)
{
    o->subgraph[0] = static_cast<uint32_t>(t->init_subgraph());
}

void read(const fb::StablehloComposite *t, struct ifd_tflite_options *o, Reader &)
{
    o->subgraph[0] = static_cast<uint32_t>(t->decomposition_subgraph());
}

/* Vectors are aligned to 4 bytes, so that their wider numbers may be misaligned. */
int64_t long_at(const flatbuffers::Vector<int64_t> *v, uint32_t i)
{
    int64_t r;
    std::memcpy(&r, v->Data() + i * sizeof(r), sizeof(r));
    return flatbuffers::EndianScalar(r);
}

/* At most IFD_MAX_RANK. */
struct ifd_ints ints_of(const flatbuffers::Vector<int64_t> *v)
{
    struct ifd_ints r = {};
    r.count = v ? (v->size() < IFD_MAX_RANK ? v->size() : IFD_MAX_RANK) : 0;
    for (uint32_t i = 0; i < r.count; i++) {
        r.value[i] = long_at(v, i);
    }
    return r;
}

/* Every second number. */
struct ifd_ints half_of(const flatbuffers::Vector<int64_t> *v, uint32_t first)
{
    struct ifd_ints r = {};
    for (uint32_t i = first; v && i < v->size() && r.count < IFD_MAX_RANK; i += 2) {
        r.value[r.count++] = long_at(v, i);
    }
    return r;
}

void read(const fb::StablehloPad *t, struct ifd_tflite_options *o, Reader &r)
{
    auto *w = r.take<struct ifd_tflite_windows>(1);
    if (w) {
        w->low = ints_of(t->low());
        w->high = ints_of(t->high());
        w->between = ints_of(t->between());
        o->windows = w;
    }
}

void read(const fb::StablehloReduceWindow *t, struct ifd_tflite_options *o, Reader &r)
{
    auto *w = r.take<struct ifd_tflite_windows>(1);
    if (w) {
        w->size = ints_of(t->window());
        w->stride = ints_of(t->strides());
        w->between = ints_of(t->base_dilations());
        w->dilation = ints_of(t->window_dilations());
        w->low = half_of(t->padding(), 0);
        w->high = half_of(t->padding(), 1);
        o->windows = w;
    }
    o->subgraph[0] = static_cast<uint32_t>(t->body_subgraph());
}

/* One that no dimension can be is none. */
int32_t axis_of(int64_t axis)
{
    return axis >= 0 && axis <= IFD_MAX_RANK ? static_cast<int32_t>(axis) : -1;
}

void read(const fb::StablehloGather *t, struct ifd_tflite_options *o, Reader &r)
{
    auto *w = r.take<struct ifd_tflite_windows>(1);
    if (w) {
        w->low = ints_of(t->offset_dims());
        w->high = ints_of(t->collapsed_slice_dims());
        w->between = ints_of(t->start_index_map());
        w->size = ints_of(t->slice_sizes());
        o->windows = w;
    }
    o->axis = axis_of(t->index_vector_dim());
}

void read(const fb::StablehloScatter *t, struct ifd_tflite_options *o, Reader &r)
{
    auto *w = r.take<struct ifd_tflite_windows>(1);
    if (w) {
        w->low = ints_of(t->update_window_dims());
        w->high = ints_of(t->inserted_window_dims());
        w->between = ints_of(t->scatter_dims());
        o->windows = w;
    }
    o->axis = axis_of(t->index_vector_dim());
    o->subgraph[0] = static_cast<uint32_t>(t->body_subgraph());
}

void read(const fb::StablehloCase *t, struct ifd_tflite_options *o, Reader &r)
{
    o->ints = r.ints(t->branch_subgraphs());
}

void read(const fb::ReduceWindow *t, struct ifd_tflite_options *o, Reader &)
{
    o->mode = t->function();
}

void read(const fb::VarHandle *t, struct ifd_tflite_options *o, Reader &r)
{
    o->container = r.text(t->container());
    o->shared_name = r.text(t->shared_name());
}

void read(const fb::Hashtable *t, struct ifd_tflite_options *o, Reader &)
{
    o->mode = t->table_id();
}

void read(const fb::Bucketize *t, struct ifd_tflite_options *o, Reader &r)
{
    o->boundaries = r.array(t->boundaries(), &o->boundary_count);
}

void read(const fb::EmbeddingLookupSparse *t, struct ifd_tflite_options *o, Reader &)
{
    o->combiner = t->combiner();
}

void read(const fb::FakeQuant *t, struct ifd_tflite_options *o, Reader &)
{
    o->min = t->min();
    o->max = t->max();
    o->num_bits = t->num_bits();
    o->narrow_range = t->narrow_range();
}

template <typename T> void read_recurrent(const T *t, struct ifd_tflite_options *o)
{
    o->activation = t->activation();
    o->asymmetric_quantize_inputs = t->asymmetric_quantize_inputs();
}

template <typename T> void read_lstm(const T *t, struct ifd_tflite_options *o)
{
    read_recurrent(t, o);
    o->cell_clip = t->cell_clip();
    o->proj_clip = t->proj_clip();
}

void read(const fb::Lstm *t, struct ifd_tflite_options *o, Reader &)
{
    read_lstm(t, o);
    o->is_basic = t->kernel() == fb::LstmKernel_BASIC;
}

void read(const fb::UnidirectionalSequenceLstm *t, struct ifd_tflite_options *o, Reader &)
{
    read_lstm(t, o);
    o->time_major = t->time_major();
    o->is_diagonal = t->diagonal_recurrent_tensors();
}

void read(const fb::BidirectionalSequenceLstm *t, struct ifd_tflite_options *o, Reader &)
{
    read_lstm(t, o);
    o->time_major = t->time_major();
    o->merge_outputs = t->merge_outputs();
}

void read(const fb::Rnn *t, struct ifd_tflite_options *o, Reader &)
{
    read_recurrent(t, o);
}

void read(const fb::SequenceRnn *t, struct ifd_tflite_options *o, Reader &)
{
    read_recurrent(t, o);
    o->time_major = t->time_major();
}

void read(const fb::BidirectionalSequenceRnn *t, struct ifd_tflite_options *o, Reader &)
{
    read_recurrent(t, o);
    o->time_major = t->time_major();
    o->merge_outputs = t->merge_outputs();
}

void read(const fb::Svdf *t, struct ifd_tflite_options *o, Reader &)
{
    read_recurrent(t, o);
    o->rank = t->rank();
}

template <typename T> bool read_as(const fb::Operator *op, struct ifd_tflite_options *o, Reader &r)
{
    const T *t = op->options_as<T>();
    if (t) {
        read(t, o, r);
    }
    return t;
}

template <typename T>
bool read_more(const fb::Operator *op, struct ifd_tflite_options *o, Reader &r)
{
    const T *t = op->more_options_as<T>();
    if (t) {
        read(t, o, r);
    }
    return t;
}

template <typename... T>
void read_any(const fb::Operator *op, struct ifd_tflite_options *o, Reader &r)
{
    (void)(read_as<T>(op, o, r) || ...);
}

const struct ifd_tflite_options kNoOptions = {};

const struct ifd_tflite_options *read_options(const fb::Operator *op, Reader &r)
{
    const bool has_options = op->options_type() != fb::Options_NONE && op->options();
    const bool has_more = op->more_options_type() != fb::MoreOptions_NONE && op->more_options();
    if (!has_options && !has_more) {
        return &kNoOptions;
    }
    auto *o = r.take<struct ifd_tflite_options>(1);
    if (!o) {
        return &kNoOptions;
    }
    if (read_more<fb::StablehloComposite>(op, o, r) || read_more<fb::StablehloPad>(op, o, r) ||
        read_more<fb::StablehloReduceWindow>(op, o, r) || read_more<fb::ReduceWindow>(op, o, r) ||
        read_more<fb::StablehloGather>(op, o, r) || read_more<fb::StablehloScatter>(op, o, r) ||
        read_more<fb::StablehloCase>(op, o, r)) {
        return o;
    }
    read_any<fb::Lstm, fb::UnidirectionalSequenceLstm, fb::BidirectionalSequenceLstm, fb::Rnn,
             fb::SequenceRnn, fb::BidirectionalSequenceRnn, fb::Svdf, fb::Conv2D,
             fb::DepthwiseConv2D, fb::TransposeConv, fb::Pool2D, fb::FullyConnected, fb::Softmax,
             fb::Concatenation, fb::Add, fb::Sub, fb::Mul, fb::Div, fb::ResizeBilinear,
             fb::ResizeNearest, fb::Reshape, fb::Gather, fb::Reducer, fb::Squeeze, fb::StridedSlice,
             fb::Split, fb::SplitV, fb::Pack, fb::Unpack, fb::LeakyRelu, fb::L2Norm,
             fb::LocalResponseNormalization, fb::SpaceToDepth, fb::DepthToSpace, fb::OneHot,
             fb::MirrorPad, fb::ReverseSequence, fb::BatchMatMul, fb::Cumsum, fb::Conv3D, fb::Gelu,
             fb::Call, fb::CallOnce, fb::If, fb::While, fb::VarHandle, fb::Hashtable, fb::Bucketize,
             fb::EmbeddingLookupSparse, fb::FakeQuant>(op, o, r);
    return o;
}

// ---- graph ----

void read_operator(const fb::Operator *op, struct ifd_tflite_operator *out, size_t max_operands,
                   Reader &r)
{
    out->opcode_index = op->opcode_index();
    out->input = r.ints(op->inputs());
    out->output = r.ints(op->outputs());
    out->intermediate = r.ints(op->intermediates());
    for (uint32_t count : {out->input.count, out->output.count}) {
        if (count > max_operands) {
            r.fail(IFD_TOO_LARGE, "operands of one operator", count, max_operands);
        }
    }
    out->options_type = op->options_type();
    out->options = read_options(op, r);
    uint32_t count = 0;
    out->custom_options.data = r.array(op->custom_options(), &count);
    out->custom_options.size = count;
    out->custom_options_format = op->custom_options_format();
    out->large_custom_options = op->large_custom_options_offset() > 1;
}

void read_zero_points(const flatbuffers::Vector<int64_t> *v, struct ifd_tflite_tensor *out,
                      Reader &r)
{
    if (v && v->size() > 0 && r.account(v->size() * sizeof(int64_t))) {
        out->zero_point = v->Data();
        out->zero_point_count = v->size();
    }
}

template <typename T>
void read_values(const flatbuffers::Vector<T> *values, struct ifd_tflite_indexes *out, Reader &r)
{
    out->data = reinterpret_cast<const uint8_t *>(r.array(values, &out->count));
    out->width = sizeof(T);
}

void read_indexes(fb::SparseIndexes type, const void *t, struct ifd_tflite_indexes *out, Reader &r)
{
    if (t && type == fb::SparseIndexes_Int32Vector) {
        read_values(static_cast<const fb::Int32Vector *>(t)->values(), out, r);
    } else if (t && type == fb::SparseIndexes_Uint16Vector) {
        read_values(static_cast<const fb::Uint16Vector *>(t)->values(), out, r);
    } else if (t && type == fb::SparseIndexes_Uint8Vector) {
        read_values(static_cast<const fb::Uint8Vector *>(t)->values(), out, r);
    }
}

const struct ifd_tflite_sparsity *read_sparsity(const fb::Sparsity *t, Reader &r)
{
    auto *out = t ? r.take<struct ifd_tflite_sparsity>(1) : nullptr;
    if (!out) {
        return nullptr;
    }
    out->traversal_order = r.ints(t->traversal_order());
    out->block_map = r.ints(t->block_map());
    out->dimension = r.tables<struct ifd_tflite_dimension>(
        t->dimensions(), "dimensions of a sparse tensor", 2 * IFD_MAX_RANK, &out->dimension_count,
        [&](const fb::Dimension *d, struct ifd_tflite_dimension *o) {
            o->is_sparse = d->format() == fb::DimensionFormat_SPARSE_CSR;
            o->dense_size = d->dense_size();
            read_indexes(d->segments_type(), d->segments(), &o->segments, r);
            read_indexes(d->indices_type(), d->indices(), &o->indices, r);
        });
    return out;
}

void read_tensor(const fb::Tensor *t, struct ifd_tflite_tensor *out, Reader &r)
{
    out->name = r.text(t->name());
    out->type = t->type();
    out->buffer = t->buffer();
    out->shape = r.ints(t->shape());
    out->signature = r.ints(t->shape_signature());
    out->is_variable = t->is_variable();
    out->sparsity = read_sparsity(t->sparsity(), r);
    const fb::Quantization *q = t->quantization();
    if (q) {
        out->scale = r.array(q->scale(), &out->scale_count);
        read_zero_points(q->zero_point(), out, r);
        out->quantized_dimension = q->quantized_dimension();
        const fb::BlockwiseQuantization *blocks = q->details_as_BlockwiseQuantization();
        out->custom_quantization = !blocks && q->details_type() != fb::QuantizationDetails_NONE;
        out->has_blocks = blocks != nullptr;
        out->block_size = blocks ? blocks->block_size() : 0;
        out->block_scales = blocks ? blocks->scales() : 0;
    }
}

void read_subgraph(const fb::SubGraph *g, const struct ifd_limits *limits,
                   struct ifd_tflite_subgraph *out, Reader &r)
{
    out->tensor = r.tables<struct ifd_tflite_tensor>(
        g->tensors(), "tensors", limits->values, &out->tensor_count,
        [&](const fb::Tensor *t, struct ifd_tflite_tensor *o) { read_tensor(t, o, r); });
    out->op = r.tables<struct ifd_tflite_operator>(
        g->operators(), "operators", limits->nodes, &out->op_count,
        [&](const fb::Operator *t, struct ifd_tflite_operator *o) {
            read_operator(t, o, limits->node_inputs, r);
        });
    out->input = r.ints(g->inputs());
    out->output = r.ints(g->outputs());
    for (uint32_t count : {out->input.count, out->output.count}) {
        if (count > limits->node_inputs) {
            r.fail(IFD_TOO_LARGE, "inputs or outputs of the model", count, limits->node_inputs);
        }
    }
}

void read_opcode(const fb::OperatorCode *t, struct ifd_tflite_opcode *out, Reader &r)
{
    int32_t old = t->deprecated_builtin_code();
    out->builtin = t->builtin_code() > old ? t->builtin_code() : old;
    out->builtin_name = fb::EnumNameBuiltin(static_cast<fb::Builtin>(out->builtin));
    out->custom = out->builtin == fb::Builtin_CUSTOM ? r.text(t->custom_code()) : "";
    out->version = t->version();
}

void read_buffer(const fb::Buffer *t, struct ifd_tflite_buffer *out)
{
    if (t->data()) {
        out->data.data = t->data()->Data();
        out->data.size = t->data()->size();
    }
    out->offset = t->offset();
    out->size = t->size();
}

void read_map(const fb::TensorMap *t, struct ifd_tflite_map *out, Reader &r)
{
    out->name = r.text(t->name());
    out->tensor = t->tensor_index();
}

void read_signature(const fb::SignatureDef *t, size_t limit, struct ifd_tflite_signature *out,
                    Reader &r)
{
    auto map = [&](const fb::TensorMap *m, struct ifd_tflite_map *o) { read_map(m, o, r); };
    out->key = r.text(t->signature_key());
    out->subgraph = t->subgraph_index();
    out->input = r.tables<struct ifd_tflite_map>(t->inputs(), "inputs of a signature", limit,
                                                 &out->input_count, map);
    out->output = r.tables<struct ifd_tflite_map>(t->outputs(), "outputs of a signature", limit,
                                                  &out->output_count, map);
}

void read_model(const fb::Model *m, const struct ifd_limits *limits, struct ifd_tflite_model *out,
                Reader &r)
{
    out->version = m->version();
    out->description = r.text(m->description());
    out->opcode = r.tables<struct ifd_tflite_opcode>(
        m->operator_codes(), "operator codes", limits->nodes, &out->opcode_count,
        [&](const fb::OperatorCode *t, struct ifd_tflite_opcode *o) { read_opcode(t, o, r); });
    out->buffer = r.tables<struct ifd_tflite_buffer>(
        m->buffers(), "buffers", limits->values, &out->buffer_count,
        [](const fb::Buffer *t, struct ifd_tflite_buffer *o) { read_buffer(t, o); });
    out->metadata = r.tables<struct ifd_tflite_metadata_entry>(
        m->metadata(), "metadata entries", limits->nodes, &out->metadata_count,
        [&](const fb::Metadata *t, struct ifd_tflite_metadata_entry *o) {
            o->name = r.text(t->name());
            o->buffer = t->buffer();
        });
    out->signature = r.tables<struct ifd_tflite_signature>(
        m->signature_defs(), "signatures", limits->nodes, &out->signature_count,
        [&](const fb::SignatureDef *t, struct ifd_tflite_signature *o) {
            read_signature(t, limits->node_inputs, o, r);
        });
    out->subgraph = r.tables<struct ifd_tflite_subgraph>(
        m->subgraphs(), "subgraphs", limits->nodes, &out->subgraph_count,
        [&](const fb::SubGraph *t, struct ifd_tflite_subgraph *o) {
            read_subgraph(t, limits, o, r);
        });
}

// ---- metadata ----

const char *label_file(const fbm::TensorMetadata *t, Reader &r)
{
    if (!t->associated_files()) {
        return "";
    }
    const char *found = "";
    for (const fbm::AssociatedFile *file : *t->associated_files()) {
        bool labels = file->type() == fbm::AssociatedFileType_TENSOR_AXIS_LABELS ||
                      file->type() == fbm::AssociatedFileType_TENSOR_VALUE_LABELS;
        bool neutral = !file->locale() || file->locale()->size() == 0;
        if (!r.account(kTableBytes) || !labels || !file->name()) {
            continue;
        }
        if (neutral) {
            return r.text(file->name());
        }
        if (found[0] == '\0') {
            found = r.text(file->name()); // a translation, unless a neutral file follows
        }
    }
    return found;
}

void read_port_info(const fbm::TensorMetadata *t, struct ifd_tflite_port_info *out, Reader &r)
{
    out->name = r.text(t->name());
    out->description = r.text(t->description());
    out->label_file = label_file(t, r);
    if (!t->process_units()) {
        return;
    }
    for (const fbm::ProcessUnit *unit : *t->process_units()) {
        const fbm::Normalization *n = unit->options_as<fbm::Normalization>();
        if (n && r.account(kTableBytes)) {
            out->mean = r.array(n->mean(), &out->mean_count);
            out->std = r.array(n->std(), &out->std_count);
            return;
        }
    }
}

// The verified root of type T; NULL if verification fails.
template <typename T>
const T *verified(const uint8_t *data, size_t size, const char *identifier, uint32_t max_tables)
{
    flatbuffers::Verifier::Options options;
    options.max_tables = max_tables;
    flatbuffers::Verifier verifier(data, size, options);
    if (!verifier.VerifyBuffer<T>(identifier)) {
        return nullptr;
    }
    return flatbuffers::GetRoot<T>(data);
}

} // namespace

enum ifd_code ifd_tflite_read(struct ifd_bytes file, const struct ifd_limits *limits,
                              struct ifd_arena *arena, struct ifd_tflite_model *ret,
                              struct ifd_err *err)
{
    if (file.size < kMinFileBytes) {
        return ifd_fail(err, IFD_CORRUPT, "%zu bytes are not a TFLite model", file.size);
    }
    // Tensors, their quantization, operators, their options, buffers: each listed table counts.
    uint64_t tables = 3 * (uint64_t)limits->values + 3 * (uint64_t)limits->nodes + 1024;
    const fb::Model *model = verified<fb::Model>(
        file.data, std::min(file.size, kMaxFlatBufferBytes), fb::ModelIdentifier(),
        tables < UINT32_MAX ? (uint32_t)tables : UINT32_MAX);
    if (!model) {
        return ifd_fail(err, IFD_CORRUPT, "the FlatBuffer of %zu bytes is damaged or cut off",
                        file.size);
    }
    Reader reader(file.size, arena, err);
    struct ifd_tflite_model out = {};
    read_model(model, limits, &out, reader);
    if (reader.ok()) {
        *ret = out;
    }
    return reader.code();
}

enum ifd_code ifd_tflite_read_info(struct ifd_bytes buffer, struct ifd_arena *arena,
                                   struct ifd_tflite_info *ret, struct ifd_err *err)
{
    if (buffer.size < kMinFileBytes || buffer.size > kMaxFlatBufferBytes) {
        return ifd_fail(err, IFD_CORRUPT, "metadata of %zu bytes", buffer.size);
    }
    // A FlatBuffer inside a buffer may be misaligned.
    auto *copy = static_cast<uint8_t *>(ifd_arena_take_tensor(arena, buffer.size));
    if (!copy) {
        return ifd_arena_fail(arena, buffer.size, err);
    }
    std::memcpy(copy, buffer.data, buffer.size);
    constexpr uint32_t kMaxTables = 100000;
    const auto *m =
        verified<fbm::ModelMetadata>(copy, buffer.size, fbm::ModelMetadataIdentifier(), kMaxTables);
    if (!m) {
        return ifd_fail(err, IFD_CORRUPT, "the metadata of %zu bytes is damaged", buffer.size);
    }
    Reader r(buffer.size, arena, err);
    struct ifd_tflite_info out = {};
    out.description = r.text(m->description());
    if (m->subgraph_metadata() && m->subgraph_metadata()->size() > 0) {
        const fbm::SubGraphMetadata *g = m->subgraph_metadata()->Get(0);
        auto one = [&](const fbm::TensorMetadata *t, struct ifd_tflite_port_info *o) {
            read_port_info(t, o, r);
        };
        out.input = r.tables<struct ifd_tflite_port_info>(
            g->input_tensor_metadata(), "inputs in metadata", kMaxTables, &out.input_count, one);
        out.output = r.tables<struct ifd_tflite_port_info>(
            g->output_tensor_metadata(), "outputs in metadata", kMaxTables, &out.output_count, one);
    }
    if (r.ok()) {
        *ret = out;
    }
    return r.code();
}
