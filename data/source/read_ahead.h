// Reads remote files with few requests. A store answers after 20 to 100 ms, however little was requested, and
// charges per request, but parsers and decompressors read a few bytes here and there.
#pragma once

#include <memory>

#include "data/source/remote.h"

namespace warren::data {

/// Returns the same files with read-ahead:
/// - Reads of 1 MiB or more: one request for exactly that range.
/// - Smaller reads are served from windows, each of which is one request. A window has twice the
///   requested size, at least 4 KiB, and 8 KiB before it, because queries are followed backwards. A window
///   that continues another one is four times as large as that one instead, up to 4 MiB. A window ends
///   where an existing one begins. A thread that needs a window that another thread is reading waits for it.
///
/// The windows of all files together take at most 64 MiB (plus those being read); the least recently used is
/// dropped. The contents of a window are not read again: `files` must detect whether a file has changed.
std::shared_ptr<const RemoteFiles> WithReadAhead(std::shared_ptr<const RemoteFiles> files);

}  // namespace warren::data
