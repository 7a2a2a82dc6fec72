#include "submit/options/yaml_text.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>

#include "submit/options/values.h"

namespace warren::submit {
namespace {

/// Records the place where a document begins.
struct DocumentStart final : YAML::EventHandler {
  YAML::Mark mark;

  void OnDocumentStart(const YAML::Mark& at) override { mark = at; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

/// Whether the text needs no quotes because YAML can only read it as a string.
bool IsPlainScalar(std::string_view text) {
  constexpr std::array<std::string_view, 9> kWords = {"true", "false", "null", "yes", "no",
                                                      "on",   "off",   "y",    "n"};
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), fits) &&
         std::find(kWords.begin(), kWords.end(), Lower(std::string(text))) == kWords.end();
}

/// Whether the text can be written unchanged under "|": whole lines of printable ASCII text, of which the
/// first is neither empty nor indented and the last is not empty.
bool IsBlock(std::string_view text) {
  if (text.find('\n') == std::string_view::npos || text.back() != '\n' || text.ends_with("\n\n"))
    return false;
  if (text.front() == ' ' || text.front() == '\n') return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c == '\n' || (c >= ' ' && c < 0x7f); });
}

/// The value as JSON, which YAML reads as the same value. It is written in ASCII, since YAML treats some
/// other characters as line breaks.
std::string QuotedAsAscii(const Json& value) {
  std::string text = value.dump(-1, ' ', true);
  // For a character above U+FFFF, JSON has two escapes of six characters each (a surrogate pair), where YAML
  // has a single escape of ten characters.
  std::size_t at = text.find('\\');
  while (at != std::string::npos) {
    const bool is_unicode = text[at + 1] == 'u';
    const unsigned long high = is_unicode ? std::stoul(text.substr(at + 2, 4), nullptr, 16) : 0;
    if (high >= 0xd800 && high < 0xdc00) {
      const unsigned long low = std::stoul(text.substr(at + 8, 4), nullptr, 16);
      text.replace(at, 12, fmt::format("\\U{:08x}", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
      at += 10;
    } else {
      at += is_unicode ? 6 : 2;
    }
    at = text.find('\\', at);
  }
  return text;
}

void WriteNode(std::string& out, const Json& node, std::size_t indent);

/// Writes `node` after a "key:" or "-" that is indented by `indent`.
void WriteBehind(std::string& out, const Json& node, std::size_t indent) {
  const bool nested = node.is_structured() && !node.empty();
  if (nested) {
    out += '\n';
    WriteNode(out, node, indent + 2);
  } else if (node.is_string() && IsBlock(node.get_ref<const std::string&>())) {
    out += " |\n";
    std::string_view text = node.get_ref<const std::string&>();
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n') + 1);
      if (line.size() > 1) out.append(indent + 2, ' ');
      out += line;
      text.remove_prefix(line.size());
    }
  } else if (node.is_string() && IsPlainScalar(node.get_ref<const std::string&>())) {
    out += ' ' + node.get_ref<const std::string&>() + '\n';
  } else {
    out += ' ' + QuotedAsAscii(node) + '\n';
  }
}

void WriteNode(std::string& out, const Json& node, std::size_t indent) {
  if (node.is_array()) {
    for (const Json& element : node) {
      if (element.is_structured() && !element.empty()) {
        // The element's first line follows the dash.
        std::string inner;
        WriteNode(inner, element, indent + 2);
        inner.replace(indent, 2, "- ");
        out += inner;
      } else {
        out.append(indent, ' ');
        out += '-';
        WriteBehind(out, element, indent);
      }
    }
    return;
  }
  for (const auto& [key, value] : node.items()) {
    out.append(indent, ' ');
    out += (IsPlainScalar(key) ? key : QuotedAsAscii(key)) + ':';
    WriteBehind(out, value, indent);
  }
}

}  // namespace

std::string YamlText(const Json& value) {
  std::string text;
  WriteNode(text, value, 0);
  return text;
}

std::optional<YamlPlace> SecondDocument(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart first;
  DocumentStart second;
  if (!parser.HandleNextDocument(first) || !parser.HandleNextDocument(second)) return std::nullopt;
  return YamlPlace{second.mark.line, second.mark.column, second.mark.pos == first.mark.pos};
}

}  // namespace warren::submit
