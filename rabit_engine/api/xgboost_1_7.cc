// The API for XGBoost 1.7: the five functions through which all its communication goes, with the names and
// the ABI that they have in libxgboost.so (docs/explanation/abi.md). If this library is linked or preloaded
// before libxgboost, its functions replace XGBoost's, and an unmodified XGBoost trains over Warren's engine.
//
// The declarations repeat XGBoost's for the linker: names, argument types and the order of IEngine's virtual
// functions are XGBoost 1.7's and must not change. Do not include rabit's headers here: in them, the same
// names refer to librabit's functions.
//
// As in XGBoost, a thread has only the job that it joined itself.
#include <dlfcn.h>
#include <dmlc/logging.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "rabit_engine/api/caller_function.h"
#include "rabit_engine/api/face.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/api/xgboost_use.h"

namespace rabit::engine {

class IEngine {
 public:
  using PreprocFunction = void(void* argument);
  using ReduceFunction = void(const void* src, void* dst, int count, const MPI::Datatype& type);

  virtual void Allgather(void* buffer, std::size_t total_bytes, std::size_t begin, std::size_t end,
                         std::size_t previous_bytes) = 0;
  virtual void Allreduce(void* buffer, std::size_t element_bytes, std::size_t count, ReduceFunction reducer,
                         PreprocFunction prepare, void* prepare_argument) = 0;
  virtual void Broadcast(void* buffer, std::size_t bytes, int root) = 0;
  virtual int LoadCheckPoint() = 0;
  virtual void CheckPoint() = 0;
  virtual int VersionNumber() const = 0;
  virtual int GetRingPrevRank() const = 0;
  virtual int GetRank() const = 0;
  virtual int GetWorldSize() const = 0;
  virtual bool IsDistributed() const = 0;
  virtual std::string GetHost() const = 0;
  virtual void TrackerPrint(const std::string& text) = 0;

 protected:
  ~IEngine() = default;  // not virtual: XGBoost's vtable has no entry for it
};

namespace mpi {
enum OpType : int { kMax = 0, kMin = 1, kSum = 2, kBitwiseOR = 3 };
enum DataType : int {
  kChar = 0,
  kUChar = 1,
  kInt = 2,
  kUInt = 3,
  kLong = 4,
  kULong = 5,
  kFloat = 6,
  kDouble = 7,
  kLongLong = 8,
  kULongLong = 9
};
}  // namespace mpi

#define WARREN_SEAM __attribute__((visibility("default")))
WARREN_SEAM bool Init(int argc, char* argv[]);
WARREN_SEAM bool Finalize();
WARREN_SEAM IEngine* GetEngine();
WARREN_SEAM void Allgather(void* buffer, std::size_t total_bytes, std::size_t begin, std::size_t end,
                           std::size_t previous_bytes);
WARREN_SEAM void Allreduce_(void* buffer, std::size_t element_bytes, std::size_t count,
                            IEngine::ReduceFunction reducer, mpi::DataType type, mpi::OpType operation,
                            IEngine::PreprocFunction prepare, void* prepare_argument);

namespace {

using warren::Operation;
using warren::api::Call;
using warren::api::CallerFunction;
using warren::api::Prepare;
using warren::api::Session;
using warren::api::Threads;
using warren::api::Translated;
using Face = warren::api::Face<Threads::kSeparate>;

// --- XGBoost's own communication ---

/// XGBoost's own five functions. WARREN_XGBOOST_ENGINE=own selects them, so that both engines can be compared
/// without relinking.
struct OwnEngine {
  decltype(&rabit::engine::Init) init;
  decltype(&rabit::engine::Finalize) finalize;
  decltype(&rabit::engine::GetEngine) get_engine;
  decltype(&rabit::engine::Allgather) allgather;
  decltype(&rabit::engine::Allreduce_) allreduce;
};

template <typename Function>
void Find(void* library, const char* symbol, Function& function) {
  void* address = dlsym(RTLD_NEXT, symbol);
  // Python loads libxgboost in a way that RTLD_NEXT does not see.
  if (address == nullptr && library != nullptr) address = dlsym(library, symbol);
  if (address == nullptr) {
    throw dmlc::Error(std::string("WARREN_XGBOOST_ENGINE=own: XGBoost's own ") + symbol +
                      " was not found; run without librabit_xgboost.so instead");
  }
  function = reinterpret_cast<Function>(address);
}

OwnEngine FindOwnEngine() {
  void* library = dlopen("libxgboost.so.0", RTLD_LAZY | RTLD_NOLOAD);
  OwnEngine own{};
  Find(library, "_ZN5rabit6engine4InitEiPPc", own.init);
  Find(library, "_ZN5rabit6engine8FinalizeEv", own.finalize);
  Find(library, "_ZN5rabit6engine9GetEngineEv", own.get_engine);
  Find(library, "_ZN5rabit6engine9AllgatherEPvmmmm", own.allgather);
  Find(
      library,
      "_ZN5rabit6engine10Allreduce_EPvmmPFvPKvS1_iRKN3MPI8DatatypeEENS0_3mpi8DataTypeENSA_6OpTypeEPFvS1_ES1_",
      own.allreduce);
  return own;
}

/// Returns XGBoost's own functions, or null if Warren's engine is used.
const OwnEngine* Own() {
  static const std::optional<OwnEngine> own = []() -> std::optional<OwnEngine> {
    const char* value = std::getenv("WARREN_XGBOOST_ENGINE");
    const std::string_view choice = value == nullptr ? "" : value;
    if (choice.empty() || choice == "auto" || choice == "warren") return std::nullopt;
    if (choice == "own") return FindOwnEngine();
    throw dmlc::Error("WARREN_XGBOOST_ENGINE is '" + std::string(choice) +
                      "', expected 'own', 'warren' or 'auto'");
  }();
  return own ? &*own : nullptr;
}

// --- Warren's engine ---

/// The number of this thread's checkpoints outside a job; XGBoost counts them, too.
thread_local int version_outside = 0;

class Seam final : public IEngine {
 public:
  void Allgather(void* buffer, std::size_t total_bytes, std::size_t begin, std::size_t end,
                 std::size_t /*previous_bytes*/) override {
    const Call call{"XGBoost's allgather"};
    Face::WithSession(call, [&](Session& session) {
      session.Run(call, Operation::Allgather(buffer, total_bytes, begin, end));
    });
  }

  void Allreduce(void* buffer, std::size_t element_bytes, std::size_t count, ReduceFunction reducer,
                 PreprocFunction prepare, void* prepare_argument) override {
    const Call call{"XGBoost's allreduce"};
    Face::WithSession(call, [&](Session& session) {
      CallerFunction function(reducer, element_bytes);
      session.Allreduce(call, buffer, count, function.reduction(), Prepare{prepare, prepare_argument});
    });
  }

  void AllreduceTyped(void* buffer, std::size_t element_bytes, std::size_t count, ReduceFunction reducer,
                      mpi::DataType type, mpi::OpType operation, PreprocFunction prepare,
                      void* prepare_argument) {
    if (!Session::KnowsReduction(type, operation)) {
      Allreduce(buffer, element_bytes, count, reducer, prepare, prepare_argument);
      return;
    }
    const Call call{"XGBoost's allreduce"};
    Face::WithSession(call, [&](Session& session) {
      session.AllreduceTyped(call, buffer, count, type, operation, Prepare{prepare, prepare_argument});
    });
  }

  void Broadcast(void* buffer, std::size_t bytes, int root) override {
    const Call call{"XGBoost's broadcast"};
    Face::WithSession(
        call, [&](Session& session) { session.Run(call, Operation::Broadcast(buffer, bytes, root)); });
  }

  /// As in XGBoost, models are not stored; only the versions are counted.
  int LoadCheckPoint() override { return 0; }
  void CheckPoint() override {
    if (const auto session = Session::Find(Threads::kSeparate)) {
      session->CheckPoint(Call{"XGBoost's checkpoint"}, std::nullopt, std::nullopt);
    } else {
      ++version_outside;
    }
  }
  int VersionNumber() const override { return Face::version_or(version_outside); }
  int GetRingPrevRank() const override { return Face::ring_prev_rank(); }
  int GetRank() const override { return Face::rank(); }
  int GetWorldSize() const override { return Face::world_size(); }
  bool IsDistributed() const override { return Face::is_distributed(); }
  std::string GetHost() const override { return Face::host(); }
  void TrackerPrint(const std::string& text) override {
    Face::TrackerPrint(Call{"XGBoost's print"}, text,
                       [](const std::string& line) { std::fputs(line.c_str(), stdout); });
  }
};

// Never destroyed: XGBoost may be used while the process exits.
Seam& TheSeam() {
  static Seam& seam = *new Seam;
  return seam;
}

}  // namespace

bool Init(int argc, char* argv[]) {
  warren::api::NoteXgboostsUse();
  if (const OwnEngine* own = Own()) return own->init(argc, argv);
  Translated([&] { Session::Init(Call{"XGBoost's Init"}, argc, argv); });
  return true;
}

bool Finalize() {
  if (const OwnEngine* own = Own()) return own->finalize();
  return Face::Finalize(Call{"XGBoost's Finalize"});
}

IEngine* GetEngine() {
  warren::api::NoteXgboostsUse();
  if (const OwnEngine* own = Own()) return own->get_engine();
  return &TheSeam();
}

void Allgather(void* buffer, std::size_t total_bytes, std::size_t begin, std::size_t end,
               std::size_t previous_bytes) {
  GetEngine()->Allgather(buffer, total_bytes, begin, end, previous_bytes);
}

void Allreduce_(void* buffer, std::size_t element_bytes, std::size_t count, IEngine::ReduceFunction reducer,
                mpi::DataType type, mpi::OpType operation, IEngine::PreprocFunction prepare,
                void* prepare_argument) {
  if (const OwnEngine* own = Own()) {
    own->allreduce(buffer, element_bytes, count, reducer, type, operation, prepare, prepare_argument);
    return;
  }
  TheSeam().AllreduceTyped(buffer, element_bytes, count, reducer, type, operation, prepare, prepare_argument);
}

}  // namespace rabit::engine
