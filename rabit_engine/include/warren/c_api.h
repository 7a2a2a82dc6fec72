/* Collectives for C, and for languages that call C: communicators, every collective, messages.
 * warren/collectives.h has the same for C++, warren.collectives for Python. docs/explanation/collectives.md
 * begins with what most people need.
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
 * Every function returns 0, or -1 when there was an error, which WarrenGetLastError has. What was refused for
 * its arguments, on all ranks, ends nothing. After an error in a call with other ranks the communicator is
 * of no further use: each further call on it returns an error, and so do those of its other ranks. A process
 * that dies ends every communicator it is in, and the ranks that wait for it in any communicator of the job
 * are told which rank it was.
 *
 * All ranks of a communicator make the same calls on it in the same order, with the same counts, types,
 * operations and roots where nothing else is said; ranks that do not are told. (Types of what is only moved
 * are not compared, but their bytes are; and an average is a sum.) `count` is in elements of `type`; 0 is
 * allowed, and then pointers may be NULL. Pointers need not be aligned. Where a function has a `send` and a
 * `recv` buffer, they do not overlap, or are in place as the function says.
 *
 * Sums and products are computed in one order that the ranks alone fix: all ranks get the same bits, whatever
 * the sizes, hosts and algorithms. Sums and products of 16-bit floats are those of float32, rounded once.
 *
 * Threads: one at a time in each communicator; several communicators may be used at once. A call in a
 * communicator in which another thread is, is refused.
 *
 * rabit's API (rabit/rabit.h, rabit/c_api.h) is the same engine: it may be used beside this one, and its
 * communicator is the world. Single workers are taken back after a loss by rabit's API alone: once a program
 * has called its LoadCheckPoint, the world refuses gather, scatter, all-to-all, messages and the making of
 * communicators. */
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
  WARREN_UINT8 = 1, /* also for bytes */
  WARREN_INT32 = 2,
  WARREN_UINT32 = 3,
  WARREN_INT64 = 4,
  WARREN_UINT64 = 5,
  WARREN_FLOAT32 = 6,
  WARREN_FLOAT64 = 7,
  WARREN_FLOAT16 = 10, /* IEEE 754 binary16 */
  WARREN_BFLOAT16 = 11 /* the upper half of a float32 */
};

/* Operations. The bitwise ones are for integers, the average for floating point. */
enum WarrenOp {
  WARREN_MAX = 0,
  WARREN_MIN = 1,
  WARREN_SUM = 2,
  WARREN_BITOR = 3,
  WARREN_PROD = 4,
  WARREN_BITAND = 5,
  WARREN_BITXOR = 6,
  WARREN_AVG = 7 /* the sum divided by the number of ranks, and rounded after that */
};

/* An operation of the caller's on elements of a size of its own. left[i] = left[i] op right[i] for i in
 * [0, count), where left holds the lower ranks; associative, commutative or not. Returns 0; anything else
 * ends the call with an error, which every rank gets in this call or, where it has a result, in the next.
 * Called from the thread that carries out the collective, with pieces of any length, whose pointers need not
 * be aligned: elements are copied out and in where that matters. */
typedef struct WarrenCustomOp {
  int (*function)(const void* right, void* left, size_t count, void* context);
  void* context;
  size_t element_bytes;
  /* Called once with the context when no call needs it any more, in whatever thread, or by a call that is
   * refused. NULL: it stays the caller's. */
  void (*release)(void* context);
} WarrenCustomOp;

/* A communicator, owned by who was given it, until WarrenCommFree. */
typedef struct WarrenComm_* WarrenComm;

/* Joins the job; argv has `key=value` arguments, others are left alone, and may be NULL when argc is 0.
 * Without a tracker the job is that of the launcher (mpirun, srun); a process that nobody launched is a world
 * of one. A thread that has joined already, by rabit's API too, stays where it is. */
WARREN_DLL int WarrenInit(int argc, char** argv);
/* Leaves the job, when all ranks do. Communicators may be freed afterwards, too. */
WARREN_DLL int WarrenFinalize(void);
/* What went wrong in this thread's last call that returned -1. Valid until its next call. */
WARREN_DLL const char* WarrenGetLastError(void);

/* --- communicators --- */

/* That of all ranks of the job. */
WARREN_DLL int WarrenCommWorld(WarrenComm* out);
/* Those of the ranks that give the same color, ordered by key and, where keys are equal, by rank. *out is
 * NULL for a negative color. All ranks of `comm` call it. */
WARREN_DLL int WarrenCommSplit(WarrenComm comm, int color, int key, WarrenComm* out);
/* That of these ranks of `comm`, in this order. All ranks of `comm` call it with the same list; *out is NULL
 * on those that are not in it. */
WARREN_DLL int WarrenCommCreate(WarrenComm comm, const int* ranks, size_t count, WarrenComm* out);
/* That of the ranks on this host (where WARREN_HOST_GROUP can make several hosts of one). All ranks of `comm`
 * call it, as the next. */
WARREN_DLL int WarrenCommLocal(WarrenComm comm, WarrenComm* out);
/* That of the ranks which have the same place on their hosts: one of each host that has so many. */
WARREN_DLL int WarrenCommCross(WarrenComm comm, WarrenComm* out);
/* Leaves it, by oneself: no other rank need do so, and may go on with what needs nothing of this one. NULL is
 * allowed. The world is left by WarrenFinalize. */
WARREN_DLL int WarrenCommFree(WarrenComm comm);

/* For how many seconds each further call of this rank on it may wait for a rank that lives, where the call's
 * options say nothing, instead of rabit_timeout_sec; see WarrenCallOptions. */
WARREN_DLL int WarrenCommSetTimeout(WarrenComm comm, double seconds);
WARREN_DLL int WarrenCommRank(WarrenComm comm, int* rank);
WARREN_DLL int WarrenCommSize(WarrenComm comm, int* size);
/* What a rank of `comm` is in the world; messages of errors name ranks of the world. */
WARREN_DLL int WarrenCommRankInWorld(WarrenComm comm, int rank, int* rank_in_world);

/* --- ranks that find each other by what they share already --- */

/* How ranks tell each other small texts before they are linked: by a key-value store, or by a communicator of
 * another library. Begin with WARREN_RENDEZVOUS. */
typedef struct WarrenRendezvous {
  size_t struct_bytes; /* sizeof(WarrenRendezvous) */
  int rank;            /* this one's, from 0 */
  int size;
  /* Gives all ranks' records, of up to some KiB each, to all ranks: calls give(records, record, bytes) once
   * for each rank, in their order. All ranks call it equally often, a few times, from within the function
   * that was given this. Returns 0; anything else ends that function with an error, with the text that
   * `error` has, for which there is room for error_bytes with a null character at the end. */
  int (*allgather)(const void* record, size_t bytes,
                   void (*give)(void* records, const void* record, size_t bytes), void* records, char* error,
                   size_t error_bytes, void* context);
  void* context;
} WarrenRendezvous;
#define WARREN_RENDEZVOUS \
  { sizeof(WarrenRendezvous), 0, 1, NULL, NULL }

/* That of ranks that meet so: neither WarrenInit nor a tracker is needed. A world of its own, which each rank
 * leaves by itself, with WarrenCommFree. The environment's settings hold (docs/reference/options.md), but for
 * those of how ranks meet; the engine is the native one. */
WARREN_DLL int WarrenCommMeet(const WarrenRendezvous* rendezvous, WarrenComm* out);
/* That of these ranks of `comm`, in this order, which they make among themselves: no other rank calls it.
 * They meet by `rendezvous`, whose ranks are their places in the list. `name`: for messages, another one for
 * each communicator of the job. */
WARREN_DLL int WarrenCommGroup(WarrenComm comm, const int* ranks, size_t count, const char* name,
                               const WarrenRendezvous* rendezvous, WarrenComm* out);

/* --- collectives --- */

/* recv[i] of all ranks becomes the reduction of send[i] over all ranks. In place: recv == send. */
WARREN_DLL int WarrenAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op);
WARREN_DLL int WarrenAllreduceCustom(WarrenComm comm, const void* send, void* recv, size_t count,
                                     const WarrenCustomOp* op);
/* The same at the root alone; recv of others is not used. In place at the root: recv == send. */
WARREN_DLL int WarrenReduce(WarrenComm comm, const void* send, void* recv, size_t count, int type, int op,
                            int root);
WARREN_DLL int WarrenReduceCustom(WarrenComm comm, const void* send, void* recv, size_t count,
                                  const WarrenCustomOp* op, int root);
/* Every rank gets its slice of the reduction: `count` elements of count * size. In place: recv is where this
 * rank's slice begins in send, the rest of which is left undefined. */
WARREN_DLL int WarrenReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                   int op);
/* Slices of counts[r] elements for rank r, the same counts on all ranks. */
WARREN_DLL int WarrenReduceScatterV(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                    int type, int op);
WARREN_DLL int WarrenReduceScatterVCustom(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                          const WarrenCustomOp* op);
/* Every rank's buffer becomes the root's. */
WARREN_DLL int WarrenBroadcast(WarrenComm comm, void* buffer, size_t count, int type, int root);
/* recv of all ranks becomes all ranks' `send`, by rank: count * size elements. In place: send is where this
 * rank's slice begins in recv. */
WARREN_DLL int WarrenAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type);
/* counts[r] elements of rank r, the same counts on all ranks. */
WARREN_DLL int WarrenAllgatherV(WarrenComm comm, const void* send, void* recv, const size_t* counts,
                                int type);
/* The same at the root alone; recv of others is not used. In place at the root: send is where its slice
 * begins in recv. */
WARREN_DLL int WarrenGather(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root);
/* This rank brings `count` elements; the root alone needs recv and the counts of all ranks. */
WARREN_DLL int WarrenGatherV(WarrenComm comm, const void* send, size_t count, void* recv,
                             const size_t* counts, int type, int root);
/* Every rank gets its slice of the root's `send`: count elements of count * size. send of others is not used.
 * In place at the root: recv is where its slice begins in send. */
WARREN_DLL int WarrenScatter(WarrenComm comm, const void* send, void* recv, size_t count, int type, int root);
/* This rank gets `count` elements; the root alone needs send and the counts of all ranks. */
WARREN_DLL int WarrenScatterV(WarrenComm comm, const void* send, const size_t* counts, void* recv,
                              size_t count, int type, int root);
/* Slice r of send, `count` elements, goes to rank r, which puts it where slice s of its recv is, when s is
 * the sender. Not in place. */
WARREN_DLL int WarrenAllToAll(WarrenComm comm, const void* send, void* recv, size_t count, int type);
/* send_counts[r] elements for rank r, recv_counts[r] of it: what both say of their slice must agree. Slices
 * lie one after the other. */
WARREN_DLL int WarrenAllToAllV(WarrenComm comm, const void* send, const size_t* send_counts, void* recv,
                               const size_t* recv_counts, int type);
/* Returns when all ranks have called it. */
WARREN_DLL int WarrenBarrier(WarrenComm comm);

/* --- messages between two ranks --- */

/* Each message has one receive of as many bytes, in the order in which they were sent; two ranks make the
 * calls that concern both, collectives included, in the same order. Send returns when the buffer may be used
 * again, which for a long message is not before the other receives it: two ranks that send to each other
 * first wait for ever; SendRecv does both at once. */
WARREN_DLL int WarrenSend(WarrenComm comm, const void* buffer, size_t count, int type, int to);
WARREN_DLL int WarrenRecv(WarrenComm comm, void* buffer, size_t count, int type, int from);
WARREN_DLL int WarrenSendRecv(WarrenComm comm, const void* send, size_t send_count, int to, void* recv,
                              size_t recv_count, int from, int type);

/* --- without waiting --- */

/* An operation that was begun, owned by who was given it, until WarrenWait or WarrenHandleFree. */
typedef struct WarrenHandle_* WarrenHandle;

/* How one of these operations is carried out. Begin with WARREN_CALL_OPTIONS; NULL is the same. */
typedef struct WarrenCallOptions {
  size_t struct_bytes; /* sizeof(WarrenCallOptions) */
  /* What a timeline (WARREN_TIMELINE) calls it, and errors besides; copied. NULL or "": the function's name
   * alone. */
  const char* name;
  /* For how many seconds it may wait for a rank that lives, from when it begins to be carried out, instead of
   * rabit_timeout_sec; fractions are allowed. Then it ends with an error that names a late rank, and the
   * communicator is of no further use. 0: what rabit_timeout says. Negative, NaN, or over MPI, which has no
   * timeouts: the call is refused. */
  double timeout_seconds;
} WarrenCallOptions;
#define WARREN_CALL_OPTIONS \
  { sizeof(WarrenCallOptions), NULL, 0 }

/* The same calls, which return at once. Those of one communicator, and the calls above, are carried out one
 * after the other in the order in which they were made, which is the same on all ranks; those of different
 * communicators in any order, at the same time. By a thread of this library, or in WarrenWait by the thread
 * that waits. Buffers belong to the operation until it has ended, and a custom function may be called from
 * another thread; counts are copied. Arguments that make no sense are refused at once, and then there is no
 * handle. A communicator that is freed meanwhile lives until its operations have ended. `options` may be
 * NULL. */
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

/* Returns when the operation has ended: 0, or -1 and its error. Frees the handle. NULL is allowed. */
WARREN_DLL int WarrenWait(WarrenHandle handle);
/* All of these; the first error. */
WARREN_DLL int WarrenWaitAll(const WarrenHandle* handles, size_t count);
/* Whether it has ended, well or not; *done is 1 or 0. */
WARREN_DLL int WarrenTest(WarrenHandle handle, int* done);
/* Calls the function once the operation has ended, with its error or NULL, from any thread, or at once. It
 * must not wait for operations. At most one function a handle, which may be freed or waited for afterwards.
 */
WARREN_DLL int WarrenWhenDone(WarrenHandle handle, void (*function)(const char* error, void* context),
                              void* context);
/* Gives the handle up; the operation is carried out all the same. NULL is allowed. */
WARREN_DLL int WarrenHandleFree(WarrenHandle handle);

/* --- messages with tags --- */

/* For messages in any order, as many at once as wanted, from any thread, beside the calls of the communicator
 * and in no order with them: they are told apart by their tags, and those from one rank to another with one
 * tag keep their order. A thread of this library carries them over links of their own. All ranks of `comm`
 * call it; freed by WarrenMailboxFree, before or after the communicator. */
typedef struct WarrenMailbox_* WarrenMailbox;
enum { WARREN_ANY_RANK = -1 };
WARREN_DLL int WarrenMailboxCreate(WarrenComm comm, WarrenMailbox* out);
/* What is under way ends with an error. NULL is allowed. */
WARREN_DLL int WarrenMailboxFree(WarrenMailbox mailbox);
/* To another rank. The handle ends when the buffer may be used again, which for a long message is not before
 * the other receives it. */
WARREN_DLL int WarrenMailboxSend(WarrenMailbox mailbox, const void* buffer, size_t bytes, int to,
                                 long long tag, const WarrenCallOptions* options, WarrenHandle* handle);
/* From another rank, or WARREN_ANY_RANK; *source becomes the sender, where it is not NULL, before the handle
 * ends. A message of another length than `bytes` is an error of this receive alone. */
WARREN_DLL int WarrenMailboxRecv(WarrenMailbox mailbox, void* buffer, size_t bytes, int from, long long tag,
                                 int* source, const WarrenCallOptions* options, WarrenHandle* handle);

/* --- on the memory of GPUs --- */

/* Collectives on device memory, put on `stream`, a cudaStream_t (NULL: the default one), behind the work that
 * is there; they may still run when the call returns. docs/how-to/gpu.md says by which way they go, and
 * rabit/device.h more: this is the same for any communicator, with handles. `handle` may be NULL; else it
 * ends when what was put on the stream is done, and knows when another rank is lost. Operations: sum,
 * product, maximum, minimum, average. In place as WarrenAllreduce and so on; a broadcast's `send` and `recv`
 * may be equal. */
WARREN_DLL int WarrenDeviceAllreduce(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                     int op, void* stream, WarrenHandle* handle);
WARREN_DLL int WarrenDeviceReduceScatter(WarrenComm comm, const void* send, void* recv, size_t count,
                                         int type, int op, void* stream, WarrenHandle* handle);
WARREN_DLL int WarrenDeviceBroadcast(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                     int root, void* stream, WarrenHandle* handle);
WARREN_DLL int WarrenDeviceAllgather(WarrenComm comm, const void* send, void* recv, size_t count, int type,
                                     void* stream, WarrenHandle* handle);

/* --- by name, in any order --- */

/* Operations that each rank gives in an order of its own, from any thread, and that are told apart by their
 * names: as gradients of a network are, which become ready in another order on each rank. A thread of this
 * library finds out, in cycles that cost one small allreduce, what is ready on all ranks, packs small
 * allreduces into larger ones, and carries them out. Sums are those of the unpacked ones, bit for bit. */
typedef struct WarrenCoordinator_* WarrenCoordinator;

/* Those of rank 0 count. Negative: the default. Begin with WARREN_COORDINATOR_OPTIONS. */
typedef struct WarrenCoordinatorOptions {
  size_t struct_bytes;    /* sizeof(WarrenCoordinatorOptions) */
  long long fusion_bytes; /* packs up to so many; 0: none; default: WARREN_FUSION_THRESHOLD, or 2 MiB */
  int cycle_us;           /* names are collected for so long; default: WARREN_CYCLE_TIME_US, or 1000 */
  int autotune;           /* 1: both are found by trying; default: WARREN_AUTOTUNE, or 0 */
  /* After so long rank 0 says on stderr whom a name waits for; default: WARREN_STALL_SECONDS, or 60. */
  double stall_warning_seconds;
  /* After so long its operation ends with that as an error, and all of them when a rank does not take part at
   * all, as one that was stopped; 0: never; default: rabit_timeout_sec where rabit_timeout=1, else never. */
  double stall_error_seconds;
} WarrenCoordinatorOptions;
#define WARREN_COORDINATOR_OPTIONS \
  { sizeof(WarrenCoordinatorOptions), -1, -1, -1, -1, -1 }

/* Begin with WARREN_ENQUEUE_OPTIONS. */
typedef struct WarrenEnqueueOptions {
  size_t struct_bytes; /* sizeof(WarrenEnqueueOptions) */
  int priority;        /* of what is ready, larger ones run first; rank 0's counts */
  /* Operations of one group are carried out when all group_size of them are ready everywhere; an error of
   * one is an error of all, and then none is carried out. NULL: none. */
  const char* group;
  size_t group_size;
} WarrenEnqueueOptions;
#define WARREN_ENQUEUE_OPTIONS \
  { sizeof(WarrenEnqueueOptions), 0, NULL, 0 }

/* All ranks of `comm` call it. `options` may be NULL. It has a communicator of its own, and a thread. */
WARREN_DLL int WarrenCoordinatorCreate(WarrenComm comm, const WarrenCoordinatorOptions* options,
                                       WarrenCoordinator* out);
/* Ends it for all ranks: what is not ready on all of them by now ends with an error, there too. Wait for the
 * handles first. Waits for all ranks, and is told when one is lost meanwhile. WarrenFinalize does the same
 * for those that are left. Other threads may be in calls of it. */
WARREN_DLL int WarrenCoordinatorClose(WarrenCoordinator coordinator);
/* The same, and gives it back: no other thread is in a call of it. NULL is allowed. */
WARREN_DLL int WarrenCoordinatorFree(WarrenCoordinator coordinator);
/* This rank has no more: what it gave is carried out, and then it takes part in the allreduces and barriers
 * of the others with elements that change nothing (an average still divides by all ranks), until all ranks
 * have joined. Then it returns, *last_rank is the rank of the job that was last (NULL is allowed), and all
 * may go on. Other operations and custom functions end with an error meanwhile. */
WARREN_DLL int WarrenCoordinatorJoin(WarrenCoordinator coordinator, int* last_rank);

/* The calls of the same names, by name. Ranks that call different things by one name are told, and that ends
 * nothing else. A name may be given again when its operation has ended. `options` may be NULL. Buffers
 * belong to the operation until it has ended. */
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

/* Tells the tracker, over a connection that proves the job's token (DMLC_JOB_TOKEN), that a worker is about
 * to join from this process by XGBoost's own protocol or rabit's, in which nothing can be proved. That
 * worker's task id has to be TASK#TICKET: `task_id` (NULL: that of the environment), and `ticket`, 16 to 64
 * random letters and digits, which is good for one worker. `tracker_uri` NULL: the tracker of the
 * environment; else the one at tracker_port. Blocks until the tracker has answered. No session is needed;
 * thread safe. */
WARREN_DLL int WarrenVouch(const char* tracker_uri, int tracker_port, const char* task_id,
                           const char* ticket);

/* --- how far the program is --- */

/* For who watches the job that dmlc-submit has started. These work in any process of it, from any thread,
 * with or without WarrenInit, and return at once; elsewhere, and in a process that was forked from one that
 * has called them or joined the job, they do nothing. */

/* The program has ended this round, from 1, of so many (0: that is not known), with these metrics, such as
 * "train-rmse". What was told before is replaced. At most 64 metrics are shown. */
WARREN_DLL int WarrenReportProgress(long long round, long long of, const char* const* names,
                                    const double* values, size_t count);
/* So much of a data set has been read, in so many seconds; total_bytes is what this process is to read of it
 * (0: not known). `what` is its name; empty or NULL: no more is being read. */
WARREN_DLL int WarrenReportReading(const char* what, unsigned long long rows, unsigned long long bytes,
                                   unsigned long long total_bytes, double seconds);

#endif /* WARREN_C_API_H_ */
