// Rabit's C++ API: the functions called by the inline functions of rabit/rabit.h.
#include <dmlc/logging.h>
#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "rabit/internal/engine.h"
#include "rabit/internal/io.h"
#include "rabit_engine/api/caller_function.h"
#include "rabit_engine/api/face.h"
#include "rabit_engine/api/session.h"

namespace rabit {
namespace engine {
namespace {

using warren::Operation;
using warren::api::Call;
using warren::api::CallerFunction;
using warren::api::Prepare;
using warren::api::Session;
using warren::api::Threads;
using warren::api::Translated;
using Face = warren::api::Face<Threads::kShare>;

std::string Save(const Serializable& model) {
  std::string bytes;
  utils::MemoryBufferStream stream(&bytes);
  model.Save(&stream);
  return bytes;
}

void Load(const std::string& bytes, Serializable& model) {
  // The const_cast is safe: the stream is only read, but has no const constructor.
  utils::MemoryFixSizeBuffer stream(const_cast<char*>(bytes.data()), bytes.size());
  model.Load(&stream);
}

class Engine final : public IEngine {
 public:
  void Allgather(void* sendrecvbuf, std::size_t total_size, std::size_t slice_begin, std::size_t slice_end,
                 std::size_t /*size_prev_slice*/, const char* file, int line, const char* caller) override {
    const Call call{"rabit::Allgather", file, line, caller};
    Face::WithSession(call, [&](Session& session) {
      session.Run(call, Operation::Allgather(sendrecvbuf, total_size, slice_begin, slice_end));
    });
  }

  void AllgatherSlice(void* sendrecvbuf, std::size_t type_nbytes, std::size_t total_size,
                      std::size_t slice_begin, std::size_t slice_size_or_end, const char* file, int line,
                      const char* caller) override {
    const Call call{"rabit::Allgather", file, line, caller};
    Face::WithSession(call, [&](Session& session) {
      session.AllgatherSlice(call, sendrecvbuf, type_nbytes, total_size, slice_begin, slice_size_or_end);
    });
  }

  void Allreduce(void* sendrecvbuf, std::size_t type_nbytes, std::size_t count, ReduceFunction reducer,
                 PreprocFunction prepare_fun, void* prepare_arg, const char* file, int line,
                 const char* caller) override {
    const Call call{"rabit::Allreduce", file, line, caller};
    Face::WithSession(call, [&](Session& session) {
      if (reducer == nullptr) session.Refuse(call, "the reduction function is NULL");
      if (type_nbytes == 0) session.Refuse(call, "elements of 0 bytes cannot be reduced");
      constexpr int kMost = std::numeric_limits<int>::max();  // the function asks for the size as an int
      if (type_nbytes > kMost) {
        session.Refuse(
            call, fmt::format("elements of {} bytes cannot be reduced; at most {} can", type_nbytes, kMost));
      }
      CallerFunction function(reducer, type_nbytes);
      session.Allreduce(call, sendrecvbuf, count, function.reduction(), Prepare{prepare_fun, prepare_arg});
    });
  }

  void AllreduceTyped(void* sendrecvbuf, std::size_t count, mpi::DataType type, mpi::OpType operation,
                      const Prepare& prepare, const Call& call) {
    Face::WithSession(call, [&](Session& session) {
      session.AllreduceTyped(call, sendrecvbuf, count, type, operation, prepare);
    });
  }

  void Broadcast(void* sendrecvbuf, std::size_t size, int root, const char* file, int line,
                 const char* caller) override {
    const Call call{"rabit::Broadcast", file, line, caller};
    Face::WithSession(
        call, [&](Session& session) { session.Run(call, Operation::Broadcast(sendrecvbuf, size, root)); });
  }

  void InitAfterException() override {
    throw dmlc::Error("rabit: InitAfterException does nothing here; an engine that has failed stays failed");
  }

  int LoadCheckPoint(Serializable* global_model, Serializable* local_model) override {
    const Call call{"rabit::LoadCheckPoint"};
    return Face::WithSession(call, [&](Session& session) {
      if (global_model == nullptr) session.Refuse(call, "the global model is NULL");
      const auto loaded = session.LoadCheckPoint(call, true, local_model != nullptr);
      if (!loaded) return 0;
      Load(*loaded->global, *global_model);
      if (local_model != nullptr) Load(*loaded->local, *local_model);
      return loaded->version;
    });
  }

  void CheckPoint(const Serializable* global_model, const Serializable* local_model) override {
    const Call call{"rabit::CheckPoint"};
    Face::WithSession(call, [&](Session& session) {
      if (global_model == nullptr) session.Refuse(call, "the global model is NULL");
      std::optional<std::string> local;
      if (local_model != nullptr) local = Save(*local_model);
      session.CheckPoint(call, Save(*global_model), std::move(local));
    });
  }

  void LazyCheckPoint(const Serializable* global_model) override {
    const Call call{"rabit::LazyCheckPoint"};
    Face::WithSession(call, [&](Session& session) {
      if (global_model == nullptr) session.Refuse(call, "the global model is NULL");
      session.LazyCheckPoint(call, [global_model] { return Save(*global_model); });
    });
  }

  int LoadCheckPoint() override {
    return Face::WithSession(Call{"rabit::LoadCheckPoint"}, [](Session&) { return 0; });
  }

  void CheckPoint() override {
    const Call call{"rabit::CheckPoint"};
    Face::WithSession(call, [&](Session& session) { session.CheckPoint(call, std::nullopt, std::nullopt); });
  }

  int VersionNumber() const override { return Face::version_or(0); }
  int GetRingPrevRank() const override { return Face::ring_prev_rank(); }
  int GetRank() const override { return Face::rank(); }
  int GetWorldSize() const override { return Face::world_size(); }
  bool IsDistributed() const override { return Face::is_distributed(); }
  std::string GetHost() const override { return Face::host(); }
  void TrackerPrint(const std::string& msg) override {
    Face::TrackerPrint(Call{"rabit::TrackerPrint"}, msg,
                       [](const std::string& text) { utils::HandlePrint(text.c_str()); });
  }
};

// Never destroyed: destructors of the program's statics may still query the rank.
Engine& TheEngine() {
  static Engine& engine = *new Engine;
  return engine;
}

}  // namespace

inline namespace warren_v1 {

bool Init(int argc, char* argv[]) {
  Translated([&] { Session::Init(Call{"rabit::Init"}, argc, argv); });
  return true;
}

bool Finalize() {
  return Face::Finalize(Call{"rabit::Finalize"});
}

IEngine* GetEngine() {
  return &TheEngine();
}

void Allgather(void* sendrecvbuf, std::size_t total_size, std::size_t slice_begin, std::size_t slice_end,
               std::size_t size_prev_slice, const char* _file, const int _line, const char* _caller) {
  TheEngine().Allgather(sendrecvbuf, total_size, slice_begin, slice_end, size_prev_slice, _file, _line,
                        _caller);
}

void Allreduce_(void* sendrecvbuf, std::size_t /*type_nbytes*/, std::size_t count,
                IEngine::ReduceFunction /*red*/, mpi::DataType dtype, mpi::OpType op,
                IEngine::PreprocFunction prepare_fun, void* prepare_arg, const char* _file, const int _line,
                const char* _caller) {
  TheEngine().AllreduceTyped(sendrecvbuf, count, dtype, op, Prepare{prepare_fun, prepare_arg},
                             Call{"rabit::Allreduce", _file, _line, _caller});
}

int ReduceHandle::TypeSize(const MPI::Datatype& dtype) {
  return static_cast<int>(dtype.type_size);
}

}  // namespace warren_v1
}  // namespace engine
}  // namespace rabit
