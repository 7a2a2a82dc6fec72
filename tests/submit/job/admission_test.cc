// The workers that a job's tracker accepts, depending on --admit and the cluster.
#include "submit/job/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace warren::submit {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using tracker::Admit;

TEST(JobAdmission, LetsInNobodyButProcessesOfTheUserWithoutTheTokenOnAnyCluster) {
  for (const char* cluster : {"local", "ssh", "mpi", "slurm", "sge", "yarn"}) {
    Options options;
    options.cluster = cluster;
    EXPECT_EQ(AdmissionOf(options, wire::JobToken::Random()).admit, Admit::kUser) << cluster;
  }
}

TEST(JobAdmission, IsOfTheHostsOfTheJobWhereTheyAreAskedFor) {
  Options options;
  options.admit = Admit::kHosts;
  EXPECT_THAT(AdmissionOf(options, wire::JobToken::Random()).hosts, Contains("127.0.0.1"));
  options.cluster = "sge";
  EXPECT_THAT([&] { AdmissionOf(options, wire::JobToken::Random()); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("are not known before it starts (--cluster sge); use --admit any")));
  options.admit = Admit::kAny;
  EXPECT_EQ(AdmissionOf(options, wire::JobToken::Random()).admit, Admit::kAny);
}

}  // namespace
}  // namespace warren::submit
