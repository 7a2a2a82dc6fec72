/* Debian's libbz2.a is compiled for programs: in a shared library it cannot be linked with the C library's
 * streams, so it is linked with these (see sysroot). */
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
