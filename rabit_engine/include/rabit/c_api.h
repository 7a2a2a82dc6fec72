/* rabit for C, and for languages that call C. See rabit.h for what each call does.
 *
 * Errors: RabitInit and RabitFinalize print a line to the standard error and return false or 0. Every other
 * call prints "rank R: RabitAllreduce: ..." to the standard error and ends the process with exit code 255.
 * The int results that are only there for programs written for XGBoost's copy of rabit are always 0.
 *
 * The functions whose names begin with RabitTry do the same, end no process and print nothing: they return 0,
 * or -1 when there was an error, which RabitGetLastError has. After an error in a call with other ranks this
 * rank is out of the job: every further one returns the same error, and RabitTryFinalize is what is left (it
 * returns -1, too). A call that was refused for its arguments ends nothing. After Finalize, whether or not it
 * succeeded, RabitTryInit may join again.
 *
 * RabitGetRank and the other questions may be asked at any time; everything else belongs between RabitInit
 * and RabitFinalize. Threads: as in rabit.h.
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

/* Element types: what enum_dtype takes. */
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
  RABIT_FLOAT16 = 10, /* IEEE 754 binary16: _Float16 where the compiler has it */
  RABIT_BFLOAT16 = 11 /* the upper half of a float */
};

/* Joins the job; argv has `key=value` arguments, others are left alone, and may be NULL when argc is 0. */
RABIT_DLL bool RabitInit(int argc, char* argv[]);

/* Leaves the job: 1, or 0 when that failed or an earlier error had ended the job. */
RABIT_DLL int RabitFinalize(void);

RABIT_DLL int RabitGetRingPrevRank(void);
RABIT_DLL int RabitGetRank(void);
RABIT_DLL int RabitGetWorldSize(void);
RABIT_DLL int RabitIsDistributed(void);

/* Shows the text to the user who watches the job. */
RABIT_DLL int RabitTrackerPrint(const char* msg);

/* Writes the host's name and a NUL into out_name, cut to max_len bytes with the NUL; *out_len is its length
 * without. */
RABIT_DLL void RabitGetProcessorName(char* out_name, rbt_ulong* out_len, rbt_ulong max_len);

/* Makes `size` bytes the same in all ranks: those of rank `root`. */
RABIT_DLL int RabitBroadcast(void* sendrecv_data, rbt_ulong size, int root);

/* Collects one slice from each rank, see rabit::Allgather. In elements of the type: the whole buffer, where
 * this rank's slice begins, its size (or its end, if all ranks give that), and a number that is not used.
 * (rabit's own version of this function multiplied by the element size twice and gathered nothing useful.) */
RABIT_DLL int RabitAllgather(void* sendrecvbuf, size_t total_size, size_t beginIndex, size_t size_node_slice,
                             size_t size_prev_slice, int enum_dtype);

/* Replaces each of `count` elements by the reduction of that element over all ranks.
 * enum_dtype: one of RabitDataType. 16-bit floats are summed up as floats, and the sum is rounded once, to
 *             nearest even.
 * enum_op:    0 max, 1 min, 2 sum, 3 bitwise or (integers only)
 *
 * prepare_fun, unless NULL, is called with prepare_arg to fill the buffer; see rabit::Allreduce. */
RABIT_DLL int RabitAllreduce(void* sendrecvbuf, size_t count, int enum_dtype, int enum_op,
                             void (*prepare_fun)(void* arg), void* prepare_arg);

/* Loads the newest checkpoint and returns its version; 0: there is none, and the results are NULL and 0.
 * The memory belongs to the library and stays as it is until the next call of this function in the same
 * thread. out_local_model and out_local_len are both NULL when there is no local model. */
RABIT_DLL int RabitLoadCheckPoint(char** out_global_model, rbt_ulong* out_global_len, char** out_local_model,
                                  rbt_ulong* out_local_len);

/* Ends a version: keeps a copy of both models. local_model is NULL when there is none. */
RABIT_DLL void RabitCheckPoint(const char* global_model, rbt_ulong global_len, const char* local_model,
                               rbt_ulong local_len);

/* The same calls for callers that go on after an error: notebooks, servers, other languages. 0 or -1. */
RABIT_DLL int RabitTryInit(int argc, char* argv[]);
RABIT_DLL int RabitTryFinalize(void);
RABIT_DLL int RabitTryTrackerPrint(const char* msg);
RABIT_DLL int RabitTryBroadcast(void* sendrecv_data, rbt_ulong size, int root);
RABIT_DLL int RabitTryAllgather(void* sendrecvbuf, size_t total_size, size_t beginIndex,
                                size_t size_node_slice, int enum_dtype);
RABIT_DLL int RabitTryAllreduce(void* sendrecvbuf, size_t count, int enum_dtype, int enum_op,
                                void (*prepare_fun)(void* arg), void* prepare_arg);
/* Collects one slice from each rank into a buffer of all, in rank order: rank r's has counts[r] elements,
 * with one count for each rank, the same on all ranks. This rank's slice is in its place beforehand. Types as
 * in RabitAllreduce. */
RABIT_DLL int RabitTryAllgatherV(void* sendrecvbuf, const size_t* counts, int enum_dtype);
/* Reduces a buffer of such slices over all ranks: afterwards this rank's slice holds the result, and the rest
 * of the buffer is undefined. Types and operations as in RabitAllreduce. */
RABIT_DLL int RabitTryReduceScatter(void* sendrecvbuf, const size_t* counts, int enum_dtype, int enum_op);
/* The version, 0 when there is none, is written to *out_version. */
RABIT_DLL int RabitTryLoadCheckPoint(int* out_version, char** out_global_model, rbt_ulong* out_global_len,
                                     char** out_local_model, rbt_ulong* out_local_len);
RABIT_DLL int RabitTryCheckPoint(const char* global_model, rbt_ulong global_len, const char* local_model,
                                 rbt_ulong local_len);

/* What was wrong with the last RabitTry call of this thread that returned -1. The text is the library's and
 * stays as it is until the next such error. Empty when there was none. */
RABIT_DLL const char* RabitGetLastError(void);

/* How many versions have been ended. */
RABIT_DLL int RabitVersionNumber(void);

/* Returns 0. Something to refer to, for linkers that drop libraries nobody refers to. */
RABIT_DLL int RabitLinkTag(void);

#endif /* RABIT_C_API_H_ */
