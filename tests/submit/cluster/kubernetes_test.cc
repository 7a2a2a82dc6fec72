// --cluster kubernetes without kubectl: YAML, manifests, and the parsing of kubectl's answers and logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "submit/cluster/kubernetes/log_reader.h"
#include "submit/cluster/kubernetes/manifest.h"
#include "submit/cluster/kubernetes/pods.h"
#include "submit/cluster/kubernetes/yaml.h"
#include "submit/job/plan.h"

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// A temporary file with the given content, removed by the destructor.
class File {
 public:
  explicit File(const std::string& content) {
    const int fd = mkstemp(path_);
    std::ofstream(path_) << content;
    close(fd);
  }
  ~File() { std::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/warren-test-XXXXXX";
};

Json Read(const std::string& text) {
  const File file(text);
  return ReadYamlFile(file.path());
}

std::string WhyNotRead(const std::string& text) {
  const File file(text);
  try {
    ReadYamlFile(file.path());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "it was read";
}

// --- YAML ------------------------------------------------------------------------------------------------

TEST(Yaml, WhatIsWrittenIsReadAgain) {
  const Json all = {{"text", "plain"},
                    {"looks like a number", "12"},
                    {"looks like a truth", {"yes", "No", "TRUE", "null", "~", "y"}},
                    {"number", -3},
                    {"fraction", 1.5},
                    {"truth", true},
                    {"nothing", nullptr},
                    {"empty", {{"list", Json::array()}, {"object", Json::object()}, {"text", ""}}},
                    {"lines", "first\n\n  second: 'a' \"b\" # c\nlast\n"},
                    {"no whole lines", "a\nb"},
                    {"blank in front", " a\nb\n"},
                    {"odd", "\x01\t\\ \x1e \xc3\xa4: - [ {"},
                    {"beyond 16 bits", "\\\xf0\x9f\x98\x80\\ud83d\xf4\x8f\xbf\xbf"},
                    {"lists", {{{"name", "a"}, {"inner", {1, {{"x", "y"}}}}}, {{"name", "b"}}, {1, 2}, "c"}}};
  EXPECT_EQ(Read(WriteYaml({all})), all);
}

TEST(Yaml, LinesOfAScriptStandThereAsTheyAre) {
  EXPECT_EQ(WriteYaml({{{"script", "set -e\n\necho $x\n"}}}), "---\nscript: |\n  set -e\n\n  echo $x\n");
}

TEST(Yaml, WordsMeanWhatTheyMeanToKubectl) {
  EXPECT_EQ(Read("a: yes\nb: 'yes'\nc: 010x\nd: 1e3\ne: ~\nf: Off\ng: 1.20\nh: \"1\"\ni: infinite\n"),
            Json({{"a", true},
                  {"b", "yes"},
                  {"c", "010x"},
                  {"d", 1000.0},
                  {"e", nullptr},
                  {"f", false},
                  {"g", 1.2},
                  {"h", "1"},
                  {"i", "infinite"}}));
}

TEST(Yaml, JsonIsReadToo) {
  EXPECT_EQ(Read(R"({"a": [1, {"b": "c"}]})"), Json({{"a", {1, {{"b", "c"}}}}}));
}

TEST(Yaml, WhatIsNoManifestIsRefusedByName) {
  EXPECT_THAT(WhyNotRead("a: [1\nb: 2\n"), HasSubstr("line "));
  EXPECT_THAT(WhyNotRead("- a\n- b\n"), HasSubstr("expected an object"));
  EXPECT_THAT(WhyNotRead("a: 1\n---\nb: 2\n"), HasSubstr("line 2: a second document begins here"));
  EXPECT_THAT(WhyNotRead(",\n"), HasSubstr("line 1: not valid YAML"));  // yaml-cpp finds endless documents
  EXPECT_THROW(ReadYamlFile("/nowhere/x.yaml"), std::runtime_error);
  EXPECT_THAT([] { ReadYamlFile("/etc"); }, testing::ThrowsMessage<std::runtime_error>(
                                                testing::HasSubstr("cannot read '/etc': Is a directory")));
}

TEST(Yaml, MergingGoesByKeysAndByNames) {
  Json base = {{"a", {{"x", 1}, {"y", 2}}},
               {"env", {{{"name", "A"}, {"value", "1"}}, {{"name", "B"}, {"value", "2"}}}},
               {"args", {"1", "2"}},
               {"gone", 1}};
  MergeInto(base, {{"a", {{"y", 3}, {"z", 4}}},
                   {"env", {{{"name", "C"}, {"value", "3"}}, {{"name", "A"}, {"more", true}}}},
                   {"args", {"3"}},
                   {"gone", nullptr},
                   {"never", nullptr}});
  EXPECT_EQ(base, Json({{"a", {{"x", 1}, {"y", 3}, {"z", 4}}},
                        {"env",
                         {{{"name", "A"}, {"value", "1"}, {"more", true}},
                          {{"name", "B"}, {"value", "2"}},
                          {{"name", "C"}, {"value", "3"}}}},
                        {"args", {"3"}}}));
}

TEST(Yaml, MountsAreMergedByPathAndPortsByNumber) {
  Json base = {{"volumeMounts", {{{"name", "v"}, {"mountPath", "/ours"}}}},
               {"ports", {{{"containerPort", 1}}}}};
  MergeInto(base,
            {{"volumeMounts", {{{"name", "v"}, {"mountPath", "/a"}}, {{"name", "v"}, {"mountPath", "/b"}}}},
             {"ports", {{{"containerPort", 1}, {"name", "p"}}}}});
  EXPECT_EQ(base["volumeMounts"].size(), 3U);
  EXPECT_EQ(base["ports"], Json({{{"containerPort", 1}, {"name", "p"}}}));
}

TEST(Yaml, WholeNumbersMayHaveAnotherBase) {
  EXPECT_EQ(Read("a: 0400\nb: 0x1F\nc: 0o17\nd: -0b11\ne: 08\nf: 0\ng: +7\nh: 0x\n"),
            Json({{"a", 256}, {"b", 31}, {"c", 15}, {"d", -3}, {"e", 8.0}, {"f", 0}, {"g", 7}, {"h", "0x"}}));
}

// --- the log ---------------------------------------------------------------------------------------------

/// The text that `reader` extracts from `pieces`.
std::string Log(LogReader& reader, const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) {
    reader.Append(piece, [&](std::string_view part) { text += part; });
  }
  return text;
}

constexpr char kFirst[] = "2026-01-02T15:04:05.100000000Z one\n";
constexpr char kSecond[] = "2026-01-02T15:04:05.200000000Z two 2026 \n";
constexpr char kThird[] = "2026-01-02T15:04:06.050000000Z \n2026-01-02T15:04:06.050000000Z also\n";
constexpr char kFourth[] = "2026-01-02T15:04:06.060000000Z four";

TEST(LogReader, TakesTheTimesOffHoweverTheBytesCome) {
  const std::string whole = std::string(kFirst) + kSecond + kThird + kFourth;
  for (std::size_t step = 1; step < whole.size(); ++step) {
    LogReader reader;
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < whole.size(); at += step) pieces.push_back(whole.substr(at, step));
    EXPECT_EQ(Log(reader, pieces), "one\ntwo 2026 \n\nalso\nfour");
  }
}

TEST(LogReader, LeavesOutWhatAnotherCommandHasBrought) {
  const std::string whole = std::string(kFirst) + kSecond + kThird + kFourth;
  for (std::size_t broken = 0; broken < whole.size(); ++broken) {
    LogReader reader;
    std::string text = Log(reader, {whole.substr(0, broken)});
    reader.Reconnect();
    // kubectl prints the log again from the second in which the last line was written.
    text += Log(reader, {reader.since() == "2026-01-02T15:04:06Z" ? std::string(kThird) + kFourth : whole});
    EXPECT_EQ(text, "one\ntwo 2026 \n\nalso\nfour") << broken;
  }
}

TEST(LogReader, TimesNeedNotBeInOrder) {
  const std::string first = "2026-01-02T15:04:05.2Z out\n2026-01-02T15:04:05.1Z err\n";
  const std::string second = "2026-01-02T15:04:05.15Z more\n";
  LogReader reader;
  EXPECT_EQ(Log(reader, {first}), "out\nerr\n");
  reader.Reconnect();
  EXPECT_EQ(Log(reader, {first + second}), "more\n");
}

TEST(LogReader, ALastLineThatIsGoneHidesNothing) {
  LogReader reader;
  EXPECT_EQ(Log(reader, {"2026-01-02T15:04:05.2Z one\n"}), "one\n");
  reader.Reconnect();
  EXPECT_EQ(Log(reader, {"2026-01-02T15:04:06.1Z two\n"}), "two\n");
}

TEST(LogReader, WhatTheKubeletSaysOfAContainerThatIsGoneIsNotOfTheLog) {
  LogReader reader;
  EXPECT_EQ(Log(reader, {kFirst, "unable to retrieve container", " logs for containerd://ffe6"}), "one\n");
  reader.Reconnect();
  EXPECT_EQ(Log(reader, {kFirst, kSecond}), "two 2026 \n");
}

TEST(LogReader, TimesWithFewerDigitsAndZonesCompare) {
  LogReader reader;
  EXPECT_EQ(Log(reader, {"2026-01-02T15:04:05.1+01:00 a\n", "2026-01-02T15:04:05.12+01:00 b\n"}), "a\nb\n");
  EXPECT_EQ(reader.since(), "2026-01-02T15:04:05+01:00");
  reader.Reconnect();
  EXPECT_EQ(Log(reader, {"2026-01-02T15:04:05.1+01:00 a\n", "2026-01-02T15:04:05.12+01:00 b\n",
                         "2026-01-02T15:04:05.2+01:00 c\n"}),
            "c\n");
}

// --- kubectl's answers -----------------------------------------------------------------------------------

PodReport ReadOne(const std::string& status, const std::string& metadata = "") {
  const KubeReport report = ReadKubeReport(
      R"({"items": [{"kind": "Pod", "metadata": {"name": "p", "labels": {"dmlc-submit/role": "worker"},
          "annotations": {"batch.kubernetes.io/job-completion-index": "7"})" +
      metadata + R"(}, "status": )" + status + "}]}");
  EXPECT_EQ(report.pods.size(), 1U);
  return report.pods.at(0);
}

std::string Container(const std::string& state) {
  return R"({"phase": "Running", "containerStatuses": [{"name": "istio-proxy", "state": {"running": {}}},
            {"name": "worker", "state": )" +
         state + "}]}";
}

TEST(KubeReport, APodIsReadByItsOwnContainer) {
  const PodReport runs = ReadOne(Container(R"({"running": {}})"));
  EXPECT_EQ(runs.name, "p");
  EXPECT_EQ(runs.role, "worker");
  EXPECT_EQ(runs.rank, 7U);
  EXPECT_TRUE(runs.has_begun);
  EXPECT_FALSE(runs.ended);
  const PodReport waits = ReadOne(Container(R"({"waiting": {"reason": "ContainerCreating"}})"));
  EXPECT_FALSE(waits.has_begun);
  EXPECT_EQ(waits.waits_for, "");
}

TEST(KubeReport, ReasonsForWaitingAndForEndingAreTold) {
  const PodReport pulls =
      ReadOne(Container(R"({"waiting": {"reason": "ErrImagePull", "message": "not found"}})"));
  EXPECT_EQ(pulls.waits_for, "ErrImagePull: not found");
  EXPECT_FALSE(pulls.never_begins);
  EXPECT_TRUE(ReadOne(Container(R"({"waiting": {"reason": "InvalidImageName"}})")).never_begins);
  EXPECT_EQ(ReadOne(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                        "reason": "Unschedulable", "message": "no cpu"}]})")
                .waits_for,
            "Unschedulable: no cpu");
  EXPECT_EQ(ReadOne(Container(R"({"terminated": {"exitCode": 3, "reason": "Error"}})")).ended->Describe(),
            "exited with code 3");
  EXPECT_THAT(
      ReadOne(Container(R"({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})")).ended->Describe(),
      HasSubstr("more memory"));
  const PodReport evicted = ReadOne(R"({"phase": "Failed", "reason": "Evicted", "message": "low on disk"})");
  EXPECT_EQ(evicted.ended->Describe(), "was ended by Kubernetes (Evicted: low on disk)");
  EXPECT_FALSE(evicted.ended->ok());
}

TEST(KubeReport, WhoEndedAPodThatHadToGoIsTold) {
  const std::string disruption = R"(, "conditions": [{"type": "DisruptionTarget", "status": "True",
      "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}]})";
  std::string ended = Container(R"({"terminated": {"exitCode": 143, "reason": "Error"}})");
  ended.pop_back();
  EXPECT_EQ(ReadOne(ended + disruption).ended->Describe(),
            "was ended by Kubernetes (EvictionByEvictionAPI: Eviction API: evicting)");
  std::string well = Container(R"({"terminated": {"exitCode": 0, "reason": "Completed"}})");
  well.pop_back();
  EXPECT_TRUE(ReadOne(well + disruption).ended->story.empty());
}

TEST(KubeReport, APodThatKubernetesHasEndedWasLost) {
  EXPECT_TRUE(ReadOne(R"({"phase": "Failed", "reason": "Evicted"})").ended->host_lost);
  std::string ended = Container(R"({"terminated": {"exitCode": 1, "reason": "Error"}})");
  EXPECT_FALSE(ReadOne(ended).ended->host_lost);
  ended.pop_back();
  ended +=
      R"(, "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]})";
  EXPECT_TRUE(ReadOne(ended).ended->host_lost);
}

TEST(KubeReport, PodsThatKubernetesHasEndedCountAsReplacedToo) {
  const PodReport third = ReadOne("{}", R"(, "annotations": {
      "batch.kubernetes.io/job-index-failure-count": "2",
      "batch.kubernetes.io/job-index-ignored-failure-count": "3"})");
  EXPECT_EQ(third.replaced, 5);
  EXPECT_EQ(ReadOne("{}").replaced, 0);
}

TEST(KubeReport, IndexesThatHaveFailedAreRead) {
  const KubeReport report = ReadKubeReport(
      R"({"items": [{"kind": "Job", "metadata": {"labels": {"dmlc-submit/role": "worker"}},
          "status": {"failedIndexes": "1,3-5,7"}}, {"kind": "Job", "status": {"failedIndexes": "x"}}]})");
  std::vector<std::size_t> ranks;
  for (const GivenUp& one : report.given_up) {
    EXPECT_EQ(one.role, "worker");
    ranks.push_back(one.rank);
  }
  EXPECT_THAT(ranks, ElementsAre(1, 3, 4, 5, 7));
}

TEST(KubeReport, AJobThatWasGivenUpIsTold) {
  const KubeReport report = ReadKubeReport(
      R"({"items": [{"kind": "Job", "status": {"conditions": [{"type": "Failed", "status": "True",
          "reason": "DeadlineExceeded", "message": "it was active too long"}]}}, {"kind": "Job", "status": {}}]})");
  EXPECT_EQ(report.jobs, 2U);
  EXPECT_EQ(report.failed_job, "DeadlineExceeded: it was active too long");
  const KubeReport ending = ReadKubeReport(
      R"({"items": [{"kind": "Job", "status": {"conditions": [{"type": "FailureTarget", "status": "True",
          "reason": "DeadlineExceeded"}]}}, {"kind": "Job", "status": {"conditions": [{"type": "FailureTarget",
          "status": "True", "reason": "PodFailurePolicy"}]}}]})");
  EXPECT_EQ(ending.failed_job, "DeadlineExceeded");
  EXPECT_THROW(ReadKubeReport("Unable to connect"), std::runtime_error);
  EXPECT_THROW(ReadKubeReport("[]"), std::runtime_error);
}

// --- the manifest ----------------------------------------------------------------------------------------

Options ForKubernetes() {
  Options options;
  options.cluster = "kubernetes";
  options.num_workers = 3;
  options.command = {"train"};
  options.kube_worker_image = "image";
  options.kube_manifest = "file";
  options.job_name = "job";
  return options;
}

KubeManifest ManifestOf(const Options& options) {
  const tracker::JobAddress address{KubernetesHost(options, 0),
                                    KubernetesPort(options),
                                    options.num_workers,
                                    options.num_servers,
                                    {},
                                    0,
                                    "7o"};
  const std::vector<PlannedProcess> plan = Plan(options, {address, {"train", "train", ""}, {}});
  return MakeKubeManifest({&options, &plan, 0, 0, "", 1, {}});
}

TEST(KubeManifest, NamesAreSuchAsKubernetesTakes) {
  Options options = ForKubernetes();
  options.job_name = "My Job_7.2!";
  EXPECT_EQ(KubernetesJobName(options), "my-job-7-2");
  options.job_name = "7";
  EXPECT_EQ(KubernetesJobName(options), "job-7");
  options.job_name.clear();
  options.command = {"/opt/bin/XGB.py"};
  EXPECT_EQ(KubernetesJobName(options), "dmlc-xgb-py");
  options.job_name = std::string(100, 'x');
  EXPECT_LE(KubernetesJobName(options).size() + std::string("-10-scheduler-100000").size(), 63U);
  options.kube_manifest.clear();
  EXPECT_NE(KubernetesJobName(options), KubernetesJobName(options));
}

TEST(KubeManifest, ATemplateIsMergedOverOurs) {
  const File file(R"(
spec:
  nodeSelector: {pool: gpu}
  containers:
    - resources: {limits: {cpu: "8"}}
      env: [{name: NCCL_DEBUG, value: INFO}]
    - {name: helper, image: other}
)");
  Options options = ForKubernetes();
  options.num_restarts = 1;
  options.kube_worker_template = file.path();
  const Json pod = ManifestOf(options).processes.at(0)["spec"]["template"]["spec"];
  EXPECT_EQ(pod["nodeSelector"]["pool"], "gpu");
  EXPECT_EQ(pod["restartPolicy"], "Never");
  ASSERT_EQ(pod["containers"].size(), 2U);
  EXPECT_EQ(pod["containers"][0]["name"], "worker");
  EXPECT_EQ(pod["containers"][0]["image"], "image");
  EXPECT_EQ(pod["containers"][0]["resources"]["limits"]["cpu"], "8");
  EXPECT_EQ(pod["containers"][0]["env"].size(), 3U);
  EXPECT_EQ(pod["containers"][1]["name"], "helper");
}

TEST(KubeManifest, ATemplateGivesAVariableItsOwnValue) {
  const File file("spec: {containers: [{env: [{name: OMP_NUM_THREADS, value: '3'}]}]}\n");
  Options options = ForKubernetes();
  const auto environment = [&] {
    return ManifestOf(options).processes.at(0)["spec"]["template"]["spec"]["containers"][0]["env"];
  };
  const Json limit = {{"resourceFieldRef", {{"resource", "limits.cpu"}}}};
  EXPECT_EQ(environment(), Json::array({{{"name", "OMP_NUM_THREADS"}, {"valueFrom", limit}}}));
  options.kube_worker_template = file.path();
  EXPECT_EQ(environment(), Json::array({{{"name", "OMP_NUM_THREADS"}, {"value", "3"}}}));
}

TEST(KubeManifest, ATemplateMayBeAWholeJob) {
  const File file(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: theirs, annotations: {team: a}}
spec: {template: {spec: {containers: [{name: worker, image: theirs}]}}}
)");
  Options options = ForKubernetes();
  options.kube_worker_template = file.path();
  const Json job = ManifestOf(options).processes.at(0);
  EXPECT_EQ(job["metadata"]["name"], "job-worker");
  EXPECT_EQ(job["metadata"]["annotations"]["team"], "a");
  EXPECT_EQ(job["spec"]["template"]["spec"]["containers"][0]["image"], "theirs");
  const File other("kind: Deployment\nspec: {}\n");
  options.kube_worker_template = other.path();
  EXPECT_THROW(ManifestOf(options), UsageError);
}

TEST(KubeManifest, AnEmptySectionOfATemplateIsNone) {
  Options options = ForKubernetes();
  const Json ours = ManifestOf(options).processes.at(0);
  for (const char* const text : {"metadata:\nspec:\n", "kind: Job\n", "kind: Job\nspec:\n",
                                 "kind: Job\nspec:\n  template:\n", "spec:\n  template:\n    spec:\n"}) {
    const File file(text);
    options.kube_worker_template = file.path();
    if (std::string(text) == "metadata:\nspec:\n") {
      EXPECT_THROW(ManifestOf(options), UsageError);  // the kind is missing
    } else {
      EXPECT_EQ(ManifestOf(options).processes.at(0)["spec"]["template"], ours["spec"]["template"]) << text;
    }
  }
  const File whole("kind: Job\nmetadata:\nspec:\n  backoffLimit: 77\n");
  options.kube_worker_template = whole.path();
  EXPECT_EQ(ManifestOf(options).processes.at(0)["spec"]["backoffLimit"], 77);
  for (const char* const text : {"kind: 3\n", "spec: 4\n", "spec: {containers: {}}\n", "metadata: []\n"}) {
    const File file(text);
    options.kube_worker_template = file.path();
    EXPECT_THROW(ManifestOf(options), UsageError) << text;
  }
}

TEST(KubeManifest, TheTrackerIsLetInAsTheWorkersAre) {
  const File workers(
      "spec: {imagePullSecrets: [{name: s}], securityContext: {runAsUser: 7}, nodeSelector: {pool: gpu}}\n");
  const File trackers("spec: {nodeSelector: {pool: small}}\n");
  Options options = ForKubernetes();
  options.kube_worker_template = workers.path();
  options.kube_tracker_template = trackers.path();
  const Json pod = ManifestOf(options).before.at(2)["spec"]["template"]["spec"];
  EXPECT_EQ(pod["imagePullSecrets"][0]["name"], "s");
  EXPECT_EQ(pod["securityContext"]["runAsUser"], 7);
  EXPECT_EQ(pod["nodeSelector"]["pool"], "small");
}

TEST(KubeManifest, WhoIsReplacedAndHowOften) {
  Options options = ForKubernetes();
  options.num_restarts = 2;
  const Json spec = ManifestOf(options).processes.at(0)["spec"];
  EXPECT_EQ(spec["backoffLimitPerIndex"], 2);
  EXPECT_EQ(spec["maxFailedIndexes"], 0);
  EXPECT_FALSE(spec.contains("backoffLimit"));
  EXPECT_EQ(spec["podFailurePolicy"]["rules"][0]["action"], "Count");
  EXPECT_EQ(spec["podFailurePolicy"]["rules"][1]["action"], "FailJob");
  EXPECT_EQ(spec["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"], Json({137, 143}));
}

TEST(KubeManifest, AnElasticJobReplacesWhatWasKilledAndGoesOnWithItsLeastNumber) {
  Options options = ForKubernetes();
  options.min_workers = 1;
  options.replace_within = std::chrono::seconds(7);
  const KubeManifest manifest = ManifestOf(options);
  const Json spec = manifest.processes.at(0)["spec"];
  EXPECT_EQ(spec["completions"], 3);
  EXPECT_EQ(spec["backoffLimitPerIndex"], 2);
  EXPECT_EQ(spec["maxFailedIndexes"], 2);
  EXPECT_FALSE(spec.contains("backoffLimit"));
  const Json rules = spec["podFailurePolicy"]["rules"];
  EXPECT_EQ(rules[0]["action"], "Ignore");
  EXPECT_EQ(rules[0]["onPodConditions"][0]["type"], "DisruptionTarget");
  EXPECT_EQ(rules[1]["action"], "FailJob");
  EXPECT_EQ(rules[1]["onExitCodes"]["operator"], "NotIn");
  EXPECT_EQ(rules[1]["onExitCodes"]["values"].front(), 129);
  EXPECT_EQ(rules[1]["onExitCodes"]["values"].back(), 159);
  const Json pod = spec["template"]["spec"];
  EXPECT_EQ(pod["terminationGracePeriodSeconds"], 30);
  EXPECT_EQ(pod["containers"][0]["env"][1]["name"], "DMLC_SUBMIT_DISRUPTED");
  const std::string tracker =
      manifest.before.at(2)["spec"]["template"]["spec"]["containers"][0]["command"][2].get<std::string>();
  EXPECT_THAT(tracker, HasSubstr("rabit-tracker --num-workers 1:3 "));
  EXPECT_THAT(tracker, HasSubstr(" --replace-within 7 --linger "));
  const std::string script = manifest.before.back()["stringData"]["process.sh"].get<std::string>();
  EXPECT_THAT(script, HasSubstr("\nrestarts=2\nkilled_only=1\n"));
}

TEST(KubeManifest, ResourcesQueueAndTimeAreAskedFor) {
  Options options = ForKubernetes();
  options.worker_cores = 4;
  options.worker_memory_bytes = std::uint64_t{3} << 30;
  options.worker_gpus = 2;
  options.queue = "team";
  options.time_limit = "3600";
  options.kube_namespace = "ml";
  const Json job = ManifestOf(options).processes.at(0);
  EXPECT_EQ(job["metadata"]["namespace"], "ml");
  EXPECT_EQ(job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "team");
  EXPECT_EQ(job["spec"]["activeDeadlineSeconds"], 3600);
  EXPECT_EQ(job["spec"]["backoffLimit"], 0);
  EXPECT_EQ(job["spec"]["completions"], 3);
  const Json amounts = {{"cpu", "4"}, {"memory", "3072Mi"}, {"nvidia.com/gpu", "2"}};
  EXPECT_EQ(job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"], amounts);
  options.time_limit = "1:00:00";
  EXPECT_THROW(ManifestOf(options), UsageError);
}

TEST(KubeManifest, WhereTheTrackerIsDecidesWhatThereIs) {
  const auto kinds = [](const std::vector<Json>& objects) {
    std::vector<std::string> found;
    for (const Json& object : objects) {
      found.push_back(object["kind"].get<std::string>() + "/" +
                      object["metadata"]["name"].get<std::string>());
    }
    return found;
  };
  Options options = ForKubernetes();
  EXPECT_THAT(kinds(ManifestOf(options).before),
              ElementsAre("Service/job", "Secret/job-tracker", "Job/job-tracker", "Secret/job-worker"));
  options.host_ip = "10.0.0.1";
  EXPECT_THAT(kinds(ManifestOf(options).before), ElementsAre("Secret/job-worker"));
  options.host_ip.clear();
  options.num_servers = 1;
  EXPECT_THAT(kinds(ManifestOf(options).before),
              ElementsAre("Service/job", "Secret/job-scheduler", "Job/job-scheduler", "Secret/job-server",
                          "Secret/job-worker"));
  EXPECT_THAT(kinds(ManifestOf(options).processes), ElementsAre("Job/job-server", "Job/job-worker"));
}

TEST(KubeManifest, TheTokenIsInSecretsAloneAndTheTrackerIsToldIt) {
  const KubeManifest manifest = ManifestOf(ForKubernetes());
  EXPECT_EQ(manifest.before[1]["stringData"]["DMLC_JOB_TOKEN"], "7o");
  const Json& job = manifest.before[2];
  const Json& variable = job["spec"]["template"]["spec"]["containers"][0]["env"][0];
  EXPECT_EQ(variable["name"], "DMLC_JOB_TOKEN");
  EXPECT_EQ(variable["valueFrom"]["secretKeyRef"]["name"], "job-tracker");
  for (const std::vector<Json>* objects : {&manifest.before, &manifest.processes}) {
    for (const Json& object : *objects) {
      if (object["kind"] == "Secret") continue;
      EXPECT_EQ(object.dump().find("7o"), std::string::npos) << object;
    }
  }
}

TEST(KubeManifest, ASecretIsPlainTextOrEncoded) {
  Options options = ForKubernetes();
  options.environment = {{"KEY", "a\tb"}};
  const Json text = ManifestOf(options).before.back();
  EXPECT_THAT(text["stringData"]["process.sh"].get<std::string>(), HasSubstr("export KEY='a\tb'"));
  // DEL, NEL, a line separator, a byte order mark, a non-ASCII letter, invalid UTF-8 and a carriage return:
  // YAML readers disagree on some of them.
  for (const char* const odd :
       {"\x7f", "\xc2\x85", "\xe2\x80\xa8", "\xef\xbb\xbf", "\xc3\xa4", "\xff", "\r"}) {
    options.environment = {{"KEY", odd}};
    const Json bytes = ManifestOf(options).before.back();
    EXPECT_FALSE(bytes.contains("stringData"));
    EXPECT_THAT(bytes["data"]["process.sh"].get<std::string>(), StartsWith("dG9sZD0"));  // base64 of "told="
  }
}

TEST(KubeManifest, ATrainJobTakesItsNumbersFromTheRuntime) {
  Options options = ForKubernetes();
  options.environment = {{"KEY", "secret"}};
  const tracker::JobAddress address{"tracker.job", 9091, 3, 0, {}, 0};
  const std::vector<PlannedProcess> plan = Plan(options, {address, {"train", "train", ""}, {}});
  const std::vector<Json> objects = MakeTrainJob({&options, &plan, 0, 0, "", 1, {}});
  ASSERT_EQ(objects.size(), 2U);
  const std::string script = objects[0]["stringData"]["DMLC_SUBMIT_SCRIPT_0"];
  EXPECT_THAT(script, HasSubstr("rank=$DMLC_TASK_ID"));
  EXPECT_THAT(script, HasSubstr("rabit-tracker --num-workers $DMLC_NUM_WORKER"));
  EXPECT_EQ(script.find("export DMLC_TRACKER_URI"), std::string::npos);
  EXPECT_EQ(script.find("export DMLC_NUM_WORKER"), std::string::npos);
  const Json& spec = objects[1]["spec"];
  EXPECT_EQ(spec["runtimeRef"]["name"], "xgboost-distributed");
  EXPECT_EQ(spec["trainer"]["numNodes"], 3);
  EXPECT_EQ(objects[1].dump().find("secret\""), std::string::npos);
  options.num_servers = 1;
  EXPECT_THROW(MakeTrainJob({&options, &plan, 0, 0, "", 1, {}}), UsageError);
}

}  // namespace
}  // namespace warren::submit
