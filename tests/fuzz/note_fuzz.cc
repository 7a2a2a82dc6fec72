// Files from which a tracker takes over a job: a file is refused, or the job continues.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warren::tracker;
  namespace classic = warren::wire::classic;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const TimePoint now{};
  Job job({4, SortBy::kTask, false, std::chrono::seconds(10), true}, now);
  try {
    std::vector<Note> notes;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      notes.push_back(DecodeNote(line));
      // Large worlds are slow and test nothing new.
      if (notes.back().kind == Note::Kind::kWorld && notes.back().rank > 1000) return 0;
    }
    job.TakeOver(notes, now);
  } catch (const std::invalid_argument&) {
    return 0;
  }
  for (int task = 0; task < 4; ++task) {
    const auto id = static_cast<ConnectionId>(task + 1);
    job.Opened(id, "10.0.0.1", 1, now);
    const classic::Hello hello{-1, -1, std::to_string(task), classic::Command::kStart};
    job.Received(id, classic::EncodeMagic() + classic::Encode(hello) + classic::Encode(classic::GoodLinks{}),
                 now);
    job.TakeActions();
  }
  job.DescribeMissing();
  job.Tick(now + std::chrono::seconds(20));
  job.TakeActions();
  return 0;
}
