/** Private to the reader of configs: field readers (fields.h) of manifest_tensor.c for the table in
 *  manifest.c. at is the struct ifd_model_desc. */
#ifndef INFERD_SERVER_REPO_MANIFEST_IMPL_H
#define INFERD_SERVER_REPO_MANIFEST_IMPL_H

#include "server/repo/fields.h"

enum ifd_code ifd_manifest_read_input(struct ifd_fields *c, const struct ifd_text_field *f,
                                      void *at);
enum ifd_code ifd_manifest_read_output(struct ifd_fields *c, const struct ifd_text_field *f,
                                       void *at);
enum ifd_code ifd_manifest_read_sequences(struct ifd_fields *c, const struct ifd_text_field *f,
                                          void *at);
enum ifd_code ifd_manifest_read_warm_up(struct ifd_fields *c, const struct ifd_text_field *f,
                                        void *at);

#endif
