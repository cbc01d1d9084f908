import json
import os
import subprocess
import sys

THREADS = """
import json, sys, numpy
from same.threads import limit_threads
limit_threads(int(sys.argv[1]))
import sklearn.svm
from threadpoolctl import threadpool_info
print(json.dumps([library["num_threads"] for library in threadpool_info()]))
"""


def test_one_thread_also_in_libraries_that_were_loaded_before_and_whatever_the_environment_says():
    wishes = {f"{library}_NUM_THREADS": "2" for library in ("OMP", "OPENBLAS", "MKL")}
    for threads in (1, 2):
        asked = [sys.executable, "-c", THREADS, str(threads)]
        said = subprocess.run(asked, env={**os.environ, **wishes}, capture_output=True, text=True, check=True)
        assert set(json.loads(said.stdout)) == {threads}
