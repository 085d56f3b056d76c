#include "records.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pipeline {
namespace {

using Records = std::vector<millrace::OwnedFields>;

TEST(Records, EachLineIsOne) {
  EXPECT_EQ(parse_records("one\n two: 2\r\n", Format::kLines),
            (Records{{{"line", "one"}}, {{"line", " two: 2\r"}}}));
}

TEST(Records, ALastLineNeedsNoNewline) {
  EXPECT_EQ(parse_records("one\ntwo", Format::kLines),
            (Records{{{"line", "one"}}, {{"line", "two"}}}));
}

TEST(Records, BlankLinesAreNone) {
  EXPECT_EQ(parse_records("\n \t\none\n\n", Format::kLines), (Records{{{"line", "one"}}}));
  EXPECT_EQ(parse_records("", Format::kLines), Records{});
  EXPECT_EQ(parse_records("\n\n", Format::kParagraphs), Records{});
  EXPECT_EQ(parse_records("", Format::kAuto), Records{});
}

TEST(Records, BlankLinesDivideParagraphs) {
  EXPECT_EQ(parse_records("\nA: 1\nB: 2\n\n \nA: 3", Format::kParagraphs),
            (Records{{{"A", "1"}, {"B", "2"}}, {{"A", "3"}}}));
}

TEST(Records, AContinuationKeepsItsSpaces) {
  EXPECT_EQ(parse_records("Text: one\n  two\n\tthree\n .\nEnd: x\n", Format::kParagraphs),
            (Records{{{"Text", "one\n  two\n\tthree\n ."}, {"End", "x"}}}));
}

TEST(Records, AFieldMayBeEmptyBeforeItsContinuation) {
  EXPECT_EQ(parse_records("Files:\n /etc/one\n", Format::kParagraphs),
            (Records{{{"Files", "\n /etc/one"}}}));
}

TEST(Records, OnlyOneSpaceAfterTheColonIsNoPartOfTheValue) {
  EXPECT_EQ(parse_records("A:1\nB:  2\nC: x: y\n", Format::kParagraphs),
            (Records{{{"A", "1"}, {"B", " 2"}, {"C", "x: y"}}}));
}

TEST(Records, NamesMayRepeatAndKeepTheirOrder) {
  EXPECT_EQ(parse_records("A: 1\nB: 2\nA: 3\n", Format::kParagraphs),
            (Records{{{"A", "1"}, {"B", "2"}, {"A", "3"}}}));
}

TEST(Records, BytesAreKept) {
  const std::string value{"Zo\xc3\xab \xff\x00\x01", 8};
  EXPECT_EQ(parse_records("Name: " + value + "\n", Format::kParagraphs),
            (Records{{{"Name", value}}}));
}

TEST(Records, WhatIsNoParagraphIsRefusedWithTheLinesNumber) {
  const auto message = [](const char* text) -> std::string {
    try {
      parse_records(text, Format::kParagraphs);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("A: 1\nno colon\n"),
            "line 2 is neither 'Name: value', nor the continuation of one");
  EXPECT_EQ(message(" a continuation of nothing\n").substr(0, 7), "line 1 ");
  EXPECT_EQ(message("A: 1\n\n of nothing\n").substr(0, 7), "line 3 ");
  EXPECT_EQ(message(": no name\n").substr(0, 7), "line 1 ");
  EXPECT_EQ(message("two words: 1\n").substr(0, 7), "line 1 ");
}

TEST(Records, ParagraphsAreRecognized) {
  EXPECT_EQ(parse_records("\nA: 1\n two\n\nB: 3\n", Format::kAuto),
            (Records{{{"A", "1\n two"}}, {{"B", "3"}}}));
  EXPECT_EQ(parse_records("A: 1\nB:\n", Format::kAuto), (Records{{{"A", "1"}, {"B", ""}}}));
}

TEST(Records, WhatIsNoParagraphIsTakenForLines) {
  EXPECT_EQ(parse_records("error: no such file\n", Format::kAuto).size(), 1U);
  EXPECT_EQ(parse_records("root:x:0:0\nbin:x:1:1\n", Format::kAuto).size(), 2U);
  EXPECT_EQ(parse_records("A: 1\nplain\n", Format::kAuto).size(), 2U);
  EXPECT_EQ(parse_records(" indented: 1\nA: 1\n", Format::kAuto).size(), 2U);
}

}  // namespace
}  // namespace pipeline
