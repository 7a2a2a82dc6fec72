// All algorithms under test, by collective.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "rabit_engine/collective/halving_doubling.h"
#include "rabit_engine/collective/pairwise.h"
#include "rabit_engine/collective/recursive_doubling.h"
#include "rabit_engine/collective/ring.h"
#include "rabit_engine/collective/tree.h"

namespace warren::testing {

template <typename Function>
struct Named {
  const char* name;
  Function function;
  friend std::ostream& operator<<(std::ostream& out, const Named& named) { return out << named.name; }
};

template <typename Function>
struct NameOf {
  std::string operator()(const ::testing::TestParamInfo<Named<Function>>& info) const {
    return info.param.name;
  }
};

inline constexpr Named<collective::AllreduceFunction> kAllreduces[] = {
    {"Tree", collective::AllreduceTree},
    {"RecursiveDoubling", collective::AllreduceRecursiveDoubling},
    {"HalvingDoubling", collective::AllreduceHalvingDoubling},
    {"Pairwise", collective::AllreducePairwise},
    {"Ring", collective::AllreduceRing},
};
inline constexpr Named<collective::ReduceFunction> kReduces[] = {{"Tree", collective::ReduceTree}};
inline constexpr Named<collective::ReduceScatterFunction> kReduceScatters[] = {
    {"Pairwise", collective::ReduceScatterPairwise},
    {"Ring", collective::ReduceScatterRing},
};
inline constexpr Named<collective::AllgatherFunction> kAllgathers[] = {
    {"Bruck", collective::AllgatherBruck},
    {"Pairwise", collective::AllgatherPairwise},
    {"Ring", collective::AllgatherRing},
};
inline constexpr Named<collective::BroadcastFunction> kBroadcasts[] = {{"Tree", collective::BroadcastTree},
                                                                       {"Ring", collective::BroadcastRing}};
inline constexpr Named<collective::BarrierFunction> kBarriers[] = {
    {"Tree", collective::BarrierTree},
    {"Dissemination", collective::BarrierDissemination},
};

}  // namespace warren::testing
