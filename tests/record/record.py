"""Records the corpus of testdata/ on the test ground: writes each case to a real API server, then keeps what kubectl prints.

    make record                                  all cases, on a ground of its own
    python3 tests/record/record.py CASE ...      some of them

Needs nothing but Python, and the variables that tests/setup.sh prints.
"""

import contextlib
import json
import os
import subprocess
import sys

from api import NS, Server

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testdata")


@contextlib.contextmanager
def ground():
    """A test ground for the length of a with block; gives its kubeconfig."""
    command = [os.environ["CAPTF_TESTGROUND"], "serve", "--assets", os.environ["KUBEBUILDER_ASSETS"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline())["kubeconfig"]
        finally:
            process.stdin.close()
            process.wait()


def main(wanted):
    import jobs  # pylint: disable=import-outside-toplevel
    import locks  # pylint: disable=import-outside-toplevel

    with ground() as kubeconfig:
        server = Server(kubeconfig, os.environ["CAPTF_TEST_KUBECTL"])
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


if __name__ == "__main__":
    main(set(sys.argv[1:]))
