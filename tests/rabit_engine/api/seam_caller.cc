// Calls the five functions of the namespace rabit::engine and each virtual function of IEngine, as XGBoost
// 1.7 does. The engine is ours or, with WARREN_XGBOOST_ENGINE=own, XGBoost's: if the checks succeed with
// both, the declarations below match XGBoost's. Runs in jobs of any size.
#include <dmlc/logging.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace MPI {
class Datatype;
}

namespace rabit::engine {

class IEngine {
 public:
  using Reduce = void(const void*, void*, int, const MPI::Datatype&);
  using Prepare = void(void*);
  virtual void Allgather(void*, std::size_t, std::size_t, std::size_t, std::size_t) = 0;
  virtual void Allreduce(void*, std::size_t, std::size_t, Reduce, Prepare, void*) = 0;
  virtual void Broadcast(void*, std::size_t, int) = 0;
  virtual int LoadCheckPoint() = 0;
  virtual void CheckPoint() = 0;
  virtual int VersionNumber() const = 0;
  virtual int GetRingPrevRank() const = 0;
  virtual int GetRank() const = 0;
  virtual int GetWorldSize() const = 0;
  virtual bool IsDistributed() const = 0;
  virtual std::string GetHost() const = 0;
  virtual void TrackerPrint(const std::string&) = 0;

 protected:
  ~IEngine() = default;
};
namespace mpi {
enum OpType : int { kMax, kMin, kSum, kBitwiseOR };
enum DataType : int { kChar, kUChar, kInt, kUInt, kLong, kULong, kFloat, kDouble, kLongLong, kULongLong };
}  // namespace mpi

bool Init(int, char**);
bool Finalize();
IEngine* GetEngine();
void Allgather(void*, std::size_t, std::size_t, std::size_t, std::size_t);
void Allreduce_(void*, std::size_t, std::size_t, IEngine::Reduce, mpi::DataType, mpi::OpType,
                IEngine::Prepare, void*);

}  // namespace rabit::engine

using namespace rabit::engine;

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

template <typename T>
void Add(const void* src, void* dst, int count, const MPI::Datatype&) {
  for (int i = 0; i < count; ++i) static_cast<T*>(dst)[i] += static_cast<const T*>(src)[i];
}

struct Pair {
  float a, b, c;
};
void AddPairs(const void* src, void* dst, int count, const MPI::Datatype&) {
  for (int i = 0; i < count; ++i) {
    static_cast<Pair*>(dst)[i].a += static_cast<const Pair*>(src)[i].a;
    static_cast<Pair*>(dst)[i].c += static_cast<const Pair*>(src)[i].c;
  }
}

}  // namespace

int main(int argc, char* argv[]) {
  // Before Init: a world of one, as in XGBoost.
  Require(GetEngine()->GetRank() == 0 && GetEngine()->GetWorldSize() == 1, "rank before Init");
  Require(!GetEngine()->IsDistributed() && GetEngine()->GetHost().empty(), "questions before Init");
  Require(GetEngine()->LoadCheckPoint() == 0, "loading before Init");
  GetEngine()->CheckPoint();
  Require(GetEngine()->VersionNumber() == 1, "version before Init");

  Require(Init(argc, argv) && Init(argc, argv), "Init, twice");
  IEngine* const engine = GetEngine();
  const int rank = engine->GetRank();
  const int world = engine->GetWorldSize();
  const auto previous = static_cast<std::size_t>((rank + world - 1) % world);
  const auto here = static_cast<std::size_t>(rank);
  const auto ranks = static_cast<std::size_t>(world);
  Require(engine->IsDistributed() && !engine->GetHost().empty(), "questions");
  Require(world == 1 || engine->GetRingPrevRank() == static_cast<int>(previous), "ring");
  Require(engine->VersionNumber() == 0, "fresh version");

  // Init joins a job for the calling thread only: another thread is alone.
  std::thread([] {
    Require(GetEngine()->GetWorldSize() == 1 && !GetEngine()->IsDistributed(), "questions of another thread");
    Require(Finalize(), "Finalize of another thread");
  }).join();
  Require(engine->GetWorldSize() == world, "world size after another thread's Finalize");

  // Slices of 4, 8, 12... bytes, through the virtual function and through the free function.
  for (const bool virtual_door : {true, false}) {
    std::vector<std::size_t> begins = {0};
    for (std::size_t r = 0; r < ranks; ++r) begins.push_back(begins.back() + r + 1);
    std::vector<int> slices(begins.back(), -1);
    for (std::size_t i = begins[here]; i < begins[here + 1]; ++i) slices[i] = rank;
    const std::size_t total = 4 * slices.size();
    const std::size_t previous_bytes = 4 * (previous + 1);
    if (virtual_door) {
      engine->Allgather(slices.data(), total, 4 * begins[here], 4 * begins[here + 1], previous_bytes);
    } else {
      Allgather(slices.data(), total, 4 * begins[here], 4 * begins[here + 1], previous_bytes);
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t i = begins[r]; i < begins[r + 1]; ++i)
        Require(slices[i] == static_cast<int>(r), "allgather");
    }
  }

  std::vector<double> numbers(1000, 0.5);
  Allreduce_(numbers.data(), sizeof(double), numbers.size(), Add<double>, mpi::kDouble, mpi::kSum, nullptr,
             nullptr);
  Require(numbers.front() == 0.5 * world && numbers.back() == 0.5 * world, "typed allreduce");
  // The caller's function is used if the type number is unknown to rabit.
  short small = 3;  // NOLINT
  Allreduce_(&small, sizeof(small), 1, Add<short>, static_cast<mpi::DataType>(77), mpi::kSum, nullptr,
             nullptr);
  Require(small == 3 * world, "allreduce of an unknown type");
  std::vector<Pair> pairs(100, Pair{1, 7, 2});
  engine->Allreduce(
      pairs.data(), sizeof(Pair), pairs.size(), AddPairs, [](void* p) { static_cast<Pair*>(p)->a = 5; },
      pairs.data());
  Require(pairs[0].a == 5 * world && pairs[99].a == world && pairs[99].b == 7 && pairs[99].c == 2 * world,
          "own function");

  for (int root = 0; root < world; ++root) {
    std::string text = rank == root ? "from the root" : std::string(13, ' ');
    engine->Broadcast(text.data(), text.size(), root);
    Require(text == "from the root", "broadcast");
  }

  engine->CheckPoint();
  Require(engine->VersionNumber() == 1 && engine->LoadCheckPoint() == 0, "versions");
  if (rank == 0) engine->TrackerPrint("printed through the engine\n");

  if (argc > 1 && std::string(argv[1]) == "fail") {
    try {
      engine->Broadcast(nullptr, 8, 0);
      return 1;
    } catch (const dmlc::Error& error) {
      std::printf("caught: %s\n", error.what());
    }
  }
  Require(Finalize() && Finalize(), "Finalize, twice");
  Require(GetEngine()->GetWorldSize() == 1, "world size after Finalize");
  return 0;
}
