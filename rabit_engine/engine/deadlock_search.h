// Finds out that ranks wait for each other's messages, in a circle: none of them can go on.
//
// Each rank that waits says so to the ranks of its host, in shared memory, and again and again while it does
// (WaitRecord). It sends a probe along the edges "waits for" soon after it began to, and in a call of
// messages again and again, ever more seldom: through the records of its host, and from host to host by a
// short connection to the rank at the end of the edge, which follows it further if it waits itself. A probe
// that comes back has gone in a circle (K. M. Chandy, J. Misra and L. M. Haas, "Distributed deadlock
// detection", ACM TOCS 1(2), 1983; ranks wait for all of their edges, not for any: an exchange ends when all
// of its messages have).
//
// That the ranks of a circle were seen one after the other is not enough: the same circle, of the same waits,
// has to be seen a second time. Then all of these waits lay between the two. That nothing is on its way
// between two of them is known by counts of bytes where they talk over TCP: whoever gets a probe compares
// what it has sent with what the other has received. In shared memory nothing is on its way: a rank that has
// looked after the other began to wait has seen all.
//
// Values in, values out: no socket, and the clock is the caller's. Of the ranks of a circle the one with the
// lowest hash finds it, since ranks pass on the probes of lower ones only: a chain of n ranks that wait for a
// late one sends n log n messages and not n * n. A rank that does not pass on the probe of one that has just
// begun to wait sends its own at once, which may close a circle that it has looked for in vain before; so
// does any that sends none of its own accord.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "rabit_engine/transport/transport.h"
#include "rabit_engine/transport/wait_record.h"

namespace warren {

/// What a rank knows of its link with another.
struct LinkState {
  bool shares_memory = false;
  bool is_linked = false;      ///< by TCP, like what follows
  std::uint64_t sent = 0;      ///< bytes
  std::uint64_t received = 0;  ///< bytes
  bool is_full = false;        ///< it has no room until the other reads
};
/// What the interest of rank `rank` in another says of their waiting; none where it may end by itself.
std::optional<WaitEdge> EdgeOf(int rank, const Interest& interest, const LinkState& link);
/// Whether the rank that the probe came to does nothing, while it waits itself, that would end the waiting of
/// probe.waiter for it. `own`: what it waits for of that rank, nullptr if it does not.
bool Holds(const WaitProbe& probe, const Interest* own, const LinkState& link);

class DeadlockSearch {
 public:
  static constexpr double kPatience = 0.5;  ///< seconds of waiting before the first probe
  static constexpr double kSecondLook = 1;  ///< and until a circle is looked at again
  static constexpr double kAtLeast = 0.8;   ///< seconds between two probes that others ask for
  static constexpr double kLongestPause = 30;
  /// A record that is older is none, the rank's own neither: it may wait no more. Well under kSecondLook.
  static constexpr double kFresh = 0.5;

  struct View {
    /// Whether a rank's record can be read here; this rank's own can.
    std::function<bool(int rank)> shares_memory;
    /// The record of such a rank, if it is fresh by a clock that was read after it.
    std::function<std::optional<WaitRecord>(int rank)> wait_of;
    /// Seconds, by the clock of the records.
    std::function<double()> now;
  };
  struct Message {
    int to = -1;
    WaitProbe probe;
  };

  /// `size`: of the communicator; `rank`: among those that probes name.
  DeadlockSearch(int rank, int size, View view) : rank_(rank), size_(size), view_(std::move(view)) {}

  /// This rank waits: `own` is its record. `for_messages`: in a call that others do not make.
  std::optional<Message> Tick(const WaitRecord& own, bool for_messages);
  /// A probe came, in the same wait, whose edge leads here in truth.
  std::optional<Message> Take(const WaitProbe& probe);
  /// The ranks of a circle that was found, this one first, as far as they are known; else none.
  const std::vector<int>& found() const { return found_; }
  /// How many there are in it.
  std::uint32_t num_found() const { return num_found_; }

 private:
  enum class Step { kSearching, kSeen, kLooksAgain };

  std::optional<Message> Follow(WaitProbe probe);
  void Return(const WaitProbe& probe);

  int rank_;
  int size_;
  View view_;
  std::int64_t since_ = 0;  ///< of the wait that is searched for
  std::uint32_t attempt_ = 0;
  Step step_ = Step::kSearching;
  std::uint64_t seen_ = 0;  ///< the digest of a circle
  double next_ = 0;
  double pause_ = 0;
  int num_probes_ = 0;
  double last_probe_ = 0;
  bool for_messages_ = false;
  bool was_asked_ = false;  ///< by one that has just begun to wait
  std::vector<int> found_;
  std::uint32_t num_found_ = 0;
};

}  // namespace warren
