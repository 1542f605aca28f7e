/** Two readings of one file, with other numbers of samples: do they compute the same with each
 *  sample? */
#ifndef INFERD_ENGINE_MODEL_READINGS_H
#define INFERD_ENGINE_MODEL_READINGS_H

#include "engine/ir/graph.h"

/** A file may compute with the number of its samples or branch on it; both are settled when it is
 *  read. a, b: as the parser leaves them, before any pass. False where it is not certain. What the
 *  batch rules of ir/batch.h say of each graph is not repeated here: shapes may differ. */
bool ifd_readings_agree(const struct ifd_graph *a, const struct ifd_graph *b);

#endif
