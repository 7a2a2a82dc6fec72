#include "submit/monitor/file_reader.h"

#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace warren::submit {
namespace {

namespace http = boost::beast::http;

struct Reading {
  std::function<WebResponse()> read;
  std::function<void(WebResponse response)> done;
};

WebResponse ResultOf(const Reading& reading) {
  try {
    return reading.read();
  } catch (const std::exception& error) {
    return Refuse(http::status::internal_server_error, error.what());
  }
}

}  // namespace

/// The state shared with the thread, which may outlive the FileReader.
struct FileReader::Shared {
  explicit Shared(boost::asio::io_context& context) : io(context) {}

  void Run() {
    for (std::unique_lock lock(mutex);;) {
      changed.wait(lock, [this] { return is_over || !waiting.empty(); });
      if (is_over) return;
      Reading reading = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      WebResponse response = ResultOf(reading);
      lock.lock();
      if (is_over) return;  // the io_context may no longer exist
      Post(std::move(reading.done), std::move(response));
    }
  }

  void Post(std::function<void(WebResponse response)> done, WebResponse response) {
    boost::asio::post(io, [done = std::move(done), response = std::move(response)]() mutable {
      done(std::move(response));
    });
  }

  boost::asio::io_context& io;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Reading> waiting;
  bool is_over = false;
};

FileReader::FileReader(boost::asio::io_context& io) : shared_(std::make_shared<Shared>(io)) {
  std::thread([shared = shared_] { shared->Run(); }).detach();
}

FileReader::~FileReader() {
  const std::lock_guard lock(shared_->mutex);
  shared_->is_over = true;
  shared_->waiting.clear();
  shared_->changed.notify_all();
}

void FileReader::Read(std::function<WebResponse()> read, std::function<void(WebResponse response)> done) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->waiting.size() >= kMostWaiting) {
    return shared_->Post(std::move(done), Refuse(http::status::service_unavailable,
                                                 "too many requests wait for a slow file system"));
  }
  shared_->waiting.push_back({std::move(read), std::move(done)});
  shared_->changed.notify_all();
}

}  // namespace warren::submit
