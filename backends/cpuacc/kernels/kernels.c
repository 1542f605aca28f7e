/* Selects the kernels that this CPU runs: walks the list of instruction sets, weakest first, and
 * each table of an allowed set replaces entries of weaker ones. Compiled with the baseline
 * flags. */
#include "backends/cpuacc/kernels/kernels.h"

#include <stddef.h>
#include "inferd/backend.h"

/* arch filters: rows of other architectures vanish */
#define KEEP(...) __VA_ARGS__
#define DROP(...)
#if defined(__x86_64__)
#define ON_X86 KEEP
#define ON_A64 DROP
#define ON_A32 DROP
#elif defined(__aarch64__)
#define ON_X86 DROP
#define ON_A64 KEEP
#define ON_A32 DROP
#elif defined(__arm__)
#define ON_X86 DROP
#define ON_A64 DROP
#define ON_A32 KEEP
#else
#define ON_X86 DROP
#define ON_A64 DROP
#define ON_A32 DROP
#endif
#define IFD_ISA_ANY(isa, flags, options) ISA(isa, flags)
#define IFD_ISA_X86(isa, flags, options) ON_X86(ISA(isa, flags))
#define IFD_ISA_A64(isa, flags, options) ON_A64(ISA(isa, flags))
#define IFD_ISA_A32(isa, flags, options) ON_A32(ISA(isa, flags))
#define IFD_TABLE_ANY(isa, family)       TABLE(isa, family)
#define IFD_TABLE_X86(isa, family)       ON_X86(TABLE(isa, family))
#define IFD_TABLE_A64(isa, family)       ON_A64(TABLE(isa, family))
#define IFD_TABLE_A32(isa, family)       ON_A32(TABLE(isa, family))
#define IFD_TEMPLATE_ANY(isa, family)    TABLE(isa, family)
#define IFD_TEMPLATE_X86(isa, family)    ON_X86(TABLE(isa, family))
#define IFD_TEMPLATE_A64(isa, family)    ON_A64(TABLE(isa, family))
#define IFD_TEMPLATE_A32(isa, family)    ON_A32(TABLE(isa, family))

#define ISA(isa, flags)
#define FAMILY(family)     __typeof__(((struct ifd_kernels *)0)->family)
#define TABLE(isa, family) extern const FAMILY(family) ifd_kern_##family##_##isa;
#include "backends/cpuacc/kernels/isa_list.inc"
#undef ISA
#undef TABLE

/* An instruction set (name not NULL), or a table of the last one above it. */
struct row {
    const char *name;
    uint32_t flags;
    size_t offset, bytes; /* of the family in struct ifd_kernels */
    const void *table;
};

#define ISA(isa, flags) {#isa, flags, 0, 0, NULL},
#define TABLE(isa, family)                                                                         \
    {NULL, 0, offsetof(struct ifd_kernels, family), sizeof(FAMILY(family)),                        \
     &ifd_kern_##family##_##isa},
static const struct row rows[] = {
#include "backends/cpuacc/kernels/isa_list.inc"
};
#undef ISA
#undef TABLE

typedef void (*slot_fn)(void);

/* A family is a struct of function pointers only, so a table is an array of slots. */
static void merge(const struct row *row, struct ifd_kernels *kernels)
{
    const slot_fn *from = row->table;
    slot_fn *to = (slot_fn *)(void *)((unsigned char *)kernels + row->offset);
    for (size_t i = 0; i < row->bytes / sizeof(slot_fn); i++) {
        if (from[i]) {
            to[i] = from[i];
        }
    }
}

void ifd_kernels_select(uint32_t cpu_flags, struct ifd_kernels *ret_kernels)
{
    *ret_kernels = (struct ifd_kernels){0};
    uint32_t needs = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].name) {
            needs = rows[i].flags;
        } else if ((cpu_flags & needs) == needs) {
            merge(&rows[i], ret_kernels);
        }
    }
}

int ifd_kernels_isa(size_t index, struct ifd_kernels_isa *ret_isa)
{
    size_t seen = 0;
    *ret_isa = (struct ifd_kernels_isa){0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].name) {
            if (seen++ == index) {
                ret_isa->name = rows[i].name;
                ret_isa->cpu_flags = rows[i].flags;
            }
        } else if (seen == index + 1) {
            merge(&rows[i], &ret_isa->kernels);
        }
    }
    return ret_isa->name != NULL;
}
