#!/usr/bin/env bash
# A foreign client (kcat on librdkafka) against the built binary: codecs, groups, transactions, clean stop, kill -9.
# usage: kcat.sh path/to/millrace
set -euo pipefail
bin=$(realpath "$1")
dir=$(mktemp -d)
pid=""
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT

start() { # starts the server on the same folder, sets pid and addr; the ready line carries the real address
  : > "$dir/out"
  "$bin" server --data-dir "$dir/data" --listen "${1:-127.0.0.1:0}" > "$dir/out" 2> "$dir/err" &
  pid=$!
  for _ in $(seq 200); do
    addr=$(grep -oE '127\.0\.0\.1:[0-9]+' "$dir/out" | head -n 1 || true)
    [ -n "$addr" ] && return
    kill -0 "$pid" 2>/dev/null || { echo "server ended:"; cat "$dir/err"; exit 1; }
    sleep 0.05
  done
  echo "no ready line after 10 s"; cat "$dir/out" "$dir/err"; exit 1
}
stop() { # signal, expected exit code
  kill "-$1" "$pid"
  local code=0; wait "$pid" 2>/dev/null || code=$?
  pid=""
  [ "$code" = "$2" ] || { echo "after SIG$1 the server ended with $code, want $2"; cat "$dir/err"; exit 1; }
}
passed=0
same() { # what, expected file, got file
  cmp -s "$2" "$3" || { echo "FAIL $1: $(wc -l < "$2") lines expected, $(wc -l < "$3") got"; diff "$2" "$3" | head -5; exit 1; }
  echo "ok   $1"; passed=$((passed + 1))
}
read_all() { # topic, more flags: everything to the end, in order
  local t=$1; shift
  kcat -b "$addr" -C -t "$t" -o beginning -e -q "$@"
}

start
kcat -b "$addr" -L > /dev/null
seq 1 2000 > "$dir/lines"
for codec in none gzip snappy lz4 zstd; do
  kcat -b "$addr" -P -t "plain-$codec" -z "$codec" -X acks=all -X enable.idempotence=true -l "$dir/lines"
  read_all "plain-$codec" > "$dir/got"
  same "produce and consume, $codec" "$dir/lines" "$dir/got"
done

seq 1 500 | sed 's/.*/k&:v&/' > "$dir/keyed"
kcat -b "$addr" -P -t keyed -K: -l "$dir/keyed"
read_all keyed -K: > "$dir/got"
same "keys" "$dir/keyed" "$dir/got"

kcat -b "$addr" -G readers -X auto.offset.reset=earliest -c 1200 -q plain-none > "$dir/first" 2> "$dir/err1"
kcat -b "$addr" -G readers -X auto.offset.reset=earliest -c 800 -q plain-none > "$dir/second" 2> "$dir/err2"
cat "$dir/first" "$dir/second" > "$dir/got"
same "a group goes on where its first member stopped" "$dir/lines" "$dir/got"

kcat -b "$addr" -P -t txn -X transactional.id=kcat-1 -l "$dir/lines"
kcat -b "$addr" -P -t txn -X transactional.id=kcat-1 -l "$dir/keyed"
cat "$dir/lines" "$dir/keyed" > "$dir/want"
read_all txn -X isolation.level=read_committed > "$dir/got"
same "two transactions, read committed" "$dir/want" "$dir/got"

stop TERM 0
start "$addr"
read_all txn -X isolation.level=read_committed > "$dir/got"
same "after a clean stop" "$dir/want" "$dir/got"

kcat -b "$addr" -P -t killed -X acks=all -l "$dir/lines"
stop KILL 137
start "$addr"
read_all killed > "$dir/got"
same "acknowledged before kill -9" "$dir/lines" "$dir/got"
stop TERM 0
echo "$passed passed, 0 failed"
