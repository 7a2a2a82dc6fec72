// Custom reductions: a struct with a function, and an object that serializes itself.
//
//     dmlc-submit --num-workers 4 rabit-reducer
#include <rabit/rabit.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>

namespace {

// Summary of many measurements. It has no pointers, since its bytes are sent unchanged.
struct Summary {
  std::int64_t count;
  double sum;
  double low;
  double high;
};

void Merge(Summary& left, const Summary& right) {
  left.count += right.count;
  left.sum += right.sum;
  left.low = std::min(left.low, right.low);
  left.high = std::max(left.high, right.high);
}

// A set of any size within the byte limit for one object.
struct Labels {
  std::set<int> values;

  void Save(rabit::Stream& stream) const {
    const std::uint32_t count = static_cast<std::uint32_t>(values.size());
    stream.Write(&count, sizeof(count));
    for (const int value : values) stream.Write(&value, sizeof(value));
  }
  void Load(rabit::Stream& stream) {
    values.clear();
    std::uint32_t count = 0;
    stream.Read(&count, sizeof(count));
    for (; count > 0; --count) {
      int value = 0;
      stream.Read(&value, sizeof(value));
      values.insert(value);
    }
  }
  void Reduce(const Labels& other, std::size_t /*max_bytes*/) {
    values.insert(other.values.begin(), other.values.end());
  }
};

}  // namespace

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);
  const int rank = rabit::GetRank();

  {  // reducers must be destroyed before Finalize
    Summary summary = {rank + 1, 10.0 * rank, 50.0 - rank, 100.0 + rank};
    rabit::Reducer<Summary, Merge> merge;
    merge.Allreduce(&summary, 1);
    std::printf("rank %d: %ld measurements from %g to %g, sum %g\n", rank, static_cast<long>(summary.count),
                summary.low, summary.high, summary.sum);

    Labels labels;
    labels.values = {0, rank * rank};
    rabit::SerializeReducer<Labels> unite;
    const std::size_t max_bytes = 256;
    unite.Allreduce(&labels, max_bytes, 1);
    std::printf("rank %d: %zu labels, up to %d\n", rank, labels.values.size(), *labels.values.rbegin());
  }

  rabit::Finalize();
  return 0;
}
