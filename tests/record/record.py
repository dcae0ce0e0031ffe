"""Records the corpus of testdata/ on the test ground: writes each case to a real API server, then keeps what kubectl prints.

    eval "$(tests/setup.sh)"; python3 tests/record/record.py KUBECONFIG [CASE ...]

KUBECONFIG is that of a running `captf-testground serve`. Needs nothing but Python.
"""

import os
import sys

import jobs
import locks
from api import NS, Server

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testdata")


def main():
    server = Server(sys.argv[1], os.environ["CAPTF_TEST_KUBECTL"])
    wanted = set(sys.argv[2:])
    for command, module in (("lock", locks), ("jobs", jobs)):
        for case in module.CASES:
            name = case.__name__.replace("_", "-")
            if wanted and name not in wanted:
                continue
            server.clear()
            server.logs = {}
            args = case(server)
            folder = os.path.join(ROOT, command, name)
            server.dump(folder, module.RESOURCES)
            with open(os.path.join(folder, "args"), "w", encoding="utf-8") as file:
                file.write(args + "\n")
            for (pod, container), text in server.logs.items():
                place = os.path.join(folder, "logs", NS, pod)
                os.makedirs(place, exist_ok=True)
                with open(os.path.join(place, container + ".log"), "w", encoding="utf-8", newline="") as file:
                    file.write(text)
            print(f"{command}/{name}")


main()
