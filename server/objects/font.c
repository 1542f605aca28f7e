/* The font's characters. */
#include "server/objects/font.h"

#include <stddef.h>
#include <string.h>

static const struct glyph {
    char character;
    const char *ink; /* rows of five, '#' is ink; what is missing at the end is empty */
} glyphs[] = {
#define G(character, rows) {character, rows},
#include "server/objects/font.inc"
#undef G
};

bool ifd_font_has_ink(char character, int x, int y)
{
    for (size_t i = 0; i < sizeof(glyphs) / sizeof(glyphs[0]); i++) {
        if (glyphs[i].character == character) {
            const size_t at = (size_t)(y * IFD_FONT_WIDTH + x);
            return at < strlen(glyphs[i].ink) && glyphs[i].ink[at] == '#';
        }
    }
    return y <= IFD_FONT_LINE &&
           (x == 0 || y == 0 || x == IFD_FONT_WIDTH - 1 || y == IFD_FONT_LINE);
}
