// The memberships of warren/c_api.h. They need no session.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "rabit_engine/api/c_result.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/tracker_connection.h"
#include "warren/c_api.h"
#include "wire/membership.h"

/// A connection to the tracker, and the settings to which it refers.
struct WarrenMembershipState {
  warren::Settings settings = warren::ReadSettings({});
  warren::TrackerConnection connection{settings};
};

namespace {

using warren::api::Attempt;
using Clock = std::chrono::steady_clock;

/// The longest wait, in seconds; much larger values would overflow Clock::duration.
constexpr double kMostSeconds = 1e6;

WarrenMembershipState& Require(WarrenMembership membership) {
  if (membership == nullptr) throw warren::Misuse("the membership is NULL: WarrenMembershipOpen makes one");
  return *membership;
}

}  // namespace

int WarrenMembershipConnect(WarrenMembership* membership) {
  return Attempt([&] {
    auto made = std::make_unique<WarrenMembershipState>();
    made->connection.Send(warren::wire::Writer().Int(warren::wire::kMembershipMagic).Take());
    *membership = made.release();
  });
}

int WarrenMembershipBegin(WarrenMembership membership, int word, int generation) {
  return Attempt([&] {
    const bool waits = word == WARREN_MEMBER_COMES;
    if (!waits && word != WARREN_MEMBER_STAYS && word != WARREN_MEMBER_DONE) {
      throw warren::Misuse("WarrenMembershipBegin: word " + std::to_string(word) +
                           ", expected WARREN_MEMBER_COMES, WARREN_MEMBER_STAYS or WARREN_MEMBER_DONE");
    }
    const std::string& task_id = Require(membership).settings.task_id;
    membership->connection.Send(Encode(
        warren::wire::MemberMessage{static_cast<warren::wire::MemberWord>(word),
                                    waits ? task_id : warren::wire::TaskInGeneration(task_id, generation)}));
  });
}

int WarrenMembershipOpen(WarrenMembership* membership) {
  WarrenMembership made = nullptr;
  const int code = WarrenMembershipConnect(&made);
  if (code != 0) return code;
  if (const int said = WarrenMembershipBegin(made, WARREN_MEMBER_COMES, 0); said != 0) {
    delete made;
    return said;
  }
  *membership = made;
  return 0;
}

int WarrenMembershipTell(WarrenMembership membership, int word) {
  return Attempt([&] {
    if (word < WARREN_MEMBER_COMES || word > WARREN_MEMBER_LEAVES) {
      throw warren::Misuse("WarrenMembershipTell: word " + std::to_string(word) +
                           ", expected WARREN_MEMBER_...");
    }
    Require(membership)
        .connection.Send(
            Encode(warren::wire::MemberMessage{static_cast<warren::wire::MemberWord>(word), {}}));
  });
}

int WarrenMembershipHear(WarrenMembership membership, double seconds, int* word, int* generation, int* size,
                         char* story, size_t story_bytes) {
  return Attempt([&] {
    const double patience = std::isnan(seconds) ? 0 : std::clamp(seconds, 0.0, kMostSeconds);
    const auto deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience));
    const auto message = Require(membership).connection.HearOfGenerations(deadline);
    *word = message ? static_cast<int>(message->word) : 0;
    *generation = message ? message->generation : 0;
    *size = message ? message->size : 0;
    if (story == nullptr || story_bytes == 0) return;
    const std::string text = message ? message->story.substr(0, story_bytes - 1) : "";
    std::memcpy(story, text.c_str(), text.size() + 1);
  });
}

int WarrenMembershipDescriptor(WarrenMembership membership, int* descriptor) {
  return Attempt([&] { *descriptor = Require(membership).connection.descriptor(); });
}

int WarrenMembershipClose(WarrenMembership membership) {
  return Attempt([&] { delete membership; });
}
