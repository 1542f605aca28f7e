/* The judge of whole models: what it must refuse, however small the difference looks. */
#include "tests/golden/judge.h"

#include <math.h>
#include <string.h>

#include "tests/support/test.h"

static struct ifd_tensor tensor(enum ifd_dtype dtype, void *data, int64_t rows, int64_t columns)
{
    struct ifd_tensor ret = {.dtype = dtype, .shape = {.rank = 2, .dim = {rows, columns}}};
    ret.data = data;
    ret.bytes = ret.capacity = (size_t)(rows * columns) * ifd_dtype_bytes(dtype);
    return ret;
}

/* One output of f32. */
static bool judge_floats(float *got, float *want, int64_t rows, int64_t columns, const char *kind,
                         double limit)
{
    const struct ifd_port port = {.name = "out"};
    const struct ifd_model_info info = {.output = &port, .output_count = 1};
    const struct golden_tolerance tolerance = {.kind = kind, .limit = limit};
    const struct ifd_tensor g = tensor(IFD_F32, got, rows, columns);
    const struct ifd_tensor w = tensor(IFD_F32, want, rows, columns);
    double largest = 0;
    return golden_judge(&info, &g, &w, 1, &tolerance, &largest);
}

static bool is_accepted(float got, float want)
{
    float g[] = {0, got}, w[] = {0, want};
    return judge_floats(g, w, 1, 2, "lsb", 1e30);
}

static void numbers_that_are_not_finite_are_met_by_the_same_only(void)
{
    EXPECT(is_accepted(1, 2));
    EXPECT(is_accepted(NAN, NAN));
    EXPECT(!is_accepted(NAN, 1));
    EXPECT(!is_accepted(1, NAN));
    EXPECT(is_accepted(INFINITY, INFINITY));
    EXPECT(!is_accepted(-INFINITY, INFINITY));
    EXPECT(!is_accepted(1, INFINITY));
    EXPECT(!is_accepted(INFINITY, 1));
}

static void range_is_that_of_finite_numbers(void)
{
    float want[] = {0, 10, INFINITY}, near[] = {0.9F, 10, INFINITY}, far[] = {1.1F, 10, INFINITY};
    EXPECT(judge_floats(near, want, 1, 3, "of_range", 0.1));
    EXPECT(!judge_floats(far, want, 1, 3, "of_range", 0.1));
    float even[] = {5, 5}, other[] = {5, 5.2F};
    EXPECT(!judge_floats(other, even, 1, 2, "of_range", 0.1));
}

static void limit_is_the_largest_difference_that_passes(void)
{
    float want[] = {1, 2, 3}, got[] = {1, 2, 5};
    EXPECT(judge_floats(got, want, 1, 3, "lsb", 2));
    EXPECT(!judge_floats(got, want, 1, 3, "lsb", 1.99));
    EXPECT(judge_floats(got, want, 1, 3, "of_range", 1));
    EXPECT(!judge_floats(got, want, 1, 3, "of_range", 0.99));
}

static void kinds_that_are_unknown_are_refused(void)
{
    float one[] = {1};
    EXPECT(judge_floats(one, one, 1, 1, "lsb", 0));
    EXPECT(!judge_floats(one, one, 1, 1, "task", 0));
    EXPECT(!judge_floats(one, one, 1, 1, "", 0));
}

static void tensors_that_cannot_be_compared_are_refused(void)
{
    int8_t same[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const struct ifd_port port = {.name = "out"};
    const struct ifd_model_info info = {.output = &port, .output_count = 1};
    const struct golden_tolerance tolerance = {.kind = "lsb", .limit = 1e30};
    const struct ifd_tensor good = tensor(IFD_S8, same, 2, 4);
    struct ifd_tensor bad[] = {good, good, good};
    bad[0].dtype = IFD_F16;                         /* a type that the judge does not read */
    bad[1].dtype = (enum ifd_dtype)IFD_DTYPE_COUNT; /* no type */
    bad[2].bytes = 0;
    bad[2].shape.dim[0] = 0;
    double largest = 0;
    EXPECT(golden_judge(&info, &good, &good, 1, &tolerance, &largest));
    for (size_t i = 0; i < 3; i++) {
        largest = 0;
        EXPECT(!golden_judge(&info, &bad[i], &bad[i], 1, &tolerance, &largest));
        EXPECT(largest == INFINITY);
    }
    const struct ifd_tensor others[] = {tensor(IFD_U8, same, 2, 4), tensor(IFD_S8, same, 4, 2),
                                        tensor(IFD_S8, same, 1, 4)};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        EXPECT(!golden_judge(&info, &others[i], &good, 1, &tolerance, &largest));
    }
}

static void every_output_is_judged_and_there_is_one(void)
{
    float right[] = {1, 2}, wrong[] = {1, 9};
    const struct ifd_port ports[2] = {{.name = "a"}, {.name = "b"}};
    const struct golden_tolerance tolerance = {.kind = "lsb", .limit = 1};
    struct ifd_model_info info = {.output = ports, .output_count = 2};
    const struct ifd_tensor good = tensor(IFD_F32, right, 1, 2);
    const struct ifd_tensor want[2] = {good, good}, first[2] = {tensor(IFD_F32, wrong, 1, 2), good},
                            second[2] = {good, tensor(IFD_F32, wrong, 1, 2)};
    double largest = 0;
    EXPECT(golden_judge(&info, want, want, 2, &tolerance, &largest));
    EXPECT(!golden_judge(&info, first, want, 2, &tolerance, &largest));
    EXPECT(!golden_judge(&info, second, want, 2, &tolerance, &largest));
    EXPECT(!golden_judge(&info, want, want, 1, &tolerance, &largest));
    info.output_count = 0;
    EXPECT(!golden_judge(&info, want, want, 0, &tolerance, &largest));
}

static void outputs_are_those_that_the_case_names_in_their_order(void)
{
    static const char *const names[] = {"a", "b", "c"}, *const other[] = {"b", "a"},
                             *const unnamed[] = {"a", NULL};
    const struct ifd_port ports[2] = {{.name = "a"}, {.name = "b"}};
    const struct ifd_model_info info = {.output = ports, .output_count = 2}, none = {0};
    EXPECT(golden_has_outputs(&info, names, 2));
    EXPECT(!golden_has_outputs(&info, names, 1));
    EXPECT(!golden_has_outputs(&info, names, 3));
    EXPECT(!golden_has_outputs(&info, other, 2));
    EXPECT(!golden_has_outputs(&info, unnamed, 2));
    EXPECT(!golden_has_outputs(&none, names, 0));
}

static void mean_difference_has_a_limit_too(void)
{
    float want[] = {0, 100, 50, 50}, outlier[] = {30, 100, 50, 50}, all[] = {30, 70, 30, 70};
    const struct ifd_port port = {.name = "out"};
    const struct ifd_model_info info = {.output = &port, .output_count = 1};
    const struct golden_tolerance tolerance = {.kind = "lsb", .limit = 32, .mean_limit = 0.1};
    const struct ifd_tensor w = tensor(IFD_F32, want, 2, 2), g = tensor(IFD_F32, outlier, 2, 2),
                            bad = tensor(IFD_F32, all, 2, 2);
    double largest = 0;
    EXPECT(golden_judge(&info, &g, &w, 1, &tolerance, &largest));
    EXPECT(!golden_judge(&info, &bad, &w, 1, &tolerance, &largest));
}

static void most_probable_class_stays_that(void)
{
    float want[] = {0.3F, 0.7F, 0.6F, 0.4F}, near[] = {0.4F, 0.6F, 0.55F, 0.45F};
    float other[] = {0.3F, 0.7F, 0.45F, 0.55F}, scores[] = {3, 7, 6, 4}, swapped[] = {3, 7, 4, 6};
    EXPECT(judge_floats(near, want, 2, 2, "lsb", 0.5));
    EXPECT(!judge_floats(other, want, 2, 2, "lsb", 0.5));
    EXPECT(judge_floats(swapped, scores, 2, 2, "lsb", 5)); /* no probabilities */
}

static void most_probable_class_of_quantized_outputs_stays_that(void)
{
    const float scale = 1.0F / 256;
    const int32_t zero = -128;
    const struct ifd_port port = {.name = "out",
                                  .desc.quant = {.scale = &scale, .zero_point = &zero, .count = 1}};
    const struct ifd_model_info info = {.output = &port, .output_count = 1};
    const struct golden_tolerance tolerance = {.kind = "lsb", .limit = 60};
    int8_t want[] = {-28, 27}, near[] = {-20, 19}, other[] = {20, -21};
    const struct ifd_tensor w = tensor(IFD_S8, want, 1, 2), g = tensor(IFD_S8, near, 1, 2),
                            bad = tensor(IFD_S8, other, 1, 2);
    double largest = 0;
    EXPECT(golden_judge(&info, &g, &w, 1, &tolerance, &largest));
    EXPECT(!golden_judge(&info, &bad, &w, 1, &tolerance, &largest));
}

/* ---- detections ---- */

struct found {
    float box[3][4], class[3], score[3], count;
};

static const struct found expected = {
    .box = {{0, 0, 1, 1}, {0.2F, 0.2F, 0.5F, 0.5F}, {0.3F, 0.3F, 0.6F, 0.6F}},
    .class = {16, 17, 16},
    .score = {0.7F, 0.5F, 0.5F},
    .count = 3};

static bool is_found(struct found got, double limit)
{
    struct found want = expected;
    const struct ifd_port ports[4] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
    const struct ifd_model_info info = {.output = ports, .output_count = 4};
    const struct golden_tolerance tolerance = {.kind = "detections", .limit = limit};
    const struct ifd_tensor g[4] = {
        tensor(IFD_F32, got.box, 3, 4), tensor(IFD_F32, got.class, 1, 3),
        tensor(IFD_F32, got.score, 1, 3), tensor(IFD_F32, &got.count, 1, 1)};
    const struct ifd_tensor w[4] = {
        tensor(IFD_F32, want.box, 3, 4), tensor(IFD_F32, want.class, 1, 3),
        tensor(IFD_F32, want.score, 1, 3), tensor(IFD_F32, &want.count, 1, 1)};
    double largest = 0;
    return golden_judge(&info, g, w, 4, &tolerance, &largest);
}

static struct found swapped(size_t a, size_t b)
{
    struct found ret = expected;
    memcpy(ret.box[a], expected.box[b], sizeof(ret.box[a]));
    memcpy(ret.box[b], expected.box[a], sizeof(ret.box[b]));
    ret.class[a] = expected.class[b];
    ret.class[b] = expected.class[a];
    ret.score[a] = expected.score[b];
    ret.score[b] = expected.score[a];
    return ret;
}

static void detections_are_found_in_order_except_among_equal_scores(void)
{
    EXPECT(is_found(expected, 1e-4));
    EXPECT(is_found(swapped(1, 2), 1e-4));
    EXPECT(!is_found(swapped(0, 1), 1e-4));
}

static void detections_differ_in_no_class_and_no_count(void)
{
    struct found got = expected;
    got.class[1] = 18;
    EXPECT(!is_found(got, 0.01));
    got = expected;
    got.count = 2;
    EXPECT(!is_found(got, 0.01));
}

static void detections_differ_by_the_limit_at_most(void)
{
    struct found got = expected;
    got.box[1][2] += 0.005F;
    EXPECT(is_found(got, 0.01));
    EXPECT(!is_found(got, 1e-4));
    got = expected;
    got.score[0] += 0.005F;
    EXPECT(is_found(got, 0.01));
    EXPECT(!is_found(got, 1e-4));
}

static void detection_that_is_no_number_is_refused(void)
{
    struct found got = expected;
    got.box[2][1] = NAN;
    EXPECT(!is_found(got, 1));
    got = expected;
    got.score[2] = NAN;
    EXPECT(!is_found(got, 1));
    got = expected;
    got.count = NAN;
    EXPECT(!is_found(got, 1));
}

static void one_detection_is_no_partner_of_two(void)
{
    struct found got = expected;
    memcpy(got.box[2], expected.box[1], sizeof(got.box[2]));
    got.class[2] = expected.class[1];
    EXPECT(!is_found(got, 0.01));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(numbers_that_are_not_finite_are_met_by_the_same_only),
        T(range_is_that_of_finite_numbers),
        T(limit_is_the_largest_difference_that_passes),
        T(kinds_that_are_unknown_are_refused),
        T(tensors_that_cannot_be_compared_are_refused),
        T(every_output_is_judged_and_there_is_one),
        T(outputs_are_those_that_the_case_names_in_their_order),
        T(mean_difference_has_a_limit_too),
        T(most_probable_class_stays_that),
        T(most_probable_class_of_quantized_outputs_stays_that),
        T(detections_are_found_in_order_except_among_equal_scores),
        T(detections_differ_in_no_class_and_no_count),
        T(detections_differ_by_the_limit_at_most),
        T(detection_that_is_no_number_is_refused),
        T(one_detection_is_no_partner_of_two),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
