#!/bin/sh
# W5 and W6's server: nginx (Debian's nginx-light), one worker, on loopback only: HTTP on 7480, HTTPS on 7443
# with a self-signed certificate made here. usage: nginx/start.sh   (stop: nginx/stop.sh)
set -e
cd "$(dirname "$0")/.."
W=$PWD/.build/nginx
mkdir -p "$W/www" "$W/tmp"
[ -f "$W/cert.pem" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
    -keyout "$W/key.pem" -out "$W/cert.pem" -subj /CN=localhost \
    -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -addext 'basicConstraints=critical,CA:TRUE' 2>/dev/null
[ -f "$W/www/1k.txt" ] || head -c 1024 /dev/zero | tr '\0' 'x' > "$W/www/1k.txt"
[ -f "$W/www/1g.bin" ] || head -c 1073741824 /dev/urandom > "$W/www/1g.bin"
cat > "$W/nginx.conf" <<C
worker_processes 1;
worker_rlimit_nofile 20000;
pid $W/nginx.pid;
error_log $W/error.log warn;
events { worker_connections 15000; use epoll; }
http {
    access_log off;
    default_type application/octet-stream;
    sendfile on;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    open_file_cache max=16 inactive=1h;
    open_file_cache_valid 1h;
    client_body_temp_path $W/tmp; proxy_temp_path $W/tmp; fastcgi_temp_path $W/tmp;
    uwsgi_temp_path $W/tmp; scgi_temp_path $W/tmp;
    server {
        listen 127.0.0.1:7480 backlog=4096;
        listen 127.0.0.1:7443 ssl backlog=4096;
        ssl_certificate $W/cert.pem;
        ssl_certificate_key $W/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;  # one suite for all: clients differ in what they prefer
        ssl_session_cache shared:SSL:10m;
        root $W/www;
    }
}
C
nginx -p "$W" -c "$W/nginx.conf" -e "$W/error.log"
