// The messages about programs that never joined their job, and the cases without a message.
#include "submit/job/separate_programs.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// Each test runs in a temporary directory, in which it creates programs.
class SeparateProgramsTest : public testing::Test {
 protected:
  static void Write(const fs::path& file, const std::string& text, bool executable = false) {
    if (file.has_parent_path()) fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    if (executable) fs::permissions(file, fs::perms::owner_all);
  }

  static std::optional<LibraryUse> Find(const std::vector<std::string>& command) {
    return FindLibraryUse(command, "/usr/bin:/bin");
  }

  const TemporaryWorkingFolder folder_;
};

TEST_F(SeparateProgramsTest, AScriptThatImportsXGBoostIsNamedWithWhatToDo) {
  Write("plain.py", "import pandas as pd, xgboost\nprint('done')\n");
  EXPECT_THAT(SeparateProgramsStory(2, {"python3", "plain.py"}, "/usr/bin"),
              AllOf(HasSubstr("no worker joined the job: 2 separate programs ran"),
                    HasSubstr("plain.py uses xgboost"), HasSubstr("`with warren.xgboost.communicator():`"),
                    HasSubstr("--no-tracker")));
}

TEST_F(SeparateProgramsTest, EveryWayToNameAScriptIsFollowed) {
  Write("train.py", "from lightgbm import LGBMClassifier\n");
  Write("run.sh", "#!/bin/sh\nset -e\npython3 train.py --rounds 3\n", true);
  Write("package/__main__.py", "import xgboost as xgb\n");
  const LibraryUse light{"train.py", "lightgbm"};
  EXPECT_EQ(Find({"python3", "-u", "train.py", "--rounds", "3"}), light);
  EXPECT_EQ(Find({"env", "A=b", "nice", "python3", "train.py"}), light);
  EXPECT_EQ(Find({"sh", "-c", "cd . && python3 train.py"}), light);
  EXPECT_EQ(Find({"./run.sh"}), light);
  EXPECT_EQ(Find({"run.sh"}), light);
  EXPECT_EQ(Find({"python3", "-m", "package"}), (LibraryUse{"package/__main__.py", "xgboost"}));
  EXPECT_EQ(Find({"python3", "-c", "import numpy; import xgboost; print(1)"}),
            (LibraryUse{"the command", "xgboost"}));
  EXPECT_EQ(Find({"python3", "-m", "warren.compat", "old.py"}), (LibraryUse{"the command", "warren"}));
  EXPECT_EQ(Find({"python3", "-m", "warren.compat", "train.py"}), light);
}

TEST_F(SeparateProgramsTest, ModulesBesideAScriptAreFollowed) {
  Write("work/main.py", "import os\nfrom models import trees\n");
  Write("work/models/__init__.py", "");
  Write("work/models/trees.py", "from .base import fit\n");
  Write("work/models/base.py", "def fit():\n    import xgboost\n");
  EXPECT_EQ(Find({"python3", "work/main.py"}), (LibraryUse{"work/models/base.py", "xgboost"}));
}

TEST_F(SeparateProgramsTest, WhatPythonRunsIsFoundHoweverItIsNamed) {
  Write("plain", "if True: import xgboost\n");
  Write("folder/__main__.py", "def f(a, b=(1,\n 2)):\n  from models import (base,\n    fit as f)\n");
  Write("folder/models/fit.py", "import os, \\\n  lightgbm as lgb\n");
  Write("train.py", "try: import xgboost\nexcept ImportError: pass\n");
  EXPECT_EQ(Find({"python3", "plain"}), (LibraryUse{"plain", "xgboost"}));
  EXPECT_EQ(Find({"python3", "-X", "dev", "folder"}), (LibraryUse{"folder/models/fit.py", "lightgbm"}));
  EXPECT_EQ(Find({"python3", "-mtrain"}), (LibraryUse{"train.py", "xgboost"}));
  EXPECT_EQ(Find({"python3", "-um", "train"}), (LibraryUse{"train.py", "xgboost"}));
  EXPECT_EQ(Find({"python3", "-cimport xgboost"}), (LibraryUse{"the command", "xgboost"}));
  EXPECT_EQ(Find({"python3", "-m", "cProfile", "-o", "x", "train.py"}), (LibraryUse{"train.py", "xgboost"}));
  EXPECT_EQ(Find({"env", "uv", "run", "train.py"}), (LibraryUse{"train.py", "xgboost"}));
}

TEST_F(SeparateProgramsTest, WhatAShellRunsIsFoundHoweverItIsNamed) {
  Write("q.py", "print('hi')\n");
  Write("sub/q.py", "import xgboost\n");
  Write("sub/run", "#!/usr/bin/env -S bash -e\ncd \"$(dirname \"$0\")\"\n${PYTHON:-python3} q.py 2>&1\n",
        true);
  Write("here", "#!/bin/sh\npython3 - <<'END'\nimport xgboost\nEND\necho import lightgbm\n", true);
  Write("wrap.sh", "#!/bin/sh\nexec nice \"$@\"\n", true);
  Write("source.sh", "if [ -f q.py ]; then x=$(timeout 9 python3 sub/q.py | tail); fi\n");
  const LibraryUse sub{"sub/q.py", "xgboost"};
  EXPECT_EQ(Find({"bash", "-c", "cd sub && python3 q.py"}), sub);
  EXPECT_EQ(Find({"bash", "-c", "(cd sub; python3 q.py)"}), sub);
  EXPECT_EQ(Find({"bash", "-c", "(cd sub; ls) && python3 q.py"}), std::nullopt);
  EXPECT_EQ(Find({"bash", "-c", "cd $HOME && python3 sub/q.py"}), std::nullopt);
  EXPECT_EQ(Find({"sub/run"}), sub);
  EXPECT_EQ(Find({"./here"}), (LibraryUse{"./here", "xgboost"}));
  EXPECT_EQ(Find({"./wrap.sh", "python3", "sub/q.py"}), sub);
  EXPECT_EQ(Find({"sh", "-ce", ". ./source.sh # python3 q.py"}), sub);
  EXPECT_EQ(Find({"sh", "-c", "python3 < sub/q.py"}), sub);
  EXPECT_EQ(Find({"sh", "-c", "exec python3 $1", "sh", "sub/q.py"}), sub);
}

TEST_F(SeparateProgramsTest, WhatTheCommandOnlyReadsIsNotTakenForWhatItRuns) {
  Write("bin/xgboost", std::string("\177ELF\0\0DMLC_TRACKER_URI\0", 23), true);
  Write("train.py", "import xgboost\n", true);
  Write("doc.py",
        "\"\"\"How to use it:\n\nimport xgboost\n\"\"\"\ntext = 'a\\'; import xgboost'\nprint('hi')\n");
  Write("package/__main__.py", "import xgboost\n");
  Write("tools/__init__.py", "import json, package\n");
  Write("tools/json.py", "import xgboost\n");
  Write("uses.py", "import tools\n");
  const auto find = [](const std::vector<std::string>& command) {
    return FindLibraryUse(command, fs::absolute("bin").string() + ":/usr/bin:/bin");
  };
  EXPECT_EQ(find({"python3", "-cimport xgboost"}), (LibraryUse{"the command", "xgboost"}));
  EXPECT_EQ(find({"python3", "-cprint('import xgboost')"}), std::nullopt);
  EXPECT_EQ(find({"python3", "-c", "print(1)", "./train.py"}), std::nullopt);
  EXPECT_EQ(find({"python3", "doc.py", "./train.py", "bin/xgboost"}), std::nullopt);
  EXPECT_EQ(find({"python3", "uses.py"}), std::nullopt);
  for (const char* const reader : {"cat", "grep x", "ls", "echo python3", "export X=1; f"}) {
    const std::string line =
        std::string(reader) + " ./train.py bin/xgboost xgboost; echo 'xgboost' \"xgboost\"";
    EXPECT_EQ(find({"sh", "-c", line}), std::nullopt) << line;
  }
  EXPECT_EQ(find({"cat", "train.py", "bin/xgboost"}), std::nullopt);
  EXPECT_EQ(find({"sh", "-c", "cat <<END\nxgboost\nEND\n"}), std::nullopt);
  EXPECT_EQ(find({"sh", "-c", "cat <<END\n\tEND\nxgboost\nEND\n"}), std::nullopt);
  EXPECT_NE(find({"sh", "-c", "cat <<-END\n\tEND\nxgboost\nEND\n"}), std::nullopt);
  EXPECT_EQ(find({"sh", "-c", "cat > xgboost < train.py"}), std::nullopt);
  EXPECT_NE(find({"sh", "-c", "cat train.py | xgboost"}), std::nullopt);
}

TEST_F(SeparateProgramsTest, ACompiledProgramIsKnownByItsLibrary) {
  Write("train", std::string("\177ELF\0\0libxgboost.so\0", 21), true);
  Write("old", std::string("\177ELF\0\0DMLC_TRACKER_URI\0", 23), true);
  Write("other", std::string("\177ELF\0\0libc.so.6\0", 16), true);
  EXPECT_EQ(Find({"./train", "x.conf"}), (LibraryUse{"./train", "xgboost"}));
  EXPECT_EQ(Find({"./old"}), (LibraryUse{"./old", "rabit"}));
  EXPECT_EQ(Find({"./other"}), std::nullopt);
  EXPECT_EQ(Find({"train", "x.conf"}), (LibraryUse{"./train", "xgboost"}));
  EXPECT_EQ(Find({"sh", "-c", "cd . && timeout 9 ./train x.conf"}), (LibraryUse{"./train", "xgboost"}));
}

TEST_F(SeparateProgramsTest, CommandsThatNeedNoJobAreLeftAlone) {
  Write("notes.txt", "import xgboost\n");
  Write("comment.py", "# import xgboost\nprint('xgboost')\nimport xgboost_reports, numpy\n");
  EXPECT_EQ(Find({"hostname"}), std::nullopt);
  EXPECT_EQ(Find({"sleep", "1"}), std::nullopt);
  EXPECT_EQ(Find({"sh", "-c", "echo $RANK of $WORLD_SIZE; sleep 1"}), std::nullopt);
  EXPECT_EQ(Find({"cat", "notes.txt"}), std::nullopt);
  EXPECT_EQ(Find({"grep", "xgboost", "notes.txt"}), std::nullopt);
  EXPECT_EQ(Find({"sh", "-c", "echo import xgboost; grep xgboost notes.txt"}), std::nullopt);
  EXPECT_EQ(Find({"python3", "comment.py"}), std::nullopt);
  EXPECT_EQ(Find({"python3", "not-there.py"}), std::nullopt);
  EXPECT_EQ(Find({"no-such-program", "/"}), std::nullopt);
  EXPECT_THAT(SeparateProgramsStory(2, {"hostname"}, "/usr/bin"), IsEmpty());
}

TEST_F(SeparateProgramsTest, ProgramsThatFindEachOtherInAnotherWayAreLeftAlone) {
  Write("both.py", "import torch.distributed as dist, xgboost\ndist.init_process_group('gloo')\n");
  Write("mpi.py", "from mpi4py import MPI\nimport lightgbm\n");
  Write("dask.py", "import xgboost\nfrom dask import distributed\n");
  Write("comment.py", "# neither mpi4py nor pyspark\n'torch.distributed'\nimport xgboost, mympi4py_like\n");
  EXPECT_EQ(Find({"python3", "both.py"}), std::nullopt);
  EXPECT_EQ(Find({"python3", "mpi.py"}), std::nullopt);
  EXPECT_EQ(Find({"python3", "dask.py"}), std::nullopt);
  EXPECT_EQ(Find({"python3", "-m", "torch.distributed.run", "mpi.py"}), std::nullopt);
  EXPECT_EQ(Find({"python3", "comment.py"}), (LibraryUse{"comment.py", "xgboost"}));
}

TEST_F(SeparateProgramsTest, ModulesThatImportEachOtherAreReadOnce) {
  Write("a.py", "import b\n");
  Write("b.py", "import a\nfrom . import a, b\n");
  EXPECT_EQ(Find({"python3", "a.py"}), std::nullopt);
}

}  // namespace
}  // namespace warren::submit
