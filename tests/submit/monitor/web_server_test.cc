// The job's web server, with its file reader and its choice of connections to close, in cases that are hard
// to test from clients. watching_test.py tests the rest.
#include "submit/monitor/web_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "submit/monitor/file_reader.h"
#include "submit/monitor/web_request.h"
#include "submit/monitor/web_seats.h"
#include "tests/submit/monitor/synthetic_job.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

WebServerCallbacks Callbacks(const OutputHistory& output) {
  PageSources page;
  page.output = &output;
  return {[] { return SyntheticJob(1, 10); }, std::move(page)};
}

TEST(WebServer, WhoeverIsBeingAnsweredAtTheEndGetsAllOfIt) {
  asio::io_context io;
  OutputHistory output(1, std::size_t{8} << 20);
  // More than the kernel's buffers hold: each quote is two bytes in JSON.
  for (int i = 0; i < 2000; ++i) output.Add(0, Stream::kOut, std::string(2000, '"'));
  WebServer server(io, {.metrics = {}, .page = WebAddress{}, .page_token = "secret"}, Callbacks(output));
  const std::string url = server.PageUrl();  // http://127.0.0.1:PORT/?token=secret
  const auto port = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));

  asio::io_context io_of_client;
  tcp::socket client(io_of_client, tcp::v4());
  client.connect({asio::ip::address_v4::loopback(), port});
  asio::write(client, asio::buffer(fmt::format("GET /logs?limit=2000 HTTP/1.1\r\nHost: localhost\r\n"
                                               "Cookie: {}=secret\r\n\r\n",
                                               CookieName(port))));
  while (client.available() == 0) io.run_one();

  const auto began = std::chrono::steady_clock::now();
  bool is_done = false;
  server.Finish(SyntheticJob(1, 1000), [&] { is_done = true; });
  client.non_blocking(true);
  std::string answer;
  for (boost::system::error_code error; error != asio::error::eof;) {
    io.poll();
    char piece[1 << 16];
    answer.append(piece, client.read_some(asio::buffer(piece), error));
    ASSERT_TRUE(!error || error == asio::error::would_block || error == asio::error::eof) << error.message();
  }
  while (!is_done) io.run_one();
  if (std::chrono::steady_clock::now() - began >= WebServer::kFinishLimit)
    GTEST_SKIP() << "the machine is too slow";
  const std::size_t body = answer.find("\r\n\r\n") + 4;
  EXPECT_GT(answer.size(), 7'000'000u);
  EXPECT_NE(answer.find(fmt::format("Content-Length: {}\r\n", answer.size() - body)), std::string::npos);
}

TEST(WebServer, TheAddressOfAllInterfacesIsNotInAUrl) {
  asio::io_context io;
  const OutputHistory output(1);
  const WebServer server(io, {.metrics = {}, .page = WebAddress{"0.0.0.0", 0}, .page_token = "secret"},
                         Callbacks(output));
  EXPECT_EQ(server.PageUrl().find("0.0.0.0"), std::string::npos) << server.PageUrl();
  EXPECT_TRUE(server.PageUrl().starts_with("http://")) << server.PageUrl();
}

TEST(FileReader, ASlowFileSystemIsNotWaitedForAtTheEnd) {
  asio::io_context io;
  std::promise<void> answered;
  const std::shared_future<void> answer = answered.get_future().share();
  std::promise<void> asked;
  int done = 0;
  {
    FileReader reader(io);
    const auto count = [&done](const WebResponse&) { ++done; };
    reader.Read(
        [&asked, answer] {
          asked.set_value();
          answer.wait();
          return Refuse(boost::beast::http::status::not_found, "");
        },
        count);
    asked.get_future().wait();
    for (std::size_t i = 0; i <= FileReader::kMostWaiting; ++i)
      reader.Read([]() -> WebResponse { throw std::runtime_error("never called"); }, count);
    io.run();
    EXPECT_EQ(done, 1) << "one more than may wait";
  }
  answered.set_value();
  io.restart();
  io.run();
  EXPECT_EQ(done, 1);
}

std::vector<WebSeat> Seats(std::initializer_list<std::tuple<bool, bool, int>> seats) {
  std::vector<WebSeat> all;
  for (const auto& [knows_token, is_waiting, second] : seats) {
    all.push_back(
        {knows_token, is_waiting, std::chrono::steady_clock::time_point(std::chrono::seconds(second))});
  }
  return all;
}

TEST(WebSeats, TheStrangerThatHasBeenSilentForLongestMakesRoom) {
  EXPECT_EQ(SeatToFree({}), std::nullopt);
  EXPECT_EQ(SeatToFree(Seats({{false, true, 5}, {false, true, 3}, {false, true, 4}})), 1U);
  EXPECT_EQ(SeatToFree(Seats({{false, true, 5}, {false, false, 3}, {true, true, 1}})), 1U)
      << "who reads slowly, too";
}

TEST(WebSeats, WhoKnowsTheTokenGoesOnlyBetweenTwoRequests) {
  EXPECT_EQ(SeatToFree(Seats({{true, true, 1}, {true, true, 0}, {false, true, 9}})), 2U);
  EXPECT_EQ(SeatToFree(Seats({{true, false, 0}, {true, true, 2}, {true, true, 1}})), 2U);
  EXPECT_EQ(SeatToFree(Seats({{true, false, 0}, {true, false, 1}})), std::nullopt);
}

}  // namespace
}  // namespace warren::submit
