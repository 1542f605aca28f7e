/* Finds the note among the loaded segments. */
#include "engine/base/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

struct search {
    uintptr_t inside; /* an address in the wanted object */
    uint8_t *id;
    size_t size;
};

static bool holds(const struct dl_phdr_info *object, uintptr_t address)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            address - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

static size_t padded(size_t size)
{
    return (size + 3) / 4 * 4;
}

static void read_notes(const uint8_t *notes, size_t size, struct search *search)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes, sizeof(note));
        const size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
        if (name + content > size - sizeof(note)) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + sizeof(note), "GNU", 4) == 0) {
            search->size = note.n_descsz < IFD_BUILD_ID_BYTES ? note.n_descsz : IFD_BUILD_ID_BYTES;
            memcpy(search->id, notes + sizeof(note) + name, search->size);
            return;
        }
        notes += sizeof(note) + name + content;
        size -= sizeof(note) + name + content;
    }
}

static int visit(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    if (!holds(object, search->inside)) {
        return 0;
    }
    for (size_t i = 0; i < object->dlpi_phnum && search->size == 0; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE) {
            /* The loader maps notes for as long as this code. */
            read_notes((const uint8_t *)(object->dlpi_addr + segment->p_vaddr), segment->p_memsz,
                       search);
        }
    }
    return 1;
}

size_t ifd_build_id(uint8_t ret_id[IFD_BUILD_ID_BYTES])
{
    struct search search = {.inside = (uintptr_t)&ifd_build_id, .id = ret_id};
    memset(ret_id, 0, IFD_BUILD_ID_BYTES);
    (void)dl_iterate_phdr(visit, &search);
    return search.size;
}
