/* Collectives for C, and for languages that call C: communicators, all collectives, messages.
 * warren/collectives.h is the same for C++, warren.collectives for Python. docs/explanation/collectives.md
 * is the introduction.
 *
 *     WarrenComm world, host;
 *     WarrenInit(argc, argv);
 *     WarrenCommWorld(&world);
 *     WarrenAllreduce(world, x, x, n, WARREN_FLOAT32, WARREN_SUM);
 *     WarrenCommLocal(world, &host);
 *     WarrenBroadcast(host, x, n, WARREN_FLOAT32, 0);
 *     WarrenCommFree(host);
 *     WarrenCommFree(world);
 *     WarrenFinalize();
 *
 * Every function except WarrenGetLastError returns 0, or -1 on error; WarrenGetLastError returns the message.
 * A call that all ranks refuse because of its arguments leaves the communicator usable. After an error in a
 * call with other ranks the communicator is unusable: every further call on it, on any of its ranks, returns
 * an error. If a process dies, all its communicators become unusable; ranks that wait for it, in any
 * communicator of the job, get an error that names its rank.
 *
 * All ranks of a communicator make the same calls on it in the same order, with the same counts, types,
 * operations and roots unless stated otherwise; calls that differ end with an error. (For calls that only
 * move elements, sizes in bytes are compared, not types; an average counts as a sum.) `count` is in elements
 * of `type`; it may be 0, and then pointers may be NULL. Pointers need not be aligned. `send` and `recv`
 * buffers must not overlap, unless the call is made in place as described for each function.
 *
 * All ranks get the same bits of a sum or a product. With the native engine and WARREN_REPRODUCIBLE=1 (the
 * defaults), the order of computation depends only on the ranks, regardless of sizes, hosts and algorithms.
 * Sums, products and averages of 16-bit floats are computed in float32 and rounded once. (docs/how-to/gpu.md
 * has the rules for device memory.)
 *
 * Threads: only one thread at a time may use a communicator; different communicators may be used
 * concurrently. A call on a communicator that another thread is using may be refused.
 *
 * rabit's API (rabit/rabit.h, rabit/c_api.h) uses the same engine: it may be used together with this one, and
 * its communicator is the world. Only rabit's API lets single workers rejoin after a failure: in a job with a
 * tracker, once a program has called LoadCheckPoint, the world refuses gather, scatter, all-to-all, messages
 * and the creation of communicators. */
#ifndef WARREN_C_API_H_
#define WARREN_C_API_H_

#ifdef __cplusplus
#include <cstddef>
#define WARREN_EXTERN_C extern "C"
#else
#include <stddef.h>
#define WARREN_EXTERN_C
#endif

#if defined(__GNUC__)
#define WARREN_DLL WARREN_EXTERN_C __attribute__((visibility("default")))
#else
#define WARREN_DLL WARREN_EXTERN_C
#endif

/* Element types. */
enum WarrenType {
  WARREN_INT8 = 0,
  WARREN_UINT8 = 1, /* also for raw bytes */
  WARREN_INT32 = 2,
  WARREN_UINT32 = 3,
  WARREN_INT64 = 4,
  WARREN_UINT64 = 5,
  WARREN_FLOAT32 = 6,
  WARREN_FLOAT64 = 7,
  WARREN_FLOAT16 = 10, /* IEEE 754 binary16 */
  WARREN_BFLOAT16 = 11 /* the upper half of a float32 */
};

/* Operations. The bitwise operations are for integers only, the average is for floating point only. */
enum WarrenOp {
  WARREN_MAX = 0,
  WARREN_MIN = 1,
  WARREN_SUM = 2,
  WARREN_BITOR = 3,
  WARREN_PROD = 4,
  WARREN_BITAND = 5,
  WARREN_BITXOR = 6,
  WARREN_AVG = 7 /* the sum divided by the number of ranks */
};

/* A custom operation on elements of element_bytes bytes. `function` computes left[i] = left[i] op right[i]
 * for i in [0, count), where left comes from lower ranks than right; `op` must be associative, but need not
 * be commutative. `function` returns 0; any other value ends the call with an error: with the native engine
 * on every rank (on a rank that already has its result, in its next call), over MPI only on this rank.
 * `function` is called on the thread that carries out the collective, with pieces of any length. The pointers
 * may be unaligned: if that matters, copy the elements to aligned memory and back. */
typedef struct WarrenCustomOp {
  int (*function)(const void* right, void* left, size_t count, void* context);
  void* context;
  size_t element_bytes;
  /* Called once, with the context, when no call needs the context anymore or when the call is refused;
   * possibly on another thread. NULL: the caller keeps ownership. */
  void (*release)(void* context);
} WarrenCustomOp;

/* A communicator, owned by the caller until WarrenCommFree. */
typedef struct WarrenComm_* WarrenComm;

/* Joins the job. argv may contain `key=value` arguments; others are ignored. It may be NULL if argc is 0.
 * Without a tracker, the process joins the job of its launcher (mpirun, srun); without a launcher, it is a
 * job by itself. Blocks until all ranks have joined. Does nothing if the thread has already joined, through
 * this or rabit's API. A process started as a server or scheduler (DMLC_ROLE) has nothing to do and exits
 * with code 0. */
WARREN_DLL int WarrenInit(int argc, char** argv);
/* Leaves the job, which WarrenInit cannot join again; a collective call. Also returns -1 if an earlier error
 * had already ended the job for this rank. Communicators may still be freed afterwards. */
WARREN_DLL int WarrenFinalize(void);
/* The message of this thread's last call that returned -1. Valid until the thread's next call. */
WARREN_DLL const char* WarrenGetLastError(void);

/* --- communicators --- */

/* The communicator of all ranks of the job. */
WARREN_DLL int WarrenCommWorld(WarrenComm* out);
/* Makes one communicator per color, of the ranks that pass this color, ordered by key, then by rank. *out is
 * NULL for a negative color. A collective call on `comm`. */
WARREN_DLL int WarrenCommSplit(WarrenComm comm, int color, int key, WarrenComm* out);
/* Makes a communicator of these ranks of `comm`, in this order. A collective call on `comm`, with the same
 * list on all ranks; *out is NULL on ranks that are not in the list. */
WARREN_DLL int WarrenCommCreate(WarrenComm comm, const int* ranks, size_t count, WarrenComm* out);
/* Makes a communicator of the ranks on this host (with the native engine, WARREN_HOST_GROUP can split a host
 * into several). A collective call on `comm`. */
WARREN_DLL int WarrenCommLocal(WarrenComm comm, WarrenComm* out);
/* Makes a communicator of the ranks that have the same local rank: one rank on each host that has enough
 * ranks. A collective call on `comm`. */
WARREN_DLL int WarrenCommCross(WarrenComm comm, WarrenComm* out);
/* Leaves and frees the communicator. Other ranks need not leave it, and may continue with calls that do not
 * need this rank (over MPI, this call may wait for them to leave). NULL is allowed. Only WarrenFinalize
 * leaves the job's world. */
WARREN_DLL int WarrenCommFree(WarrenComm comm);

/* Sets the timeout of this rank's further calls on `comm`: how many seconds a call may wait for a rank that
 * is alive, unless the call's options set a timeout. Overrides rabit_timeout_sec; 0 restores the default. See
 * WarrenCallOptions. */
WARREN_DLL int WarrenCommSetTimeout(WarrenComm comm, double seconds);
WARREN_DLL int WarrenCommRank(WarrenComm comm, int* rank);
WARREN_DLL int WarrenCommSize(WarrenComm comm, int* size);
/* Translates a rank of `comm` to its rank in the world. Messages about lost and late ranks use ranks of the
 * world. */
WARREN_DLL int WarrenCommRankInWorld(WarrenComm comm, int rank, int* rank_in_world);

/* --- ranks that find each other by means they already share --- */

/* A way for ranks to exchange short records before they are linked, such as a key-value store or a
 * communicator of another library. Initialize it with WARREN_RENDEZVOUS. */
typedef struct WarrenRendezvous {
  size_t struct_bytes; /* sizeof(WarrenRendezvous) */
  int rank;            /* this process's rank, from 0 */
  int size;
  /* Gathers the records, up to a few KiB each, of all ranks on all ranks: calls give(records, record, bytes)
   * once for each rank, in rank order. It is called a few times, equally often on all ranks, from within the
   * function that received this struct. Returns 0; any other value ends that function with the error message
   * written to `error`, a buffer of error_bytes bytes including the terminating NUL. */
  int (*allgather)(const void* record, size_t bytes,
                   void (*give)(void* records, const void* record, size_t bytes), void* records, char* error,
                   size_t error_bytes, void* context);
  void* context;
} WarrenRendezvous;
#define WARREN_RENDEZVOUS \
  { sizeof(WarrenRendezvous), 0, 1, NULL, NULL }

/* Makes a communicator of the ranks that meet through `rendezvous`; needs neither WarrenInit nor a tracker.
 * It is a separate world, which each rank leaves independently with WarrenCommFree. The settings in the
 * environment apply (docs/reference/options.md), except those on how ranks meet and WARREN_ENGINE: the engine
 * is native. */
WARREN_DLL int WarrenCommMeet(const WarrenRendezvous* rendezvous, WarrenComm* out);
/* Makes a communicator of these ranks of `comm`, in this order; only these ranks call it. They meet through
 * `rendezvous`, whose ranks are the positions in the list. `name` is for messages and must be unique among
 * the job's communicators. Refused over MPI. */
WARREN_DLL int WarrenCommGroup(WarrenComm comm, const int* ranks, size_t count, const char* name,
                               const WarrenRendezvous* rendezvous, WarrenComm* out);

/* --- collectives --- */

/* On all ranks, recv[i] becomes the reduction of send[i] over all ranks. In place: recv == send. */
WARREN_DLL int WarrenAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op);
WARREN_DLL int WarrenAllreduceCustom(WarrenComm comm, const void* send, void* recv, size_t count,
                                     const WarrenCustomOp* op);
/* Like WarrenAllreduce, with the result at the root only; recv of other ranks is not used. In place at the
 * root: recv == send. */
WARREN_DLL int WarrenReduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                            int root);
WARREN_DLL int WarrenReduceCustom(WarrenComm comm, const void* send, void* recv, size_t count,
                                  const WarrenCustomOp* op, int root);
/* Each rank gets its slice, `count` elements, of the reduction of count * size elements. In place: recv
 * points to this rank's slice in send; the rest of send is then undefined. */
WARREN_DLL int WarrenReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                   int op);
/* Like WarrenReduceScatter, with a slice of counts[r] elements for rank r; all ranks give the same counts. */
WARREN_DLL int WarrenReduceScatterV(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                    int type, int op);
WARREN_DLL int WarrenReduceScatterVCustom(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                          const WarrenCustomOp* op);
/* Copies the root's buffer to all ranks. */
WARREN_DLL int WarrenBroadcast(WarrenComm comm, void* buffer, size_t count, int type, int root);
/* Concatenates the send buffers of all ranks, in rank order, in every rank's recv (count * size elements). In
 * place: send points to this rank's slice in recv. */
WARREN_DLL int WarrenAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type);
/* Like WarrenAllgather, with counts[r] elements from rank r; all ranks give the same counts. */
WARREN_DLL int WarrenAllgatherV(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                int type);
/* Like WarrenAllgather, with the result at the root only; recv of other ranks is not used. In place at the
 * root: send points to the root's slice in recv. */
WARREN_DLL int WarrenGather(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root);
/* Like WarrenGather. This rank contributes `count` elements; only the root needs recv and the counts of
 * all ranks. */
WARREN_DLL int WarrenGatherV(WarrenComm comm, const void* send, size_t count, void* recv,
                             const size_t* counts, int type, int root);
/* Each rank gets its slice, `count` elements, of the root's `send`, which has count * size elements. send of
 * other ranks is not used. In place at the root: recv points to the root's slice in send. */
WARREN_DLL int WarrenScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root);
/* Like WarrenScatter. This rank gets `count` elements; only the root needs send and the counts of all
 * ranks. */
WARREN_DLL int WarrenScatterV(WarrenComm comm, const void* send, const size_t* counts, void* recv,
                              size_t count, int type, int root);
/* Slice r of send, `count` elements, goes to rank r, which stores it in the slice of its recv that belongs to
 * the sender. Cannot be made in place. */
WARREN_DLL int WarrenAllToAll(WarrenComm comm, const void* send, void* recv, size_t count, int type);
/* Sends send_counts[r] elements to rank r and receives recv_counts[r] elements from rank r; sender and
 * receiver must agree. The slices are contiguous, in rank order. */
WARREN_DLL int WarrenAllToAllV(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                               const size_t* recv_counts, int type);
/* Returns when all ranks have called it. */
WARREN_DLL int WarrenBarrier(WarrenComm comm);

/* --- messages between two ranks --- */

/* Each message is received by one call of the same size, in the order of sending; two ranks make all calls
 * that involve both, collectives included, in the same order. Send returns when the buffer may be reused; for
 * a long message, this is only after the other rank has started to receive it. Two ranks that first send each
 * other a long message therefore deadlock; SendRecv sends and receives concurrently. */
WARREN_DLL int WarrenSend(WarrenComm comm, const void* buffer, size_t count, int type, int to);
WARREN_DLL int WarrenRecv(WarrenComm comm, void* buffer, size_t count, int type, int from);
WARREN_DLL int WarrenSendRecv(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                              size_t recv_count, int from, int type);

/* --- asynchronous calls --- */

/* An asynchronous operation, owned by the caller until WarrenWait or WarrenHandleFree. */
typedef struct WarrenHandle_* WarrenHandle;

/* Options of an asynchronous call. Initialize them with WARREN_CALL_OPTIONS; NULL means the defaults. */
typedef struct WarrenCallOptions {
  size_t struct_bytes; /* sizeof(WarrenCallOptions) */
  /* Shown in a timeline (WARREN_TIMELINE) and in errors; copied. NULL or "": only the function's name is
   * shown. The ranks do not compare names. */
  const char* name;
  /* How many seconds the operation may wait for a rank that is alive, counted from the start of its execution
   * (for messages with tags, from the call); may be fractional. After this time the operation ends with an
   * error that names a late rank, and the communicator (for messages with tags, the mailbox) is unusable. 0:
   * the timeout of WarrenCommSetTimeout (not for messages with tags) or, by default, rabit_timeout_sec if
   * rabit_timeout=1. The call is refused if the value is negative or NaN, or if it is not 0 over MPI, which
   * has no timeouts. */
  double timeout_seconds;
} WarrenCallOptions;
#define WARREN_CALL_OPTIONS \
  { sizeof(WarrenCallOptions), NULL, 0 }

/* The asynchronous forms of the calls above; they return immediately. The calls on one communicator,
 * synchronous ones included, run one after another in the order in which they were made, which must be the
 * same on all ranks: threads that make calls concurrently need a communicator each, or a coordinator. Calls
 * on different communicators may run concurrently, in any order. They run on a thread of this library, or on
 * a thread that waits for one of them, e.g. in WarrenWait. Buffers belong to the operation until the
 * operation has ended, and a custom function may be called on another thread; counts are copied. Invalid
 * arguments are refused immediately, without a handle. A communicator that is freed in the meantime lives
 * until its operations have ended. `options` may be NULL. */
WARREN_DLL int WarrenAllreduceAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                    int op, const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenAllreduceCustomAsync(WarrenComm comm, const void* send, void* recv, size_t count,
                                          const WarrenCustomOp* op, const WarrenCallOptions* options,
                                          WarrenHandle* handle);
WARREN_DLL int WarrenReduceAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                 int op, int root, const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenReduceCustomAsync(WarrenComm comm, const void* send, void* recv, size_t count,
                                       const WarrenCustomOp* op, int root, const WarrenCallOptions* options,
                                       WarrenHandle* handle);
WARREN_DLL int WarrenReduceScatterAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                        int op, const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenReduceScatterVAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                         int type, int op, const WarrenCallOptions* options,
                                         WarrenHandle* handle);
WARREN_DLL int WarrenReduceScatterVCustomAsync(WarrenComm comm, const void* send, void* recv,
                                               const size_t* counts, const WarrenCustomOp* op,
                                               const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenBroadcastAsync(WarrenComm comm, void* buffer, size_t count, int type, int root,
                                    const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenAllgatherAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                    const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenAllgatherVAsync(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                     int type, const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenGatherAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                 int root, const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenGatherVAsync(WarrenComm comm, const void* send, size_t count, void* recv,
                                  const size_t* counts, int type, int root, const WarrenCallOptions* options,
                                  WarrenHandle* handle);
WARREN_DLL int WarrenScatterAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                  int root, const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenScatterVAsync(WarrenComm comm, const void* send, const size_t* counts, void* recv,
                                   size_t count, int type, int root, const WarrenCallOptions* options,
                                   WarrenHandle* handle);
WARREN_DLL int WarrenAllToAllAsync(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                   const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenAllToAllVAsync(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                                    const size_t* recv_counts, int type, const WarrenCallOptions* options,
                                    WarrenHandle* handle);
WARREN_DLL int WarrenBarrierAsync(WarrenComm comm, const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenSendAsync(WarrenComm comm, const void* buffer, size_t count, int type, int to,
                               const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenRecvAsync(WarrenComm comm, void* buffer, size_t count, int type, int from,
                               const WarrenCallOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenSendRecvAsync(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                                   size_t recv_count, int from, int type, const WarrenCallOptions* options,
                                   WarrenHandle* handle);

/* Waits until the operation has ended; returns 0, or -1 with the operation's error. Frees the handle. NULL is
 * allowed. */
WARREN_DLL int WarrenWait(WarrenHandle handle);
/* Waits for all operations and frees the handles; returns 0, or -1 with the error of the first handle in the
 * array whose operation has failed. */
WARREN_DLL int WarrenWaitAll(const WarrenHandle* handles, size_t count);
/* Sets *done to 1 if the operation has ended, successfully or not, else to 0. */
WARREN_DLL int WarrenTest(WarrenHandle handle, int* done);
/* Calls the function once the operation has ended, with the operation's error or, if there was none, NULL: on
 * any thread, or immediately if the operation has already ended. The function must not wait for operations.
 * At most one function per handle; the handle may be freed or waited for afterwards. */
WARREN_DLL int WarrenWhenDone(WarrenHandle handle, void (*function)(const char* error, void* context),
                              void* context);
/* Frees the handle; the operation still runs to its end. NULL is allowed. */
WARREN_DLL int WarrenHandleFree(WarrenHandle handle);

/* --- tagged messages --- */

/* A mailbox carries any number of concurrent messages, in any order and from any thread, independent of the
 * calls on the communicator. Messages are distinguished by their tags; messages with the same sender,
 * receiver and tag keep their order. A thread of this library carries them over separate links. If an
 * operation times out, or the rank that it waits for is lost, all operations of the mailbox end with an
 * error. WarrenMailboxCreate is a collective call on `comm`; it is refused over MPI. The mailbox may be freed
 * before or after the communicator. */
typedef struct WarrenMailbox_* WarrenMailbox;
enum { WARREN_ANY_RANK = -1 };
WARREN_DLL int WarrenMailboxCreate(WarrenComm comm, WarrenMailbox* out);
/* Frees the mailbox; operations in progress end with an error. NULL is allowed. */
WARREN_DLL int WarrenMailboxFree(WarrenMailbox mailbox);
/* Sends to another rank. The operation ends when the buffer may be reused; for a long message, this is only
 * after the other rank has started to receive it. */
WARREN_DLL int WarrenMailboxSend(WarrenMailbox mailbox, const void* buffer, size_t bytes, int to,
                                 long long tag, const WarrenCallOptions* options, WarrenHandle* handle);
/* Receives from another rank, or WARREN_ANY_RANK. *source, unless NULL, is set to the sender before the
 * operation ends. If the message is not `bytes` long, only this receive fails. */
WARREN_DLL int WarrenMailboxRecv(WarrenMailbox mailbox, void* buffer, size_t bytes, int from, long long tag,
                                 int* source, const WarrenCallOptions* options, WarrenHandle* handle);

/* --- device memory --- */

/* Collectives on device memory, enqueued on `stream`, a cudaStream_t (NULL: the default stream); they may
 * still be running when the call returns. docs/how-to/gpu.md describes how the data travels; rabit/device.h
 * has more rules. Unlike the functions there, these work on any communicator and return handles. `handle` may
 * be NULL; otherwise its operation ends when the work on the stream is done, with an error if another rank is
 * lost. A call with a handle is refused in a group and while its stream is captured into a CUDA graph.
 * Operations: sum, product, maximum, minimum, average. In place as for WarrenAllreduce etc.; a broadcast's
 * `send` and `recv` may be equal. */
WARREN_DLL int WarrenDeviceAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                     int op, void* stream, WarrenHandle* handle);
WARREN_DLL int WarrenDeviceReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count,
                                         int type, int op, void* stream, WarrenHandle* handle);
WARREN_DLL int WarrenDeviceBroadcast(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                     int root, void* stream, WarrenHandle* handle);
WARREN_DLL int WarrenDeviceAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                     void* stream, WarrenHandle* handle);

/* --- named operations, in any order --- */

/* Runs operations that each rank may submit in a different order and from any thread, and that are matched by
 * name: for example the gradients of a network, which become ready in a different order on each rank. In
 * cycles, each of which costs at least one small allreduce, the coordinator finds the operations that are
 * ready on all ranks, packs small allreduces into larger ones, and runs them: on a thread of this library, or
 * on a thread that waits for an operation. With the native engine and WARREN_REPRODUCIBLE=1 (the defaults),
 * the results are the same, bit for bit, as without packing. */
typedef struct WarrenCoordinator_* WarrenCoordinator;

/* The values of rank 0 apply to all ranks unless stated otherwise; a negative value means the default.
 * Initialize them with WARREN_COORDINATOR_OPTIONS. */
typedef struct WarrenCoordinatorOptions {
  size_t struct_bytes; /* sizeof(WarrenCoordinatorOptions) */
  /* The largest packed allreduce, in bytes; 0: no packing; default: WARREN_FUSION_THRESHOLD, or 2 MiB. */
  long long fusion_bytes;
  int cycle_us; /* how long operations are collected; default: WARREN_CYCLE_TIME_US, or 1000 */
  int autotune; /* 1: tune both values above by trial; default: WARREN_AUTOTUNE, or 0 */
  /* After this time, rank 0 prints a warning to stderr that names the ranks for which an operation waits;
   * default, also for 0: WARREN_STALL_SECONDS, or 60. */
  double stall_warning_seconds;
  /* After this time an operation ends with an error that names the ranks for which it waits. If a rank does
   * not take part at all, e.g. because its process is stopped, all operations end with an error, at the
   * latest after the waiting rank's own value (not over MPI, which has no timeouts). 0: never; default:
   * rabit_timeout_sec if rabit_timeout=1, else never. */
  double stall_error_seconds;
} WarrenCoordinatorOptions;
#define WARREN_COORDINATOR_OPTIONS \
  { sizeof(WarrenCoordinatorOptions), -1, -1, -1, -1, -1 }

/* Options of a named operation. Initialize them with WARREN_ENQUEUE_OPTIONS. */
typedef struct WarrenEnqueueOptions {
  size_t struct_bytes; /* sizeof(WarrenEnqueueOptions) */
  int priority;        /* operations that are ready run by descending priority; rank 0's value applies */
  /* The operations of a group run when all group_size of them are ready on all ranks. If one of them has an
   * error, all of them end with this error and none is run. NULL: no group. */
  const char* group;
  size_t group_size;
} WarrenEnqueueOptions;
#define WARREN_ENQUEUE_OPTIONS \
  { sizeof(WarrenEnqueueOptions), 0, NULL, 0 }

/* Creates a coordinator, which has its own communicator and thread. A collective call on `comm`. `options`
 * may be NULL. */
WARREN_DLL int WarrenCoordinatorCreate(WarrenComm comm, const WarrenCoordinatorOptions* options,
                                       WarrenCoordinator* out);
/* Closes the coordinator for all ranks: operations that are not ready on all ranks by then end with an error
 * on all ranks, so wait for the handles first. Waits until all ranks have taken part in a last cycle, which
 * needs no call on their side; fails if a rank is lost in the meantime. WarrenFinalize closes the job's
 * coordinators that are still open, but not those of a world made by WarrenCommMeet. Other threads may be in
 * calls on the coordinator. */
WARREN_DLL int WarrenCoordinatorClose(WarrenCoordinator coordinator);
/* Closes and frees the coordinator; no other thread may be in a call on it. NULL is allowed. */
WARREN_DLL int WarrenCoordinatorFree(WarrenCoordinator coordinator);
/* Declares that this rank submits no more operations. Completes this rank's operations, then contributes
 * neutral elements to the other ranks' allreduces and barriers (an average still divides by the number of all
 * ranks) until all ranks have joined. Then the call returns with *last_rank (unless NULL) set to the rank of
 * the job that joined last, and all ranks may submit again. Until then, other kinds of operations and custom
 * functions end with an error. */
WARREN_DLL int WarrenCoordinatorJoin(WarrenCoordinator coordinator, int* last_rank);

/* Submit the corresponding calls by name. If ranks use the same name for different operations, these
 * operations end with an error, and no others are affected. A name may be used again once its operation has
 * ended. `options` may be NULL. Buffers belong to the operation until it has ended. */
WARREN_DLL int WarrenEnqueueAllreduce(WarrenCoordinator coordinator, const char* name, const void* send,
                                      void* recv, size_t count, int type, int op,
                                      const WarrenEnqueueOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenEnqueueAllreduceCustom(WarrenCoordinator coordinator, const char* name, const void* send,
                                            void* recv, size_t count, const WarrenCustomOp* op,
                                            const WarrenEnqueueOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenEnqueueReduceScatterV(WarrenCoordinator coordinator, const char* name, const void* send,
                                           void* recv, const size_t* counts, int type, int op,
                                           const WarrenEnqueueOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenEnqueueBroadcast(WarrenCoordinator coordinator, const char* name, void* buffer,
                                      size_t count, int type, int root, const WarrenEnqueueOptions* options,
                                      WarrenHandle* handle);
WARREN_DLL int WarrenEnqueueAllgatherV(WarrenCoordinator coordinator, const char* name, const void* send,
                                       void* recv, const size_t* counts, int type,
                                       const WarrenEnqueueOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenEnqueueAllToAllV(WarrenCoordinator coordinator, const char* name, const void* send,
                                      const size_t* send_counts, void* recv, const size_t* recv_counts,
                                      int type, const WarrenEnqueueOptions* options, WarrenHandle* handle);
WARREN_DLL int WarrenEnqueueBarrier(WarrenCoordinator coordinator, const char* name,
                                    const WarrenEnqueueOptions* options, WarrenHandle* handle);

/* --- other protocols --- */

/* Announces to the tracker, over a connection authenticated with the job's token (DMLC_JOB_TOKEN), that a
 * worker of this process is about to join by XGBoost's or rabit's protocol, neither of which can prove the
 * token. The worker's task id must be TASK#TICKET: TASK is `task_id` (NULL: the environment's), and TICKET is
 * `ticket`, 16 to 64 random letters and digits, valid for one worker. If `tracker_uri` is NULL, the tracker
 * is the environment's; otherwise it is at tracker_uri:tracker_port. Blocks until the tracker has answered.
 * Works without WarrenInit. Thread-safe. */
WARREN_DLL int WarrenVouch(const char* tracker_uri, int tracker_port, const char* task_id,
                           const char* ticket);

/* --- memberships of elastic jobs --- */

/* In a job whose workers may come and go (dmlc-submit --num-workers MIN:MAX), a process keeps a membership: a
 * connection to the tracker named in its environment. The tracker forms generations, each a set of workers
 * that train together. A member of generation G joins it with the task id TASK@G, by XGBoost's or rabit's
 * protocol. Works without WarrenInit. Only one thread at a time may use a membership. */
typedef struct WarrenMembershipState* WarrenMembership;

/* The messages from a worker to the tracker. */
#define WARREN_MEMBER_COMES 1  /* the worker is in no generation (anymore) and waits for the next one */
#define WARREN_MEMBER_DONE 2   /* the work of the job is done */
#define WARREN_MEMBER_LEAVES 3 /* the worker was asked to end, and has left its generation */
#define WARREN_MEMBER_STAYS 4  /* the worker is still in its generation; only for WarrenMembershipBegin */
/* The messages from the tracker to a worker. */
#define WARREN_GENERATION_FORMED 1 /* the worker is a member of this generation */
#define WARREN_GENERATION_BROKEN 2 /* a member was lost: leave the generation and rejoin (COMES) */
#define WARREN_GENERATION_CHANGE 3 /* a worker is waiting: all members leave together and rejoin (COMES) */
#define WARREN_GENERATION_OVER 4   /* the work of the job is done */
#define WARREN_GENERATION_FAILED 5 /* the job, or this worker's place in it, is lost */

/* Connects to the tracker and sends WARREN_MEMBER_COMES. Does not wait for a generation. */
WARREN_DLL int WarrenMembershipOpen(WarrenMembership* membership);
/* The same in two steps, also for a worker whose membership has ended because the tracker died and another
 * tracker has taken over the job. Connect connects; Begin sends the worker's state: WARREN_MEMBER_COMES if it
 * waits for a generation, WARREN_MEMBER_STAYS if it is a member of `generation`, WARREN_MEMBER_DONE if it has
 * already reported in `generation` that the work is done. */
WARREN_DLL int WarrenMembershipConnect(WarrenMembership* membership);
WARREN_DLL int WarrenMembershipBegin(WarrenMembership membership, int word, int generation);
/* Sends WARREN_MEMBER_COMES, WARREN_MEMBER_DONE or WARREN_MEMBER_LEAVES. */
WARREN_DLL int WarrenMembershipTell(WarrenMembership membership, int word);
/* Waits up to `seconds` (finite, at most 10^6) for the tracker's next message. *word is
 * WARREN_GENERATION_..., or 0 if no message has arrived. *generation counts from 1, and *size is the number
 * of its members. `story`, unless NULL, receives the reason for WARREN_GENERATION_BROKEN or _FAILED,
 * truncated to story_bytes including the NUL; otherwise an empty string. */
WARREN_DLL int WarrenMembershipHear(WarrenMembership membership, double seconds, int* word, int* generation,
                                    int* size, char* story, size_t story_bytes);
/* The membership's socket, for poll: when it is readable, a message may have arrived. Several messages may
 * arrive at once, so call WarrenMembershipHear until *word is 0 before polling again. */
WARREN_DLL int WarrenMembershipDescriptor(WarrenMembership membership, int* descriptor);
/* Ends the membership; NULL is allowed. The tracker considers a member lost if it has sent neither
 * WARREN_MEMBER_DONE nor WARREN_MEMBER_LEAVES. */
WARREN_DLL int WarrenMembershipClose(WarrenMembership membership);

/* --- progress reports --- */

/* Reports for people who watch a job started by dmlc-submit. These functions work in any worker process of
 * the job, on any thread, with or without WarrenInit, and return immediately. They do nothing outside such a
 * job, or in a process forked from a process that has called them or joined the job. */

/* Reports that the program has finished `round`, counted from 1, out of `of` rounds (0: unknown), with these
 * metrics, e.g. "train-rmse". Replaces the previous report. At most 64 metrics are shown. */
WARREN_DLL int WarrenReportProgress(long long round, long long of, const char* const* names,
                                    const double* values, size_t count);
/* Reports that this process has read `rows` rows and `bytes` bytes of a data set in `seconds` seconds, and
 * that it will have read total_bytes at the end (0: unknown). `what` is the data set's name; NULL or empty
 * means that reading has ended. */
WARREN_DLL int WarrenReportReading(const char* what, unsigned long long rows, unsigned long long bytes,
                                   unsigned long long total_bytes, double seconds);

#endif /* WARREN_C_API_H_ */
