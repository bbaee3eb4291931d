/* The streams of the C library as variables of this one: code made for executables (-fPIE) takes them to be in the same
 * file. The linker gives whoever says `stderr` this (--wrap); they are filled in before anything is called. */
#include <stdio.h>

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names. */
extern FILE *__real_stdin, *__real_stdout, *__real_stderr;
FILE *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;
/* NOLINTEND(bugprone-reserved-identifier) */

__attribute__((constructor)) static void fill_in(void) {
    __wrap_stdin = __real_stdin;
    __wrap_stdout = __real_stdout;
    __wrap_stderr = __real_stderr;
}
