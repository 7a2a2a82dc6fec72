/* Symbols of the compiling machine's C library that Warren, GCC's headers or libstdc++ use, and that glibc
 * 2.28 lacks. Linked into each program and library of the wheel (see sysroot), and visible only there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

/* Since glibc 2.32. Zero means that there may be other threads, so atomic instructions are always used. */
char __libc_single_threaded = 0;

/* Since glibc 2.30. std::condition_variable uses it to wait until a time of the steady clock. With an older
 * glibc, this waits by the real-time clock, for at most a second at a time, so that a change of that clock has
 * an effect for at most a second. Returning 0 early is allowed, since the caller checks its condition again. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  typedef int (*Wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static _Atomic(Wait) found;
  static atomic_int looked;
  if (!atomic_load(&looked)) {
    atomic_store(&found, (Wait)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
    atomic_store(&looked, 1);
  }
  const Wait wait = atomic_load(&found);
  if (wait != NULL) return wait(condition, mutex, clock, until);

  const long long kSecond = 1000000000;
  struct timespec now;
  clock_gettime(clock, &now);
  long long left = (until->tv_sec - now.tv_sec) * kSecond + until->tv_nsec - now.tv_nsec;
  const int last = left <= kSecond;
  if (!last) left = kSecond;
  if (left < 0) left = 0;
  clock_gettime(CLOCK_REALTIME, &now);
  left += now.tv_nsec;
  const struct timespec end = {now.tv_sec + left / kSecond, left % kSecond};
  const int result = pthread_cond_timedwait(condition, mutex, &end);
  return last ? result : 0;
}

/* Since glibc 2.34. May fail, since the kernel may lack the system call; callers handle this. */
int close_range(unsigned first, unsigned last, int flags) {
  return (int)syscall(SYS_close_range, first, last, flags);
}

/* Since glibc 2.32. */
const char* sigabbrev_np(int number) {
#define NAME(name) [SIG##name] = #name
  static const char* const kNames[] = {
      NAME(HUP),  NAME(INT),    NAME(QUIT), NAME(ILL),   NAME(TRAP), NAME(ABRT), NAME(BUS),  NAME(FPE),
      NAME(KILL), NAME(USR1),   NAME(SEGV), NAME(USR2),  NAME(PIPE), NAME(ALRM), NAME(TERM), NAME(STKFLT),
      NAME(CHLD), NAME(CONT),   NAME(STOP), NAME(TSTP),  NAME(TTIN), NAME(TTOU), NAME(URG),  NAME(XCPU),
      NAME(XFSZ), NAME(VTALRM), NAME(PROF), NAME(WINCH), NAME(POLL), NAME(PWR),  NAME(SYS),
  };
  return number > 0 && number < (int)(sizeof kNames / sizeof *kNames) ? kNames[number] : NULL;
}

#pragma GCC visibility pop
