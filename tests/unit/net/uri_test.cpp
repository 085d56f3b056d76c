#include <millrace/connection.hpp>
#include <millrace/error.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace millrace {
namespace {

using namespace std::chrono_literals;

ConnectionOptions read(std::string_view uri) { return ConnectionOptions::from_uri(uri); }

std::string refusal_of(std::string_view uri) {
  try {
    read(uri);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Uri, GivesHostAndPort) {
  EXPECT_EQ(read("redis://redis.example").host, "redis.example");
  EXPECT_EQ(read("redis://redis.example").port, 6379);
  EXPECT_EQ(read("redis://redis.example:7000/").port, 7000);
  EXPECT_EQ(read("REDIS://h:65535").port, 65535);
  EXPECT_EQ(read("redis://[::1]").host, "::1");
  EXPECT_EQ(read("redis://[fe80::1%25eth0]:7000").host, "fe80::1%eth0");
  EXPECT_EQ(read("redis://[fe80::1%25eth0]:7000").port, 7000);
}

TEST(Uri, LeavesTheOtherOptionsAtTheirDefaults) {
  const ConnectionOptions expected;
  const auto options = read("redis://127.0.0.1:6379");
  EXPECT_EQ(options.host, expected.host);
  EXPECT_EQ(options.database, expected.database);
  EXPECT_EQ(options.connect_timeout, expected.connect_timeout);
  EXPECT_EQ(options.command_timeout, expected.command_timeout);
  EXPECT_EQ(options.tcp_keepalive, expected.tcp_keepalive);
  EXPECT_EQ(options.resp_version, expected.resp_version);
  EXPECT_TRUE(options.username.empty());
  EXPECT_TRUE(options.password.empty());
  EXPECT_TRUE(options.unix_socket.empty());
}

TEST(Uri, GivesUserAndPassword) {
  EXPECT_EQ(read("redis://me:pw@h").username, "me");
  EXPECT_EQ(read("redis://me:pw@h").password, "pw");
  EXPECT_EQ(read("redis://:pw@h").username, "");
  EXPECT_EQ(read("redis://:pw@h").password, "pw");
  EXPECT_EQ(read("redis://:a:b:c@h").password, "a:b:c");
  EXPECT_EQ(read("redis://:a@b@h").password, "a@b");
  EXPECT_EQ(read("redis://m%3Ae:%2F%3f%40%23%25%00@h").username, "m:e");
  EXPECT_EQ(read("redis://m%3Ae:%2F%3f%40%23%25%00@h").password, std::string("/?@#%\0", 6));
  EXPECT_EQ(read("redis://m%3Ae:%2F%3f%40%23%25%00@h").host, "h");
}

TEST(Uri, GivesTheDatabase) {
  EXPECT_EQ(read("redis://h/3").database, 3U);
  EXPECT_EQ(read("redis://h?db=4").database, 4U);
  EXPECT_EQ(read("redis://h/?db=5").database, 5U);
  EXPECT_EQ(read("redis://h/4294967295").database, 4294967295U);
}

TEST(Uri, GivesTheOptions) {
  const auto options = read(
      "redis://h?client_name=billing%2D1&connect_timeout=500ms&command_timeout=3s"
      "&tcp_keepalive=0&resp_version=3");
  EXPECT_EQ(options.client_name, "billing-1");
  EXPECT_EQ(options.connect_timeout, 500ms);
  EXPECT_EQ(options.command_timeout, 3s);
  EXPECT_EQ(options.tcp_keepalive, 0ms);
  EXPECT_EQ(options.resp_version, 3);
  EXPECT_EQ(read("redis://h?command_timeout=250").command_timeout, 250ms);
}

TEST(Uri, GivesAUnixSocket) {
  EXPECT_EQ(read("unix:///run/redis.sock").unix_socket, "/run/redis.sock");
  const auto options = read("unix://me:pw@/run/a%20b%40c.sock?db=2");
  EXPECT_EQ(options.unix_socket, "/run/a b@c.sock");
  EXPECT_EQ(options.username, "me");
  EXPECT_EQ(options.password, "pw");
  EXPECT_EQ(options.database, 2U);
}

TEST(Uri, NamesTheBadPart) {
  const struct {
    std::string_view uri;
    std::string_view part;
  } bad[] = {
      {"", "scheme"},
      {"localhost:6379", "scheme"},
      {"redis:/h", "scheme"},
      {"http://h", "scheme"},
      {"redis://", "host is empty"},
      {"redis:///0", "host is empty"},
      {"redis://:pw@", "host is empty"},
      {"redis://h:", "port"},
      {"redis://h:0", "port"},
      {"redis://h:65536", "port"},
      {"redis://h:6379x", "port"},
      {"redis://h:-1", "port"},
      {"redis://h:+1", "port"},
      {"redis://::1:6379", "brackets"},
      {"redis://[::1", "']'"},
      {"redis://[::1]6379", "port"},
      {"redis://h/x", "database"},
      {"redis://h/1/2", "database"},
      {"redis://h/-1", "database"},
      {"redis://h/4294967296", "database"},
      {"redis://h/1?db=1", "twice"},
      {"redis://h?db=1&db=1", "option db is given twice"},
      {"redis://h?db=x", "option db is 'x': it has to be the number of a database"},
      {"redis://h?db=", "option db has no value"},
      {"redis://h?db", "option db has no value"},
      {"redis://h?DB=1", "there is no option 'DB'"},
      {"redis://h?pasword=1", "there is no option 'pasword'; there are db, client_name,"},
      {"redis://h?db=1&&", "there is no option ''"},
      {"redis://h?connect_timeout=2m", "option connect_timeout is '2m': it has to be a time"},
      {"redis://h?connect_timeout=-1", "option connect_timeout"},
      {"redis://h?connect_timeout=9223372036854775807s", "option connect_timeout"},
      {"redis://h?command_timeout=s", "option command_timeout"},
      {"redis://h?command_timeout=1.5s", "option command_timeout"},
      {"redis://h?tcp_keepalive=yes", "option tcp_keepalive"},
      {"redis://h?resp_version=three", "option resp_version is 'three': it has to be 2 or 3"},
      {"redis://h?client_name=%4", "value of an option has a '%'"},
      {"redis://h?d%zzb=1", "name of an option has a '%'"},
      {"redis://:%g0@h", "password has a '%'"},
      {"redis://%:pw@h", "user has a '%'"},
      {"redis://h%", "host has a '%'"},
      {"redis://me@h", "before '@' has no ':'"},
      {"redis://me:@h", "password before '@' is empty"},
      {"redis://h#1", "'#'"},
      {"unix://", "no path"},
      {"unix:///", "no path"},
      {"unix://h/s", "has a host"},
      {"unix:///s%", "path has a '%'"},
  };
  for (const auto& [uri, part] : bad) {
    const auto refusal = refusal_of(uri);
    EXPECT_NE(refusal.find(part), std::string::npos) << uri << " -> " << refusal;
    EXPECT_THROW(read(uri), InvalidArgument) << uri;
  }
}

TEST(Uri, SaysWhatItsSchemeLacks) {
  for (const auto* const uri : {"rediss://h", "redis+sentinel://h/m", "redis+cluster://h:1"}) {
    EXPECT_THROW(read(uri), UnsupportedError) << uri;
    EXPECT_TRUE(refusal_of(uri).starts_with(
        std::string_view{uri}.substr(0, std::string_view{uri}.find("://"))))
        << refusal_of(uri);
  }
  EXPECT_NE(refusal_of("rediss://h").find("TLS"), std::string::npos);
}

// A password that holds a reserved character is cut up; no piece of it may be shown.
TEST(Uri, NeverRepeatsAPasswordNotEvenAPieceOfIt) {
  for (const auto* const uri : {
           "redis://me:hunter2/hunter2@h",
           "redis://me:hunter2?hunter2@h",
           "redis://me:hunter2?db=hunter2@h",
           "redis://me:hunter2#hunter2@h",
           "redis://me:hunter2%@h",
           "redis://me:hunter2@h:x",
           "redis://me:hunter2@h/x",
           "redis://me:hunter2@h?x=1",
           "redis://me:hunter2@",
           "redis://me:hunter2",
           "redis://hunter2@h",
           "redis://hunter2:hunter2",
           "redis://h:hunter2",
           "redis://me:hunter2/1",
           "redis://me:x/hunter2",
           "redis:/me:hunter2@h",
           "redis:me:hunter2@h",
           "me:hunter2@h",
           ":hunter2@h",
           "hunter2",
           "hunter2://h",
           "me:hunter2://h",
           "rediss://me:hunter2@h",
           "redis+cluster://me:hunter2@h",
           "unix://me:hunter2/s",
           "unix://me:hunter2@h/s",
           "unix://me:hunter2@",
           "redis://[hunter2@h",
           "redis://[me:hunter2]@h:x",
       }) {
    const auto refusal = refusal_of(uri);
    EXPECT_NE(refusal, "accepted") << uri;
    EXPECT_EQ(refusal.find("hunter2"), std::string::npos) << uri << " -> " << refusal;
  }
}

TEST(Uri, SurvivesEveryInput) {
  std::mt19937 random{1};
  constexpr std::string_view kPieces[] = {"redis", "unix", "://", ":", "/", "?", "@",  "[", "]",
                                          "%",     "%41",  "&",   "=", "#", "1", "db", "h"};
  for (int i = 0; i < 3'000; ++i) {
    std::string uri = i % 2 == 0 ? "redis://" : "";
    for (auto left = random() % 8; left > 0; --left) {
      uri += kPieces[random() % std::size(kPieces)];
    }
    try {
      read(uri);
    } catch (const InvalidArgument&) {
      // what it is for
    }
  }
}

}  // namespace
}  // namespace millrace
