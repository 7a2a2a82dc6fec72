#include "tracker/note.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

namespace warren::tracker {
namespace {

using Kind = Note::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 16> kWords = {{{Kind::kWorld, "world"},
                                                                       {Kind::kAssigned, "assigned"},
                                                                       {Kind::kUnassigned, "unassigned"},
                                                                       {Kind::kLinked, "linked"},
                                                                       {Kind::kListens, "listens"},
                                                                       {Kind::kShutDown, "shutdown"},
                                                                       {Kind::kReturned, "returned"},
                                                                       {Kind::kMember, "member"},
                                                                       {Kind::kBroken, "broken"},
                                                                       {Kind::kClosed, "closed"},
                                                                       {Kind::kVouched, "vouched"},
                                                                       {Kind::kGeneration, "generation"},
                                                                       {Kind::kEntered, "entered"},
                                                                       {Kind::kEnded, "ended"},
                                                                       {Kind::kDone, "done"},
                                                                       {Kind::kResumed, "resumed"}}};

bool NamesATask(Kind kind) {
  return kind == Kind::kAssigned || kind == Kind::kMember || kind == Kind::kVouched || kind == Kind::kEntered;
}

// Task ids and hosts come from workers and can contain any byte. Spaces, % and all bytes outside printable
// ASCII become %XX, as in a URL. The empty string becomes a single %.
std::string Escape(std::string_view text) {
  if (text.empty()) return "%";
  std::string out;
  for (const char c : text) {
    if (c > ' ' && c < 0x7f && c != '%') {
      out += c;
    } else {
      out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::optional<std::string> Unescape(std::string_view text) {
  if (text == "%") return "";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    std::uint8_t byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
    if (error != std::errc{} || end != text.data() + i + 3) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

std::optional<int> Number(std::string_view word) {
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || value < 0) return std::nullopt;
  return value;
}

/// Reads the words of a line one after the other. A missing or invalid word makes the whole line invalid.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  bool empty() const { return rest_.empty(); }
  std::string_view Next() {
    const std::size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    good_ = good_ && !word.empty();
    return word;
  }
  int NextNumber() { return Or(Number(Next()), 0); }
  std::string NextText() { return Or(Unescape(Next()), std::string()); }
  bool good() const { return good_; }

 private:
  template <typename Value>
  Value Or(std::optional<Value> found, Value otherwise) {
    good_ = good_ && found.has_value();
    return std::move(found).value_or(std::move(otherwise));
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

std::string Encode(const Note& note) {
  std::string line;
  for (const auto& [kind, word] : kWords) {
    if (kind == note.kind) line = fmt::format("{} {}", word, note.rank);
  }
  if (NamesATask(note.kind)) line += fmt::format(" {} {}", Escape(note.task_id), Escape(note.host));
  if (note.kind == Kind::kListens) line += fmt::format(" {}", note.port);
  if (note.kind == Kind::kVouched) line += fmt::format(" {}", Escape(note.ticket));
  for (const int peer : note.peers) line += fmt::format(" {}", peer);
  return line;
}

Note DecodeNote(std::string_view line) {
  Words words(line);
  Note note;
  const std::string_view name = words.Next();
  bool known = false;
  for (const auto& [kind, word] : kWords) {
    if (word != name) continue;
    note.kind = kind;
    known = true;
  }
  note.rank = words.NextNumber();
  if (NamesATask(note.kind)) {
    note.task_id = words.NextText();
    note.host = words.NextText();
  }
  if (note.kind == Kind::kListens) note.port = words.NextNumber();
  if (note.kind == Kind::kVouched) note.ticket = words.NextText();
  if (note.kind == Kind::kLinked || note.kind == Kind::kListens) {
    while (!words.empty() && words.good()) note.peers.push_back(words.NextNumber());
  }
  if (!known || !words.good() || !words.empty()) {
    throw std::invalid_argument(fmt::format("'{}' is not a valid entry", line.substr(0, 80)));
  }
  return note;
}

void RequirePossible(const Note& note, bool possible) {
  if (!possible) throw std::invalid_argument(fmt::format("'{}' is not valid at this point", Encode(note)));
}

}  // namespace warren::tracker
