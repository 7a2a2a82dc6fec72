// Frames over links in memory.
#include "rabit_engine/transport/message_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "rabit_engine/base/error.h"

namespace warren {
namespace {

using Bytes = std::vector<std::byte>;

/// A link to itself. Each call moves at most `most` bytes.
class Loop : public Link {
 public:
  explicit Loop(double max_packed_share, std::size_t most = 1 << 30)
      : share_(max_packed_share), most_(most) {}
  std::size_t TrySend(const void* data, std::size_t bytes) override {
    const auto* begin = static_cast<const std::byte*>(data);
    const std::size_t taken = std::min(bytes, most_);
    stream.insert(stream.end(), begin, begin + taken);
    return taken;
  }
  std::size_t TryReceive(void* data, std::size_t bytes) override {
    const std::size_t taken = std::min({bytes, most_, stream.size()});
    std::copy_n(stream.begin(), taken, static_cast<std::byte*>(data));
    stream.erase(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(taken));
    return taken;
  }
  double MaxPackedShare(bool /*begins_message*/) override {
    ++questions;
    return share_;
  }

  std::deque<std::byte> stream;
  int questions = 0;

 private:
  const double share_;
  const std::size_t most_;
};

/// Pieces of 64 KiB that alternate between random bytes and words that are mostly zero.
Bytes Mixed(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes data(bytes);
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    const bool dense = at / (64 << 10) % 2 == 0;
    const std::uint64_t word = dense ? random() : random() % 8 == 0 ? random() << 32 : 0;
    std::memcpy(&data[at], &word, sizeof word);
  }
  return data;
}

void SendAll(Loop& link, std::span<const std::byte> message, std::span<const std::byte> tag = {}) {
  FrameWriter writer;
  writer.Begin(tag, message);
  while (!writer.finished()) writer.Advance(link);
}

Bytes ReceiveAll(FrameReader& reader, Loop& link, std::size_t bytes) {
  Bytes data(bytes);
  for (std::size_t done = 0; done < bytes;) done += reader.TryReceive(link, data.data() + done, bytes - done);
  return data;
}

TEST(MessageFrames, GiveBackMessagesOfAnyLengthInAnyPieces) {
  for (const std::size_t bytes : {1, 7, 2047, 2048, 2049, 65'536, 65'537, 200'003, 3'000'000}) {
    for (const std::size_t most : {std::size_t{1000}, std::size_t{70'001}, std::size_t{1} << 30}) {
      Loop link(1, most);
      const Bytes sent = Mixed(bytes, bytes);
      SendAll(link, sent);
      FrameReader reader;
      EXPECT_TRUE(ReceiveAll(reader, link, bytes) == sent) << bytes << " " << most;
      EXPECT_TRUE(link.stream.empty());
    }
  }
}

TEST(MessageFrames, MayBeReadInMessagesOfOtherLengths) {
  Loop link(1);
  const Bytes sent = Mixed(300'000, 1);
  SendAll(link, std::span(sent).first(200'000));
  SendAll(link, std::span(sent).subspan(200'000));
  FrameReader reader;
  Bytes received;
  for (const std::size_t bytes : {100'000, 3, 150'000, 49'997}) {
    const Bytes part = ReceiveAll(reader, link, bytes);
    received.insert(received.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(received == sent);
}

TEST(MessageFrames, FollowATag) {
  Loop link(1, 5);
  const Bytes tag(sizeof(CallTag), std::byte{7});
  const Bytes sent = Mixed(3000, 1);
  SendAll(link, sent, tag);
  for (std::size_t i = 0; i < tag.size(); ++i) EXPECT_EQ(link.stream[i], tag[i]);
  link.stream.erase(link.stream.begin(), link.stream.begin() + static_cast<std::ptrdiff_t>(tag.size()));
  FrameReader reader;
  EXPECT_TRUE(ReceiveAll(reader, link, sent.size()) == sent);
}

TEST(MessageFrames, PackOnlyPiecesThatGetShorter) {
  const Bytes sent = Mixed(4 * 65'536, 5);
  Loop packed(0.9);
  SendAll(packed, sent);
  EXPECT_LT(packed.stream.size(), sent.size() * 6 / 10);  // half of the pieces shrink to a twelfth
  EXPECT_GT(packed.stream.size(), sent.size() / 2);
  Loop choosy(0.01);  // no piece gets so short
  SendAll(choosy, sent);
  EXPECT_EQ(choosy.stream.size(), sent.size() + sizeof(FrameHead));
}

TEST(MessageFrames, CostEightBytesIfTheLinkIsFast) {
  const Bytes zeros(5'000'000);
  Loop link(0);
  SendAll(link, zeros);
  EXPECT_EQ(link.stream.size(), zeros.size() + sizeof(FrameHead));
  EXPECT_EQ(link.questions, 1);
  Loop slow(1);
  SendAll(slow, std::span(zeros).first(kMinFramedBytes - 1));
  EXPECT_EQ(slow.questions, 0);
}

TEST(MessageFrames, OfAnotherVersionAreRefused) {
  const auto refused = [](FrameHead head, std::size_t bytes) {
    Loop link(1);
    link.TrySend(&head, sizeof head);
    const Bytes rest(bytes);
    link.TrySend(rest.data(), rest.size());
    FrameReader reader;
    Bytes data(1000);
    try {
      reader.TryReceive(link, data.data(), data.size());
      return false;
    } catch (const EngineError&) {
      return true;
    }
  };
  EXPECT_TRUE(refused({.bytes = 0, .packed_bytes = 0}, 0));
  EXPECT_TRUE(refused({.bytes = 100, .packed_bytes = 100}, 0));
  EXPECT_TRUE(refused({.bytes = 65'537, .packed_bytes = 9}, 0));
  EXPECT_TRUE(refused({.bytes = 0xffffffff, .packed_bytes = 0}, 0));
  EXPECT_TRUE(refused({.bytes = 800, .packed_bytes = 9}, 9));  // 100 words of zeros have a code of 16 bytes
  EXPECT_FALSE(refused({.bytes = 800, .packed_bytes = 16}, 16));
}

}  // namespace
}  // namespace warren
