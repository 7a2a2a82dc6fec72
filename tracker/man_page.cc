#include "tracker/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace warren::tracker {
namespace {

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

/// The maximum length of a line: mandoc -T lint warns about longer lines.
constexpr std::size_t kLineLength = 79;

/// Escapes text for roff. Dashes become minus signs, which can be copied to a shell; words in backquotes
/// become bold.
std::string Escaped(std::string_view text) {
  std::string out;
  bool bold = false;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '`') {
      bold = !bold;
      out += bold ? "\\fB" : "\\fR";
    } else {
      out += c;
    }
  }
  return out;
}

/// Wraps the text. No line of the result begins like a roff request.
std::string Lines(std::string_view text) {
  std::string lines;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > 0 && column + 1 + word.size() > kLineLength) {
      lines += '\n';
      column = 0;
    }
    if (column > 0) lines += ' ';
    if (column == 0 && (word.starts_with('.') || word.starts_with('\''))) lines += "\\&";
    lines += word;
    column += word.size() + 1;
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return lines + '\n';
}

/// Escapes the text, and starts each sentence on a new line, by which roff recognizes sentences.
std::string Sentences(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    std::size_t end = text.find(". ");
    // Sentences begin with a capital; "e.g. " does not end a sentence.
    while (end != std::string_view::npos && end + 2 < text.size() &&
           !(text[end + 2] >= 'A' && text[end + 2] <= 'Z')) {
      end = text.find(". ", end + 1);
    }
    lines += Lines(Escaped(text.substr(0, end == std::string_view::npos ? end : end + 1)));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
  return lines;
}

}  // namespace

std::string ManText(const ManPage& page) {
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"Warren {}\" \"Warren\"\n"
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n.B {}\n{}\n",
      Upper(Escaped(page.program)), Escaped(page.version), Escaped(page.program), Escaped(page.summary),
      Escaped(page.program), Escaped(page.synopsis));
  for (const ManSection& section : page.sections) {
    text += fmt::format(".SH {}\n", Escaped(Upper(section.title)));
    bool first = true;
    for (const std::string& paragraph : section.paragraphs) {
      text += first ? "" : ".PP\n";
      text += Sentences(paragraph);
      first = false;
    }
    for (const ManItem& item : section.items) {
      text += fmt::format(".TP\n.B {}\n{}", Escaped(item.term), Sentences(item.text));
    }
  }
  return text;
}

}  // namespace warren::tracker
