// The program that the process tests of this folder start under mpirun and srun: one rank that checks its own
// results. If it finds no fault, its last line ends with ": well".
//
//   mpi_worker collectives [<bytes one MPI call may carry>]
//   mpi_worker join              the same checks through Join, which reads WARREN_ENGINE and WARREN_BOOTSTRAP
//   mpi_worker bootstrap mpi|slurm
//   mpi_worker print <text>      prints through TrackerPrint
//   mpi_worker throw             a reduction function throws on every rank
//   mpi_worker misuse            makes invalid calls
//   mpi_worker die <rank>        kills this rank while the others are in a barrier
//   mpi_worker lose <rank>       kills this rank of the native engine before the first call; the others
//                                report the loss
//   mpi_worker again             makes a second bootstrap after the first has ended
//   mpi_worker leave <rank>      this rank exits after the bootstrap's first round; others continue
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/bootstrap/slurm_bootstrap.h"
#include "rabit_engine/engine/join.h"
#include "rabit_engine/mpi/mpi_bootstrap.h"
#include "rabit_engine/mpi/mpi_communicator.h"
#include "rabit_engine/mpi/mpi_engine.h"
#include "rabit_engine/mpi/mpi_library.h"
#include "tests/rabit_engine/engine/random_program.h"

namespace {

using namespace warren;

void Require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("found wrong: " + what);
}

/// Requires that `function` throws an EngineError whose message contains `text`.
template <typename Function>
void RequireError(std::string_view text, const Function& function) {
  try {
    function();
  } catch (const EngineError& error) {
    return Require(std::string_view(error.what()).find(text) != std::string_view::npos, error.what());
  }
  throw std::logic_error(fmt::format("an error was expected: {}", text));
}

Settings SettingsOfTest() {
  Settings settings;
  if (const auto host = wire::FromEnvironment("DMLC_TRACKER_URI")) {
    settings.tracker_host = *host;
    settings.tracker_port = std::atoi(std::getenv("DMLC_TRACKER_PORT"));
    if (const auto token = wire::FromEnvironment(wire::kTokenVariable.data()))
      settings.job_token = wire::JobToken::Parse(*token);
  }
  if (const auto seconds = wire::FromEnvironment("WARREN_CONNECT_TIMEOUT")) {
    settings.connect_timeout = std::chrono::seconds(std::atoi(seconds->c_str()));
  }
  return settings;
}

// --- values: each rank can compute the values of all ranks, and thus the expected results

template <typename T>
T ValueOf(int rank, std::size_t i) {
  // Small enough that sums are exact in any order; products stay in range.
  return static_cast<T>((rank * 7 + i * 3) % 5 + 1);
}

template <typename T>
std::vector<T> ValuesOf(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = ValueOf<T>(rank, i);
  return values;
}

/// All ranks' buffers, combined by the engine's own kernels.
std::vector<std::byte> Folded(const Reduction& reduction, const std::vector<std::vector<std::byte>>& ranks) {
  std::vector<const void*> inputs;
  for (const auto& rank : ranks) inputs.push_back(rank.data());
  std::vector<std::byte> result(ranks[0].size());
  reduction.CombineAll(result.data(), inputs, result.size() / reduction.element_bytes());
  return result;
}

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Checks Allreduce, Reduce and ReduceScatter of the ranks' buffers, aligned and misaligned.
void CheckReduction(Communicator& world, const Reduction& reduction,
                    const std::vector<std::vector<std::byte>>& ranks, const std::string& name) {
  const std::vector<std::byte> expected = Folded(reduction, ranks);
  const std::size_t element = reduction.element_bytes();
  const std::size_t bytes = expected.size();
  const std::size_t count = bytes / element;
  const int rank = world.rank();
  for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
    std::vector<std::byte> storage(bytes + 16);
    std::byte* buffer = storage.data() + shift;
    const auto fill = [&] { std::copy(ranks[rank].begin(), ranks[rank].end(), buffer); };
    const std::string what = fmt::format("{} of {} elements, shifted by {}", name, count, shift);

    fill();
    world.Allreduce(buffer, count, reduction);
    Require(std::equal(expected.begin(), expected.end(), buffer), "allreduce " + what);
    Require(storage[shift + bytes] == std::byte{0}, "bytes behind allreduce " + what);

    const int root = world.world_size() - 1;
    fill();
    world.Reduce(buffer, count, reduction, root);
    if (rank == root) Require(std::equal(expected.begin(), expected.end(), buffer), "reduce " + what);

    // Uneven slices: the last one gets the rest; of the others, the first and every third after it are empty.
    std::vector<std::size_t> offsets{0};
    for (int r = 0; r < world.world_size(); ++r) {
      offsets.push_back(r + 1 == world.world_size() ? count : offsets.back() + (r % 3 == 0 ? 0 : count / 3));
    }
    fill();
    world.ReduceScatter(buffer, offsets, reduction);
    Require(std::equal(expected.begin() + offsets[rank] * element,
                       expected.begin() + offsets[rank + 1] * element, buffer + offsets[rank] * element),
            "reduce-scatter " + what);
  }
}

template <typename T>
void CheckType(Communicator& world, DataType type) {
  for (int op = 0; op < kNumReduceOps; ++op) {
    const auto operation = static_cast<ReduceOp>(op);
    if (!IsDefined(type, operation)) continue;
    for (const std::size_t count : {0, 1, 3001}) {
      std::vector<std::vector<std::byte>> ranks;
      for (int rank = 0; rank < world.world_size(); ++rank)
        ranks.push_back(BytesOf(ValuesOf<T>(rank, count)));
      CheckReduction(world, Reduction::Typed(type, operation), ranks,
                     fmt::format("{} {}", Name(type), Name(operation)));
    }
  }
}

/// Checks reductions of 16-bit floats. `five`: the bit patterns of the five values from which the inputs are
/// made.
void CheckHalf(Communicator& world, DataType type, const std::vector<std::uint16_t>& five) {
  for (const ReduceOp operation : {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kSum, ReduceOp::kProduct}) {
    std::vector<std::vector<std::byte>> ranks;
    for (int rank = 0; rank < world.world_size(); ++rank) {
      std::vector<std::uint16_t> values;
      for (std::size_t i = 0; i < 1001; ++i) values.push_back(five[ValueOf<int>(rank, i) - 1]);
      ranks.push_back(BytesOf(values));
    }
    CheckReduction(world, Reduction::Typed(type, operation), ranks,
                   fmt::format("{} {}", Name(type), Name(operation)));
  }
}

/// Checks that max and min follow the engine's rules even if MPI's differ: a NaN as the left operand is kept,
/// a NaN as the right operand is ignored, and of two zeros the left one is taken. Only for two ranks: with
/// NaN, max and min are not associative, and MPI may group more ranks in any way.
void CheckOddFloats(Communicator& world) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> odd{nan, -0.0F, 0.0F, 1.0F, -std::numeric_limits<float>::infinity()};
  for (const ReduceOp operation : {ReduceOp::kMax, ReduceOp::kMin}) {
    std::vector<std::vector<std::byte>> ranks;
    for (int rank = 0; rank < world.world_size(); ++rank) {
      std::vector<float> values;
      // Every pair of odd values.
      for (std::size_t i = 0; i < odd.size() * odd.size(); ++i) {
        values.push_back(odd[rank == 0 ? i / odd.size() : i % odd.size()]);
      }
      ranks.push_back(BytesOf(values));
    }
    CheckReduction(world, Reduction::Typed(DataType::kFloat, operation), ranks, "odd floats");
  }
}

/// An element of a reduction that is associative but not commutative: the product of 2x2 matrices over the
/// integers modulo 251. An element has 12 bytes, so that no MPI type fits by chance.
struct Matrix {
  std::uint8_t cells[4];
  std::uint8_t padding[8];
};

void MultiplyFromRight(const void* src, void* dst, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    Matrix left;
    Matrix right;
    std::memcpy(&left, static_cast<const std::byte*>(dst) + i * sizeof(Matrix), sizeof left);
    std::memcpy(&right, static_cast<const std::byte*>(src) + i * sizeof(Matrix), sizeof right);
    Matrix product{};
    for (int row = 0; row < 2; ++row) {
      for (int column = 0; column < 2; ++column) {
        product.cells[row * 2 + column] = static_cast<std::uint8_t>(
            (left.cells[row * 2] * right.cells[column] + left.cells[row * 2 + 1] * right.cells[2 + column]) %
            251);
      }
    }
    std::memcpy(static_cast<std::byte*>(dst) + i * sizeof(Matrix), &product, sizeof product);
  }
}

void CheckCustom(Communicator& world) {
  const Reduction reduction = Reduction::Custom(&MultiplyFromRight, nullptr, sizeof(Matrix));
  for (const std::size_t count : {1, 7, 2000}) {
    std::vector<std::vector<std::byte>> ranks;
    for (int rank = 0; rank < world.world_size(); ++rank) {
      std::vector<Matrix> values(count, Matrix{});
      for (std::size_t i = 0; i < count; ++i) {
        for (int cell = 0; cell < 4; ++cell) {
          values[i].cells[cell] = static_cast<std::uint8_t>((rank * 31 + i * 7 + cell * cell * 13 + 1) % 251);
        }
      }
      ranks.push_back(BytesOf(values));
    }
    CheckReduction(world, reduction, ranks, "a function that does not commute");
  }
}

void CheckBroadcast(Communicator& world) {
  for (int root = 0; root < world.world_size(); ++root) {
    for (const std::size_t bytes : {0, 1, 4097, 100001}) {
      std::vector<std::uint8_t> buffer(bytes, static_cast<std::uint8_t>(world.rank() + 1));
      world.Broadcast(buffer.data(), bytes, root);
      Require(std::count(buffer.begin(), buffer.end(), root + 1) == static_cast<std::ptrdiff_t>(bytes),
              "broadcast");
    }
  }
}

void CheckAllgather(Communicator& world) {
  const int size = world.world_size();
  for (const std::size_t unit : {0, 1, 1000}) {
    std::vector<std::size_t> offsets{0};
    for (int rank = 0; rank < size; ++rank)
      offsets.push_back(offsets.back() + (rank % 2 == 0 ? unit * (rank + 1) : 0));
    std::vector<std::uint8_t> expected(offsets.back());
    for (int rank = 0; rank < size; ++rank) {
      std::fill(expected.begin() + offsets[rank], expected.begin() + offsets[rank + 1], rank + 1);
    }
    const std::size_t begin = offsets[world.rank()];
    const std::size_t end = offsets[world.rank() + 1];
    for (const bool knows_all : {true, false}) {
      std::vector<std::uint8_t> buffer(offsets.back());
      std::fill(buffer.begin() + begin, buffer.begin() + end, world.rank() + 1);
      if (knows_all) {
        world.Allgather(buffer.data(), offsets);
      } else {
        world.Allgather(buffer.data(), buffer.size(), begin, end);
      }
      Require(buffer == expected, fmt::format("allgather in units of {}", unit));
    }
  }
}

/// Checks that the root's own slice of a gather or a scatter may be where it should be.
void CheckInPlace(Communicator& world) {
  const auto size = static_cast<std::size_t>(world.world_size());
  const auto rank = static_cast<std::size_t>(world.rank());
  std::vector<int> ranks(size);
  for (std::size_t r = 0; r < size; ++r) ranks[r] = static_cast<int>(r);
  const std::vector<std::size_t> offsets = EqualOffsets(world.world_size(), sizeof(int));
  for (int root = 0; root < world.world_size(); ++root) {
    const bool is_root = root == world.rank();
    std::vector<int> slices(size, -1);
    slices[rank] = world.rank();
    world.Gather(&slices[rank], sizeof(int), slices.data(), offsets, root);
    Require(!is_root || slices == ranks, "gather in place");
    slices = is_root ? ranks : std::vector<int>(size, -1);
    world.Scatter(slices.data(), offsets, &slices[rank], sizeof(int), root);
    Require(slices[rank] == world.rank() && (!is_root || slices == ranks), "scatter in place");
  }
}

/// Checks the other calls, on communicators of every shape. programs_worker.cc runs more random programs,
/// including some with asynchronous calls.
void CheckPrograms(Communicator& world) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    warren::testing::RandomProgram(seed, world, true).Run(40);
  }
  Require(!::testing::Test::HasFailure(), "a random program");
}

void CheckCollectives(Communicator& world) {
  CheckType<char>(world, DataType::kChar);
  CheckType<unsigned char>(world, DataType::kUChar);
  CheckType<int>(world, DataType::kInt);
  CheckType<unsigned>(world, DataType::kUInt);
  CheckType<long>(world, DataType::kLong);
  CheckType<unsigned long>(world, DataType::kULong);
  CheckType<float>(world, DataType::kFloat);
  CheckType<double>(world, DataType::kDouble);
  CheckType<long long>(world, DataType::kLongLong);
  CheckType<unsigned long long>(world, DataType::kULongLong);
  CheckHalf(world, DataType::kFloat16, {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500});
  CheckHalf(world, DataType::kBFloat16, {0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0});
  // These sums are exact as floats, but change if intermediate results are rounded.
  CheckHalf(world, DataType::kFloat16, {0x3c00, 0x1000, 0x1000, 0x9000, 0x1000});
  CheckHalf(world, DataType::kBFloat16, {0x3f80, 0x3b80, 0x3b80, 0xbb80, 0x3b80});
  if (world.world_size() == 2) CheckOddFloats(world);
  CheckCustom(world);
  CheckBroadcast(world);
  CheckAllgather(world);
  CheckInPlace(world);
  CheckPrograms(world);
  world.Barrier();
  Require(!world.host().empty(), "the name of the host");
  Require(world.is_distributed() == (world.world_size() > 1), "is_distributed");
}

// --- the subcommands ---------------------------------------------------------------------------------------

std::unique_ptr<Communicator> JoinWithLimit(const std::string& max_call_bytes) {
  MpiCommunicator::Options options;
  options.max_call_bytes = std::stoul(max_call_bytes);
  return std::make_unique<MpiCommunicator>(LoadMpi(MpiCluesOfThisProcess()), std::move(options));
}

void Throws(const void*, void*, std::size_t, void*) {
  throw std::out_of_range("thrown by the reduction");
}

void CheckThrow(Communicator& world) {
  std::vector<double> values(10, 1.0);
  try {
    world.Allreduce(values.data(), values.size(), Reduction::Custom(&Throws, nullptr, sizeof(double)));
  } catch (const std::out_of_range& error) {
    Require(std::string_view(error.what()) == "thrown by the reduction", error.what());
    return;
  }
  // Depending on the algorithm, some ranks combine nothing and thus do not throw, but the last rank always
  // does.
  Require(world.rank() != world.world_size() - 1 || world.world_size() == 1, "nothing was thrown");
}

void CheckMisuse(Communicator& world) {
  int value = 1;
  const int size = world.world_size();
  RequireError(fmt::format("root {} is not a rank", size),
               [&] { world.Broadcast(&value, sizeof value, size); });
  const std::vector<std::size_t> too_few(size, 0);
  RequireError("ascending from 0", [&] { world.Allgather(&value, too_few); });
  std::vector<char> buffer(100);
  const auto gather = [&](std::size_t begin, std::size_t end) {
    world.Allgather(buffer.data(), buffer.size(), begin, end);
  };
  RequireError("slices must be contiguous in rank order", [&] { gather(0, 100); });
  const std::size_t own = 10 * static_cast<std::size_t>(world.rank());
  RequireError("the last one should end at the total", [&] { gather(own, own + 10); });
  world.Finalize();
  RequireError("after Finalize", [&] { world.Barrier(); });
  RequireError("MPI cannot start twice", [] { JoinMpi(Settings{}); });
}

std::string RecordOf(int rank, int round) {
  // Lengths from zero to several PMI pieces. All byte values occur in the longer records.
  constexpr std::size_t kLengths[] = {0, 10, 700, 5000, 20000};
  std::string record(kLengths[(rank + round) % std::size(kLengths)], '\0');
  for (std::size_t i = 0; i < record.size(); ++i) record[i] = static_cast<char>(i * 31 + rank + round);
  return record;
}

std::unique_ptr<Bootstrap> MakeBootstrap(std::string_view kind) {
  return kind == "mpi" ? MakeMpiBootstrap(SettingsOfTest()) : MakeSlurmBootstrap(SettingsOfTest());
}

void CheckRound(Bootstrap& bootstrap, int round) {
  const std::vector<std::string> records = bootstrap.Allgather(RecordOf(bootstrap.rank(), round));
  Require(static_cast<int>(records.size()) == bootstrap.world_size(), "the number of records");
  for (int rank = 0; rank < bootstrap.world_size(); ++rank) {
    Require(records[rank] == RecordOf(rank, round), fmt::format("record {} in round {}", rank, round));
  }
}

std::string Place(int rank, int world_size) {
  return fmt::format("rank {} of {}", rank, world_size);
}

std::string RunBootstrap(const std::string& kind, const std::string& rank_that_leaves) {
  const auto bootstrap = MakeBootstrap(kind);
  CheckRound(*bootstrap, 0);
  if (rank_that_leaves == std::to_string(bootstrap->rank())) std::_Exit(0);
  for (int round = 1; round < 6; ++round) CheckRound(*bootstrap, round);
  bootstrap->Print(fmt::format("rank {} prints\n", bootstrap->rank()));
  bootstrap->Shutdown();
  return Place(bootstrap->rank(), bootstrap->world_size());
}

std::string RunLose(Communicator& world, const std::string& victim) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until all ranks have joined
  if (victim == std::to_string(world.rank())) std::raise(SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto begin = std::chrono::steady_clock::now();
  try {
    float value = 1;
    world.Allreduce(&value, 1, Reduction::Typed(DataType::kFloat, ReduceOp::kSum));
  } catch (const LostPeer& error) {
    const auto end = std::chrono::steady_clock::now();
    return fmt::format("rank {} lost rank {} after {:.3f} s ({})", world.rank(), error.rank(),
                       std::chrono::duration<double>(end - begin).count(), error.what());
  }
  throw std::runtime_error("the allreduce went on without the lost rank");
}

std::string RunAgain() {
  const auto bootstrap = MakeBootstrap("slurm");
  CheckRound(*bootstrap, 0);
  bootstrap->Shutdown();
  RequireError("cannot start again in the same process", [] { MakeBootstrap("slurm"); });
  return Place(bootstrap->rank(), bootstrap->world_size());
}

std::string RunWorld(const std::string& what, std::unique_ptr<Communicator> world,
                     const std::string& argument) {
  if (what == "join" || what == "collectives") {
    CheckCollectives(*world);
  } else if (what == "print") {
    world->TrackerPrint(argument);
  } else if (what == "throw") {
    CheckThrow(*world);
  } else if (what == "misuse") {
    CheckMisuse(*world);
  } else if (what == "die") {
    if (argument == std::to_string(world->rank())) std::raise(SIGKILL);
    world->Barrier();
  } else {
    throw std::logic_error("no such test: " + what);
  }
  world->Finalize();
  return Place(world->rank(), world->world_size());
}

std::string Run(const std::string& what, const std::string& argument) {
  if (what == "bootstrap") return RunBootstrap(argument, "");
  if (what == "leave") return RunBootstrap("slurm", argument);
  if (what == "again") return RunAgain();
  if (what == "lose") return RunLose(*Join(ReadSettings({})), argument);
  if (what == "join") return RunWorld(what, Join(ReadSettings({})), argument);
  if (what == "collectives" && !argument.empty()) return RunWorld(what, JoinWithLimit(argument), argument);
  return RunWorld(what, JoinMpi(SettingsOfTest()), argument);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    fmt::print("{}: well\n", Run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : ""));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
