/* A second instance for an instance whose device is lost. */
#include "engine/model/spare.h"

#include "engine/model/plans.h"

struct spare {
    struct ifd_spare base;
    struct ifd_model *model;
    struct ifd_instance_options options;
    struct ifd_instance *instance; /* NULL until it is needed */
};

static enum ifd_code get(struct ifd_spare *self, struct ifd_instance **ret, struct ifd_err *err)
{
    struct spare *spare = (struct spare *)self;
    const struct ifd_executable *executable = NULL;
    enum ifd_code code = IFD_OK;
    if (!spare->instance) {
        code = ifd_model_spare_plan(spare->model, &executable, err);
        if (code == IFD_OK) {
            code = ifd_model_make_instance(spare->model, &spare->options, &executable, 1, false,
                                           NULL, &spare->instance, err);
        }
    }
    if (code == IFD_OK) {
        *ret = spare->instance;
    }
    return code;
}

enum ifd_code ifd_spare_create(struct ifd_model *model, const struct ifd_instance_options *options,
                               struct ifd_spare **ret, struct ifd_err *err)
{
    struct spare *spare = ifd_acquire_zeroed(model->engine->alloc, 1, sizeof(*spare));
    if (!spare) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a spare instance");
    }
    *spare = (struct spare){.base = {.get = get}, .model = model, .options = *options};
    *ret = &spare->base;
    return IFD_OK;
}

void ifd_spare_destroy(struct ifd_spare *base)
{
    struct spare *spare = (struct spare *)base;
    if (spare) {
        ifd_model_drop_instance(spare->instance);
        ifd_release(spare->model->engine->alloc, spare, sizeof(*spare));
    }
}
