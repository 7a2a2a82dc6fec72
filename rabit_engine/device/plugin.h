// What librabit and its CUDA part agree on: C tables of functions over plain values. librabit knows no CUDA;
// cuda/ becomes librabit_cuda.so, which device_library.h loads when a program first asks for a device. No C++
// object and no exception crosses this line.
//
// Each function of WarrenDevices returns nullptr when it succeeded, else a text that says what went wrong,
// which lives until the thread's next call; the empty text means that a function of WarrenDeviceHost has
// failed, and librabit knows how. Not thread safe, but where that is said.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rabit_engine/device/collective.h"

extern "C" {

/// What librabit does for its CUDA part. All ranks call the collectives in the same order. Each returns 0, or
/// 1 when it failed: then the caller gives up what it does.
struct WarrenDeviceHost {
  void* context;
  std::int32_t rank;
  std::int32_t world_size;
  std::int32_t debug;
  std::int32_t tls;  ///< what goes to other hosts has to be encrypted
  std::int32_t
      recovers;  ///< ranks may be lost: nothing on the device may wait for another rank's process. Changes.
  /// `buffer` has a slice of `bytes` for each rank.
  std::int32_t (*allgather)(void* context, void* buffer, std::size_t bytes);
  std::int32_t (*broadcast)(void* context, void* buffer, std::size_t bytes, std::int32_t root);
  /// Of host memory, with the codes of device::Type and device::Operation.
  std::int32_t (*allreduce)(void* context, void* buffer, std::size_t count, std::int32_t type,
                            std::int32_t operation);
  /// Fails when a rank is known to be gone, or the call has taken too long. Does not wait.
  std::int32_t (*check)(void* context);
};

/// This rank's part in the device collectives of all ranks.
struct WarrenDeviceGroup;

struct WarrenDevices {
  std::int32_t version;  ///< kWarrenDevicesVersion of the plugin

  /// The GPU for a process that is the `local_rank`-th on its host, which becomes the thread's current one.
  const char* (*select)(std::int32_t local_rank, std::int32_t* device);

  /// Finds out which GPUs the ranks use, and how they can reach each other. Collective. `memory`: some of the
  /// device memory that will be used; null: the thread's current device. `host` must outlive the group.
  const char* (*open)(const WarrenDeviceHost* host, const void* memory, WarrenDeviceGroup** group);
  /// Gives everything back. With `abort`, whatever is under way is broken off and nobody is waited for;
  /// without, the ranks call it together.
  void (*close)(WarrenDeviceGroup* group, std::int32_t abort);
  /// How collectives run, for people: "NCCL 2.28.9".
  const char* (*describe)(WarrenDeviceGroup* group);
  /// 1 when calls can be captured into CUDA graphs, else 0.
  std::int32_t (*captures)(WarrenDeviceGroup* group);

  /// Puts collectives on their streams, as one group. May return before they are done.
  const char* (*enqueue)(WarrenDeviceGroup* group, const warren::device::Collective* calls,
                         std::size_t num_calls);
  /// A mark behind the work that the stream has now; for drop_mark.
  const char* (*set_mark)(WarrenDeviceGroup* group, void* stream, void** mark);
  /// 1 when all that is before it is done, else 0. From any thread.
  const char* (*is_reached)(void* mark, std::int32_t* reached);
  /// Waits until it is.
  const char* (*wait)(WarrenDeviceGroup* group, void* mark);
  /// From any thread.
  void (*drop_mark)(void* mark);
  /// Whether something has gone wrong with what is under way. From any thread, not at the same time as other
  /// calls for this group.
  const char* (*look)(WarrenDeviceGroup* group);
  /// Device memory of the group's, valid until the next call.
  const char* (*scratch)(WarrenDeviceGroup* group, std::size_t bytes, void** memory);

  /// Copies between any two memories, after the stream's work; returns when it is done.
  const char* (*copy)(void* to, const void* from, std::size_t bytes, void* stream);
  /// Whether a CUDA graph is being captured from the stream.
  const char* (*is_captured)(void* stream, std::int32_t* captured);
};

}  // extern "C"

/// Changes with every change of the tables.
inline constexpr std::int32_t kWarrenDevicesVersion = 4;
/// The one symbol a plugin exports: `extern "C" const WarrenDevices* warren_devices()`.
inline constexpr const char* kWarrenDevicesSymbol = "warren_devices";
using WarrenDevicesEntry = const WarrenDevices* (*)();
