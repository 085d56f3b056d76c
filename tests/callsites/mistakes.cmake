# What must be refused or warned of: each MISTAKE, and what to write INSTEAD.

# ---------------------------------------------------------------------------- fields of an entry

# A number is no text, and 0 would be a null pointer.
callsites_mistake(fields.value_0
  MISTAKE [[stream.add({{"retries", 0}});]]
  INSTEAD [[stream.add({{"retries", "0"}});]]
  BECAUSE "cannot convert|no matching constructor for initialization of 'millrace::Fields'")
callsites_mistake(fields.value_nullptr
  MISTAKE [[stream.add({{"retries", nullptr}});]]
  INSTEAD [[stream.add({{"retries", ""}});]]
  BECAUSE "cannot convert|no matching constructor for initialization of 'millrace::Fields'")
callsites_mistake(fields.value_5
  MISTAKE [[stream.add({{"retries", 5}});]]
  INSTEAD [[stream.add({{"retries", "5"}});]]
  BECAUSE "cannot convert|no matching constructor for initialization of 'millrace::Fields'")

# Two strings are not a list of fields.
callsites_mistake(fields.braces_forgotten
  MISTAKE [[stream.add({"a", "1"});]]
  INSTEAD [[stream.add({{"a", "1"}});]]
  BECAUSE "cannot convert|no matching constructor for initialization of 'millrace::Fields'")

# Fields refer to bytes that somebody else owns, so they cannot be kept.
callsites_mistake(fields.kept_in_a_variable
  MISTAKE [[Fields fields{{"a", "1"}}; stream.add(fields);]]
  INSTEAD [[OwnedFields fields{{"a", "1"}}; stream.add(fields);]]
  BECAUSE "use of deleted|call to deleted")
callsites_mistake(fields.moved_out_of_a_variable
  MISTAKE [[Fields fields{{"a", "1"}}; stream.add(std::move(fields));]]
  INSTEAD [[OwnedFields fields{{"a", "1"}}; stream.add(std::move(fields));]]
  BECAUSE "use of deleted|call to deleted")
callsites_mistake(fields.kept_of_a_temporary_map
  MISTAKE [[Fields fields = std::map<std::string, std::string>{{"a", "1"}}; stream.add(fields);]]
  INSTEAD [[auto fields = std::map<std::string, std::string>{{"a", "1"}}; stream.add(fields);]]
  BECAUSE "use of deleted|call to deleted")
callsites_mistake(fields.copied_with_a_struct
  MISTAKE [[struct Order { Fields fields; }; Order a{{{"a", "1"}}}; Order b = a; b.fields.size();]]
  INSTEAD [[struct Order { OwnedFields fields; }; Order a{{{"a", "1"}}}; Order b = a; b.fields.clear();]]
  BECAUSE "use of deleted|call to implicitly-deleted")

# The same of a producer.
callsites_mistake(producer.value_0
  MISTAKE [[producer.send({{"count", 0}});]]
  INSTEAD [[producer.send({{"count", "0"}});]]
  BECAUSE "cannot convert|no matching")
callsites_mistake(producer.callback_of_an_id
  MISTAKE [[producer.send({{"a", "b"}}, [](StreamId) {});]]
  INSTEAD [[producer.send({{"a", "b"}}, [](const AddResult&) {});]]
  BECAUSE "cannot convert|no matching")
callsites_mistake(producer.in_a_vector
  MISTAKE [[std::vector<Producer> producers; producers.emplace_back(stream);]]
  INSTEAD [[std::vector<std::unique_ptr<Producer>> producers; producers.push_back(std::make_unique<Producer>(stream));]]
  BECAUSE "deleted (function|constructor)")

# ------------------------------------------------------------------------------ views of a batch

# The entry would outlive its batch.
callsites_mistake(entries.loop_over_one_of_a_temporary_batch
  MISTAKE [[for (auto& field : stream.replay()[0]) stream.add({field});]]
  INSTEAD [[for (auto& field : batch[0]) stream.add({field});]]
  BECAUSE "deleted (function|operator)")
callsites_mistake(entries.index_into_a_temporary_batch
  MISTAKE [[auto value = stream.tail(1)[0].at("i"); stream.add({{"i", value}});]]
  INSTEAD [[auto last = stream.tail(1); auto value = last[0].at("i"); stream.add({{"i", value}});]]
  BECAUSE "deleted (function|operator)")
callsites_mistake(entries.front_of_a_temporary_batch
  MISTAKE [[stream.tail(1).front().find("i");]]
  INSTEAD [[auto last = stream.tail(1); last.front().find("i");]]
  BECAUSE "deleted (function|member function)")
callsites_mistake(entries.back_of_a_temporary_batch
  MISTAKE [[stream.tail(1).back().find("i");]]
  INSTEAD [[auto last = stream.tail(1); last.back().find("i");]]
  BECAUSE "deleted (function|member function)")
callsites_mistake(entries.copy_of_a_batch
  MISTAKE [[EntryBatch all = stream.replay(); EntryBatch copy = all; copy.ids();]]
  INSTEAD [[EntryBatch all = stream.replay(); EntryBatch copy = std::move(all); copy.ids();]]
  BECAUSE "deleted (function|constructor)|(implicitly|call to implicitly)-deleted")

# ----------------------------------------------------------------------------------- identifiers

# Two ids, or one?
callsites_mistake(ack.two_numbers
  MISTAKE [[stream.ack("g", {1, 0});]]
  INSTEAD [[stream.ack("g", {{1, 0}});]]
  BECAUSE "no matching (member )?function")

# A set is not one run of memory.
callsites_mistake(ack.a_set
  MISTAKE [[std::set<StreamId> ids; stream.ack("g", ids);]]
  INSTEAD [[std::vector<StreamId> ids; stream.ack("g", ids);]]
  BECAUSE "no matching (member )?function")

# ---------------------------------------------------------------------------------------- counts

callsites_mistake(trim.negative
  MISTAKE [[stream.trim(Trim::max_len(-1));]]
  INSTEAD [[stream.trim(Trim::max_len(1));]]
  BECAUSE "not a constant expression")
callsites_mistake(trim.bool
  MISTAKE [[stream.trim(Trim::max_len(true));]]
  INSTEAD [[stream.trim(Trim::max_len(1));]]
  BECAUSE "cannot convert|no viable conversion")
callsites_mistake(trim.signed_variable
  MISTAKE [[int keep = 1000; stream.trim(Trim::max_len(keep));]]
  INSTEAD [[unsigned keep = 1000; stream.trim(Trim::max_len(keep));]]
  BECAUSE "constant expression")
callsites_mistake(trim.negative_limit
  MISTAKE [[stream.trim(Trim::max_len(1).limit(-1));]]
  INSTEAD [[stream.trim(Trim::max_len(1).limit(1));]]
  BECAUSE "not a constant expression")
callsites_mistake(trim.dropped
  MISTAKE [[Trim::max_len(1).exactly();]]
  INSTEAD [[stream.trim(Trim::max_len(1).exactly());]]
  WARNS BECAUSE "nodiscard")

# --------------------------------------------------------------------------------------- workers

# A handler says Verdict or nothing: whether true is good, or who waits for a future, is not guessed.
callsites_mistake(handler.returns_bool
  MISTAKE [[ConsumerWorker worker{stream, options, [](const Delivery&) { return true; }};]]
  INSTEAD [[ConsumerWorker worker{stream, options, [](const Delivery&) { return Verdict::ack(); }};]]
  BECAUSE "no matching")
callsites_mistake(handler.returns_int
  MISTAKE [[ConsumerWorker worker{stream, options, [](const Delivery&) { return 0; }};]]
  INSTEAD [[ConsumerWorker worker{stream, options, [](const Delivery&) { return; }};]]
  BECAUSE "no matching")
callsites_mistake(handler.returns_a_future
  MISTAKE [[ConsumerWorker worker{stream, options, [](const Delivery&) { return std::future<void>{}; }};]]
  INSTEAD [[ConsumerWorker worker{stream, options, [](const Delivery&) { std::future<void>{}; }};]]
  BECAUSE "no matching")
callsites_mistake(handler.drops_its_verdict
  MISTAKE [[ConsumerWorker worker{stream, options, [](const Delivery& d) { if (d.attempt > 1) Verdict::retry(); }};]]
  INSTEAD [[ConsumerWorker worker{stream, options, [](const Delivery& d) { return d.attempt > 1 ? Verdict::retry() : Verdict::ack(); }};]]
  WARNS BECAUSE "nodiscard")

# A worker has threads that know where it is.
callsites_mistake(worker.in_a_vector
  MISTAKE [[std::vector<ConsumerWorker> workers; workers.emplace_back(stream, options, [](const Delivery&) {});]]
  INSTEAD [[std::vector<std::unique_ptr<ConsumerWorker>> workers; workers.push_back(std::make_unique<ConsumerWorker>(stream, options, [](const Delivery&) {}));]]
  BECAUSE "deleted (function|constructor)")

callsites_instead()
