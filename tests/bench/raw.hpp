#pragma once

#include "bench/bench.hpp"

#include <hiredis/hiredis.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::bench {

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using RawReply = std::unique_ptr<redisReply, FreeReply>;

/// hiredis as people write it: redisCommandArgv, redisAppendCommandArgv, and a tree for each reply.
class Raw {
 public:
  using Args = std::vector<std::string_view>;

  explicit Raw(Link link) {
    const ConnectionOptions options = the_bench().options(link);
    context_.reset(link == Link::kUnix ? redisConnectUnix(options.unix_socket.c_str())
                                       : redisConnect("127.0.0.1", options.port));
    if (!context_ || context_->err != 0) throw std::runtime_error("hiredis does not connect");
  }

  RawReply command(const Args& args) {
    split(args);
    return checked(static_cast<redisReply*>(redisCommandArgv(
        context_.get(), static_cast<int>(args.size()), pointers_.data(), lengths_.data())));
  }

  void append(const Args& args) {
    split(args);
    redisAppendCommandArgv(context_.get(), static_cast<int>(args.size()), pointers_.data(),
                           lengths_.data());
  }

  RawReply reply() {
    void* reply = nullptr;
    redisGetReply(context_.get(), &reply);
    return checked(static_cast<redisReply*>(reply));
  }

 private:
  struct Free {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };

  static RawReply checked(redisReply* reply) {
    RawReply owned{reply};
    if (!owned) throw std::runtime_error("hiredis has no reply");
    if (owned->type == REDIS_REPLY_ERROR) throw std::runtime_error(owned->str);
    return owned;
  }

  void split(const Args& args) {
    pointers_.clear();
    lengths_.clear();
    for (const std::string_view arg : args) {
      pointers_.push_back(arg.data());
      lengths_.push_back(arg.size());
    }
  }

  std::unique_ptr<redisContext, Free> context_;
  std::vector<const char*> pointers_;
  std::vector<std::size_t> lengths_;
};

/// XADD of such an entry.
inline Raw::Args xadd(std::string_view key, const OwnedFields& fields) {
  Raw::Args args{"XADD", key, "*"};
  for (const auto& [name, value] : fields) {
    args.push_back(name);
    args.push_back(value);
  }
  return args;
}

/// The entries of a reply of XREAD or XREADGROUP to one stream; null where it has none.
inline const redisReply* entries_of(const RawReply& reply) {
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) return nullptr;
  return reply->element[0]->element[1];
}

/// Looks at each byte of an entry, as a handler would.
inline void touch(const redisReply& entry) {
  benchmark::DoNotOptimize(entry.element[0]->str);
  const redisReply& fields = *entry.element[1];
  for (std::size_t i = 0; i < fields.elements; ++i) {
    benchmark::DoNotOptimize(fields.element[i]->str);
    benchmark::DoNotOptimize(fields.element[i]->len);
  }
}
inline void touch(const Entry& entry) {
  benchmark::DoNotOptimize(entry.id());
  for (const Field& field : entry) {
    benchmark::DoNotOptimize(field.first.data());
    benchmark::DoNotOptimize(field.second.data());
    benchmark::DoNotOptimize(field.second.size());
  }
}

}  // namespace millrace::bench
