"""A few kills, each in a process that is forked from a fresh one."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
import torch
from benchmarks.children import warm_up
from benchmarks.kills import DIGITS, run_trials
torch.set_num_threads(1)
warm_up()
print(run_trials(Path(sys.argv[1]), [DIGITS], first=0, count=4))
"""


def test_killed_runs_end_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    home = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    assert "'kills': 4, 'bit_equal': 4, 'wrong': 0" in done.stdout, done.stdout + done.stderr
