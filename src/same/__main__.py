"""`python -m same` runs the command `same`; `torchrun -m same` needs it."""

from same.cli import main

main()
