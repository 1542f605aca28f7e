/** A small font, so that a drawing needs no font file. Thread: any. */
#ifndef INFERD_SERVER_OBJECTS_FONT_H
#define INFERD_SERVER_OBJECTS_FONT_H

#include <stdbool.h>

#define IFD_FONT_WIDTH  5
#define IFD_FONT_HEIGHT 9
#define IFD_FONT_LINE   6 /* the last row of letters without a tail */

/** Whether a character has ink in column x of row y. Characters that the font lacks are frames. */
bool ifd_font_has_ink(char character, int x, int y);

#endif
