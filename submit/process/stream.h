// The two output streams of a process.
#pragma once

namespace warren::submit {

enum class Stream { kOut, kErr };

}  // namespace warren::submit
