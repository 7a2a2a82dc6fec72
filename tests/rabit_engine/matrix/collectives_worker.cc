// One rank of a job that checks collectives against a simple reference (reference.h), bit for bit. The
// environment selects transport and algorithm. If a result is wrong, prints an error and exits with 1;
// otherwise rank 0 prints one line with a checksum of its results. The checksum must depend only on the
// arguments and the number of ranks.
//
//   collectives_worker all       every type and operation, and a few of them with many sizes and roots
//   collectives_worker every     every type and operation around every size where the engine may change
//                                the algorithm or how it divides the data
//   collectives_worker random N  N successive collectives drawn from one seed
//   collectives_worker large N   broadcast, allgather and allreduce of N bytes; N may exceed 4 Gi
//   collectives_worker wait R    a barrier, then an allreduce that rank R does not call
//   collectives_worker stream    a barrier, then endless allreduces
//   collectives_worker histograms  allreduces of sparse histograms, of up to 16 ranks
//   collectives_worker mismatch W  ranks whose calls differ in W
//   collectives_worker senseless   prints the errors of invalid arguments
//   collectives_worker algorithms  prints the allreduce algorithms that need only links, and joins no job
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "rabit_engine/call/slices.h"
#include "rabit_engine/collective/registry.h"
#include "rabit_engine/engine/join.h"
#include "tests/rabit_engine/matrix/reference.h"

namespace warren::matrix {
namespace {

struct Failure {
  std::string text;
};

/// Bytes that begin at an odd address, so that no code may rely on alignment.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes + 1) {}
  std::byte* data() { return bytes_.data() + 1; }

 private:
  std::vector<std::byte> bytes_;
};

class Checker {
 public:
  explicit Checker(Communicator& communicator)
      : communicator_(communicator), rank_(communicator.rank()), ranks_(communicator.world_size()) {}

  std::uint64_t checksum() const { return checksum_; }
  std::uint64_t common_checksum() const { return common_checksum_; }

  /// From now on, each rank compares only its part of long allreduce results with the reference, so that each
  /// element is checked by exactly one rank. CheckAgreement then checks that all ranks have the same results.
  void ShareTheWork() { shares_ = true; }
  void CheckAgreement() {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks_));
    all[rank_] = common_checksum_;
    communicator_.Allgather(all.data(), EqualOffsets(ranks_, sizeof(all[0])));
    for (int rank = 0; rank < ranks_; ++rank) {
      if (all[rank] != common_checksum_) throw Failure{fmt::format("rank {} got other results", rank)};
    }
  }

  template <typename T, typename Combine>
  void Allreduce(const Reduction& reduction, std::size_t count, std::uint64_t seed, Combine combine) {
    Buffer buffer = Fill<T>(count, seed);
    communicator_.Allreduce(buffer.data(), count, reduction);
    constexpr std::size_t kRun = 64;
    const std::size_t most = shares_ && count > 4096 ? kRun : count;
    const std::size_t stride = shares_ && count > 4096 ? kRun * static_cast<std::size_t>(ranks_) : count + 1;
    for (std::size_t begin = shares_ && count > 4096 ? kRun * rank_ : 0; begin < count; begin += stride) {
      Check<T>(buffer, begin, std::min(count, begin + most), seed, combine, "allreduce");
    }
    Mix(buffer.data(), count * sizeof(T), common_checksum_);
  }

  template <typename T, typename Combine>
  void Reduce(const Reduction& reduction, std::size_t count, int root, std::uint64_t seed, Combine combine) {
    Buffer buffer = Fill<T>(count, seed);
    communicator_.Reduce(buffer.data(), count, reduction, root);
    if (rank_ == root) Check<T>(buffer, 0, count, seed, combine, "reduce");
  }

  template <typename T, typename Combine>
  void ReduceScatter(const Reduction& reduction, std::size_t count, std::uint64_t seed, Combine combine) {
    const std::vector<std::size_t> offsets = Offsets(count, seed);
    Buffer buffer = Fill<T>(count, seed);
    communicator_.ReduceScatter(buffer.data(), offsets, reduction);
    Check<T>(buffer, offsets[rank_], offsets[rank_ + 1], seed, combine, "reduce-scatter");
  }

  void Broadcast(std::size_t bytes, int root, std::uint64_t seed) {
    Buffer buffer = Fill<unsigned char>(bytes, seed);
    communicator_.Broadcast(buffer.data(), bytes, root);
    CheckBytes(buffer, bytes, "broadcast",
               [&](std::size_t i) { return Value<unsigned char>(root, i, seed); });
  }

  void Allgather(std::size_t bytes, std::uint64_t seed, bool knows_only_own) {
    const std::vector<std::size_t> offsets = Offsets(bytes, seed);
    Buffer buffer = Fill<unsigned char>(bytes, seed);
    if (knows_only_own) {
      communicator_.Allgather(buffer.data(), bytes, offsets[rank_], offsets[rank_ + 1]);
    } else {
      communicator_.Allgather(buffer.data(), offsets);
    }
    int owner = 0;
    CheckBytes(buffer, bytes, "allgather", [&](std::size_t i) {
      while (i >= offsets[owner + 1]) ++owner;
      return Value<unsigned char>(owner, i, seed);
    });
  }

  void Typed(DataType type, ReduceOp operation, std::size_t count, std::uint64_t seed, bool all_collectives) {
    reference::WithType(type, [&]<typename T>(T) { Each<T>(type, operation, count, seed, all_collectives); });
  }

  void Custom(std::size_t count, std::uint64_t seed) {
    const auto function = [](const void* src, void* dst, std::size_t length, void*) {
      for (std::size_t i = 0; i < length; ++i) {
        AffineMap low;
        AffineMap high;
        std::memcpy(&low, static_cast<std::byte*>(dst) + i * sizeof(low), sizeof(low));
        std::memcpy(&high, static_cast<const std::byte*>(src) + i * sizeof(high), sizeof(high));
        low = Compose(low, high);
        std::memcpy(static_cast<std::byte*>(dst) + i * sizeof(low), &low, sizeof(low));
      }
    };
    const Reduction reduction = Reduction::Custom(function, nullptr, sizeof(AffineMap));
    Allreduce<AffineMap>(reduction, count, seed, Compose);
    Reduce<AffineMap>(reduction, count, static_cast<int>(seed % ranks_), seed, Compose);
    ReduceScatter<AffineMap>(reduction, count, seed, Compose);
  }

  /// Checks an allreduce of elements that are too large for the shared-memory collectives and larger than
  /// every chunk.
  void HugeElements(std::uint64_t seed) {
    constexpr std::size_t kElementBytes = 600'000;
    const auto function = [](const void* src, void* dst, std::size_t length, void*) {
      for (std::size_t i = 0; i < length * kElementBytes; ++i) {
        static_cast<unsigned char*>(dst)[i] += static_cast<const unsigned char*>(src)[i];
      }
    };
    const Reduction reduction = Reduction::Custom(function, nullptr, kElementBytes);
    Buffer buffer = Fill<unsigned char>(2 * kElementBytes, seed);
    communicator_.Allreduce(buffer.data(), 2, reduction);
    Check<unsigned char>(
        buffer, 0, 2 * kElementBytes, seed,
        [](unsigned char x, unsigned char y) { return static_cast<unsigned char>(x + y); },
        "allreduce of huge elements");
  }

 private:
  template <typename T>
  void Each(DataType type, ReduceOp operation, std::size_t count, std::uint64_t seed, bool all_collectives) {
    const Reduction reduction = Reduction::Typed(type, operation);
    const auto combine = [operation](auto low, auto high) {
      return reference::Element(operation, low, high);
    };
    Allreduce<T>(reduction, count, seed, combine);
    if (!all_collectives) return;
    Reduce<T>(reduction, count, static_cast<int>((seed + count) % ranks_), seed, combine);
    ReduceScatter<T>(reduction, count, seed, combine);
  }

  template <typename T>
  Buffer Fill(std::size_t count, std::uint64_t seed) {
    Buffer buffer(count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      const T value = Value<T>(rank_, i, seed);
      std::memcpy(buffer.data() + i * sizeof(T), &value, sizeof(T));
    }
    return buffer;
  }

  template <typename T, typename Combine>
  void Check(Buffer& buffer, std::size_t begin, std::size_t end, std::uint64_t seed, Combine combine,
             const char* what) {
    for (std::size_t i = begin; i < end; ++i) {
      const T expected = Expected<T>(ranks_, i, seed, combine);
      const auto* wanted = reinterpret_cast<const std::byte*>(&expected);  // the bits, not the values
      if (!std::equal(wanted, wanted + sizeof(T), buffer.data() + i * sizeof(T))) {
        throw Failure{fmt::format("{} of elements of {} bytes [{}, {}), seed {}: element {} differs", what,
                                  sizeof(T), begin, end, seed, i)};
      }
    }
    Mix(buffer.data() + begin * sizeof(T), (end - begin) * sizeof(T), checksum_);
  }

  template <typename ValueAt>
  void CheckBytes(Buffer& buffer, std::size_t bytes, const char* what, ValueAt value_at) {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (static_cast<unsigned char>(buffer.data()[i]) != value_at(i)) {
        throw Failure{fmt::format("{} of {} bytes: byte {} differs", what, bytes, i)};
      }
    }
  }

  /// Offsets of slices of various lengths, some of them empty; the same on all ranks.
  std::vector<std::size_t> Offsets(std::size_t count, std::uint64_t seed) const {
    std::vector<std::size_t> offsets(static_cast<std::size_t>(ranks_) + 1, count);
    offsets[0] = 0;
    for (int rank = 1; rank < ranks_; ++rank) {
      const std::size_t rest = count - offsets[rank - 1];
      const std::size_t even = rest / static_cast<std::size_t>(ranks_ - rank + 1);
      offsets[rank] =
          offsets[rank - 1] +
          ((seed + static_cast<std::uint64_t>(rank)) % 3 == 0 ? 0 : std::min(rest, even + seed % 5));
    }
    return offsets;
  }

  static void Mix(const std::byte* bytes, std::size_t count, std::uint64_t& checksum) {
    for (std::size_t i = 0; i < count; i += sizeof(checksum)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i, std::min(sizeof(word), count - i));
      checksum = (checksum ^ word) * 0x9e3779b97f4a7c15;
      checksum ^= checksum >> 32;
    }
  }

  Communicator& communicator_;
  const int rank_;
  const int ranks_;
  std::uint64_t checksum_ = 0xcbf29ce484222325;
  std::uint64_t common_checksum_ = 0xcbf29ce484222325;  ///< over the results that are equal on all ranks
  bool shares_ = false;
};

/// Counts around sizes at which the engine may change the algorithm or how it divides the data.
std::vector<std::size_t> Counts(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return {0,    1,    2,    3,    n,    n + 1,  16,     257,        1024,
          1025, 4096, 4097, 8192, 8193, 16'384, 16'385, 65'536 + n, 300'001};
}

void All(Checker& checker, int ranks) {
  std::uint64_t seed = 1;
  for (const auto& [type, operation] : reference::DefinedPairs()) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{37}, std::size_t{3000}}) {
      checker.Typed(type, operation, count, ++seed, count == 37);
    }
  }
  for (const std::size_t count : Counts(ranks)) {
    checker.Typed(DataType::kFloat, ReduceOp::kSum, count, ++seed, true);
    checker.Typed(DataType::kInt, ReduceOp::kSum, count, ++seed, true);
    checker.Typed(DataType::kFloat16, ReduceOp::kSum, count, ++seed, true);
    checker.Typed(DataType::kBFloat16, ReduceOp::kSum, count, ++seed, true);
    checker.Custom(count / 4, ++seed);
    for (int root = 0; root<ranks; root += count> 5000 ? ranks : 1) checker.Broadcast(count, root, ++seed);
    checker.Allgather(count, ++seed, false);
    checker.Allgather(count, ++seed, true);
  }
  checker.HugeElements(++seed);
}

/// Checks every type and operation with counts around the number of ranks, and around powers of two from 4
/// KiB to 2 MiB, where the engine may change the algorithm or how it divides the data.
void Every(Checker& checker, int ranks) {
  checker.ShareTheWork();
  std::uint64_t seed = 1;
  const auto n = static_cast<std::size_t>(ranks);
  for (const auto& [type, operation] : reference::DefinedPairs()) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n, n + 1}) {
      checker.Typed(type, operation, count, ++seed, true);
    }
    for (std::size_t kib = 4; kib <= 2048; kib *= 2) {
      const std::size_t at = (kib << 10) / SizeOf(type);
      checker.Typed(type, operation, at - 1, ++seed, false);
      checker.Typed(type, operation, at, ++seed, false);
      checker.Typed(type, operation, at + 1, ++seed, kib <= 256);
    }
  }
}

void Random(Checker& checker, int ranks, int steps) {
  std::mt19937_64 random(20'261'121);  // the same sequence on all ranks
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t seed = random();
    const std::size_t count = random() % (random() % 8 == 0 ? 200'000 : 600);
    switch (random() % 6) {
      case 0:
        checker.Broadcast(count, static_cast<int>(random() % static_cast<unsigned>(ranks)), seed);
        break;
      case 1:
        checker.Allgather(count, seed, random() % 2 == 0);
        break;
      case 2:
        checker.Custom(count / 16, seed);
        break;
      case 3:
        checker.Typed(DataType::kDouble, ReduceOp::kSum, count, seed, true);
        break;
      default:
        checker.Typed(static_cast<DataType>(random() % kNumDataTypes),
                      random() % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax, count, seed, false);
    }
  }
}

void Large(Checker& checker, std::size_t bytes) {
  checker.Broadcast(bytes, 0, 1);
  checker.Allgather(bytes, 2, false);
  checker.Typed(DataType::kUChar, ReduceOp::kMax, bytes, 3, false);
}

void Wait(Communicator& communicator, int absent) {
  communicator.Barrier();
  std::printf("ready %d\n", communicator.rank());
  std::fflush(stdout);
  if (communicator.rank() == absent) pause();
  float value = 1;
  communicator.Allreduce(&value, 1, Reduction::Typed(DataType::kFloat, ReduceOp::kSum));
}

/// Calls allreduce forever, so that data is always in transit.
void Stream(Communicator& communicator) {
  communicator.Barrier();
  std::printf("ready %d\n", communicator.rank());
  std::fflush(stdout);
  std::vector<float> values(1 << 20);
  for (;;) {
    communicator.Allreduce(values.data(), values.size(), Reduction::Typed(DataType::kFloat, ReduceOp::kSum));
  }
}

/// Runs 400 allreduces of 64 KiB of counts. On each rank, only every 16th count may differ from zero.
void Histograms(Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.world_size());
  for (std::size_t call = 0; call < 400; ++call) {
    std::vector<double> bins(8192);
    for (std::size_t i = 0; i < bins.size(); ++i) {
      if (i % 16 == communicator.rank() % 16U) bins[i] = static_cast<double>(i + call);
    }
    communicator.Allreduce(bins.data(), bins.size(), Reduction::Typed(DataType::kDouble, ReduceOp::kSum));
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const double expected = i % 16 < ranks ? static_cast<double>(i + call) : 0;
      if (bins[i] != expected)
        throw Failure{fmt::format("bin {} of call {}: {}, not {}", i, call, bins[i], expected)};
    }
  }
}

void Mismatch(Communicator& communicator, const std::string& what) {
  const bool other = communicator.rank() % 2 == 1;
  std::vector<float> values(100'001);
  const Reduction sum = Reduction::Typed(DataType::kFloat, ReduceOp::kSum);
  const Reduction max = Reduction::Typed(DataType::kFloat, ReduceOp::kMax);
  communicator.Barrier();
  if (what == "means" || what == "hosts") {
    // On several hosts with several ranks each, one of these calls uses shared-memory slots and the other
    // uses links. With "hosts", all ranks on a host make the same call.
    const char* const host = std::getenv("WARREN_HOST_GROUP");
    if (what == "means" ? other : host != nullptr && *host == 'b') {
      communicator.Allgather(values.data(), EqualOffsets(communicator.world_size(), 40));
    } else {
      communicator.Allreduce(values.data(), 10, sum);
    }
  } else if (what == "roots") {
    // With two ranks, each takes itself for the root and finishes without waiting.
    communicator.Broadcast(values.data(), 40, communicator.rank() % 2);
    communicator.Allreduce(values.data(), 10, sum);
  } else if (what == "collectives" && other) {
    communicator.Broadcast(values.data(), 40, 0);
    communicator.Barrier();
  } else if (what == "large counts") {
    communicator.Allreduce(values.data(), other ? 100'001 : 100'000, sum);
  } else {
    communicator.Allreduce(values.data(), what == "counts" && other ? 11 : 10,
                           what == "operations" && other ? max : sum);
  }
}

void Senseless(Communicator& communicator) {
  const Reduction sum = Reduction::Typed(DataType::kFloat, ReduceOp::kSum);
  std::vector<float> values(10);
  const std::vector<std::size_t> offsets = {0, 10};
  const auto answer = [](auto&& call) {
    try {
      call();
      std::printf("no answer\n");
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
  };
  answer([&] { communicator.Broadcast(values.data(), 40, 2); });
  answer([&] { communicator.Broadcast(values.data(), 40, -1); });
  answer([&] { communicator.Allreduce(nullptr, 10, sum); });
  answer([&] { communicator.ReduceScatter(values.data(), offsets, sum); });
}

void PrintAlgorithms() {
  for (const collective::Algorithm* algorithm : collective::Algorithms()) {
    if (algorithm->allreduce != nullptr && algorithm->needs == collective::kNothing) {
      fmt::print("{}\n", algorithm->name);
    }
  }
}

int Main(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "algorithms") {
    PrintAlgorithms();
    return 0;
  }
  const std::unique_ptr<Communicator> communicator = Join(ReadSettings({}));
  const int ranks = communicator->world_size();
  Checker checker(*communicator);
  try {
    const std::string what = arguments.empty() ? "all" : arguments[0];
    if (what == "all") {
      All(checker, ranks);
    } else if (what == "every") {
      Every(checker, ranks);
    } else if (what == "random") {
      Random(checker, ranks, std::stoi(arguments.at(1)));
    } else if (what == "large") {
      Large(checker, std::stoull(arguments.at(1)));
    } else if (what == "wait") {
      Wait(*communicator, std::stoi(arguments.at(1)));
    } else if (what == "stream") {
      Stream(*communicator);
    } else if (what == "histograms") {
      Histograms(*communicator);
    } else if (what == "mismatch") {
      Mismatch(*communicator, arguments.at(1));
    } else if (what == "senseless") {
      Senseless(*communicator);
    }
    checker.CheckAgreement();
    communicator->Barrier();
  } catch (const Failure& failure) {
    std::fprintf(stderr, "rank %d: %s\n", communicator->rank(), failure.text.c_str());
    return 1;
  }
  if (communicator->rank() == 0 && (arguments.empty() || arguments[0] != "senseless"))
    std::printf("checksum %016lx\n", checker.common_checksum() ^ checker.checksum());
  std::fflush(stdout);
  communicator->Finalize();
  return 0;
}

}  // namespace
}  // namespace warren::matrix

int main(int argc, char** argv) {
  try {
    return warren::matrix::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collectives_worker: %s\n", error.what());
    return 2;
  }
}
