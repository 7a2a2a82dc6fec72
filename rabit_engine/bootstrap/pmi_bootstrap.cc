#include "rabit_engine/bootstrap/pmi_bootstrap.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/bootstrap/pmi_client.h"

namespace warren {
namespace {

class PmiBootstrap : public Bootstrap {
 public:
  PmiBootstrap(const PmiPlace& place, std::chrono::seconds timeout)
      : place_(place), client_(place.descriptor, timeout), number_(num_made_++) {}

  int rank() const override { return place_.rank; }
  int world_size() const override { return place_.world_size; }

  std::vector<std::string> Allgather(const std::string& record) override {
    const std::vector<std::string> pieces = EncodePmiRecord(record, client_.max_value_chars());
    for (std::size_t i = 0; i < pieces.size(); ++i) client_.Put(Key(place_.rank, i), pieces[i]);
    client_.Barrier();
    std::vector<std::string> records;
    records.reserve(place_.world_size);
    for (int rank = 0; rank < place_.world_size; ++rank) {
      records.push_back(rank == place_.rank ? record : Fetch(rank));
    }
    ++round_;
    return records;
  }

  void Shutdown() override {
    said_goodbye_ = true;
    client_.Finalize();
  }

  /// Whether this process has finalized PMI, which it can do only once.
  static bool said_goodbye() { return said_goodbye_; }

 private:
  std::string Fetch(int rank) {
    std::vector<std::string> pieces{client_.Get(Key(rank, 0))};
    const std::size_t count = NumPmiPieces(pieces.front());
    while (pieces.size() < count) pieces.push_back(client_.Get(Key(rank, pieces.size())));
    return DecodePmiRecord(pieces);
  }

  /// Each key can be put only once in a job, so it contains the number of this bootstrap in its process, the
  /// round, the rank and the piece.
  std::string Key(int rank, std::size_t piece) const {
    std::string key = fmt::format("warren-{}-{}-{}-{}", number_, round_, rank, piece);
    if (key.size() > client_.max_key_chars()) {
      throw EngineError(fmt::format("PMI: the launcher allows keys of {} characters, \"{}\" is longer",
                                    client_.max_key_chars(), key));
    }
    return key;
  }

  static inline int num_made_ = 0;
  static inline bool said_goodbye_ = false;

  PmiPlace place_;
  PmiClient client_;
  int number_;
  int round_ = 0;
};

}  // namespace

std::unique_ptr<Bootstrap> MakePmiBootstrap(const PmiPlace& place, std::chrono::seconds timeout) {
  if (PmiBootstrap::said_goodbye()) {
    throw EngineError(fmt::format(
        "rank {} of {}: this process has finalized PMI, which cannot start again in the same process: call Init and Finalize only once, or use a tracker",
        place.rank, place.world_size));
  }
  try {
    return std::make_unique<PmiBootstrap>(place, timeout);
  } catch (const EngineError& error) {
    throw EngineError(fmt::format("rank {} of {}: {}", place.rank, place.world_size, error.what()));
  }
}

}  // namespace warren
