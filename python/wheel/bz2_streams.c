/* Debian's libbz2.a is compiled for programs: in a shared library, its references to the C library's stdin,
 * stdout and stderr cannot be linked, so sysroot redirects them to these variables. */
#include <stdio.h>

#pragma GCC visibility push(hidden)
FILE* warren_bz2_stdin;
FILE* warren_bz2_stdout;
FILE* warren_bz2_stderr;
#pragma GCC visibility pop

__attribute__((constructor)) static void Copy(void) {
  warren_bz2_stdin = stdin;
  warren_bz2_stdout = stdout;
  warren_bz2_stderr = stderr;
}
