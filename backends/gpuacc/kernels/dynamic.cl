// Layers of floats with weights of 8 bits: each row of the input is quantized by its own range, as
// the reference has it, and the sums are integers. Operations stay as they are.
#pragma OPENCL FP_CONTRACT OFF

inline char nearest(float x, int zero, float least)
{
    const float steps = round(x) + (float)zero;
    return isnan(steps) ? (char)zero : (char)clamp(steps, least, 127.0f);
}

// Work group: one row; its ITEMS items share its elements. ranges: scale and zero point of each
// row.
kernel void quantize_rows(global const real_in *x, const uint x_at, global char *y, const uint y_at,
                          global float *ranges, const uint ranges_at, const int row,
                          const int is_asymmetric)
{
    local float lowest[ITEMS], highest[ITEMS];
    const int item = (int)get_local_id(0), group = (int)get_group_id(0);
    x += x_at + group * row;
    y += y_at + group * row;
    float low = 0.0f, high = 0.0f;
    for (int i = item; i < row; i += ITEMS) {
        const float v = load1(x + i);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    lowest[item] = low;
    highest[item] = high;
    for (int half_way = ITEMS / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_way) {
            lowest[item] = fmin(lowest[item], lowest[item + half_way]);
            highest[item] = fmax(highest[item], highest[item + half_way]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    low = lowest[0];
    high = highest[0];
    const float most = fmax(-low, high);
    const float scale = low == high     ? 1.0f
                        : is_asymmetric ? (high - low) / 255.0f
                                        : most / 127.0f;
    const float inverse = low == high     ? 0.0f
                          : is_asymmetric ? 1.0f / scale
                                          : 127.0f / most;
    int zero = 0;
    if (is_asymmetric && low != high) {
        // from the end with the smaller error
        const float to_low = low / scale, to_high = high / scale;
        const float real_zero =
            128.0f + fabs(to_low) < 127.0f + fabs(to_high) ? -128.0f - to_low : 127.0f - to_high;
        zero = real_zero >= 127.0f ? 127 : (real_zero > -128.0f ? (int)round(real_zero) : -128);
    }
    for (int i = item; i < row; i += ITEMS) {
        y[i] = nearest(load1(x + i) * inverse, zero, is_asymmetric ? -128.0f : -127.0f);
    }
    if (item == 0) {
        ranges[ranges_at + 2 * group] = scale;
        ranges[ranges_at + 2 * group + 1] = (float)zero;
    }
}

// Weights [depth][w_row], filled up with zeros. Work item: 4 outputs of a row.
kernel void dense_dynamic(global const char *x, const uint x_at, global const float *ranges,
                          const uint ranges_at, global const char *w, global const float *scale,
                          global const float *bias, global real_out *y, const uint y_at,
                          const int rows, const int depth, const int out_c, const int w_row,
                          const float lo, const float hi)
{
    const int c = (int)get_global_id(0) * 4, r = (int)get_global_id(1);
    if (c >= out_c || r >= rows) {
        return;
    }
    const float range = ranges[ranges_at + 2 * r];
    const int zero = (int)ranges[ranges_at + 2 * r + 1];
    int4 sum = (int4)(0);
    for (int i = 0; i < depth; i++) {
        sum += ((int)x[x_at + r * depth + i] - zero) * convert_int4(vload4(0, w + i * w_row + c));
    }
    const float4 v = convert_float4(sum) * (vload4(0, scale + c) * range) + vload4(0, bias + c);
    store4(clamp4(v, lo, hi), y + y_at + r * out_c + c, out_c - c);
}
