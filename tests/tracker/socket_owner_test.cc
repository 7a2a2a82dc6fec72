// Finding the user at the other end of a connection in the kernel's tables.
#include "tracker/socket_owner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>

namespace warren::tracker {
namespace {

namespace ip = boost::asio::ip;
using ip::tcp;

tcp::endpoint At(const char* address, std::uint16_t port) {
  return {ip::make_address(address), port};
}

// Lines of the kernel's tables, as on a little-endian machine.
constexpr char kHeader[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
std::string Line(const std::string& local, const std::string& remote, const std::string& user,
                 const std::string& inode) {
  return "   1: " + local + " " + remote + " 01 00000000:00000000 00:00000000 00000000  " + user +
         "        0 " + inode + " 1 0000000000000000 20 4 30 10 -1\n";
}

TEST(SocketOwner, IsTheUserOfTheLineWithBothEnds) {
  const std::string table = kHeader + Line("0100007F:1F90", "0100007F:2383", "1000", "77") +
                            Line("0100007F:1F91", "0100007F:2383", "1001", "78") +
                            Line("0100007F:1F90", "0100007F:2384", "1002", "79") +
                            Line("0100007F:1F90", "0200007F:2383", "1003", "80");
  EXPECT_EQ(OwnerInTable(table, At("127.0.0.1", 8080), At("127.0.0.1", 9091)), 1000U);
  EXPECT_EQ(OwnerInTable(table, At("127.0.0.1", 8081), At("127.0.0.1", 9091)), 1001U);
  EXPECT_EQ(OwnerInTable(table, At("127.0.0.1", 8080), At("127.0.0.1", 9092)), 1002U);
  EXPECT_EQ(OwnerInTable(table, At("127.0.0.1", 8080), At("127.0.0.2", 9091)), 1003U);
  EXPECT_EQ(OwnerInTable(table, At("127.0.0.1", 8082), At("127.0.0.1", 9091)), std::nullopt);
}

TEST(SocketOwner, IsNobodyForASocketThatNoProcessHas) {
  const std::string table = kHeader + Line("0100007F:1F90", "0100007F:2383", "0", "0");
  EXPECT_EQ(OwnerInTable(table, At("127.0.0.1", 8080), At("127.0.0.1", 9091)), std::nullopt);
}

TEST(SocketOwner, TakesMappedAddressesForThoseOfIpv4) {
  const std::string table =
      kHeader +
      Line("0000000000000000FFFF00000100007F:1F90", "0000000000000000FFFF00000100007F:2383", "5", "9") +
      Line("00000000000000000000000001000000:1F90", "00000000000000000000000001000000:2383", "6", "9");
  EXPECT_EQ(OwnerInTable(table, At("::ffff:127.0.0.1", 8080), At("127.0.0.1", 9091)), 5U);
  EXPECT_EQ(OwnerInTable(table, At("::1", 8080), At("::1", 9091)), 6U);
}

TEST(SocketOwner, IsNobodyWhereALineIsNoLine) {
  for (const std::string line :
       {"", "x", "1: 2 3", "1: 0100007F:1F90 0100007F: 01 0 0 0 5 0 9",
        "1: 0100007:1F90 0100007F:2383 01 0 0 0 5 0 9", "1: 0100007F:1F90 0100007F:2383 01 0 0 0 x 0 9"}) {
    EXPECT_EQ(OwnerInTable(line + "\n", At("127.0.0.1", 8080), At("127.0.0.1", 9091)), std::nullopt) << line;
  }
}

TEST(SocketOwner, IsThisUserForAConnectionOfThisProcess) {
  boost::asio::io_context io;
  for (const char* address : {"127.0.0.1", "::1"}) {
    boost::system::error_code error;
    tcp::acceptor acceptor(io);
    acceptor.open(At(address, 0).protocol(), error);
    if (!error) acceptor.bind(At(address, 0), error);
    if (error) continue;  // a machine without IPv6
    acceptor.listen();
    tcp::socket client(io);
    client.connect(acceptor.local_endpoint());
    const tcp::socket server = acceptor.accept();
    EXPECT_EQ(OwnerOfPeer(server.remote_endpoint(), server.local_endpoint()), geteuid());
    const tcp::endpoint own = server.local_endpoint();
    const tcp::endpoint peer = server.remote_endpoint();
    client.close();
    EXPECT_EQ(OwnerOfPeer(peer, own), std::nullopt);
  }
  EXPECT_EQ(OwnerOfPeer(At("10.0.0.7", 8080), At("10.0.0.1", 9091)), std::nullopt);
}

}  // namespace
}  // namespace warren::tracker
