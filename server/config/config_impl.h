/** config_list.inc as a table, for config.c (parser) and the files that print it. */
#ifndef INFERD_SERVER_CONFIG_CONFIG_IMPL_H
#define INFERD_SERVER_CONFIG_CONFIG_IMPL_H

#include "server/config/config.h"

enum ifd_setting_type {
    IFD_SETTING_U32,
    IFD_SETTING_U64,
    IFD_SETTING_BOOL,
    IFD_SETTING_TEXT,
    IFD_SETTING_LIST,
    IFD_SETTING_CHOICE
};

struct ifd_choice {
    const char *word; /* NULL behind the last */
    unsigned value;   /* of the setting's enum */
};

struct ifd_setting {
    const char *section, *flag, *unit, *text, *fallback;
    const struct ifd_choice *choices; /* of a CHOICE */
    enum ifd_setting_type type;
    enum ifd_applier applier; /* if is_live */
    size_t offset;            /* in struct ifd_config */
    uint64_t min, max;
    bool is_live;
};

extern const struct ifd_setting ifd_settings[];
extern const size_t ifd_setting_count;

#endif
