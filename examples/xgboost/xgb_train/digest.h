// A fingerprint of text or of a sequence of numbers. It does not protect against forgery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace warren::xgb_train {

class Digest {
 public:
  void Add(uint64_t value) { state_ = Mix(state_ ^ value); }
  void Add(std::string_view text) {
    Add(text.size());
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), sizeof(uint64_t)))) {
      uint64_t word = 0;
      std::memcpy(&word, text.data(), std::min(text.size(), sizeof(word)));
      Add(word);
    }
  }
  uint64_t value() const { return Mix(state_); }

 private:
  static uint64_t Mix(uint64_t value) {
    value = (value ^ (value >> 32)) * 0x9FB21C651E98DF25U;
    return value ^ (value >> 29);
  }

  uint64_t state_ = 0x2545F4914F6CDD1DU;
};

}  // namespace warren::xgb_train
