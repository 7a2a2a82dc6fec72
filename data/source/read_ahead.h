// Remote files in few requests. A store answers after 20 to 100 ms, however little was asked for, and charges
// for each request; who parses rows or decompresses reads a few bytes here and there.
#pragma once

#include <memory>

#include "data/source/remote.h"

namespace warren::data {

/// The same files, read so:
/// - 1 MiB or more at once: one request for just that.
/// - Less: out of windows, each of them one request. A window is twice what was asked for, at least 4 KiB;
/// with
///   8 KiB before it, because queries are followed backwards. One that goes on where another ended is four
///   times as large as that, up to 4 MiB; it ends where there is one already. Who needs a window that another
///   thread waits for, waits, too.
///
/// Windows of all files together take at most 64 MiB (and what is being read); the one not used for longest
/// goes. What a window holds is not read again: whether a file has changed is for `files` to see.
std::shared_ptr<const RemoteFiles> WithReadAhead(std::shared_ptr<const RemoteFiles> files);

}  // namespace warren::data
