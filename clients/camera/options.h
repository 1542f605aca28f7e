/** The command line of inferd-camera. */
#ifndef INFERD_CLIENTS_CAMERA_OPTIONS_H
#define INFERD_CLIENTS_CAMERA_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define IFD_CAMERAS_MAX     256
#define IFD_CONNECTIONS_MAX 16

struct ifd_camera_options {
    const char *url, *token_file, *version, *prefix;
    const char *model, *path; /* of a folder, picture or device */
    unsigned cameras, connections, width, height;
    double rate, seconds; /* seconds 0: until a signal */
    long timeout_ms;
    bool prints_each;
};

/** Fills options. False: *ret_status is the program's; what there is to say was printed. */
bool ifd_camera_options(int argc, char **argv, struct ifd_camera_options *ret, int *ret_status);

#endif
