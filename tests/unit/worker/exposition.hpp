#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::test {

/// Prometheus' text format, taken at its word (prometheus.io, "Exposition formats"). What is not
/// said there is refused with std::runtime_error.
class Exposition {
 public:
  using Labels = std::map<std::string, std::string>;
  struct Sample {
    std::string name;
    Labels labels;
    double value = 0;
  };
  struct Family {
    std::string name, type, help;
    std::vector<Sample> samples;
  };

  explicit Exposition(std::string_view text) : text_{text} {
    while (!text_.empty()) {
      if (text_.starts_with("# HELP ")) {
        begin_family();
      } else {
        take_sample();
      }
    }
    for (const Family& family : families_) check(family);
  }

  const std::vector<Family>& families() const { return families_; }

  const Family& family(std::string_view name) const {
    for (const Family& family : families_) {
      if (family.name == name) return family;
    }
    throw std::runtime_error{"there is no metric " + std::string{name}};
  }
  bool has(std::string_view name) const {
    return std::any_of(families_.begin(), families_.end(),
                       [name](const Family& family) { return family.name == name; });
  }

  /// The value of the only sample of this name with these labels, among others.
  double value(const std::string& name, const Labels& labels = {}) const {
    std::optional<double> value;
    for (const Family& family : families_) {
      for (const Sample& sample : family.samples) {
        if (sample.name != name || !fits(sample, labels)) continue;
        if (value) throw std::runtime_error{"more than one sample fits " + name};
        value = sample.value;
      }
    }
    if (!value) throw std::runtime_error{"no sample fits " + name};
    return *value;
  }

 private:
  static bool fits(const Sample& sample, const Labels& labels) {
    return std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
      const auto found = sample.labels.find(label.first);
      return found != sample.labels.end() && found->second == label.second;
    });
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error{why + " before: " + std::string{text_.substr(0, 80)}};
  }
  void expect(std::string_view word) {
    if (!text_.starts_with(word)) refuse("'" + std::string{word} + "' was expected");
    text_.remove_prefix(word.size());
  }
  std::string until(char end) {
    const auto at = text_.find(end);
    if (at == std::string_view::npos) refuse("the text ends");
    std::string taken{text_.substr(0, at)};
    text_.remove_prefix(at + 1);
    return taken;
  }
  /// `[a-zA-Z_][a-zA-Z0-9_]*`, for a metric with colons.
  std::string name(bool colons) {
    std::size_t size = 0;
    const auto fits = [&](char c) {
      const bool is_letter = std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
      const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
      return is_letter || (colons && c == ':') || (size > 0 && is_digit);
    };
    while (size < text_.size() && fits(text_[size])) ++size;
    if (size == 0) refuse("a name was expected");
    std::string taken{text_.substr(0, size)};
    text_.remove_prefix(size);
    return taken;
  }

  void begin_family() {
    Family family;
    expect("# HELP ");
    family.name = name(true);
    expect(" ");
    family.help = until('\n');
    expect("# TYPE " + family.name + " ");
    family.type = until('\n');
    if (!std::set<std::string>{"counter", "gauge", "histogram"}.contains(family.type)) {
      refuse("the type is " + family.type);
    }
    if (has(family.name)) refuse(family.name + " comes twice");
    families_.push_back(std::move(family));
  }

  void take_sample() {
    if (families_.empty()) refuse("no type was given");
    Family& family = families_.back();
    Sample sample;
    sample.name = name(true);
    const bool is_histogram = family.type == "histogram";
    const bool fits = is_histogram ? sample.name == family.name + "_bucket" ||
                                         sample.name == family.name + "_sum" ||
                                         sample.name == family.name + "_count"
                                   : sample.name == family.name;
    if (!fits) refuse(sample.name + " is no sample of " + family.name);
    if (text_.starts_with("{")) take_labels(sample.labels);
    expect(" ");
    const std::string number = until('\n');
    char* end = nullptr;
    sample.value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0') refuse("'" + number + "' is no number");
    if (!seen_.emplace(sample.name, sample.labels).second) refuse("the sample comes twice");
    family.samples.push_back(std::move(sample));
  }

  void take_labels(Labels& labels) {
    expect("{");
    while (!text_.starts_with("}")) {
      const std::string label = name(false);
      expect("=\"");
      if (!labels.emplace(label, label_value()).second) refuse("the label comes twice");
      if (!text_.starts_with("}")) expect(",");
    }
    expect("}");
  }

  std::string label_value() {
    std::string value;
    for (;;) {
      if (text_.empty() || text_.front() == '\n') refuse("a label's value does not end");
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return value;
      if (c != '\\') {
        value.push_back(c);
        continue;
      }
      if (text_.starts_with("n")) {
        value.push_back('\n');
      } else if (text_.starts_with("\\") || text_.starts_with("\"")) {
        value.push_back(text_.front());
      } else {
        refuse("an escape that there is not");
      }
      text_.remove_prefix(1);
    }
  }

  static void check(const Family& family) {
    const auto refuse = [&](const std::string& why) {
      throw std::runtime_error{family.name + ": " + why};
    };
    if (family.samples.empty()) refuse("has no samples");
    if (family.help.empty()) refuse("has no help");
    if ((family.type == "counter") != family.name.ends_with("_total")) {
      refuse("counters end in _total, and nothing else does");
    }
    if (family.type == "histogram") check_histogram(family);
  }

  static void check_histogram(const Family& family) {
    std::map<Labels, std::vector<std::pair<double, double>>> buckets;
    std::map<Labels, double> counts;
    std::set<Labels> sums;
    for (const Sample& sample : family.samples) {
      Labels labels = sample.labels;
      if (sample.name.ends_with("_sum")) sums.insert(labels);
      if (sample.name.ends_with("_count")) counts[labels] = sample.value;
      if (!sample.name.ends_with("_bucket")) continue;
      const double le = std::strtod(labels.at("le").c_str(), nullptr);  // takes +Inf
      labels.erase("le");
      buckets[labels].emplace_back(le, sample.value);
    }
    for (const auto& [labels, bounds] : buckets) {
      if (!std::is_sorted(bounds.begin(), bounds.end(),
                          [](auto& a, auto& b) { return a.first < b.first; }) ||
          !std::is_sorted(bounds.begin(), bounds.end(),
                          [](auto& a, auto& b) { return a.second < b.second; })) {
        throw std::runtime_error{family.name + ": its buckets do not rise"};
      }
      if (bounds.back().first != std::strtod("inf", nullptr) ||
          bounds.back().second != counts.at(labels) || !sums.contains(labels)) {
        throw std::runtime_error{family.name + ": +Inf, sum and count do not agree"};
      }
    }
    if (buckets.empty()) throw std::runtime_error{family.name + ": has no buckets"};
  }

  std::string_view text_;
  std::vector<Family> families_;
  std::set<std::pair<std::string, Labels>> seen_;
};

}  // namespace millrace::test
