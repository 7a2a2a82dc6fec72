#include "submit/job/shell_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace warren::submit {
namespace {

/// The maximum nesting of $(...) and `...`; commands nested deeper are ignored.
constexpr int kMostSubstitutions = 20;

std::string_view WithoutTabs(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
  return line;
}

class ShellReader {
 public:
  ShellReader(std::string_view text, int depth) : text_(text), depth_(depth) {}

  std::vector<SimpleCommand> Read() {
    for (; at_ < text_.size(); ++at_) ReadCharacter(text_[at_]);
    EndCommand();
    return std::move(commands_);
  }

 private:
  using Kind = SimpleCommand::Kind;

  void ReadCharacter(char c) {
    switch (c) {
      case ' ':
      case '\t':
      case '\r':
        return EndWord();
      case '\n':
        EndCommand();
        return ReadHereDocuments();
      case ';':
      case '|':
      case '&':
        return EndCommand();
      case '`':
        in_word_ = true;
        word_ += '$';
        return Substitute('`');
      case '(':
      case ')':
        EndCommand();
        commands_.push_back({c == '(' ? Kind::kOpens : Kind::kCloses, {}, {}, {}});
        return;
      case '<':
      case '>':
        return ReadRedirection(c);
      case '#':
        if (in_word_) break;
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
        return;
      case '\'':
      case '"':
        in_word_ = true;
        return ReadQuoted(c);
      case '\\':
        ++at_;
        if (at_ >= text_.size() || text_[at_] == '\n') return;
        c = text_[at_];
        break;
      case '$':
        if (NextIs('(')) {
          in_word_ = true;
          word_ += '$';
          ++at_;
          return Substitute(')');
        }
        break;
      default:
        break;
    }
    in_word_ = true;
    word_ += c;
  }

  bool NextIs(char c) const { return at_ + 1 < text_.size() && text_[at_ + 1] == c; }

  void ReadQuoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
      } else if (quote == '"' && text_[at_] == '$' && NextIs('(')) {
        word_ += '$';
        ++at_;
        Substitute(')');
        continue;
      }
      word_ += text_[at_];
    }
  }

  /// Reads a substituted command, from the opening parenthesis or back quote to the closing one.
  void Substitute(char close) {
    const std::size_t begin = at_ + 1;
    int depth = 1;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == close && --depth == 0) break;
      if (text_[at_] == '(' && close == ')') ++depth;
    }
    const std::string_view inner = text_.substr(std::min(begin, text_.size()), at_ - begin);
    word_ += fmt::format("({})", inner);
    if (depth_ < kMostSubstitutions) substituted_.emplace_back(inner);
  }

  void ReadRedirection(char c) {
    if (word_.find_first_not_of("0123456789") == std::string::npos) in_word_ = false, word_.clear();
    EndWord();
    if (c == '<' && NextIs('<')) {
      ++at_;
      if (NextIs('<')) {
        ++at_;
        target_ = Target::kHereString;
      } else {
        strips_tabs_ = NextIs('-');
        if (strips_tabs_) ++at_;
        target_ = Target::kHereDocument;
      }
      return;
    }
    while (NextIs('&') || NextIs('>') || NextIs('|')) ++at_;
    target_ = c == '<' ? Target::kInput : Target::kOutput;
  }

  void EndWord() {
    if (!std::exchange(in_word_, false)) return;
    std::string word = std::exchange(word_, {});
    switch (std::exchange(target_, Target::kNone)) {
      case Target::kNone:
        command_.words.push_back(std::move(word));
        break;
      case Target::kOutput:
        break;
      case Target::kInput:
        command_.input_file = std::move(word);
        break;
      case Target::kHereString:
        command_.here_document = std::move(word);
        break;
      case Target::kHereDocument:
        last_line_ = std::move(word);
        command_.here_document.emplace();
        break;
    }
  }

  void EndCommand() {
    EndWord();
    target_ = Target::kNone;
    for (const std::string& text : std::exchange(substituted_, {})) {
      commands_.push_back({Kind::kOpens, {}, {}, {}});
      for (SimpleCommand& one : ShellReader(text, depth_ + 1).Read()) commands_.push_back(std::move(one));
      commands_.push_back({Kind::kCloses, {}, {}, {}});
    }
    if (last_line_) awaited_.push_back({commands_.size(), *std::exchange(last_line_, {}), strips_tabs_});
    if (!command_.words.empty() || command_.here_document) commands_.push_back(std::move(command_));
    command_ = {};
  }

  /// Reads the here-documents that were announced on the line that ends here.
  void ReadHereDocuments() {
    for (const auto& [command, last_line, strips_tabs] : std::exchange(awaited_, {})) {
      while (at_ + 1 < text_.size()) {
        const std::size_t begin = at_ + 1;
        at_ = std::min(text_.find('\n', begin), text_.size());
        const std::string_view line = text_.substr(begin, at_ - begin);
        if ((strips_tabs ? WithoutTabs(line) : line) == last_line) break;
        if (command < commands_.size() && commands_[command].here_document)
          commands_[command].here_document->append(line).push_back('\n');
      }
    }
  }

  struct HereDocument {
    std::size_t command;    ///< index in commands_
    std::string last_line;  ///< end mark
    bool strips_tabs;       ///< before the end mark
  };
  enum class Target { kNone, kOutput, kInput, kHereString, kHereDocument };

  std::string_view text_;
  int depth_;
  std::size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  Target target_ = Target::kNone;  ///< the role of the next word
  SimpleCommand command_;
  std::optional<std::string> last_line_;  ///< the end mark of the command's here-document
  bool strips_tabs_ = false;              ///< the here-document begins with <<-
  std::vector<HereDocument> awaited_;     ///< the here-documents to read
  std::vector<std::string> substituted_;  ///< texts of $(...) and `...` in the command
  std::vector<SimpleCommand> commands_;
};

}  // namespace

std::vector<SimpleCommand> CommandsOfShell(std::string_view script) {
  return ShellReader(script, 0).Read();
}

}  // namespace warren::submit
