#!/bin/sh
# Measures heedful on one NVIDIA GPU in at most nine minutes: sh benchmarks/gpu.sh
# `sh benchmarks/gpu.sh --tiny` runs all of it with tiny sizes, on a CPU too. Other options: gpu.py --help.
#
# Results are appended to gpu.jsonl (gpu-tiny.jsonl), in the folder $OUT if it is set, else in benchmarks/. Nothing is downloaded: Python
# packages that the machine lacks (perhaps pydantic pydantic_core annotated_types typing_inspection, beartype soundfile
# for the tests, and ctranslate2) are installed from wheels in the folder .whl, if there is one. Parts that need a
# package that is missing are skipped, and the results say so.
set -e
cd "$(dirname "$0")/.."
if [ -d .whl ] && [ -z "$HEEDFUL_WHEELS" ]; then
  HEEDFUL_WHEELS=$(mktemp -d)
  export HEEDFUL_WHEELS
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$HEEDFUL_WHEELS" .whl/*.whl
fi
export PYTHONPATH="src:tests${HEEDFUL_WHEELS:+:$HEEDFUL_WHEELS}${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
exec "${PYTHON:-python3}" benchmarks/gpu.py "$@"
