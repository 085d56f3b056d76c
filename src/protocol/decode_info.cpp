#include "protocol/decode.hpp"
#include "protocol/decode_entry.hpp"
#include "protocol/decode_values.hpp"

#include <utility>

// Every field of XINFO is looked up by name, and every one may be missing: the servers have from 7
// to 16 of them.
namespace millrace::detail::decode {
namespace {

using Pending = FullStreamInfo::Pending;

/// Takes an entry apart into an OwnedEntry.
struct OwnedSink {
  OwnedEntry entry{};

  void add_entry(StreamId id) { entry.id = id; }
  void add_deleted(StreamId id) {
    entry.id = id;
    entry.deleted = true;
  }
  void add_field(std::string_view name, std::string_view value) {
    entry.fields.emplace_back(name, value);
  }
};

OwnedEntry owned_entry(ReplyView reply) {
  OwnedSink sink;
  entry(reply, sink);
  return std::move(sink.entry);
}

std::optional<OwnedEntry> optional_entry(ReplyView reply) {
  if (reply.is_nil()) return std::nullopt;
  return owned_entry(reply);
}

std::optional<std::chrono::seconds> optional_seconds(ReplyView reply, std::string_view what) {
  const auto value = optional_integer(reply, what);
  if (!value) return std::nullopt;
  return std::chrono::seconds{*value};
}

/// What XINFO STREAM and XINFO STREAM FULL have in common.
template <typename Info>
void take_stream_field(Info& info, std::string_view name, ReplyView value) {
  if (name == "length") {
    info.length = unsigned_integer(value, name);
  } else if (name == "last-generated-id") {
    info.last_generated_id = stream_id(value, name);
  } else if (name == "entries-added") {
    info.entries_added = optional_unsigned(value, name);
  } else if (name == "max-deleted-entry-id") {
    info.max_deleted_id = stream_id(value, name);
  } else if (name == "recorded-first-entry-id") {
    info.recorded_first_id = stream_id(value, name);
  } else if (name == "radix-tree-keys") {
    info.radix_tree_keys = optional_unsigned(value, name);
  } else if (name == "radix-tree-nodes") {
    info.radix_tree_nodes = optional_unsigned(value, name);
  } else if (name == "idmp-duration") {
    info.idmp_duration = optional_seconds(value, name);
  } else if (name == "idmp-maxsize") {
    info.idmp_maxsize = optional_unsigned(value, name);
  } else if (name == "pids-tracked") {
    info.pids_tracked = optional_unsigned(value, name);
  } else if (name == "iids-tracked") {
    info.iids_tracked = optional_unsigned(value, name);
  } else if (name == "iids-added") {
    info.iids_added = optional_unsigned(value, name);
  } else if (name == "iids-duplicates") {
    info.iids_duplicates = optional_unsigned(value, name);
  }
}

/// An element of FULL's pending lists: a group's has the consumer in second place.
enum class Owner : bool { kNamed, kKnown };

Pending full_pending(ReplyView reply, Owner owner) {
  Elements parts{reply, "a pending entry of XINFO", "an id, a time and a count"};
  Pending pending;
  pending.id = stream_id(parts.next(), "a pending entry's id");
  if (owner == Owner::kNamed) pending.consumer = text(parts.next(), "a pending entry's consumer");
  pending.delivered_at = optional_time(parts.next(), "a pending entry's delivery time");
  pending.deliveries = integer(parts.next(), "a pending entry's delivery count");
  return pending;
}

std::vector<Pending> full_pendings(ReplyView reply, Owner owner) {
  std::vector<Pending> pending;
  for (const ReplyView each : list(reply, "the pending entries of XINFO")) {
    pending.push_back(full_pending(each, owner));
  }
  return pending;
}

FullStreamInfo::Consumer full_consumer(ReplyView reply) {
  FullStreamInfo::Consumer consumer;
  for_each_pair(reply, "a consumer of XINFO", [&](std::string_view name, ReplyView value) {
    if (name == "name") {
      consumer.name = text(value, name);
    } else if (name == "seen-time") {
      consumer.seen_at = optional_time(value, name);
    } else if (name == "active-time") {
      consumer.active_at = optional_time(value, name);
    } else if (name == "pel-count") {
      consumer.pending_count = unsigned_integer(value, name);
    } else if (name == "pending") {
      consumer.pending = full_pendings(value, Owner::kKnown);
    }
  });
  // The name may come after the list.
  for (Pending& pending : consumer.pending) pending.consumer = consumer.name;
  return consumer;
}

FullStreamInfo::Group full_group(ReplyView reply) {
  FullStreamInfo::Group group;
  for_each_pair(reply, "a group of XINFO", [&](std::string_view name, ReplyView value) {
    if (name == "name") {
      group.name = text(value, name);
    } else if (name == "last-delivered-id") {
      group.last_delivered_id = stream_id(value, name);
    } else if (name == "entries-read") {
      group.entries_read = optional_unsigned(value, name);
    } else if (name == "lag") {
      group.lag = optional_integer(value, name);
    } else if (name == "pel-count") {
      group.pending_count = unsigned_integer(value, name);
    } else if (name == "pending") {
      group.pending = full_pendings(value, Owner::kNamed);
    } else if (name == "nacked-count") {
      group.nacked_count = optional_unsigned(value, name);
    } else if (name == "consumers") {
      for (const ReplyView each : list(value, name)) {
        group.consumers.push_back(full_consumer(each));
      }
    }
  });
  return group;
}

GroupInfo group_info(ReplyView reply) {
  GroupInfo group;
  for_each_pair(reply, "a group of XINFO", [&](std::string_view name, ReplyView value) {
    if (name == "name") {
      group.name = text(value, name);
    } else if (name == "consumers") {
      group.consumers = unsigned_integer(value, name);
    } else if (name == "pending") {
      group.pending = unsigned_integer(value, name);
    } else if (name == "last-delivered-id") {
      group.last_delivered_id = stream_id(value, name);
    } else if (name == "entries-read") {
      group.entries_read = optional_unsigned(value, name);
    } else if (name == "lag") {
      group.lag = optional_integer(value, name);
    }
  });
  return group;
}

ConsumerInfo consumer_info(ReplyView reply) {
  ConsumerInfo consumer;
  for_each_pair(reply, "a consumer of XINFO", [&](std::string_view name, ReplyView value) {
    if (name == "name") {
      consumer.name = text(value, name);
    } else if (name == "pending") {
      consumer.pending = unsigned_integer(value, name);
    } else if (name == "idle") {
      consumer.idle = std::chrono::milliseconds{integer(value, name)};
    } else if (name == "inactive") {
      consumer.inactive = optional_duration(value, name);
    }
  });
  return consumer;
}

}  // namespace

StreamInfo stream_info(ReplyView reply) {
  StreamInfo info;
  for_each_pair(reply, "the reply to XINFO STREAM", [&](std::string_view name, ReplyView value) {
    if (name == "groups") {
      info.groups = unsigned_integer(value, name);
    } else if (name == "first-entry") {
      info.first_entry = optional_entry(value);
    } else if (name == "last-entry") {
      info.last_entry = optional_entry(value);
    } else {
      take_stream_field(info, name, value);
    }
  });
  return info;
}

FullStreamInfo full_stream_info(ReplyView reply) {
  FullStreamInfo info;
  for_each_pair(reply, "the reply to XINFO STREAM", [&](std::string_view name, ReplyView value) {
    if (name == "entries") {
      for (const ReplyView each : list(value, name)) info.entries.push_back(owned_entry(each));
    } else if (name == "groups") {
      for (const ReplyView each : list(value, name)) info.groups.push_back(full_group(each));
    } else {
      take_stream_field(info, name, value);
    }
  });
  return info;
}

std::vector<GroupInfo> groups(ReplyView reply) {
  std::vector<GroupInfo> groups;
  for (const ReplyView each : list(reply, "the reply to XINFO GROUPS")) {
    groups.push_back(group_info(each));
  }
  return groups;
}

std::vector<ConsumerInfo> consumers(ReplyView reply) {
  std::vector<ConsumerInfo> consumers;
  for (const ReplyView each : list(reply, "the reply to XINFO CONSUMERS")) {
    consumers.push_back(consumer_info(each));
  }
  return consumers;
}

}  // namespace millrace::detail::decode
