// Who a peer is: proofs over the nonces of both sides. std only; calls may block on munged.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ts {

enum class Role { Master, Node, Operator };
std::string_view describe(Role role);

using Nonce = std::vector<std::uint8_t>;
inline constexpr std::size_t kNonceBytes = 32;
Nonce newNonce();  // from the kernel's random source

struct Nonces {
  Nonce caller;  // of who connected: a node or an operator
  Nonce master;
};

// Who made a credential, or why it proves nothing.
struct Verdict {
  bool ok = false;
  bool proven = false;  // false with auth "none": nobody said who this is
  uid_t uid = 0;
  std::string why;  // not ok: a sentence with the value that caused it
};
// A credential for the other side, or why there is none.
struct Proof {
  bool ok = false;
  std::string credential;
  std::string why;
};

// One per daemon. A credential is bound to its role and to both nonces: it is of no use in another
// direction, on another connection, or twice. Thread-safe: the calls run on workers.
class Auth {
public:
  virtual ~Auth() = default;
  virtual std::string name() const = 0;  // "munge" or "none", as in the configuration
  virtual Proof prove(Role role, const Nonces& nonces) = 0;
  virtual Verdict check(Role role, const Nonces& nonces, const std::string& credential) = 0;
};

// `socket`: where munged listens; "": its default place.
std::unique_ptr<Auth> newMungeAuth(std::string socket = "");
// Anybody is believed. Only for loopback, unless the configuration insists.
std::unique_ptr<Auth> newNoAuth();

}  // namespace ts
