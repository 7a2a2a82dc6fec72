#include "wire/vouch.h"

#include <algorithm>

#include "wire/classic.h"

namespace warren::wire {
namespace {

constexpr std::string_view kTicketCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr char kSeparator = '#';

bool IsTicket(std::string_view text) {
  return text.size() >= kMinTicketBytes && text.size() <= kMaxTicketBytes &&
         text.find_first_not_of(kTicketCharacters) == std::string_view::npos;
}

}  // namespace

std::string Encode(const Vouch& vouch) {
  return Writer().Int(kVouchMagic).String(vouch.ticket + ' ' + vouch.task_id).Take();
}

std::optional<Vouch> NextVouch(Reader& reader) {
  const auto text = reader.String("vouch", classic::kMaxTaskIdBytes + kMaxTicketBytes + 1);
  if (!text) return std::nullopt;
  const std::size_t end = std::min(text->find(' '), text->size());
  if (end == text->size() || !IsTicket(std::string_view(*text).substr(0, end))) {
    throw ProtocolError("its vouch has no ticket of 16 to 64 letters and digits");
  }
  return Vouch{text->substr(end + 1), text->substr(0, end)};
}

std::optional<Vouch> SplitTicket(std::string_view task_id) {
  const std::size_t at = task_id.rfind(kSeparator);
  if (at == std::string_view::npos || !IsTicket(task_id.substr(at + 1))) return std::nullopt;
  return Vouch{std::string(task_id.substr(0, at)), std::string(task_id.substr(at + 1))};
}

}  // namespace warren::wire
