// What librabit and an MPI plugin agree on: a C table of functions over plain values. librabit knows no MPI;
// mpi_plugin.cc is compiled once per MPI installation (mpi.h differs between them) into
// librabit_mpi_<name>.so, and mpi_library.h loads the one that fits the process. No C++ object and no
// exception crosses this line.
//
// Every function returns nullptr when it succeeded, else a text that says what MPI said; the text lives until
// the next call of the thread. Groups may be used at once by several threads where MPI allows it
// (MPI_THREAD_MULTIPLE, which is asked for), each group by one. Collectives as in communicator.h, with counts
// that fit an int.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// A reduction in C. `combine` is set in any case; it is used when `native` is 0.
struct WarrenMpiReduction {
  int native;                 ///< 1: MPI's own operation for (type, operation) is what the engine means
  int type;                   ///< DataType of reduction.h
  int operation;              ///< Operation of reduction.h
  int commutative;            ///< 0: MPI must keep the order of the ranks
  std::size_t element_bytes;  ///< at most INT_MAX
  /// right[i] = left[i] op right[i]; must not throw.
  void (*combine)(const void* left, void* right, std::size_t count, void* context);
  void* context;
};

/// A communicator of the plugin: a duplicate of MPI_COMM_WORLD, or one split off.
struct WarrenMpiGroup;

/// A message to another rank, or from it.
struct WarrenMpiMessage {
  int peer;
  void* data;
  int bytes;
};

struct WarrenMpi {
  std::int32_t version;  ///< kWarrenMpiVersion of the plugin
  const char* name;      ///< of the MPI it was compiled for: "Open MPI 4.1.4"

  /// Initialises MPI when nobody has, and opens a communicator.
  const char* (*open)(WarrenMpiGroup** group, int* rank, int* world_size);
  /// Frees the communicator. The last one ends MPI when `open` initialised it and nobody has ended it since.
  const char* (*close)(WarrenMpiGroup* group);
  const char* (*host)(char* name, std::size_t capacity);

  const char* (*allreduce)(WarrenMpiGroup*, void* buffer, int count, const WarrenMpiReduction*);
  const char* (*reduce)(WarrenMpiGroup*, void* buffer, int count, const WarrenMpiReduction*, int root);
  /// The caller's part, counts[rank] elements, is left at the start of the buffer.
  const char* (*reduce_scatter)(WarrenMpiGroup*, void* buffer, const int* counts, const WarrenMpiReduction*);
  const char* (*broadcast)(WarrenMpiGroup*, void* buffer, int bytes, int root);
  const char* (*allgather)(WarrenMpiGroup*, void* buffer, const int* bytes, const int* offsets);
  const char* (*barrier)(WarrenMpiGroup*);
  /// All at once. Messages between two ranks keep their order; one that is not as long as was expected is an
  /// error.
  const char* (*exchange)(WarrenMpiGroup*, const WarrenMpiMessage* sends, int num_sends,
                          const WarrenMpiMessage* receives, int num_receives);
  /// The group of the ranks that give the same color, ordered by key; nullptr for a negative color.
  const char* (*split)(WarrenMpiGroup*, int color, int key, WarrenMpiGroup** made, int* rank, int* size);
};

}  // extern "C"

/// Changes with every change of the table.
inline constexpr std::int32_t kWarrenMpiVersion = 2;
/// The one symbol a plugin exports: `extern "C" const WarrenMpi* warren_mpi_plugin()`.
inline constexpr const char* kWarrenMpiSymbol = "warren_mpi_plugin";
using WarrenMpiEntry = const WarrenMpi* (*)();
