// Indices as rows of which one element differs: [outer][inner] becomes [outer][depth][inner].
// INDEX: type of the indices. Other elements are not looked into (ELEMENT: an integer type of their
// size). Work item: one element of the result.

kernel void one_hot(global const INDEX *x, const uint x_at, global const ELEMENT *on,
                    const uint on_at, global const ELEMENT *off, const uint off_at,
                    global ELEMENT *y, const uint y_at, const int count, const int depth,
                    const int inner)
{
    const int i = (int)get_global_id(0);
    if (i >= count) {
        return;
    }
    const INDEX index = x[x_at + i / inner / depth * inner + i % inner];
    y[y_at + i] = index == (INDEX)(i / inner % depth) ? on[on_at] : off[off_at];
}
