#include <millrace/stream_id.hpp>

#include "support/raw_client.hpp"
#include "support/throwaway_server.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace millrace::test {
namespace {

/// The pipeline example, running.
class Pipeline {
 public:
  explicit Pipeline(const ThrowawayServer& server) : output_{server.folder() / "output"} {
    std::vector<std::string> words{"pipeline",
                                   "--input",
                                   PIPELINE_RECORDS,
                                   "--stream",
                                   "s",
                                   "--uri",
                                   "unix://" + server.options().unix_socket};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output_.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    const int error = posix_spawn(&pid_, PIPELINE, &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::system_error{error, std::generic_category(), PIPELINE};
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline() {
    if (pid_ < 0) return;
    kill(SIGKILL);
    static_cast<void>(wait());
  }

  void kill(int signal) const { ::kill(pid_, signal); }

  /// Its exit status, -1 if it has none.
  int wait() {
    int status = -1;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string output() const {
    std::ifstream file{output_};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

 private:
  std::string output_;
  pid_t pid_ = -1;
};

// One group is told to start behind all that will ever come, so it is done at once, and all that it
// ought to have handled is lost: but for that, everything is well.
TEST(PipelineExample, EndsWithOneWhereEntriesWereLost) {
  ThrowawayServer server;
  RawClient raw{server.options()};
  // Its workers get no group yet, and so are not ready.
  ASSERT_EQ(raw("CLIENT", "PAUSE", 600'000, "WRITE"), "+OK");
  Pipeline pipeline{server};
  // The program has seen that the stream is not there; it looks before it has workers.
  ASSERT_TRUE(wait_until([&] {
    return raw("CLIENT", "LIST").text.find("cmd=eval") != std::string::npos;
  })) << pipeline.output();

  pipeline.kill(SIGSTOP);  // it appends nothing before the group is where it is to be
  ASSERT_EQ(raw("CLIENT", "UNPAUSE"), "+OK");
  raw("XGROUP", "CREATE", "s", "audit", "0", "MKSTREAM");  // unless its worker was first
  ASSERT_EQ(raw("XGROUP", "SETID", "s", "audit", "9999999999999-0"), "+OK");
  pipeline.kill(SIGCONT);

  EXPECT_EQ(pipeline.wait(), 1) << pipeline.output();
  const std::string table = pipeline.output();
  EXPECT_THAT(table, ::testing::ContainsRegex("\nprocessed +12 +0\n"));
  EXPECT_THAT(table, ::testing::ContainsRegex("\nlost +0 +12\n"));
  EXPECT_THAT(table, ::testing::ContainsRegex("\ndamaged +0 +0\n"));
  EXPECT_THAT(table, ::testing::ContainsRegex("\nreplayed, byte-equal +12\n"));
  EXPECT_THAT(table, ::testing::ContainsRegex("\nheld by the killed index-[12] +[1-9]"));
  EXPECT_THAT(table, ::testing::HasSubstr("The stream s is still there."));
}

}  // namespace
}  // namespace millrace::test
