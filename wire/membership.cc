#include "wire/membership.h"

#include <charconv>
#include <string>

#include "wire/classic.h"

namespace warren::wire {
namespace {

constexpr char kBeforeGeneration = '@';
constexpr std::size_t kMemberHead = 2 * sizeof(std::int32_t);
constexpr std::size_t kGenerationHead = 4 * sizeof(std::int32_t);

/// Throws ProtocolError unless the word is from 1 to `last`.
template <typename Word>
Word Checked(std::int32_t word, Word last) {
  if (word < 1 || word > static_cast<std::int32_t>(last)) {
    throw ProtocolError("its membership has an unknown word, " + std::to_string(word));
  }
  return static_cast<Word>(word);
}

/// Returns whether a message whose last field is a string has arrived completely. `head`: the size of the
/// fields up to and including the string's length. Throws ProtocolError if the length is negative or above
/// `max_bytes`.
bool HasArrived(const Reader& reader, std::size_t head, std::size_t max_bytes) {
  const auto length = reader.PeekInt(head - sizeof(std::int32_t));
  if (!length) return false;
  if (*length < 0 || static_cast<std::size_t>(*length) > max_bytes) {
    throw ProtocolError("a text of its membership has " + std::to_string(*length) +
                        " bytes, expected at most " + std::to_string(max_bytes));
  }
  return reader.available() >= head + static_cast<std::size_t>(*length);
}

}  // namespace

std::string Encode(const MemberMessage& message) {
  return Writer().Int(static_cast<std::int32_t>(message.word)).String(message.task_id).Take();
}

std::string Encode(const GenerationMessage& message) {
  return Writer()
      .Int(static_cast<std::int32_t>(message.word))
      .Int(message.generation)
      .Int(message.size)
      .String(std::string_view(message.story).substr(0, kMaxStoryBytes))
      .Take();
}

std::optional<MemberMessage> NextMemberMessage(Reader& reader) {
  if (!HasArrived(reader, kMemberHead, classic::kMaxTaskIdBytes)) return std::nullopt;
  MemberMessage message;
  message.word = Checked(*reader.Int(), MemberWord::kStay);
  message.task_id = *reader.String("task id", classic::kMaxTaskIdBytes);
  return message;
}

std::optional<GenerationMessage> NextGenerationMessage(Reader& reader) {
  if (!HasArrived(reader, kGenerationHead, kMaxStoryBytes)) return std::nullopt;
  GenerationMessage message;
  message.word = Checked(*reader.Int(), GenerationWord::kFailed);
  message.generation = *reader.Int();
  message.size = *reader.Int();
  message.story = *reader.String("story", kMaxStoryBytes);
  return message;
}

std::string TaskInGeneration(std::string_view task_id, int generation) {
  return std::string(task_id) + kBeforeGeneration + std::to_string(generation);
}

std::pair<std::string, int> SplitGeneration(const std::string& task_id) {
  const std::size_t at = task_id.rfind(kBeforeGeneration);
  if (at == std::string::npos) return {task_id, 0};
  int generation = 0;
  const char* const end = task_id.data() + task_id.size();
  const auto [stop, error] = std::from_chars(task_id.data() + at + 1, end, generation);
  if (error != std::errc{} || stop != end || generation < 1) return {task_id, 0};
  return {task_id.substr(0, at), generation};
}

}  // namespace warren::wire
