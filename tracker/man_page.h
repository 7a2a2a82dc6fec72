// Manual pages in roff, for man and mandoc. Programs generate their pages from their option tables.
#pragma once

#include <string>
#include <vector>

namespace warren::tracker {

/// An option or another term, with its explanation.
struct ManItem {
  std::string term;
  std::string text;
};

/// A section: its paragraphs, then its items.
struct ManSection {
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<ManItem> items;
};

struct ManPage {
  std::string program;
  std::string version;
  std::string summary;  ///< what the program does, in a few words
  std::string synopsis;
  std::vector<ManSection> sections;
};

/// Returns the page, for section 1. Texts are plain: nothing in them is interpreted as roff. Words between
/// two backquotes, which mark names of options and variables, become bold.
std::string ManText(const ManPage& page);

}  // namespace warren::tracker
