/* Einsum: a sum of products over letters. The operands meet one after the other: letters of both
 * and of the result are batches, letters of both alone are summed by a product of matrices, letters
 * of one alone are summed before. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

#define OPERANDS_MAX 8

/* A value and the letter of each dimension. */
struct term {
    uint32_t value, rank;
    char letter[IFD_MAX_RANK];
};

struct equation {
    struct term operand[OPERANDS_MAX], result;
    uint32_t count;
};

static int find(const struct term *t, char letter)
{
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->letter[i] == letter) {
            return (int)i;
        }
    }
    return -1;
}

/* ---- the equation ---- */

/* Letters up to a comma, an arrow or the end; "..." stands for the digits of dimensions that have
 * no letter, the last one being '0' + broadcast - 1. */
static const char *take_term(const char *at, uint32_t broadcast, struct term *ret)
{
    for (; *at != '\0' && *at != ',' && *at != '-'; at++) {
        const bool is_rest = strncmp(at, "...", 3) == 0;
        for (uint32_t i = 0; is_rest && i < broadcast && ret->rank < IFD_MAX_RANK; i++) {
            ret->letter[ret->rank++] = (char)('0' + i);
        }
        if (is_rest) {
            at += 2;
        } else if (*at != ' ' && ret->rank < IFD_MAX_RANK) {
            ret->letter[ret->rank++] = *at;
        }
    }
    return at;
}

/* Dimensions that "..." stands for in an operand of this rank. */
static uint32_t rest_of(const char *at, uint32_t rank)
{
    uint32_t letters = 0;
    bool has_rest = false;
    for (; *at != '\0' && *at != ',' && *at != '-'; at++) {
        has_rest = has_rest || *at == '.';
        letters += *at != ' ' && *at != '.';
    }
    return has_rest && rank > letters ? rank - letters : 0;
}

/* Without an arrow the result has the letters that occur once, in alphabetical order. */
static void imply_result(struct equation *e)
{
    for (int letter = '0'; letter <= 'z'; letter++) {
        uint32_t times = 0;
        for (uint32_t i = 0; i < e->count; i++) {
            for (uint32_t d = 0; d < e->operand[i].rank; d++) {
                times += e->operand[i].letter[d] == letter;
            }
        }
        const bool stays = times == 1 || (times > 0 && letter <= '9');
        if (stays && e->result.rank < IFD_MAX_RANK) {
            e->result.letter[e->result.rank++] = (char)letter;
        }
    }
}

static bool take_equation(struct ifd_onnx_call *call, struct equation *ret)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "equation");
    const struct ifd_onnx_text text = ifd_onnx_text(attr ? attr->s : (struct ifd_str){0});
    const char *at = text.s;
    uint32_t broadcast = 0;
    *ret = (struct equation){.count = call->input_count};
    if (!attr || attr->s.size > IFD_ONNX_TEXT_MAX || call->input_count > OPERANDS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < ret->count; i++) {
        const struct ifd_shape shape = ifd_build_desc(call->b, call->input[i])->shape;
        const uint32_t rest = rest_of(at, shape.rank);
        if (i > 0 && rest != broadcast && rest > 0 && broadcast > 0) {
            return false; /* "..." of different ranks */
        }
        broadcast = rest > broadcast ? rest : broadcast;
        ret->operand[i].value = call->input[i];
        at = take_term(at, rest, &ret->operand[i]);
        if (ret->operand[i].rank != shape.rank || (i + 1 < ret->count && *at != ',')) {
            return false;
        }
        at += i + 1 < ret->count;
    }
    const bool has_arrow = at[0] == '-' && at[1] == '>';
    if (has_arrow) {
        at = take_term(at + 2, broadcast, &ret->result);
    } else {
        imply_result(ret);
    }
    return *at == '\0';
}

/* ---- one operand ---- */

static void drop_letter(struct term *t, uint32_t d)
{
    t->rank--;
    for (; d < t->rank; d++) {
        t->letter[d] = t->letter[d + 1];
    }
}

/* A letter that is there twice: the diagonal. */
static void take_diagonals(struct ifd_builder *b, struct term *t)
{
    for (uint32_t d = 1; b->code == IFD_OK && d < t->rank; d++) {
        const int first = find(t, t->letter[d]);
        if (first == (int)d) {
            continue;
        }
        const struct ifd_shape shape = ifd_build_desc(b, t->value)->shape;
        const uint32_t kept = ifd_onnx_on_diagonal(b, t->value, (uint32_t)first, d);
        const struct ifd_ints axis = {.count = 1, .value = {d}};
        if (shape.dim[first] != shape.dim[d]) {
            ifd_build_fail(b, IFD_INVALID, "the diagonal of shape %s", ifd_shape_text(&shape).s);
        }
        t->value = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, kept, &axis, false);
        drop_letter(t, d--);
    }
}

/* Letters that neither the result nor any of the others has. */
static void sum_alone(struct ifd_builder *b, struct term *t, const struct term *others,
                      uint32_t count)
{
    for (uint32_t d = 0; b->code == IFD_OK && d < t->rank; d++) {
        bool is_wanted = false;
        for (uint32_t i = 0; i < count; i++) {
            is_wanted = is_wanted || find(&others[i], t->letter[d]) >= 0;
        }
        if (!is_wanted) {
            const struct ifd_ints axis = {.count = 1, .value = {d}};
            t->value = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, t->value, &axis, false);
            drop_letter(t, d--);
        }
    }
}

static void arrange(struct ifd_builder *b, struct term *t, const struct term *order)
{
    uint32_t perm[IFD_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++) {
        perm[d] = (uint32_t)find(t, order->letter[d]);
    }
    t->value = ifd_build_transpose(b, t->value, perm);
    memcpy(t->letter, order->letter, sizeof(t->letter));
}

/* ---- two operands ---- */

static void add_letters(struct term *to, const struct term *from, const struct term *other,
                        const struct term *result, bool in_other, bool in_result)
{
    for (uint32_t d = 0; d < from->rank; d++) {
        const char letter = from->letter[d];
        if ((find(other, letter) >= 0) == in_other && (find(result, letter) >= 0) == in_result) {
            to->letter[to->rank++] = letter;
        }
    }
}

static int64_t size_of(struct ifd_builder *b, const struct term *t, char letter)
{
    const int d = find(t, letter);
    return d < 0 ? 1 : ifd_build_desc(b, t->value)->shape.dim[d];
}

/* [batches..., rows, columns]: the letters from a first one on become one dimension. */
static uint32_t as_matrix(struct ifd_builder *b, const struct term *t, uint32_t batches,
                          uint32_t rows)
{
    const struct ifd_shape shape = ifd_build_desc(b, t->value)->shape;
    int64_t dim[IFD_MAX_RANK + 2] = {0};
    memcpy(dim, shape.dim, batches * sizeof(*dim));
    dim[batches] = dim[batches + 1] = 1;
    for (uint32_t d = batches; d < t->rank; d++) {
        dim[batches + (d < batches + rows ? 0 : 1)] *= shape.dim[d];
    }
    return ifd_build_reshape(b, t->value, dim, batches + 2);
}

/* x and y, each letter of which is in both, in the result, or in what comes later (kept). */
static struct term contract(struct ifd_builder *b, struct term x, struct term y,
                            const struct term *kept)
{
    struct term batch = {0}, left = {0}, right = {0}, sum = {0};
    add_letters(&batch, &x, &y, kept, true, true);
    add_letters(&left, &x, &y, kept, false, true);
    add_letters(&right, &y, &x, kept, false, true);
    add_letters(&sum, &x, &y, kept, true, false);
    struct term order_x = batch, order_y = batch, result = batch;
    int64_t dim[IFD_MAX_RANK];
    if (batch.rank + left.rank + right.rank > IFD_MAX_RANK || batch.rank + 2 > IFD_MAX_RANK) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "a product of more than %d dimensions", IFD_MAX_RANK);
        return batch;
    }
    for (uint32_t d = 0; d < left.rank; d++) {
        order_x.letter[order_x.rank++] = result.letter[result.rank++] = left.letter[d];
    }
    for (uint32_t d = 0; d < sum.rank; d++) {
        order_x.letter[order_x.rank++] = order_y.letter[order_y.rank++] = sum.letter[d];
    }
    for (uint32_t d = 0; d < right.rank; d++) {
        order_y.letter[order_y.rank++] = result.letter[result.rank++] = right.letter[d];
    }
    for (uint32_t d = 0; d < result.rank; d++) {
        const char letter = result.letter[d];
        const int64_t of_x = size_of(b, &x, letter), of_y = size_of(b, &y, letter);
        dim[d] = of_x > of_y ? of_x : of_y; /* a dimension of 1 is as large as the other */
    }
    arrange(b, &x, &order_x);
    arrange(b, &y, &order_y);
    const uint32_t product = ifd_build_matmul(b, as_matrix(b, &x, batch.rank, left.rank),
                                              as_matrix(b, &y, batch.rank, sum.rank));
    result.value = ifd_build_reshape(b, product, dim, result.rank);
    return result;
}

void ifd_onnx_einsum(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    struct equation e;
    if (!take_equation(call, &e)) {
        const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "equation");
        ifd_build_fail(b, IFD_UNSUPPORTED, "equation \"%s\" for %u inputs",
                       attr ? ifd_onnx_text(attr->s).s : "", call->input_count);
        return;
    }
    for (uint32_t i = 0; i < e.count; i++) {
        take_diagonals(b, &e.operand[i]);
    }
    struct term t = e.operand[0];
    for (uint32_t i = 1; b->code == IFD_OK && i < e.count; i++) {
        /* letters that are wanted later */
        struct term kept = e.result;
        for (uint32_t k = i + 1; k < e.count; k++) {
            for (uint32_t d = 0; d < e.operand[k].rank && kept.rank < IFD_MAX_RANK; d++) {
                if (find(&kept, e.operand[k].letter[d]) < 0) {
                    kept.letter[kept.rank++] = e.operand[k].letter[d];
                }
            }
        }
        struct term wanted[2] = {kept, e.operand[i]};
        sum_alone(b, &t, wanted, 2);
        wanted[1] = t;
        sum_alone(b, &e.operand[i], wanted, 2);
        t = contract(b, t, e.operand[i], &kept);
    }
    sum_alone(b, &t, &e.result, 1);
    for (uint32_t d = 0; d < e.result.rank; d++) {
        if (find(&t, e.result.letter[d]) < 0 || t.rank != e.result.rank) {
            ifd_build_fail(b, IFD_INVALID, "letter %c of the result is in no input",
                           e.result.letter[d]);
            return;
        }
    }
    arrange(b, &t, &e.result);
    call->output[0] = t.value;
}
