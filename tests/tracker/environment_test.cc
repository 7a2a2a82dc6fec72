#include "tracker/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tracker/host_address.h"

namespace warren::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Pair;

TEST(Environment, TellsAWorkerWhereItsTrackerIsAndWhoItIs) {
  JobAddress address;
  address.tracker_host = "10.1.2.3";
  address.tracker_port = 9091;
  address.num_workers = 4;
  EXPECT_THAT(TaskEnvironment(address, {Role::kWorker, 3, 1, "local"}),
              ElementsAre(Pair("DMLC_NUM_WORKER", "4"), Pair("DMLC_NUM_SERVER", "0"),
                          Pair("DMLC_TRACKER_URI", "10.1.2.3"), Pair("DMLC_TRACKER_PORT", "9091"),
                          Pair("DMLC_ROLE", "worker"), Pair("DMLC_TASK_ID", "3"),
                          Pair("DMLC_NUM_ATTEMPT", "1"), Pair("DMLC_JOB_CLUSTER", "local")));
}

TEST(Environment, TellsParameterServerJobsTheirRoot) {
  JobAddress address;
  address.num_workers = 2;
  address.num_servers = 1;
  address.ps_root_host = "127.0.0.1";
  address.ps_root_port = 5000;
  EXPECT_THAT(JobEnvironment(address),
              ElementsAre(Pair("DMLC_NUM_WORKER", "2"), Pair("DMLC_NUM_SERVER", "1"),
                          Pair("DMLC_PS_ROOT_URI", "127.0.0.1"), Pair("DMLC_PS_ROOT_PORT", "5000")));
}

TEST(Environment, AsksForEncryptionUnderTheNewAndTheOldName) {
  JobAddress address;
  address.tls = true;
  EXPECT_THAT(JobEnvironment(address), IsSupersetOf({Pair("WARREN_TLS", "1"), Pair("RABIT_TLS", "1")}));
}

TEST(HostAddress, BindsTheAddressItIsGivenAndEverythingForAForeignOne) {
  EXPECT_EQ(BindAddressFor("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(BindAddressFor("192.0.2.77"), "") << "an address behind a router, say";
  EXPECT_EQ(ResolveHostIp("127.0.0.1"), "127.0.0.1");
  EXPECT_FALSE(ResolveHostIp("auto").empty());
}

TEST(HostAddress, NamesAHostThatDoesNotResolve) {
  try {
    ResolveHostIp("no-such-host.invalid");
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no-such-host.invalid"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("--host-ip"));
  }
}

}  // namespace
}  // namespace warren::tracker
