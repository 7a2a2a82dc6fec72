// A world whose ranks are plain objects. One function call runs a cycle of all ranks, without threads or
// clocks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/coordinator/coordinator.h"
#include "rabit_engine/coordinator/participant.h"

namespace warren::coordinator {

struct WorldOptions {
  int size = 2;
  std::size_t capacity = 64;
  Patience patience = {};
  Settings settings = {1 << 20, 1000, 60};
};

class SimulatedWorld {
 public:
  explicit SimulatedWorld(const WorldOptions& options)
      : coordinator_(options.size, options.settings, options.patience, [](int rank) { return rank; }) {
    for (int rank = 0; rank < options.size; ++rank)
      ranks.emplace_back(rank, options.settings, options.capacity);
  }

  /// Runs one cycle at time `now`. Returns the operations to run, after checking that all ranks have the
  /// same.
  std::vector<Ready> Cycle() {
    std::vector<std::uint64_t> all;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const auto words = ranks[rank].Words(now, rank == 0 && coordinator_.IsDue(now));
      if (rank == 0) all = words;
      EXPECT_EQ(words.size(), all.size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] &= words[i];
    }
    most_words = std::max(most_words, all.size());
    std::size_t talking = 0;
    for (Participant& rank : ranks) talking += rank.Agree(all) ? 1 : 0;
    EXPECT_TRUE(talking == 0 || talking == ranks.size());
    if (talking > 0) {
      ++num_talks;
      std::vector<RankReport> messages;
      for (Participant& rank : ranks) messages.push_back(DecodeReport(Encode(rank.TakeReport(now))));
      const Answer answer = DecodeAnswer(Encode(coordinator_.Take(
          messages, [this](const Request& request) { return ranks[0].KnownBeside(request); }, now)));
      for (Participant& rank : ranks) rank.Accept(answer);
      for (std::string& warning : coordinator_.TakeWarnings()) warnings.push_back(std::move(warning));
    }
    std::vector<Ready> first;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      std::vector<Ready> batch = ranks[rank].ready().TakeBatch(ranks[rank].settings().fusion_bytes);
      if (rank == 0) {
        first = std::move(batch);
        continue;
      }
      EXPECT_EQ(batch.size(), first.size());
      for (std::size_t i = 0; i < std::min(batch.size(), first.size()); ++i) {
        EXPECT_EQ(*batch[i].request, *first[i].request);
        EXPECT_EQ(batch[i].error, first[i].error);
      }
    }
    return first;
  }

  Coordinator& coordinator() { return coordinator_; }

  std::vector<Participant> ranks;
  double now = 0;
  int num_talks = 0;
  std::size_t most_words = 0;
  std::vector<std::string> warnings;

 private:
  Coordinator coordinator_;
};

inline Request Sum(const std::string& name, std::uint64_t count = 10) {
  Request request;
  request.name = name;
  request.signature.type = 6;  // float
  request.signature.operation = 2;
  request.signature.element_bytes = 4;
  request.signature.count = count;
  return request;
}

inline std::vector<std::string> NamesOf(const std::vector<Ready>& batch) {
  std::vector<std::string> names;
  for (const Ready& ready : batch) names.push_back(ready.request->name);
  return names;
}

}  // namespace warren::coordinator
