"""What a process on a node of the campaign runs: `pretrain`, in float64 and slowly.

Says in a file that it is there, with its number, so that a node can be killed with all that is its.
"""

import os
import sys
import time
from pathlib import Path

from tinytf.cli import pretrain
from tinytf.data.blocks import TextBlocks
from tinytf.gpt import GPT

if __name__ == "__main__":
    here = Path(os.environ["TINYTF_NODE"])
    (here / str(os.getpid())).touch()
    pretrain.GPT = lambda config: GPT(config).double()  # so that another order of sums shows less
    take = TextBlocks.__call__

    def slowly(self, step):
        time.sleep(0.04)
        (here / "step").write_text(str(step))
        return take(self, step)

    TextBlocks.__call__ = slowly
    status = pretrain.main(sys.argv[1:])
    (here / str(os.getpid())).unlink()
    sys.exit(status)
