# shellcheck shell=bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by test_cluster.bash: Slurm's accounting as sites have it, Debian's slurmdbd over a mariadbd of the cluster's own.
# Both listen on 127.0.0.1 only; the database lives in the state directory, and its user has a password made anew.

readonly DB_SOCKET=$DIR/run/mariadb.socket

has_accounting() { [[ -r $DIR/etc/slurmdbd.conf ]]; }

# What slurm.conf says of it: accounting_lines PORT, the port of slurmdbd; without one, that there is none.
accounting_lines() {
    [[ -n $1 ]] || { printf 'AccountingStorageType=accounting_storage/none\n'; return; }
    printf 'AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort=%d\nAccountingStoragePass=%s\n' "$1" "$SOCK"
}

# start_accounting PORT: slurmdbd there, mariadbd on the port after it.
start_accounting() {
    local port=$1 password i
    for i in mariadbd mariadb-install-db slurmdbd sacctmgr; do
        command -v "$i" >/dev/null || die "TEST_CLUSTER_ACCOUNTING needs $i (apt-get install mariadb-server slurmdbd)"
    done
    password=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
    mkdir -m 700 -- "$DIR/db"
    mariadb-install-db --no-defaults --user=root --datadir="$DIR/db" --skip-test-db --auth-root-authentication-method=socket \
        >"$DIR/log/mariadb-install.out" 2>&1 </dev/null || { tail -n 5 -- "$DIR/log/mariadb-install.out" >&2; die "no database"; }
    (umask 077 && printf "create user slurm@'127.0.0.1' identified by '%s';\ngrant all on slurm_acct_db.* to slurm@'127.0.0.1';\n" \
        "$password" >"$DIR/etc/users.sql")
    launch mariadbd mariadbd --no-defaults --user=root --datadir="$DIR/db" --socket="$DB_SOCKET" --pid-file="$DIR/run/mariadbd.pid" \
        --bind-address=127.0.0.1 --port=$((port + 1)) --skip-name-resolve --init-file="$DIR/etc/users.sql" \
        --innodb-buffer-pool-size=64M --innodb-log-file-size=8M --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=0
    comes_up mariadbd mariadb-admin --no-defaults --socket="$DB_SOCKET" ping
    (umask 077 && cat >"$DIR/etc/slurmdbd.conf" <<EOF
DbdHost=$(host_name)
DbdAddr=127.0.0.1
DbdPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$SOCK
LogFile=$DIR/log/slurmdbd.log
PidFile=$DIR/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((port + 1))
StorageUser=slurm
StoragePass=$password
StorageLoc=slurm_acct_db
CommitDelay=1
EOF
    )
    launch slurmdbd slurmdbd -D
    comes_up slurmdbd sacctmgr --immediate --readonly list cluster
}

# comes_up NAME COMMAND...: waits until COMMAND succeeds, or the daemon is gone.
comes_up() {
    local name=$1 i
    shift
    for ((i = 0; i < 300; i++)); do
        if SLURM_CONF=$CONF timeout 5 "$@" >/dev/null 2>&1; then return 0; fi
        alive "$name" >/dev/null || break
        sleep 0.1
    done
    show_logs 8 "$DIR/log/$name".* >&2
    die "$name did not come up"
}

stop_accounting() {
    has_accounting || return 0
    signal TERM slurmdbd
    wait_gone 5 slurmdbd || signal KILL slurmdbd
    signal TERM mariadbd
    wait_gone 10 mariadbd || signal KILL mariadbd
}
