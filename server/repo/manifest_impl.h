/** Private to the reader of configs: field readers (fields.h) of manifest_tensor.c and
 *  manifest_sequence.c for the table in manifest.c. at is the struct ifd_model_desc unless said. */
#ifndef INFERD_SERVER_REPO_MANIFEST_IMPL_H
#define INFERD_SERVER_REPO_MANIFEST_IMPL_H

#include "server/repo/fields.h"

/** Most tensors, states or controls that a config may list. */
#define IFD_MANIFEST_TENSORS_MAX 1024

enum ifd_code ifd_manifest_read_input(struct ifd_fields *c, const struct ifd_text_field *f,
                                      void *at);
enum ifd_code ifd_manifest_read_output(struct ifd_fields *c, const struct ifd_text_field *f,
                                       void *at);
enum ifd_code ifd_manifest_read_sequences(struct ifd_fields *c, const struct ifd_text_field *f,
                                          void *at);
enum ifd_code ifd_manifest_read_warm_up(struct ifd_fields *c, const struct ifd_text_field *f,
                                        void *at);

/** at: a struct ifd_tensor_info. */
enum ifd_code ifd_manifest_read_dtype(struct ifd_fields *c, const struct ifd_text_field *f,
                                      void *at);
enum ifd_code ifd_manifest_read_dim(struct ifd_fields *c, const struct ifd_text_field *f, void *at);

#endif
