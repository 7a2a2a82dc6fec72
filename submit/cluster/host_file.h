// Which hosts a job may use: a file with one host a line.
//
//   node1                    a name or address, or a name of ~/.ssh/config
//   node2 slots=4            place for four processes; also node2*4
//   node2 max_slots=8        at most eight processes, however many there are
//   alice@node3:2222         another user, another port; also alice@node3 port=2222
//   [fe80::1]:2222           an IPv6 address with a port; without one the brackets may be left out
//   node[08-11,20]           several hosts, as Slurm writes them
//   node1,node2              several hosts
//   # a comment              also behind a host
//
// "node1:4" is the host's slots to Horovod and MPICH, and its port to ssh. It is refused unless it can only
// be a port: a number from 1024 on, or on a line with a user or with slots=.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warren::submit {

struct Host {
  std::string name;        ///< without brackets
  std::string user;        ///< empty: not given
  std::uint16_t port = 0;  ///< 0: not given
  int slots = 1;
  int max_slots = 0;  ///< 0: no limit

  bool operator==(const Host&) const = default;
  /// "alice@node3": what ssh takes.
  std::string Login() const;
  /// "alice@node3 slots=4 max_slots=8 port=2222": its line of a host file, without limits and ports that were
  /// not given.
  std::string Line() const;
};

/// The hosts in the order of the text, which may begin with a byte order mark; one that is named again gets
/// the slots of both lines. `source` names the text in errors. Throws std::runtime_error that says which line
/// is wrong, and how it could be right.
std::vector<Host> ParseHosts(std::string_view text, const std::string& source);

/// Reads the hosts of a file, or of the one that $HOSTFILE names if `file` is empty. Throws
/// std::runtime_error, also when neither names a file.
std::vector<Host> ReadHosts(const std::string& file);

/// For each of `count` processes the index of its host: each host's slots in turn, and from the first again
/// when there are more processes than slots. Throws std::runtime_error when max_slots leaves no place.
std::vector<std::size_t> PlacesOn(const std::vector<Host>& hosts, std::size_t count);

}  // namespace warren::submit
