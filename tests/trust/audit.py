"""Known vulnerabilities of the installed packages, from pip-audit: `make audit`.

Packages that could not be checked are listed. If none could be checked, the audit fails.
"""

import json
import subprocess
import sys
from typing import Any


def judge(packages: list[dict[str, Any]]) -> tuple[int, str]:
    """Return an exit code and a summary of the output of pip-audit."""
    checked = [each for each in packages if "skip_reason" not in each]
    missed = [each["name"] for each in packages if "skip_reason" in each and "editable" not in each["skip_reason"]]
    lines = [
        f"{each['name']} {each['version']}: {bug['id']}, fixed in {', '.join(bug['fix_versions']) or 'no version'}"
        for each in checked
        for bug in each["vulns"]
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
    """Run pip-audit; exit with 1 if there are vulnerabilities, with 2 if nothing could be checked."""
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
        code, text = 2, f"audit: failed\n{done.stderr}"
    print(text)
    sys.exit(code)


if __name__ == "__main__":
    main()
