/* What GCC's headers and libstdc++ take from the C library of the machine that compiles, and glibc 2.28 has
 * not. Linked into each program and library of the wheel (see sysroot), and seen by nothing else. */
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

/* glibc 2.32. Zero: there may be other threads, so nothing is done without atomic instructions. */
char __libc_single_threaded = 0;

/* glibc 2.30; what std::condition_variable waits with for a time of the steady clock. An older glibc waits by
 * the real-time clock: for a second at most, so that one who sets that clock does not matter for longer. To
 * return 0 early is allowed: whoever waits looks again. */
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

/* glibc 2.34. Whoever calls it can do without. */
int close_range(unsigned first, unsigned last, int flags) {
  return (int)syscall(SYS_close_range, first, last, flags);
}

/* glibc 2.32. */
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
