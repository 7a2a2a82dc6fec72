#include "rabit_engine/coordinator/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "rabit_engine/base/error.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::coordinator {
namespace {

/// The collectives that can have names. The code of a collective in messages is its index in this list.
constexpr Collective kNamed[] = {Collective::kAllreduce, Collective::kReduceScatter, Collective::kBroadcast,
                                 Collective::kAllgather, Collective::kAllToAll,      Collective::kBarrier};

// Each Visit lists a type's fields once, for both encoding and decoding.

template <typename Archive>
void Visit(Archive& archive, Signature& what) {
  archive(what.kind, what.type, what.operation, what.average, what.custom, what.element_bytes, what.root,
          what.count, what.digest);
}
template <typename Archive>
void Visit(Archive& archive, Request& request) {
  archive(request.name, request.signature, request.priority, request.group, request.group_size, request.sent,
          request.received);
}
template <typename Archive>
void Visit(Archive& archive, RankReport::Entry& entry) {
  archive(entry.request, entry.waiting);
}
template <typename Archive>
void Visit(Archive& archive, RankReport& message) {
  archive(message.requests, message.joins, message.leaves);
}
template <typename Archive>
void Visit(Archive& archive, Agreed& agreed) {
  archive(agreed.request, agreed.error);
}
template <typename Archive>
void Visit(Archive& archive, Settings& settings) {
  archive(settings.fusion_bytes, settings.cycle_us, settings.patience);
}
template <typename Archive>
void Visit(Archive& archive, Answer& answer) {
  archive(answer.forgotten, answer.agreed, answer.joined, answer.last_joined, answer.left, answer.settings);
}

class Writer {
 public:
  template <typename... Values>
  void operator()(Values&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  void Put(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else {
      Visit(*this, value);
    }
  }
  void Put(Collective& kind) {
    auto code = static_cast<std::uint8_t>(std::find(std::begin(kNamed), std::end(kNamed), kind) - kNamed);
    Put(code);
  }
  void Put(std::string& text) {
    auto length = static_cast<std::uint32_t>(text.size());
    Put(length);
    bytes_ += text;
  }
  template <typename T>
  void Put(std::vector<T>& values) {
    auto count = static_cast<std::uint32_t>(values.size());
    Put(count);
    for (T& value : values) Put(value);
  }

  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (Get(values), ...);
  }
  void End() const {
    if (!bytes_.empty()) Fail();
  }

 private:
  template <typename T>
  void Get(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      std::memcpy(&value, Next(sizeof(value)), sizeof(value));
    } else {
      Visit(*this, value);
    }
  }
  void Get(Collective& kind) {
    std::uint8_t code = 0;
    Get(code);
    if (code >= std::size(kNamed)) Fail();
    kind = kNamed[code];
  }
  void Get(std::string& text) {
    std::uint32_t length = 0;
    Get(length);
    text.assign(Next(length), length);
  }
  template <typename T>
  void Get(std::vector<T>& values) {
    std::uint32_t count = 0;
    Get(count);
    for (std::uint32_t i = 0; i < count; ++i) Get(values.emplace_back());
  }
  const char* Next(std::size_t count) {
    if (count > bytes_.size()) Fail();
    const char* const begin = bytes_.data();
    bytes_.remove_prefix(count);
    return begin;
  }
  [[noreturn]] static void Fail() {
    throw EngineError(
        "another rank sent an invalid message about named operations: do all ranks have the same version of librabit?");
  }

  std::string_view bytes_;
};

/// Takes a copy because Visit needs mutable fields.
template <typename T>
std::string Encoded(T value) {
  Writer writer;
  Visit(writer, value);
  return writer.Take();
}

template <typename T>
T Decoded(std::string_view bytes) {
  Reader reader(bytes);
  T value;
  Visit(reader, value);
  reader.End();
  return value;
}

}  // namespace

std::string Describe(const Signature& what) {
  const bool begins_with_a = Name(what.kind).front() == 'a';
  std::string text = fmt::format("{} {}", begins_with_a ? "an" : "a", Name(what.kind));
  const bool reduces = Reduces(what.kind);
  if (reduces) {
    text += fmt::format(" ({})", what.custom    ? "a function"
                                 : what.average ? "average"
                                                : warren::Name(static_cast<ReduceOp>(what.operation)));
  }
  if (what.kind == Collective::kBroadcast) text += fmt::format(" from rank {}", what.root);
  if (what.kind == Collective::kBarrier || what.kind == Collective::kAllToAll) return text;
  if (reduces && !what.custom) {
    return text +
           fmt::format(" of {} elements of {}", what.count, warren::Name(static_cast<DataType>(what.type)));
  }
  text += fmt::format(" of {} bytes", what.bytes());
  if (what.digest != 0) text += fmt::format(" in slices {:04x}", what.digest & 0xffff);
  return text;
}

std::string Encode(const RankReport& message) {
  return Encoded(message);
}
std::string Encode(const Answer& answer) {
  return Encoded(answer);
}
RankReport DecodeReport(std::string_view bytes) {
  return Decoded<RankReport>(bytes);
}
Answer DecodeAnswer(std::string_view bytes) {
  return Decoded<Answer>(bytes);
}

}  // namespace warren::coordinator
