#include "rabit_engine/coordinator/ready_list.h"

#include <algorithm>
#include <utility>

namespace warren::coordinator {
namespace {

bool CanBePacked(const Ready& ready) {
  const Signature& what = ready.request->signature;
  return ready.error.empty() && what.kind == Collective::kAllreduce && !what.custom;
}

bool GoTogether(const Signature& one, const Signature& two) {
  return one.type == two.type && one.operation == two.operation && one.average == two.average;
}

}  // namespace

void ReadyList::Add(Ready ready) {
  const auto before = [](std::int32_t priority, const Ready& other) {
    return priority > other.request->priority;
  };
  const auto place = std::upper_bound(ready_.begin(), ready_.end(), ready.request->priority, before);
  ready_.insert(place, std::move(ready));
}

std::vector<Ready> ReadyList::TakeBatch(std::uint64_t fusion_bytes) {
  std::vector<Ready> batch;
  if (ready_.empty()) return batch;
  batch.push_back(std::move(ready_.front()));
  ready_.pop_front();
  const Signature what = batch.front().request->signature;
  if (!CanBePacked(batch.front()) || what.bytes() >= fusion_bytes) return batch;
  std::uint64_t room = fusion_bytes - what.bytes();
  std::deque<Ready> rest;
  for (Ready& ready : ready_) {
    const Signature& other = ready.request->signature;
    if (CanBePacked(ready) && GoTogether(what, other) && other.bytes() <= room) {
      room -= other.bytes();
      batch.push_back(std::move(ready));
    } else {
      rest.push_back(std::move(ready));
    }
  }
  ready_ = std::move(rest);
  return batch;
}

}  // namespace warren::coordinator
