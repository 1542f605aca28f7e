/** What the code of regular expressions consists of: regex_code.c makes it, regex.c runs it. */
#ifndef INFERD_ENGINE_BASE_REGEX_IMPL_H
#define INFERD_ENGINE_BASE_REGEX_IMPL_H

#include "engine/base/regex.h"

enum { RANGES, EITHER, JUMP, AT_BEGIN, AT_END, AT_WORD, NOT_AT_WORD, FOUND };
/* a, b of RANGES: the first one, how many; to: is it about what is in none of them? EITHER: the
 * next step, and that at to. */

#endif
