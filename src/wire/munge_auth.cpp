// MUNGE credentials: the payload says what is proved, munged says by whom.
#include <munge.h>

#include <cstdlib>

#include "wire/auth.h"

namespace ts {
namespace {

struct ContextFree {
  void operator()(munge_ctx_t ctx) const { munge_ctx_destroy(ctx); }
};
using Context = std::unique_ptr<munge_ctx, ContextFree>;

struct Free {
  void operator()(void* p) const { std::free(p); }
};

std::string hex(const Nonce& nonce) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::uint8_t byte : nonce) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string payload(Role role, const Nonces& nonces) {
  return "timeslice " + std::string(describe(role)) + " " + hex(nonces.caller) + " " +
         hex(nonces.master);
}

class MungeAuth final : public Auth {
public:
  explicit MungeAuth(std::string socket) : socket_(std::move(socket)) {}

  std::string name() const override { return "munge"; }

  Proof prove(Role role, const Nonces& nonces) override {
    Context ctx = newContext();
    std::string text = payload(role, nonces);
    char* credential = nullptr;
    munge_err_t err = munge_encode(&credential, ctx.get(), text.data(), int(text.size()));
    std::unique_ptr<char, Free> owned(credential);
    if (err != EMUNGE_SUCCESS) return {.why = "munged gave no credential: " + reason(ctx, err)};
    return {.ok = true, .credential = credential};
  }

  Verdict check(Role role, const Nonces& nonces, const std::string& credential) override {
    Context ctx = newContext();
    void* data = nullptr;
    int size = 0;
    uid_t uid = uid_t(-1);
    gid_t gid = gid_t(-1);
    munge_err_t err = munge_decode(credential.c_str(), ctx.get(), &data, &size, &uid, &gid);
    std::unique_ptr<void, Free> owned(data);
    if (err != EMUNGE_SUCCESS) return {.why = "the credential is refused: " + reason(ctx, err)};
    std::string got(static_cast<const char*>(data), std::size_t(size));
    if (got != payload(role, nonces))
      return {.why = "the credential of uid " + std::to_string(uid) + " is not for this " +
                     std::string(describe(role)) + " connection"};
    return {.ok = true, .proven = true, .uid = uid};
  }

private:
  Context newContext() const {
    Context ctx(munge_ctx_create());
    if (ctx && !socket_.empty()) munge_ctx_set(ctx.get(), MUNGE_OPT_SOCKET, socket_.c_str());
    return ctx;
  }
  std::string reason(const Context& ctx, munge_err_t err) const {
    const char* text = ctx ? munge_ctx_strerror(ctx.get()) : nullptr;
    std::string place = socket_.empty() ? "" : " (munged at " + socket_ + ")";
    return (text != nullptr ? text : munge_strerror(err)) + place;
  }

  std::string socket_;
};

}  // namespace

std::unique_ptr<Auth> newMungeAuth(std::string socket) {
  return std::make_unique<MungeAuth>(std::move(socket));
}

}  // namespace ts
