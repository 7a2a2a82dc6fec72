// A program like a training job: it computes versions of a global model, and of a local model per rank, with
// calls of every kind. The models depend on every call, so a result that is lost, used twice or confused with
// another one changes the digests. Prints "rank R of N: <digest of the global model> <of the local model>" at
// the end.
//
//   training_worker <versions> <elements> [sleep=<ms>] [hosts=<number>] [leaves=<rank>] [killed=<rank>]
//   [faulty=<rank>] [seed=<number>] [before=<calls>] [files=<task>,<number>[,init]] [lazy] [tell] [key=value
//   of rabit...]
//
// sleep=20: each version takes 20 ms longer.
// leaves=1: this rank exits with success after the first version, without Finalize.
// hosts=2: the tasks act as if on 2 hosts, with shared memory within each and TCP between them.
// seed=1: a different model, computed with the same calls.
// before=2: makes 2 sums before LoadCheckPoint, for rabit_bootstrap_cache=1.
// killed=1, faulty=1: this rank is killed by SIGKILL or SIGABRT, respectively, after Finalize.
// files=1,20: the first process of task 1 can only open descriptors below 20, starting after its first
// version or, with ",init", before it joins the job.
// lazy: makes lazy checkpoints, without local models. tell: reports each version on stderr.
#include <rabit/rabit.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::uint64_t Mix(std::uint64_t seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
  return seed ^ seed >> 31;
}

double Number(std::uint64_t seed) {
  return static_cast<double>(Mix(seed) >> 11) / (1ULL << 53) - 0.5;
}

// Doubles whose sums depend on the order in which they are added.
struct Model : rabit::Serializable {
  std::vector<double> values;

  void Load(rabit::Stream* stream) override { stream->Read(&values); }
  void Save(rabit::Stream* stream) const override { stream->Write(values); }
  std::uint64_t Digest() const {
    std::uint64_t digest = values.size();
    for (const double value : values) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      digest = Mix(digest ^ bits);
    }
    return digest;
  }
};

void Train(Model& global, Model& local, int version) {
  const int rank = rabit::GetRank();
  const int world = rabit::GetWorldSize();
  const std::size_t count = global.values.size();

  // A sum whose input the prepare function fills, like XGBoost's histograms.
  std::vector<double> gradients(count);
  rabit::Allreduce<rabit::op::Sum>(gradients.data(), count, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      gradients[i] =
          global.values[i] * 0.5 + local.values[i % local.values.size()] + Number(version * 1'000'003 + i);
    }
  });
  // A few successive broadcasts, which the root leaves first.
  std::string word;
  for (int i = 0; i < 3; ++i) {
    const int root = (version + i) % world;
    if (rank == root)
      word = std::string(static_cast<std::size_t>(version % 7 + i + 1), static_cast<char>('a' + root));
    rabit::Broadcast(&word, root);
  }
  // Each rank provides its part of a table.
  std::vector<double> table(static_cast<std::size_t>(world) * 3);
  for (std::size_t i = 0; i < 3; ++i)
    table[rank * 3 + i] = local.values[i % local.values.size()] + gradients[i % count];
  rabit::Allgather(table.data(), table.size(), static_cast<std::size_t>(rank) * 3,
                   static_cast<std::size_t>(rank) * 3 + 3, 3);
  double largest = table[static_cast<std::size_t>(rank) * 3];
  rabit::Allreduce<rabit::op::Max>(&largest, 1);
  // A sum that algorithms send as floats unless they combine all operands in one step.
  std::vector<rabit::Float16> halves(count);
  for (std::size_t i = 0; i < count; ++i) {
    halves[i] = rabit::Float16(static_cast<float>(local.values[i % local.values.size()]));
  }
  rabit::Allreduce<rabit::op::Sum>(halves.data(), count);

  for (std::size_t i = 0; i < count; ++i) {
    global.values[i] = gradients[i] / world + largest * 0.001 + static_cast<double>(word.size()) +
                       static_cast<double>(static_cast<float>(halves[i])) * 0.001;
  }
  for (std::size_t i = 0; i < local.values.size(); ++i) {
    local.values[i] += global.values[i % count] * (rank + 1) + table[(i + rank) % table.size()];
  }
}

void LimitFiles(rlim_t most) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = most;
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool IsFirstProcessOf(int task) {
  const char* own = std::getenv("DMLC_TASK_ID");
  const char* attempt = std::getenv("DMLC_NUM_ATTEMPT");
  return own != nullptr && std::atoi(own) == task && (attempt == nullptr || std::atoi(attempt) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const int versions = std::atoi(argv[1]);
  const std::size_t elements = std::strtoull(argv[2], nullptr, 10);
  bool lazy = false;
  int leaver = -1;
  int killed = -1;
  int faulty = -1;
  bool tells = false;
  int seed = 0;
  int before = 0;
  int file_limit = 0;
  useconds_t pause_us = 0;
  for (int i = 3; i < argc; ++i) {
    if (std::strcmp(argv[i], "lazy") == 0) lazy = true;
    if (std::strncmp(argv[i], "hosts=", 6) == 0) {
      const char* task = std::getenv("DMLC_TASK_ID");
      const char* workers = std::getenv("DMLC_NUM_WORKER");
      const int host = std::atoi(task) * std::atoi(argv[i] + 6) / std::atoi(workers);
      setenv("WARREN_HOST_GROUP", ("host" + std::to_string(host)).c_str(), 1);
    }
    if (std::strcmp(argv[i], "tell") == 0) tells = true;
    if (std::strncmp(argv[i], "seed=", 5) == 0) seed = std::atoi(argv[i] + 5);
    if (std::strncmp(argv[i], "before=", 7) == 0) before = std::atoi(argv[i] + 7);
    if (std::strncmp(argv[i], "leaves=", 7) == 0) leaver = std::atoi(argv[i] + 7);
    if (std::strncmp(argv[i], "killed=", 7) == 0) killed = std::atoi(argv[i] + 7);
    if (std::strncmp(argv[i], "faulty=", 7) == 0) faulty = std::atoi(argv[i] + 7);
    if (std::strncmp(argv[i], "files=", 6) == 0 && IsFirstProcessOf(std::atoi(argv[i] + 6))) {
      file_limit = std::atoi(std::strchr(argv[i], ',') + 1);
      if (std::strstr(argv[i], ",init") != nullptr) LimitFiles(static_cast<rlim_t>(file_limit));
    }
    if (std::strncmp(argv[i], "sleep=", 6) == 0)
      pause_us = static_cast<useconds_t>(std::atoi(argv[i] + 6)) * 1000;
  }
  rabit::Init(argc, argv);
  Model global;
  Model local;
  const int rank = rabit::GetRank();
  local.values.assign(5 + rank, 0.25 * (rank + 1));
  for (int call = 0; call < before; ++call) {
    int ranks = 1;
    rabit::Allreduce<rabit::op::Sum>(&ranks, 1);
    if (ranks != rabit::GetWorldSize()) return 1;
  }
  int version = lazy ? rabit::LoadCheckPoint(&global) : rabit::LoadCheckPoint(&global, &local);
  if (version == 0) global.values.assign(elements, 1.0 + seed);
  for (; version < versions; ++version) {
    if (lazy) local.values.assign(5 + rank, 0.25 * (rank + 1) + version);
    if (version == 1 && rank == leaver) _exit(0);
    if (version == 1 && file_limit > 0) LimitFiles(static_cast<rlim_t>(file_limit));
    Train(global, local, version);
    if (pause_us > 0) usleep(pause_us);
    if (lazy) {
      rabit::LazyCheckPoint(&global);
    } else {
      rabit::CheckPoint(&global, &local);
    }
    if (tells) std::fprintf(stderr, "rank %d: version %d\n", rank, version + 1);
    if (rabit::VersionNumber() != version + 1) {
      std::fprintf(stderr, "rank %d: version %d after checkpoint %d\n", rank, rabit::VersionNumber(),
                   version + 1);
      return 1;
    }
  }
  if (lazy) local.values.clear();  // lazy checkpoints do not keep the local model
  std::printf("rank %d of %d: %016llx %016llx\n", rank, rabit::GetWorldSize(),
              static_cast<unsigned long long>(global.Digest()),
              static_cast<unsigned long long>(local.Digest()));
  std::fflush(stdout);
  rabit::Finalize();
  if (rank == killed) raise(SIGKILL);
  if (rank == faulty) raise(SIGABRT);
  return 0;
}
