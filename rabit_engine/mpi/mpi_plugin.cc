// The MPI side of the MPI engine: implements mpi_plugin.h with the C bindings of the mpi.h that it is
// compiled with. It needs only two headers of the engine. To support another MPI, compile this file with that
// MPI's wrapper:
//   mpicxx -std=c++20 -O2 -shared -fPIC -I<source> mpi_plugin.cc -o librabit_mpi_mine.so
//   WARREN_MPI_LIBRARY=$PWD/librabit_mpi_mine.so
#include "rabit_engine/mpi/mpi_plugin.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "rabit_engine/reduce/reduction.h"

#define WARREN_TEXT_OF(token) #token
#define WARREN_TEXT(macro) WARREN_TEXT_OF(macro)
#if defined(OPEN_MPI)
#define WARREN_MPI_NAME                                                                            \
  "Open MPI " WARREN_TEXT(OMPI_MAJOR_VERSION) "." WARREN_TEXT(OMPI_MINOR_VERSION) "." WARREN_TEXT( \
      OMPI_RELEASE_VERSION)
#elif defined(MPICH_VERSION)
#define WARREN_MPI_NAME "MPICH " MPICH_VERSION
#else
#define WARREN_MPI_NAME "MPI " WARREN_TEXT(MPI_VERSION) "." WARREN_TEXT(MPI_SUBVERSION)
#endif

struct WarrenMpiGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Op commutative = MPI_OP_NULL;
  MPI_Op ordered = MPI_OP_NULL;
  MPI_Datatype element = MPI_DATATYPE_NULL;  ///< element type of the last user-defined reduction
  int element_bytes = 0;
};

namespace {

using warren::DataType;
using warren::ReduceOp;

thread_local char error_text[MPI_MAX_ERROR_STRING + 64];
/// Whether this plugin initialized MPI; if so, closing the last group finalizes MPI.
bool began_here = false;
std::atomic<int> open_groups = 0;
/// The reduction that Combine runs; a variable, because MPI passes no context to user functions.
/// Thread-local, since MPI calls Combine on the thread that runs the collective.
thread_local const WarrenMpiReduction* current = nullptr;

const char* Check(const char* call, int code) {
  if (code == MPI_SUCCESS) return nullptr;
  char said[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, said, &length);
  std::snprintf(error_text, sizeof error_text, "%s failed with code %d: %.*s", call, code, length, said);
  return error_text;
}

void Combine(void* left, void* right, int* count, MPI_Datatype*) {
  current->combine(left, right, static_cast<std::size_t>(*count), current->context);
}

MPI_Datatype NativeType(int type) {
  switch (static_cast<DataType>(type)) {
    case DataType::kChar:
      return std::is_signed_v<char> ? MPI_SIGNED_CHAR : MPI_UNSIGNED_CHAR;
    case DataType::kUChar:
      return MPI_UNSIGNED_CHAR;
    case DataType::kInt:
      return MPI_INT;
    case DataType::kUInt:
      return MPI_UNSIGNED;
    case DataType::kLong:
      return MPI_LONG;
    case DataType::kULong:
      return MPI_UNSIGNED_LONG;
    case DataType::kFloat:
      return MPI_FLOAT;
    case DataType::kDouble:
      return MPI_DOUBLE;
    case DataType::kLongLong:
      return MPI_LONG_LONG;
    case DataType::kULongLong:
      return MPI_UNSIGNED_LONG_LONG;
    case DataType::kFloat16:
    case DataType::kBFloat16:
      break;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op NativeOperation(int operation) {
  switch (static_cast<ReduceOp>(operation)) {
    case ReduceOp::kMax:
      return MPI_MAX;
    case ReduceOp::kMin:
      return MPI_MIN;
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kBitOr:
      return MPI_BOR;
    case ReduceOp::kProduct:
      return MPI_PROD;
    case ReduceOp::kBitAnd:
      return MPI_BAND;
    case ReduceOp::kBitXor:
      return MPI_BXOR;
  }
  return MPI_OP_NULL;
}

/// Makes group->element the type of an element of `bytes` bytes.
const char* UseElement(WarrenMpiGroup* group, int bytes) {
  if (group->element_bytes == bytes) return nullptr;
  if (group->element != MPI_DATATYPE_NULL) MPI_Type_free(&group->element);
  group->element_bytes = 0;
  if (const char* error =
          Check("MPI_Type_contiguous", MPI_Type_contiguous(bytes, MPI_BYTE, &group->element))) {
    return error;
  }
  if (const char* error = Check("MPI_Type_commit", MPI_Type_commit(&group->element))) return error;
  group->element_bytes = bytes;
  return nullptr;
}

/// Calls `collective(type, operation)` with the MPI type and operation of the reduction.
template <typename Function>
const char* WithReduction(WarrenMpiGroup* group, const WarrenMpiReduction* reduction, const char* name,
                          const Function& collective) {
  if (reduction->native != 0) {
    return Check(name, collective(NativeType(reduction->type), NativeOperation(reduction->operation)));
  }
  if (const char* error = UseElement(group, static_cast<int>(reduction->element_bytes))) return error;
  current = reduction;
  const int code =
      collective(group->element, reduction->commutative != 0 ? group->commutative : group->ordered);
  current = nullptr;
  return Check(name, code);
}

const char* BeginMpi() {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (finalised != 0) return "MPI has been finalized in this process, and MPI cannot start twice";
  if (initialised != 0) return nullptr;
  int provided = 0;
  if (const char* error =
          Check("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided))) {
    return error;
  }
  began_here = true;
  // By default, MPI ends the process on errors of types and operations, which belong to none of our
  // communicators.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return nullptr;
}

/// Creates the operations of a group whose communicator is set, and sets `rank` and `world_size`.
const char* Prepare(WarrenMpiGroup& group, int* rank, int* world_size) {
  MPI_Comm_set_errhandler(group.comm, MPI_ERRORS_RETURN);
  if (const char* error = Check("MPI_Op_create", MPI_Op_create(&Combine, 1, &group.commutative)))
    return error;
  if (const char* error = Check("MPI_Op_create", MPI_Op_create(&Combine, 0, &group.ordered))) return error;
  if (const char* error = Check("MPI_Comm_rank", MPI_Comm_rank(group.comm, rank))) return error;
  return Check("MPI_Comm_size", MPI_Comm_size(group.comm, world_size));
}

const char* Give(MPI_Comm comm, WarrenMpiGroup** group, int* rank, int* world_size) {
  auto* made = new WarrenMpiGroup;
  made->comm = comm;
  if (const char* error = Prepare(*made, rank, world_size)) {
    delete made;
    return error;
  }
  ++open_groups;
  *group = made;
  return nullptr;
}

const char* Open(WarrenMpiGroup** group, int* rank, int* world_size) {
  if (const char* error = BeginMpi()) return error;
  // The communicator is a duplicate, so that the program's own messages on MPI_COMM_WORLD never mix with
  // ours.
  MPI_Comm comm = MPI_COMM_NULL;
  if (const char* error = Check("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &comm))) return error;
  return Give(comm, group, rank, world_size);
}

const char* Split(WarrenMpiGroup* group, int color, int key, WarrenMpiGroup** made, int* rank, int* size) {
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_split(group->comm, color < 0 ? MPI_UNDEFINED : color, key, &comm);
  if (const char* error = Check("MPI_Comm_split", code)) return error;
  *made = nullptr;
  return comm == MPI_COMM_NULL ? nullptr : Give(comm, made, rank, size);
}

const char* Close(WarrenMpiGroup* group) {
  int finalised = 0;
  MPI_Finalized(&finalised);
  const char* error = nullptr;
  if (finalised == 0) {
    if (group->element != MPI_DATATYPE_NULL) MPI_Type_free(&group->element);
    MPI_Op_free(&group->commutative);
    MPI_Op_free(&group->ordered);
    error = Check("MPI_Comm_free", MPI_Comm_free(&group->comm));
  }
  delete group;
  const int left = --open_groups;
  if (error != nullptr || finalised != 0 || !began_here || left > 0) return error;
  return Check("MPI_Finalize", MPI_Finalize());
}

const char* Host(char* name, std::size_t capacity) {
  char host[MPI_MAX_PROCESSOR_NAME + 1] = "";
  int length = 0;
  if (const char* error = Check("MPI_Get_processor_name", MPI_Get_processor_name(host, &length)))
    return error;
  std::snprintf(name, capacity, "%.*s", length, host);
  return nullptr;
}

const char* Allreduce(WarrenMpiGroup* group, void* buffer, int count, const WarrenMpiReduction* reduction) {
  return WithReduction(group, reduction, "MPI_Allreduce", [&](MPI_Datatype type, MPI_Op operation) {
    return MPI_Allreduce(MPI_IN_PLACE, buffer, count, type, operation, group->comm);
  });
}

/// MPICH 4.0 and 4.1 crash in an in-place reduce of a long message to a root other than 0 (pmodels/mpich
/// issue 6540), and 4.0 in an in-place reduce-scatter of long slices of different lengths ("memory ranges
/// overlap").
#if defined(MPICH_VERSION)
constexpr bool kReduceInPlaceAtZeroOnly = true;
constexpr bool kReduceScatterInPlace = false;
#else
constexpr bool kReduceInPlaceAtZeroOnly = false;
constexpr bool kReduceScatterInPlace = true;
#endif

int ReduceAtRoot(WarrenMpiGroup* group, void* buffer, int count, MPI_Datatype type, MPI_Op operation,
                 int root, std::size_t bytes) {
  if (root == 0 || !kReduceInPlaceAtZeroOnly) {
    return MPI_Reduce(MPI_IN_PLACE, buffer, count, type, operation, root, group->comm);
  }
  void* own = std::malloc(bytes > 0 ? bytes : 1);
  if (own == nullptr) return MPI_ERR_NO_MEM;
  std::memcpy(own, buffer, bytes);
  const int code = MPI_Reduce(own, buffer, count, type, operation, root, group->comm);
  std::free(own);
  return code;
}

const char* Reduce(WarrenMpiGroup* group, void* buffer, int count, const WarrenMpiReduction* reduction,
                   int root) {
  const std::size_t bytes = static_cast<std::size_t>(count) * reduction->element_bytes;
  return WithReduction(group, reduction, "MPI_Reduce", [&](MPI_Datatype type, MPI_Op operation) {
    int rank = 0;
    MPI_Comm_rank(group->comm, &rank);
    return rank == root ? ReduceAtRoot(group, buffer, count, type, operation, root, bytes)
                        : MPI_Reduce(buffer, nullptr, count, type, operation, root, group->comm);
  });
}

const char* ReduceScatter(WarrenMpiGroup* group, void* buffer, const int* counts,
                          const WarrenMpiReduction* reduction) {
  return WithReduction(group, reduction, "MPI_Reduce_scatter", [&](MPI_Datatype type, MPI_Op operation) {
    if (kReduceScatterInPlace) {
      return MPI_Reduce_scatter(MPI_IN_PLACE, buffer, counts, type, operation, group->comm);
    }
    int rank = 0;
    MPI_Comm_rank(group->comm, &rank);
    const std::size_t bytes = static_cast<std::size_t>(counts[rank]) * reduction->element_bytes;
    void* own = std::malloc(bytes > 0 ? bytes : 1);
    if (own == nullptr) return MPI_ERR_NO_MEM;
    const int code = MPI_Reduce_scatter(buffer, own, counts, type, operation, group->comm);
    if (bytes > 0) std::memcpy(buffer, own, bytes);
    std::free(own);
    return code;
  });
}

const char* Broadcast(WarrenMpiGroup* group, void* buffer, int bytes, int root) {
  return Check("MPI_Bcast", MPI_Bcast(buffer, bytes, MPI_BYTE, root, group->comm));
}

const char* Allgather(WarrenMpiGroup* group, void* buffer, const int* bytes, const int* offsets) {
  return Check("MPI_Allgatherv", MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, bytes, offsets,
                                                MPI_BYTE, group->comm));
}

const char* Barrier(WarrenMpiGroup* group) {
  return Check("MPI_Barrier", MPI_Barrier(group->comm));
}

constexpr int kMessageTag = 1;

const char* Exchange(WarrenMpiGroup* group, const WarrenMpiMessage* sends, int num_sends,
                     const WarrenMpiMessage* receives, int num_receives) {
  std::vector<MPI_Request> requests(static_cast<std::size_t>(num_sends) + num_receives, MPI_REQUEST_NULL);
  std::vector<MPI_Status> statuses(requests.size());
  for (int i = 0; i < num_receives; ++i) {
    const WarrenMpiMessage& in = receives[i];
    const int code = MPI_Irecv(in.data, in.bytes, MPI_BYTE, in.peer, kMessageTag, group->comm, &requests[i]);
    if (const char* error = Check("MPI_Irecv", code)) return error;
  }
  for (int i = 0; i < num_sends; ++i) {
    const WarrenMpiMessage& out = sends[i];
    const int code = MPI_Isend(out.data, out.bytes, MPI_BYTE, out.peer, kMessageTag, group->comm,
                               &requests[num_receives + i]);
    if (const char* error = Check("MPI_Isend", code)) return error;
  }
  const int code = MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
  if (const char* error = Check("MPI_Waitall", code)) return error;
  for (int i = 0; i < num_receives; ++i) {
    int bytes = 0;
    MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
    if (bytes == receives[i].bytes) continue;
    std::snprintf(error_text, sizeof error_text,
                  "a message of %d bytes came from rank %d where %d were expected", bytes, receives[i].peer,
                  receives[i].bytes);
    return error_text;
  }
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const WarrenMpi* warren_mpi_plugin() {
  static const WarrenMpi table = {
      .version = kWarrenMpiVersion,
      .name = WARREN_MPI_NAME,
      .open = &Open,
      .close = &Close,
      .host = &Host,
      .allreduce = &Allreduce,
      .reduce = &Reduce,
      .reduce_scatter = &ReduceScatter,
      .broadcast = &Broadcast,
      .allgather = &Allgather,
      .barrier = &Barrier,
      .exchange = &Exchange,
      .split = &Split,
  };
  return &table;
}
