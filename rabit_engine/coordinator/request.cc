#include "rabit_engine/coordinator/request.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "rabit_engine/base/error.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::coordinator {
namespace {

class Writer {
 public:
  template <typename T>
  void Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Put(const std::string& text) {
    Put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <typename T>
  void PutAll(const std::vector<T>& values) {
    Put(static_cast<std::uint32_t>(values.size()));
    for (const T& value : values) Put(value);
  }
  void Put(const Request& request) {
    Put(request.name);
    const Signature& what = request.signature;
    Put(what.kind);
    Put(what.type);
    Put(what.operation);
    Put(what.average);
    Put(what.custom);
    Put(what.element_bytes);
    Put(what.root);
    Put(what.count);
    Put(what.digest);
    Put(request.priority);
    Put(request.group);
    Put(request.group_size);
    PutAll(request.sent);
    PutAll(request.received);
  }
  void Put(const Message::Entry& entry) {
    Put(entry.request);
    Put(entry.waiting);
  }
  void Put(const Agreed& agreed) {
    Put(agreed.request);
    Put(agreed.error);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void Get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(&value, Next(sizeof(value)), sizeof(value));
  }
  void Get(std::string& text) {
    std::uint32_t length = 0;
    Get(length);
    text.assign(Next(length), length);
  }
  template <typename T>
  void GetAll(std::vector<T>& values) {
    std::uint32_t count = 0;
    Get(count);
    for (std::uint32_t i = 0; i < count; ++i) Get(values.emplace_back());
  }
  void Get(Request& request) {
    Get(request.name);
    Signature& what = request.signature;
    Get(what.kind);
    Get(what.type);
    Get(what.operation);
    Get(what.average);
    Get(what.custom);
    Get(what.element_bytes);
    Get(what.root);
    Get(what.count);
    Get(what.digest);
    Get(request.priority);
    Get(request.group);
    Get(request.group_size);
    GetAll(request.sent);
    GetAll(request.received);
  }
  void Get(Message::Entry& entry) {
    Get(entry.request);
    Get(entry.waiting);
  }
  void Get(Agreed& agreed) {
    Get(agreed.request);
    Get(agreed.error);
  }
  void End() const {
    if (!bytes_.empty()) Fail();
  }

 private:
  const char* Next(std::size_t count) {
    if (count > bytes_.size()) Fail();
    const char* const begin = bytes_.data();
    bytes_.remove_prefix(count);
    return begin;
  }
  [[noreturn]] static void Fail() {
    throw EngineError(
        "what another rank says about named operations has another form: do all ranks have "
        "the same version of librabit?");
  }

  std::string_view bytes_;
};

}  // namespace

std::string_view Name(Kind kind) {
  constexpr std::string_view kNames[] = {"allreduce", "reduce-scatter", "broadcast",
                                         "allgather", "all-to-all",     "barrier"};
  return kNames[static_cast<int>(kind)];
}

std::string Describe(const Signature& what) {
  const bool begins_with_a = Name(what.kind).front() == 'a';
  std::string text = fmt::format("{} {}", begins_with_a ? "an" : "a", Name(what.kind));
  const bool reduces = what.kind == Kind::kAllreduce || what.kind == Kind::kReduceScatter;
  if (reduces) {
    text += fmt::format(" ({})", what.custom    ? "a function"
                                 : what.average ? "average"
                                                : warren::Name(static_cast<Operation>(what.operation)));
  }
  if (what.kind == Kind::kBroadcast) text += fmt::format(" from rank {}", what.root);
  if (what.kind == Kind::kBarrier || what.kind == Kind::kAllToAll) return text;
  if (reduces && !what.custom) {
    return text +
           fmt::format(" of {} elements of {}", what.count, warren::Name(static_cast<DataType>(what.type)));
  }
  text += fmt::format(" of {} bytes", what.bytes());
  if (what.digest != 0) text += fmt::format(" in slices {:04x}", what.digest & 0xffff);
  return text;
}

std::string Encode(const Message& message) {
  Writer writer;
  writer.PutAll(message.requests);
  writer.Put(message.joins);
  writer.Put(message.leaves);
  return writer.Take();
}

std::string Encode(const Answer& answer) {
  Writer writer;
  writer.PutAll(answer.forgotten);
  writer.PutAll(answer.agreed);
  writer.PutAll(answer.joined);
  writer.Put(answer.last_joined);
  writer.Put(answer.left);
  writer.Put(answer.settings.fusion_bytes);
  writer.Put(answer.settings.cycle_us);
  writer.Put(answer.settings.patience);
  return writer.Take();
}

Message DecodeMessage(std::string_view bytes) {
  Reader reader(bytes);
  Message message;
  reader.GetAll(message.requests);
  reader.Get(message.joins);
  reader.Get(message.leaves);
  reader.End();
  return message;
}

Answer DecodeAnswer(std::string_view bytes) {
  Reader reader(bytes);
  Answer answer;
  reader.GetAll(answer.forgotten);
  reader.GetAll(answer.agreed);
  reader.GetAll(answer.joined);
  reader.Get(answer.last_joined);
  reader.Get(answer.left);
  reader.Get(answer.settings.fusion_bytes);
  reader.Get(answer.settings.cycle_us);
  reader.Get(answer.settings.patience);
  reader.End();
  return answer;
}

}  // namespace warren::coordinator
