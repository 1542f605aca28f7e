/** NumPy's .npy files ↔ tensors, for the command line. Little-endian, C order, versions 1 to 3 of
 *  the format. */
#ifndef INFERD_CLIENTS_C_NPY_H
#define INFERD_CLIENTS_C_NPY_H

#include "inferd_client.h"

enum { IFD_CLIENT_NPY_MAX_RANK = 32 }; /* NumPy's own limit */

/** A tensor and its shape. Do not copy it: tensor.shape points into it. */
struct ifd_client_npy {
    struct ifd_client_tensor tensor; /**< name stays NULL: the file has none */
    int64_t dims[IFD_CLIENT_NPY_MAX_RANK];
};

/** Reads a file's bytes as .npy into ret_npy. The tensor points into data, which must outlive it.
 *
 *  path: for the error text. Errors: INVALID (another format, Fortran order, a type that the
 *  protocol lacks). */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_npy_parse(const char *path, const void *data,
                                                               size_t data_bytes,
                                                               struct ifd_client_npy *ret_npy,
                                                               struct ifd_client_err *err);

/** Writes a tensor as .npy version 1. Errors: INVALID (the format lacks BYTES and BF16). */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_client_npy_write(
    const char *path, const struct ifd_client_tensor *tensor, struct ifd_client_err *err);

#endif
