// Reads files for the page in a separate thread, because a slow file system must delay neither the tracker
// nor the end of the job.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>

#include "submit/monitor/web_message.h"

namespace warren::submit {

class FileReader {
 public:
  /// The maximum number of requests that wait for the thread; further requests are refused.
  static constexpr std::size_t kMostWaiting = 16;

  explicit FileReader(boost::asio::io_context& io);
  /// Drops all waiting requests. Does not wait for a function that is still reading; its result is dropped.
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// Calls `read` in the thread, and then `done` with its result in the io_context. If `read` throws or too
  /// many requests are waiting, `done` gets an error response.
  void Read(std::function<WebResponse()> read, std::function<void(WebResponse response)> done);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace warren::submit
