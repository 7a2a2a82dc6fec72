// k-means over points that are spread over the ranks, structured like most rabit programs: load the newest
// model, then in each round compute on the local points, allreduce, update, checkpoint.
//
//     dmlc-submit --num-workers 3 rabit-kmeans [points] [clusters] [rounds]
//
// Any number of workers finds the same centers: coordinates are small whole numbers, so the sums are exact.
#include <rabit/rabit.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Point = std::array<double, 2>;

struct Model : rabit::Serializable {
  std::vector<Point> centres;

  void Load(rabit::Stream* stream) override {
    std::uint64_t count = 0;
    stream->Read(&count, sizeof(count));
    centres.resize(count);
    stream->Read(centres.data(), count * sizeof(Point));
  }
  void Save(rabit::Stream* stream) const override {
    const std::uint64_t count = centres.size();
    stream->Write(&count, sizeof(count));
    stream->Write(centres.data(), count * sizeof(Point));
  }
};

// Returns point i of the data, the same on every rank: clusters around (0, 0), (100, 0), (200, 0), ...,
// spread by a hash.
Point PointAt(std::uint64_t i, std::uint64_t crowds) {
  std::uint64_t hash = (i + 1) * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 29;
  const double x = static_cast<double>(hash % 41) - 20;
  const double y = static_cast<double>(hash / 41 % 41) - 20;
  return {static_cast<double>(i % crowds) * 100 + x, y};
}

std::size_t Nearest(const std::vector<Point>& centres, const Point& point) {
  std::size_t best = 0;
  double best_distance = 0;
  for (std::size_t c = 0; c < centres.size(); ++c) {
    const double dx = centres[c][0] - point[0];
    const double dy = centres[c][1] - point[1];
    const double distance = dx * dx + dy * dy;
    if (c == 0 || distance < best_distance) {
      best = c;
      best_distance = distance;
    }
  }
  return best;
}

std::uint64_t Argument(const std::vector<std::string>& arguments, std::size_t index,
                       std::uint64_t otherwise) {
  return index < arguments.size() ? std::strtoull(arguments[index].c_str(), nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char* argv[]) {
  std::vector<std::string> numbers;  // key=value arguments are for rabit
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]).find('=') == std::string::npos) numbers.emplace_back(argv[i]);
  }
  const std::uint64_t num_points = Argument(numbers, 0, 3000);
  const std::uint64_t num_clusters = Argument(numbers, 1, 3);
  const int num_rounds = static_cast<int>(Argument(numbers, 2, 8));
  if (num_clusters == 0) {
    std::fprintf(stderr, "rabit-kmeans: found clusters = %s, expected a number of at least 1\n",
                 numbers[1].c_str());
    return 2;
  }

  rabit::Init(argc, argv);
  const auto rank = static_cast<std::uint64_t>(rabit::GetRank());
  const auto world_size = static_cast<std::uint64_t>(rabit::GetWorldSize());

  Model model;
  const int first_round = rabit::LoadCheckPoint(&model);
  if (first_round == 0) {
    for (std::uint64_t c = 0; c < num_clusters; ++c) model.centres.push_back(PointAt(c, num_clusters));
  }

  for (int round = first_round; round < num_rounds; ++round) {
    // For each cluster: the sum of x, the sum of y, the number of points.
    std::vector<double> sums(3 * num_clusters);
    rabit::Allreduce<rabit::op::Sum>(sums.data(), sums.size(), [&] {
      for (std::uint64_t i = rank; i < num_points; i += world_size) {
        const Point point = PointAt(i, num_clusters);
        double* const sum = &sums[3 * Nearest(model.centres, point)];
        sum[0] += point[0];
        sum[1] += point[1];
        sum[2] += 1;
      }
    });
    for (std::uint64_t c = 0; c < num_clusters; ++c) {
      if (sums[3 * c + 2] > 0)
        model.centres[c] = {sums[3 * c] / sums[3 * c + 2], sums[3 * c + 1] / sums[3 * c + 2]};
    }
    // The model does not change before the next collective, so a lazy checkpoint, which keeps only a pointer,
    // is enough.
    rabit::LazyCheckPoint(&model);
  }

  if (rank == 0) {
    for (const Point& centre : model.centres)
      rabit::TrackerPrintf("centre %.6f %.6f\n", centre[0], centre[1]);
  }
  rabit::Finalize();
  return 0;
}
