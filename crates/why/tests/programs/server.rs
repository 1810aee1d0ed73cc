//! Servers on loopback, with clients that ask them things.

use crate::Program;
use crate::data::bash;
use crate::support::job::Job;
use crate::support::mask::{DATE, FRACTION, LOG_PID};
use crate::support::package;
use crate::support::why::Tool;

pub const PROGRAMS: &[Program] = &[
    Program::new("redis", redis).serves(),
    Program::new("redis-benchmark", redis_benchmark)
        .serves()
        .masks(&[FRACTION])
        .tools(&[Tool::None, Tool::Count]),
    Program::new("nginx", nginx).serves().masks(&[DATE, LOG_PID]),
];

/// Starts it, waits until it answers, and ends it when the script does.
const REDIS: &str = r#"
redis-server --port "$PORT" --bind 127.0.0.1 --save '' --appendonly no --daemonize no > log 2>&1 &
server=$!
cli() { redis-cli -h 127.0.0.1 -p "$PORT" "$@"; }
for _ in {1..600}; do [ "$(cli ping 2>/dev/null)" = PONG ] && break; sleep 0.05; done
"#;

fn redis() -> Result<Job, String> {
    package::find("redis-server")?;
    package::find("redis-cli")?;
    Ok(bash(&format!(
        r#"{REDIS}
cli <<'END'
SET greeting hello
APPEND greeting ", world"
GET greeting
INCRBY counter 41
INCR counter
RPUSH list c a b
SORT list ALPHA
HSET tree name oak height 30
HGETALL tree
ZADD score 3 c 1 a 2 b
ZRANGE score 0 -1 WITHSCORES
EVAL "local s = 0 for i = 1, 1000 do s = s + i * i end return s" 0
SETEX gone 100 x
EXISTS gone nothing
LPOP nothing
INCR greeting
END
for i in {{1..200}}; do echo "SET key:$i $((i * i))"; done | cli --pipe
cli DBSIZE; cli GET key:14; cli SAVE; cli SHUTDOWN NOSAVE || true
wait $server; rm -f log dump.rdb
"#
    )))
}

fn redis_benchmark() -> Result<Job, String> {
    package::find("redis-server")?;
    package::find("redis-benchmark")?;
    Ok(bash(&format!(
        r#"{REDIS}
redis-benchmark -h 127.0.0.1 -p "$PORT" -n 2000 -c 10 -r 100 --csv -t set,get,incr,lpush,lpop,sadd,mset
cli INFO commandstats | grep -oE '^cmdstat_(set|get|incr|mset):calls=[0-9]+' | sort
cli SHUTDOWN NOSAVE || true
wait $server; rm -f log
"#
    )))
}

fn nginx() -> Result<Job, String> {
    package::find("nginx")?;
    package::find("curl")?;
    let script = r#"
umask 000; mkdir -p logs tmp site/sub; sed -i "s/PORT/$PORT/; s,DIR,$PWD,g" nginx.conf
echo '<h1>home</h1>' > site/index.html; seq 1 20000 > site/large; echo sub > site/sub/page.txt
nginx -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/logs/error" &
server=$!
ask() { curl -sS --noproxy '*' -w '%{http_code} %{size_download}\n' "$@"; }
url="http://127.0.0.1:$PORT"
for _ in {1..600}; do curl -s --noproxy '*' -o /dev/null "$url/none" && break; sleep 0.05; done
ask "$url/"; ask "$url/sub/page.txt"; ask "$url/missing"; ask -o large "$url/large"; cmp large site/large
ask -H 'Accept-Encoding: gzip' -o packed.gz "$url/large"; gzip -dc packed.gz | cmp - site/large && echo unpacked
ask -r 100-199 "$url/large" | md5sum; ask -I "$url/sub/page.txt" | grep -iE '^(HTTP|Content-)' | tr -d '\r'
ask "$url/moved/" ; for i in {1..20}; do ask "$url/sub/page.txt?$i"; done | sort | uniq -c
kill -QUIT $server; wait $server; wc -l < logs/access; rm -rf logs tmp
"#;
    let config = r#"
daemon off;
worker_processes 2;
pid DIR/tmp/pid;
events { worker_connections 64; }
http {
    access_log DIR/logs/access;
    client_body_temp_path DIR/tmp/body; proxy_temp_path DIR/tmp/proxy; fastcgi_temp_path DIR/tmp/fastcgi;
    uwsgi_temp_path DIR/tmp/uwsgi; scgi_temp_path DIR/tmp/scgi;
    gzip on; gzip_types *;
    server {
        listen 127.0.0.1:PORT;
        root DIR/site;
        location /moved/ { return 301 /sub/; }
    }
}
"#;
    Ok(bash(script).file("nginx.conf", config))
}
