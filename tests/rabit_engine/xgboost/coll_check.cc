// Checks that calls of XGBoost's class Coll are intercepted with the right arguments, for one of the
// signatures in XGBoost's versions and the calling convention of the processor that this is compiled for. If
// so, prints "all calls arrive as they were made" and exits with 0.
//
//     coll_check by_reference|by_value|with_context
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <typeinfo>
#include <vector>

#include "rabit_engine/xgboost/coll_calls.h"
#include "rabit_engine/xgboost/coll_table.h"
#include "rabit_engine/xgboost/loaded_library.h"
#include "rabit_engine/xgboost/vtable.h"
#include "tests/rabit_engine/xgboost/stand_in_coll.h"

struct Comm {
  int number = 0;
};

namespace by_reference {
STAND_IN_COLL(Coll, Comm, STAND_IN_NOTHING, ::stand_in::CopiedSpan)
}
namespace by_value {
STAND_IN_COLL(Coll, Comm, STAND_IN_NOTHING, ::stand_in::Span)
}
namespace with_context {
STAND_IN_COLL(Coll, Comm, STAND_IN_CONTEXT, ::stand_in::Span)
}

namespace {

using namespace warren::xgboost;  // NOLINT(google-build-using-namespace)

int own_calls = 0;  // calls of the stand-in's own functions

}  // namespace

// The stand-in's own functions, which count their calls and return their arguments as text.
#define OWN_FUNCTIONS(NAMESPACE, FIRST, SPAN)                                                             \
  namespace NAMESPACE {                                                                                   \
  stand_in::Result Coll::Allreduce(FIRST Comm const& comm, SPAN<std::int8_t> data, stand_in::Type type,   \
                                   stand_in::Op op) {                                                     \
    ++own_calls;                                                                                          \
    return stand_in::Result(std::to_string(comm.number) + " " + std::to_string(data.size) + " " +         \
                            std::to_string(static_cast<int>(type)) + " " +                                \
                            std::to_string(static_cast<int>(op)));                                        \
  }                                                                                                       \
  stand_in::Result Coll::Broadcast(FIRST Comm const& comm, SPAN<std::int8_t> data, std::int32_t root) {   \
    ++own_calls;                                                                                          \
    return stand_in::Result(std::to_string(comm.number) + " " + std::to_string(data.size) + " " +         \
                            std::to_string(root));                                                        \
  }                                                                                                       \
  stand_in::Result Coll::Allgather(FIRST Comm const& comm, SPAN<std::int8_t> data) {                      \
    ++own_calls;                                                                                          \
    return stand_in::Result(std::to_string(comm.number) + " " + std::to_string(data.size));               \
  }                                                                                                       \
  stand_in::Result Coll::AllgatherV(FIRST Comm const& comm, SPAN<std::int8_t const> data,                 \
                                    SPAN<std::int64_t const> sizes, SPAN<std::int64_t> recv_segments,     \
                                    SPAN<std::int8_t> recv, stand_in::AllgatherVAlgo algo) {              \
    ++own_calls;                                                                                          \
    return stand_in::Result(std::to_string(comm.number) + " " + std::to_string(data.size) + " " +         \
                            std::to_string(sizes.size) + " " + std::to_string(recv_segments.size) + " " + \
                            std::to_string(recv.size) + " " + std::to_string(static_cast<int>(algo)));    \
  }                                                                                                       \
  }
OWN_FUNCTIONS(by_reference, STAND_IN_NOTHING, stand_in::CopiedSpan)
OWN_FUNCTIONS(by_value, STAND_IN_NOTHING, stand_in::Span)
OWN_FUNCTIONS(with_context, STAND_IN_CONTEXT, stand_in::Span)

namespace {

void Check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(1);
}

/// The arguments of the calls.
struct Passed {
  Comm comm{3};
  std::vector<std::int8_t> data = std::vector<std::int8_t>(5);
  std::vector<std::int64_t> sizes{5, 6};
  std::vector<std::int64_t> segments = std::vector<std::int64_t>(3);
  std::vector<std::int8_t> received = std::vector<std::int8_t>(11);
};

/// Checks the arguments of all calls. Handles all calls if `takes` is set, and none otherwise.
class Looker final : public CallHandler {
 public:
  Looker(Convention convention, Passed& passed) : convention_(convention), passed_(passed) {}

  bool Handle(CollFunction function, const Words& words) override {
    ++calls;
    switch (function) {
      case CollFunction::kAllreduce: {
        const AllreduceCall expected{nullptr, Data(), 9, 5};
        Check(ConventionOf(words, expected) == convention_, "the convention");
        for (const auto& other :
             {AllreduceCall{nullptr, {passed_.data.size() + 1, Data().data}, 9, 5},
              AllreduceCall{nullptr, {passed_.data.size(), Data().data + 1}, 9, 5},
              AllreduceCall{nullptr, Data(), 8, 5}, AllreduceCall{nullptr, Data(), 9, 4}}) {
          Check(!ConventionOf(words, other), "a convention of another call");
        }
        const AllreduceCall call = ReadAllreduce(convention_, words);
        Check(call.comm == &passed_.comm && IsData(call.data) && call.type == 9 && call.operation == 5,
              "allreduce");
        break;
      }
      case CollFunction::kBroadcast: {
        const BroadcastCall call = ReadBroadcast(convention_, words);
        Check(call.comm == &passed_.comm && IsData(call.data) && call.root == 7, "broadcast");
        break;
      }
      case CollFunction::kAllgather: {
        const AllgatherCall call = ReadAllgather(convention_, words);
        Check(call.comm == &passed_.comm && IsData(call.data), "allgather");
        break;
      }
      case CollFunction::kAllgatherV: {
        const AllgatherVCall call = ReadAllgatherV(convention_, words);
        Check(call.comm == &passed_.comm && IsData(call.data), "allgather-v's data");
        Check(call.sizes.data() == passed_.sizes.data() && call.sizes.size() == passed_.sizes.size(),
              "allgather-v's sizes");
        Check(call.segments.data() == passed_.segments.data() &&
                  call.segments.size() == passed_.segments.size(),
              "allgather-v's segments");
        Check(call.received.data == reinterpret_cast<std::byte*>(passed_.received.data()) &&
                  call.received.size == passed_.received.size(),
              "where allgather-v receives");
        break;
      }
    }
    return takes;
  }

  bool takes = false;
  int calls = 0;

 private:
  Bytes Data() const { return {passed_.data.size(), reinterpret_cast<std::byte*>(passed_.data.data())}; }
  bool IsData(const Bytes& bytes) const {
    return bytes.size == passed_.data.size() && bytes.data == Data().data;
  }

  Convention convention_;
  Passed& passed_;
};

/// Makes all four calls. `taken`: whether the handler handles them.
template <template <typename> typename SpanOf, typename Coll, typename... First>
void CallAll(Coll& coll, Passed& passed, bool taken, First... first) {
  auto& [comm, data, sizes, segments, received] = passed;
  const auto check = [&](const stand_in::Result& result, const char* own) {
    Check(taken ? result.OK() : !result.OK() && result.text() == own, own);
  };
  const SpanOf<std::int8_t> span{data.size(), data.data()};
  check(coll.Allreduce(first..., comm, span, stand_in::Type::kU2, stand_in::Op::kBitwiseXOR), "3 5 9 5");
  check(coll.Broadcast(first..., comm, span, 7), "3 5 7");
  check(coll.Allgather(first..., comm, span), "3 5");
  check(coll.AllgatherV(first..., comm, {data.size(), data.data()}, {sizes.size(), sizes.data()},
                        {segments.size(), segments.data()}, {received.size(), received.data()},
                        stand_in::AllgatherVAlgo::kBcast),
        "3 5 2 3 11 1");
}

template <typename Coll, template <typename> typename SpanOf, typename... First>
void Run(Convention convention, First... first) {
  const auto self = LoadedLibrary::Containing(reinterpret_cast<const void*>(&Check));
  Check(self.has_value(), "this program is loaded");
  const auto table = FindVtable(self->image(), typeid(Coll).name(), kNumCollFunctions);
  const auto coll = std::make_shared<Coll>();
  const void* of_object = nullptr;
  std::memcpy(&of_object, static_cast<const void*>(coll.get()), sizeof(of_object));
  Check(of_object == table.data(), "the table is that of objects");
  Intercept(table, self->image());
  Intercept(table, self->image());  // changes nothing
  bool refused = false;
  try {
    Intercept(table.subspan(1), self->image());
  } catch (const Refusal&) {
    refused = true;
  }
  Check(refused, "another table is refused");

  Passed passed;
  Looker looker(convention, passed);
  // volatile hides from the compiler which function is called.
  Coll* volatile hidden = coll.get();
  CallAll<SpanOf>(*hidden, passed, false, first...);
  Check(own_calls == 4 && looker.calls == 0, "without a handler all calls are XGBoost's");
  {
    const HandledBy handled(&looker);
    CallAll<SpanOf>(*hidden, passed, false, first...);
    Check(own_calls == 8 && looker.calls == 4, "what the handler leaves is XGBoost's");
    looker.takes = true;
    CallAll<SpanOf>(*hidden, passed, true, first...);
    Check(own_calls == 8 && looker.calls == 8, "what the handler takes is not");
  }
  CallAll<SpanOf>(*hidden, passed, false, first...);
  Check(own_calls == 12 && looker.calls == 8, "without the handler all calls are XGBoost's again");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string convention = argc == 2 ? argv[1] : "";
  const stand_in::Context context;
  if (convention == "by_reference") {
    Run<by_reference::Coll, stand_in::CopiedSpan>(Convention::kSpansByReference);
  } else if (convention == "by_value") {
    Run<by_value::Coll, stand_in::Span>(Convention::kSpansByValue);
  } else if (convention == "with_context") {
    Run<with_context::Coll, stand_in::Span>(Convention::kWithContext, &context);
  } else {
    return 2;
  }
  std::puts("all calls arrive as they were made");
  return 0;
}
