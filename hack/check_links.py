"""Every relative link in our Markdown files points to something, and every anchor to a heading."""

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Anchors of headings as Git hosting sites make them: lower case, hyphens, no punctuation."""
    titles = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(file: Path) -> list[str]:
    """Sentences about links of one file that lead nowhere."""
    problems = []
    for target in LINK.findall(FENCE.sub("", file.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (file.parent / path) if path else file
        if not there.exists():
            problems.append(f"{file}: no such file: {target}")
        elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text()):
            problems.append(f"{file}: no such heading: {target}")
    return problems


def main() -> int:
    """Check all committed Markdown files; exit status 1 if anything is broken."""
    listed = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, check=True).stdout
    problems = [problem for name in listed.split() for problem in broken_links(Path(name))]
    print("\n".join(problems) or "links: all good")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
