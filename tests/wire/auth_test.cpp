#include "wire/auth.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "wire/munged.h"

using namespace ts;

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

TEST_CASE("a munge credential proves its user, for one role, one connection, once", "[wire]") {
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
  SECTION("not when it is changed, cut or missing") {
    std::string credential = auth->prove(Role::Node, nonces).credential;
    CHECK_FALSE(auth->check(Role::Node, nonces, credential.substr(0, 40)).ok);
    CHECK_FALSE(auth->check(Role::Node, nonces, "").ok);
  }
}
