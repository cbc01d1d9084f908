"""Known vulnerabilities of what is installed, from pip-audit: `make audit`.

What could not be checked is said, and where nothing could be, that is no success.
"""

import json
import subprocess
import sys
from typing import Any


def judge(found: list[dict[str, Any]]) -> tuple[int, str]:
    """An exit code, and a few lines, from what pip-audit says of each distribution."""
    checked = [each for each in found if "skip_reason" not in each]
    missed = [each["name"] for each in found if "skip_reason" in each and "editable" not in each["skip_reason"]]
    lines = [
        f"{each['name']} {each['version']}: {known['id']}, mended in {', '.join(known['fix_versions']) or 'no version'}"
        for each in checked
        for known in each["vulns"]
    ]
    wrong = len(lines)
    if missed:
        lines.append(f"could not be checked: {', '.join(missed)}")
    lines.append(
        f"audit: {len(checked)} distributions checked, {wrong} known vulnerabilities, {len(missed)} not checked"
    )
    if not checked:
        lines.append("audit: nothing could be checked; is there a network?")
    return 1 if wrong else 0 if checked else 2, "\n".join(lines)


def main() -> None:
    """Asks, and ends with 1 where something is known, and with 2 where nothing could be asked."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--local",
        "--skip-editable",
        "--progress-spinner",
        "off",
        "-f",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        code, text = judge(json.loads(done.stdout)["dependencies"])
    except ValueError:
        code, text = 2, f"audit: could not be done\n{done.stderr}"
    print(text)
    sys.exit(code)


if __name__ == "__main__":
    main()
