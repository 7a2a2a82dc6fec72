// The parsing of Slurm's host lists, and the place where the ranks of a step meet.
#include "rabit_engine/bootstrap/slurm_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "rabit_engine/base/error.h"
#include "tests/environment.h"

namespace warren {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

SlurmStep StepFrom(const Environment& environment) {
  return ReadSlurmStep(LookUpIn(environment));
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
  for (const auto& [list, why] : {std::pair("n[1-3", "\"n[1-3\" cannot be read: a bracket is not closed"),
                                  {"n1-3]", "was not opened"},
                                  {"n[[1]]", "nested"},
                                  {"", "a name is empty"},
                                  {"a,,b", "a name is empty"}}) {
    EXPECT_THAT([list = list] { ExpandHostList(list); }, ThrowsMessage<EngineError>(HasSubstr(why)));
  }
  for (const char* wrong :
       {"n[]", "n[a]", "n[3-1]", "n[1-2-3]", "n[-1]", "n[1,]", "n[99999999999999999999]"}) {
    EXPECT_THROW(ExpandHostList(wrong), EngineError) << wrong;
  }
}

TEST(HostList, AListOfTooManyHostsIsRefusedBeforeItFillsTheMemory) {
  for (const char* list : {"n[1-4000000000]", "n[0-18446744073709551615]", "n[1-2000]x[1-2000]"}) {
    EXPECT_THAT([list] { ExpandHostList(list); }, ThrowsMessage<EngineError>(HasSubstr("more than")));
  }
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
    EXPECT_THAT(
        [&] { StepFrom(environment); },
        ThrowsMessage<EngineError>(AllOf(HasSubstr(std::string(name) + " is not set"), HasSubstr("srun"))));
  }
}

TEST(SlurmStepPlace, AnImpossibleNumberIsShown) {
  for (const auto& [name, text, complaint] :
       {std::tuple("SLURM_PROCID", "8", "SLURM_PROCID=8, expected a number from 0 to 7"),
        {"WARREN_BOOTSTRAP_PORT", "http", "WARREN_BOOTSTRAP_PORT=http"},
        {"RABIT_BOOTSTRAP_PORT", "http", "RABIT_BOOTSTRAP_PORT=http"}}) {
    Environment environment = OneStep();
    environment[name] = text;
    EXPECT_THAT([&] { StepFrom(environment); }, ThrowsMessage<EngineError>(HasSubstr(complaint)));
  }
}

}  // namespace
}  // namespace warren
