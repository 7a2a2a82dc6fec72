// A program written for the copy of rabit in XGBoost 1.7: its calls do not pass the caller's file, line and
// function, and its checkpoints contain no models. It checks its own results, in jobs of up to 8 workers, and
// exits with code 0 if they are right.
#include <rabit/internal/io.h>
#include <rabit/rabit.h>

#include <cinttypes>
#include <map>

using MemoryFixSizeBuffer = rabit::utils::MemoryFixSizeBuffer;
using MemoryBufferStream = rabit::utils::MemoryBufferStream;

namespace {

template <typename DType, typename Op>
DType One(DType value) {
  rabit::Allreduce<Op, DType>(static_cast<DType*>(&value), 1);
  return value;
}

void Sum(void* buffer, std::size_t count) {
  rabit::engine::Allreduce_(buffer, sizeof(double), count, rabit::op::Reducer<rabit::op::Sum, double>,
                            rabit::engine::mpi::GetType<double>(), rabit::op::Sum::kType);
}

}  // namespace

int main(int argc, char* argv[]) {
  if (!rabit::Init(argc, argv)) return 1;
  auto rank = rabit::GetRank();
  auto world = rabit::GetWorldSize();

  rabit::utils::Check(rabit::LoadCheckPoint() == 0, "nothing to load");
  rabit::utils::Check(One<std::int32_t, rabit::op::Max>(rank) == world - 1, "max");
  rabit::utils::Check(One<std::uint64_t, rabit::op::Min>(rank) == 0, "min");
  rabit::utils::Check(One<std::int64_t, rabit::op::Sum>(rank) == world * (world - 1) / 2, "sum");
  rabit::utils::Check(
      One<unsigned char, rabit::op::BitOR>(static_cast<unsigned char>(1 << rank)) == (1 << world) - 1, "or");
  std::vector<double> data(1000, 0.25);
  Sum(data.data(), data.size());
  rabit::utils::Check(data.back() == 0.25 * world, "sum of doubles");
  rabit::engine::GetEngine()->Allreduce(data.data(), sizeof(double), data.size(),
                                        rabit::op::Reducer<rabit::op::Max, double>);
  rabit::Allreduce<rabit::op::Sum>(data.data(), data.size(), [&] { data.assign(data.size(), 1.0); });
  rabit::utils::Check(data.front() == world, "lambda");

  std::vector<int> gathered(2 * world);
  gathered[2 * rank] = gathered[2 * rank + 1] = rank;
  rabit::Allgather(gathered.data(), gathered.size(), 2 * rank, 2, 2);
  for (int i = 0; i < 2 * world; ++i) rabit::utils::Check(gathered[i] == i / 2, "allgather");

  std::string text = rank == 0 ? "text" : "";
  rabit::Broadcast(&text, 0);
  std::vector<char> bytes(text.begin(), text.end());
  rabit::Broadcast(&bytes, world - 1);
  rabit::Broadcast(dmlc::BeginPtr(bytes), bytes.size(), 0);
  rabit::engine::GetEngine()->Broadcast(&rank, sizeof(rank), 0);
  rabit::utils::Check(text == "text" && bytes.size() == 4 && rank == 0, "broadcast");

  rabit::CheckPoint();
  rabit::CheckPoint();
  rabit::utils::Check(rabit::VersionNumber() == 2 && rabit::LoadCheckPoint() == 0, "versions");

  std::string memory;
  MemoryBufferStream out(&memory);
  static_cast<dmlc::Stream*>(&out)->Write(std::map<std::string, int>{{"one", 1}});
  MemoryFixSizeBuffer in(rabit::BeginPtr(memory), memory.size());
  std::map<std::string, int> back;
  rabit::utils::Check(static_cast<dmlc::Stream*>(&in)->Read(&back) && back.at("one") == 1 && in.AtEnd(),
                      "streams");
  in.Seek(MemoryFixSizeBuffer::kSeekEnd);
  rabit::utils::Check(in.Tell() == rabit::Max(memory.size(), std::size_t{1}), "end");

  rabit::TrackerPrint("from XGBoost's copy\n");
  return rabit::Finalize() ? 0 : 1;
}
