// librabit's MockBefore, which does nothing; librabit_mock's replaces it.
#include "rabit_engine/recovery/mock.h"

namespace warren::recovery {

[[gnu::weak]] void MockBefore(std::string_view /*call*/, const Settings& /*settings*/, int /*rank*/,
                              int /*version*/, std::uint64_t /*seqno*/) {}

}  // namespace warren::recovery
