/** What variables.c and states.c share. */
#ifndef INFERD_ENGINE_PARSE_TFLITE_VARIABLES_H
#define INFERD_ENGINE_PARSE_TFLITE_VARIABLES_H

#include "engine/parse/tflite/tflite_build.h"

struct ifd_tflite_variable {
    const char *container, *name; /* of a handle */
    /** Of a variable tensor: its subgraph; NULL: a handle names the variable. */
    const struct ifd_tflite_subgraph *subgraph;
    uint32_t tensor;
    bool is_assigned;       /* an operator outside of CALL_ONCE may write it */
    bool is_state;          /* sequences keep it; `like` describes it */
    uint32_t now;           /* value at this point of the graph; IFD_NONE: nothing has asked yet */
    uint32_t before;        /* now, in front of the present operator of the model's subgraph */
    uint32_t initial;       /* constant that CALL_ONCE left; IFD_NONE */
    uint32_t given;         /* input of the graph; IFD_NONE, also behind a cut */
    struct ifd_bytes begin; /* content of given when a sequence begins */
    struct ifd_desc like;
};

/** A variable gets the value that it begins with: zeros or content of the file, what CALL_ONCE
 *  left, or an input of the graph. */
IFD_NODISCARD enum ifd_code ifd_tflite_begin_tensor(struct ifd_tflite_build *b,
                                                    struct ifd_tflite_variable *variable);
IFD_NODISCARD enum ifd_code ifd_tflite_begin_named(struct ifd_tflite_build *b,
                                                   struct ifd_tflite_variable *variable);

#endif
