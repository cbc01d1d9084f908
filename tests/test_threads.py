import json
import os
import subprocess
import sys

THREADS = """
import json, numpy
from same.threads import limit_threads
limit_threads(1)
import sklearn.svm
from threadpoolctl import threadpool_info
counts = [sorted({library["num_threads"] for library in threadpool_info()})]
limit_threads(2)
counts.append(sorted({library["num_threads"] for library in threadpool_info()}))
print(json.dumps(counts))
"""


def test_the_number_of_threads_holds_for_libraries_loaded_before_and_after_whatever_the_environment_says():
    environment = {f"{library}_NUM_THREADS": "2" for library in ("OMP", "OPENBLAS", "MKL")}
    command = [sys.executable, "-c", THREADS]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[1], [2]]
