// Images read at places between their pixels. Work item: 4 channels at a place of the grid.
//
// TAPS: pixels in each direction: 1 the nearest, 2 linear, 4 cubic. PADDING: what lies outside, 0:
// zeros, 1: the nearest pixel, 2: the image, mirrored. CORNERS: -1 and 1 are the centers of the
// outermost pixels.
#pragma OPENCL FP_CONTRACT OFF

#define FAR 8e6f // in pixels; exact as a float

inline float place_of(float at, int size)
{
    const float place =
        CORNERS ? (at + 1) / 2 * (float)(size - 1) : ((at + 1) * (float)size - 1) / 2;
    return place > -FAR ? (place < FAR ? place : FAR) : -FAR;
}

inline float reflect(float at, float low, float high)
{
    const float span = high - low;
    if (!(span > 0)) {
        return low;
    }
    const float away = fabs(at - low), times = floor(away / span);
    const float rest = away - times * span;
    return fmod(times, 2.0f) == 0 ? low + rest : high - rest;
}

// An index inside; -1: nothing is there.
inline int pixel_of(int at, int size)
{
    if (at >= 0 && at < size) {
        return at;
    }
    if (PADDING == 0) {
        return -1;
    }
    const float last = (float)(size - 1);
    const int there = PADDING == 1 ? at
                      : CORNERS    ? (int)reflect((float)at, 0.0f, last)
                                   : (int)reflect((float)at, -0.5f, last + 0.5f);
    return clamp(there, 0, size - 1);
}

inline int first_of(float place)
{
    return TAPS == 1 ? (int)rint(place) : (int)floor(place) - (TAPS == 4);
}

// Of the pixel i behind the first. Cubic: Keys' polynomial with a = -0.75.
inline float weight_of(float place, int i)
{
    const float t = place - floor(place), a = -0.75f;
    if (TAPS == 1) {
        return 1.0f;
    }
    if (TAPS == 2) {
        return i == 0 ? 1 - t : t;
    }
    const float x = i == 0 ? t + 1 : (i == 1 ? t : (i == 2 ? 1 - t : 2 - t));
    return i == 1 || i == 2 ? ((a + 2) * x - (a + 3)) * x * x + 1
                            : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

kernel void grid_sample(global const float *x, const uint x_at, global const float *grid,
                        const uint grid_at, global float *y, const uint y_at, const int count,
                        const int places, const int in_h, const int in_w, const int channels)
{
    const int c = (int)get_global_id(0) * 4, n = channels - c;
    const int i = (int)get_global_id(1); // over all images
    if (c >= channels || i >= count) {
        return;
    }
    global const float *at = grid + grid_at + i * 2;
    global const float *image = x + x_at + i / places * in_h * in_w * channels + c;
    const float place_x = place_of(at[0], in_w), place_y = place_of(at[1], in_h);
    float4 v = (float4)(0.0f);
    for (int k = 0; k < TAPS; k++) {
        const int row = pixel_of(first_of(place_y) + k, in_h);
        for (int m = 0; m < TAPS; m++) {
            const int column = pixel_of(first_of(place_x) + m, in_w);
            if (row >= 0 && column >= 0) {
                const float weight = weight_of(place_y, k) * weight_of(place_x, m);
                v += weight * load4_float(image + (row * in_w + column) * channels, n);
            }
        }
    }
    store4_float(v, y + y_at + i * channels + c, n);
}
