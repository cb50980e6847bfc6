#!/bin/sh
# Make what the benchmarks' peers need, outside of heedful's own environment: sh benchmarks/peers/environments.sh [FOLDER]
#   FOLDER/ctranslate2  an environment with CTranslate2
#   FOLDER/gensim       an environment with gensim
#   FOLDER/joeynmt      JoeyNMT, for heedful's environment
#   FOLDER/joeynmt-alone  an environment with JoeyNMT and what it needs to train
#   FOLDER/bertviz      BertViz, and FOLDER/bertviz-web the three scripts that it takes from a CDN (needs npm)
#   FOLDER/libshim.so   makes MKL take the kernels that it has for Intel's processors on any other (needs a C compiler)
set -eu
folder=${1:-build/peers}
mkdir -p "$folder"
python3 -m venv "$folder/ctranslate2"
"$folder/ctranslate2/bin/pip" install --quiet ctranslate2==4.8.5 numpy safetensors tokenizers
python3 -m venv "$folder/gensim"
"$folder/gensim/bin/pip" install --quiet gensim==4.4.0
python3 -m pip install --quiet --no-deps --target "$folder/joeynmt" joeynmt==2.3.0
python3 -m pip install --quiet --target "$folder/joeynmt" importlib_metadata
python3 -m venv "$folder/joeynmt-alone"
"$folder/joeynmt-alone/bin/pip" install --quiet torch==2.13.0
"$folder/joeynmt-alone/bin/pip" install --quiet --no-deps joeynmt==2.3.0
"$folder/joeynmt-alone/bin/pip" install --quiet importlib_metadata pandas pyarrow datasets seaborn matplotlib wrapt \
  sacrebleu sacremoses sentencepiece subword-nmt tensorboard protobuf six packaging pyyaml
python3 -m pip install --quiet --no-deps --target "$folder/bertviz" bertviz==1.4.1
python3 -m pip install --quiet --target "$folder/bertviz" ipython
if command -v npm > /dev/null; then
  npm install --silent --no-fund --no-audit --prefix "$folder/bertviz-web" d3@5.7.0 jquery@2 requirejs@2.3.6
fi
if command -v cc > /dev/null; then
  echo 'int mkl_serv_intel_cpu_true(void) { return 1; }' | cc -shared -fPIC -x c -o "$folder/libshim.so" -
fi
