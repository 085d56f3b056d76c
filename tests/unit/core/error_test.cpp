#include <millrace/error.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace millrace {
namespace {

using Code = Error::Code;

/// Throws `error` again through a copy that has lost its class, and expects class and contents
/// back.
template <typename Class>
void expect_kept(const Class& error, Code code, Outcome outcome, std::string_view prefix) {
  const Error sliced = error;
  try {
    sliced.raise();
  } catch (const Class& raised) {
    EXPECT_EQ(raised.code(), code);
    EXPECT_EQ(raised.outcome(), outcome);
    EXPECT_EQ(raised.prefix(), prefix);
    EXPECT_STREQ(raised.what(), error.what());
    return;
  } catch (...) {
  }
  ADD_FAILURE() << "code " << static_cast<int>(code) << " is raised as another class";
}

TEST(Error, IsRaisedAsTheClassItWas) {
  constexpr auto kNotApplied = Outcome::kNotApplied;
  constexpr auto kUnknown = Outcome::kUnknown;
  expect_kept(ConnectError{"a"}, Code::kConnect, kNotApplied, "");
  expect_kept(IoError{"b"}, Code::kIo, kUnknown, "");
  expect_kept(TimeoutError{"c"}, Code::kTimeout, kUnknown, "");
  expect_kept(PoolTimeout{"d"}, Code::kPoolTimeout, kNotApplied, "");
  expect_kept(ProtocolError{"e"}, Code::kProtocol, kUnknown, "");
  expect_kept(InvalidArgument{"f"}, Code::kInvalidArgument, kNotApplied, "");
  expect_kept(UnsupportedError{"g"}, Code::kUnsupported, kNotApplied, "");
  expect_kept(ServerError{"h", "BUSY"}, Code::kServer, kNotApplied, "BUSY");
  expect_kept(NoGroupError{"i", "UNBLOCKED"}, Code::kNoGroup, kNotApplied, "UNBLOCKED");
  expect_kept(WrongTypeError{"j"}, Code::kWrongType, kNotApplied, "WRONGTYPE");
  expect_kept(ReadOnlyError{"k"}, Code::kReadOnly, kNotApplied, "READONLY");
  expect_kept(OutOfMemoryError{"l"}, Code::kOutOfMemory, kNotApplied, "OOM");
  expect_kept(AuthError{"m", "WRONGPASS"}, Code::kAuth, kNotApplied, "WRONGPASS");
  expect_kept(PermissionError{"n"}, Code::kPermission, kNotApplied, "NOPERM");
  expect_kept(LoadingError{"o"}, Code::kLoading, kNotApplied, "LOADING");
  expect_kept(ClusterError{"p", "MOVED"}, Code::kCluster, kNotApplied, "MOVED");
}

TEST(Error, KeepsAnOutcomeThatIsNotTheUsualOne) {
  expect_kept(IoError{"a", Outcome::kNotApplied}, Code::kIo, Outcome::kNotApplied, "");
  expect_kept(TimeoutError{"b", Outcome::kApplied}, Code::kTimeout, Outcome::kApplied, "");
}

TEST(Error, IsCaughtByEveryClassAboveIt) {
  const Error error = NoGroupError{"gone"};
  EXPECT_THROW(error.raise(), NoGroupError);
  EXPECT_THROW(error.raise(), ServerError);
  EXPECT_THROW(error.raise(), Error);
  EXPECT_THROW(error.raise(), std::runtime_error);
}

TEST(Error, OwnsItsPrefix) {
  std::optional<Error> kept;
  {
    const std::string prefix = "NOREPLICAS";
    kept = ServerError{"no replicas", prefix};
  }
  const std::optional<Error> copy = kept;
  kept.reset();

  EXPECT_EQ(copy->prefix(), "NOREPLICAS");
}

TEST(Error, CutsAPrefixThatDoesNotFit) {
  const ServerError error{"odd", std::string(100, 'X')};
  EXPECT_EQ(error.prefix(), std::string(24, 'X'));
}

TEST(Error, CopiesWithoutThrowing) { EXPECT_TRUE(std::is_nothrow_copy_constructible_v<Error>); }

TEST(Error, IsRetryableWhereTimeAloneMayHelp) {
  for (const Error& error :
       {Error{ConnectError{""}}, Error{IoError{""}}, Error{TimeoutError{""}},
        Error{PoolTimeout{""}}, Error{ReadOnlyError{""}}, Error{OutOfMemoryError{""}},
        Error{LoadingError{""}}, Error{ClusterError{"", "TRYAGAIN"}},
        Error{ServerError{"", "BUSY"}}, Error{ServerError{"", "MISCONF"}},
        Error{ServerError{"", "MASTERDOWN"}}, Error{ServerError{"", "NOREPLICAS"}}}) {
    EXPECT_TRUE(error.retryable()) << error.prefix() << static_cast<int>(error.code());
  }
  for (const Error& error :
       {Error{ProtocolError{""}}, Error{InvalidArgument{""}}, Error{UnsupportedError{""}},
        Error{NoGroupError{""}}, Error{WrongTypeError{""}}, Error{AuthError{""}},
        Error{PermissionError{""}}, Error{ClusterError{"", "CROSSSLOT"}},
        Error{ServerError{"", "ERR"}}}) {
    EXPECT_FALSE(error.retryable()) << error.prefix() << static_cast<int>(error.code());
  }
}

}  // namespace
}  // namespace millrace
