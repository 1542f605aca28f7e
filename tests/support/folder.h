/** A temporary folder for a test's files; one at a time. Names are below it. */
#ifndef INFERD_TESTS_SUPPORT_FOLDER_H
#define INFERD_TESTS_SUPPORT_FOLDER_H

void folder_begin(void);
/** Expects that nothing is left in it. */
void folder_end(void);

const char *folder_path(void);
/** Static buffers, eight at a time. */
const char *folder_at(const char *name);
/** A file with this content. */
void folder_put(const char *name, const char *text);

#endif
