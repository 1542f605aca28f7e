/* Any bytes as EXIF data: an orientation from 1 to 8. */
#include "server/media/exif.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned orientation = ifd_exif_orientation((struct ifd_bytes){data, size});
    MUST(orientation >= 1 && orientation <= 8);
    return 0;
}
