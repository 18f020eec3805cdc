"""What a peer answers to every question of a judged set; runs in the peer's own environment.

python ranking.py DRIVER WORK_FOLDER SCRATCH_FOLDER
"""

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from work import Work


def main() -> None:
    driver = importlib.import_module(f"drivers.{sys.argv[1]}").Driver()
    folder = Path(sys.argv[2])
    groups, asked = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("groups", "question_groups")
    )
    Work.group = staticmethod(lambda n: _plain(groups[n]))
    work = Work.load(folder, len(groups))
    driver.open(Path(sys.argv[3]), work)
    for start in range(0, len(groups), driver.batch):
        driver.bulk(range(start, min(start + driver.batch, len(groups))))
    driver.settle(60)
    found = {
        mode: [
            driver.search(mode, q, _plain(group) if group is not None and driver.scopes else None)
            for q, group in enumerate(asked)
        ]
        for mode in driver.modes
    }
    driver.close()
    print("\nRESULT " + json.dumps(found), flush=True)


def _plain(group: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in group)


main()
