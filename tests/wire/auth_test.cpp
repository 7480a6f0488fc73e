#include "wire/auth.h"

#include <munge.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <thread>

#include <catch2/catch.hpp>

#include "wire/munged.h"

using namespace ts;

namespace {

struct ContextEnd {
  void operator()(munge_ctx_t context) const { munge_ctx_destroy(context); }
};
struct FreeEnd {
  void operator()(void* p) const { std::free(p); }
};
using Context = std::unique_ptr<munge_ctx, ContextEnd>;

Context contextAt(const std::string& socket) {
  Context context(munge_ctx_create());
  REQUIRE(munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, socket.c_str()) == EMUNGE_SUCCESS);
  return context;
}

// The same proof, of no use after a second.
std::string shortLived(const std::string& credential, const std::string& socket) {
  auto context = contextAt(socket);
  void* payload = nullptr;
  int size = 0;
  REQUIRE(munge_decode(credential.c_str(), context.get(), &payload, &size, nullptr, nullptr) ==
          EMUNGE_SUCCESS);
  std::unique_ptr<void, FreeEnd> owned(payload);
  auto fresh = contextAt(socket);
  REQUIRE(munge_ctx_set(fresh.get(), MUNGE_OPT_TTL, 1) == EMUNGE_SUCCESS);
  char* text = nullptr;
  REQUIRE(munge_encode(&text, fresh.get(), payload, size) == EMUNGE_SUCCESS);
  std::unique_ptr<char, FreeEnd> end(text);
  return text;
}

// What a process of another user gets from munged.
std::string credentialOf(uid_t uid, Auth& auth, const Nonces& nonces) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(uid) != 0 || ::setuid(uid) != 0) ::_exit(1);
    auto credential = auth.prove(Role::Node, nonces).credential;
    ::_exit(::write(ends[1], credential.data(), credential.size()) > 0 ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 512> piece;
  for (ssize_t n; (n = ::read(ends[0], piece.data(), piece.size())) > 0;)
    text.append(piece.data(), std::size_t(n));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return text;
}

}  // namespace

TEST_CASE("two nonces are never the same", "[wire]") {
  CHECK(newNonce() != newNonce());
  CHECK(newNonce().size() == kNonceBytes);
}

TEST_CASE("auth none believes everybody and proves nothing", "[wire]") {
  auto auth = newNoAuth();
  Verdict verdict = auth->check(Role::Node, {newNonce(), newNonce()}, "");
  CHECK(verdict.ok);
  CHECK_FALSE(verdict.proven);
}

TEST_CASE("without munged there is no credential, and the text says where it was looked for",
          "[wire]") {
  Proof proof = newMungeAuth("/nowhere/munge.socket")->prove(Role::Node, {newNonce(), newNonce()});
  CHECK_FALSE(proof.ok);
  CHECK_THAT(proof.why, Catch::Contains("/nowhere/munge.socket"));
}

TEST_CASE("FF-F1: a munge credential proves its user, for one role, one connection, once",
          "[wire]") {
  test::Munged munged;
  if (!munged.runs()) {
    WARN("no munged here");
    return;
  }
  auto auth = newMungeAuth(munged.socket());
  Nonces nonces{newNonce(), newNonce()};
  auto credential = [&] { return auth->prove(Role::Node, nonces).credential; };

  SECTION("whoever made it") {
    Verdict verdict = auth->check(Role::Node, nonces, credential());
    CHECK(verdict.ok);
    CHECK(verdict.proven);
    CHECK(verdict.uid == ::geteuid());
  }
  SECTION("not for another role") {
    Verdict verdict = auth->check(Role::Operator, nonces, credential());
    CHECK_FALSE(verdict.ok);
    CHECK_THAT(verdict.why, Catch::Contains("not for this operator connection"));
  }
  SECTION("not for another connection") {
    CHECK_FALSE(auth->check(Role::Node, {nonces.caller, newNonce()}, credential()).ok);
    CHECK_FALSE(auth->check(Role::Node, {newNonce(), nonces.master}, credential()).ok);
  }
  SECTION("not twice") {
    std::string once = credential();
    CHECK(auth->check(Role::Node, nonces, once).ok);
    Verdict again = auth->check(Role::Node, nonces, once);
    CHECK_FALSE(again.ok);
    CHECK_THAT(again.why, Catch::Contains("eplayed"));
  }
  SECTION("not in a realm of another key") {
    test::Munged elsewhere;
    REQUIRE(elsewhere.runs());
    Verdict verdict = newMungeAuth(elsewhere.socket())->check(Role::Node, nonces, credential());
    CHECK_FALSE(verdict.ok);
    CHECK_FALSE(verdict.proven);
    CHECK_THAT(verdict.why, Catch::Contains(elsewhere.socket()));
  }
  SECTION("not when its time is over") {
    auto late = shortLived(credential(), munged.socket());
    CHECK(auth->check(Role::Node, nonces, shortLived(credential(), munged.socket())).ok);
    auto made = std::time(nullptr);
    while (std::time(nullptr) < made + 2) std::this_thread::yield();  // seconds are munge's unit
    Verdict verdict = auth->check(Role::Node, nonces, late);
    CHECK_FALSE(verdict.ok);
    CHECK_THAT(verdict.why, Catch::Contains("xpired"));
  }
  SECTION("not more than its user is") {
    if (::geteuid() != 0) return;
    Verdict verdict = auth->check(Role::Node, nonces, credentialOf(4001, *auth, nonces));
    CHECK(verdict.ok);
    CHECK(verdict.uid == 4001);
  }
  SECTION("not when it is changed, cut or missing") {
    std::string credential = auth->prove(Role::Node, nonces).credential;
    CHECK_FALSE(auth->check(Role::Node, nonces, credential.substr(0, 40)).ok);
    CHECK_FALSE(auth->check(Role::Node, nonces, "").ok);
  }
}
