// One rank that uses the device collectives, started by devices.py and scripts/gpu-check. The first argument
// is the mode (see Run). If a mode prints "digest ...", this line must be the same on all ranks.
#include <cuda_runtime_api.h>
#include <rabit/device.h>
#include <rabit/rabit.h>
#include <warren/collectives.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rabit_engine/device/host_reduction.h"

namespace {

using warren::device::ReduceOp;
using warren::device::SizeOf;
using warren::device::Type;

void Require(bool condition, std::string_view what) {
  if (!condition) {
    throw std::runtime_error("rank " + std::to_string(rabit::GetRank()) + ": " + std::string(what));
  }
}

void RequireCuda(cudaError_t error) {
  Require(error == cudaSuccess, cudaGetErrorString(error));
}

/// Whether buffers are allocated with cudaMallocAsync, whose memory other processes cannot map, instead of
/// cudaMalloc.
bool from_pool = false;

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    RequireCuda(from_pool ? cudaMallocAsync(&data_, bytes, nullptr) : cudaMalloc(&data_, bytes));
    RequireCuda(cudaStreamSynchronize(nullptr));
  }
  explicit Buffer(const std::string& content) : Buffer(content.size()) { Put(content); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }

  void Put(const std::string& content) const {
    RequireCuda(cudaMemcpy(data_, content.data(), content.size(), cudaMemcpyDefault));
    RequireCuda(cudaStreamSynchronize(nullptr));  // a copy from pageable memory may still be in progress
  }
  std::string Get() const {
    std::string content(bytes_, '\0');
    RequireCuda(cudaMemcpy(content.data(), data_, bytes_, cudaMemcpyDefault));
    return content;
  }
  void* at(std::size_t offset = 0) const { return static_cast<char*>(data_) + offset; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// The 64-bit FNV-1a hash.
std::uint64_t Hash(const std::string& bytes, std::uint64_t hash = 14695981039346656037U) {
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211U;
  return hash;
}

/// The bits of a small integer in binary16, computed as a sum of ones.
std::uint16_t HalfOf(int value) {
  static std::vector<std::uint16_t> sums{0};
  while (sums.size() <= static_cast<std::size_t>(value)) {
    const std::uint16_t one = 0x3c00;
    std::uint16_t next = 0;
    warren::device::HostReduction(Type::kFloat16, ReduceOp::kSum).Combine(&next, &sums.back(), &one, 1);
    sums.push_back(next);
  }
  return sums[static_cast<std::size_t>(value)];
}

/// A rank's elements: numbers so small that results do not depend on the order in which the ranks are
/// combined. The sequence repeats after kPeriod elements.
std::string Elements(Type type, ReduceOp operation, std::size_t count, int rank) {
  constexpr std::size_t kPeriod = 2;
  std::string bytes(count * SizeOf(type), '\0');
  for (std::size_t i = 0; i < std::min(count, kPeriod); ++i) {
    const std::size_t seed = i * 7 + static_cast<std::size_t>(rank) * 3;
    int value = static_cast<int>(seed % 2);
    if (operation == ReduceOp::kProduct) value = static_cast<int>(1 + seed % 2 * (rank < 3 ? 1 : 0));
    if (operation == ReduceOp::kAverage) value = static_cast<int>(seed % 2) * rabit::GetWorldSize();
    char* at = bytes.data() + i * SizeOf(type);
    const auto put = [at](auto number) { std::memcpy(at, &number, sizeof number); };
    const auto number = static_cast<float>(value);
    switch (type) {
      case Type::kInt8:
      case Type::kUint8:
        put(static_cast<std::int8_t>(value));
        break;
      case Type::kInt32:
      case Type::kUint32:
        put(static_cast<std::int32_t>(value));
        break;
      case Type::kInt64:
      case Type::kUint64:
        put(static_cast<std::int64_t>(value));
        break;
      case Type::kFloat32:
        put(number);
        break;
      case Type::kFloat64:
        put(static_cast<double>(value));
        break;
      case Type::kBFloat16: {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &number, sizeof bits);
        put(static_cast<std::uint16_t>(bits >> 16));  // exact for such small numbers
        break;
      }
      case Type::kFloat16:
        put(HalfOf(value));
        break;
      default:
        put(warren::device::ToFloat8(type, number));
    }
  }
  for (std::size_t done = kPeriod * SizeOf(type); done < bytes.size();) {
    const std::size_t more = std::min(done, bytes.size() - done);
    std::memcpy(bytes.data() + done, bytes.data(), more);
    done += more;
  }
  return bytes;
}

/// The reduction of all ranks' elements, computed on the host.
std::string Reduced(Type type, ReduceOp operation, std::size_t count) {
  std::string result = Elements(type, operation, count, 0);
  const warren::Reduction reduction = warren::device::HostReduction(type, operation);
  for (int rank = 1; rank < rabit::GetWorldSize(); ++rank) {
    const std::string next = Elements(type, operation, count, rank);
    reduction.Combine(result.data(), result.data(), next.data(), count);
  }
  if (operation == ReduceOp::kAverage)
    warren::device::Divide(type, result.data(), count, rabit::GetWorldSize());
  return result;
}

std::string All(Type type, std::size_t count) {
  std::string all;
  for (int rank = 0; rank < rabit::GetWorldSize(); ++rank) all += Elements(type, ReduceOp::kSum, count, rank);
  return all;
}

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  RequireCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/// Checks every collective, type and operation, in and out of place, against results computed on the host.
void CheckAll(std::size_t count) {
  const auto rank = static_cast<std::size_t>(rabit::GetRank());
  const auto ranks = static_cast<std::size_t>(rabit::GetWorldSize());
  cudaStream_t stream = NewStream();
  std::size_t checked = 0;
  const auto expect = [&](const Buffer& buffer, const std::string& expected, const std::string& what) {
    rabit::device::Synchronize(stream);
    const std::string got = buffer.Get();
    if (std::memcmp(got.data(), expected.data(), expected.size()) != 0) {
      const auto at = static_cast<std::size_t>(
          std::mismatch(expected.begin(), expected.end(), got.begin()).first - expected.begin());
      Require(false, what + ": byte " + std::to_string(at) + " of " + std::to_string(expected.size()) +
                         " is " + std::to_string(got[at]) + ", expected " + std::to_string(expected[at]));
    }
    ++checked;
  };
  for (int t = 0; t < warren::device::kNumTypes; ++t) {
    const auto type = static_cast<Type>(t);
    const std::size_t bytes = count * SizeOf(type);
    const std::string name(warren::device::Name(type));
    for (int o = 0; o < warren::device::kNumReduceOps; ++o) {
      const auto operation = static_cast<ReduceOp>(o);
      const std::string what = " of " + name + ", " + std::string(warren::device::Name(operation));
      const std::string own = Elements(type, operation, count, static_cast<int>(rank));
      const Buffer send(own);
      const Buffer receive(bytes);
      rabit::device::Require(RabitDeviceAllreduce(send.at(), receive.at(), count, t, o, stream));
      const std::string reduced = Reduced(type, operation, count);
      expect(receive, reduced, "allreduce" + what);
      expect(send, own, "input of allreduce" + what);
      rabit::device::Require(RabitDeviceAllreduce(send.at(), send.at(), count, t, o, stream));
      expect(send, reduced, "allreduce in place" + what);

      const Buffer parts(Elements(type, operation, count * ranks, static_cast<int>(rank)));
      const std::string part = Reduced(type, operation, count * ranks).substr(rank * bytes, bytes);
      rabit::device::Require(RabitDeviceReduceScatter(parts.at(), receive.at(), count, t, o, stream));
      expect(receive, part, "reduce-scatter" + what);
      rabit::device::Require(
          RabitDeviceReduceScatter(parts.at(), parts.at(rank * bytes), count, t, o, stream));
      rabit::device::Synchronize(stream);
      Require(parts.Get().substr(rank * bytes, bytes) == part, "reduce-scatter in place" + what);
    }
    const Buffer own(Elements(type, ReduceOp::kSum, count, static_cast<int>(rank)));
    const Buffer all(bytes * ranks);
    rabit::device::Require(RabitDeviceAllgather(own.at(), all.at(), count, t, stream));
    expect(all, All(type, count), "allgather of " + name);
    const Buffer in_place(bytes * ranks);
    RequireCuda(cudaMemcpy(in_place.at(rank * bytes), own.at(), bytes, cudaMemcpyDefault));
    RequireCuda(cudaStreamSynchronize(nullptr));  // a copy on the device may still be in progress
    rabit::device::Require(RabitDeviceAllgather(in_place.at(rank * bytes), in_place.at(), count, t, stream));
    expect(in_place, All(type, count), "allgather in place of " + name);
    for (std::size_t root = 0; root < ranks; ++root) {
      const std::string roots = Elements(type, ReduceOp::kSum, count, static_cast<int>(root));
      const Buffer mine(Elements(type, ReduceOp::kSum, count, static_cast<int>(rank)));
      const void* send = root == rank ? mine.at() : nullptr;
      rabit::device::Require(RabitDeviceBroadcast(send, all.at(), count, t, static_cast<int>(root), stream));
      rabit::device::Synchronize(stream);
      Require(all.Get().substr(0, bytes) == roots, "broadcast of " + name);
      rabit::device::Require(
          RabitDeviceBroadcast(mine.at(), mine.at(), count, t, static_cast<int>(root), stream));
      expect(mine, roots, "broadcast in place of " + name);
    }
  }
  std::printf("checked %zu results of %zu elements\n", checked, count);
}

/// Prints whether a sum of floats, which depends on the order of addition, has the same bits as the sum that
/// the engine computes on the host. Also prints a digest of the sum.
void CheckOrder(std::size_t count) {
  std::vector<float> numbers(count);
  std::uint32_t state = 12345U + static_cast<std::uint32_t>(rabit::GetRank());
  for (float& number : numbers) {
    state = state * 1664525U + 1013904223U;
    number = (static_cast<float>(state >> 8) - 8388608.0F) * 1e-3F;
  }
  const Buffer buffer(std::string(reinterpret_cast<const char*>(numbers.data()), count * sizeof(float)));
  rabit::device::Allreduce(static_cast<float*>(buffer.at()), count, RABIT_DEVICE_SUM, nullptr);
  rabit::device::Synchronize(nullptr);
  rabit::Allreduce<rabit::op::Sum>(numbers.data(), count);
  const std::string on_device = buffer.Get();
  const std::string on_host(reinterpret_cast<const char*>(numbers.data()), count * sizeof(float));
  std::printf("order %s\n", on_device == on_host ? "same" : "differs");
  std::printf("digest %016llx\n",
              static_cast<unsigned long long>(Hash(on_device)));  // NOLINT(google-runtime-int)
}

/// Checks groups, several streams, empty calls, and many calls without a wait between them.
void CheckCalls() {
  const std::size_t count = 1000;
  std::vector<std::unique_ptr<Buffer>> buffers;
  const std::string ones = Elements(Type::kInt32, ReduceOp::kSum, count, rabit::GetRank());
  for (int i = 0; i < 20; ++i) buffers.push_back(std::make_unique<Buffer>(ones));
  cudaStream_t first = NewStream();
  cudaStream_t second = NewStream();
  rabit::device::GroupStart();
  rabit::device::GroupStart();
  for (int i = 0; i < 10; ++i)
    rabit::device::Allreduce(static_cast<int*>(buffers[i]->at()), count, RABIT_DEVICE_SUM, first);
  rabit::device::GroupEnd();
  rabit::device::GroupEnd();
  for (int i = 10; i < 20; ++i) {
    rabit::device::Allreduce(static_cast<int*>(buffers[i]->at()), count, RABIT_DEVICE_SUM,
                             i % 2 == 0 ? first : second);
  }
  rabit::device::Allreduce(static_cast<int*>(nullptr), 0, RABIT_DEVICE_SUM, first);
  rabit::device::Synchronize(first);
  rabit::device::Synchronize(second);
  const std::string expected = Reduced(Type::kInt32, ReduceOp::kSum, count);
  for (const auto& buffer : buffers) Require(buffer->Get() == expected, "one of many allreduces");
  std::printf("calls fine\n");
}

/// Checks that a collective runs in order with the work before and after it on its stream.
void CheckStreamOrder() {
  const std::size_t count = 30000;
  const std::size_t bytes = count * sizeof(int);
  cudaStream_t stream = NewStream();
  const Buffer work(bytes);
  std::vector<std::unique_ptr<Buffer>> inputs;
  std::vector<std::unique_ptr<Buffer>> results;
  for (int i = 0; i < 8; ++i) {
    std::string numbers(bytes, '\0');
    for (std::size_t k = 0; k < count; ++k) {
      const int number = static_cast<int>(k) * (i + 1) + rabit::GetRank();
      std::memcpy(numbers.data() + k * sizeof(int), &number, sizeof number);
    }
    inputs.push_back(std::make_unique<Buffer>(numbers));
    results.push_back(std::make_unique<Buffer>(bytes));
  }
  const auto copy = [&](const Buffer& to, const Buffer& from) {
    RequireCuda(cudaMemcpyAsync(to.at(), from.at(), bytes, cudaMemcpyDeviceToDevice, stream));
  };
  const Buffer spare(bytes);
  for (int i = 0; i < 8; ++i) {
    // One rank's stream lags far behind those of the other ranks.
    for (int k = 0; k < 30 && rabit::GetRank() == i % rabit::GetWorldSize(); ++k) copy(spare, *inputs[i]);
    copy(work, *inputs[i]);
    rabit::device::Allreduce(static_cast<int*>(work.at()), count, RABIT_DEVICE_SUM, stream);
    copy(*results[i], work);
  }
  rabit::device::Synchronize(stream);
  const int ranks = rabit::GetWorldSize();
  for (int i = 0; i < 8; ++i) {
    const std::string got = results[i]->Get();
    for (std::size_t k = 0; k < count; ++k) {
      int number = 0;
      std::memcpy(&number, got.data() + k * sizeof(int), sizeof number);
      Require(number == static_cast<int>(k) * (i + 1) * ranks + ranks * (ranks - 1) / 2,
              "the order of what is on a stream");
    }
  }
}

cudaGraph_t Captured(cudaStream_t stream, const std::function<void()>& work) {
  RequireCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  work();
  cudaGraph_t graph = nullptr;
  RequireCuda(cudaStreamEndCapture(stream, &graph));
  return graph;
}

/// Checks whether calls can be captured into a CUDA graph; if so, launches the graph several times.
void CheckCapture() {
  const std::size_t count = 20001;
  const auto ranks = static_cast<std::size_t>(rabit::GetWorldSize());
  cudaStream_t stream = NewStream();
  const Buffer input(count * sizeof(int));
  const Buffer work(count * sizeof(int));
  const Buffer all(ranks * count * sizeof(int));
  auto* const data = static_cast<int*>(work.at());
  bool refused = false;
  const auto call = [&] {
    RequireCuda(cudaMemcpyAsync(data, input.at(), count * sizeof(int), cudaMemcpyDeviceToDevice, stream));
    rabit::device::GroupStart();
    refused = RabitDeviceAllgather(input.at(), all.at(), count, RABIT_DEVICE_INT32, stream) != 0;
    const int result = RabitDeviceAllreduce(data, data, count, RABIT_DEVICE_INT32, RABIT_DEVICE_SUM, stream);
    Require((result != 0) == refused, "both are refused or none");
    if (refused) std::printf("refused: %s\n", RabitDeviceGetLastError());
    Require((RabitDeviceGroupEnd() != 0) == refused, "and their group as they");
  };
  RequireCuda(cudaGraphDestroy(Captured(stream, call)));  // before any uncaptured call
  Require(refused, "the first call of all is refused");
  input.Put(Elements(Type::kInt32, ReduceOp::kSum, count, rabit::GetRank()));
  call();
  rabit::device::Synchronize(stream);
  Require(work.Get() == Reduced(Type::kInt32, ReduceOp::kSum, count), "a call outside");

  cudaGraph_t graph = Captured(stream, call);
  cudaGraphExec_t instance = nullptr;
  RequireCuda(cudaGraphInstantiate(&instance, graph, 0));
  for (int start = 0; start < 5 && !refused; ++start) {
    // The inputs differ from those of the previous round.
    input.Put(Elements(Type::kInt32, ReduceOp::kSum, count, rabit::GetRank() + start));
    RequireCuda(cudaGraphLaunch(instance, stream));
    rabit::device::Synchronize(stream);
    std::string sum;
    std::string inputs;
    for (int rank = 0; rank < rabit::GetWorldSize(); ++rank) {
      const std::string next = Elements(Type::kInt32, ReduceOp::kSum, count, rank + start);
      inputs += next;
      if (rank == 0) sum = next;
      if (rank > 0)
        warren::device::HostReduction(Type::kInt32, ReduceOp::kSum)
            .Combine(sum.data(), sum.data(), next.data(), count);
    }
    Require(work.Get() == sum, "an allreduce of a graph");
    Require(all.Get() == inputs, "an allgather of a graph");
    if (start == 4) std::printf("a graph ran\n");
  }
  RequireCuda(cudaGraphExecDestroy(instance));
  RequireCuda(cudaGraphDestroy(graph));
  call();
  rabit::device::Synchronize(stream);
  Require(!refused, "a call after the graph");

  // Captured and uncaptured calls in one group are refused, and so is a wait within an open group.
  cudaStream_t other = NewStream();
  RequireCuda(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal));
  rabit::device::GroupStart();
  RabitDeviceAllreduce(data, data, count, RABIT_DEVICE_INT32, RABIT_DEVICE_SUM, stream);
  RabitDeviceAllgather(input.at(), all.at(), count, RABIT_DEVICE_INT32, other);
  Require(RabitDeviceGroupEnd() != 0, "a group that is half captured is refused");
  RequireCuda(cudaStreamEndCapture(other, &graph));
  RequireCuda(cudaGraphDestroy(graph));
  rabit::device::GroupStart();
  Require(RabitDeviceSynchronize(stream) != 0, "waiting within a group is refused");
  rabit::device::GroupEnd();
  call();
  rabit::device::Synchronize(stream);
  Require(work.Get() == Reduced(Type::kInt32, ReduceOp::kSum, count), "a call after refused groups");
}

/// Makes calls that depend on the results of all earlier calls. Each version ends with a checkpoint.
void Train(int versions) {
  struct Model : rabit::Serializable {
    std::uint64_t state = 1;
    void Load(rabit::Stream* stream) override { stream->Read(&state, sizeof state); }
    void Save(rabit::Stream* stream) const override { stream->Write(&state, sizeof state); }
  } model;
  const auto rank = static_cast<std::uint64_t>(rabit::GetRank());
  const auto ranks = static_cast<std::size_t>(rabit::GetWorldSize());
  const std::size_t count = 5000;
  cudaStream_t stream = NewStream();
  const auto numbers = [&](std::uint64_t salt, std::size_t how_many) {
    std::vector<std::uint64_t> values(how_many);
    for (std::size_t i = 0; i < how_many; ++i)
      values[i] = (model.state ^ salt) * 2862933555777941757U * (i + rank + 1);
    return std::string(reinterpret_cast<const char*>(values.data()), how_many * sizeof(std::uint64_t));
  };
  const auto learn = [&](const std::string& bytes) { model.state = Hash(bytes, model.state); };
  // Results that differ between ranks enter the model through an allreduce.
  const auto learn_together = [&](const std::string& bytes) {
    std::uint64_t hash = Hash(bytes);
    rabit::Allreduce<rabit::op::Sum>(&hash, 1);
    model.state ^= hash;
  };
  for (int version = rabit::LoadCheckPoint(&model); version < versions; ++version) {
    const Buffer sum(numbers(1, count));
    auto* const summed = static_cast<std::uint64_t*>(sum.at());
    warren::World().DeviceAllreduce(summed, summed, count, warren::Op::kSum, stream).Wait();
    learn(sum.Get());
    std::uint64_t most = model.state + rank;
    rabit::Allreduce<rabit::op::Max>(&most, 1);
    model.state += most;
    const Buffer shared(numbers(2, count));
    rabit::device::Broadcast(static_cast<std::uint64_t*>(shared.at()), count, version % rabit::GetWorldSize(),
                             stream);
    learn(shared.Get());
    const Buffer own(numbers(3, count));
    const Buffer all(ranks * count * sizeof(std::uint64_t));
    rabit::device::Allgather(static_cast<const std::uint64_t*>(own.at()),
                             static_cast<std::uint64_t*>(all.at()), count, stream);
    learn(all.Get());
    const Buffer parts(numbers(4, ranks * count));
    rabit::device::ReduceScatter(static_cast<const std::uint64_t*>(parts.at()),
                                 static_cast<std::uint64_t*>(own.at()), count, RABIT_DEVICE_MAX, stream);
    learn_together(own.Get());
    rabit::CheckPoint(&model);
  }
  std::printf("digest %016llx\n",
              static_cast<unsigned long long>(model.state));  // NOLINT(google-runtime-int)
}

/// Rank `who` runs `instead` between two allreduces. All ranks that reach the second one wait for it with
/// `wait`, which calls a function of rabit or of CUDA.
void Miss(int who, const std::function<void()>& instead, const std::function<void()>& wait) {
  const std::size_t count = 100000;
  const Buffer buffer(std::string(count * sizeof(float), '\0'));
  auto* data = static_cast<float*>(buffer.at());
  rabit::device::Allreduce(data, count, RABIT_DEVICE_SUM, nullptr);
  rabit::device::Synchronize(nullptr);
  if (rabit::GetRank() == who) instead();
  rabit::device::Allreduce(data, count, RABIT_DEVICE_SUM, nullptr);
  wait();
}

void WaitByRabit() {
  rabit::device::Synchronize(nullptr);
}
void WaitByCuda() {
  RequireCuda(cudaStreamSynchronize(nullptr));
  rabit::device::Synchronize(nullptr);
}

/// Like Miss, but rank `who` exits, and the second allreduce is on another stream. The other ranks first wait
/// for the stream of the first allreduce, which is idle.
void MissOnAnotherStream(int who) {
  const std::size_t count = 1000;
  const Buffer buffer(std::string(count * sizeof(float), '\0'));
  auto* data = static_cast<float*>(buffer.at());
  cudaStream_t first = NewStream();
  cudaStream_t second = NewStream();
  rabit::device::Allreduce(data, count, RABIT_DEVICE_SUM, first);
  rabit::device::Synchronize(first);
  if (rabit::GetRank() == who) std::_Exit(9);
  rabit::device::Allreduce(data, count, RABIT_DEVICE_SUM, second);
  rabit::device::Synchronize(first);
  RequireCuda(cudaStreamSynchronize(second));
  rabit::device::Synchronize(second);
}

/// Checks asynchronous calls on `comm`, to which rank r contributes r + 1.
void CheckHandlesOf(const warren::Communicator& comm, std::size_t count) {
  const auto size = static_cast<std::size_t>(comm.size());
  const float total = static_cast<float>(comm.size() * (comm.size() + 1)) / 2;
  const auto filled = [](std::size_t length, float value) {
    std::vector<float> floats(length, value);
    return std::string(reinterpret_cast<const char*>(floats.data()), length * sizeof(float));
  };
  const auto at = [](const Buffer& buffer) { return static_cast<float*>(buffer.at()); };
  cudaStream_t stream = NewStream();
  const auto own = static_cast<float>(comm.rank() + 1);
  const Buffer sum(filled(count, own));
  const Buffer average(filled(count, own));
  const Buffer first(filled(count, own));
  const Buffer all(count * size * sizeof(float));
  const Buffer many(filled(count * size, own));
  const Buffer part(count * sizeof(float));
  std::vector<warren::Handle> handles;
  handles.push_back(comm.DeviceAllreduce(at(sum), at(sum), count, warren::Op::kSum, stream));
  handles.push_back(comm.DeviceAllreduce(at(average), at(average), count, warren::Op::kAverage, stream));
  handles.push_back(comm.DeviceBroadcast(at(first), count, comm.size() - 1, stream));
  handles.push_back(comm.DeviceAllgather(at(average), at(all), count, stream));
  handles.push_back(comm.DeviceReduceScatter(at(many), at(part), count, warren::Op::kSum, stream));
  std::atomic<int> called{0};
  handles[1].WhenDone([&](const char* error) { called += error == nullptr ? 1 : 100; });
  while (!handles[2].Test()) std::this_thread::yield();
  warren::WaitAll(handles);
  Require(sum.Get() == filled(count, total), "an allreduce by a handle");
  Require(average.Get() == filled(count, total / static_cast<float>(size)), "an average by a handle");
  Require(first.Get() == filled(count, static_cast<float>(comm.size())), "a broadcast by a handle");
  Require(all.Get() == filled(count * size, total / static_cast<float>(size)), "an allgather by a handle");
  Require(part.Get() == filled(count, total), "a reduce-scatter by a handle");
  while (called == 0) std::this_thread::yield();
  Require(called == 1, "a callback without an error");
}

/// Checks asynchronous calls on the world and on communicators split from it.
void CheckHandles() {
  const warren::Communicator world = warren::World();
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{3'000'000}}) {
    CheckHandlesOf(world, count);
    CheckHandlesOf(world.Split(world.rank() % 2, -world.rank()), count);
  }
  const Buffer buffer(4000);
  auto* data = static_cast<float*>(buffer.at());
  try {
    world.DeviceAllreduce(data, data, 10, warren::Op::kBitOr, nullptr);
    Require(false, "an operation that devices have not is refused");
  } catch (const warren::Error& error) {
    std::printf("%s\n", error.what());
  }
}

/// Rank `who` exits before a call. The other ranks' handles must report the loss.
void MissByHandle(int who) {
  const warren::Communicator world = warren::World();
  const Buffer buffer(4'000'000);
  auto* data = static_cast<float*>(buffer.at());
  world.DeviceAllreduce(data, data, 1'000'000, warren::Op::kSum, nullptr).Wait();
  if (world.rank() == who) std::_Exit(9);
  warren::Handle handle = world.DeviceAllreduce(data, data, 1'000'000, warren::Op::kSum, nullptr);
  while (!handle.Test()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  handle.Wait();
}

void Run(const std::vector<std::string>& words) {
  const std::string& mode = words.at(0);
  const int number = words.size() > 1 ? std::stoi(words[1]) : 0;  // the mode's argument, if it has one
  const auto die = [] { std::_Exit(9); };
  const int selected = rabit::device::Select();
  int current = -1;
  RequireCuda(cudaGetDevice(&current));
  Require(selected == current, "the selected GPU is the current one");
  if (mode == "check") {
    for (const std::size_t count : {1, 1000, 20001}) CheckAll(count);
    CheckCalls();
    CheckStreamOrder();
    CheckOrder(100003);
  } else if (mode == "large") {
    CheckOrder(std::size_t{3} << 20);
  } else if (mode == "capture") {
    CheckCapture();
  } else if (mode == "select") {
    std::printf("gpu %d\n", selected);
  } else if (mode == "train") {
    Train(number);
  } else if (mode == "die") {
    Miss(number, die, WaitByRabit);
  } else if (mode == "die-unwatched") {
    Miss(number, die, WaitByCuda);
  } else if (mode == "die-on-another-stream") {
    MissOnAnotherStream(number);
  } else if (mode == "hang") {
    const auto hang = [] { std::this_thread::sleep_for(std::chrono::hours(1)); };
    Miss(number, hang, WaitByRabit);
  } else if (mode == "handles") {
    CheckHandles();
  } else if (mode == "die-by-handle") {
    MissByHandle(number);
  } else if (mode == "host-memory") {
    std::vector<float> numbers(10);
    rabit::device::Allreduce(numbers.data(), numbers.size(), RABIT_DEVICE_SUM, nullptr);
  } else if (mode == "differ") {
    const Buffer buffer(400);
    const std::size_t count = rabit::GetRank() == 1 ? 50 : 100;
    rabit::device::Allreduce(static_cast<float*>(buffer.at()), count, RABIT_DEVICE_SUM, nullptr);
    rabit::device::Synchronize(nullptr);
  } else if (mode == "misuse") {
    const Buffer buffer(400);
    const auto complain = [](int result) {
      std::printf("%s\n", result == 0 ? "no complaint" : RabitDeviceGetLastError());
    };
    complain(RabitDeviceAllreduce(nullptr, buffer.at(), 10, RABIT_DEVICE_FLOAT32, RABIT_DEVICE_SUM, nullptr));
    complain(RabitDeviceAllreduce(buffer.at(), buffer.at(), 10, 12, RABIT_DEVICE_SUM, nullptr));
    complain(RabitDeviceAllreduce(buffer.at(), buffer.at(), 10, RABIT_DEVICE_FLOAT32, 5, nullptr));
    complain(RabitDeviceBroadcast(buffer.at(), buffer.at(), 10, RABIT_DEVICE_FLOAT32, 99, nullptr));
    rabit::device::Allreduce(static_cast<float*>(buffer.at()), 100, RABIT_DEVICE_SUM, nullptr);
    rabit::device::Synchronize(nullptr);
    std::printf("still alive\n");
    complain(RabitDeviceGroupEnd());
  } else {
    throw std::runtime_error("no mode " + mode);
  }
  std::printf("path %s\n", RabitDeviceDescribe());
}

}  // namespace

int main(int argc, char* argv[]) {
  try {
    rabit::Init(argc, argv);
    std::vector<std::string> words;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "pool") {
        from_pool = true;
      } else if (word == "recovering") {
        struct : rabit::Serializable {
          void Load(rabit::Stream* /*stream*/) override {}
          void Save(rabit::Stream* /*stream*/) const override {}
        } nothing;
        rabit::LoadCheckPoint(&nothing);
      } else if (word.find('=') == std::string::npos) {
        words.push_back(word);
      }
    }
    Run(words);
    return rabit::Finalize() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
