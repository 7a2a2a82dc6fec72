// The parsing of Slurm's host lists, and the place where the ranks of a step meet.
#include "rabit_engine/bootstrap/slurm_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "rabit_engine/base/error.h"

namespace warren {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using Environment = std::map<std::string, std::string>;

SlurmStep StepFrom(const Environment& environment) {
  return ReadSlurmStep([&environment](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

std::string SlurmError(const std::function<void()>& call) {
  try {
    call();
  } catch (const EngineError& error) {
    return error.what();
  }
  return "no error";
}

Environment OneStep() {
  return {{"SLURM_JOB_ID", "1234"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", "3"},
          {"SLURM_STEP_NUM_TASKS", "8"},
          {"SLURM_STEP_NODELIST", "n[7-9]"},
          {"SLURM_NODEID", "1"},
          {"SLURM_SRUN_COMM_PORT", "4711"}};
}

TEST(HostList, BracketsNameRangesAndSingleHosts) {
  EXPECT_THAT(ExpandHostList("n[1-3,7],gpu[01-04]"),
              ElementsAre("n1", "n2", "n3", "n7", "gpu01", "gpu02", "gpu03", "gpu04"));
}

TEST(HostList, PlainNamesStayAsTheyAre) {
  EXPECT_THAT(ExpandHostList("vm"), ElementsAre("vm"));
  EXPECT_THAT(ExpandHostList("login-1.example.org,n2"), ElementsAre("login-1.example.org", "n2"));
}

TEST(HostList, NumbersKeepTheirZerosAndGrowBeyondThem) {
  EXPECT_THAT(ExpandHostList("n[008-011]"), ElementsAre("n008", "n009", "n010", "n011"));
  EXPECT_THAT(ExpandHostList("n[9-11]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(ExpandHostList("n[98-101]x"), ElementsAre("n98x", "n99x", "n100x", "n101x"));
}

TEST(HostList, ARangeMayEndAtTheGreatestNumber) {
  EXPECT_THAT(ExpandHostList("n[18446744073709551614-18446744073709551615]"),
              ElementsAre("n18446744073709551614", "n18446744073709551615"));
}

TEST(HostList, ANameMayHaveSeveralBrackets) {
  EXPECT_THAT(ExpandHostList("r[1-2]n[05,07]-ib"),
              ElementsAre("r1n05-ib", "r1n07-ib", "r2n05-ib", "r2n07-ib"));
}

TEST(HostList, WhatCannotBeReadIsShown) {
  EXPECT_THAT(SlurmError([] { ExpandHostList("n[1-3"); }),
              AllOf(HasSubstr("\"n[1-3\""), HasSubstr("not closed")));
  EXPECT_THAT(SlurmError([] { ExpandHostList("n1-3]"); }), HasSubstr("was not opened"));
  EXPECT_THAT(SlurmError([] { ExpandHostList("n[[1]]"); }), HasSubstr("nested"));
  EXPECT_THAT(SlurmError([] { ExpandHostList(""); }), HasSubstr("a name is empty"));
  EXPECT_THAT(SlurmError([] { ExpandHostList("a,,b"); }), HasSubstr("a name is empty"));
  for (const char* wrong :
       {"n[]", "n[a]", "n[3-1]", "n[1-2-3]", "n[-1]", "n[1,]", "n[99999999999999999999]"}) {
    EXPECT_NE(SlurmError([wrong] { ExpandHostList(wrong); }), "no error") << wrong;
  }
}

TEST(HostList, AListOfTooManyHostsIsRefusedBeforeItFillsTheMemory) {
  EXPECT_THAT(SlurmError([] { ExpandHostList("n[1-4000000000]"); }), HasSubstr("more than"));
  EXPECT_THAT(SlurmError([] { ExpandHostList("n[0-18446744073709551615]"); }), HasSubstr("more than"));
  EXPECT_THAT(SlurmError([] { ExpandHostList("n[1-2000]x[1-2000]"); }), HasSubstr("more than"));
}

TEST(SlurmStepPlace, RanksMeetAtTheFirstHostOfTheStep) {
  const SlurmStep step = StepFrom(OneStep());
  EXPECT_EQ(step.id, "1234.0");
  EXPECT_EQ(step.rank, 3);
  EXPECT_EQ(step.world_size, 8);
  EXPECT_EQ(step.meeting_host, "n7");
  EXPECT_THAT(step.meeting_ports, SizeIs(8));
}

TEST(SlurmStepPlace, TasksOnTheFirstHostNeedNoName) {
  Environment environment = OneStep();
  environment["SLURM_NODEID"] = "0";
  EXPECT_EQ(StepFrom(environment).meeting_host, "127.0.0.1");
}

TEST(SlurmStepPlace, AllRanksOfAStepTryTheSamePortsAndOtherStepsOthers) {
  Environment other_rank = OneStep();
  other_rank["SLURM_PROCID"] = "0";
  other_rank["SLURM_NODEID"] = "0";
  Environment other_step = OneStep();
  other_step["SLURM_STEP_ID"] = "1";
  Environment other_job = OneStep();
  other_job["SLURM_JOB_ID"] = "1235";
  const SlurmStep step = StepFrom(OneStep());
  EXPECT_EQ(StepFrom(other_rank).meeting_ports, step.meeting_ports);
  EXPECT_EQ(StepFrom(other_rank).token, step.token);
  EXPECT_NE(StepFrom(other_step).meeting_ports[0], step.meeting_ports[0]);
  EXPECT_NE(StepFrom(other_job).meeting_ports[0], step.meeting_ports[0]);
}

TEST(SlurmStepPlace, TheUserMayNameThePlace) {
  Environment environment = OneStep();
  environment["WARREN_BOOTSTRAP_HOST"] = "10.1.2.3";
  environment["WARREN_BOOTSTRAP_PORT"] = "7777";
  const SlurmStep step = StepFrom(environment);
  EXPECT_EQ(step.meeting_host, "10.1.2.3");
  EXPECT_THAT(step.meeting_ports, ElementsAre(7777));
}

TEST(SlurmStepPlace, TheTokenIsAnotherForAnotherSrunOrSecret) {
  Environment other_srun = OneStep();
  other_srun["SLURM_SRUN_COMM_PORT"] = "4712";
  Environment secret = OneStep();
  secret["WARREN_BOOTSTRAP_TOKEN"] = "swordfish";
  EXPECT_NE(StepFrom(other_srun).token, StepFrom(OneStep()).token);
  EXPECT_NE(StepFrom(secret).token, StepFrom(OneStep()).token);
}

TEST(SlurmStepPlace, AMissingVariableIsNamedWithTheWayOut) {
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"}) {
    Environment environment = OneStep();
    environment.erase(name);
    EXPECT_THAT(SlurmError([&] { StepFrom(environment); }),
                AllOf(HasSubstr(std::string(name) + " is not set"), HasSubstr("srun")));
  }
}

TEST(SlurmStepPlace, AnImpossibleNumberIsShown) {
  Environment environment = OneStep();
  environment["SLURM_PROCID"] = "8";
  EXPECT_THAT(SlurmError([&] { StepFrom(environment); }),
              HasSubstr("SLURM_PROCID=8, expected a number from 0 to 7"));
  environment = OneStep();
  environment["WARREN_BOOTSTRAP_PORT"] = "http";
  EXPECT_THAT(SlurmError([&] { StepFrom(environment); }), HasSubstr("WARREN_BOOTSTRAP_PORT=http"));
  environment = OneStep();
  environment["RABIT_BOOTSTRAP_PORT"] = "http";
  EXPECT_THAT(SlurmError([&] { StepFrom(environment); }), HasSubstr("RABIT_BOOTSTRAP_PORT=http"));
}

}  // namespace
}  // namespace warren
