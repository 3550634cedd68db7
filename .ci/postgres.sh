#!/usr/bin/env bash
# Two-phase commit with a real PostgreSQL: installs it where it is missing, and runs the tests that need it, with all the
# kills. The tests start their own servers, in folders of their own, and end them.
# usage: postgres.sh [test flags]
set -euo pipefail
cd "$(dirname "$0")/.."

found() { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1; }
if [ -z "$(found || true)" ]; then
  sudo=""; [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  # The package would start a server of its own, which nobody needs here.
  $sudo mkdir -p /etc/postgresql-common
  echo "create_main_cluster = false" | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends postgresql >/dev/null
fi
"$(found)" --version

export MILLRACE_POSTGRES_REQUIRED=1
go test -count=1 -timeout 20m "$@" ./txn/twophase/...
MILLRACE_SOAK=1 go test -count=1 -timeout 20m "$@" ./examples/two-phase
