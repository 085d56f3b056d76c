#!/usr/bin/env bash
#
# summarize.sh RESULTS...: what ctest --output-junit wrote, as the names of the tests that failed or
# were skipped and one last line `N passed, N failed, N skipped`. Fails if a test did, or none ran.

set -euo pipefail

awk '
function attribute(name) {
    return match($0, name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 3) : ""
}
function count(status, name) {
    total[status]++
    if (status != "passed") print status ": " name
}
/^\t<testcase / {
    name = attribute("name")
    status = attribute("status")
    if (status == "run") count("passed", name)
    else if (status == "disabled") count("skipped", name)
    else if (status != "notrun") count("failed", name)
}
# A test is also "notrun" where what it needs has failed, or its program is missing.
/^\t\t<skipped / && status == "notrun" {
    count(attribute("message") ~ /^SKIP_/ ? "skipped" : "failed", name)
}
END {
    printf "%d passed, %d failed, %d skipped\n", total["passed"], total["failed"], total["skipped"]
    exit total["failed"] > 0 || total["passed"] == 0
}' "$@"
