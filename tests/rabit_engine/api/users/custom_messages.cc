// A program that defines its own message handlers, as RABIT_CUSTOMIZE_MSG_ requires, and uses rabit without
// calling Init.
#define RABIT_CUSTOMIZE_MSG_
#include <rabit/rabit.h>

namespace rabit {
namespace utils {
void HandleAssertError(const char* msg) {
  throw std::logic_error(std::string("assert: ") + msg);
}
void HandleCheckError(const char* msg) {
  throw std::logic_error(std::string("check: ") + msg);
}
void HandlePrint(const char* msg) {
  std::printf("my print: %s", msg);
}
}  // namespace utils
}  // namespace rabit

int main() {
  rabit::utils::Printf("%d\n", rabit::GetRank() + rabit::GetWorldSize());
  try {
    rabit::utils::Check(false, "%s is wrong", "this");
  } catch (const std::logic_error& error) {
    return std::string(error.what()) == "check: this is wrong" ? 0 : 1;
  }
  return 1;
}
