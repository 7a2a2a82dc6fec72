/* rabit for C, and for languages that call C. See rabit.h for what each call does.
 *
 * Errors: if RabitInit or RabitFinalize fails, it prints a line to standard error and returns false or 0.
 * (RabitFinalize also returns 0, and prints nothing, if an earlier error had already ended the job.) Every
 * other call that fails prints "rank R: RabitAllreduce: ..." to standard error and ends the process with exit
 * code 255. Int results that exist only for compatibility with XGBoost's copy of rabit are always 0.
 *
 * The RabitTry functions do the same work, but on an error they neither end the process nor print anything:
 * they return -1, and RabitGetLastError returns the message. On success they return 0. After an error in a
 * call with other ranks, this rank is out of the job: every further call that needs other ranks fails, and
 * only RabitTryFinalize remains to be called (it also returns -1). A call that is refused because of its
 * arguments changes nothing. After Finalize, successful or not, RabitTryInit may be called again.
 *
 * Queries such as RabitGetRank, and RabitTrackerPrint, may be called at any time; everything else only
 * between RabitInit and RabitFinalize. Threads: as in rabit.h.
 *
 * libxgboost.so exports these names, too. In a program that links both, put librabit first. */
#ifndef RABIT_C_API_H_
#define RABIT_C_API_H_

#ifdef __cplusplus
#include <cstddef>
#include <cstdio>
#define RABIT_EXTERN_C extern "C"
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#define RABIT_EXTERN_C
#endif

#if defined(__GNUC__)
#define RABIT_DLL RABIT_EXTERN_C __attribute__((visibility("default")))
#else
#define RABIT_DLL RABIT_EXTERN_C
#endif

typedef unsigned long rbt_ulong; /* NOLINT(runtime/int) */

/* Element types, for the arguments named enum_dtype. */
enum RabitDataType {
  RABIT_CHAR = 0,
  RABIT_UCHAR = 1,
  RABIT_INT = 2,
  RABIT_UINT = 3,
  RABIT_LONG = 4,
  RABIT_ULONG = 5,
  RABIT_FLOAT = 6,
  RABIT_DOUBLE = 7,
  RABIT_LONGLONG = 8,
  RABIT_ULONGLONG = 9,
  RABIT_FLOAT16 = 10, /* IEEE 754 binary16; the compiler's _Float16, if it has one */
  RABIT_BFLOAT16 = 11 /* the upper half of a float */
};

/* Joins the job. argv may contain `key=value` arguments; others are ignored. It may be NULL if argc is 0. */
RABIT_DLL bool RabitInit(int argc, char* argv[]);

/* Leaves the job. Returns 1, or 0 if leaving failed or an earlier error had already ended the job. */
RABIT_DLL int RabitFinalize(void);

RABIT_DLL int RabitGetRingPrevRank(void);
RABIT_DLL int RabitGetRank(void);
RABIT_DLL int RabitGetWorldSize(void);
RABIT_DLL int RabitIsDistributed(void);

/* Prints the text in the tracker's output, or on standard output if there is no tracker. */
RABIT_DLL int RabitTrackerPrint(const char* msg);

/* Writes the host's name to out_name, truncated to max_len bytes including the terminating NUL, and the
 * number of bytes written, without the NUL, to *out_len. */
RABIT_DLL void RabitGetProcessorName(char* out_name, rbt_ulong* out_len, rbt_ulong max_len);

/* Copies `size` bytes from rank `root` to all ranks. */
RABIT_DLL int RabitBroadcast(void* sendrecv_data, rbt_ulong size, int root);

/* Collects one slice from each rank, see rabit::Allgather. In elements: total_size is the size of the whole
 * buffer, beginIndex the start of this rank's slice, and size_node_slice the slice's size (or its end, if all
 * ranks pass the end). size_prev_slice is not used. (rabit's own version of this function multiplied by the
 * element size twice and gathered nothing useful.) */
RABIT_DLL int RabitAllgather(void* sendrecvbuf, size_t total_size, size_t beginIndex, size_t size_node_slice,
                             size_t size_prev_slice, int enum_dtype);

/* Replaces each of `count` elements with the reduction of that element over all ranks.
 * enum_dtype: one of RabitDataType. 16-bit floats are summed as floats, and the sum is rounded once, to
 *             nearest even.
 * enum_op:    0 max, 1 min, 2 sum, 3 bitwise or (integers only)
 *
 * prepare_fun, unless NULL, is called with prepare_arg to fill the buffer; see rabit::Allreduce. If it cannot
 * fill the buffer, it calls RabitTryGiveUp, and this call fails. */
RABIT_DLL int RabitAllreduce(void* sendrecvbuf, size_t count, int enum_dtype, int enum_op,
                             void (*prepare_fun)(void* arg), void* prepare_arg);

/* Loads the newest checkpoint and returns its version. If there is no checkpoint, returns 0 and sets the
 * models to NULL and their lengths to 0. The memory belongs to the library and stays unchanged until the
 * thread next calls this function or RabitTryLoadCheckPoint. Pass NULL for both out_local_model and
 * out_local_len if there is no local model. */
RABIT_DLL int RabitLoadCheckPoint(char** out_global_model, rbt_ulong* out_global_len, char** out_local_model,
                                  rbt_ulong* out_local_len);

/* Ends a version: keeps a copy of both models. local_model is NULL if there is no local model, which must be
 * so in all calls or in none; see rabit::LoadCheckPoint. */
RABIT_DLL void RabitCheckPoint(const char* global_model, rbt_ulong global_len, const char* local_model,
                               rbt_ulong local_len);

/* The same calls for programs that continue after an error, such as notebooks, servers and programs in other
 * languages. They return 0 or -1. */
RABIT_DLL int RabitTryInit(int argc, char* argv[]);
RABIT_DLL int RabitTryFinalize(void);
RABIT_DLL int RabitTryTrackerPrint(const char* msg);
RABIT_DLL int RabitTryBroadcast(void* sendrecv_data, rbt_ulong size, int root);
RABIT_DLL int RabitTryAllgather(void* sendrecvbuf, size_t total_size, size_t beginIndex,
                                size_t size_node_slice, int enum_dtype);
RABIT_DLL int RabitTryAllreduce(void* sendrecvbuf, size_t count, int enum_dtype, int enum_op,
                                void (*prepare_fun)(void* arg), void* prepare_arg);
/* Ends the job for this rank, like an error in a collective: informs the other ranks; all further calls that
 * need them fail with `reason`. Has no effect during a collective, except in its prepare function. */
RABIT_DLL int RabitTryGiveUp(const char* reason);
/* Collects one slice from each rank into a buffer for all slices, in rank order. Rank r's slice has counts[r]
 * elements; all ranks pass the same counts. This rank's slice must already be in its place. Types as in
 * RabitAllreduce. */
RABIT_DLL int RabitTryAllgatherV(void* sendrecvbuf, const size_t* counts, int enum_dtype);
/* Reduces over all ranks a buffer with the slices that RabitTryAllgatherV describes. Afterwards this rank's
 * slice holds its part of the result, and the rest of the buffer is undefined. Types and operations as in
 * RabitAllreduce. */
RABIT_DLL int RabitTryReduceScatter(void* sendrecvbuf, const size_t* counts, int enum_dtype, int enum_op);
/* Writes the version to *out_version; 0 if there is no checkpoint. */
RABIT_DLL int RabitTryLoadCheckPoint(int* out_version, char** out_global_model, rbt_ulong* out_global_len,
                                     char** out_local_model, rbt_ulong* out_local_len);
RABIT_DLL int RabitTryCheckPoint(const char* global_model, rbt_ulong global_len, const char* local_model,
                                 rbt_ulong local_len);

/* The message of this thread's last call that returned -1, including calls of rabit/device.h and
 * warren/c_api.h; empty if there was none. The text belongs to the library and stays unchanged until the
 * thread's next error. */
RABIT_DLL const char* RabitGetLastError(void);

/* The current version: the number of checkpoints so far. */
RABIT_DLL int RabitVersionNumber(void);

/* Returns 0. Programs whose linker drops unreferenced libraries can refer to this function. */
RABIT_DLL int RabitLinkTag(void);

#endif /* RABIT_C_API_H_ */
