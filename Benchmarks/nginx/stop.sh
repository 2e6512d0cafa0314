#!/bin/sh
# Stops the nginx that nginx/start.sh started, by its own pid.
cd "$(dirname "$0")/.."
[ -f .build/nginx/nginx.pid ] && kill "$(cat .build/nginx/nginx.pid)"
