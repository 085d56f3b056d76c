#!/usr/bin/env bash
#
# summarize.sh RESULTS...: what ctest --output-junit wrote, as the names of the tests that failed or
# were skipped and one last line `N passed, N failed, N skipped`. Fails if a test did, or none ran.
# A test that was skipped on several servers or protocols is named once, with how often.

set -euo pipefail

awk '
function attribute(name) {
    return match($0, name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 3) : ""
}
function count(status, name) {
    total[status]++
    if (status == "failed") print "failed: " name
    if (status == "skipped") {
        sub(/\.(redis|valkey)-[0-9.]*[0-9]\./, ".", name)
        sub(/\/RESP[23]$/, "", name)
        if (!skips[name]++) names[++kinds] = name
    }
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
    for (i = 1; i <= kinds; i++) {
        times = skips[names[i]]
        print "skipped: " names[i] (times > 1 ? " (" times " times)" : "")
    }
    printf "%d passed, %d failed, %d skipped\n", total["passed"], total["failed"], total["skipped"]
    exit total["failed"] > 0 || total["passed"] == 0
}' "$@"
