#include "wire/auth.h"

#include <sys/random.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace ts {
namespace {

class NoAuth final : public Auth {
public:
  std::string name() const override { return "none"; }
  Proof prove(Role, const Nonces&) override { return {.ok = true}; }
  Verdict check(Role, const Nonces&, const std::string&) override { return {.ok = true}; }
};

}  // namespace

std::unique_ptr<Auth> newNoAuth() {
  return std::make_unique<NoAuth>();
}

std::string_view describe(Role role) {
  switch (role) {
    case Role::Master:
      return "master";
    case Role::Node:
      return "node";
    case Role::Operator:
      return "operator";
  }
  return "?";
}

Nonce newNonce() {
  Nonce nonce(kNonceBytes);
  ssize_t n;
  do {
    n = ::getrandom(nonce.data(), nonce.size(), 0);
  } while (n < 0 && errno == EINTR);
  if (n != ssize_t(nonce.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return nonce;
}

}  // namespace ts
