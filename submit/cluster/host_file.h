// Reads the hosts that a job may use from a file with one host per line.
//
//   node1                    a name or address, or a host of ~/.ssh/config
//   node2 slots=4            four slots, i.e. usually four processes; also node2*4
//   node2 max_slots=8        never more than eight processes, even if all slots of the job are taken
//   alice@node3:2222         another user, another port; also alice@node3 port=2222
//   [fe80::1]:2222           an IPv6 address with a port; without a port the brackets may be left out
//   node[08-11,20]           several hosts, as Slurm writes them
//   node1,node2              several hosts
//   # a comment              also after a host
//
// Horovod and MPICH read "node1:4" as four slots; in an ssh:// URL, it means port 4. Such a number is
// rejected unless it can only be a port: it is at least 1024, or the host has a user or a number of slots, or
// is an IPv6 address in brackets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warren::submit {

struct Host {
  std::string name;        ///< without brackets
  std::string user;        ///< empty if not given
  std::uint16_t port = 0;  ///< 0 if not given
  int slots = 1;
  int max_slots = 0;  ///< 0 for no limit

  bool operator==(const Host&) const = default;
  /// The destination for ssh: "alice@node3".
  std::string Login() const;
  /// Identifies the host within the file: "alice@node3:2222".
  std::string Id() const;
  /// The host's line in a host file: "alice@node3 slots=4 max_slots=8 port=2222". A limit or port that was
  /// not given is omitted.
  std::string Line() const;
};

/// Parses a host file, which may begin with a byte order mark, and returns the hosts in the order in which
/// they are first named. A host that is named twice gets the slots of both entries. `source` names the text
/// in errors. Throws a std::runtime_error that names the invalid line and describes the error, or that
/// reports a host file without hosts.
std::vector<Host> ParseHosts(std::string_view text, const std::string& source);

/// `file` or, if that is empty, the file that $HOSTFILE names; empty if neither names a file.
std::string HostFilePath(const std::string& file);

/// Reads the hosts from HostFilePath(file). Throws std::runtime_error if that is empty, or if the file cannot
/// be read or is invalid.
std::vector<Host> ReadHosts(const std::string& file);

/// The index of the host for each of `count` processes. Fills all slots of the first host, then those of the
/// second, and so on; starts again at the first host if there are more processes than slots. Throws
/// std::runtime_error if the hosts' max_slots are too low for `count` processes.
std::vector<std::size_t> PlacesOn(const std::vector<Host>& hosts, std::size_t count);

}  // namespace warren::submit
