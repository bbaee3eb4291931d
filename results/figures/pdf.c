#define _GNU_SOURCE /* memmem */
#include "results/figures/pdf.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The time stands in an object that is not compressed, close to the file's end, and has a fixed width: writing over it
 * moves nothing. */
int pc_pdf_clear_date(int descriptor) {
    static const char mark[] = "/CreationDate (D:", date[] = "19700101000000Z";
    enum { MARK = sizeof mark - 1, DATE = sizeof date - 1 };
    char tail[1 << 16];
    off_t end = lseek(descriptor, 0, SEEK_END);
    off_t start = end > (off_t)sizeof tail ? end - (off_t)sizeof tail : 0;
    ssize_t size = end < 0 ? -1 : pread(descriptor, tail, (size_t)(end - start), start);
    if (size < 0) return errno;
    const char *found = memmem(tail, (size_t)size, mark, MARK);
    if (!found || found + MARK + DATE > tail + size) return 0;
    return pwrite(descriptor, date, DATE, start + (found - tail) + MARK) == DATE ? 0 : errno;
}
