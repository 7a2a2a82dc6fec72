// Finding a command's file, quoting and splitting words for a shell, and naming commands.
#include "submit/process/command.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_folder.h"

namespace warren::submit {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

/// Runs in a directory that contains only an empty directory "bin".
class FindCommandTest : public testing::Test {
 protected:
  FindCommandTest() { fs::create_directory("bin"); }

  static void MakeFile(const std::string& name, bool executable) {
    std::ofstream(name) << "#!/bin/sh\n";
    fs::permissions(name, executable ? fs::perms::owner_all : fs::perms::owner_read);
  }

  static CommandError ErrorOf(const std::string& name, const std::string& path) {
    try {
      FindCommand(name, path);
    } catch (const CommandError& error) {
      return error;
    }
    return {"no error", 0};
  }

  const TemporaryWorkingFolder folder_;
};

TEST_F(FindCommandTest, BareNameIsSearchedOnPathFirst) {
  MakeFile("bin/run", true);
  MakeFile("run", true);
  const FoundCommand found = FindCommand("run", "nowhere:bin");
  EXPECT_EQ(found.argv0, "run");
  EXPECT_EQ(found.file, "bin/run");
  EXPECT_THAT(found.note, HasSubstr("./run for the one in this directory"));
}

TEST_F(FindCommandTest, BareNameInThisDirectoryIsTakenWhenPathHasNone) {
  MakeFile("run", true);
  const FoundCommand found = FindCommand("run", "bin");
  EXPECT_EQ(found.argv0, "./run");
  EXPECT_EQ(found.file, "./run");
  EXPECT_EQ(found.note, "");
}

TEST_F(FindCommandTest, DirectoryOfThatNameIsNoCommand) {
  fs::create_directory("python");
  MakeFile("bin/python", true);
  EXPECT_EQ(FindCommand("python", "bin").file, "bin/python");
  EXPECT_EQ(ErrorOf("python", "nowhere").exit_code, kNotFound);
}

TEST_F(FindCommandTest, NameWithASlashIsTheFileItself) {
  MakeFile("run", true);
  MakeFile("bin/run", true);
  EXPECT_EQ(FindCommand("./run", "bin").file, "./run");
}

TEST_F(FindCommandTest, ErrorsHaveTheExitCodesOfAShell) {
  MakeFile("text", false);
  EXPECT_EQ(ErrorOf("nonesuch", "bin").exit_code, 127);
  EXPECT_EQ(ErrorOf("./nonesuch", "bin").exit_code, 127);
  EXPECT_THAT(ErrorOf("./nonesuch", "bin").what(), HasSubstr("cannot start './nonesuch': No such file"));
  EXPECT_EQ(ErrorOf("text", "bin").exit_code, 126);
  EXPECT_THAT(ErrorOf("./text", "bin").what(), HasSubstr("not executable"));
  EXPECT_THAT(ErrorOf("./bin", "bin").what(), HasSubstr("is a directory"));
}

TEST(ShellQuote, LeavesPlainWordsAlone) {
  EXPECT_EQ(ShellQuote("a-b_c=1/2.3:4,@%+"), "a-b_c=1/2.3:4,@%+");
  EXPECT_EQ(ShellCommand({"env", "A=1", "./run", "a b"}), "env A=1 ./run 'a b'");
}

TEST(ShellQuote, IsReadBackByAShellByteForByte) {
  for (const std::string word :
       {"",  " ", "a b",         "$HOME", "`id`", "it's",         "''", "\"",    "\\", "a;b", "*",
        "~", "#", "new\nline\n", "tab\t", "-n",   "\xc3\xa4\xff", "!x", "{a,b}", "&",  "\x01"}) {
    const std::string line = "printf %s " + ShellQuote(word);
    FILE* shell = popen(line.c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::string read;
    for (int c = fgetc(shell); c != EOF; c = fgetc(shell)) read += static_cast<char>(c);
    EXPECT_EQ(pclose(shell), 0);
    EXPECT_EQ(read, word);
  }
}

TEST(SplitWords, SplitsAsAShellDoesWithoutExpansions) {
  EXPECT_THAT(SplitWords("  -i key\t-o 'a b'\"c d\"e '' $HOME \\\"x \"\\\"\" "),
              testing::ElementsAre("-i", "key", "-o", "a bc de", "", "$HOME", "\"x", "\""));
  EXPECT_THAT(SplitWords("print '\\n' \"\\n\\$\\\\\" \\n a\\\nb \\\n  \"c\\\nd\" e\\"),
              testing::ElementsAre("print", "\\n", "\\n$\\", "n", "ab", "cd", "e\\"));
  EXPECT_THAT(SplitWords(""), testing::IsEmpty());
  EXPECT_THROW(SplitWords("a 'b"), std::runtime_error);
}

TEST(NameOfCommandTest, ACommandIsCalledByItsProgramOrItsScript) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"./train", "--key=hidden"}, "train"},
      {{"/opt/bin/xgb-train", "hidden.conf"}, "xgb-train"},
      {{"python", "dir/train.py", "hidden"}, "train.py"},
      {{"python3.13t", "-u", "-W", "hidden", "-Xhidden", "train.py"}, "train.py"},
      {{"/venv/bin/python3", "-m", "package.train", "hidden"}, "package.train"},
      {{"python3", "-um", "package.train"}, "package.train"},
      {{"python3", "-mpackage.train"}, "package.train"},
      {{"python3", "--check-hash-based-pycs", "hidden", "--", "train.py"}, "train.py"},
      {{"bash", "-eo", "pipefail", "run.sh", "hidden"}, "run.sh"},
      {{"bash", "--rcfile", "hidden", "run.sh"}, "run.sh"},
      {{"sh", "+x", "./run.sh"}, "run.sh"},
      {{"Rscript", "--vanilla", "train.R", "hidden"}, "train.R"},
      {{"sh2py", "hidden"}, "sh2py"},
      {{"pythonic", "hidden"}, "pythonic"},
      {{"env", "KEY=hidden", "python", "train.py"}, "env"},
      {{"python3"}, "python3"},
  };
  for (const auto& [words, name] : cases) EXPECT_EQ(NameOfCommand(words), name) << words.back();
}

TEST(NameOfCommandTest, ANameHasNoCodeInIt) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"python", "-c", "import hidden"}, "python"},
      {{"python3", "-uc", "hidden"}, "python3"},
      {{"python3", "-chidden"}, "python3"},
      {{"python3", "-W", "ignore", "-c", "hidden"}, "python3"},
      {{"pypy3", "-I", "-c", "a/hidden"}, "pypy3"},
      {{"python3", "-", "hidden"}, "python3"},
      {{"python3", "-m", "hidden; code"}, "python3"},
      {{"python3", "print('hidden')"}, "python3"},
      {{"python3", "hidden\n.py"}, "python3"},
      {{"sh", "-c", "hidden"}, "sh"},
      {{"/bin/bash", "-lc", "hidden", "hidden"}, "bash"},
      {{"bash", "-s", "hidden"}, "bash"},
      {{"Rscript", "-e", "hidden"}, "Rscript"},
      {{"perl", "-e", "hidden"}, "perl"},
      {{"node", "--eval", "hidden"}, "node"},
      {{"python -c 'a/hidden'"}, "python"},
      {{"'hidden'"}, "job"},
      {{"dir/"}, "job"},
  };
  for (const auto& [words, name] : cases) EXPECT_EQ(NameOfCommand(words), name) << words.back();
}

TEST(WithInputTest, NoLineOfTheInputEndsIt) {
  EXPECT_EQ(WithInput("cat", ""), "cat <<'END_OF_INPUT'\nEND_OF_INPUT\n");
  EXPECT_EQ(WithInput("cat", "a"), "cat <<'END_OF_INPUT'\na\nEND_OF_INPUT\n");
  for (const char* const input : {"END_OF_INPUT\n", "END_OF_INPUT", "a\nEND_OF_INPUT\nb\n",
                                  "END_OF_INPUT_1\nEND_OF_INPUT\ntouch broken\n", "\nEND_OF_INPUT\n\n",
                                  " END_OF_INPUT\n", "$HOME `id` \\\n'\"\n"}) {
    FILE* const shell = popen(WithInput("od -An -v -tx1", input).c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::string shown;
    for (unsigned byte = 0; fscanf(shell, "%x", &byte) == 1;) shown += static_cast<char>(byte);
    EXPECT_EQ(pclose(shell), 0);
    const std::string whole = input;
    EXPECT_EQ(shown, whole.ends_with('\n') ? whole : whole + '\n');
  }
}

}  // namespace
}  // namespace warren::submit
