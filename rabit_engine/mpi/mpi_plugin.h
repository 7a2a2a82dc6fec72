// The interface between librabit and an MPI plugin: a C table of functions over plain values. librabit uses
// no MPI header; mpi_plugin.cc is compiled once per MPI installation (mpi.h differs between them) into
// librabit_mpi_<name>.so, and mpi_library.h loads the one that fits the process. No C++ object and no
// exception crosses this interface.
//
// Every function returns nullptr on success, else a text with MPI's error message, which is valid until the
// thread's next call. Several threads may use different groups concurrently if MPI allows it
// (MPI_THREAD_MULTIPLE, which is requested), but only one thread at a time may use a group. The collectives
// are those of communicator.h, with counts that fit an int.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// A reduction in C. `combine` is always set; it is used if `native` is 0.
struct WarrenMpiReduction {
  int native;                 ///< 1: MPI's own operation for this type and operation can be used
  int type;                   ///< DataType of reduction.h
  int operation;              ///< ReduceOp of reduction.h
  int commutative;            ///< 0: MPI must keep the order of the ranks
  std::size_t element_bytes;  ///< at most INT_MAX
  /// right[i] = left[i] op right[i]; must not throw.
  void (*combine)(const void* left, void* right, std::size_t count, void* context);
  void* context;
};

/// A communicator of the plugin: a duplicate of MPI_COMM_WORLD, or a communicator split off from another.
struct WarrenMpiGroup;

/// A message to or from another rank, or the caller's own.
struct WarrenMpiMessage {
  int peer;
  void* data;
  int bytes;
};

struct WarrenMpi {
  std::int32_t version;  ///< the kWarrenMpiVersion with which the plugin was built
  const char* name;      ///< the MPI for which the plugin was compiled, e.g. "Open MPI 4.1.4"

  /// Initializes MPI if necessary, and opens a communicator of all ranks.
  const char* (*open)(WarrenMpiGroup** group, int* rank, int* world_size);
  /// Frees the communicator. Closing the last communicator finalizes MPI if `open` initialized it and it has
  /// not been finalized since.
  const char* (*close)(WarrenMpiGroup* group);
  const char* (*host)(char* name, std::size_t capacity);

  const char* (*allreduce)(WarrenMpiGroup*, void* buffer, int count, const WarrenMpiReduction*);
  const char* (*reduce)(WarrenMpiGroup*, void* buffer, int count, const WarrenMpiReduction*, int root);
  /// The caller's part, counts[rank] elements, is left at the start of the buffer.
  const char* (*reduce_scatter)(WarrenMpiGroup*, void* buffer, const int* counts, const WarrenMpiReduction*);
  const char* (*broadcast)(WarrenMpiGroup*, void* buffer, int bytes, int root);
  const char* (*allgather)(WarrenMpiGroup*, void* buffer, const int* bytes, const int* offsets);
  const char* (*barrier)(WarrenMpiGroup*);
  /// Transfers all messages concurrently. Messages between two ranks keep their order; a message of
  /// unexpected length is an error.
  const char* (*exchange)(WarrenMpiGroup*, const WarrenMpiMessage* sends, int num_sends,
                          const WarrenMpiMessage* receives, int num_receives);
  /// Creates the group of the ranks that pass the same color, ordered by key, then by rank; sets `made` to
  /// nullptr for a negative color.
  const char* (*split)(WarrenMpiGroup*, int color, int key, WarrenMpiGroup** made, int* rank, int* size);
};

}  // extern "C"

/// The version of the table, to be incremented whenever it changes.
inline constexpr std::int32_t kWarrenMpiVersion = 2;
/// The only symbol a plugin exports: `extern "C" const WarrenMpi* warren_mpi_plugin()`.
inline constexpr const char* kWarrenMpiSymbol = "warren_mpi_plugin";
using WarrenMpiEntry = const WarrenMpi* (*)();
