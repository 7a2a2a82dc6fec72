// The interface between librabit and its CUDA part: C tables of functions over plain values. librabit does
// not use CUDA; cuda/ becomes librabit_cuda.so, which device_library.h loads when a program first uses a
// device. No C++ object and no exception crosses this interface.
//
// The functions of WarrenDevices that can fail return nullptr on success, else an error text that is valid
// until the thread's next call. An empty text means that a function of WarrenDeviceHost has failed; librabit
// has kept its error. Not thread-safe unless stated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rabit_engine/device/operation.h"

extern "C" {

/// The functions of librabit that its CUDA part calls. All ranks call the collectives in the same order. Each
/// function returns 0, or 1 on failure; the caller then gives up.
struct WarrenDeviceHost {
  void* context;
  std::int32_t rank;
  std::int32_t world_size;
  std::int32_t debug;
  std::int32_t tls;  ///< whether traffic between hosts must be encrypted
  /// Whether the job survives the loss of ranks, so that nothing on the device may wait for another rank's
  /// process. May change between calls.
  std::int32_t recovers;
  /// `buffer` has a slice of `bytes` for each rank.
  std::int32_t (*allgather)(void* context, void* buffer, std::size_t bytes);
  std::int32_t (*broadcast)(void* context, void* buffer, std::size_t bytes, std::int32_t root);
  /// Reduces host memory, with the codes of device::Type and device::ReduceOp.
  std::int32_t (*allreduce)(void* context, void* buffer, std::size_t count, std::int32_t type,
                            std::int32_t operation);
  /// Fails if a rank is known to be gone or the call has taken too long. Does not wait.
  std::int32_t (*check)(void* context);
};

/// This rank's part in the device collectives of all ranks.
struct WarrenDeviceGroup;

struct WarrenDevices {
  std::int32_t version;  ///< the kWarrenDevicesVersion with which the plugin was built

  /// Sets `device` to the GPU for the process with this index on its host, and makes it the thread's current
  /// one.
  const char* (*select)(std::int32_t local_rank, std::int32_t* device);

  /// Creates a group: finds out which GPUs the ranks use, and how the ranks can reach each other's memory. A
  /// collective call. This rank uses the GPU that holds `memory`, or the thread's current GPU if `memory` is
  /// nullptr. `host` must outlive the group.
  const char* (*open)(const WarrenDeviceHost* host, const void* memory, WarrenDeviceGroup** group);
  /// Frees the group. With `abort`, aborts the work in progress without waiting for any rank; otherwise, it
  /// is a collective call.
  void (*close)(WarrenDeviceGroup* group, std::int32_t abort);
  /// Returns a description, for users, of how collectives run, e.g. "NCCL 2.28.9".
  const char* (*describe)(WarrenDeviceGroup* group);
  /// Returns 1 if calls can be captured into CUDA graphs, else 0.
  std::int32_t (*captures)(WarrenDeviceGroup* group);

  /// Enqueues collectives on their streams, as one group. May return before they are done.
  const char* (*enqueue)(WarrenDeviceGroup* group, const warren::device::Operation* calls,
                         std::size_t num_calls);
  /// Sets a mark after the current work of the stream; it must be freed with drop_mark.
  const char* (*set_mark)(WarrenDeviceGroup* group, void* stream, void** mark);
  /// Sets `reached` to 1 if all work before the mark is done, else 0. Thread-safe.
  const char* (*is_reached)(void* mark, std::int32_t* reached);
  /// Waits until the mark is reached.
  const char* (*wait)(WarrenDeviceGroup* group, void* mark);
  /// Frees a mark. Thread-safe.
  void (*drop_mark)(void* mark);
  /// Fails if the work in progress has failed. May be called from any thread, but not concurrently with other
  /// calls for this group.
  const char* (*look)(WarrenDeviceGroup* group);
  /// Sets `memory` to device memory of the group, which is valid until the next call of `scratch`.
  const char* (*scratch)(WarrenDeviceGroup* group, std::size_t bytes, void** memory);

  /// Copies between host and device memory in any direction, after the stream's work. Returns when the copy
  /// is done.
  const char* (*copy)(void* to, const void* from, std::size_t bytes, void* stream);
  /// Sets `captured` to 1 if a CUDA graph is being captured from the stream, else 0.
  const char* (*is_captured)(void* stream, std::int32_t* captured);
};

}  // extern "C"

/// The version of the tables, to be incremented whenever they change.
inline constexpr std::int32_t kWarrenDevicesVersion = 5;
/// The only symbol a plugin exports: `extern "C" const WarrenDevices* warren_devices()`.
inline constexpr const char* kWarrenDevicesSymbol = "warren_devices";
using WarrenDevicesEntry = const WarrenDevices* (*)();
