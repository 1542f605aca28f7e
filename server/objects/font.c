/* The font's characters. */
#include "server/objects/font.h"

#include <stddef.h>

static const struct glyph {
    char character;
    const char *ink; /* rows of five, '#' is ink */
} glyphs[] = {
#define G(character, rows) {character, rows},
#include "server/objects/font.inc"
#undef G
};

bool ifd_font_has_ink(char character, int x, int y)
{
    for (size_t i = 0; i < sizeof(glyphs) / sizeof(glyphs[0]); i++) {
        if (glyphs[i].character == character) {
            return glyphs[i].ink[y * IFD_FONT_WIDTH + x] == '#';
        }
    }
    return x == 0 || y == 0 || x == IFD_FONT_WIDTH - 1 || y == IFD_FONT_HEIGHT - 1;
}
