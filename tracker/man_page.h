// Manual pages in roff, for man and mandoc: the programs write their own from the tables of their options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warren::tracker {

/// An option and what it does, or any other term.
struct ManItem {
  std::string term;
  std::string text;
};

/// Paragraphs, then items.
struct ManSection {
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<ManItem> items;
};

struct ManPage {
  std::string program;
  std::string version;
  std::string summary;  ///< a few words: what it does
  std::string synopsis;
  std::vector<ManSection> sections;
};

/// The page for section 1. Texts are plain ones; nothing in them is taken for roff. A word between two ` is
/// bold, as names of options and variables are.
std::string ManText(const ManPage& page);

}  // namespace warren::tracker
