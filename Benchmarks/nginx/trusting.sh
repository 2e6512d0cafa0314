#!/bin/sh
# Runs a command in a mount namespace of its own where the only trusted authority is nginx/start.sh's certificate:
# URLSession on Linux reads the system's bundle and nothing else. usage: nginx/trusting.sh COMMAND...   (needs root)
cert=$(cd "$(dirname "$0")/.." && pwd)/.build/nginx/cert.pem
exec unshare -m sh -c 'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"' "$cert" "$@"
