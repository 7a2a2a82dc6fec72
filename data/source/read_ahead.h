// Reads remote files with few requests. A store takes 20 to 100 ms to answer even a small request, and
// charges for each, but parsers and decompressors make many small reads.
#pragma once

#include <memory>

#include "data/source/remote.h"

namespace warren::data {

/// Returns the same files with read-ahead:
/// - Reads of 1 MiB or more: one request for exactly that range.
/// - Smaller reads are served from windows, each of which is one request. A window has twice the requested
///   bytes, at least 4 KiB, and the 8 KiB before them, since the search for the beginning of a query reads
///   backwards. A window that continues another one instead begins at the requested bytes and is four times
///   as large as the other, up to 4 MiB. A window ends where an existing one begins. A thread that needs a
///   window that another thread is reading waits for it.
///
/// The windows of all files together take at most 64 MiB, not counting dropped windows that a thread still
/// reads; the least recently used are dropped first. Windows are never refreshed: `files` must detect changed
/// files.
std::shared_ptr<const RemoteFiles> WithReadAhead(std::shared_ptr<const RemoteFiles> files);

}  // namespace warren::data
