// The two ways a process speaks.
#pragma once

namespace warren::submit {

enum class Stream { kOut, kErr };

}  // namespace warren::submit
