# Sourced by ./test and the checks: how stages are run, and what they say.

all_passed=0 all_failed=0 all_skipped=0

summary=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/summary.py

# meson_tests NAME FOLDER OPTIONS [-- TEST...]: runs tests of a build folder; the words of those that fail are shown, the
# last line is the summary. NAME.json in the folder is meson's log.
meson_tests() {
    local name=$1 folder=$2 status=0 options=()
    shift 2
    while (($#)) && [[ $1 != -- ]]; do options+=("$1") && shift; done
    shift $(($# > 0))
    rm -f "$folder/meson-logs/$name"*.json
    meson test -C "$folder" --print-errorlogs --logbase "$name" ${options[@]+"${options[@]}"} "$@" || status=1
    # A set-up's name is added to the log's; without a log nothing was run.
    mv -f "$folder/meson-logs/$name"*.json "$folder/$name.json" || return 1
    echo
    python3 "$summary" "$folder/$name.json" "$@" || status=1
    return "$status"
}

written_to() { ("${@:2}") >"$1" 2>&1; }

# stage NAME COMMAND...: runs a command whose last line is "N passed, N failed" (", N skipped" may follow), and says that,
# how long it took, of how many processors' seconds, and what was not run. Its words go to build/NAME.out; they are shown
# where something failed, which does not keep the next stage from running.
stage() {
    local name=$1 out=build/$1.out status=0 passed=0 failed=0 skipped=0 took TIMEFORMAT='%0R %0U %0S'
    shift
    took=$({ time written_to "$out" "$@"; } 2>&1) || status=$?
    read -r -a took <<<"$took"
    if [[ $(tail -n 1 "$out") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]} skipped=${BASH_REMATCH[4]:-0}
    else
        status=1 # it broke off
    fi
    if ((passed + failed + skipped == 0)); then status=1; fi # a name that nothing has
    if ((status && !failed)); then failed=1; fi
    if ((failed)); then cat "$out"; fi
    printf '%-10s %s passed, %s failed, %s skipped in %s s (processors %s s)\n' "$name" "$passed" "$failed" "$skipped" \
        "${took[0]}" $((took[1] + took[2]))
    sed -n 's/^not run: /           not run: /p' "$out"
    all_passed=$((all_passed + passed)) all_failed=$((all_failed + failed)) all_skipped=$((all_skipped + skipped))
}

# The sum of all stages, alone on its line; its status is that of the whole.
total() {
    echo "$all_passed passed, $all_failed failed, $all_skipped skipped"
    ((all_failed == 0))
}
