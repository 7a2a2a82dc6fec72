// Picks out the actions of a cluster's state machine that a test is about.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "submit/cluster/cluster_event.h"

namespace warren::submit {

/// The actions of type `Wanted`.
template <typename Wanted, typename Action>
std::vector<Wanted> ActionsOf(const std::vector<Action>& actions) {
  std::vector<Wanted> found;
  for (const Action& action : actions) {
    if (const auto* const one = std::get_if<Wanted>(&action)) found.push_back(*one);
  }
  return found;
}

/// The events of type `Wanted` among the actions.
template <typename Wanted, typename Action>
std::vector<Wanted> EventsAmong(const std::vector<Action>& actions) {
  return ActionsOf<Wanted>(ActionsOf<ClusterEvent>(actions));
}

/// The texts of the warnings among the actions.
template <typename Action>
std::vector<std::string> WarningsAmong(const std::vector<Action>& actions) {
  std::vector<std::string> texts;
  for (const LogLine& line : EventsAmong<LogLine>(actions)) {
    if (line.severity == Severity::kWarning) texts.push_back(line.text);
  }
  return texts;
}

}  // namespace warren::submit
